//! Where secrets flow: valgrind's memcheck takes key and data for undefined,
//! and reports every branch and every address that depends on them.
//!
//! Valgrind gives a program no AVX-512 and no VAES, so these backends are not
//! among those that it sees: [`crate::trace`] looks at them.

use std::path::Path;
use std::process::{Command, Stdio};

use cryptmark_cipher::{Backend, CipherSpec, IvSector, Key, SectorCipher, SectorLayout};

use crate::controls::{self, Control, Leak};
use crate::instrument::{self, Findings, Request, Scope, Silence};
use crate::memcheck;

/// The backends that valgrind runs, on a CPU that has them.
const SEEN: [Backend; 3] = [Backend::AesNi, Backend::Avx2, Backend::Portable];

/// Whether valgrind runs `backend`.
pub fn sees(backend: Backend) -> bool {
    SEEN.contains(&backend)
}

/// Controls that are not for valgrind: it takes no offence at a division.
fn controls() -> impl Iterator<Item = Control> {
    let seen = |control: &Control| sees(control.backend) && control.leak != Some(Leak::Division);
    controls::here().into_iter().filter(seen)
}

/// Runs this program under valgrind, and returns what each combination has
/// that contains `filter`. Combinations that valgrind cannot run are missing.
pub fn findings(scope: Scope, filter: &str) -> Result<Findings, Silence> {
    let version = Command::new("valgrind").arg("--version").output();
    if !cfg!(target_arch = "x86_64") || !version.is_ok_and(|output| output.status.success()) {
        return Err(Silence::Absent(
            "no valgrind for this machine: apt-get install valgrind",
        ));
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
    let mut findings = instrument::read(&output.stdout);
    instrument::judge(&mut findings, controls())?;
    Ok(findings)
}

/// The program that valgrind runs: prints the findings in every combination.
pub fn watched(scope: Scope, filter: &str) {
    assert!(memcheck::is_watching(), "`flow` is for valgrind to run");
    for control in controls() {
        let secret = controls::secret(0);
        memcheck::mark_secret(&secret);
        let before = memcheck::errors();
        control.run(&secret);
        print(&control.name(), memcheck::errors() - before);
    }
    for (row, specs) in scope.combinations() {
        let name = row.to_string();
        if !name.contains(filter) {
            continue;
        }
        let before = memcheck::errors();
        for (nth, &spec) in specs.iter().enumerate() {
            for request in scope.requests(spec, nth == 0) {
                // To have found some is enough; tables would make millions.
                if memcheck::errors() == before {
                    run(spec, row.backend(), request);
                }
            }
        }
        print(&name, memcheck::errors() - before);
    }
}

fn print(name: &str, errors: usize) {
    let what = match errors {
        0 => None,
        _ => Some(format!("{errors} errors of memcheck")),
    };
    instrument::print(name, what.as_deref());
}

/// Key setup, encryption, decryption.
fn run(spec: CipherSpec, backend: Backend, request: Request) {
    let key: Vec<u8> = (0..request.key_bytes).map(|i| (i * 31 + 7) as u8).collect();
    let key = Key::new(key);
    let plain: Vec<u8> = (0..request.data_bytes()).map(|i| i as u8).collect();
    let mut data = plain.clone();
    let first = IvSector::new(6);
    let before = memcheck::errors();
    memcheck::mark_secret(key.as_bytes());
    memcheck::mark_secret(&data);
    let layout = SectorLayout {
        size: request.size,
        large_iv: false,
    };
    let cipher = spec.cipher(&key, layout, Some(backend)).expect("listed");
    if memcheck::errors() == before {
        cipher.encrypt(first, &mut data);
        cipher.decrypt(first, &mut data);
    }
    drop(cipher);
    memcheck::mark_public(&data);
    memcheck::mark_public(key.as_bytes());
    assert!(data == plain, "{spec} {backend}");
}
