//! Tables of storage: the main job, file systems, key derivations and simulated drives.

use super::stored::{Run, Runs, Trial};
use super::{figure, heads, table};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a cell of a table of costs says of an encrypted trial.
type Cost = fn(Trial<'_>) -> String;

/// All sections on storage whose runs are there.
pub(super) fn sections(runs: &Runs) -> String {
    let sections = [main_job, file_systems, key_derivations, lives];
    let sections = sections.map(|section| section(runs));
    let found = sections.iter().filter(|section| !section.is_empty());
    found.map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// `cryptmark run` on a disk.
fn main_job(runs: &Runs) -> String {
    let Some(run) = runs.get("quick") else {
        return String::new();
    };
    let device = run.trials().next();
    let device = device.map(|trial| [trial.text("/device/kind"), trial.text("/device/model")]);
    let device = device.unwrap_or_default().join(" ");
    format!(
        "### Storage\n\nRate lost to encryption, with the 95 % interval. Device: {}.\n\n{}",
        device.trim(),
        costs(run.trials(), "workload", rate, lost)
    )
}

/// Operations on a file system.
fn file_systems(runs: &Runs) -> String {
    let Some(run) = runs.get("fs") else {
        return String::new();
    };
    format!(
        "### File systems\n\nTime of an operation on cold caches, as a multiple of plain.\n\n{}",
        costs(run.trials(), "operation", time, longer)
    )
}

fn time(trial: Trial<'_>) -> String {
    duration(trial.figure("/latency_us/p50"))
}

fn longer(trial: Trial<'_>) -> String {
    match trial.verdict() {
        "not distinguishable" | "too few" => "≈ plain".to_owned(),
        _ => format!("{} ×", figure(1.0 / trial.ratio())),
    }
}

/// The cost of encrypting files on each kernel, and the part of them that storage shows.
pub(super) fn file_encryption(runs: &Runs) -> String {
    let Some(run) = runs.get("file-encryption") else {
        return String::new();
    };
    let mut text = "Time of an operation on ext4 with cold caches, as a \
                    multiple of plain.\nThe lab kernels have ciphers in plain C: compare their \
                    columns only with each other.\n"
        .to_owned();
    let kernels = [
        ("this machine's kernel", ""),
        ("lab kernel 5.10", "lab:"),
        ("lab kernel 6.1", "lab-6.1:"),
    ];
    for (name, prefix) in kernels {
        let kernel = |system: &str| system.split_once(':').map_or("", |(lab, _)| lab).len();
        let is_its = |trial: &Trial<'_>| {
            let system = trial.text("/system");
            system.starts_with(prefix) && kernel(system) == prefix.len().saturating_sub(1)
        };
        let costs = costs(run.trials().filter(is_its), "operation", time, longer);
        text += &format!("\nOn {name}:\n\n{costs}");
    }
    text + "\n" + &exposures(run)
}

/// The part of files that storage shows without the key, and their space.
fn exposures(run: &Run) -> String {
    let parts = [
        "contents",
        "names",
        "name_lengths",
        "sizes",
        "times",
        "count",
        "tree",
    ];
    let word = |shown: &Value| match shown.as_str() {
        Some("hidden") => "–".to_owned(),
        Some(_) => "visible".to_owned(),
        None => format!("within {} B", shown["within"]),
    };
    let mut heads = vec!["system".to_owned()];
    heads.extend(parts.map(|part| part.replace('_', " ")));
    heads.extend(["1 KiB", "100 KiB", "10 MiB"].map(|size| format!("bytes for {size}")));
    let all = run.at("/exposures").as_array().cloned().unwrap_or_default();
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|seen| {
            let text = |key: &str| seen[key].as_str().unwrap_or_default();
            let name = match text("cipher") {
                "" => match text("system") {
                    "lab:none" => "plain, lab 5.10".to_owned(),
                    "lab-6.1:none" => "plain, lab 6.1".to_owned(),
                    _ => "plain".to_owned(),
                },
                cipher => format!("{} {cipher}", text("system")),
            };
            let space = (0..3).map(|at| seen["space"][at]["stored_bytes"].to_string());
            let shown = parts.map(|part| word(&seen[part]));
            [name].into_iter().chain(shown).chain(space).collect()
        })
        .collect();
    format!(
        "What the storage shows without the key, and the bytes that it keeps for a file:\n\n{}",
        table(&heads, 8, &rows)
    )
}

fn rate(trial: Trial<'_>) -> String {
    match trial.count("/block_bytes") {
        small if small < 1 << 16 => format!("{} IOPS", figure(trial.figure("/iops/median"))),
        _ => format!("{} MB/s", figure(trial.figure("/throughput_mb_s/median"))),
    }
}

/// The share of the plain rate that is lost: `3.1 % (2.0–5.3)`.
fn lost(trial: Trial<'_>) -> String {
    if ["not distinguishable", "too few"].contains(&trial.verdict()) {
        return "≈ 0".to_owned();
    }
    let of = |what: &str| 100.0 * (1.0 - trial.figure(&format!("/overhead/ratio/{what}")));
    let decimals = if of("median") < 10.0 { 1 } else { 0 };
    let figures = ["median", "high", "low"].map(of);
    let [median, low, high] = figures.map(|figure| format!("{figure:.decimals$}"));
    match low == high {
        true => format!("{median} %"),
        false => format!("{median} % ({low}–{high})"),
    }
}

/// A row for each workload or operation of each device, a column for each set-up.
fn costs<'a>(
    trials: impl Iterator<Item = Trial<'a>> + Clone,
    of: &str,
    plain: Cost,
    cost: Cost,
) -> String {
    let mut setups: Vec<String> = Vec::new();
    let mut rows: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    let models = trials.clone().map(|trial| trial.text("/device/model"));
    let models: std::collections::BTreeSet<&str> = models.collect();
    for trial in trials {
        let mut name = trial.text("/workload").to_owned();
        if models.len() > 1 {
            name = format!("{name}, {}", trial.text("/device/model"));
        }
        let setup = setup(trial);
        let cell = if setup == "plain" {
            plain(trial)
        } else {
            cost(trial)
        };
        if !setups.contains(&setup) {
            setups.push(setup.clone());
        }
        match rows.iter_mut().find(|(workload, _)| *workload == name) {
            Some((_, cells)) => _ = cells.entry(setup).or_insert(cell),
            None => rows.push((name, [(setup, cell)].into())),
        }
    }
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, mut cells)| {
            let cell = |setup| cells.remove(setup).unwrap_or_else(|| "–".to_owned());
            [name].into_iter().chain(setups.iter().map(cell)).collect()
        })
        .collect();
    let mut heads = vec![of.to_owned()];
    heads.extend(setups.iter().cloned());
    table(&heads, 1, &rows)
}

/// `plain`, `AES`, `AES, 2 cores`, `AES, dm-crypt`.
fn setup(trial: Trial<'_>) -> String {
    let system = trial.text("/system");
    if trial.text("/cipher").is_empty() {
        let is_plain = system.rsplit(':').next() == Some("none");
        return if is_plain { "plain" } else { system }.to_owned();
    }
    let backend = trial.text("/backend");
    let cores = backend.rsplit_once(" on ").map(|(_, cores)| cores);
    let of = match (system, cores) {
        (_, Some(cores)) => format!(", {cores}"),
        ("builtin", None) => String::new(),
        (system, None) if system.starts_with("drive:") => String::new(),
        (system, None) => format!(", {system}"),
    };
    trial.cipher() + &of
}

fn duration(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", figure(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", figure(us / 1e3)),
        us => format!("{} µs", figure(us)),
    }
}

/// What unlocking and guessing cost, a row for each format.
fn key_derivations(runs: &Runs) -> String {
    let Some(run) = runs.get("kdf") else {
        return String::new();
    };
    let cores = run.at("/host/cores").as_f64().unwrap_or(1.0);
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    for unlock in run.trials().filter(|trial| trial.text("/op") == "unlock") {
        let workload = unlock.text("/workload");
        let is_it =
            |trial: &Trial<'_>| trial.text("/op") == "guess" && trial.text("/workload") == workload;
        let guess = run.trials().find(is_it).map(|guess| {
            let busy = guess.figure("/threads") * guess.figure("/kdf/lanes");
            busy.min(cores) / guess.figure("/iops/median")
        });
        let guess = guess.unwrap_or(f64::NAN);
        let unlocked = duration(1e6 / unlock.figure("/iops/median"));
        rows.push((guess, vec![workload.to_owned(), unlocked, figure(guess)]));
    }
    rows.retain(|(_, row)| KEPT.iter().any(|kept| row[0].starts_with(kept)));
    rows.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(_, row)| row).collect();
    let heads = heads(["format and derivation", "unlock", "core-seconds a guess"]);
    format!("### Key derivations\n\n{}", table(&heads, 1, &rows))
}

/// The defaults of each format, by the beginnings of their workloads; the page has no room for all.
const KEPT: [&str; 5] = [
    "luks2-argon2id",
    "luks1-pbkdf2-sha256",
    "veracrypt-argon2id",
    "veracrypt-pbkdf2-sha512",
    "truecrypt-pbkdf2-sha512",
];

/// Set-ups of `drive sweep`, by the names of their policies. An unencrypted drive lasts as long
/// as one to which TRIM is passed.
const POLICIES: [(&str, &str); 4] = [
    ("pass", "TRIM passed"),
    ("block", "TRIM blocked"),
    ("filled", "TRIM blocked, filled first"),
    ("unpartitioned", "the same, a tenth unpartitioned"),
];

/// Lives of simulated SSDs.
fn lives(runs: &Runs) -> String {
    let Some(run) = runs.get("ssd-lives") else {
        return String::new();
    };
    let trials: Vec<Trial<'_>> = run
        .trials()
        .filter(|trial| trial.text("/op") == "write")
        .collect();
    let mut drives: Vec<&str> = Vec::new();
    for trial in &trials {
        let drive = trial.text("/device/model");
        if !drives.contains(&drive) {
            drives.push(drive);
        }
    }
    let mut names = vec!["set-up".to_owned()];
    for drive in &drives {
        names.push(format!("{drive}: flash writes"));
        names.push("lasts, years".to_owned());
    }
    let rows = POLICIES.map(|(policy, name)| {
        let mut row = vec![name.to_owned()];
        for drive in &drives {
            let is_it = |trial: &&Trial<'_>| {
                trial.text("/device/model") == *drive && trial.text("/life/policy") == policy
            };
            let life = trials.iter().find(is_it);
            let of = |what: &str| {
                let what = format!("/life/{what}/median");
                life.map_or(f64::NAN, |trial| trial.figure(&what))
            };
            row.push(format!("{} ×", figure(of("write_amplification"))));
            row.push(figure(of("lifetime_years")));
        }
        row
    });
    let of = |what: &str| trials.first().map_or(f64::NAN, |trial| trial.figure(what));
    format!(
        "### Lives of SSDs\n\nThe host writes {} GB a day, and the file system is {} % full.\n\n{}",
        of("/life/daily_bytes") / 1e9,
        100.0 * of("/life/fill"),
        table(&names, 1, &rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A trial that took `ratio` of the plain rate.
    fn trial(system: &str, cipher: &str, workload: &str, ratio: f64) -> Value {
        let interval = |of: f64| json!({"median": of, "low": of - 0.01, "high": of + 0.01});
        let is_plain = cipher.is_empty();
        let verdict = if ratio > 0.98 {
            "not distinguishable"
        } else {
            "slower"
        };
        let overhead = json!({"against": "none", "ratio": interval(ratio), "verdict": verdict});
        json!({
            "system": system, "cipher": cipher, "workload": workload, "block_bytes": 4 << 20,
            "device": {"kind": "disk", "model": "vda"},
            "throughput_mb_s": {"median": 2800.0 * ratio}, "latency_us": {"p50": 1500.0 / ratio},
            "overhead": if is_plain { Value::Null } else { overhead },
        })
    }

    #[test]
    fn a_section_is_there_if_its_run_is() {
        let again = json!({"system": "none", "workload": "seq", "overhead": {"against": "none"}});
        let mut cores = trial("builtin", "serpent-xts-plain64", "seq", 0.96);
        cores["backend"] = "avx512 on 2 cores".into();
        let quick = json!({"trials": [
            trial("none", "", "seq", 1.0), trial("builtin", "aes-xts-plain64", "seq", 0.99),
            trial("builtin", "serpent-xts-plain64", "seq", 0.64), cores, again,
        ]});
        let fs = json!({"trials": [
            trial("none", "", "copy", 1.0), trial("dm-crypt", "aes-xts-plain64", "copy", 0.5),
        ]});
        let unlock = |op: &str, rate: f64| {
            json!({"system": "builtin", "op": op, "workload": "luks2-argon2id", "threads": 1,
                   "iops": {"median": rate}, "kdf": {"lanes": 4}})
        };
        let kdf =
            json!({"host": {"cores": 2}, "trials": [unlock("unlock", 0.5), unlock("guess", 0.4)]});
        let text = sections(&Runs::of([("quick", quick), ("fs", fs), ("kdf", kdf)]));
        for line in [
            "| workload | plain | AES | Serpent | Serpent, 2 cores |",
            "| seq | 2,800 MB/s | ≈ 0 | 36 % (35–37) | 4.0 % (3.0–5.0) |",
            "| operation | plain | AES, dm-crypt |",
            "| copy | 1.50 ms | 2.00 × |",
            "| luks2-argon2id | 2.00 s | 5.00 |",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("SSD"));
        assert_eq!(sections(&Runs::default()), "");
    }
}
