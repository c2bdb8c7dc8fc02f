//! Tables of bare ciphers: every CPU tier, and each cipher natively.

use super::stored::{Run, Runs, Trial};
use super::{bytes, figure, heads, table};
use std::collections::{BTreeMap, BTreeSet};

/// Tiers from the newest instructions down; `native` is whatever the CPU has.
const TIERS: [&str; 5] = ["native", "gfni256", "vaes256", "aes-ni", "avx2"];

/// Request size of the table of ciphers, bytes.
const REQUEST: u64 = 1 << 20;

/// Sector size of that table, bytes.
const SECTOR: u64 = 4096;

/// The engine's cells that have a library beside them.
fn compared<'a>(runs: &'a Runs, tier: &'a str) -> Vec<Trial<'a>> {
    let trials = runs.tier(tier).flat_map(Run::trials);
    let compared = trials.filter(|trial| trial.text("/system") == "builtin");
    compared
        .filter(|trial| !trial.against().is_empty())
        .collect()
}

/// How often the engine is faster than every library, by tier.
pub(super) fn tiers(runs: &Runs) -> String {
    let mut rows = Vec::new();
    for tier in TIERS {
        let compared = compared(runs, tier);
        // Of those that are slower, if there are any.
        let least = compared.iter().min_by(|a, b| {
            let is_not_slower = |trial: &Trial<'_>| trial.verdict() != "slower";
            let order = is_not_slower(a).cmp(&is_not_slower(b));
            order.then(a.ratio().total_cmp(&b.ratio()))
        });
        let Some(least) = least else { continue };
        let with = |verdict: &str| {
            let found = compared.iter().filter(|trial| trial.verdict() == verdict);
            found.count().to_string()
        };
        rows.push(vec![
            format!("`{tier}`"),
            compared.len().to_string(),
            with("faster"),
            with("not distinguishable"),
            with("slower"),
            format!(
                "{} × {}: {}-{} {}, {}",
                figure(least.ratio()),
                library(least.against()),
                least.cipher(),
                least.mode().to_uppercase(),
                least.text("/op"),
                bytes(least.count("/block_bytes")),
            ),
        ]);
    }
    if rows.is_empty() {
        return String::new();
    }
    let heads = heads([
        "tier",
        "comparisons",
        "faster",
        "not told apart",
        "slower",
        "lowest ratio",
    ]);
    format!(
        "{}\nThe libraries are {}.\n",
        table(&heads, 1, &rows),
        libraries(runs)
    )
}

/// A library by its own name.
fn library(system: &str) -> &str {
    match system {
        "botan" => "Botan",
        "nettle" => "Nettle",
        "openssl" => "OpenSSL",
        "rustcrypto" => "RustCrypto",
        other => other,
    }
}

/// The libraries of all tiers, with every version that was measured.
fn libraries(runs: &Runs) -> String {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let trials = TIERS
        .iter()
        .flat_map(|tier| runs.tier(tier))
        .flat_map(Run::trials);
    for trial in trials.filter(|trial| trial.text("/system") != "builtin") {
        let system = trial.text("/system");
        let versions = versions.entry(library(system)).or_default();
        // RustCrypto is a crate for each cipher.
        if system != "rustcrypto" {
            versions.insert(trial.text("/system_version"));
        }
    }
    let listed = versions.iter().map(|(library, versions)| {
        let versions: Vec<&str> = versions.iter().copied().collect();
        format!("{library} {}", versions.join(" and "))
            .trim_end()
            .to_owned()
    });
    listed.collect::<Vec<_>>().join(", ")
}

/// Cells in which a library is faster, put together.
#[derive(Default)]
struct Slower<'a> {
    ciphers: BTreeSet<String>,
    operations: BTreeSet<&'a str>,
    requests: BTreeSet<u64>,
    ratios: Vec<f64>,
}

/// Where a library is faster. All of CBC encryption is one row a tier, because it is slow for
/// one reason; everything else is apart by cipher.
pub(super) fn slower(runs: &Runs) -> String {
    let mut rows = Vec::new();
    for tier in TIERS {
        let mut groups: BTreeMap<(&str, String), Slower<'_>> = BTreeMap::new();
        for trial in compared(runs, tier) {
            if trial.verdict() != "slower" {
                continue;
            }
            let (mode, operation) = (trial.mode(), trial.text("/op"));
            let key = match (mode, operation) {
                ("cbc", "encrypt") => String::new(),
                _ => trial.cipher(),
            };
            let group = groups.entry((mode, key)).or_default();
            group.ciphers.insert(trial.cipher());
            group.operations.insert(operation);
            group.requests.insert(trial.count("/block_bytes"));
            group.ratios.push(trial.ratio());
        }
        // Ciphers that are slower in the same cells share a row.
        let mut merged: Vec<(&str, Slower<'_>)> = Vec::new();
        for ((mode, _), group) in groups {
            let is_alike = |(known, other): &&mut (&str, Slower<'_>)| {
                *known == mode
                    && other.operations == group.operations
                    && other.requests == group.requests
            };
            match merged.iter_mut().find(is_alike) {
                Some((_, other)) => {
                    other.ciphers.extend(group.ciphers);
                    other.ratios.extend(group.ratios);
                }
                None => merged.push((mode, group)),
            }
        }
        for (mode, group) in &merged {
            let operations: Vec<&str> = group.operations.iter().copied().collect();
            rows.push(vec![
                format!("`{tier}`"),
                format!("{} {}", mode.to_uppercase(), operations.join(", ")),
                joined(&group.ciphers),
                range(&group.requests),
                ratios(&group.ratios),
            ]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let heads = heads(["tier", "operation", "ciphers", "requests", "ratio"]);
    table(&heads, heads.len(), &rows)
}

/// Names, or their number if there are many.
fn joined(names: &BTreeSet<String>) -> String {
    if names.len() > 6 {
        return format!("{} ciphers", names.len());
    }
    names
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

fn range(requests: &BTreeSet<u64>) -> String {
    match (requests.first(), requests.last()) {
        (Some(first), Some(last)) if first == last => bytes(*first),
        (Some(first), Some(last)) => format!("{} to {}", bytes(*first), bytes(*last)),
        _ => String::new(),
    }
}

fn ratios(ratios: &[f64]) -> String {
    let [low, high] = [
        ratios.iter().copied().fold(f64::INFINITY, f64::min),
        ratios.iter().copied().fold(0.0, f64::max),
    ]
    .map(figure);
    if low == high {
        low
    } else {
        format!("{low}–{high}")
    }
}

/// Each cipher of the native tier on one thread: in XTS, or in CBC if it has no XTS.
pub(super) fn native(runs: &Runs) -> String {
    let is_shown = |trial: &Trial<'_>| {
        let (_, mode) = trial.text("/cipher").split_once('-').unwrap_or_default();
        trial.text("/system") == "builtin"
            && trial.count("/threads") == 1
            && trial.count("/block_bytes") == REQUEST
            && trial.count("/sector_bytes") == SECTOR
            && ["xts-plain64", "cbc-plain64"].contains(&mode)
    };
    let trials = runs.tier("native").flat_map(Run::trials).filter(is_shown);
    let mut modes: BTreeMap<String, BTreeMap<&str, Sides<'_>>> = BTreeMap::new();
    for trial in trials {
        let cipher = modes.entry(trial.cipher()).or_default();
        let side = usize::from(trial.text("/op") == "decrypt");
        cipher.entry(trial.mode()).or_default()[side] = Some(trial);
    }
    // The last mode by name is XTS.
    let last = modes.into_values().filter_map(|mut modes| modes.pop_last());
    let mut rows: Vec<Sides<'_>> = last.map(|(_, sides)| sides).collect();
    let rate = |row: &Sides<'_>| {
        let first = row[0].or(row[1]);
        first.map_or(0.0, |trial| trial.figure("/throughput_mb_s/median"))
    };
    rows.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads = heads([
        "cipher",
        "encrypt, MB/s",
        "cycles/B",
        "ratio",
        "decrypt, MB/s",
        "ratio",
    ]);
    table(&heads, 1, &rows)
}

/// Encryption and decryption of a cipher in a mode.
type Sides<'a> = [Option<Trial<'a>>; 2];

fn row(sides: &Sides<'_>) -> Vec<String> {
    let first = sides[0].or(sides[1]);
    let name = |trial: Trial<'_>| format!("{}-{}", trial.cipher(), trial.mode().to_uppercase());
    let mut row = vec![first.map(name).unwrap_or_default()];
    for (side, trial) in sides.iter().enumerate() {
        let figure = |what: &str| trial.map_or(f64::NAN, |trial| trial.figure(what));
        row.push(super::figure(figure("/throughput_mb_s/median")));
        // Decryption takes as many cycles as its rate says.
        if side == 0 {
            row.push(super::figure(figure("/cycles_per_byte/median")));
        }
        row.push(trial.map(beside).unwrap_or_default());
    }
    row
}

/// The ratio to the fastest library, as far as it can be told.
fn beside(trial: Trial<'_>) -> String {
    match trial.verdict() {
        "" => "–".to_owned(),
        "not distinguishable" => format!("≈ {}", library(trial.against())),
        _ => format!("{} × {}", figure(trial.ratio()), library(trial.against())),
    }
}
