//! Ctrl-Z pauses a measurement between two visits of cells, and not in the middle of one.
//!
//! The signal SIGTSTP stays blocked and waits to be read. Between visits the program then stops
//! itself (SIGSTOP), until SIGCONT from `fg` or `kill`. File systems are measured by an agent that
//! does not wait for this program, so they are not paused like this.

#[cfg(target_os = "linux")]
mod signal {
    use nix::sys::signal::{SigSet, Signal, raise};
    use nix::sys::signalfd::{SfdFlags, SignalFd};
    use std::sync::OnceLock;

    static ASKED: OnceLock<SignalFd> = OnceLock::new();

    /// From now on the signal waits for [`here`]. Threads that exist already do not heed this.
    pub fn begin() {
        let mut set = SigSet::empty();
        set.add(Signal::SIGTSTP);
        // Without this, the signal stops the program at once, as it stops others.
        if let Ok(asked) =
            SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            && set.thread_block().is_ok()
        {
            let _ = ASKED.set(asked);
        }
    }

    /// Pauses if the user has asked for that. `told` hears when it begins (`true`) and ends.
    pub fn here(told: impl Fn(bool)) {
        let asked = || matches!(ASKED.get().map(SignalFd::read_signal), Some(Ok(Some(_))));
        if !asked() {
            return;
        }
        // Several before one pause are one.
        while asked() {}
        told(true);
        let _ = raise(Signal::SIGSTOP);
        told(false);
    }
}

#[cfg(not(target_os = "linux"))]
mod signal {
    /// Ctrl-Z pauses at once where the system knows it.
    pub fn begin() {}

    /// Nothing waits here.
    pub fn here(_: impl Fn(bool)) {}
}

pub use signal::{begin, here};
