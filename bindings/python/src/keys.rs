//! Key slots of LUKS volumes, which `cryptmark._keys` documents.

use crate::errors::Raised;
use crate::operate::{cost, words};
use crate::secret::Given;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use volume::judge::Use;
use volume::operate::{self, KeyOptions, NewKey};
use volume::{Place, Secret, VolumeError};

/// The options of a change, as Python names them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Options {
    header: Option<PathBuf>,
    key_slot: Option<u32>,
    new_key_slot: Option<u32>,
    pbkdf: Option<String>,
    iter_time: Option<u64>,
    allow_empty: bool,
    last_too: bool,
}

impl Options {
    fn changed(
        &self,
        path: &Path,
        secret: &Secret,
        new: Option<NewKey>,
        keeps_old: bool,
    ) -> Result<u32, VolumeError> {
        let keys = KeyOptions {
            slot: self.key_slot,
            new_slot: self.new_key_slot,
            last_too: self.last_too,
            ..KeyOptions::default()
        };
        let place = Place::open(path, self.header.as_deref(), Use::ChangeHeader)?;
        match new {
            Some(new) if keeps_old => operate::add_key(&place, secret, &new, &keys),
            Some(new) => operate::change_key(&place, secret, &new, &keys),
            None => operate::remove_key(&place, secret, &keys),
        }
    }

    fn new_key(&self, py: Python<'_>, secret: Secret) -> PyResult<NewKey> {
        Ok(NewKey {
            secret: words(secret),
            cost: cost(py, self.pbkdf.as_deref(), self.iter_time)?,
            allow_empty: self.allow_empty,
        })
    }
}

/// Gives the volume at `path` the secret `new`, beside the one that opens it if `keeps_old`, or
/// removes a key slot. Returns the key slot's number.
#[pyfunction]
pub fn change_keys(
    py: Python<'_>,
    path: PathBuf,
    secret: Given<'_>,
    new: Option<Given<'_>>,
    keeps_old: bool,
    options: Options,
) -> PyResult<u32> {
    let secret = secret.secret(py)?;
    let new = new.map(|given| options.new_key(py, given.secret(py)?));
    let new = new.transpose()?;
    py.detach(|| options.changed(&path, &secret, new, keeps_old))
        .raised(py)
}
