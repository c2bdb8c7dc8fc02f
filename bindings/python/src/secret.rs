//! What opens a volume, from Python's memory into the engine's.

use crate::errors::{Raised, exception};
use cipher::Key;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use volume::{Secret, VolumeError};

/// The longest key file, as in cryptsetup.
const MOST_KEY_FILE: usize = 8 << 20;

/// A secret as `cryptmark.open` passes it on, which has checked that there is only one.
#[derive(FromPyObject)]
pub enum Given<'py> {
    /// `(kind, bytes)`; the caller overwrites the bytes afterwards.
    Bytes(String, Bound<'py, PyByteArray>),
    /// A key file, read here so that Python has no copy.
    #[pyo3(transparent)]
    File(PathBuf),
}

impl Given<'_> {
    /// The engine's own copy.
    pub fn secret(self, py: Python<'_>) -> PyResult<Secret> {
        match self {
            Self::Bytes(kind, bytes) => {
                let key = Key::new(bytes.to_vec());
                Ok(match &*kind {
                    "key_file" => Secret::KeyFile(key),
                    "volume_key" => Secret::VolumeKey(key),
                    _ => Secret::Passphrase(key),
                })
            }
            Self::File(path) => {
                let key = py.detach(|| read(&path)).raised(py)?;
                match key.len() {
                    0 => Err(VolumeError::EmptyKeyFile { path }).raised(py),
                    1..=MOST_KEY_FILE => Ok(Secret::KeyFile(key)),
                    _ => Err(exception(
                        py,
                        "BadInput",
                        &format!("{} has more than {MOST_KEY_FILE} bytes", path.display()),
                        "Check that it is the key file.",
                        None,
                    )),
                }
            }
        }
    }
}

/// The bytes at `path`; one more than a key file may have shows that there are too many.
fn read(path: &PathBuf) -> Result<Key, VolumeError> {
    let unreadable = |source| VolumeError::Unreadable {
        path: path.clone(),
        source,
    };
    let mut file = File::open(path).map_err(unreadable)?;
    Key::read(MOST_KEY_FILE + 1, |room| {
        let mut got = 0;
        while got < room.len() {
            match file.read(&mut room[got..]).map_err(unreadable)? {
                0 => break,
                more => got += more,
            }
        }
        Ok(got)
    })
}
