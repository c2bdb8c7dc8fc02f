//! Constant time: proved, and held against what ciphers claim.
//!
//! ```text
//! prove [FILTER]    every combination of cipher, mode, IV generator and
//!                   backend, under valgrind and by dudect's test; writes
//!                   constant_time.tsv (`cargo xtask constant-time`)
//! flow SCOPE FILTER what valgrind is given to run
//! ```
//!
//! Without either, two tests: no claim without a row of constant_time.tsv that
//! allows it, and no secret-dependent branch or address in one combination of
//! every kind, by valgrind where it is installed. This is a program of its own
//! because it is run under valgrind, which the test harness is too much for.

mod combination;
mod flow;
mod memcheck;
mod prove;
mod results;
mod timing;
mod welch;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["flow", scope, filter] => flow::watched(scope, filter),
        ["prove"] => return prove::run(""),
        ["prove", filter] => return prove::run(filter),
        _ => {
            let tests = vec![
                Trial::test("claims_have_been_proved", claims_have_been_proved),
                Trial::test("false_claims_are_refuted", || {
                    results::false_claims_are_refuted();
                    Ok(())
                }),
                Trial::test(
                    "no_secret_decides_a_branch_or_an_address",
                    no_secret_decides_a_branch_or_an_address,
                ),
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
/// others are found, or else valgrind would see nothing at all.
fn no_secret_decides_a_branch_or_an_address() -> Result<(), Failed> {
    let errors = match flow::errors(flow::Scope::Known, "") {
        Ok(errors) => errors,
        Err(flow::Silence::Absent) => {
            println!("skipped: no valgrind for this machine: apt-get install valgrind");
            return Ok(());
        }
        Err(flow::Silence::Failed(what)) => return Err(what.into()),
    };
    let mut wrong = Vec::new();
    for (row, specs) in combination::known() {
        let Some(errors) = errors.get(&row.to_string()) else {
            continue;
        };
        let claims = prove::claims(&specs, row.backend());
        if claims != (*errors == 0) {
            wrong.push(format!("{row}: constant time: {claims}, errors: {errors}"));
        }
    }
    println!("{} combinations under valgrind", errors.len());
    match wrong.is_empty() && !errors.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n").into()),
    }
}
