//! Ciphers and key derivations as `cryptsetup benchmark` prints them, line by
//! line: who knows that table finds everything where it was.

use crate::ciphers;
use crate::figure;
use crate::group;
use crate::html::table::{self, Cell};
use crate::text::Style;
use lab::record::{Run, Trial};
use maud::{Markup, html};

/// Bytes of a MiB, in which cryptsetup counts.
const MIB: f64 = 1_048_576.0;

/// Whether a run has both, and nothing else.
pub(crate) fn is_benchmark(run: &Run) -> bool {
    ciphers::is_bare(run) && run.trials.iter().any(|trial| trial.kdf.is_some())
}

/// The lines of the derivations, and the table of each system's ciphers.
pub(crate) fn text(run: &Run, style: &Style) -> Vec<String> {
    let mut lines = vec!["# In memory; medians of the repetitions.".to_owned()];
    lines.extend(run.trials.iter().filter_map(derivation));
    let mut ciphers: Vec<&Trial> = run
        .trials
        .iter()
        .filter(|trial| trial.op == "encrypt" && !group::is_again(trial))
        .collect();
    // Modes one after the other, short keys first, ciphers as the plan has them.
    ciphers.sort_by_key(|trial| (trial.cipher.as_deref().map(mode), trial.key_bits));
    let mut systems: Vec<&str> = Vec::new();
    for trial in &ciphers {
        if !systems.contains(&trial.system.as_str()) {
            systems.push(&trial.system);
        }
    }
    for system in &systems {
        if systems.len() > 1 {
            lines.push(format!("# {system}"));
        }
        lines.push("#     Algorithm |       Key |      Encryption |      Decryption".to_owned());
        let of_system = ciphers.iter().filter(|trial| trial.system == *system);
        lines.extend(of_system.map(|trial| row(run, trial)));
    }
    lines.iter().map(|line| style.text(line)).collect()
}

/// The same lines, as they are.
pub(crate) fn markdown(run: &Run) -> String {
    let lines: Vec<String> = text(run, &Style::default())
        .iter()
        .map(|line| line.replace('`', "'"))
        .collect();
    format!("\n```\n{}\n```\n", lines.join("\n"))
}

/// The derivations as a section of the page, whose ciphers have sections of
/// their own.
pub(crate) fn html(run: &Run) -> Markup {
    let number = |value: f64| Cell::number(figure::grouped(&format!("{value:.0}")), value);
    let unknown = || Cell::known(figure::UNKNOWN.to_owned(), None);
    let row = |trial: &Trial| {
        let kdf = trial.kdf.as_ref()?;
        let iterations = f64::from(kdf.iterations);
        let (name, rate, passes) = match &kdf.hash {
            Some(hash) => {
                let rate = number(iterations * trial.iops.median);
                (format!("PBKDF2-{hash}"), rate, unknown())
            }
            None => (kdf.name.clone(), unknown(), number(iterations)),
        };
        let memory = match kdf.memory_kib {
            0 => unknown(),
            kib => Cell::number(figure::bytes(u64::from(kib) * 1024), f64::from(kib)),
        };
        let cells = [
            Cell::known(
                format!("{} bit", trial.key_bits?),
                trial.key_bits.map(f64::from),
            ),
            rate,
            passes,
            memory,
            number(f64::from(kdf.lanes)),
            kdf.calibrated_ms
                .map_or_else(unknown, |ms| number(f64::from(ms))),
        ];
        let columns = COLUMNS.into_iter().skip(1);
        Some(table::row(trial, None, html! { (name) }, columns, &cells))
    };
    html! {
        section {
            h3 { "Key derivations" }
            div class="scroll" { table class="ciphers sorts" {
                (table::head(COLUMNS))
                tbody { @for row in run.trials.iter().filter_map(row) { (row) } }
            } }
        }
    }
}

const COLUMNS: [&str; 7] = [
    "Derivation",
    "Key",
    "Iterations a second",
    "Passes",
    "Memory",
    "Threads",
    "Asked for, ms",
];

/// `PBKDF2-sha256    2307736 iterations per second for 256-bit key`.
fn derivation(trial: &Trial) -> Option<String> {
    let kdf = trial.kdf.as_ref()?;
    let bits = trial.key_bits?;
    Some(match &kdf.hash {
        Some(hash) => format!(
            "PBKDF2-{hash:<9} {:>8.0} iterations per second for {bits}-bit key",
            f64::from(kdf.iterations) * trial.iops.median
        ),
        None => {
            let requested = kdf
                .calibrated_ms
                .map_or_else(String::new, |ms| format!(" (requested {ms} ms time)"));
            format!(
                "{:<10} {:>4} iterations, {:>5} memory, {} parallel threads (CPUs) for {bits}-bit key{requested}",
                kdf.name, kdf.iterations, kdf.memory_kib, kdf.lanes
            )
        }
    })
}

/// `        aes-cbc        128b      1023.0 MiB/s      3343.2 MiB/s`.
fn row(run: &Run, encrypt: &Trial) -> String {
    let notation = encrypt.cipher.as_deref().unwrap_or_default();
    let name = notation.strip_suffix("-plain64").unwrap_or(notation);
    let is_other_way = |trial: &&Trial| {
        trial.op == "decrypt" && !group::is_again(trial) && ciphers::asked_alike(trial, encrypt)
    };
    let decrypt = run.trials.iter().find(is_other_way);
    let rate = |trial: Option<&Trial>| match trial {
        Some(trial) => format!("{:.1} MiB/s", trial.throughput_mb_s.median * 1e6 / MIB),
        None => "N/A".to_owned(),
    };
    format!(
        "{name:>15}{:>11}b{:>18}{:>18}",
        encrypt.key_bits.unwrap_or_default(),
        rate(Some(encrypt)),
        rate(decrypt)
    )
}

/// `cbc`, which cryptsetup lists first.
fn mode(notation: &str) -> &str {
    notation.split('-').nth(1).unwrap_or_default()
}
