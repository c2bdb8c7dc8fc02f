//! `cryptmark volume serve`: an opened volume as a disk for others.

use super::arguments::VolumeArguments;
use super::secrets::SecretArguments;
use super::service::record;
use super::service::{End, Served, ServiceArguments};
use crate::cli::Failure;
use ::serve::nbd::{self, Named, Place, ServeError, Server};
use clap::Args;
use std::ffi::OsString;
use std::thread::JoinHandle;

/// Options of `cryptmark volume serve`.
#[derive(Debug, Args)]
pub struct ServeOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    #[command(flatten)]
    secret: SecretArguments,
    #[command(flatten)]
    service: ServiceArguments,
    /// Serve it over NBD, on a socket that only you can use, or on an address; without HOST on this machine only
    #[arg(long, value_name = "SOCKET|[HOST]:PORT")]
    nbd: OsString,
    /// Name of the export; clients that name none get it as well
    #[arg(long, value_name = "NAME", default_value = "")]
    name: String,
}

/// Runs the command.
pub fn run(options: &ServeOptions) -> Result<(), Failure> {
    let place = Place::parse(&options.nbd)?.absolute()?;
    let Some(service) = options.service.begin(&options.volume)? else {
        return Ok(());
    };
    let exported = service.export(&options.volume, &options.secret)?;
    let named = Named {
        name: options.name.clone(),
        description: options.volume.image().display().to_string(),
        export: exported.export.clone(),
    };
    let server = Server::listen(place, vec![named], exported.threads)?;
    let place = server.place().to_string();
    service.add(record::Place::Nbd(place.clone()))?;
    let mut running = Running {
        end: server.end(),
        thread: Some(std::thread::spawn(move || server.run())),
    };
    let image = options.volume.image().display();
    service.ready(&format!("{image} is served: {place}\n"))?;
    service.wait(&exported.export, &mut running)
}

/// A server on a thread of its own.
struct Running {
    end: nbd::End,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Served for Running {
    fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Who is connected hears the answers to what it has sent, and no more.
    fn end(&mut self, _: End) -> Result<bool, Failure> {
        self.end.now();
        if let Some(thread) = self.thread.take() {
            let outcome = thread.join();
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(true)
    }
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
