//! Volumes made and changed, which `cryptmark._operate` documents.

use crate::errors::{Raised, exception};
use crate::handle::losses_named;
use crate::secret::Given;
use crate::signals::Signals;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use volume::judge::{self, Finding, State, Use};
use volume::operate::{
    self, Change, Creation, HiddenCreation, KeySlotCost, NewKey, PasswordChange,
};
use volume::tcrypt::Keyfiles;
use volume::{Format, KdfKind, Parameters, Place, Secret, Site, VolumeError};

/// The options of an operation, as Python names them; those that it has no use for are absent.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Options {
    format: Option<String>,
    header: Option<PathBuf>,
    size: Option<u64>,
    cipher: Option<String>,
    key_size: Option<usize>,
    hash: Option<String>,
    sector_size: Option<u32>,
    offset: Option<u64>,
    key_slot: Option<u32>,
    veracrypt_pim: Option<u32>,
    keyfiles: Option<Vec<PathBuf>>,
    tcrypt_hidden: bool,
    integrity: Option<String>,
    label: Option<String>,
    subsystem: Option<String>,
    uuid: Option<String>,
    wipe: bool,
    quick: bool,
    pbkdf: Option<String>,
    iter_time: Option<u64>,
    allow_empty: bool,
    allow: Vec<String>,
    ask: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
}

impl Options {
    fn parameters(&self) -> Result<Parameters, VolumeError> {
        let keyfiles = self.keyfiles.as_deref().map(Keyfiles::read);
        Ok(Parameters {
            cipher: self.cipher.clone(),
            key_size: self.key_size,
            hash: self.hash.clone(),
            sector_size: self.sector_size,
            offset: self.offset,
            key_slot: self.key_slot,
            veracrypt_pim: self.veracrypt_pim,
            keyfiles: keyfiles.transpose()?,
            tcrypt_hidden: self.tcrypt_hidden,
            ..Parameters::default()
        })
    }

    /// What a change of the volume needs besides a secret.
    fn wanted(&self, py: Python<'_>) -> PyResult<operate::Options> {
        Ok(operate::Options {
            format: self.named_format().raised(py)?,
            parameters: self.parameters().raised(py)?,
            ..operate::Options::default()
        })
    }

    fn named_format(&self) -> Result<Option<Format>, VolumeError> {
        self.format.as_deref().map(Format::parse).transpose()
    }

    fn cost(&self, py: Python<'_>) -> PyResult<KeySlotCost> {
        cost(py, self.pbkdf.as_deref(), self.iter_time)
    }
}

/// What a secret costs those who try it.
pub fn cost(py: Python<'_>, pbkdf: Option<&str>, iter_time: Option<u64>) -> PyResult<KeySlotCost> {
    let kind = pbkdf.map(|name| {
        KdfKind::named(name).ok_or_else(|| {
            let message = format!("unknown key derivation `{name}`");
            let remedy = "Use one of: pbkdf2, argon2i, argon2id.";
            exception(py, "BadInput", &message, remedy, None)
        })
    });
    let time = iter_time.map(Duration::from_millis);
    Ok(KeySlotCost {
        kind: kind.transpose()?,
        time,
        ..KeySlotCost::default()
    })
}

/// What Python is asked and told during an operation, and the exception that ended it.
struct Calls<'a> {
    options: &'a Options,
    signals: Signals,
    raised: Mutex<Option<PyErr>>,
}

impl Calls<'_> {
    /// Does `work` without Python's lock.
    fn during<T: Send>(
        py: Python<'_>,
        options: &Options,
        work: impl FnMut(&Calls<'_>, &[State]) -> Result<T, VolumeError> + Send,
    ) -> PyResult<T> {
        let accepted = losses_named(py, &options.allow)?;
        let calls = Calls {
            options,
            signals: Signals::new(),
            raised: Mutex::new(None),
        };
        let mut work = work;
        let done = py.detach(|| {
            judge::asking(
                &accepted,
                |finding| calls.ask(finding),
                |accepted| work(&calls, accepted),
            )
        });
        let raised = calls.raised.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(raised) = &*raised {
            return Err(raised.clone_ref(py));
        }
        calls.signals.raised()?;
        done.raised(py)
    }

    fn ask(&self, finding: &Finding) -> bool {
        let Some(ask) = &self.options.ask else {
            return false;
        };
        let (loss, found) = (finding.state.name(), finding.to_string());
        let answer = Python::attach(|py| ask.call1(py, (loss, found))?.is_truthy(py));
        answer.unwrap_or_else(|raised| {
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
            false
        })
    }

    fn report(&self, done: u64, total: u64) -> ControlFlow<()> {
        self.signals.listen(|py| match &self.options.progress {
            Some(progress) => progress.call1(py, (done, total)).map(drop),
            None => Ok(()),
        })
    }
}

/// Makes a volume at `path`. Returns what it is.
#[pyfunction]
pub fn create(
    py: Python<'_>,
    path: PathBuf,
    secret: Option<Given<'_>>,
    volume_key: Option<Given<'_>>,
    options: Options,
) -> PyResult<Py<PyDict>> {
    let secret = secret.map(|given| given.secret(py)).transpose()?;
    let volume_key = volume_key.map(|given| given.secret(py)).transpose()?;
    let format = options.named_format().raised(py)?.unwrap_or(Format::Luks2);
    let mut creation = Creation {
        parameters: options.parameters().raised(py)?,
        integrity: options.integrity.clone(),
        label: options.label.clone().unwrap_or_default(),
        subsystem: options.subsystem.clone().unwrap_or_default(),
        uuid: options.uuid.clone(),
        volume_key: volume_key.map(words),
        wipe: options.wipe,
        quick: options.quick,
        ..Creation::new(format)
    };
    creation.check().raised(py)?;
    let new = match secret {
        None => None,
        Some(secret) => Some(NewKey {
            secret: words(secret),
            cost: options.cost(py)?,
            allow_empty: options.allow_empty,
        }),
    };
    let place = py.detach(|| Place::create(&path, options.header.as_deref(), options.size));
    let mut place = place.raised(py)?;
    let created = Calls::during(py, &options, |calls, accepted| {
        creation.accepted = accepted.to_vec();
        operate::create(&mut place, new.as_ref(), &creation, &|done, total| {
            calls.report(done, total)
        })
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

/// Makes a hidden volume of `size` bytes in the one at `path`. Returns the length of its data.
#[pyfunction]
pub fn create_hidden(
    py: Python<'_>,
    path: PathBuf,
    size: u64,
    outer: (Given<'_>, Options),
    hidden: (Given<'_>, Options),
) -> PyResult<u64> {
    let (secret, options) = outer;
    let secret = secret.secret(py)?;
    let mut wanted = options.wanted(py)?;
    let (new, hidden) = hidden;
    let new = NewKey {
        secret: words(new.secret(py)?),
        cost: KeySlotCost::default(),
        allow_empty: false,
    };
    let creation = Creation {
        parameters: hidden.parameters().raised(py)?,
        ..Creation::new(wanted.format.unwrap_or(Format::Veracrypt))
    };
    let place = py.detach(|| Place::open(&path, None, Use::WriteData));
    let place = place.raised(py)?;
    Calls::during(py, &options, |calls, accepted| {
        wanted.accepted = accepted.to_vec();
        let report = |done, total| calls.report(done, total);
        let begun = HiddenCreation::begin(&place, &secret, (&creation, size), &wanted, &report)?;
        Ok(begun.finish(&new)?.data.length)
    })
}

/// Gives the data of the volume at `path` another key or cipher, or with another `change` encrypts or
/// decrypts them where they are.
#[pyfunction]
pub fn reencrypt(
    py: Python<'_>,
    path: PathBuf,
    change: &str,
    secret: Given<'_>,
    kept: Vec<Given<'_>>,
    options: Options,
) -> PyResult<()> {
    let change = match change {
        "encrypt" => Change::Encrypt,
        "decrypt" => Change::Decrypt,
        _ => Change::Anew,
    };
    let secret = secret.secret(py)?;
    let kept = kept.into_iter().map(|given| given.secret(py).map(words));
    let kept = kept.collect::<PyResult<Vec<_>>>()?;
    let cost = options.cost(py)?;
    let mut wanted = options.wanted(py)?;
    let site = Site::new(&path, options.header.as_deref());
    Calls::during(py, &options, |calls, accepted| {
        wanted.accepted = accepted.to_vec();
        let report = |done, total| calls.report(done, total);
        let caller = operate::Answers {
            allow_empty: options.allow_empty,
            cost,
            kept: &kept,
            ..operate::Answers::new(&secret, &report)
        };
        operate::reencrypt(&site, change, &wanted, &caller).map(drop)
    })
}

/// Makes the LUKS volume at `path` one of another version. Returns whether it was one.
#[pyfunction]
pub fn convert(py: Python<'_>, path: PathBuf, options: Options) -> PyResult<bool> {
    let format = options.named_format().raised(py)?.unwrap_or(Format::Luks2);
    let header = options.header.as_deref();
    let place = py.detach(|| Place::open(&path, header, Use::ChangeLayout));
    let place = place.raised(py)?;
    Calls::during(py, &options, |_, _| operate::convert(&place, format))
}

/// Gives the volume at `path` another size. Returns the length of its data.
#[pyfunction]
pub fn resize(
    py: Python<'_>,
    path: PathBuf,
    to: u64,
    secret: Option<Given<'_>>,
    options: Options,
) -> PyResult<u64> {
    let secret = secret.map(|given| given.secret(py)).transpose()?;
    let mut wanted = options.wanted(py)?;
    let header = options.header.as_deref();
    let place = py.detach(|| Place::open(&path, header, Use::ChangeLayout));
    let mut place = place.raised(py)?;
    Calls::during(py, &options, |calls, accepted| {
        wanted.accepted = accepted.to_vec();
        let report = |done, total| calls.report(done, total);
        operate::resize(&mut place, to, secret.as_ref(), &wanted, &report)
    })
}

/// Copies the header of the volume at `path` to the new file `output`. Returns whose it is.
#[pyfunction]
pub fn backup_header(
    py: Python<'_>,
    path: PathBuf,
    output: PathBuf,
    options: Options,
) -> PyResult<String> {
    let wanted = options.wanted(py)?;
    let header = options.header.as_deref();
    py.detach(|| {
        let place = Place::open(&path, header, Use::Read)?;
        operate::save_header(&place, &output, &wanted)
    })
    .raised(py)
}

/// Puts the header in `input` back, or mends the one that is there. Returns what was done.
#[pyfunction]
pub fn mend_header(
    py: Python<'_>,
    path: PathBuf,
    input: Option<PathBuf>,
    secret: Option<Given<'_>>,
    options: Options,
) -> PyResult<String> {
    let secret = secret.map(|given| given.secret(py)).transpose()?;
    let mut wanted = options.wanted(py)?;
    let header = options.header.as_deref();
    let opened = py.detach(|| {
        let saved = input.map(|input| Place::open(&input, None, Use::Read));
        Ok::<_, VolumeError>((
            saved.transpose()?,
            Place::open(&path, header, Use::MendHeader)?,
        ))
    });
    let (saved, place) = opened.raised(py)?;
    let mended = Calls::during(py, &options, |calls, accepted| {
        wanted.accepted = accepted.to_vec();
        let report = |done, total| calls.report(done, total);
        let (secret, uuid) = (secret.as_ref(), options.uuid.as_deref());
        match &saved {
            Some(saved) => operate::restore_header(&place, saved.data(), secret, &wanted, &report),
            None => operate::repair_header(&place, secret, uuid, &wanted, &report),
        }
    })?;
    Ok(mended.said)
}

/// Gives a TrueCrypt or VeraCrypt volume another password.
#[pyfunction]
pub fn change_password(
    py: Python<'_>,
    path: PathBuf,
    secret: Given<'_>,
    new: Given<'_>,
    options: Options,
) -> PyResult<()> {
    let secret = secret.secret(py)?;
    let new = NewKey {
        secret: words(new.secret(py)?),
        cost: KeySlotCost::default(),
        allow_empty: options.allow_empty,
    };
    let wanted = options.wanted(py)?;
    let place = py.detach(|| Place::open(&path, None, Use::ChangeHeader));
    let place = place.raised(py)?;
    Calls::during(py, &options, |calls, _| {
        let report = |done, total| calls.report(done, total);
        let change = PasswordChange::begin(&place, &secret, &wanted, &report)?;
        change.finish(&new, &report).map(drop)
    })
}

/// The bytes of a secret, of whatever kind.
pub fn words(secret: Secret) -> cipher::Key {
    match secret {
        Secret::Passphrase(words) | Secret::KeyFile(words) | Secret::VolumeKey(words) => words,
    }
}
