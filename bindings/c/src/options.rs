//! How to open a volume.

use crate::error::{Fault, cryptmark_code, cryptmark_error, guarded};
use crate::text::{path_of, str_of};
use ::volume::judge::State;
use ::volume::operate::KeyOptions;
use ::volume::tcrypt::Keyfiles;
use ::volume::{Format, KdfKind, Parameters, Secret};
use cipher::Key;
use std::ffi::{c_char, c_int};
use std::path::PathBuf;
use std::slice;
use std::str::FromStr;
use std::time::Duration;

/// The most bytes of a secret, as of a key file.
const MOST_SECRET: usize = 8 << 20;

/// How to open a volume. Free it with cryptmark_options_free.
#[derive(Default)]
pub struct cryptmark_options {
    pub(crate) format: Option<Format>,
    pub(crate) header: Option<PathBuf>,
    pub(crate) write: bool,
    pub(crate) accepted: Vec<State>,
    pub(crate) parameters: Parameters,
    keyfiles: Vec<PathBuf>,
    pub(crate) secret: Option<Secret>,
    pub(crate) keys: KeyOptions,
    pub(crate) pbkdf: Option<KdfKind>,
    pub(crate) iter_time: Option<Duration>,
    pub(crate) allow_empty: bool,
    pub(crate) kept: Vec<Key>,
    pub(crate) integrity: Option<String>,
    pub(crate) label: String,
    pub(crate) subsystem: String,
    pub(crate) uuid: Option<String>,
    pub(crate) wipe: bool,
    pub(crate) quick: bool,
}

/// The bytes of a passphrase, without a newline.
pub const CRYPTMARK_PASSPHRASE: c_int = 0;
/// The bytes of a key file.
pub const CRYPTMARK_KEY_FILE: c_int = 1;
/// The key that encrypts the data.
pub const CRYPTMARK_VOLUME_KEY: c_int = 2;

/// New options: a volume with a signature, for reading.
#[unsafe(no_mangle)]
pub extern "C" fn cryptmark_options_new() -> *mut cryptmark_options {
    Box::into_raw(Box::default())
}

/// Frees options, and wipes their secret. NULL is allowed.
///
/// `options` are from cryptmark_options_new, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_options_free(options: *mut cryptmark_options) {
    if !options.is_null() {
        // SAFETY: it came from `Box::into_raw`, and is given back once, as the caller promises.
        drop(unsafe { Box::from_raw(options) });
    }
}

/// Sets an option by its name; cryptmark(3) lists them. Yes and no are "1" and "0".
///
/// `options` are from cryptmark_options_new. `name` and `value` are texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_options_set(
    options: *mut cryptmark_options,
    name: *const c_char,
    value: *const c_char,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let set = || {
        // SAFETY: null or options, as the caller promises, which nothing else uses now.
        let options = unsafe { options.as_mut() }.ok_or_else(|| Fault::null("options"))?;
        // SAFETY: null or a text, as the caller promises.
        match unsafe { str_of(name, "name") }? {
            // SAFETY: null or a text, as the caller promises.
            "header" => options.header = Some(unsafe { path_of(value, "value") }?.to_owned()),
            "keyfile" => {
                // SAFETY: null or a text, as the caller promises.
                options
                    .keyfiles
                    .push(unsafe { path_of(value, "value") }?.to_owned());
                options.parameters.keyfiles = Some(Keyfiles::read(&options.keyfiles)?);
            }
            // SAFETY: null or a text, as the caller promises.
            name => options.set(name, unsafe { str_of(value, "value") }?)?,
        }
        Ok(())
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, set) }
}

/// Sets the secret, of the kind CRYPTMARK_PASSPHRASE, CRYPTMARK_KEY_FILE or CRYPTMARK_VOLUME_KEY.
/// Its bytes are copied to memory that is locked, and may be wiped afterwards.
///
/// `options` are from cryptmark_options_new. `secret` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_options_secret(
    options: *mut cryptmark_options,
    kind: c_int,
    secret: *const u8,
    length: usize,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let set = || {
        // SAFETY: null or options, as the caller promises, which nothing else uses now.
        let options = unsafe { options.as_mut() }.ok_or_else(|| Fault::null("options"))?;
        // SAFETY: as the caller promises.
        let key = unsafe { key_of(secret, length) }?;
        options.secret = Some(match kind {
            CRYPTMARK_PASSPHRASE => Secret::Passphrase(key),
            CRYPTMARK_KEY_FILE => Secret::KeyFile(key),
            CRYPTMARK_VOLUME_KEY => Secret::VolumeKey(key),
            _ => {
                let message = format!("there is no kind {kind} of secrets");
                return Err(Fault::input(
                    message,
                    "Give CRYPTMARK_PASSPHRASE or another kind.",
                ));
            }
        });
        Ok(())
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, set) }
}

/// Adds a secret of another key slot that cryptmark_reencrypt keeps. Its bytes are copied to memory
/// that is locked, and may be wiped afterwards.
///
/// `options` are from cryptmark_options_new. `secret` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cryptmark_options_keep(
    options: *mut cryptmark_options,
    secret: *const u8,
    length: usize,
    error: *mut *mut cryptmark_error,
) -> cryptmark_code {
    let keep = || {
        // SAFETY: null or options, as the caller promises, which nothing else uses now.
        let options = unsafe { options.as_mut() }.ok_or_else(|| Fault::null("options"))?;
        // SAFETY: as the caller promises.
        options.kept.push(unsafe { key_of(secret, length) }?);
        Ok(())
    };
    // SAFETY: null or writable, as the caller promises.
    unsafe { guarded(error, keep) }
}

/// A copy of a secret in locked memory.
///
/// # Safety
/// `secret` is null or has `length` bytes.
pub(crate) unsafe fn key_of(secret: *const u8, length: usize) -> Result<Key, Fault> {
    if length > MOST_SECRET {
        let message = format!("a secret of {length} bytes is too long");
        return Err(Fault::input(message, "Give 8 MiB at most."));
    }
    match (secret.is_null(), length) {
        (_, 0) => Ok(Key::from_slice(&[])),
        (true, _) => Err(Fault::null("secret")),
        // SAFETY: not null, and so many bytes, as the caller promises.
        (false, _) => Ok(Key::from_slice(unsafe {
            slice::from_raw_parts(secret, length)
        })),
    }
}

impl cryptmark_options {
    fn set(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        let said = &mut self.parameters;
        match name {
            "format" => self.format = Some(Format::parse(value)?),
            "write" => self.write = flag(name, value)?,
            "allow" => self.accepted.push(loss(value)?),
            "cipher" => said.cipher = Some(value.to_owned()),
            "key_size" => said.key_size = Some(number(name, value)?),
            "hash" => said.hash = Some(value.to_owned()),
            "offset" => said.offset = Some(number(name, value)?),
            "skip" => said.skip = Some(number(name, value)?),
            "size" => said.size = Some(number(name, value)?),
            "sector_size" => said.sector_size = Some(number(name, value)?),
            "iv_large_sectors" => said.iv_large_sectors = flag(name, value)?,
            "key_slot" => said.key_slot = Some(number(name, value)?),
            "tcrypt_hidden" => said.tcrypt_hidden = flag(name, value)?,
            "tcrypt_backup" => said.tcrypt_backup = flag(name, value)?,
            "tcrypt_system" => said.tcrypt_system = flag(name, value)?,
            "veracrypt_pim" => said.veracrypt_pim = Some(number(name, value)?),
            "key_derivation" => said.key_derivation = Some(value.to_owned()),
            "experimental" => said.experimental = flag(name, value)?,
            "new_key_slot" => self.keys.new_slot = Some(number(name, value)?),
            "last_key" => self.keys.last_too = flag(name, value)?,
            "empty_passphrase" => self.allow_empty = flag(name, value)?,
            "pbkdf" => self.pbkdf = Some(kdf(value)?),
            "integrity" => self.integrity = Some(value.to_owned()),
            "label" => self.label = value.to_owned(),
            "subsystem" => self.subsystem = value.to_owned(),
            "uuid" => self.uuid = Some(value.to_owned()),
            "wipe" => self.wipe = flag(name, value)?,
            "quick" => self.quick = flag(name, value)?,
            "iter_time" => self.iter_time = Some(Duration::from_millis(number(name, value)?)),
            _ => {
                let message = format!("there is no option `{name}`");
                return Err(Fault::input(message, "cryptmark(3) lists the options."));
            }
        }
        Ok(())
    }
}

/// The loss of that name, which a caller may allow.
fn loss(name: &str) -> Result<State, Fault> {
    State::named(name).ok_or_else(|| {
        let names = State::ALL.map(State::name).join(", ");
        Fault::input(
            format!("there is no loss `{name}` to allow"),
            format!("Use one of: {names}."),
        )
    })
}

/// The key derivation of that name.
fn kdf(name: &str) -> Result<KdfKind, Fault> {
    KdfKind::named(name).ok_or_else(|| {
        Fault::input(
            format!("unknown key derivation `{name}`"),
            "Use one of: pbkdf2, argon2i, argon2id.",
        )
    })
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T, Fault> {
    value.parse().map_err(|_| {
        let message = format!("`{name}` is `{value}`, which is no number that it takes");
        Fault::input(message, "Give a whole number in digits.")
    })
}

fn flag(name: &str, value: &str) -> Result<bool, Fault> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => {
            let message = format!("`{name}` is `{value}`");
            Err(Fault::input(message, "Give 1 for yes, or 0 for no."))
        }
    }
}
