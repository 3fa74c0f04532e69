//! Processes that cannot outlive us.
//!
//! The kernel is asked to kill the child when its parent dies (`PR_SET_PDEATHSIG`).
//! "Parent" means the *thread* that started it, so that all processes are started by
//! one thread that lives as long as this program: a runtime that ends one of its
//! threads must not take a server with it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{OnceLock, mpsc};
use std::thread;

use rustix::process::Signal;

type Order = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts a process that the kernel kills when this program ends, however that comes about.
///
/// # Errors
/// When the program cannot be run.
pub fn spawn(command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, reply) in orders {
                let _ = reply.send(spawn_bound_to_this_thread(&mut command));
            }
        });
        sender
    });
    let (reply, answer) = mpsc::channel();
    let gone = |_| io::Error::other("the thread that starts processes is gone");
    starter
        .send((command, reply))
        .map_err(|_| gone(mpsc::RecvError))?;
    answer.recv().map_err(gone)?
}

#[expect(
    unsafe_code,
    reason = "the only way to run code between fork and exec; it makes one system call"
)]
fn spawn_bound_to_this_thread(command: &mut Command) -> io::Result<Child> {
    // SAFETY: the closure only calls prctl, which is safe between fork and exec.
    unsafe {
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
                .map_err(io::Error::from)
        });
    }
    command.spawn()
}
