//! The switch for all policies. A file or a request can turn them off.

use tokio::sync::watch;
use tracing::warn;

use super::{Catalog, ChangeError};
use crate::source::shutoff::{Shutoff, ShutoffFile, ShutoffSource};
use crate::source::store::StoreError;

impl Catalog {
    /// Makes the switch for all policies follow this file, which an earlier run of the service may have written.
    pub fn follow_shutoff(&self, file: ShutoffFile) {
        self.lock().shutoff_file = Some(file);
        self.reread_shutoff();
    }

    /// Reads the file of the switch again. Blocks while it reads.
    pub fn reread_shutoff(&self) {
        let file = self.lock().shutoff_file.clone();
        match file.map(|file| file.read()) {
            None => {}
            Some(Ok(note)) => self.say_shutoff(ShutoffSource::File, note.as_deref()),
            Some(Err(error)) => {
                warn!(%error, "the file that turns all policies off cannot be read; its last content remains in force");
            }
        }
    }

    /// Writes the file of the switch, and puts its state in force. Blocks while it writes.
    ///
    /// # Errors
    /// When there is no state directory, or it cannot be written.
    pub fn write_shutoff(&self, note: Option<&str>) -> Result<(), ChangeError> {
        let file = self.lock().shutoff_file.clone();
        let file = file.ok_or(ChangeError::NoStore)?;
        file.write(note).map_err(StoreError::from)?;
        self.say_shutoff(ShutoffSource::File, note);
        Ok(())
    }

    /// Sets the note of one source of the switch; `None`: this source does not turn policies off.
    pub fn say_shutoff(&self, source: ShutoffSource, note: Option<&str>) {
        let mut inner = self.lock();
        let mut shutoff = self.shutoff();
        if !shutoff.say(source, note) {
            return;
        }
        if shutoff.is_off() {
            warn!(audit = "disable-all", source = source.name(), notes = %shutoff, "all policies are off: every request passes");
        } else {
            warn!(
                audit = "enable-all",
                source = source.name(),
                "the policies are on again"
            );
        }
        self.shutoff.send_replace(shutoff);
        self.apply(&mut inner);
    }

    /// Whether all policies are off, and what turned them off.
    #[must_use]
    pub fn shutoff(&self) -> Shutoff {
        self.shutoff.borrow().clone()
    }

    /// Changes whenever the switch changes.
    #[must_use]
    pub fn shutoffs(&self) -> watch::Receiver<Shutoff> {
        self.shutoff.subscribe()
    }
}
