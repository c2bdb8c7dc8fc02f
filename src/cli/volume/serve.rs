//! `cryptmark volume serve`: an opened volume as a disk for others.

use super::arguments::VolumeArguments;
use super::open::unlock;
use super::secrets::SecretArguments;
use crate::cli::{Failure, print, stop_on_signal};
use ::serve::nbd::{Named, Place, ServeError, Server};
use ::serve::{Access, Export};
use block::layer::{Trim, TrimPolicy};
use block::{BlockDevice, BlockError, Engine};
use clap::Args;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Requests of a client that are worked on at a time where the storage is slow.
const THREADS: usize = 16;
/// How often a signal is looked for.
const GLANCE: Duration = Duration::from_millis(50);

/// Options of `cryptmark volume serve`.
#[derive(Debug, Args)]
pub struct ServeOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    #[command(flatten)]
    secret: SecretArguments,
    /// Serve it over NBD, on a socket that only you can use, or on an address
    #[arg(long, value_name = "SOCKET|[HOST]:PORT")]
    nbd: OsString,
    /// Name of the export; clients that name none get it as well
    #[arg(long, value_name = "NAME", default_value = "")]
    name: String,
    /// Let clients only read
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    trim: TrimArguments,
}

/// What is to become of discards.
#[derive(Debug, Args)]
pub struct TrimArguments {
    /// What becomes of discards: block stops them, pass hands them on and shows
    /// what is in use, zero writes encrypted zeros
    #[arg(long, value_name = "block|pass|zero", default_value = "block")]
    trim: TrimPolicy,
    /// The same as --trim pass
    #[arg(long, conflicts_with = "trim")]
    allow_discards: bool,
}

impl TrimArguments {
    /// The policy.
    pub fn policy(&self) -> TrimPolicy {
        match self.allow_discards {
            true => TrimPolicy::Pass,
            false => self.trim,
        }
    }
}

/// An opened volume that is to be exported.
pub struct Served {
    /// The plaintext.
    pub export: Arc<Export>,
    /// Requests of a client that are worth working on at a time.
    pub threads: usize,
}

/// Opens the volume for exporting it.
pub fn open(
    volume: &VolumeArguments,
    secret: &SecretArguments,
    read_only: bool,
    trim: &TrimArguments,
) -> Result<Served, Failure> {
    let (access, purpose) = match read_only {
        true => (Access::Read, ::volume::Access::Read),
        false => (Access::Write, ::volume::Access::Write),
    };
    let devices = volume.devices(access == Access::Write)?;
    let opened = unlock(volume, secret, &devices, purpose)?;
    let policy = trim.policy();
    let opened = match policy {
        TrimPolicy::Pass => opened.allowing_discards(),
        TrimPolicy::Block | TrimPolicy::Zero => opened,
    };
    // Memory answers at once, and a disk only when it has got there.
    let threads = match devices.data.engine() {
        Engine::Pread => 1,
        Engine::IoUring | Engine::Threads => THREADS,
    };
    let [header, data] = devices.shared();
    let plaintext: Box<dyn BlockDevice> = opened.device(header, data)?;
    let device: Arc<dyn BlockDevice> = match policy {
        // Its size is the only thing that it adds.
        TrimPolicy::Pass => plaintext.into(),
        TrimPolicy::Block | TrimPolicy::Zero => Arc::new(Trim::new(plaintext, policy)),
    };
    let export = Export::new(device, access).with_listener(tell);
    Ok(Served {
        export: Arc::new(export),
        threads,
    })
}

/// Tells the user what the storage could not do.
fn tell(error: &BlockError) {
    let cause =
        std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
    eprintln!("warning: {error}{cause}\n  {}", error.remedy());
}

/// Runs the command.
pub fn run(options: &ServeOptions) -> Result<(), Failure> {
    let place = Place::parse(&options.nbd)?;
    let served = open(
        &options.volume,
        &options.secret,
        options.read_only,
        &options.trim,
    )?;
    let named = Named {
        name: options.name.clone(),
        description: options.volume.image().display().to_string(),
        export: served.export,
    };
    let server = Server::listen(place, vec![named], served.threads)?;
    let stop = stop_on_signal()?;
    let end = server.end();
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(GLANCE);
        }
        end.now();
    });
    print(&format!("serving at {}\n", server.place()))?;
    server.run(None)?;
    Ok(())
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        let code = match &error {
            ServeError::Place { .. } => 2,
            ServeError::InUse { .. } | ServeError::NoSocket { .. } => 4,
            ServeError::Listen { .. } | ServeError::Failed(_) => 1,
        };
        Self::of(code, &error, error.remedy())
    }
}
