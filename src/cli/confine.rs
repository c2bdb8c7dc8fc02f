//! [`Confinement`]: what this process can still reach once it has opened what it works on.

#[cfg(debug_assertions)]
mod planted;

use super::Failure;
use super::volume::disk::is_remote;
pub use block::confine::{AccessFs, Allowed, inside, lacking, name, use_};
use serve::nbd::Uri;
use std::io;
use std::path::Path;

/// The files by which the system finds the address of a host, to connect to it again.
const RESOLVER: [&str; 4] = [
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
];

/// Rules that threads of this process can enter.
pub struct Confinement(block::confine::Confinement);

impl Confinement {
    /// Nothing is allowed.
    ///
    /// # Errors
    /// The kernel has Landlock and refuses the rules.
    pub fn nothing() -> Result<Self, Failure> {
        block::confine::Confinement::new(&[], &[])
            .map(Self)
            .map_err(refused)
    }

    /// For work on volumes that are open: their places are `sources`, and only the servers among
    /// them can be reached again. `more` is allowed as well. Locks that cryptsetup sees are kept.
    ///
    /// # Errors
    /// The kernel has Landlock and refuses the rules.
    pub fn around<'a>(
        sources: impl IntoIterator<Item = &'a Path>,
        more: Vec<Allowed>,
    ) -> Result<Self, Failure> {
        let remote = sources.into_iter().filter(|place| is_remote(place));
        let ports = remote.map(|place| Ok(Uri::parse(place.as_os_str())?.port()));
        let ports: Vec<_> = ports.collect::<Result<_, Failure>>()?;
        let ports: Vec<u16> = ports.into_iter().flatten().collect();
        let mut paths = more;
        paths.push(("/dev/null".into(), use_()));
        paths.push(("/run/cryptsetup".into(), use_() | name()));
        if !ports.is_empty() {
            let files = RESOLVER.iter();
            paths.extend(files.map(|path| (path.into(), AccessFs::ReadFile.into())));
        }
        block::confine::Confinement::new(&paths, &ports)
            .map(Self)
            .map_err(refused)
    }

    /// Confines this thread for good, with all that it starts from now on.
    ///
    /// # Errors
    /// The kernel has Landlock and refuses.
    pub fn enter(&self) -> Result<(), Failure> {
        #[cfg(debug_assertions)]
        planted::attempt("before");
        self.0.enter().map_err(refused)?;
        #[cfg(debug_assertions)]
        planted::attempt("after");
        Ok(())
    }
}

fn refused(error: io::Error) -> Failure {
    let remedy = "Report this with the kernel's version (uname -r).";
    Failure::new(1, format!("cannot confine this process: {error}"), remedy)
}
