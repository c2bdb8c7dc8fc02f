//! `cargo xtask arm-model`: instructions and modelled cycles a byte of the ciphers on Arm.
//!
//! QEMU runs a request through each kernel and logs what is executed. `llvm-mca` then models the
//! hot paths of that log on several cores. OpenSSL and libgcrypt are examined in the same way.
//! All figures are models: no Arm processor takes part.

mod mca;
mod peers;
mod published;
mod table;
mod trace;
mod works;

use mca::{CORES, Mca};
use peers::Peers;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use trace::{Program, Trace};
use works::{WORKS, Work};

use crate::emulated::AARCH64;
use crate::{packages, tools};

/// Bytes of the request that is traced: 128 sectors of 4096 bytes, as `engine.rs` and `peer.c` have
/// them.
const REQUEST_BYTES: u64 = 128 * 4096;

/// The share of all executed instructions that is modelled, at least.
const COVERAGE: f64 = 0.98;

/// What is said of one program that encrypts or decrypts.
struct Cost {
    instructions: f64,
    /// Modelled cycles a byte, one for each of [`CORES`]; nothing where a core's model lacks an
    /// instruction.
    cycles: Vec<Option<f64>>,
    /// The share of the executed instructions that was modelled.
    coverage: f64,
}

/// Encryption and decryption.
type Both = [Cost; 2];

/// A cipher by the engine, and by each library that has it.
struct Comparison {
    work: &'static Work,
    engine: Both,
    peers: BTreeMap<&'static str, Both>,
}

/// Prints tables of the ciphers whose names contain `filter`.
pub fn run(filter: &str) -> bool {
    packages::provide_for_models();
    tools::told(compare(filter)).is_some()
}

fn compare(filter: &str) -> Result<(), String> {
    if let Some(what) = AARCH64.missing() {
        return Err(format!("{what} is missing"));
    }
    let wanted: Vec<_> = WORKS
        .iter()
        .filter(|work| work.name().contains(filter))
        .collect();
    if wanted.is_empty() {
        return Err(format!("no cipher's name contains {filter}"));
    }
    let mca = Mca::find()?;
    let engine = build_engine()?;
    let peers = Peers::provide()?;
    let mut compared = Vec::new();
    for work in wanted {
        eprintln!("── {}", work.name());
        compared.push(compare_one(work, &mca, &engine, &peers)?);
    }
    print!("{}", table::report(&mca, &peers, &compared)?);
    Ok(())
}

/// Traces and models one cipher everywhere. All ciphertexts must be equal.
fn compare_one(
    work: &'static Work,
    mca: &Mca,
    engine: &Path,
    peers: &Peers,
) -> Result<Comparison, String> {
    let mut results = Vec::new();
    let mut both = |program: &dyn Fn(&str) -> Program| -> Result<Both, String> {
        let mut one = |direction| {
            let trace = program(direction).trace()?;
            results.push((direction, trace.output.clone()));
            cost(mca, &trace)
        };
        Ok([one("encrypt")?, one("decrypt")?])
    };
    let own = both(&|direction| engine_program(engine, work, direction))?;
    let mut others = BTreeMap::new();
    for (library, cipher) in work.peers() {
        let costs = both(&|direction| peers.program(library, cipher, work, direction))?;
        others.insert(library, costs);
    }
    for (direction, result) in &results[2..] {
        if !results[..2].contains(&(direction, result.clone())) {
            return Err(format!("{}: a library gets other bytes", work.name()));
        }
    }
    Ok(Comparison {
        work,
        engine: own,
        peers: others,
    })
}

/// Models the heaviest paths of a trace, until they make up [`COVERAGE`] of it.
fn cost(mca: &Mca, trace: &Trace) -> Result<Cost, String> {
    let total = trace.instructions as f64;
    let mut cycles = vec![Some(0.0); CORES.len()];
    let mut covered = 0.0;
    for path in &trace.paths {
        if covered >= COVERAGE * total {
            break;
        }
        let assembly = mca.assembly(&path.words)?;
        let executed = path.instructions as f64;
        for (nth, sum) in cycles.iter_mut().enumerate() {
            let one = mca.cycles(nth, &assembly)?;
            let passes = executed / path.words.len() as f64;
            *sum = sum.zip(one).map(|(sum, one)| sum + one * passes);
        }
        covered += executed;
    }
    // The rest is taken to need as many cycles an instruction as what was modelled.
    let scale = total / covered / REQUEST_BYTES as f64;
    Ok(Cost {
        instructions: total / REQUEST_BYTES as f64,
        cycles: cycles
            .into_iter()
            .map(|sum| sum.map(|sum| sum * scale))
            .collect(),
        coverage: covered / total,
    })
}

/// Builds the program that runs the engine, with the profile that the engine is shipped with.
fn build_engine() -> Result<PathBuf, String> {
    let target = AARCH64.target;
    let built = AARCH64
        .cargo("build")
        .args(["--release", "--package", "xtask", "--features", "arm-model"])
        .args(["--bin", "arm-model-engine"])
        .status()
        .is_ok_and(|status| status.success());
    match built {
        true => Ok(target_folder().join(format!("{target}/release/arm-model-engine"))),
        false => Err("the engine could not be built for aarch64".to_owned()),
    }
}

/// Where cargo puts what it builds.
fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from)
}

fn engine_program(engine: &Path, work: &Work, direction: &str) -> Program {
    let mut program = Program::new(engine);
    program.arguments = vec![
        work.spec.to_owned(),
        work.backend.to_owned(),
        work.key_bytes.to_string(),
        direction.to_owned(),
    ];
    program
}

/// What a program prints; an error if it fails.
fn output(command: &mut Command) -> Result<String, String> {
    crate::package::output(command)
}
