//! libgcrypt: one handle for both directions.

use super::{Absent, Keyed, Opened, Wanted, function, load, text};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

const SONAMES: &[&str] = &["libgcrypt.so.20"];

/// `GCRYCTL_DISABLE_SECMEM` and `GCRYCTL_INITIALIZATION_FINISHED`.
const DISABLE_SECMEM: c_uint = 37;
const INITIALIZATION_FINISHED: c_uint = 38;

const MODE_ECB: c_int = 1;
const MODE_CBC: c_int = 3;
const MODE_CTR: c_int = 6;
const MODE_XTS: c_int = 13;

type Handle = *mut c_void;
type SetIv = unsafe extern "C" fn(Handle, *const c_void, usize) -> c_uint;
type Crypt = unsafe extern "C" fn(Handle, *mut c_void, usize, *const c_void, usize) -> c_uint;

/// The functions in use, typed as `gcrypt.h` declares them.
#[derive(Clone, Copy)]
struct Functions {
    open: unsafe extern "C" fn(*mut Handle, c_int, c_int, c_uint) -> c_uint,
    close: unsafe extern "C" fn(Handle),
    key: unsafe extern "C" fn(Handle, *const c_void, usize) -> c_uint,
    iv: SetIv,
    counter: SetIv,
    encrypt: Crypt,
    decrypt: Crypt,
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
        library: "libgcrypt",
        package: "Debian: libgcrypt20",
    })?;
    Ok((
        loaded.version.clone(),
        Gcrypt::new(loaded.functions, wanted).map(|keyed| Box::new(keyed) as _),
    ))
}

impl Loaded {
    fn new() -> Option<Self> {
        let object = load(SONAMES)?;
        // SAFETY: the types are those of gcrypt.h. Checking the version
        // initialises the library and must come first.
        unsafe {
            let check: unsafe extern "C" fn(*const c_char) -> *const c_char =
                function(object, "gcry_check_version")?;
            let control: unsafe extern "C" fn(c_uint, ...) -> c_uint =
                function(object, "gcry_control")?;
            let functions = Functions {
                open: function(object, "gcry_cipher_open")?,
                close: function(object, "gcry_cipher_close")?,
                key: function(object, "gcry_cipher_setkey")?,
                iv: function(object, "gcry_cipher_setiv")?,
                counter: function(object, "gcry_cipher_setctr")?,
                encrypt: function(object, "gcry_cipher_encrypt")?,
                decrypt: function(object, "gcry_cipher_decrypt")?,
            };
            let version = text(check(null()));
            control(DISABLE_SECMEM, 0 as c_int);
            control(INITIALIZATION_FINISHED, 0 as c_int);
            Some(Self { functions, version })
        }
    }
}

/// `GCRY_CIPHER_…` of an algorithm.
fn algorithm(wanted: Wanted<'_>) -> Option<c_int> {
    Some(match (wanted.algorithm, wanted.cipher_bits()?) {
        ("aes", 128) => 7,
        ("aes", 192) => 8,
        ("aes", 256) => 9,
        ("twofish", 256) => 10,
        ("twofish", 128) => 303,
        ("serpent", 128) => 304,
        ("serpent", 192) => 305,
        ("serpent", 256) => 306,
        ("camellia", 128) => 310,
        ("camellia", 192) => 311,
        ("camellia", 256) => 312,
        ("sm4", 128) => 318,
        ("des3_ede", 192) => 2,
        ("cast5", 128) => 3,
        ("blowfish", _) => 4,
        ("des", 64) => 302,
        _ => return None,
    })
}

struct Gcrypt {
    functions: Functions,
    handle: Handle,
    /// The function that sets the IV; `None` for ECB, which has no IV.
    set_iv: Option<SetIv>,
    iv_bytes: usize,
}

// SAFETY: a handle may move between threads; it is only used through `&mut`.
unsafe impl Send for Gcrypt {}

impl Gcrypt {
    fn new(functions: Functions, wanted: Wanted<'_>) -> Option<Self> {
        let algorithm = algorithm(wanted)?;
        let (mode, set_iv) = match wanted.mode {
            "ecb" => (MODE_ECB, None),
            "cbc" => (MODE_CBC, Some(functions.iv)),
            "ctr" => (MODE_CTR, Some(functions.counter)),
            "xts" if wanted.block_bytes() == 16 => (MODE_XTS, Some(functions.iv)),
            _ => return None,
        };
        let mut handle = null_mut();
        // SAFETY: `handle` receives a handle that `Drop` closes; the key is a live slice.
        unsafe {
            if (functions.open)(&mut handle, algorithm, mode, 0) != 0 {
                return None;
            }
            let keyed = Self {
                functions,
                handle,
                set_iv,
                iv_bytes: wanted.block_bytes(),
            };
            let refused =
                (functions.key)(handle, wanted.key.as_ptr().cast(), wanted.key.len()) != 0;
            (!refused).then_some(keyed)
        }
    }

    fn crypt(&mut self, crypt: Crypt, iv: &[u8; 16], sector: &mut [u8]) {
        // SAFETY: without an input the library works in place on the live slice.
        let refused = unsafe {
            let set = match self.set_iv {
                Some(set) => set(self.handle, iv.as_ptr().cast(), self.iv_bytes),
                None => 0,
            };
            set | crypt(
                self.handle,
                sector.as_mut_ptr().cast(),
                sector.len(),
                null(),
                0,
            )
        };
        assert_eq!(refused, 0, "libgcrypt refused a sector");
    }
}

impl Keyed for Gcrypt {
    fn encrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        self.crypt(self.functions.encrypt, iv, sector);
    }

    fn decrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        self.crypt(self.functions.decrypt, iv, sector);
    }
}

impl Drop for Gcrypt {
    fn drop(&mut self) {
        // SAFETY: the handle was opened by this value.
        unsafe { (self.functions.close)(self.handle) };
    }
}
