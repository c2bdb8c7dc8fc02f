//! Refusals of plans that several kinds of them share.

use super::Setting;
use crate::error::LabError;
use crate::system::simulated::Driver;
use bytesize::ByteSize;

/// A list that must not be empty is.
pub(super) fn empty(what: &str) -> LabError {
    LabError::invalid(
        format!("the plan has no {what}"),
        format!("Name at least one of the {what}."),
    )
}

/// Several settings that are chosen for what they do not apply to.
pub(super) fn not_taken(setting: Setting, of: &str, others: &[Setting]) -> LabError {
    let of_drives =
        matches!(setting, Setting::Cpu | Setting::Driver) && others.contains(&Setting::Systems);
    let or = match of_drives {
        true => ", or choose a system drive:NAME",
        false => "",
    };
    let others: Vec<&str> = others.iter().map(|setting| setting.name()).collect();
    LabError::invalid(
        format!("{} cannot be chosen for {of}", setting.name()),
        format!(
            "Leave it out{or}. Here one can choose: {}.",
            others.join(", ")
        ),
    )
}

/// A workload whose blocks do not fit the test extent often enough.
pub(super) fn too_small(workload: &str, needed: u64, size: ByteSize) -> LabError {
    let needed = ByteSize(needed);
    LabError::invalid(
        format!("workload {workload:?} needs a test extent of {needed}, but the plan has {size}"),
        format!("Use `size` {} or more.", needed.display().si_short()),
    )
}

/// A rate of a cipher that nothing asks for.
pub fn unused_rate(cipher: &str) -> LabError {
    LabError::invalid(
        format!(
            "the plan gives a rate for {cipher:?}, but none of its simulated drives has this cipher"
        ),
        "Give the cipher by its name or its full notation, and add a system drive:NAME.",
    )
}

/// A driver that encrypts on one core and has more of them.
pub(super) fn driver_cores(driver: Driver, cores: u32) -> LabError {
    LabError::invalid(
        format!("the driver {driver} encrypts on one core, but the plan gives it {cores}"),
        "Omit the cores, or use the driver `queue` or `truecrypt`.",
    )
}

/// A workload that is not of the plan's tier.
pub(super) fn other_tier(workload: &str) -> LabError {
    LabError::invalid(
        format!("workload {workload:?} is of another tier than the plan"),
        "Plans with tier = \"cipher\" have the operations encrypt and decrypt, those of devices \
         have read, write and mixed.",
    )
}

/// A cipher without a rate, which every host would measure for itself.
pub(crate) fn no_rate(cipher: &str, place: &str) -> LabError {
    LabError::invalid(
        format!("the plan gives no rate for {cipher}, so every host would measure its own"),
        format!("Write the rate into the {place}: cpu = {{ \"{cipher}\" = \"1500MB/s\" }}."),
    )
}

/// Turns the parser's error into a line and, for an unknown word, a suggestion.
pub(crate) fn syntax(name: &str, text: &str, error: &toml::de::Error) -> LabError {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..start]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1;
    let problem = error
        .message()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    // The parser names the unknown word and the known ones in back quotes.
    let mut words = problem.split('`').skip(1).step_by(2);
    let suggestion = words.next().and_then(|unknown| {
        words
            .map(|known| (strsim::jaro_winkler(unknown, known), known))
            .filter(|(likeness, _)| *likeness > 0.75)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, known)| known.to_owned())
    });
    let example = "`cryptmark plans show quick` prints a plan to copy.";
    let remedy = suggestion.map_or_else(
        || example.to_owned(),
        |key| format!("Did you mean {key:?}? {example}"),
    );
    LabError::invalid(format!("{name}, line {line}: {problem}"), remedy)
}
