//! Commands that need Linux, on other systems. Each of them is known, and reports that it needs
//! Linux.

use super::Failure;
use clap::Args;
use std::ffi::OsString;

/// The arguments of a command that does not work on this system. They are ignored.
#[derive(Debug, Args)]
pub struct Ignored {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

/// The error of a feature that is not available on this system.
pub fn needs_linux(what: &str) -> Failure {
    Failure::new(
        2,
        format!("{what} needs Linux, and this is {}", std::env::consts::OS),
        "Use cryptmark on Linux or in a Linux virtual machine. `cryptmark doctor` shows what works here.",
    )
}

/// `cryptmark lab`.
pub mod lab {
    pub use super::Ignored as LabOptions;
    use crate::cli::Failure;

    /// Says that it is not here.
    pub fn run(_: LabOptions) -> Result<(), Failure> {
        Err(super::needs_linux("the lab kernel"))
    }
}

/// `cryptmark ui`.
pub mod ui {
    pub use super::Ignored as UiOptions;
    use crate::cli::Failure;

    /// Says that it is not here.
    pub fn run(_: UiOptions, _: Option<&str>) -> Result<(), Failure> {
        Err(super::needs_linux("`cryptmark ui`"))
    }
}

/// `cryptmark volume serve`.
pub mod serve {
    pub use super::Ignored as ServeOptions;
    use crate::cli::Failure;
    use crate::cli::volume::disk::Names;

    /// Says that it is not here.
    pub fn run(_: &ServeOptions, _: &Names) -> Result<(), Failure> {
        Err(super::needs_linux("`volume serve`"))
    }
}

/// `cryptmark volume mount`.
pub mod mount {
    pub use super::Ignored as MountOptions;
    use crate::cli::Failure;
    use crate::cli::volume::disk::Names;

    /// Says that it is not here.
    pub fn run(_: &MountOptions, _: &Names) -> Result<(), Failure> {
        Err(super::needs_linux("`volume mount`"))
    }
}

/// `cryptmark volume umount`.
pub mod umount {
    pub use super::Ignored as UmountOptions;
    use crate::cli::Failure;

    /// Says that it is not here.
    pub fn run(_: &UmountOptions) -> Result<(), Failure> {
        Err(super::needs_linux("`volume umount`"))
    }
}

/// `cryptmark volume status`.
pub mod status {
    pub use super::Ignored as StatusOptions;
    use crate::cli::Failure;

    /// Says that it is not here.
    pub fn run(_: &StatusOptions) -> Result<(), Failure> {
        Err(super::needs_linux("`volume status`"))
    }
}

/// `cryptmark volume trim-check`.
pub mod trim_check {
    pub use super::Ignored as TrimCheckOptions;
    use crate::cli::Failure;

    /// Says that it is not here.
    pub fn run(_: &TrimCheckOptions) -> Result<(), Failure> {
        Err(super::needs_linux("`volume trim-check`"))
    }
}
