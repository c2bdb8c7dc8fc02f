//! The cells of a run as people compare them: one group a workload, plain
//! first, then every encrypted system with a label that tells it from the rest.

use crate::figure;
use lab::file_system::Kernel;
use lab::record::{Life, Load, Overhead, Place, Run, Setup, Tier, Trial, TrimPolicy};
use std::collections::{BTreeMap, BTreeSet};

/// The cells of one workload on one device.
pub(crate) struct Group<'a> {
    /// The plain system first, then the order of the plan; A/A cells are not here.
    pub rows: Vec<Row<'a>>,
    /// The plain system measured again: the noise floor of this workload.
    pub again: Option<Row<'a>>,
    /// The place of the bytes, when the run has several such places.
    place: Option<String>,
}

/// One cell of a group.
#[derive(Clone)]
pub(crate) struct Row<'a> {
    pub trial: &'a Trial,
    /// `plain` or the cipher, then the system.
    pub label: String,
}

/// True for a second measurement of the same: nothing else is compared with
/// its own system.
pub(crate) fn is_again(trial: &Trial) -> bool {
    let overhead = trial.overhead.as_ref();
    overhead.is_some_and(|overhead| overhead.against == trial.system)
}

/// True for the systems that encrypt nothing, here and in the lab kernel.
pub(crate) fn is_unencrypted(system: &str) -> bool {
    Kernel::of(system).1 == "none"
}

/// True for the system that others are compared with.
pub(crate) fn is_plain(trial: &Trial) -> bool {
    is_unencrypted(&trial.system) && !is_again(trial)
}

/// The groups of `trials`, in the order in which their workloads appear.
pub(crate) fn groups(trials: &[Trial]) -> Vec<Group<'_>> {
    let names = Names::of(trials);
    let mut places: BTreeMap<Load, usize> = BTreeMap::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for trial in trials {
        let load = trial.load();
        let row = Row {
            trial,
            label: names.cell(trial),
        };
        let at = *places.entry(load).or_insert_with_key(|load| {
            groups.push(Group {
                rows: Vec::new(),
                again: None,
                place: names.place(load),
            });
            groups.len() - 1
        });
        match is_again(trial) {
            true => groups[at].again = groups[at].again.take().or(Some(row)),
            false => groups[at].rows.push(row),
        }
    }
    for group in &mut groups {
        group.rows.sort_by_key(|row| !is_plain(row.trial));
    }
    groups
}

/// The settings that distinguish lives of one drive that are not compared: `80 % full, 7.4 %
/// spare`, and any unusual setting. From a hundred seeds on it names the seeds, because these may
/// be a part of more.
pub(crate) fn setting(life: &Life) -> String {
    let percent = |share: f64| {
        let text = format!("{:.1}", share * 100.0);
        text.trim_end_matches(".0").to_owned()
    };
    let mut text = format!(
        "{} % full, {} % spare",
        percent(life.fill),
        percent(life.over_provisioning)
    );
    if life.gc != "greedy" {
        text = format!("{text}, {}", life.gc);
    }
    match life.write_amplification.n {
        0..100 => text,
        n => {
            let last = life.first_seed + u64::from(n) - 1;
            format!("{text}, seeds {}–{last}", life.first_seed)
        }
    }
}

/// How a volume is made, for people.
pub(crate) fn policy(life: &Life) -> String {
    match life.policy {
        TrimPolicy::Plain => "not encrypted".to_owned(),
        TrimPolicy::Pass => "TRIM passed".to_owned(),
        TrimPolicy::Block => "TRIM blocked".to_owned(),
        TrimPolicy::Filled => "TRIM blocked, filled with noise".to_owned(),
        TrimPolicy::Unpartitioned => {
            let percent = life.unpartitioned * 100.0;
            format!("filled, {percent:.0} % left unpartitioned")
        }
    }
}

impl<'a> Group<'a> {
    /// Any cell of the group: all share workload and device.
    pub(crate) fn trial(&self) -> Option<&Trial> {
        let first = self.rows.first().or(self.again.as_ref());
        first.map(|row| row.trial)
    }

    /// The difference of the plain system from itself.
    pub(crate) fn floor(&self) -> Option<&'a Overhead> {
        self.again.as_ref()?.trial.overhead.as_ref()
    }

    /// The same with plain and at most `most` other cells, the fastest ones, in
    /// the order they had.
    pub(crate) fn fastest(&self, most: usize) -> Group<'a> {
        let speed = |row: &Row<'_>| match row.trial.tier {
            Tier::Fs => -row.trial.median_us().unwrap_or(f64::INFINITY),
            _ => row.trial.throughput_mb_s.median,
        };
        let others = self.rows.iter().filter(|row| !is_plain(row.trial));
        let mut speeds: Vec<f64> = others.map(speed).collect();
        speeds.sort_by(|a, b| b.total_cmp(a));
        let slowest = speeds.get(most.saturating_sub(1)).copied();
        let mut room = most;
        let mut fits = |row: &&Row<'a>| {
            let plain = is_plain(row.trial);
            let fast = slowest.is_none_or(|slowest| speed(row).total_cmp(&slowest).is_ge());
            let kept = plain || (fast && room > 0);
            room -= usize::from(kept && !plain);
            kept
        };
        Group {
            rows: self.rows.iter().filter(|row| fits(row)).cloned().collect(),
            again: self.again.clone(),
            place: self.place.clone(),
        }
    }

    /// The workload in few words: `rand-4k-read, depth 32 × 4`.
    pub(crate) fn title(&self) -> String {
        let Some(trial) = self.trial() else {
            return String::new();
        };
        let fs = trial
            .fs()
            .map_or_else(String::new, |fs| format!(" on {fs}"));
        let load = match (trial.tier, trial.queue_depth, trial.threads) {
            (Tier::Block, depth, threads) => {
                let known = |number: Option<u32>| {
                    number.map_or_else(|| "unknown".to_owned(), |number| number.to_string())
                };
                let depth = known(depth);
                match threads {
                    Some(0 | 1) => format!(", depth {depth}"),
                    threads => format!(", depth {depth} × {} threads", known(threads)),
                }
            }
            (Tier::Fs, _, None | Some(0 | 1)) => of_a_file_system(trial),
            (Tier::Fs, _, Some(jobs)) => format!("{}, {jobs} jobs", of_a_file_system(trial)),
            (_, _, None | Some(0 | 1)) => String::new(),
            (_, _, Some(threads)) => format!(", {threads} threads"),
        };
        let place = self
            .place
            .as_ref()
            .map_or_else(String::new, |place| format!(", {place}"));
        let Some(life) = trial.life() else {
            return format!("{}{fs}{load}{place}", trial.workload);
        };
        let drive = trial.device.model.as_deref().unwrap_or_default();
        format!("{}{load}, {drive}, {}", trial.workload, setting(life))
    }

    /// Operation and block size: `read, 4 KiB blocks`. The title of an operation on
    /// a file system says what it is, and few have blocks of their own.
    pub(crate) fn detail(&self) -> String {
        let Some(trial) = self.trial() else {
            return String::new();
        };
        let blocks = match trial.block_bytes {
            Some(bytes) => format!("{} blocks", figure::bytes(bytes)),
            None => "blocks of several or unknown sizes".to_owned(),
        };
        match (trial.tier, trial.block_bytes) {
            (Tier::Fs, _) if ["write", "read", "copy"].contains(&trial.op.as_str()) => blocks,
            (Tier::Fs, _) => String::new(),
            (_, Some(0)) => trial.op.clone(),
            _ if trial.fsync == Some(true) => {
                format!("{}, {blocks}, each write stored (fsync)", trial.op)
            }
            _ => format!("{}, {blocks}", trial.op),
        }
    }
}

/// `, 32 MiB, cold`: what tells two cells of one operation apart.
pub(crate) fn of_a_file_system(trial: &Trial) -> String {
    let cold = if trial.cold { "cold" } else { "warm" };
    format!(", {}, {cold}", figure::bytes(trial.device.size))
}

/// The names of the set-ups of one run or several, and whether there are several devices.
pub(crate) struct Names {
    setups: BTreeMap<Setup, String>,
    several_places: bool,
}

impl Names {
    /// Names the set-ups of `trials`. Equal short names are distinguished by notation, key, format,
    /// sector size and options, as far as those differ.
    pub(crate) fn of<'a>(trials: impl IntoIterator<Item = &'a Trial>) -> Self {
        let mut setups = BTreeMap::new();
        let mut places: Vec<Place> = Vec::new();
        for trial in trials {
            let place = trial.load().place;
            if !places.contains(&place) {
                places.push(place);
            }
            setups
                .entry(trial.setup())
                .or_insert_with(|| short_name(trial));
        }
        let details: [fn(&Setup) -> Option<String>; 5] = [
            |setup| setup.cipher.clone(),
            |setup| setup.key_bits.map(|bits| format!("{bits}-bit key")),
            |setup| setup.format.clone(),
            |setup| setup.sector_bytes.map(|bytes| format!("{bytes} B sectors")),
            |setup| setup.options.clone(),
        ];
        for detail in details {
            let mut values: BTreeMap<String, BTreeSet<Option<String>>> = BTreeMap::new();
            for (setup, name) in &setups {
                values
                    .entry(name.clone())
                    .or_default()
                    .insert(detail(setup));
            }
            for (setup, name) in &mut setups {
                let differs = values[name.as_str()].len() > 1;
                if let Some(detail) = detail(setup).filter(|_| differs) {
                    *name = format!("{name}, {detail}");
                }
            }
        }
        Self {
            setups,
            several_places: places.len() > 1,
        }
    }

    /// `AES-256 XTS, dm-crypt`, `AES-256 XTS, builtin, 2 cores`.
    pub(crate) fn setup(&self, trial: &Trial) -> String {
        let known = self.setups.get(&trial.setup());
        known.cloned().unwrap_or_else(|| short_name(trial))
    }

    /// The same, and whether it was measured again.
    pub(crate) fn cell(&self, trial: &Trial) -> String {
        let name = self.setup(trial);
        match is_again(trial) {
            true => format!("{name} again (A/A)"),
            false => name,
        }
    }

    /// The device's name for a title, if there are several devices.
    pub(crate) fn place(&self, load: &Load) -> Option<String> {
        let Place { kind, model, cache } = &load.place;
        let name = model.as_ref().unwrap_or(kind);
        self.several_places.then(|| format!("{name} {cache}"))
    }
}

/// A set-up as people call it, alone.
fn short_name(trial: &Trial) -> String {
    let name = match (trial.life(), &trial.cipher) {
        // The drive stands in the title of its group.
        (Some(life), Some(cipher)) => {
            let cipher = figure::cipher(cipher, trial.key_bits);
            format!("{cipher}, {}", policy(life))
        }
        _ => name(trial.cipher.as_deref(), trial.key_bits, &trial.system),
    };
    match trial.cores() {
        0 | 1 => name,
        cores => format!("{name}, {cores} cores"),
    }
}

/// A system with its cipher as people call them.
pub(crate) fn name(cipher: Option<&str>, key_bits: Option<u32>, system: &str) -> String {
    match (cipher, system) {
        (Some(cipher), system) => format!("{}, {system}", figure::cipher(cipher, key_bits)),
        (None, "none") => "plain".to_owned(),
        (None, "lab:none") => "plain, lab kernel".to_owned(),
        (None, "lab-6.1:none") => "plain, lab kernel 6.1".to_owned(),
        (None, system) => system.to_owned(),
    }
}

/// Remarks on the run, then those on cells. If more than two cells share a kind of remark (the
/// words before its colon), the first one stands for all.
pub(crate) fn warnings(run: &Run) -> Vec<String> {
    let mut kinds: Vec<(&str, Vec<(&Trial, &String)>)> = Vec::new();
    for trial in &run.trials {
        for warning in &trial.warnings {
            let kind = warning.split(':').next().unwrap_or(warning);
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, cells)) => cells.push((trial, warning)),
                None => kinds.push((kind, vec![(trial, warning)])),
            }
        }
    }
    let names = Names::of(&run.trials);
    let mut warnings = run.warnings.clone();
    for (_, cells) in kinds {
        let (first, text) = cells[0];
        let alike = cells.iter().all(|(_, other)| *other == text);
        if alike && cells.len() == run.trials.len() && cells.len() > 1 {
            // The same remark on every cell is a remark on the run.
            warnings.push(text.clone());
        } else if cells.len() > 2 {
            warnings.push(format!(
                "{} · {}, and {} other cells: {text}",
                first.workload,
                names.cell(first),
                cells.len() - 1
            ));
        } else {
            for (trial, text) in cells {
                warnings.push(format!(
                    "{} · {}: {text}",
                    trial.workload,
                    names.cell(trial)
                ));
            }
        }
    }
    warnings.dedup();
    warnings
}
