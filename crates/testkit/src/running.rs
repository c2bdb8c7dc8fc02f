//! Programs in the background.

use std::process::{Child, Command};

/// A program in the background, which is killed if the test ends before it does.
pub struct Running(pub Child);

impl Running {
    /// Starts `command`.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        let child = command.spawn();
        Self(child.unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Sends it a signal, named as `kill` takes it, as in `-TERM`.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        kill.args([name, &self.0.id().to_string()]);
        assert!(kill.status().unwrap().success(), "{kill:?}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended, unless a test failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
