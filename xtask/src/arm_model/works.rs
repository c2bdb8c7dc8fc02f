//! What is modelled: each kernel for Arm, and what the libraries call the same cipher.

/// A cipher by one of the engine's backends.
pub struct Work {
    /// The cipher and its mode, as people say it.
    title: &'static str,
    /// The engine's notation.
    pub spec: &'static str,
    pub backend: &'static str,
    /// Of both halves in XTS.
    pub key_bytes: usize,
    openssl: Option<&'static str>,
    libgcrypt: Option<&'static str>,
}

impl Work {
    pub fn name(&self) -> String {
        format!("{} ({})", self.title, self.backend)
    }

    /// The mode, as libraries call it.
    pub fn mode(&self) -> &'static str {
        self.spec.split('-').nth(1).unwrap_or_default()
    }

    /// Whether the processor's AES instructions are taken from the libraries too.
    pub fn without_aes(&self) -> bool {
        self.spec.starts_with("aes-") && self.backend == "neon"
    }

    /// Libraries that have this cipher, and their names of it.
    pub fn peers(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let openssl = self.openssl.map(|cipher| ("openssl", cipher));
        let libgcrypt = self.libgcrypt.map(|cipher| ("libgcrypt", cipher));
        openssl.into_iter().chain(libgcrypt)
    }
}

/// A kernel with the libraries' names of its cipher.
const fn work(
    (title, backend): (&'static str, &'static str),
    (spec, key_bytes): (&'static str, usize),
    openssl: Option<&'static str>,
    libgcrypt: Option<&'static str>,
) -> Work {
    Work {
        title,
        spec,
        backend,
        key_bytes,
        openssl,
        libgcrypt,
    }
}

const AES_128_XTS: (&str, usize) = ("aes-xts-plain64", 32);
const AES_128_CBC: (&str, usize) = ("aes-cbc-plain64", 16);
const AES_XTS: (&str, usize) = ("aes-xts-plain64", 64);
const AES_CBC: (&str, usize) = ("aes-cbc-plain64", 32);
const AES_CTR: (&str, usize) = ("aes-ctr-plain64", 32);
const AES_HCTR2: (&str, usize) = ("aes-hctr2-plain64", 32);

#[rustfmt::skip]
pub const WORKS: &[Work] = &[
    work(("AES-128 XTS", "aes-ce"), AES_128_XTS, Some("AES-128-XTS"), Some("AES")),
    work(("AES-128 CBC", "aes-ce"), AES_128_CBC, Some("AES-128-CBC"), Some("AES")),
    work(("AES-256 XTS", "aes-ce"), AES_XTS, Some("AES-256-XTS"), Some("AES256")),
    work(("AES-256 CBC", "aes-ce"), AES_CBC, Some("AES-256-CBC"), Some("AES256")),
    work(("AES-256 CTR", "aes-ce"), AES_CTR, None, None),
    work(("AES-256 HCTR2", "aes-ce"), AES_HCTR2, None, None),
    work(("AES-256 XTS", "neon"), AES_XTS, Some("AES-256-XTS"), Some("AES256")),
    work(("AES-256 CBC", "neon"), AES_CBC, Some("AES-256-CBC"), Some("AES256")),
    work(("AES-256 HCTR2", "neon"), AES_HCTR2, None, None),
    work(("Adiantum (XChaCha12)", "neon"), ("xchacha12,aes-adiantum-plain64", 32), None, None),
    work(("Adiantum (XChaCha20)", "neon"), ("xchacha20,aes-adiantum-plain64", 32), None, None),
    work(("Serpent-256 XTS", "neon"), ("serpent-xts-plain64", 64), None, Some("SERPENT256")),
    work(("Serpent-256 CBC", "neon"), ("serpent-cbc-plain64", 32), None, Some("SERPENT256")),
    work(("Twofish-256 XTS", "neon"), ("twofish-xts-plain64", 64), None, Some("TWOFISH")),
    work(("Twofish-256 CBC", "neon"), ("twofish-cbc-plain64", 32), None, Some("TWOFISH")),
    work(("Camellia-256 XTS", "neon"), ("camellia-xts-plain64", 64), None, Some("CAMELLIA256")),
    work(("Camellia-256 CBC", "neon"), ("camellia-cbc-plain64", 32), Some("CAMELLIA-256-CBC"), Some("CAMELLIA256")),
    work(("CAST-256 XTS", "neon"), ("cast6-xts-plain64", 64), None, None),
    work(("CAST-256 CBC", "neon"), ("cast6-cbc-plain64", 32), None, None),
    work(("Kuznyechik XTS", "neon"), ("kuznyechik-xts-plain64", 64), None, None),
    work(("Kuznyechik CBC", "neon"), ("kuznyechik-cbc-plain64", 32), None, None),
    work(("SM4 XTS", "neon"), ("sm4-xts-plain64", 32), None, Some("SM4")),
    work(("SM4 CBC", "neon"), ("sm4-cbc-plain64", 16), Some("SM4-CBC"), Some("SM4")),
    work(("ARIA-256 XTS", "neon"), ("aria-xts-plain64", 64), None, None),
    work(("ARIA-256 CBC", "neon"), ("aria-cbc-plain64", 32), Some("ARIA-256-CBC"), None),
    work(("Anubis-256 XTS", "neon"), ("anubis-xts-plain64", 64), None, None),
    work(("Anubis-256 CBC", "neon"), ("anubis-cbc-plain64", 32), None, None),
    work(("SEED XTS", "neon"), ("seed-xts-plain64", 32), None, Some("SEED")),
    work(("SEED CBC", "neon"), ("seed-cbc-plain64", 16), Some("SEED-CBC"), Some("SEED")),
    work(("Blowfish-128 CBC", "neon"), ("blowfish-cbc-plain64", 16), Some("BF-CBC"), Some("BLOWFISH")),
    work(("CAST5 CBC", "neon"), ("cast5-cbc-plain64", 16), Some("CAST5-CBC"), Some("CAST5")),
    work(("DES CBC", "neon"), ("des-cbc-plain64", 8), Some("DES-CBC"), Some("DES")),
    work(("3DES CBC", "neon"), ("des3_ede-cbc-plain64", 24), Some("DES-EDE3-CBC"), Some("3DES")),
    work(("Khazad CBC", "neon"), ("khazad-cbc-plain64", 16), None, None),
];
