//! Botan 2 and 3, through the C interface of both.

use super::{Keyed, Opened, Wanted, function, load, text};
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;

const SONAMES: &[&str] = &["libbotan-3.so", "libbotan-3.so.11", "libbotan-2.so.19"];

/// `BOTAN_CIPHER_UPDATE_FLAG_FINAL`.
const FINAL: u32 = 1;

type Cipher = *mut c_void;

/// The functions in use, typed as `botan/ffi.h` declares them.
#[derive(Clone, Copy)]
struct Functions {
    init: unsafe extern "C" fn(*mut Cipher, *const c_char, u32) -> c_int,
    destroy: unsafe extern "C" fn(Cipher) -> c_int,
    key: unsafe extern "C" fn(Cipher, *const u8, usize) -> c_int,
    start: unsafe extern "C" fn(Cipher, *const u8, usize) -> c_int,
    update: unsafe extern "C" fn(
        Cipher,
        u32,
        *mut u8,
        usize,
        *mut usize,
        *const u8,
        usize,
        *mut usize,
    ) -> c_int,
}

pub(super) fn open(wanted: Wanted<'_>) -> Opened {
    let object = load(SONAMES)?;
    // SAFETY: the types are those of botan/ffi.h.
    let (functions, version) = unsafe {
        let functions = Functions {
            init: function(object, "botan_cipher_init")?,
            destroy: function(object, "botan_cipher_destroy")?,
            key: function(object, "botan_cipher_set_key")?,
            start: function(object, "botan_cipher_start")?,
            update: function(object, "botan_cipher_update")?,
        };
        let version: unsafe extern "C" fn() -> *const c_char =
            function(object, "botan_version_string")?;
        let version = text(version());
        // "Botan 2.19.3 (release, dated …)"
        let short = version
            .split_whitespace()
            .nth(1)
            .unwrap_or(&version)
            .to_owned();
        (functions, short)
    };
    Some((
        version,
        Botan::new(functions, wanted).map(|keyed| Box::new(keyed) as _),
    ))
}

/// Botan's name of a cipher, and its block size.
fn name(wanted: Wanted<'_>) -> Option<(String, usize)> {
    let bits = wanted.cipher_bits();
    let (algorithm, block) = match wanted.algorithm {
        "aes" => (format!("AES-{bits}"), 16),
        "camellia" => (format!("Camellia-{bits}"), 16),
        "aria" => (format!("ARIA-{bits}"), 16),
        "serpent" => ("Serpent".into(), 16),
        "twofish" => ("Twofish".into(), 16),
        "sm4" => ("SM4".into(), 16),
        "blowfish" => ("Blowfish".into(), 8),
        "cast5" => ("CAST-128".into(), 8),
        "des" => ("DES".into(), 8),
        "des3_ede" => ("TripleDES".into(), 8),
        _ => return None,
    };
    match wanted.mode {
        "xts" if block == 16 => Some((format!("{algorithm}/XTS"), block)),
        "cbc" => Some((format!("{algorithm}/CBC/NoPadding"), block)),
        _ => None,
    }
}

struct Botan {
    functions: Functions,
    encrypt: Cipher,
    decrypt: Cipher,
    iv_bytes: usize,
    /// Botan's C interface does not work in place.
    out: Vec<u8>,
}

// SAFETY: a cipher object may move between threads; it is only used through `&mut`.
unsafe impl Send for Botan {}

impl Botan {
    fn new(functions: Functions, wanted: Wanted<'_>) -> Option<Self> {
        let (name, iv_bytes) = name(wanted)?;
        let name = CString::new(name).ok()?;
        let mut keyed = Self {
            functions,
            encrypt: null_mut(),
            decrypt: null_mut(),
            iv_bytes,
            out: Vec::new(),
        };
        // SAFETY: each pointer receives an object that `Drop` destroys.
        unsafe {
            for (cipher, direction) in [(&mut keyed.encrypt, 0), (&mut keyed.decrypt, 1)] {
                if (functions.init)(cipher, name.as_ptr(), direction) != 0
                    || (functions.key)(*cipher, wanted.key.as_ptr(), wanted.key.len()) != 0
                {
                    return None;
                }
            }
        }
        Some(keyed)
    }

    fn crypt(&mut self, cipher: Cipher, iv: &[u8; 16], sector: &mut [u8]) {
        self.out.resize(sector.len(), 0);
        let (mut written, mut consumed) = (0, 0);
        // SAFETY: input and output are live slices of the lengths given.
        let refused = unsafe {
            (self.functions.start)(cipher, iv.as_ptr(), self.iv_bytes)
                | (self.functions.update)(
                    cipher,
                    FINAL,
                    self.out.as_mut_ptr(),
                    self.out.len(),
                    &mut written,
                    sector.as_ptr(),
                    sector.len(),
                    &mut consumed,
                )
        };
        assert!(
            refused == 0 && written == sector.len(),
            "Botan refused a sector"
        );
        sector.copy_from_slice(&self.out);
    }
}

impl Keyed for Botan {
    fn encrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        self.crypt(self.encrypt, iv, sector);
    }

    fn decrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        self.crypt(self.decrypt, iv, sector);
    }
}

impl Drop for Botan {
    fn drop(&mut self) {
        // SAFETY: both are null or were made by this value; null is refused with an error.
        unsafe {
            (self.functions.destroy)(self.encrypt);
            (self.functions.destroy)(self.decrypt);
        }
    }
}
