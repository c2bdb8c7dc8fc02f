//! What an experiment on ciphers or devices would do, in words: the output of `--dry-run`, and what
//! the window shows before it begins.

use super::encryptions::listed;
use super::{Sizes, Until};
use crate::system::{Backend, Encryption, SystemId, VolumeFormat};
use crate::workload::Workload;
use std::fmt::Write as _;

/// A system with a cipher, as the plan asks for it.
pub(super) struct Asked {
    name: String,
    /// Of the encryption, bytes.
    pub(super) sector: Option<u64>,
    pub(super) by_engine: bool,
}

/// The systems, each with every cipher, key size, sector size and format that it is measured with;
/// `takes` says which take ciphers.
pub(super) fn asked(
    systems: &[SystemId],
    takes: fn(&SystemId) -> bool,
    formats: &[VolumeFormat],
    encryptions: &[Encryption],
    sizes: (Option<&Sizes>, &Sizes),
) -> Vec<Asked> {
    let mut asked = Vec::new();
    for system in systems {
        let name = system.as_str();
        let by_engine = *system == SystemId::Builtin;
        if system.directory().is_some() {
            asked.push(Asked {
                name: name.to_owned(),
                sector: None,
                by_engine,
            });
        }
        if !takes(system) {
            continue;
        }
        let names = match by_engine && !formats.is_empty() {
            true => formats
                .iter()
                .map(|format| format!("{name} {}", format.name()))
                .collect(),
            false => vec![name.to_owned()],
        };
        for encryption in encryptions {
            asked.extend(names.iter().map(|name| Asked {
                name: format!("{name} {}", cipher(encryption, sizes)),
                sector: Some(encryption.sector_size.bytes() as u64),
                by_engine,
            }));
        }
    }
    asked
}

/// A cipher with the sizes that were chosen for it.
fn cipher(encryption: &Encryption, (keys, sectors): (Option<&Sizes>, &Sizes)) -> String {
    let bytes = encryption.sector_size.bytes();
    let key = keys.map(|_| format!("{} bit", encryption.key_bits));
    let several = sectors.all().len() > 1;
    let sector = several.then(|| format!("sectors of {bytes} B"));
    let sizes: Vec<String> = key.into_iter().chain(sector).collect();
    match sizes.is_empty() {
        true => encryption.spec.to_string(),
        false => format!("{} ({})", encryption.spec, sizes.join(", ")),
    }
}

/// Ciphers with their sizes.
pub(super) fn ciphers(encryptions: &[Encryption], sizes: (Option<&Sizes>, &Sizes)) -> String {
    let all: Vec<String> = encryptions.iter().map(|each| cipher(each, sizes)).collect();
    all.join(", ")
}

/// The names of what is asked.
pub(super) fn names(asked: &[Asked]) -> String {
    let names: Vec<&str> = asked.iter().map(|asked| asked.name.as_str()).collect();
    names.join(", ")
}

/// Workloads, a line each.
pub(super) fn workloads(workloads: &[Workload], text: &mut String) {
    for workload in workloads {
        let length = match (workload.seconds, workload.bytes) {
            (_, Some(bytes)) => bytes.display().si().to_string(),
            (seconds, None) => format!("{} s", seconds.unwrap_or(1.0)),
        };
        let _ = writeln!(
            text,
            "  {}: {} blocks, depth {}, {} thread(s), {length}{}",
            workload.name,
            workload.block_size.display().iec(),
            workload.queue_depth,
            workload.threads,
            if workload.fsync {
                ", each write stored"
            } else {
                ""
            }
        );
    }
}

/// How the engine encrypts, as far as that was chosen.
pub(super) fn engine(cores: u32, backend: Option<Backend>, sectors: &Sizes, text: &mut String) {
    let _ = writeln!(text, "in sectors of {} bytes", listed(sectors));
    if cores > 1 {
        let _ = writeln!(text, "on {cores} cores");
    }
    if let Some(backend) = backend {
        let _ = writeln!(text, "the engine's backend is {backend}");
    }
}

/// The number of visits or the end of the measurement, if `cells` says how many cells a workload
/// has.
pub(super) fn length(
    workloads: &[Workload],
    repetitions: u32,
    until: Option<&Until>,
    is_simulated: bool,
    cells: impl Fn(&Workload) -> usize,
) -> String {
    if let Some(until) = until {
        return format!("{}\n", until.describe());
    }
    let visits = repetitions as usize * workloads.iter().map(&cells).sum::<usize>();
    let seconds = |workload: &Workload| Some(workload.seconds? * cells(workload) as f64);
    let seconds: f64 = workloads.iter().filter_map(seconds).sum();
    let seconds = seconds * f64::from(repetitions);
    match is_simulated {
        true => format!("{visits} visits in virtual time\n"),
        false => format!("{visits} visits, at least {seconds:.0} s of measuring\n"),
    }
}
