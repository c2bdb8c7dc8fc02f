//! The output of `cryptmark run --dry-run` for a plan on storage or in memory.

use lab::plan::Plan;
use lab::record::Tier;
use lab::target::{Encryption, SHARED_FROM, System};
use lab::workload::Workload;
use std::fmt::Write as _;
use std::path::Path;

/// A system with a cipher, as the plan asks for it.
struct Asked {
    name: String,
    /// Of the encryption, bytes.
    sector: Option<u64>,
    by_engine: bool,
}

/// The output of `--dry-run`.
pub(super) fn describe(plan: &Plan, at: &Path) -> String {
    let asked = asked(plan);
    // Each drive has its own plain side, and what is not simulated another one.
    let drives = plan.systems.iter().filter(|s| s.drive().is_some()).count();
    let places = drives + usize::from(!plan.is_simulated());
    let names: Vec<&str> = asked.iter().map(|asked| asked.name.as_str()).collect();
    let listed = names.join(", ");
    let (again, on) = match plan.is_bare() {
        true => (1, format!("{listed}; the first of these twice")),
        false => (2 * places, format!("plain (twice), {listed}")),
    };
    let engine = System::Builtin.as_str();
    let several = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    // The engine's cells a second time, of large requests.
    let shared = match plan.all_cores && several && !plan.is_simulated() {
        true => asked.iter().filter(|asked| asked.by_engine).count(),
        false => 0,
    };
    let cells = |workload: &Workload| {
        // A bare cipher takes whole sectors.
        let takes = |asked: &&Asked| {
            let sector = asked.sector.filter(|_| plan.is_bare());
            sector.is_none_or(|sector| workload.block_bytes().is_multiple_of(sector))
        };
        let alone = asked.iter().filter(takes).count();
        match workload.block_bytes() >= SHARED_FROM {
            true => alone + again + shared,
            false => alone + again,
        }
    };
    let repetitions = plan.repetitions as usize;
    let visits = repetitions * plan.workloads.iter().map(cells).sum::<usize>();
    let seconds = |workload: &Workload| Some(workload.seconds? * cells(workload) as f64);
    let seconds: f64 = plan.workloads.iter().filter_map(seconds).sum();
    let seconds = seconds * f64::from(plan.repetitions);
    let mut text = format!("plan {}: {}\n", plan.name, plan.title);
    let size = plan.size.display().si();
    let place = at.display();
    let _ = match plan.is_simulated() {
        _ if plan.tier == Tier::Cipher => writeln!(text, "{size} of memory"),
        true => writeln!(text, "the first {size} of simulated drives"),
        false if at.exists() && !at.is_dir() => {
            writeln!(text, "the first {size} of {place}, overwritten")
        }
        false => writeln!(
            text,
            "{size} at {place}, filled first and removed afterwards"
        ),
    };
    for workload in &plan.workloads {
        let _ = writeln!(
            text,
            "  {}: {} blocks, depth {}, {} thread(s)",
            workload.name,
            workload.block_size.display().iec(),
            workload.queue_depth,
            workload.threads
        );
    }
    let _ = writeln!(text, "on: {on}");
    if shared > 0 {
        let _ = writeln!(text, "large requests by {engine} also on all cores");
    }
    if let Some(until) = &plan.until {
        let _ = writeln!(
            text,
            "in slices, until every cost is known to within {} percentage points, for {} s at most",
            until.precision, until.seconds
        );
        return text;
    }
    let _ = match plan.is_simulated() {
        true => writeln!(text, "{visits} visits in virtual time"),
        false => writeln!(
            text,
            "{visits} visits, at least {seconds:.0} s of measuring"
        ),
    };
    text
}

/// The systems, each with every cipher, key size, sector size and format that it is measured with.
fn asked(plan: &Plan) -> Vec<Asked> {
    let several_keys = plan
        .key_size
        .as_ref()
        .is_some_and(|sizes| sizes.all().len() > 1);
    let several_sectors = plan.sector_size.all().len() > 1;
    let sizes = |encryption: &Encryption| {
        let key = several_keys.then(|| format!("{} bit", encryption.key_bits));
        let bytes = encryption.sector_size.bytes();
        let sector = several_sectors.then(|| format!("sectors of {bytes} B"));
        let sizes: Vec<String> = key.into_iter().chain(sector).collect();
        match sizes.is_empty() {
            true => String::new(),
            false => format!(" ({})", sizes.join(", ")),
        }
    };
    let mut asked = Vec::new();
    for system in &plan.systems {
        let name = system.as_str();
        let by_engine = *system == System::Builtin;
        if system.directory().is_some() {
            asked.push(Asked {
                name: name.to_owned(),
                sector: None,
                by_engine,
            });
            continue;
        }
        if !system.takes_ciphers() {
            continue;
        }
        let formats = match by_engine && !plan.formats.is_empty() {
            true => plan
                .formats
                .iter()
                .map(|format| format!("{name} {}", format.name()))
                .collect(),
            false => vec![name.to_owned()],
        };
        for cipher in &plan.ciphers {
            let one = Plan {
                ciphers: vec![cipher.clone()],
                ..plan.clone()
            };
            // The caller has validated the plan.
            for encryption in one.encryptions(None).unwrap_or_default() {
                let of = |format: &String| Asked {
                    name: format!("{format} {cipher}{}", sizes(&encryption)),
                    sector: Some(encryption.sector_size.bytes() as u64),
                    by_engine,
                };
                asked.extend(formats.iter().map(of));
            }
        }
    }
    asked
}
