//! The cells of a run as people compare them: one group a workload, plain
//! first, then every encrypted system with a label that tells it from the rest.

use crate::figure;
use lab::record::{Life, Run, Tier, Trial, TrimPolicy};

/// The cells of one workload on one device.
pub(crate) struct Group<'a> {
    /// The plain system first, then the order of the plan; A/A cells are not here.
    pub rows: Vec<Row<'a>>,
    /// The plain system measured again: the noise floor of this workload.
    pub again: Option<&'a Trial>,
    /// Where the bytes lived, when the run has several such places.
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
    matches!(system, "none" | "lab:none")
}

/// True for the system that others are compared with.
pub(crate) fn is_plain(trial: &Trial) -> bool {
    is_unencrypted(&trial.system) && !is_again(trial)
}

/// The groups of `trials`, in the order in which their workloads appear.
pub(crate) fn groups(trials: &[Trial]) -> Vec<Group<'_>> {
    let mut members: Vec<Vec<&Trial>> = Vec::new();
    for trial in trials {
        match members
            .iter_mut()
            .find(|group| same_workload(group[0], trial))
        {
            Some(group) => group.push(trial),
            None => members.push(vec![trial]),
        }
    }
    let several = trials.iter().any(|trial| place(trial) != place(&trials[0]));
    members
        .into_iter()
        .map(|members| {
            let place = several.then(|| place(members[0]));
            let (again, mut cells): (Vec<&Trial>, Vec<&Trial>) =
                members.into_iter().partition(|trial| is_again(trial));
            cells.sort_by_key(|trial| !is_plain(trial));
            let labels = labels(&cells);
            Group {
                rows: cells
                    .into_iter()
                    .zip(labels)
                    .map(|(trial, label)| Row { trial, label })
                    .collect(),
                again: again.first().copied(),
                place,
            }
        })
        .collect()
}

/// What tells lives of one drive apart that are not compared: `80 % full, 7.4 % spare`, and
/// what is not usual. A hundred seeds may be some of more.
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

/// The same setting, whatever the policy.
pub(crate) fn lives_alike(a: &Trial, b: &Trial) -> bool {
    let setting = |life: &Life| (life.fill, life.over_provisioning, life.first_seed);
    match (a.life(), b.life()) {
        (Some(a), Some(b)) => setting(a) == setting(b) && a.gc == b.gc,
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// The same system with the same cipher and format, on as many cores.
pub(crate) fn is_same_setup(a: &Trial, b: &Trial) -> bool {
    is_same_but_cores(a, b) && a.cores() == b.cores()
}

/// The same system with the same cipher and format, and in the kernel with the same options.
pub(crate) fn is_same_but_cores(a: &Trial, b: &Trial) -> bool {
    let options = |trial: &Trial| {
        let backend = trial.backend.clone();
        backend.filter(|_| trial.system.ends_with("dm-crypt"))
    };
    let setup = |trial: &Trial| (trial.key_bits, trial.sector_bytes, options(trial));
    (&a.system, &a.cipher, &a.format) == (&b.system, &b.cipher, &b.format) && setup(a) == setup(b)
}

fn same_workload(a: &Trial, b: &Trial) -> bool {
    let workload = |trial: &Trial| {
        (
            trial.tier,
            trial.workload.clone(),
            trial.op.clone(),
            trial.block_bytes,
            trial.queue_depth,
            trial.threads,
            trial.fs().map(str::to_owned),
            trial.cold,
            trial.device.size,
        )
    };
    lives_alike(a, b) && workload(a) == workload(b) && place(a) == place(b)
}

/// The device as a title names it: two of them in one run must not share one.
fn place(trial: &Trial) -> String {
    let device = &trial.device;
    let name = device.model.as_ref().unwrap_or(&device.kind);
    format!("{name} {}", device.cache)
}

impl<'a> Group<'a> {
    /// Any cell of the group: all share workload and device.
    pub(crate) fn trial(&self) -> Option<&Trial> {
        self.rows.first().map(|row| row.trial).or(self.again)
    }

    /// The same with plain and at most `most` other cells, the fastest ones, in
    /// the order they had.
    pub(crate) fn fastest(&self, most: usize) -> Group<'a> {
        let speed = |row: &Row<'_>| match row.trial.tier {
            Tier::Fs => -row.trial.latency_us.p50,
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
            again: self.again,
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
            (Tier::Block, depth, 0 | 1) => format!(", depth {depth}"),
            (Tier::Block, depth, threads) => format!(", depth {depth} × {threads} threads"),
            (Tier::Fs, _, 0 | 1) => of_a_file_system(trial),
            (Tier::Fs, _, jobs) => format!("{}, {jobs} jobs", of_a_file_system(trial)),
            (_, _, 0 | 1) => String::new(),
            (_, _, threads) => format!(", {threads} threads"),
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
        let blocks = format!("{} blocks", figure::bytes(trial.block_bytes));
        match (trial.tier, trial.block_bytes) {
            (Tier::Fs, _) if ["write", "read", "copy"].contains(&trial.op.as_str()) => blocks,
            (Tier::Fs, _) => String::new(),
            (_, 0) => trial.op.clone(),
            _ => format!("{}, {blocks}", trial.op),
        }
    }
}

/// `, 32 MiB, cold`: what tells two cells of one operation apart.
fn of_a_file_system(trial: &Trial) -> String {
    let cold = if trial.cold { "cold" } else { "warm" };
    format!(", {}, {cold}", figure::bytes(trial.device.size))
}

/// A label for each cell; what a plain label leaves equal is told apart by
/// notation, format, sector size and backend, as far as those differ.
pub(crate) fn labels(cells: &[&Trial]) -> Vec<String> {
    let mut labels: Vec<String> = cells.iter().map(|trial| label(trial)).collect();
    let details: [fn(&Trial) -> Option<String>; 5] = [
        |trial| trial.cipher.clone(),
        |trial| trial.key_bits.map(|bits| format!("{bits}-bit key")),
        |trial| trial.format.clone(),
        |trial| trial.sector_bytes.map(|bytes| format!("{bytes} B sectors")),
        |trial| trial.backend.clone(),
    ];
    for detail in details {
        let before = labels.clone();
        for (at, label) in labels.iter_mut().enumerate() {
            let differs = (0..cells.len()).any(|other| {
                before[other] == before[at] && detail(cells[other]) != detail(cells[at])
            });
            if let Some(detail) = detail(cells[at]).filter(|_| differs) {
                label.push_str(", ");
                label.push_str(&detail);
            }
        }
    }
    labels
}

/// The cell as people call it, alone: `AES-256 XTS, dm-crypt`, `AES-256 XTS, builtin, 2 cores`.
pub(crate) fn label(trial: &Trial) -> String {
    let mut name = match (trial.life(), &trial.cipher) {
        // The drive stands in the title of its group.
        (Some(life), Some(cipher)) => {
            let cipher = figure::cipher(cipher, trial.key_bits);
            format!("{cipher}, {}", policy(life))
        }
        _ => name(trial.cipher.as_deref(), trial.key_bits, &trial.system),
    };
    if trial.cores() > 1 {
        name += &format!(", {} cores", trial.cores());
    }
    match is_again(trial) {
        true => format!("{name} again (A/A)"),
        false => name,
    }
}

/// A system with its cipher as people call them.
pub(crate) fn name(cipher: Option<&str>, key_bits: Option<u32>, system: &str) -> String {
    match (cipher, system) {
        (Some(cipher), system) => format!("{}, {system}", figure::cipher(cipher, key_bits)),
        (None, "none") => "plain".to_owned(),
        (None, "lab:none") => "plain, lab kernel".to_owned(),
        (None, system) => system.to_owned(),
    }
}

/// Remarks on the run, then those on cells; where more than two cells share a
/// kind of remark (the words before its colon), the first stands for all.
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
                label(first),
                cells.len() - 1
            ));
        } else {
            for (trial, text) in cells {
                warnings.push(format!("{} · {}: {text}", trial.workload, label(trial)));
            }
        }
    }
    warnings.dedup();
    warnings
}
