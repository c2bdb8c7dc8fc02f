//! Ciphers and key derivations as `cryptsetup benchmark` prints them, line by
//! line: who knows that table finds everything where it was.

use crate::ciphers;
use crate::group;
use crate::text::Style;
use lab::record::{Run, Trial};

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
