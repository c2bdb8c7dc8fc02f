//! Nettle 3: a function a cipher; modes take them as callbacks.

use super::{Absent, Keyed, Opened, Wanted, function, load};
use libloading::Library as Object;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

const SONAMES: &[&str] = &["libnettle.so.9", "libnettle.so.8"];

/// More than any context of nettle takes (`struct camellia256_ctx`, tables of
/// Blowfish and Twofish included: below 4.5 kB).
const CONTEXT: usize = 16 << 10;

type SetKey = unsafe extern "C" fn(*mut c_void, *const u8);
type SetKeyOfLength = unsafe extern "C" fn(*mut c_void, usize, *const u8);
type Crypt = unsafe extern "C" fn(*const c_void, usize, *mut u8, *const u8);
type Cbc =
    unsafe extern "C" fn(*const c_void, *const c_void, usize, *mut u8, usize, *mut u8, *const u8);
/// Encryption takes one function, for data and tweak alike.
type XtsEncrypt = unsafe extern "C" fn(
    *const c_void,
    *const c_void,
    *const c_void,
    *const u8,
    usize,
    *mut u8,
    *const u8,
);
/// Decryption takes the function for data and the one for the tweak.
type XtsDecrypt = unsafe extern "C" fn(
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const u8,
    usize,
    *mut u8,
    *const u8,
);

/// Memory for a context, aligned as `malloc` would.
#[repr(C, align(64))]
struct Context([u8; CONTEXT]);

impl Context {
    fn new() -> Box<Self> {
        Box::new(Self([0; CONTEXT]))
    }

    fn as_ptr(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }

    fn as_mut_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

/// The library once it is loaded.
struct Loaded {
    object: &'static Object,
    version: String,
}

static LOADED: OnceLock<Option<Loaded>> = OnceLock::new();

pub(super) fn open(wanted: Wanted<'_>) -> Opened {
    let loaded = LOADED.get_or_init(Loaded::new).as_ref();
    let loaded = loaded.ok_or(Absent::NotInstalled {
        library: "nettle",
        package: "Debian: libnettle8",
    })?;
    Ok((
        loaded.version.clone(),
        Nettle::new(loaded.object, wanted).map(|keyed| Box::new(keyed) as _),
    ))
}

impl Loaded {
    fn new() -> Option<Self> {
        let object = load(SONAMES)?;
        // SAFETY: both take nothing and return an int (nettle/version.h).
        let (major, minor): (extern "C" fn() -> c_int, extern "C" fn() -> c_int) = unsafe {
            (
                function(object, "nettle_version_major")?,
                function(object, "nettle_version_minor")?,
            )
        };
        let version = format!("{}.{}", major(), minor());
        Some(Self { object, version })
    }
}

/// How a cipher is keyed.
enum Keying {
    /// One function for each key length, one for each direction.
    Directions(String, String),
    /// One function for each key length.
    Fixed(String),
    /// A function that takes the length.
    Length(String),
}

/// (keying, prefix of the functions that encrypt and decrypt)
fn names(wanted: Wanted<'_>) -> Option<(Keying, String)> {
    let bits = wanted.cipher_bits()?;
    let of_length = |name| {
        let name = format!("nettle_{name}");
        (Keying::Length(format!("{name}_set_key")), name)
    };
    let fixed = |name| {
        let name = format!("nettle_{name}");
        (Keying::Fixed(format!("{name}_set_key")), name)
    };
    Some(match wanted.algorithm {
        "aes" | "camellia" => {
            let name = format!("nettle_{}{bits}", wanted.algorithm);
            let keying = Keying::Directions(
                format!("{name}_set_encrypt_key"),
                format!("{name}_set_decrypt_key"),
            );
            (keying, name)
        }
        "serpent" | "twofish" => of_length(wanted.algorithm),
        "blowfish" => of_length("blowfish"),
        "cast5" => (
            Keying::Length("nettle_cast5_set_key".into()),
            "nettle_cast128".into(),
        ),
        "des" => fixed("des"),
        "des3_ede" if bits == 192 => fixed("des3"),
        _ => return None,
    })
}

/// The function of one direction; Camellia has one for both, under two key schedules.
fn direction(object: &'static Object, prefix: &str, name: &str) -> Option<Crypt> {
    // SAFETY: all of nettle's block functions have the type `nettle_cipher_func`.
    unsafe {
        function(object, &format!("{prefix}_{name}"))
            .or_else(|| function(object, &format!("{prefix}_crypt")))
    }
}

struct Nettle {
    mode: Mode,
    block: usize,
    encrypt: Crypt,
    decrypt: Crypt,
    encrypt_key: Box<Context>,
    decrypt_key: Box<Context>,
    tweak_key: Box<Context>,
}

enum Mode {
    Ecb,
    Cbc {
        encrypt: Cbc,
        decrypt: Cbc,
    },
    /// One function for both directions, typed as CBC's.
    Ctr(Cbc),
    Xts {
        encrypt: XtsEncrypt,
        decrypt: XtsDecrypt,
    },
}

impl Nettle {
    fn new(object: &'static Object, wanted: Wanted<'_>) -> Option<Self> {
        let (keying, prefix) = names(wanted)?;
        let block = wanted.block_bytes();
        // SAFETY: the types are those of nettle/cbc.h, ctr.h, xts.h and the ciphers' headers.
        let (mode, encrypt, decrypt) = unsafe {
            let mode = match wanted.mode {
                "ecb" => Mode::Ecb,
                "ctr" => Mode::Ctr(function(object, "nettle_ctr_crypt")?),
                "cbc" => Mode::Cbc {
                    encrypt: function(object, "nettle_cbc_encrypt")?,
                    decrypt: function(object, "nettle_cbc_decrypt")?,
                },
                "xts" if block == 16 => Mode::Xts {
                    encrypt: function(object, "nettle_xts_encrypt_message")?,
                    decrypt: function(object, "nettle_xts_decrypt_message")?,
                },
                _ => return None,
            };
            (
                mode,
                direction(object, &prefix, "encrypt")?,
                direction(object, &prefix, "decrypt")?,
            )
        };
        let mut nettle = Self {
            mode,
            block,
            encrypt,
            decrypt,
            encrypt_key: Context::new(),
            decrypt_key: Context::new(),
            tweak_key: Context::new(),
        };
        let (data, tweak) = match wanted.mode {
            "xts" => wanted.key.split_at(wanted.key.len() / 2),
            _ => (wanted.key, wanted.key),
        };
        // SAFETY: contexts are larger than any of nettle's; keys have the
        // length that the function's name or argument says.
        unsafe {
            let (forward, backward) = match &keying {
                Keying::Directions(forward, backward) => (forward, backward),
                Keying::Fixed(name) | Keying::Length(name) => (name, name),
            };
            if let Keying::Length(_) = keying {
                let set: SetKeyOfLength = function(object, forward)?;
                set(nettle.encrypt_key.as_mut_ptr(), data.len(), data.as_ptr());
                set(nettle.decrypt_key.as_mut_ptr(), data.len(), data.as_ptr());
                set(nettle.tweak_key.as_mut_ptr(), tweak.len(), tweak.as_ptr());
            } else {
                let (forward, backward): (SetKey, SetKey) =
                    (function(object, forward)?, function(object, backward)?);
                forward(nettle.encrypt_key.as_mut_ptr(), data.as_ptr());
                backward(nettle.decrypt_key.as_mut_ptr(), data.as_ptr());
                forward(nettle.tweak_key.as_mut_ptr(), tweak.as_ptr());
            }
        }
        Some(nettle)
    }
}

impl Keyed for Nettle {
    fn encrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        let mut iv = *iv;
        let data = sector.as_mut_ptr();
        let block = self.encrypt as *const c_void;
        // SAFETY: contexts are keyed, the callback belongs to them, and output
        // and input are the same live slice, which nettle allows.
        unsafe {
            match &self.mode {
                Mode::Ecb => (self.encrypt)(self.encrypt_key.as_ptr(), sector.len(), data, data),
                Mode::Cbc { encrypt, .. } | Mode::Ctr(encrypt) => encrypt(
                    self.encrypt_key.as_ptr(),
                    block,
                    self.block,
                    iv.as_mut_ptr(),
                    sector.len(),
                    data,
                    data,
                ),
                Mode::Xts { encrypt, .. } => encrypt(
                    self.encrypt_key.as_ptr(),
                    self.tweak_key.as_ptr(),
                    block,
                    iv.as_ptr(),
                    sector.len(),
                    data,
                    data,
                ),
            }
        }
    }

    fn decrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        let mut iv = *iv;
        let data = sector.as_mut_ptr();
        // SAFETY: as in `encrypt`; XTS encrypts its tweak, and CTR its
        // counter, in both directions.
        unsafe {
            match &self.mode {
                Mode::Ecb => (self.decrypt)(self.decrypt_key.as_ptr(), sector.len(), data, data),
                Mode::Cbc { decrypt, .. } => decrypt(
                    self.decrypt_key.as_ptr(),
                    self.decrypt as *const c_void,
                    self.block,
                    iv.as_mut_ptr(),
                    sector.len(),
                    data,
                    data,
                ),
                Mode::Ctr(crypt) => crypt(
                    self.encrypt_key.as_ptr(),
                    self.encrypt as *const c_void,
                    self.block,
                    iv.as_mut_ptr(),
                    sector.len(),
                    data,
                    data,
                ),
                Mode::Xts { decrypt, .. } => decrypt(
                    self.decrypt_key.as_ptr(),
                    self.tweak_key.as_ptr(),
                    self.decrypt as *const c_void,
                    self.encrypt as *const c_void,
                    iv.as_ptr(),
                    sector.len(),
                    data,
                    data,
                ),
            }
        }
    }
}
