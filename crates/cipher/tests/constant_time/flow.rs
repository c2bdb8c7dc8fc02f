//! Where secrets flow: valgrind's memcheck takes key and data for undefined,
//! and reports every branch and every address that depends on them.
//!
//! Valgrind gives a program no AVX-512 and no VAES, so these backends are not
//! among those that it sees.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};

use cryptmark_cipher::{
    Backend, CipherSpec, IvSector, Key, SectorCipher, SectorLayout, SectorSize,
};

use crate::combination::{self, Combinations};
use crate::memcheck;

/// Sectors of a request: what kernels take side by side and what is left over,
/// the short one first.
const LENGTHS: [(usize, SectorSize); 4] = [
    (1, SectorSize::B512),
    (5, SectorSize::B512),
    (67, SectorSize::B512),
    (2, SectorSize::B4096),
];

/// Key sizes of a cipher that are all tried.
const FEW_SIZES: usize = 8;

/// Planted, to know that valgrind finds what there is: a branch and an address
/// that depend on a secret, and a sum that does neither.
const BRANCH: &str = "planted branch";
const ADDRESS: &str = "planted address";
const SUM: &str = "planted sum";

/// Whether to look at every combination with all key sizes, or at one of every
/// kind with its default.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    All,
    Known,
}

impl Scope {
    const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Known => "known",
        }
    }

    fn combinations(self) -> Combinations {
        match self {
            Self::All => combination::all(),
            Self::Known => combination::known(),
        }
    }
}

/// Why valgrind has no answer.
pub enum Silence {
    /// There is no valgrind that runs here.
    Absent,
    /// It was there and failed; its log says more.
    Failed(String),
}

/// Runs this program under valgrind, and returns how many errors each
/// combination has that contains `filter`. Combinations that valgrind cannot
/// run are missing.
pub fn errors(scope: Scope, filter: &str) -> Result<BTreeMap<String, usize>, Silence> {
    let version = Command::new("valgrind").arg("--version").output();
    if !cfg!(target_arch = "x86_64") || !version.is_ok_and(|output| output.status.success()) {
        return Err(Silence::Absent);
    }
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("valgrind-{}.log", scope.name()));
    let failed = |what: String| Silence::Failed(format!("{what}; see {}", log.display()));
    let this = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let output = Command::new("valgrind")
        .args(["--quiet", "--error-limit=no", "--num-callers=8"])
        .arg(format!("--log-file={}", log.display()))
        .arg(this)
        .args(["flow", scope.name(), filter])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!("valgrind ended with {}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut counts: BTreeMap<String, usize> = text
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .filter_map(|(name, count)| Some((name.to_owned(), count.parse().ok()?)))
        .collect();
    let planted = [BRANCH, ADDRESS, SUM].map(|name| counts.remove(name));
    match planted {
        [Some(1..), Some(1..), Some(0)] => Ok(counts),
        _ => Err(failed(format!(
            "valgrind misjudges what is planted: {planted:?}"
        ))),
    }
}

/// What valgrind runs: prints the errors of every combination.
pub fn watched(scope: &str, filter: &str) {
    assert!(memcheck::is_watching(), "`flow` is for valgrind to run");
    let scope = match scope {
        "all" => Scope::All,
        _ => Scope::Known,
    };
    for (name, errors) in planted() {
        println!("{name}\t{errors}");
    }
    for (row, specs) in scope.combinations() {
        let name = row.to_string();
        if !name.contains(filter) {
            continue;
        }
        let before = memcheck::errors();
        for (nth, &spec) in specs.iter().enumerate() {
            // What the others of a row have of their own are IVs.
            let thorough = scope == Scope::All && nth == 0;
            examine(spec, row.backend(), thorough);
            // To have found some is enough; tables would make millions.
            if memcheck::errors() > before {
                break;
            }
        }
        println!("{name}\t{}", memcheck::errors() - before);
    }
}

/// Every length of request under the default key size, or under all of them.
fn examine(spec: CipherSpec, backend: Backend, thorough: bool) {
    let sizes = spec.key_sizes();
    let default = spec.default_key_size();
    let sizes = match thorough {
        false => vec![default],
        true if sizes.len() <= FEW_SIZES => sizes,
        true => vec![sizes[0], default, sizes[sizes.len() - 1]],
    };
    let before = memcheck::errors();
    for key_bytes in sizes {
        let key: Vec<u8> = (0..key_bytes).map(|i| (i * 31 + 7) as u8).collect();
        let key = Key::new(key);
        for (sectors, size) in LENGTHS {
            let large_iv = false;
            let layout = SectorLayout { size, large_iv };
            if spec.sector_sizes().contains(&size) {
                run(spec, &key, layout, backend, sectors);
            }
            if memcheck::errors() > before {
                return;
            }
        }
    }
}

/// Key setup, encryption, decryption.
fn run(spec: CipherSpec, key: &Key, layout: SectorLayout, backend: Backend, sectors: usize) {
    let plain: Vec<u8> = (0..sectors * layout.size.bytes())
        .map(|i| i as u8)
        .collect();
    let mut data = plain.clone();
    let first = IvSector::new(6);
    let before = memcheck::errors();
    memcheck::mark_secret(key.as_bytes());
    memcheck::mark_secret(&data);
    let cipher = spec.cipher(key, layout, Some(backend)).expect("listed");
    if memcheck::errors() == before {
        cipher.encrypt(first, &mut data);
        cipher.decrypt(first, &mut data);
    }
    drop(cipher);
    memcheck::mark_public(&data);
    memcheck::mark_public(key.as_bytes());
    assert!(data == plain, "{spec} {backend}");
}

fn planted() -> [(&'static str, usize); 3] {
    fn found(on_secret: impl FnOnce(&[u8; 16])) -> usize {
        let secret = black_box([0x5a; 16]);
        memcheck::mark_secret(&secret);
        let before = memcheck::errors();
        on_secret(&secret);
        memcheck::errors() - before
    }
    #[inline(never)]
    fn branch(secret: &[u8; 16]) -> usize {
        // A call on one side only, which no conditional move can replace.
        match secret[3] > 7 {
            true => black_box(5),
            false => 0,
        }
    }
    #[inline(never)]
    fn address(secret: &[u8; 16], table: &[u64; 256]) -> u64 {
        table[usize::from(secret[3])]
    }
    #[inline(never)]
    fn sum(secret: &[u8; 16]) -> u8 {
        secret.iter().fold(0, |sum, byte| sum ^ byte.rotate_left(3))
    }
    let table = black_box([1; 256]);
    [
        (BRANCH, found(|secret| _ = black_box(branch(secret)))),
        (
            ADDRESS,
            found(|secret| _ = black_box(address(secret, &table))),
        ),
        (SUM, found(|secret| _ = black_box(sum(secret)))),
    ]
}
