//! The machines, with the runs that each of them measured.

use super::stored::{Run, Runs};
use super::{heads, table};

/// A row for each machine, program and day.
pub(super) fn machines(runs: &Runs) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for run in runs.all() {
        let mut row = described(run);
        let measured = format!("`{}` {}", run.name, noise(run));
        match rows.iter_mut().find(|known| known.starts_with(&row)) {
            Some(known) => {
                if let Some(all) = known.last_mut() {
                    *all = [all.as_str(), &measured].join("; ");
                }
            }
            None => {
                row.push(measured.trim_end().to_owned());
                rows.push(row);
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    // One machine is described once.
    for at in (1..rows.len()).rev() {
        if rows[at][0] == rows[at - 1][0] {
            "the same".clone_into(&mut rows[at][0]);
        }
    }
    let heads = heads([
        "machine",
        "program",
        "date",
        "runs, with the noise floor of each",
    ]);
    table(&heads, heads.len(), &rows)
}

/// Machine, program and day of a run.
fn described(run: &Run) -> Vec<String> {
    let machine = match run.is_simulated() {
        true => "virtual time".to_owned(),
        false => {
            let cores = format!("{} cores", run.at("/host/cores"));
            let [cpu, os, kernel, hypervisor] = ["cpu", "os", "kernel", "hypervisor"]
                .map(|part| run.text(&format!("/host/{part}")).to_owned());
            let parts = [cpu, instructions(run), cores, hypervisor, os, kernel];
            let parts = parts.into_iter().filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join(", ")
        }
    };
    // The day of the program's commit says less than that of the run.
    let program = run.text("/host/versions/cryptmark");
    let program = program
        .rsplit_once(' ')
        .map_or(program, |(program, _)| program);
    let day = run.text("/started").split('T').next().unwrap_or_default();
    vec![machine, program.replace('(', ""), day.to_owned()]
}

/// The instruction sets that matter most to the kernels.
fn instructions(run: &Run) -> String {
    let has = |feature: &str| {
        let features = run.at("/host/features").as_array();
        features.is_some_and(|all| all.iter().any(|one| one == feature))
    };
    let known = [
        ("avx512vbmi", "AVX-512 VBMI"),
        ("vaes", "VAES"),
        ("gfni", "GFNI"),
        ("aes", "AES-NI"),
        ("avx2", "AVX2"),
    ];
    let found = known.into_iter().filter(|(feature, _)| has(feature));
    let names: Vec<&str> = found.map(|(_, name)| name).take(3).collect();
    names.join(", ")
}

/// A system against itself, with the 95 % interval. Virtual time has no noise.
fn noise(run: &Run) -> String {
    let of = |what: &str| run.at(&format!("/noise/aa_ratio/{what}")).as_f64();
    match (of("median"), of("low"), of("high")) {
        (Some(median), Some(low), Some(high)) if !run.is_simulated() => {
            format!("{median:.3} ({low:.3}–{high:.3})")
        }
        _ => String::new(),
    }
}
