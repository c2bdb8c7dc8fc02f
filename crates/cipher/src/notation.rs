//! dm-crypt's notation and VeraCrypt's names, read once at the door.

use std::str::FromStr;

use crate::spec::{LONGEST_CASCADE, MOST_KEYS};
use crate::{Algorithm, CipherError, CipherSpec, EssivHash, IvGenerator, Mode, StreamCipher};

impl FromStr for CipherSpec {
    type Err = CipherError;

    fn from_str(text: &str) -> Result<Self, CipherError> {
        let notation = || CipherError::Notation {
            text: text.to_owned(),
        };
        match text.strip_prefix("capi:") {
            Some(rest) => capi(rest, notation),
            None => plain(text, notation),
        }
    }
}

/// `cipher[:keys]-mode-iv`, the kernel's shorthands and VeraCrypt's cascades.
fn plain(text: &str, notation: impl Fn() -> CipherError) -> Result<CipherSpec, CipherError> {
    if text.split('-').next().is_some_and(str::is_empty) {
        return Err(notation());
    }
    if let Some(known) = cascade(text) {
        return known;
    }
    let (cipher, rest) = match text.split_once('-') {
        Some((cipher, rest)) => (cipher, Some(rest)),
        None => (text, None),
    };
    let (name, key_count) = match cipher.split_once(':') {
        Some((name, count)) => (name, parsed_count(count)?),
        None => (cipher, 1),
    };
    let (mode, iv) = match rest {
        // dm-crypt's first format had no modes.
        None if named_cipher(name).is_ok() => ("cbc", Some("plain")),
        Some("plain") => ("cbc", Some("plain")),
        None | Some("") => return Err(notation()),
        Some(rest) => match rest.split_once('-') {
            Some((mode, iv)) => (mode, Some(iv)),
            None => (rest, None),
        },
    };
    if mode.is_empty() {
        return Err(notation());
    }
    let (cipher, mode) = cipher_and_mode(name, mode)?;
    let iv = iv.map(named_iv).transpose()?;
    CipherSpec::new(&[cipher], key_count, mode, iv)
}

/// A cipher and a mode by name; the mode may have a stream cipher, which stands
/// before the cipher.
fn cipher_and_mode(cipher: &str, mode: &str) -> Result<(Algorithm, Mode), CipherError> {
    let (stream, cipher) = match cipher.split_once(',') {
        Some((stream, cipher)) => (Some(named_stream(stream)?), named_cipher(cipher)?),
        None => (None, named_cipher(cipher)?),
    };
    match (named_mode(mode)?, stream) {
        (Mode::Adiantum(_), Some(stream)) => Ok((cipher, Mode::Adiantum(stream))),
        (mode @ Mode::Adiantum(_), None) => Err(CipherError::MissingStream { mode, cipher }),
        (mode, Some(stream)) => Err(CipherError::UnfitMode {
            ciphers: format!("{stream},{cipher}"),
            mode,
            possible: vec![Mode::Adiantum(stream)],
        }),
        (mode, None) => Ok((cipher, mode)),
    }
}

/// Reads VeraCrypt's and TrueCrypt's names of several ciphers: `A(B(C))`, or `A-B-C` of known
/// names. A mode and an IV generator may follow. `None` if `text` does not begin so.
fn cascade(text: &str) -> Option<Result<CipherSpec, CipherError>> {
    if let Some((names, rest)) = nested(text) {
        let ciphers: Result<Vec<_>, _> = names.split('(').map(capitalised_cipher).collect();
        return Some(ciphers.and_then(|ciphers| layered(&ciphers, rest)));
    }
    let mut ciphers = Vec::new();
    let mut rest = Some(text);
    while let Some(tail) = rest {
        let (name, after) = match tail.split_once('-') {
            Some((name, after)) => (name, Some(after)),
            None => (tail, None),
        };
        match capitalised_cipher(name) {
            Ok(cipher) => ciphers.push(cipher),
            Err(_) => break,
        }
        rest = after;
    }
    (ciphers.len() > 1).then(|| layered(&ciphers, rest))
}

/// `A(B(C` of `A(B(C))`, and what follows after `-`.
fn nested(text: &str) -> Option<(&str, Option<&str>)> {
    let (inner, rest) = text.rsplit_once(')')?;
    let names = inner.trim_end_matches(')');
    let closed = 1 + inner.len() - names.len();
    let opened = names.matches('(').count();
    let rest = match rest {
        "" => None,
        _ => Some(rest.strip_prefix('-')?),
    };
    (opened == closed).then_some((names, rest))
}

fn layered(ciphers: &[Algorithm], rest: Option<&str>) -> Result<CipherSpec, CipherError> {
    if ciphers.len() > LONGEST_CASCADE {
        return Err(CipherError::LongCascade {
            length: ciphers.len(),
            longest: LONGEST_CASCADE,
        });
    }
    let (mode, iv) = match rest {
        None => return CipherSpec::new(ciphers, 1, Mode::Xts, Some(IvGenerator::Plain64)),
        Some(rest) => match rest.split_once('-') {
            Some((mode, iv)) => (mode, Some(iv)),
            None => (rest, None),
        },
    };
    let (mode, iv) = (named_mode(mode)?, iv.map(named_iv).transpose()?);
    CipherSpec::new(ciphers, 1, mode, iv)
}

/// The suffixes of the kernel's drivers: a driver's name is that of the algorithm with one of
/// these.
const DRIVERS: [&str; 22] = [
    "-generic",
    "-aesni",
    "-aesni-avx",
    "-vaes-avx2",
    "-vaes-avx512",
    "-vaes-avx10_256",
    "-vaes-avx10_512",
    "-lib",
    "-fixed-time",
    "-asm",
    "-i586",
    "-x86_64",
    "-x86_64-3way",
    "-3way",
    "-sse2",
    "-avx",
    "-avx2",
    "-aesni-avx2",
    "-avx512",
    "-ce",
    "-neon",
    "-neonbs",
];

/// The name of what a driver of the kernel computes, if it is one.
fn driven(name: &str) -> Option<&str> {
    let mut stripped = DRIVERS
        .iter()
        .filter_map(|driver| name.strip_suffix(driver));
    // The longest driver leaves the shortest name.
    let first = stripped.next()?;
    Some(stripped.fold(first, |a, b| if b.len() < a.len() { b } else { a }))
}

/// `mode(cipher)-iv`, `essiv(mode(cipher),hash)-plain64` and `mode-cipher-driver-iv`,
/// without `capi:`.
///
/// The kernel computes the same with any driver, and XTS and LRW are made of ECB.
fn capi(text: &str, notation: impl Fn() -> CipherError) -> Result<CipherSpec, CipherError> {
    let Some((mode, rest)) = text.split_once('(') else {
        let (driver, iv) = text.rsplit_once('-').ok_or_else(&notation)?;
        let (mode, cipher) = driven(driver)
            .and_then(|name| name.split_once('-'))
            .ok_or_else(&notation)?;
        let (cipher, mode) = cipher_and_mode(cipher, mode)?;
        return CipherSpec::new(&[cipher], 1, mode, Some(named_iv(iv)?));
    };
    let (inner, rest) = rest.rsplit_once(')').ok_or_else(&notation)?;
    let iv = match rest {
        "" => None,
        _ => Some(rest.strip_prefix('-').ok_or_else(&notation)?),
    };
    if inner.is_empty() || mode.is_empty() {
        return Err(notation());
    }
    if mode == "essiv" {
        // The template encrypts what it gets; dm-crypt's own `essiv` hands it
        // `plain64`.
        let (inner, hash) = inner.rsplit_once(',').ok_or_else(&notation)?;
        if iv != Some("plain64") {
            return Err(notation());
        }
        let (mode, cipher) = inner
            .strip_suffix(')')
            .and_then(|inner| inner.split_once('('))
            .ok_or_else(&notation)?;
        let iv = IvGenerator::Essiv(named_hash(hash)?);
        let (cipher, mode) = cipher_and_mode(cipher, mode)?;
        return CipherSpec::new(&[cipher], 1, mode, Some(iv));
    }
    let inner = inner
        .strip_prefix("ecb(")
        .and_then(|inner| inner.strip_suffix(')'))
        .filter(|_| mode == "xts" || mode == "lrw")
        .unwrap_or(inner);
    let cipher = driven(inner).unwrap_or(inner);
    let (cipher, mode) = cipher_and_mode(cipher, mode)?;
    let iv = iv.map(named_iv).transpose()?;
    // This form has no place for a number of keys: to dm-crypt, loop-AES has 64.
    let key_count = if iv == Some(IvGenerator::Lmk) { 64 } else { 1 };
    CipherSpec::new(&[cipher], key_count, mode, iv)
}

fn named_cipher(name: &str) -> Result<Algorithm, CipherError> {
    Algorithm::ALL
        .into_iter()
        .chain([Algorithm::Null])
        .find(|cipher| cipher.name() == name)
        .ok_or_else(|| CipherError::UnknownCipher {
            name: name.to_owned(),
        })
}

/// A cipher of a cascade. A single cipher has the kernel's name only: to
/// VeraCrypt `AES` is in XTS, and to dm-crypt `aes` is in CBC.
fn capitalised_cipher(name: &str) -> Result<Algorithm, CipherError> {
    Algorithm::ALL
        .into_iter()
        .find(|cipher| cipher.name().eq_ignore_ascii_case(name))
        .ok_or_else(|| CipherError::UnknownCipher {
            name: name.to_owned(),
        })
}

fn named_stream(name: &str) -> Result<StreamCipher, CipherError> {
    StreamCipher::ALL
        .into_iter()
        .find(|stream| stream.name() == name)
        .ok_or_else(|| CipherError::UnknownStream {
            name: name.to_owned(),
        })
}

fn named_mode(name: &str) -> Result<Mode, CipherError> {
    Mode::ALL
        .into_iter()
        .find(|mode| mode.name() == name)
        .ok_or_else(|| CipherError::UnknownMode {
            name: name.to_owned(),
        })
}

fn named_iv(name: &str) -> Result<IvGenerator, CipherError> {
    if let Some(hash) = name.strip_prefix("essiv:") {
        return Ok(IvGenerator::Essiv(named_hash(hash)?));
    }
    if name == "essiv" {
        return Err(CipherError::UnknownHash {
            name: String::new(),
        });
    }
    // dm-crypt hands what follows a colon to the generators that take a
    // parameter; the others do not look at it.
    let generator = name.split(':').next().unwrap_or(name);
    IvGenerator::ALL
        .into_iter()
        .find(|iv| iv.name() == generator)
        .ok_or_else(|| CipherError::UnknownIv {
            name: name.to_owned(),
        })
}

fn named_hash(name: &str) -> Result<EssivHash, CipherError> {
    EssivHash::named(name).ok_or_else(|| CipherError::UnknownHash {
        name: name.to_owned(),
    })
}

/// A power of two in plain decimal digits.
fn parsed_count(text: &str) -> Result<usize, CipherError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let count = text
        .parse()
        .ok()
        .filter(|_| digits && !text.starts_with('0'));
    count
        .filter(|count: &usize| count.is_power_of_two() && *count <= MOST_KEYS)
        .ok_or_else(|| CipherError::KeyCount {
            text: text.to_owned(),
        })
}
