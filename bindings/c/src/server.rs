//! Volumes as NBD exports.

use crate::error::{
    CRYPTMARK_BAD_INPUT, CRYPTMARK_FAILED, Fault, cryptmark_code, cryptmark_error, guarded,
};
use crate::text::path_of;
use crate::volume::cryptmark_volume;
use ::volume::VolumeError;
use serve::nbd::{End, Named, Place, ServeError, Server};
use serve::{Access, Export};
use std::ffi::c_char;
use std::mem::forget;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Requests of one client that are worked on at a time.
const THREADS: usize = 4;

/// A server of one volume. End it with cryptmark_serve_end.
pub struct cryptmark_server {
    end: End,
    export: Arc<Export>,
    serving: JoinHandle<Result<(), ServeError>>,
    /// The process that has the thread.
    process: u32,
}

/// Serves the volume over NBD at the socket `path`, in a thread of its own. The volume belongs to
/// the server afterwards, whatever the code is: do not close it. Only this user may connect.
/// `*server` is set if the code is CRYPTMARK_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_serve(
    volume: *mut cryptmark_volume,
    path: *const c_char,
    server: *mut *mut cryptmark_server,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let serve = || {
        if volume.is_null() {
            return Err(cryptmark_error::null("volume"));
        }
        // SAFETY: it came from `Box::into_raw`, and is given back once, as the caller promises.
        let opened = unsafe { Box::from_raw(volume) };
        if server.is_null() {
            return Err(cryptmark_error::null("server"));
        }
        // SAFETY: null or a text, as the caller promises.
        let path = unsafe { path_of(path, "path") }?;
        let access = match opened.write {
            true => Access::Write,
            false => Access::Read,
        };
        let device = Arc::from(opened.volume.into_device()?);
        let export = Arc::new(Export::new(device, access));
        let named = Named {
            name: String::new(),
            description: String::new(),
            export: Arc::clone(&export),
        };
        let place = Place::Unix(path.to_owned());
        let listening = Server::listen(place, vec![named], THREADS).map_err(fault)?;
        let end = listening.end();
        let started = Box::new(cryptmark_server {
            end,
            export,
            serving: thread::spawn(move || listening.run()),
            process: std::process::id(),
        });
        // SAFETY: not null and writable, as the caller promises.
        unsafe { server.write(Box::into_raw(started)) };
        Ok(())
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, serve) }
}

/// Lets the server answer what it has received, flushes the volume and closes it. The code says
/// whether all that clients wrote is on the storage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_serve_end(
    server: *mut cryptmark_server,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let end = || {
        if server.is_null() {
            return Err(cryptmark_error::null("server"));
        }
        // SAFETY: it came from `Box::into_raw`, and is given back once, as the caller promises.
        let server = unsafe { Box::from_raw(server) };
        if server.process != std::process::id() {
            // What it holds is the other process's, which goes on serving.
            forget(server);
            return Err(VolumeError::Forked { what: "the server" }.into());
        }
        server.end.now();
        match server.serving.join() {
            Ok(served) => served.map_err(fault)?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        match server.export.failures() {
            None => Ok(()),
            Some(failures) => {
                let (count, last) = (failures.count, failures.last);
                let message = format!("{count} writes or flushes failed; the last one: {last}");
                let remedy = &failures.remedy;
                Err(cryptmark_error::new(CRYPTMARK_FAILED, &message, remedy))
            }
        }
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, end) }
}

fn fault(error: ServeError) -> Fault {
    let code = match error {
        ServeError::InUse { .. } | ServeError::NoSocket { .. } => CRYPTMARK_BAD_INPUT,
        _ => CRYPTMARK_FAILED,
    };
    cryptmark_error::new(code, &error.to_string(), error.remedy())
}
