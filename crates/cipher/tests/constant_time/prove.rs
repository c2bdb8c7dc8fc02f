//! `prove`: examines every combination and writes down what was found.

use std::process::ExitCode;

use cryptmark_cipher::{Backend, CipherSpec, Key, SectorLayout};

use crate::combination;
use crate::flow::{self, Scope, Silence};
use crate::results::{self, Flow, Proof};
use crate::timing::{self, LEAK};

/// Examines the combinations whose name contains `filter`; fails where one
/// claims what it should not, or where the instruments fail.
pub fn run(filter: &str) -> ExitCode {
    let [leak, none] = timing::planted();
    if leak.t <= LEAK || none.t > LEAK {
        eprintln!(
            "dudect's test misjudges what is planted: {:.1} with a leak, {:.1} without",
            leak.t, none.t
        );
        return ExitCode::FAILURE;
    }
    println!(
        "planted: |t| {:.1} with a leak, {:.1} without; valgrind at work …",
        leak.t, none.t
    );
    let errors = match flow::errors(Scope::All, filter) {
        Ok(errors) => errors,
        Err(Silence::Absent) => {
            eprintln!("no valgrind for this machine: apt-get install valgrind");
            return ExitCode::FAILURE;
        }
        Err(Silence::Failed(what)) => {
            eprintln!("{what}");
            return ExitCode::FAILURE;
        }
    };
    let combinations = combination::all();
    let mut proofs = results::read();
    // Rows of what is gone go; those of other machines' backends stay.
    proofs.retain(|row, _| combinations.contains_key(row) || !runs_here(&row.backend));
    let date = jiff::Zoned::now().date().to_string();
    println!(
        "{:<24} {:<5} {:<9} {:<9} {:>8} {:>7}  {:<20} constant time",
        "ciphers", "mode", "ivs", "backend", "valgrind", "|t|", "of"
    );
    let mut refuted = 0;
    for (row, specs) in &combinations {
        if !row.to_string().contains(filter) {
            continue;
        }
        let claim = claims(specs, row.backend());
        let flow = Flow::of_errors(errors.get(&row.to_string()).copied());
        // Where nobody claims anything and valgrind knows why, time adds nothing.
        let finding = match (claim, flow) {
            (false, Flow::Secret) => timing::NOT_TIMED,
            _ => timing::examine(specs[0], row.backend(), claim),
        };
        let proof = Proof {
            flow,
            t: finding.t,
            of: finding.of.to_owned(),
            date: date.clone(),
        };
        println!(
            "{:<24} {:<5} {:<9} {:<9} {:>8} {:>7.1}  {:<20} {}",
            row.ciphers,
            row.mode,
            row.ivs,
            row.backend,
            proof.flow.name(),
            proof.t,
            proof.of,
            if claim { "yes" } else { "no" }
        );
        if let Some(reason) = proof.refutation(claim) {
            refuted += 1;
            println!("  {reason}");
        }
        proofs.insert(row.clone(), proof);
    }
    if let Err(error) = results::write(&proofs) {
        eprintln!("constant_time.tsv cannot be written: {error}");
        return ExitCode::FAILURE;
    }
    println!("{refuted} claims refuted");
    match refuted {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Whether `backend` claims constant time for all of `specs`.
pub fn claims(specs: &[CipherSpec], backend: Backend) -> bool {
    let claim = |spec: &CipherSpec| {
        let key = Key::new(vec![1; spec.default_key_size()]);
        spec.cipher(&key, SectorLayout::default(), Some(backend))
            .expect("listed")
            .constant_time()
    };
    let first = claim(&specs[0]);
    assert!(
        specs.iter().all(|spec| claim(spec) == first),
        "{} and its like claim different things",
        specs[0]
    );
    first
}

fn runs_here(backend: &str) -> bool {
    combination::known()
        .keys()
        .any(|row| row.backend == backend)
}
