//! Botan 2 and 3, through the C interface of both.

use super::{Absent, Keyed, Opened, Wanted, function, load, text};
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// Botan 3 counts its interface up with every release, and promises that the
/// functions used here stay.
const SONAMES: &[&str] = &[
    "libbotan-3.so.12",
    "libbotan-3.so.11",
    "libbotan-3.so.10",
    "libbotan-3.so.9",
    "libbotan-3.so.8",
    "libbotan-3.so.7",
    "libbotan-3.so.6",
    "libbotan-3.so.5",
    "libbotan-3.so.4",
    "libbotan-3.so.3",
    "libbotan-3.so.2",
    "libbotan-3.so.1",
    "libbotan-3.so.0",
    "libbotan-3.so",
    "libbotan-2.so.19",
];

/// `BOTAN_CIPHER_UPDATE_FLAG_FINAL`.
const FINAL: u32 = 1;

type Cipher = *mut c_void;
type CryptBlocks = unsafe extern "C" fn(Cipher, *const u8, *mut u8, usize) -> c_int;

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
    block_init: unsafe extern "C" fn(*mut Cipher, *const c_char) -> c_int,
    block_destroy: unsafe extern "C" fn(Cipher) -> c_int,
    block_key: unsafe extern "C" fn(Cipher, *const u8, usize) -> c_int,
    encrypt_blocks: CryptBlocks,
    decrypt_blocks: CryptBlocks,
}

/// The library once it is loaded.
struct Loaded {
    functions: Functions,
    version: String,
}

static LOADED: OnceLock<Option<Loaded>> = OnceLock::new();

pub(super) fn open(wanted: Wanted<'_>) -> Opened {
    let loaded = LOADED.get_or_init(Loaded::new).as_ref();
    let loaded = loaded.ok_or(Absent::NotInstalled {
        library: "botan",
        package: "Debian: libbotan-2-19",
    })?;
    let functions = loaded.functions;
    let keyed = match wanted.mode {
        "ecb" => Blocks::new(functions, wanted).map(|keyed| Box::new(keyed) as _),
        _ => Botan::new(functions, wanted).map(|keyed| Box::new(keyed) as _),
    };
    Ok((loaded.version.clone(), keyed))
}

impl Loaded {
    fn new() -> Option<Self> {
        let object = load(SONAMES)?;
        // SAFETY: the types are those of botan/ffi.h.
        unsafe {
            let functions = Functions {
                init: function(object, "botan_cipher_init")?,
                destroy: function(object, "botan_cipher_destroy")?,
                key: function(object, "botan_cipher_set_key")?,
                start: function(object, "botan_cipher_start")?,
                update: function(object, "botan_cipher_update")?,
                block_init: function(object, "botan_block_cipher_init")?,
                block_destroy: function(object, "botan_block_cipher_destroy")?,
                block_key: function(object, "botan_block_cipher_set_key")?,
                encrypt_blocks: function(object, "botan_block_cipher_encrypt_blocks")?,
                decrypt_blocks: function(object, "botan_block_cipher_decrypt_blocks")?,
            };
            let version: unsafe extern "C" fn() -> *const c_char =
                function(object, "botan_version_string")?;
            let version = text(version());
            // "Botan 2.19.3 (release, dated …)"
            let short = version.split_whitespace().nth(1).unwrap_or(&version);
            Some(Self {
                functions,
                version: short.to_owned(),
            })
        }
    }
}

/// Botan's name of a block cipher.
fn algorithm(wanted: Wanted<'_>) -> Option<String> {
    let bits = wanted.cipher_bits()?;
    Some(match wanted.algorithm {
        "aes" => format!("AES-{bits}"),
        "camellia" => format!("Camellia-{bits}"),
        "aria" => format!("ARIA-{bits}"),
        "serpent" => "Serpent".into(),
        "twofish" => "Twofish".into(),
        "sm4" => "SM4".into(),
        "seed" => "SEED".into(),
        "cast6" => "CAST-256".into(),
        "kuznyechik" => "Kuznyechik".into(),
        "blowfish" => "Blowfish".into(),
        "cast5" => "CAST-128".into(),
        "des" => "DES".into(),
        "des3_ede" => "TripleDES".into(),
        _ => return None,
    })
}

/// Botan's name of a cipher in a mode with IV.
fn name(wanted: Wanted<'_>) -> Option<CString> {
    let algorithm = algorithm(wanted)?;
    let name = match wanted.mode {
        "xts" if wanted.block_bytes() == 16 => format!("{algorithm}/XTS"),
        "cbc" => format!("{algorithm}/CBC/NoPadding"),
        "ctr" => format!("CTR-BE({algorithm})"),
        _ => return None,
    };
    CString::new(name).ok()
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
        let name = name(wanted)?;
        let mut keyed = Self {
            functions,
            encrypt: null_mut(),
            decrypt: null_mut(),
            iv_bytes: wanted.block_bytes(),
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

/// The bare block cipher: Botan has no ECB mode.
struct Blocks {
    functions: Functions,
    cipher: Cipher,
    block_bytes: usize,
}

// SAFETY: a cipher object may move between threads; it is only used through `&mut`.
unsafe impl Send for Blocks {}

impl Blocks {
    fn new(functions: Functions, wanted: Wanted<'_>) -> Option<Self> {
        let name = CString::new(algorithm(wanted)?).ok()?;
        let mut keyed = Self {
            functions,
            cipher: null_mut(),
            block_bytes: wanted.block_bytes(),
        };
        // SAFETY: the pointer receives an object that `Drop` destroys.
        let refused = unsafe {
            (functions.block_init)(&mut keyed.cipher, name.as_ptr()) != 0
                || (functions.block_key)(keyed.cipher, wanted.key.as_ptr(), wanted.key.len()) != 0
        };
        (!refused).then_some(keyed)
    }

    fn crypt(&mut self, crypt: CryptBlocks, sector: &mut [u8]) {
        let blocks = sector.len() / self.block_bytes;
        let data = sector.as_mut_ptr();
        // SAFETY: output and input are the same live slice, which Botan
        // allows here, and hold that many blocks.
        let refused = unsafe { crypt(self.cipher, data, data, blocks) };
        assert_eq!(refused, 0, "Botan refused a sector");
    }
}

impl Keyed for Blocks {
    fn encrypt(&mut self, _iv: &[u8; 16], sector: &mut [u8]) {
        self.crypt(self.functions.encrypt_blocks, sector);
    }

    fn decrypt(&mut self, _iv: &[u8; 16], sector: &mut [u8]) {
        self.crypt(self.functions.decrypt_blocks, sector);
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        // SAFETY: the object is null or was made by this value; null is refused with an error.
        unsafe { (self.functions.block_destroy)(self.cipher) };
    }
}
