//! Binds a process to this program: by a process group, and by the kernel.
//!
//! The kernel is asked to kill the process when its parent dies (`PR_SET_PDEATHSIG`). "Parent" means the *thread* that
//! started it, so one thread that lives as long as this program starts all processes: a runtime that ends one of its threads
//! must not end a server.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::{OnceLock, mpsc};
use std::thread;

use process_wrap::std::{ChildWrapper, CommandWrap, CommandWrapper, ProcessGroup};
use rustix::process::{Signal, set_parent_process_death_signal};

type Spawned = io::Result<Box<dyn ChildWrapper>>;

type SpawnOrder = (Command, mpsc::Sender<Spawned>);

/// Starts a process in its own group. The kernel kills it when this program ends, for whatever reason.
pub(crate) fn spawn(command: Command) -> Spawned {
    static STARTER: OnceLock<mpsc::Sender<SpawnOrder>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<SpawnOrder>();
        thread::spawn(move || {
            for (command, reply) in orders {
                let mut command = CommandWrap::from(command);
                command.wrap(ProcessGroup::leader()).wrap(DiesWithParent);
                let _ = reply.send(command.spawn());
            }
        });
        sender
    });
    let (reply, answer) = mpsc::channel();
    let gone = || io::Error::other("the thread that starts processes has ended");
    starter.send((command, reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

/// Asks the kernel to kill the process when the thread that started it ends.
#[derive(Debug)]
struct DiesWithParent;

impl CommandWrapper for DiesWithParent {
    #[expect(
        unsafe_code,
        reason = "the only way to run code between fork and exec; it makes one system call"
    )]
    fn pre_spawn(&mut self, command: &mut Command, _: &CommandWrap) -> io::Result<()> {
        // SAFETY: the closure only calls prctl, which is safe between fork and exec.
        unsafe {
            command.pre_exec(|| {
                set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
            });
        }
        Ok(())
    }
}
