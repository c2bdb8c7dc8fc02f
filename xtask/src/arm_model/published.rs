//! What libgcrypt's author has measured of the code that Debian's version has.

/// A measurement.
pub struct Measured {
    /// The cipher, as `works` names it.
    pub work: &'static str,
    pub processor: &'static str,
    /// The core of the processor, and one that has the model which is nearest to it.
    pub cores: &'static [&'static str],
    /// Cycles a byte, encrypting and decrypting, where they are told.
    pub cycles: [Option<f64>; 2],
    /// The commit of libgcrypt that tells them.
    pub commit: &'static str,
}

/// A Cortex-A53. The A55 is its successor.
const fn a53(work: &'static str, cycles: [Option<f64>; 2], commit: &'static str) -> Measured {
    Measured {
        work,
        processor: "Cortex-A53",
        cores: &["Cortex-A53", "Cortex-A55"],
        cycles,
        commit,
    }
}

/// AWS Graviton2, which has cores of the kind Neoverse N1.
const fn n1(work: &'static str, cycles: [Option<f64>; 2], commit: &'static str) -> Measured {
    Measured {
        work,
        processor: "Neoverse N1",
        cores: &["Cortex-A76, Neoverse N1"],
        cycles,
        commit,
    }
}

pub const MEASURED: &[Measured] = &[
    n1("AES-128 XTS (aes-ce)", [Some(0.876), None], "ff2a647d"),
    n1(
        "AES-128 CBC (aes-ce)",
        [Some(1.25), Some(0.658)],
        "ff2a647d",
    ),
    a53("AES-128 XTS (aes-ce)", [Some(1.41), None], "ff2a647d"),
    a53(
        "AES-128 CBC (aes-ce)",
        [Some(1.31), Some(0.971)],
        "ff2a647d",
    ),
    a53("AES-256 CBC (neon)", [Some(29.31), Some(29.38)], "595251ad"),
    a53(
        "Twofish-256 CBC (neon)",
        [Some(24.13), Some(21.13)],
        "5418d9ca",
    ),
    a53(
        "Camellia-256 CBC (neon)",
        [Some(34.69), Some(33.47)],
        "de73a2e7",
    ),
    a53("Blowfish-128 CBC (neon)", [None, Some(14.84)], "ced7508c"),
    a53("CAST5 CBC (neon)", [None, Some(18.81)], "4ec566b3"),
];
