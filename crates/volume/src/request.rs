//! [`Request`]: what a program in another language says of a volume, by names, and what it asks for.

use crate::error::impossible;
use crate::judge::{self, Finding, State, Use};
use crate::operate::{
    self, Answers, Change, Created, Creation, HiddenCreation, KeyOptions, KeySlotCost, Mended,
    NewKey, Options, PasswordChange, Reencrypted,
};
use crate::{
    Access, Format, KdfKind, Keyfiles, OpenOptions, Parameters, Place, Secret, Site, VolumeError,
};
use cipher::Key;
use std::error::Error;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The value of an option as a language has it, or nothing.
pub trait Value {
    /// What the language fails with.
    type Error: From<VolumeError>;

    /// Yes or no.
    fn flag(&self) -> Result<bool, Self::Error>;

    /// A whole number.
    fn number<T: TryFrom<u64>>(&self) -> Result<Option<T>, Self::Error>;

    /// A text.
    fn text(&self) -> Result<Option<String>, Self::Error>;

    /// A path.
    fn path(&self) -> Result<Option<PathBuf>, Self::Error>;
}

/// What a caller is asked and told during an operation.
pub trait Calls: Sync {
    /// Whether what was found may be lost.
    fn ask(&self, finding: &Finding) -> bool;

    /// Is told how many bytes are done, of how many, from any thread, and says whether to go on.
    fn report(&self, done: u64, total: u64) -> ControlFlow<()>;
}

/// What a caller says of a volume and of a change of it. The default says nothing.
#[derive(Debug, Default)]
pub struct Request {
    /// The format; `None` finds it by its signature.
    pub format: Option<Format>,
    /// Whether the volume is going to be written.
    pub write: bool,
    /// What opens the volume, or is going to.
    pub secret: Option<Secret>,
    /// The secrets of other key slots, which [`reencrypt`](Self::reencrypt) keeps.
    pub kept: Vec<Key>,
    /// The key that encrypts the data of a new volume; `None` makes a random one.
    pub volume_key: Option<Key>,
    /// Files for [`read_keyfiles`](Self::read_keyfiles).
    pub keyfiles: Option<Vec<PathBuf>>,
    header: Option<PathBuf>,
    parameters: Parameters,
    accepted: Vec<State>,
    keys: KeyOptions,
    cost: KeySlotCost,
    allow_empty: bool,
    integrity: Option<String>,
    label: String,
    subsystem: String,
    uuid: Option<String>,
    wipe: bool,
    quick: bool,
}

impl Request {
    /// Sets the option of that name. Returns whether there is one.
    ///
    /// # Errors
    /// Those of the language for a value of another type, and those for texts that name nothing.
    pub fn set<V: Value>(&mut self, name: &str, value: &V) -> Result<bool, V::Error> {
        let said = &mut self.parameters;
        match name {
            "format" => {
                let name = value.text()?;
                self.format = name.map(|name| Format::parse(&name)).transpose()?;
            }
            "header" => self.header = value.path()?,
            "write" => self.write = value.flag()?,
            "allow" => {
                let name = value.text()?;
                self.accepted
                    .extend(name.map(|name| loss(&name)).transpose()?);
            }
            "cipher" => said.cipher = value.text()?,
            "key_size" => said.key_size = value.number()?,
            "hash" => said.hash = value.text()?,
            "offset" => said.offset = value.number()?,
            "skip" => said.skip = value.number()?,
            "size" => said.size = value.number()?,
            "sector_size" => said.sector_size = value.number()?,
            "iv_large_sectors" => said.iv_large_sectors = value.flag()?,
            "key_slot" => said.key_slot = value.number()?,
            "tcrypt_hidden" => said.tcrypt_hidden = value.flag()?,
            "tcrypt_backup" => said.tcrypt_backup = value.flag()?,
            "tcrypt_system" => said.tcrypt_system = value.flag()?,
            "veracrypt_pim" => said.veracrypt_pim = value.number()?,
            "keyfile" => {
                let keyfiles = self.keyfiles.get_or_insert_default();
                keyfiles.extend(value.path()?);
            }
            "key_derivation" => said.key_derivation = value.text()?,
            "experimental" => said.experimental = value.flag()?,
            "new_key_slot" => self.keys.new_slot = value.number()?,
            "last_key" => self.keys.last_too = value.flag()?,
            "empty_passphrase" => self.allow_empty = value.flag()?,
            "pbkdf" => {
                let name = value.text()?;
                self.cost.kind = name.map(|name| derivation(&name)).transpose()?;
            }
            "iter_time" => self.cost.time = value.number()?.map(Duration::from_millis),
            "integrity" => self.integrity = value.text()?,
            "label" => self.label = value.text()?.unwrap_or_default(),
            "subsystem" => self.subsystem = value.text()?.unwrap_or_default(),
            "uuid" => self.uuid = value.text()?,
            "wipe" => self.wipe = value.flag()?,
            "quick" => self.quick = value.flag()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the key files of TrueCrypt and VeraCrypt that are named by now.
    ///
    /// # Errors
    /// Those of [`Keyfiles::read`].
    pub fn read_keyfiles(&mut self) -> Result<(), VolumeError> {
        let read = self.keyfiles.as_deref().map(Keyfiles::read);
        self.parameters.keyfiles = read.transpose()?;
        Ok(())
    }

    /// How the volume is opened.
    pub fn open_options(&self) -> OpenOptions<'_> {
        OpenOptions {
            format: self.format,
            parameters: self.parameters.clone(),
            header: self.header.clone(),
            access: match self.write {
                true => Access::Write,
                false => Access::Read,
            },
            accepted: &self.accepted,
            ..OpenOptions::default()
        }
    }

    /// Makes a volume at `path`, in a new file of `bytes` bytes if there is none.
    ///
    /// # Errors
    /// Those of [`Creation::check`], [`Place::create`] and [`operate::create`].
    pub fn create(
        &self,
        path: &Path,
        bytes: Option<u64>,
        calls: &dyn Calls,
    ) -> Result<Created, VolumeError> {
        let mut creation = Creation {
            parameters: self.parameters.clone(),
            integrity: self.integrity.clone(),
            label: self.label.clone(),
            subsystem: self.subsystem.clone(),
            uuid: self.uuid.clone(),
            volume_key: self.volume_key.as_ref().map(copy),
            wipe: self.wipe,
            quick: self.quick,
            ..Creation::new(self.format.unwrap_or(Format::Luks2))
        };
        creation.check()?;
        let words = self.secret.as_ref();
        let words = words.map(|secret| secret.words(creation.format));
        let new = words.transpose()?.map(|words| self.new_key(copy(words)));
        let mut place = Place::create(path, self.header.as_deref(), bytes)?;
        let report = |done, total| calls.report(done, total);
        self.asking(calls, |options| {
            creation.accepted = options.accepted.clone();
            operate::create(&mut place, new.as_ref(), &creation, &report)
        })
    }

    /// Makes a hidden volume of `bytes` bytes in the one at `path`, with the secret and the parameters
    /// of `hidden`.
    ///
    /// # Errors
    /// [`VolumeError::NoSecret`], and those of [`HiddenCreation`].
    pub fn create_hidden(
        &self,
        path: &Path,
        hidden: &Self,
        bytes: u64,
        calls: &dyn Calls,
    ) -> Result<Created, VolumeError> {
        let format = self.format.unwrap_or(Format::Veracrypt);
        let secret = self.secret(format)?;
        let new = hidden.new_key(copy(hidden.secret(format)?.words(format)?));
        let creation = Creation {
            parameters: hidden.parameters.clone(),
            ..Creation::new(format)
        };
        let place = Place::open(path, None, Use::WriteData)?;
        let report = |done, total| calls.report(done, total);
        self.asking(calls, |options| {
            options.format = Some(format);
            let how = (&creation, bytes);
            HiddenCreation::begin(&place, secret, how, options, &report)?.finish(&new)
        })
    }

    /// Gives the data at `path` another key and cipher, or encrypts or decrypts them where they are.
    ///
    /// # Errors
    /// [`VolumeError::NoSecret`], and those of [`operate::reencrypt`].
    pub fn reencrypt(
        &self,
        path: &Path,
        change: Change,
        calls: &dyn Calls,
    ) -> Result<Reencrypted, VolumeError> {
        let report = |done, total| calls.report(done, total);
        let caller = Answers {
            allow_empty: self.allow_empty,
            cost: self.cost,
            kept: &self.kept,
            ..Answers::new(self.secret(Format::Luks2)?, &report)
        };
        let site = Site::new(path, self.header.as_deref());
        self.asking(calls, |options| {
            operate::reencrypt(&site, change, options, &caller)
        })
    }

    /// Makes the LUKS volume at `path` one of `format`. Returns whether it was another one.
    ///
    /// # Errors
    /// Those of [`Place::open`] and [`operate::convert`].
    pub fn convert(&self, path: &Path, format: Format) -> Result<bool, VolumeError> {
        operate::convert(&self.place(path, Use::ChangeLayout)?, format)
    }

    /// Gives the volume at `path`, with its header, the length `bytes`. Returns that of its data.
    ///
    /// # Errors
    /// Those of [`Place::open`] and [`operate::resize`].
    pub fn resize(&self, path: &Path, bytes: u64, calls: &dyn Calls) -> Result<u64, VolumeError> {
        let mut place = self.place(path, Use::ChangeLayout)?;
        let report = |done, total| calls.report(done, total);
        self.asking(calls, |options| {
            operate::resize(&mut place, bytes, self.secret.as_ref(), options, &report)
        })
    }

    /// Copies the header of the volume at `path` to the new file `output`. Returns whose it is.
    ///
    /// # Errors
    /// Those of [`Place::open`] and [`operate::save_header`].
    pub fn backup_header(&self, path: &Path, output: &Path) -> Result<String, VolumeError> {
        operate::save_header(&self.place(path, Use::Read)?, output, &self.options())
    }

    /// Puts the header in the file `input` back to the volume at `path`.
    ///
    /// # Errors
    /// Those of [`Place::open`] and [`operate::restore_header`].
    pub fn restore_header(
        &self,
        path: &Path,
        input: &Path,
        calls: &dyn Calls,
    ) -> Result<Mended, VolumeError> {
        let saved = Place::open(input, None, Use::Read)?;
        let place = self.place(path, Use::MendHeader)?;
        let report = |done, total| calls.report(done, total);
        self.asking(calls, |options| {
            operate::restore_header(&place, saved.data(), self.secret.as_ref(), options, &report)
        })
    }

    /// Mends the header of the volume at `path`.
    ///
    /// # Errors
    /// Those of [`Place::open`] and [`operate::repair_header`].
    pub fn repair_header(&self, path: &Path, calls: &dyn Calls) -> Result<Mended, VolumeError> {
        let place = self.place(path, Use::MendHeader)?;
        let report = |done, total| calls.report(done, total);
        self.asking(calls, |options| {
            let (secret, uuid) = (self.secret.as_ref(), self.uuid.as_deref());
            operate::repair_header(&place, secret, uuid, options, &report)
        })
    }

    /// Adds a key slot to the LUKS volume at `path`. Returns its number.
    ///
    /// # Errors
    /// [`VolumeError::NoSecret`], and those of [`Place::open`] and [`operate::add_key`].
    pub fn add_key(&self, path: &Path, new: Key) -> Result<u32, VolumeError> {
        let secret = self.secret(Format::Luks2)?;
        let place = self.place(path, Use::ChangeHeader)?;
        operate::add_key(&place, secret, &self.new_key(new), &self.key_options())
    }

    /// Gives the key slot that the secret opens another one. Returns its number.
    ///
    /// # Errors
    /// [`VolumeError::NoSecret`], and those of [`Place::open`] and [`operate::change_key`].
    pub fn change_key(&self, path: &Path, new: Key) -> Result<u32, VolumeError> {
        let secret = self.secret(Format::Luks2)?;
        let place = self.place(path, Use::ChangeHeader)?;
        operate::change_key(&place, secret, &self.new_key(new), &self.key_options())
    }

    /// Removes the key slot that is named, or the one that the secret opens. Returns its number.
    ///
    /// # Errors
    /// [`VolumeError::NoSecret`], and those of [`Place::open`] and [`operate::remove_key`].
    pub fn remove_key(&self, path: &Path) -> Result<u32, VolumeError> {
        let secret = self.secret(Format::Luks2)?;
        let place = self.place(path, Use::ChangeHeader)?;
        operate::remove_key(&place, secret, &self.key_options())
    }

    /// Gives the TrueCrypt or VeraCrypt volume at `path` another password.
    ///
    /// # Errors
    /// [`VolumeError::NoSecret`], and those of [`Place::open`] and [`PasswordChange`].
    pub fn change_password(
        &self,
        path: &Path,
        new: Key,
        calls: &dyn Calls,
    ) -> Result<(), VolumeError> {
        let secret = self.secret(Format::Veracrypt)?;
        let place = self.place(path, Use::ChangeHeader)?;
        let (new, report) = (self.new_key(new), |done, total| calls.report(done, total));
        let options = self.options();
        let change = PasswordChange::begin(&place, secret, &options, &report)?;
        change.finish(&new, &report).map(drop)
    }

    fn place(&self, path: &Path, use_: Use) -> Result<Place, VolumeError> {
        Place::open(path, self.header.as_deref(), use_)
    }

    fn secret(&self, usual: Format) -> Result<&Secret, VolumeError> {
        let format = self.format.unwrap_or(usual);
        let secret = self.secret.as_ref();
        secret.ok_or(VolumeError::NoSecret { format })
    }

    fn new_key(&self, secret: Key) -> NewKey {
        NewKey {
            secret,
            cost: self.cost,
            allow_empty: self.allow_empty,
        }
    }

    fn key_options(&self) -> KeyOptions {
        KeyOptions {
            slot: self.parameters.key_slot,
            ..self.keys
        }
    }

    /// What a change of the volume needs besides a secret.
    fn options(&self) -> Options {
        Options {
            format: self.format,
            parameters: self.parameters.clone(),
            accepted: self.accepted.clone(),
            ..Options::default()
        }
    }

    /// Does `work` with what the caller accepts.
    fn asking<T>(
        &self,
        calls: &dyn Calls,
        mut work: impl FnMut(&mut Options) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let mut options = self.options();
        judge::asking(
            &self.accepted,
            |finding| calls.ask(finding),
            |accepted| {
                options.accepted = accepted.to_vec();
                work(&mut options)
            },
        )
    }
}

fn copy(key: &Key) -> Key {
    Key::from_slice(key.as_bytes())
}

/// The loss of that name, which a caller may allow.
fn loss(name: &str) -> Result<State, VolumeError> {
    State::named(name).ok_or_else(|| {
        impossible(
            format!("there is no loss `{name}` to allow"),
            format!("Use one of: {}.", State::ALL.map(State::name).join(", ")),
        )
    })
}

/// The key derivation of that name.
fn derivation(name: &str) -> Result<KdfKind, VolumeError> {
    KdfKind::named(name).ok_or_else(|| {
        impossible(
            format!("unknown key derivation `{name}`"),
            "Use one of: pbkdf2, argon2i, argon2id.",
        )
    })
}

/// What happened, with the causes that the text does not name itself.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    text
}
