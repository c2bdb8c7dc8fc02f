//! Other programs that keep encrypted volumes and serve them.

/// A program that serves volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// `qemu-nbd`.
    Qemu,
    /// `nbdkit`.
    Nbdkit,
    /// `veracrypt`, without the kernel's cryptography.
    Veracrypt,
}

impl Program {
    /// All programs.
    pub const ALL: [Self; 3] = [Self::Qemu, Self::Nbdkit, Self::Veracrypt];

    /// The contract's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Nbdkit => "nbdkit",
            Self::Veracrypt => "veracrypt",
        }
    }

    pub(super) const fn command(self) -> &'static str {
        match self {
            Self::Qemu => "qemu-nbd",
            Self::Nbdkit => "nbdkit",
            Self::Veracrypt => "veracrypt",
        }
    }

    /// The package or source that provides the program.
    pub const fn package(self) -> &'static str {
        match self {
            Self::Qemu => "Debian's qemu-utils",
            Self::Nbdkit => "Debian's nbdkit",
            Self::Veracrypt => "the console package from its makers",
        }
    }

    /// The version that is installed, if one is.
    pub fn version(self) -> Option<String> {
        let mut command = block::program::command(self.command());
        if self == Self::Veracrypt {
            command.arg("--text");
        }
        let output = command.arg("--version").output();
        let said = output.ok().filter(|output| output.status.success())?.stdout;
        let line = String::from_utf8_lossy(&said).lines().next()?.to_owned();
        Some(line.split(" (").next().unwrap_or_default().to_owned())
    }
}
