//! Constant time: proved, and held against what ciphers claim.
//!
//! ```text
//! prove [--no-timing] [FILTER]
//!                     every combination of cipher, mode, IV generator and
//!                     backend: under valgrind, by a trace where valgrind
//!                     cannot run it, and by dudect's test; writes
//!                     constant_time.tsv (`cargo xtask constant-time`)
//! flow SCOPE FILTER   what valgrind is given to run
//! trace SCOPE FILTER PART PARTS
//!                     what has one thread and can be traced
//! ```
//!
//! Without these, tests: no claim without a row of constant_time.tsv that
//! allows it, and no secret-dependent branch or address in one combination of
//! every kind, by valgrind where it is installed, and in a few by a trace.
//! Both must find what [`controls`] plants. This is a program of its own
//! because it is run under valgrind, which the test harness is too much for.

mod combination;
mod controls;
mod flow;
mod instrument;
mod memcheck;
mod prove;
mod results;
mod timing;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod trace;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
#[path = "untraced.rs"]
mod trace;
mod welch;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use crate::instrument::{Findings, Scope, Silence};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let scoped = |scope| Scope::named(scope).expect("a scope");
    match arguments[..] {
        ["flow", scope, filter] => flow::watched(scoped(scope), filter),
        ["trace", scope, filter, part, parts] => {
            let number = |text: &str| text.parse().expect("a number");
            trace::watched(scoped(scope), filter, number(part), number(parts));
        }
        ["prove"] => return prove::run("", true),
        ["prove", "--no-timing"] => return prove::run("", false),
        ["prove", "--no-timing", filter] => return prove::run(filter, false),
        ["prove", filter] => return prove::run(filter, true),
        _ => {
            let tests = vec![
                Trial::test("claims_have_been_proved", claims_have_been_proved),
                Trial::test("false_claims_are_refuted", || {
                    results::false_claims_are_refuted();
                    Ok(())
                }),
                Trial::test("nothing_is_overlooked", || {
                    trace::nothing_is_overlooked();
                    Ok(())
                }),
                Trial::test(
                    "no_secret_decides_a_branch_or_an_address",
                    no_secret_decides_a_branch_or_an_address,
                ),
                Trial::test("no_secret_changes_a_trace", no_secret_changes_a_trace),
            ];
            return libtest_mimic::run(&Arguments::from_args(), tests).exit_code();
        }
    }
    ExitCode::SUCCESS
}

/// A kernel that claims constant time and has not been examined fails here,
/// until `cargo xtask constant-time` has been run.
fn claims_have_been_proved() -> Result<(), Failed> {
    if !cfg!(target_arch = "x86_64") {
        println!("skipped: constant time is proved on x86-64");
        return Ok(());
    }
    let proofs = results::read();
    let unproved: Vec<String> = combination::all()
        .iter()
        .filter_map(|(row, specs)| {
            let claims = prove::claims(specs, row.backend());
            let reason = match proofs.get(row) {
                Some(proof) => proof.refutation(claims)?,
                None => "has not been examined: run `cargo xtask constant-time`".to_owned(),
            };
            Some(format!("{row}: {reason}"))
        })
        .collect();
    match unproved.is_empty() {
        true => Ok(()),
        false => Err(unproved.join("\n").into()),
    }
}

/// One of every kind: constant-time ones have none, and the tables of the
/// others are found.
fn no_secret_decides_a_branch_or_an_address() -> Result<(), Failed> {
    agree(Scope::Known, flow::findings(Scope::Known, ""))
}

/// A few, by every backend, those that valgrind runs as well.
fn no_secret_changes_a_trace() -> Result<(), Failed> {
    agree(Scope::Few, trace::findings(Scope::Few, ""))
}

/// Whether claims agree with the findings. Rows that were not run are left out.
fn agree(scope: Scope, findings: Result<Findings, Silence>) -> Result<(), Failed> {
    let findings = match findings {
        Ok(findings) => findings,
        Err(Silence::Absent(what)) => {
            println!("skipped: {what}");
            return Ok(());
        }
        Err(Silence::Failed(what)) => return Err(what.into()),
    };
    let mut wrong = Vec::new();
    for (row, specs) in scope.combinations() {
        let Some(found) = findings.get(&row.to_string()) else {
            continue;
        };
        let claims = prove::claims(&specs, row.backend());
        if claims != found.is_none() {
            let found = found.as_deref().unwrap_or("nothing");
            wrong.push(format!("{row}: constant time: {claims}; found: {found}"));
        }
    }
    println!("{} combinations", findings.len());
    match wrong.is_empty() && !findings.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n").into()),
    }
}
