//! `prove`: examines every combination and writes down what was found.

use std::process::ExitCode;

use cryptmark_cipher::{Backend, CipherSpec, Key, SectorLayout};

use crate::combination;
use crate::flow;
use crate::instrument::{Findings, Scope, Silence};
use crate::results::{self, Flow, Method, Proof};
use crate::timing::{self, LEAK};
use crate::trace;

/// Examines the combinations whose name contains `filter`; fails where one
/// claims what it should not, or where the instruments fail. Timing, which
/// needs a machine that does nothing else, is left out if `is_timed` is false:
/// the times of the rows stay as they were.
pub fn run(filter: &str, is_timed: bool) -> ExitCode {
    if is_timed && !clock_is_sound() {
        return ExitCode::FAILURE;
    }
    println!("valgrind at work …");
    let Some(flows) = answer(flow::findings(Scope::All, filter)) else {
        return ExitCode::FAILURE;
    };
    println!("single steps …");
    let Some(traces) = answer(trace::findings(Scope::All, filter)) else {
        return ExitCode::FAILURE;
    };
    let combinations = combination::all();
    let mut proofs = results::read();
    // Rows of what is gone go; those of other machines' backends stay.
    proofs.retain(|row, _| combinations.contains_key(row) || !runs_here(&row.backend));
    let date = jiff::Zoned::now().date().to_string();
    println!(
        "{:<24} {:<5} {:<9} {:<9} {:>8} {:>7} {:>7}  {:<20} constant time",
        "ciphers", "mode", "ivs", "backend", "method", "found", "|t|", "of"
    );
    let mut refuted = 0;
    for (row, specs) in &combinations {
        let name = row.to_string();
        if !name.contains(filter) {
            continue;
        }
        let claim = claims(specs, row.backend());
        let flow = merged(&flows, &traces, &name);
        let (t, of) = match (is_timed, claim, flow) {
            // Without a claim, and with a known reason for it, timing adds nothing.
            (true, false, Flow::Secret(_)) => timed(timing::NOT_TIMED),
            (true, _, _) => timed(timing::examine(specs[0], row.backend(), claim)),
            (false, _, _) => match proofs.get(row) {
                Some(before) => (before.t, before.of.clone()),
                None => timed(timing::NOT_TIMED),
            },
        };
        let date = date.clone();
        let proof = Proof { flow, t, of, date };
        let [method, found] = flow.names();
        println!(
            "{:<24} {:<5} {:<9} {:<9} {method:>8} {found:>7} {:>7.1}  {:<20} {}",
            row.ciphers,
            row.mode,
            row.ivs,
            row.backend,
            proof.t,
            proof.of,
            if claim { "yes" } else { "no" }
        );
        for what in [flows.get(&name), traces.get(&name)]
            .into_iter()
            .flatten()
            .flatten()
        {
            println!("  {what}");
        }
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

/// Whether the clock finds what is planted, but for what it is known not to.
fn clock_is_sound() -> bool {
    let planted = timing::planted();
    println!(
        "planted: |t| {:.1} for a search, {:.1} for look-ups, {:.1} for neither",
        planted.search.t, planted.look_up.t, planted.nothing.t
    );
    let is_sound = planted.search.t > LEAK && planted.nothing.t <= LEAK;
    if !is_sound {
        eprintln!("dudect's test misjudges what is planted");
    }
    is_sound
}

fn answer(findings: Result<Findings, Silence>) -> Option<Findings> {
    match findings {
        Ok(findings) => return Some(findings),
        Err(Silence::Absent(what)) => eprintln!("{what}"),
        Err(Silence::Failed(what)) => eprintln!("{what}"),
    }
    None
}

/// The finding of valgrind, or else that of the trace. Valgrind also covers secrets that were not
/// tried.
fn merged(flows: &Findings, traces: &Findings, name: &str) -> Flow {
    let said = |findings: &Findings, method| match findings.get(name) {
        Some(None) => Some(Flow::Clean(method)),
        Some(Some(_)) => Some(Flow::Secret(method)),
        None => None,
    };
    said(flows, Method::Valgrind)
        .or_else(|| said(traces, Method::Trace))
        .unwrap_or(Flow::Unseen)
}

fn timed(finding: timing::Finding) -> (f64, String) {
    (finding.t, finding.of.to_owned())
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
