//! Ciphers and key derivations as `cryptsetup benchmark` prints them, line by
//! line, so that readers of that table find everything in its place.

use crate::ciphers;
use crate::document::{Block, Cell, Column, MARKDOWN, PAGE, Row, TERMINAL, Table};
use crate::figure;
use crate::group;
use lab::record::{Run, Trial};

/// Bytes of a MiB, in which cryptsetup counts.
const MIB: f64 = 1_048_576.0;

/// Whether a run has both, and nothing else.
pub(crate) fn is_benchmark(run: &Run) -> bool {
    ciphers::is_bare(run) && run.trials.iter().any(|trial| trial.kdf().is_some())
}

/// The lines on a terminal, before the tables of `ciphers` elsewhere.
pub(crate) fn section(run: &Run, ciphers: Vec<Block>) -> Vec<Block> {
    let mut blocks = vec![Block::verbatim(lines(run)).on(TERMINAL | MARKDOWN)];
    blocks.extend(ciphers.into_iter().map(|block| {
        let on = block.on & (MARKDOWN | PAGE);
        block.on(on)
    }));
    blocks.push(Block::heading(3, "Key derivations").on(PAGE));
    blocks.push(Block::table(derivations(run)).on(PAGE));
    blocks
}

/// The lines of the derivations, and the table of each system's ciphers.
fn lines(run: &Run) -> Vec<String> {
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
    lines
}

fn derivations(run: &Run) -> Table {
    let number = |value: f64| Cell::number(figure::grouped(&format!("{value:.0}")), value);
    let unknown = || Cell::known(figure::UNKNOWN.to_owned(), None);
    let row = |trial: &Trial| {
        let kdf = trial.kdf()?;
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
        let cells = vec![
            Cell::word(name),
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
        Some(Row::of(trial, cells))
    };
    let columns = [
        "key",
        "iterations a second",
        "passes",
        "memory",
        "threads",
        "asked for, ms",
    ];
    let columns = std::iter::once(Column::word("derivation")).chain(columns.map(Column::number));
    Table::plain(
        columns.collect(),
        run.trials.iter().filter_map(row).collect(),
    )
}

/// `PBKDF2-sha256    2307736 iterations per second for 256-bit key`.
fn derivation(trial: &Trial) -> Option<String> {
    let kdf = trial.kdf()?;
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
        trial.op == "decrypt"
            && !group::is_again(trial)
            && ciphers::is_same_but_direction(trial, encrypt)
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
