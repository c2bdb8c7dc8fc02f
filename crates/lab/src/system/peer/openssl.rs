//! OpenSSL 3: `EVP` ciphers, with the legacy provider if it is installed.

use super::{Absent, Keyed, Opened, Wanted, function, load, text};
use std::ffi::{CString, c_char, c_int, c_uchar, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

const SONAMES: &[&str] = &["libcrypto.so.4", "libcrypto.so.3"];

/// `OPENSSL_VERSION_STRING` of `OpenSSL_version`.
const VERSION_STRING: c_int = 6;

type Context = *mut c_void;
type Cipher = *mut c_void;

/// The functions in use, typed as `openssl/evp.h` declares them.
#[derive(Clone, Copy)]
struct Evp {
    fetch: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> Cipher,
    fetched: unsafe extern "C" fn(Cipher),
    context: unsafe extern "C" fn() -> Context,
    free: unsafe extern "C" fn(Context),
    init: unsafe extern "C" fn(
        Context,
        Cipher,
        *mut c_void,
        *const c_uchar,
        *const c_uchar,
        c_int,
    ) -> c_int,
    key_length: unsafe extern "C" fn(Context, c_int) -> c_int,
    padding: unsafe extern "C" fn(Context, c_int) -> c_int,
    update: unsafe extern "C" fn(Context, *mut c_uchar, *mut c_int, *const c_uchar, c_int) -> c_int,
}

/// The library once it is loaded.
struct Loaded {
    evp: Evp,
    version: String,
}

static LOADED: OnceLock<Option<Loaded>> = OnceLock::new();

pub(super) fn open(wanted: Wanted<'_>) -> Opened {
    let loaded = LOADED.get_or_init(Loaded::new).as_ref();
    let loaded = loaded.ok_or(Absent::NotInstalled {
        library: "openssl",
        package: "Debian: libssl3",
    })?;
    Ok((
        loaded.version.clone(),
        Openssl::new(loaded.evp, wanted).map(|keyed| Box::new(keyed) as _),
    ))
}

impl Loaded {
    fn new() -> Option<Self> {
        let object = load(SONAMES)?;
        // SAFETY: the types are those of openssl/evp.h, crypto.h and provider.h.
        let (evp, version, provider) = unsafe {
            let evp = Evp {
                fetch: function(object, "EVP_CIPHER_fetch")?,
                fetched: function(object, "EVP_CIPHER_free")?,
                context: function(object, "EVP_CIPHER_CTX_new")?,
                free: function(object, "EVP_CIPHER_CTX_free")?,
                init: function(object, "EVP_CipherInit_ex")?,
                key_length: function(object, "EVP_CIPHER_CTX_set_key_length")?,
                padding: function(object, "EVP_CIPHER_CTX_set_padding")?,
                update: function(object, "EVP_CipherUpdate")?,
            };
            let version: unsafe extern "C" fn(c_int) -> *const c_char =
                function(object, "OpenSSL_version")?;
            let provider: unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void =
                function(object, "OSSL_PROVIDER_load")?;
            (evp, text(version(VERSION_STRING)), provider)
        };
        // Without the first, loading the second would switch the first off.
        for name in [c"default", c"legacy"] {
            // SAFETY: a null library context is the default one; a provider that
            // is not installed yields null and changes nothing.
            unsafe { provider(null_mut(), name.as_ptr()) };
        }
        Some(Self { evp, version })
    }
}

/// OpenSSL's name of a cipher.
fn name(wanted: Wanted<'_>) -> Option<String> {
    let bits = wanted.cipher_bits()?;
    let mode = wanted.mode.to_uppercase();
    Some(match wanted.algorithm {
        "aes" => format!("AES-{bits}-{mode}"),
        "camellia" => format!("CAMELLIA-{bits}-{mode}"),
        "aria" => format!("ARIA-{bits}-{mode}"),
        "sm4" => format!("SM4-{mode}"),
        "blowfish" => format!("BF-{mode}"),
        "cast5" => format!("CAST5-{mode}"),
        "des" => format!("DES-{mode}"),
        "des3_ede" if bits == 128 => format!("DES-EDE-{mode}"),
        "des3_ede" => format!("DES-EDE3-{mode}"),
        _ => return None,
    })
}

struct Openssl {
    evp: Evp,
    encrypt: Context,
    decrypt: Context,
    sets_iv: bool,
}

// SAFETY: a context may move between threads; it is only used through `&mut`.
unsafe impl Send for Openssl {}

impl Openssl {
    fn new(evp: Evp, wanted: Wanted<'_>) -> Option<Self> {
        let name = CString::new(name(wanted)?).ok()?;
        // SAFETY: the name is terminated; contexts keep the fetched cipher
        // alive and are freed by `Drop`.
        unsafe {
            let cipher = (evp.fetch)(null_mut(), name.as_ptr(), null());
            if cipher.is_null() {
                return None;
            }
            let keyed = Self {
                evp,
                encrypt: (evp.context)(),
                decrypt: (evp.context)(),
                sets_iv: wanted.mode != "ecb",
            };
            let set = keyed.key(cipher, wanted.key);
            (evp.fetched)(cipher);
            set.then_some(keyed)
        }
    }

    /// Keys both contexts; whether the cipher took the key.
    ///
    /// # Safety
    /// `cipher` must be a fetched cipher.
    unsafe fn key(&self, cipher: Cipher, key: &[u8]) -> bool {
        let evp = &self.evp;
        let none = null_mut();
        [(self.encrypt, 1), (self.decrypt, 0)]
            .into_iter()
            .all(|(context, direction)| {
                // SAFETY: a null context is not used; the cipher is fetched;
                // the key is read once its length is the cipher's.
                unsafe {
                    !context.is_null()
                        && (evp.init)(context, cipher, none, null(), null(), direction) == 1
                        && (evp.key_length)(context, key.len() as c_int) == 1
                        && (evp.init)(context, none, none, key.as_ptr(), null(), -1) == 1
                        && (evp.padding)(context, 0) == 1
                }
            })
    }

    fn crypt(&mut self, context: Context, iv: &[u8; 16], sector: &mut [u8]) {
        let mut written = 0;
        // SAFETY: the context is keyed; output and input are the same live
        // slice, which EVP allows; without padding as much comes out as goes in.
        let done = unsafe {
            let ready = match self.sets_iv {
                true => (self.evp.init)(context, null_mut(), null_mut(), null(), iv.as_ptr(), -1),
                false => 1,
            };
            ready
                & (self.evp.update)(
                    context,
                    sector.as_mut_ptr(),
                    &mut written,
                    sector.as_ptr(),
                    sector.len() as c_int,
                )
        };
        assert!(
            done == 1 && written as usize == sector.len(),
            "libcrypto refused a sector"
        );
    }
}

impl Keyed for Openssl {
    fn encrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        self.crypt(self.encrypt, iv, sector);
    }

    fn decrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]) {
        self.crypt(self.decrypt, iv, sector);
    }
}

impl Drop for Openssl {
    fn drop(&mut self) {
        // SAFETY: both were made by this value; freeing null is allowed.
        unsafe {
            (self.evp.free)(self.encrypt);
            (self.evp.free)(self.decrypt);
        }
    }
}
