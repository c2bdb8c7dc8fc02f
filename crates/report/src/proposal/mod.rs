//! Proposes a set-up for a machine. The proposal is a pure function of a run that measured the
//! candidates, and of other known facts about the machine.
//!
//! The order of the ciphers in the run is the order of preference. The proposed cipher is the first
//! one that may cost hardly more than the cheapest one. A cipher low in the order is therefore
//! proposed only for its figures. Costs are judged as [`advice`](crate::advice) judges those of
//! every run.

mod candidate;
mod commands;
mod flags;
mod reason;
mod text;

pub use commands::{Commands, quoted};
pub use flags::{FLAGS_PLAN, Flags};
pub use text::text;

use crate::figure;
use candidate::Candidate;
use lab::record::{Interval, NoiseVerdict, Run, Verdict};
use serde::Serialize;

/// The duration to which cryptsetup calibrates an unlock by default, milliseconds.
const ITER_TIME_MS: u32 = 2000;

/// The facts about a machine that the run does not contain.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Rates of ciphers on one core, in memory.
    pub rates: Vec<Rate>,
    /// The chosen cipher with another key or other sectors, measured in memory beside it.
    pub beside: Vec<Beside>,
    /// Whether the disk is flash; `None` if it does not report it.
    pub flash: Option<bool>,
    /// Whether the disk takes discards; `None` if it does not report it.
    pub discards: Option<bool>,
    /// Bytes that the disk writes as a unit.
    pub physical_block: Option<u64>,
    /// The most memory of Argon2, KiB, and its lanes; `None` of a machine whose memory is not known.
    pub argon2: Option<(u32, u32)>,
    /// What was measured of dm-crypt's flags there.
    pub flags: Option<Flags>,
    /// The place of the volume.
    pub place: Place,
}

/// The place of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An existing block device or file, by its whole path.
    There(String),
    /// A file that is to be made, by its whole path.
    New(String),
    /// A machine that is not here.
    Elsewhere,
}

/// How fast one core encrypts in requests of 1 MiB.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// dm-crypt notation.
    pub cipher: String,
    /// Bits of the key, counted as cryptsetup counts.
    pub key_bits: u32,
    /// Encryption sector size, bytes.
    pub sector_bytes: u32,
    /// 10⁶ bytes a second, of the slower direction.
    pub mb_s: f64,
    /// Its 95 % interval; `None` of a rate that was given.
    pub interval: Option<Interval>,
}

/// One cipher with another key or other sectors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// Bits of the key, counted as cryptsetup counts.
    pub key_bits: u32,
    /// Encryption sector size, bytes.
    pub sector_bytes: u32,
    /// Its rate ÷ the chosen one's, pair by pair.
    pub ratio: Interval,
    /// The verdict that the pairs support.
    pub verdict: Verdict,
}

/// A format that is proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// PBKDF2 and sectors of 512 bytes.
    Luks1,
    /// The usual one.
    Luks2,
}

impl Format {
    /// As `--type` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Luks1 => "luks1",
            Self::Luks2 => "luks2",
        }
    }
}

/// The encryption sector size to choose. It is the disk's own block, so that a power cut does not
/// tear one, or 512 bytes if that is unknown.
pub fn sector_bytes(physical_block: Option<u64>, format: Format) -> u32 {
    match (format, physical_block) {
        (Format::Luks2, Some(4096..)) => 4096,
        _ => 512,
    }
}

/// The settings that an installer needs. The names are those of cryptsetup's options.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setup {
    /// On-disk format.
    pub format: Format,
    /// dm-crypt notation.
    pub cipher: String,
    /// Bits of the key, counted as cryptsetup counts.
    pub key_size: u32,
    /// Encryption sector size, bytes.
    pub sector_size: u32,
    /// Key derivation.
    pub pbkdf: &'static str,
    /// The target duration of an unlock, milliseconds.
    pub iter_time: u32,
    /// The most memory of the derivation, KiB; `None` for one that needs none, and if the
    /// machine's is not known.
    pub pbkdf_memory: Option<u32>,
    /// Lanes of the derivation; `None` likewise.
    pub pbkdf_parallel: Option<u32>,
    /// Whether discards are passed to the disk.
    pub allow_discards: bool,
    /// dm-crypt's flags, as crypttab names them.
    pub flags: Vec<&'static str>,
}

/// A part of the set-up, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// `cipher`, `sector size`, …
    pub what: &'static str,
    /// The chosen value.
    pub value: String,
    /// One sentence.
    pub reason: String,
}

/// The cost of the proposal in a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// Name of the workload.
    pub workload: String,
    /// Plain rate, 10⁶ bytes a second.
    pub plain_mb_s: f64,
    /// Encrypted rate ÷ plain rate; the interval holds all rounds, and is wider by
    /// the noise floor on both sides.
    pub ratio: Interval,
}

/// A rejected option.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// The option.
    pub instead: String,
    /// Its cost, as one sentence.
    pub cost: String,
    /// Of a cipher, its ratio in the workload in which it costs most; of a key or sector size, its
    /// rate in memory ÷ that of the proposal. With its 95 % interval.
    pub ratio: Option<Interval>,
}

/// The limit of the rate with the proposed cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// The disk, for every cipher.
    Disk,
    /// The disk, with the proposed cipher but not with every other one.
    Chosen,
    /// The cipher.
    Cipher,
    /// The limit could not be determined, because the cost is known too roughly.
    Open,
}

/// A set-up with its reasons.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proposal {
    /// Version of this layout.
    pub schema: &'static str,
    /// The answer, one sentence.
    pub answer: String,
    /// The limit of the rate.
    pub limit: Limit,
    /// The set-up for a program.
    pub setup: Setup,
    /// The set-up for a person.
    pub choices: Vec<Choice>,
    /// The cost of the proposal, by workload.
    pub expected: Vec<Expected>,
    /// The alternatives to the proposal.
    pub alternatives: Vec<Alternative>,
    /// How to create and open it.
    pub commands: Commands,
    /// Notes to read before you trust the proposal.
    pub notes: Vec<String>,
}

/// The cipher that [`propose`] chooses: its notation, bits of its key and bytes of its sectors.
pub fn chosen(run: &Run) -> Option<(String, u32, u32)> {
    let candidates = candidate::candidates(run);
    let chosen = candidate::choose(&candidates)?;
    let cipher = chosen.cipher.to_owned();
    Some((cipher, chosen.key_bits, chosen.sector_bytes))
}

/// The set-up to choose, from a `run` of the candidates. All candidates must have the same sector
/// size. Returns `None` if the run has no candidate with a plain counterpart.
pub fn propose(run: &Run, machine: &Machine, format: Format) -> Option<Proposal> {
    let candidates = candidate::candidates(run);
    let chosen = candidate::choose(&candidates)?;
    let sector_size = chosen.sector_bytes;
    let argon2 = machine.argon2.filter(|_| format == Format::Luks2);
    let setup = Setup {
        format,
        cipher: chosen.cipher.to_owned(),
        key_size: chosen.key_bits,
        sector_size,
        pbkdf: match format {
            Format::Luks1 => "pbkdf2",
            Format::Luks2 => "argon2id",
        },
        iter_time: ITER_TIME_MS,
        pbkdf_memory: argon2.map(|(memory, _)| memory),
        pbkdf_parallel: argon2.map(|(_, lanes)| lanes),
        allow_discards: reason::passes_discards(machine),
        flags: machine
            .flags
            .as_ref()
            .map_or_else(Vec::new, |it| it.names.clone()),
    };
    let limit = limit(&candidates, chosen);
    Some(Proposal {
        schema: "cryptmark-advice/1",
        answer: answer(&candidates, chosen, limit),
        limit,
        choices: reason::choices(machine, &setup, &candidates, chosen, limit),
        expected: chosen.expected(run),
        alternatives: reason::alternatives(machine, &setup, &candidates, chosen),
        commands: Commands::of(&setup, &machine.place),
        notes: notes(run, &setup, chosen),
        setup,
    })
}

fn limit(candidates: &[Candidate<'_>], chosen: &Candidate<'_>) -> Limit {
    let keeps_up = |candidate: &Candidate<'_>| candidate.setup.keeps_up();
    match keeps_up(chosen) {
        true if candidates.iter().all(keeps_up) => Limit::Disk,
        true => Limit::Chosen,
        false if chosen.setup.is_noticed() => Limit::Cipher,
        false => Limit::Open,
    }
}

fn answer(candidates: &[Candidate<'_>], chosen: &Candidate<'_>, limit: Limit) -> String {
    let (name, cost) = (chosen.name(), chosen.cost());
    let all_are_noticed = candidates.iter().all(|other| other.setup.is_noticed());
    match limit {
        Limit::Disk if candidates.len() > 1 => {
            format!("Each of these ciphers is faster than your disk: choose {name}.")
        }
        Limit::Disk | Limit::Chosen => {
            format!("Choose {name}: it keeps up with your disk, and costs {cost}.")
        }
        Limit::Cipher => format!(
            "Your disk is faster than {}: choose {name}, which costs {cost}.",
            match candidates.len() > 1 && all_are_noticed {
                true => "all of these ciphers",
                false => "this cipher",
            },
        ),
        Limit::Open => format!(
            "Choose {name}, which costs {cost}. The measurement could not decide whether it keeps \
             up with your disk."
        ),
    }
}

fn notes(run: &Run, setup: &Setup, chosen: &Candidate<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if setup.format == Format::Luks2 && setup.pbkdf_memory.is_none() {
        notes.push(
            "The memory of that machine is not known. Make the volume there, so that Argon2 takes \
             no more than it has."
                .to_owned(),
        );
    }
    if run.noise.verdict == NoiseVerdict::Noisy {
        notes.push(
            "This machine is noisy: plain differs from itself, so the intervals above are wide. \
             Try again when the machine is idle."
                .to_owned(),
        );
    }
    let of_chosen =
        |warning: &&String| warning.starts_with(chosen.cipher) || !names_cipher(warning);
    notes.extend(
        run.warnings
            .iter()
            .filter(of_chosen)
            .map(|w| figure::one_line(w)),
    );
    notes
}

/// Whether a warning is about one cipher: it begins with its notation.
fn names_cipher(warning: &str) -> bool {
    warning
        .split([':', ' '])
        .next()
        .is_some_and(|word| word.contains("-plain64") || word.contains("-essiv"))
}
