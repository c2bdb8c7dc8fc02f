//! Volumes made and changed, which `cryptmark._operate` documents.

use crate::arguments::Arguments;
use crate::errors::Fault;
use cipher::Key;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use volume::operate::Change;
use volume::{Format, Secret};

/// Makes a volume. Returns what it is.
#[pyfunction]
pub fn create(py: Python<'_>, given: Arguments<'_>) -> Result<Py<PyDict>, Fault> {
    let (path, size) = (given.path("path")?, given.take("size")?);
    let (format, created) = given.work(|request, calls| {
        let format = request.format.unwrap_or(Format::Luks2);
        Ok((format, request.create(&path, size, calls)?))
    })?;
    let told = PyDict::new(py);
    told.set_item("format", format.name())?;
    told.set_item("uuid", created.uuid)?;
    told.set_item("cipher", created.cipher)?;
    told.set_item("key_bits", created.key_bits)?;
    told.set_item("derivation", created.derivation)?;
    told.set_item("offset", created.data.offset)?;
    told.set_item("size", created.data.length)?;
    told.set_item("leaves_old_data", created.leaves_old_data)?;
    Ok(told.unbind())
}

/// Makes a hidden volume in another one. Returns the length of its data.
#[pyfunction]
pub fn create_hidden(outer: Arguments<'_>, hidden: Arguments<'_>) -> Result<u64, Fault> {
    let (path, size) = (outer.path("path")?, outer.take("size")?);
    let hidden = hidden.request()?;
    let created =
        outer.work(|request, calls| request.create_hidden(&path, &hidden, size, calls))?;
    Ok(created.data.length)
}

/// Gives the data another key or cipher, or encrypts or decrypts them where they are.
#[pyfunction]
pub fn reencrypt(given: Arguments<'_>) -> Result<(), Fault> {
    let path = given.path("path")?;
    let change = match &*given.take::<String>("change")? {
        "encrypt" => Change::Encrypt,
        "decrypt" => Change::Decrypt,
        _ => Change::Anew,
    };
    given.work(|request, calls| request.reencrypt(&path, change, calls).map(drop))
}

/// Makes a LUKS volume one of another version. Returns whether it was one.
#[pyfunction]
pub fn convert(given: Arguments<'_>) -> Result<bool, Fault> {
    let path = given.path("path")?;
    given.work(|request, _| request.convert(&path, request.format.unwrap_or(Format::Luks2)))
}

/// Gives a volume another size. Returns the length of its data.
#[pyfunction]
pub fn resize(given: Arguments<'_>) -> Result<u64, Fault> {
    let (path, size) = (given.path("path")?, given.take("size")?);
    given.work(|request, calls| request.resize(&path, size, calls))
}

/// Copies a header to a new file. Returns whose it is.
#[pyfunction]
pub fn backup_header(given: Arguments<'_>) -> Result<String, Fault> {
    let (path, output) = (given.path("path")?, given.path("output")?);
    given.work(|request, _| request.backup_header(&path, &output))
}

/// Puts a header back. Returns what was done.
#[pyfunction]
pub fn restore_header(given: Arguments<'_>) -> Result<String, Fault> {
    let (path, input) = (given.path("path")?, given.path("input")?);
    let mended = given.work(|request, calls| request.restore_header(&path, &input, calls))?;
    Ok(mended.said)
}

/// Mends a header. Returns what was done.
#[pyfunction]
pub fn repair_header(given: Arguments<'_>) -> Result<String, Fault> {
    let path = given.path("path")?;
    Ok(given
        .work(|request, calls| request.repair_header(&path, calls))?
        .said)
}

/// Gives a TrueCrypt or VeraCrypt volume another password.
#[pyfunction]
pub fn change_password(given: Arguments<'_>) -> Result<(), Fault> {
    let (path, new) = with_new(&given)?;
    given.work(|request, calls| request.change_password(&path, new, calls))
}

/// Adds a key slot. Returns its number.
#[pyfunction]
pub fn add_key(given: Arguments<'_>) -> Result<u32, Fault> {
    let (path, new) = with_new(&given)?;
    given.work(|request, _| request.add_key(&path, new))
}

/// Gives a key slot another secret. Returns its number.
#[pyfunction]
pub fn change_key(given: Arguments<'_>) -> Result<u32, Fault> {
    let (path, new) = with_new(&given)?;
    given.work(|request, _| request.change_key(&path, new))
}

/// Removes a key slot. Returns its number.
#[pyfunction]
pub fn remove_key(given: Arguments<'_>) -> Result<u32, Fault> {
    let path = given.path("path")?;
    given.work(|request, _| request.remove_key(&path))
}

/// The path, and the secret that is going to open the volume there.
fn with_new(given: &Arguments<'_>) -> Result<(PathBuf, Key), Fault> {
    let new = given.secret("new_secret")?.map(Secret::into_words);
    let missing = || PyValueError::new_err("give new_passphrase or new_key_file");
    Ok((given.path("path")?, new.ok_or_else(missing)?))
}
