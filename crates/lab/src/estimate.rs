//! Estimates of the time that file-system operations would take on another machine. They are pure
//! functions of a record and of a [`Target`]'s figures.
//!
//! Each recorded repetition is split into encryption, waiting for the device, and the rest. The
//! rest is scaled to the other processor. The bytes that the operation moved are encrypted and
//! moved at the other machine's rates.

mod battery;

pub use battery::{Battery, Drain};

use crate::error::LabError;
use crate::experiment::syntax;
use crate::file_system::Kernel;
use crate::record::{Run, Tier, Trial};
use crate::stats;
use serde::{Deserialize, Serialize};
use std::path::Path;
use thiserror::Error;

/// A machine that an estimate is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The name of the target.
    pub title: String,
    /// The stored run whose operations are estimated. When absent, it is the newest run on file
    /// systems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Clock of its processor, MHz.
    pub clock_mhz: f64,
    /// Speed of all work other than encryption, relative to the recorded machine, which has 1.
    #[serde(default = "one")]
    pub speed: f64,
    /// The device that will hold the bytes.
    pub device: Rates,
    /// Its battery, if the hours that ciphers take from it are estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub battery: Option<Battery>,
    /// The ciphers that may encrypt the bytes.
    #[serde(rename = "cipher")]
    pub ciphers: Vec<Cipher>,
}

/// The rates of a storage device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// 10⁶ bytes a second.
    pub read_mb_s: f64,
    /// 10⁶ bytes a second.
    pub write_mb_s: f64,
    /// Additional time of each read request, µs.
    #[serde(default)]
    pub read_us: f64,
    /// Additional time of each write request, µs.
    #[serde(default)]
    pub write_us: f64,
    /// Possible error of these figures, per cent.
    #[serde(default)]
    pub spread: f64,
}

/// A cipher, with its cost if that is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cipher {
    /// By its name (in XTS) or in dm-crypt notation.
    pub name: String,
    /// Bits of the key, counted as cryptsetup counts; the cipher's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_size: Option<u32>,
    /// Cycles per byte to encrypt; measured when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypt: Option<f64>,
    /// Cycles per byte to decrypt; measured when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decrypt: Option<f64>,
    /// By how much these may be wrong, per cent.
    #[serde(default)]
    pub spread: f64,
}

fn one() -> f64 {
    1.0
}

/// The reason why no estimate can be made.
#[derive(Debug, Error)]
pub enum EstimateError {
    /// The file cannot be read.
    #[error("cannot read {name}")]
    Read {
        /// The file.
        name: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a valid description of a machine.
    #[error(transparent)]
    Syntax(Box<LabError>),
    /// A number that no machine has.
    #[error("{name}: {key} = {value} is not possible")]
    Value {
        /// The file.
        name: String,
        /// The key.
        key: &'static str,
        /// Its value.
        value: f64,
    },
    /// No cipher is asked for.
    #[error("{name} does not name a cipher")]
    NoCipher {
        /// The file.
        name: String,
    },
    /// The run has nothing to go by.
    #[error("the run {run} has no encrypted file systems with recorded bytes and crypto time")]
    NothingRecorded {
        /// The run.
        run: String,
    },
}

impl EstimateError {
    /// The remedy, as one sentence for the user.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Read { .. } => "Give a readable TOML file.",
            Self::Syntax(_) => {
                "The file needs title, clock_mhz, [device] with read_mb_s and write_mb_s, and a \
                 [[cipher]] with a name for each cipher."
            }
            Self::Value { .. } => {
                "Clock, speed, rates, cycles, watts and watt-hours must be above 0, times and \
                 daily bytes at least 0, and a spread from 0 to 100."
            }
            Self::NoCipher { .. } => "Add a [[cipher]] with its name.",
            Self::NothingRecorded { .. } => {
                "Measure with `cryptmark run file-systems --system builtin-fuse` or with \
                 `cryptmark run crypto-fs`. Or name such a run in the file: run = \"ID\"."
            }
        }
    }
}

impl Target {
    /// Reads and checks a description.
    ///
    /// # Errors
    /// [`EstimateError`], but [`EstimateError::NothingRecorded`].
    pub fn load(path: &Path) -> Result<Self, EstimateError> {
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&name, &text),
            Err(source) => Err(EstimateError::Read { name, source }),
        }
    }

    /// The same, of the `text` in the file called `name`.
    ///
    /// # Errors
    /// [`EstimateError`], but [`EstimateError::NothingRecorded`].
    pub fn parse(name: &str, text: &str) -> Result<Self, EstimateError> {
        let target: Self = toml::from_str(text)
            .map_err(|error| EstimateError::Syntax(Box::new(syntax(name, text, &error))))?;
        let Rates {
            read_mb_s,
            write_mb_s,
            read_us,
            write_us,
            spread,
        } = target.device;
        let mut above = vec![
            ("clock_mhz", target.clock_mhz),
            ("speed", target.speed),
            ("read_mb_s", read_mb_s),
            ("write_mb_s", write_mb_s),
        ];
        let mut spreads = vec![spread];
        for cipher in &target.ciphers {
            above.extend(cipher.encrypt.map(|cycles| ("encrypt", cycles)));
            above.extend(cipher.decrypt.map(|cycles| ("decrypt", cycles)));
            spreads.push(cipher.spread);
        }
        let mut times = vec![("read_us", read_us), ("write_us", write_us)];
        if let Some(battery) = &target.battery {
            above.extend([
                ("watt_hours", battery.watt_hours),
                ("average_watts", battery.average_watts),
                ("active_watts", battery.active_watts),
            ]);
            times.extend([
                ("daily_read_mb", battery.daily_read_mb),
                ("daily_write_mb", battery.daily_write_mb),
            ]);
            spreads.push(battery.spread);
        }
        let value = |(key, value)| EstimateError::Value {
            name: name.to_owned(),
            key,
            value,
        };
        let positive = |value: f64| value > 0.0 && value.is_finite();
        if let Some(wrong) = above.into_iter().find(|(_, value)| !positive(*value)) {
            return Err(value(wrong));
        }
        if let Some(wrong) = times
            .into_iter()
            .find(|(_, time)| !(0.0..1e9).contains(time))
        {
            return Err(value(wrong));
        }
        if let Some(wrong) = spreads.into_iter().find(|s| !(0.0..=100.0).contains(s)) {
            return Err(value(("spread", wrong)));
        }
        match target.ciphers.is_empty() {
            true => Err(EstimateError::NoCipher {
                name: name.to_owned(),
            }),
            false => Ok(target),
        }
    }
}

/// A figure, and what it may lie between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Span {
    /// Most likely.
    pub expected: f64,
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

impl Span {
    /// `value`, which may be wrong by `percent`.
    pub fn within(value: f64, percent: f64) -> Self {
        Self {
            expected: value,
            low: value * (1.0 - percent / 100.0),
            high: value * (1.0 + percent / 100.0),
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            expected: self.expected * factor,
            low: self.low * factor,
            high: self.high * factor,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            expected: self.expected + other.expected,
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }
}

/// The cost of a cipher on the target, cycles per byte.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// dm-crypt notation.
    pub cipher: String,
    /// Bits of the key.
    pub key_bits: u32,
    /// Cost of encryption.
    pub encrypt: Span,
    /// Cost of decryption.
    pub decrypt: Span,
    /// Whether it was measured on this machine.
    pub measured: bool,
}

/// The estimated time of an operation on the target, seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The file system.
    pub fs: String,
    /// Bytes of the device that it was recorded on.
    pub size: u64,
    /// The operation's name.
    pub operation: String,
    /// The contract's word for the system.
    pub system: String,
    /// dm-crypt notation; nothing for the plain system.
    pub cipher: Option<String>,
    /// Bits of the key.
    pub key_bits: Option<u32>,
    /// The ciphers that it was recorded with.
    pub recorded_with: Vec<String>,
    /// All of it. At best encryption and device work at the same time, at worst
    /// one after the other; that is also expected.
    pub seconds: Span,
    /// Encrypting and decrypting.
    pub crypto_s: f64,
    /// The device.
    pub device_s: f64,
    /// Everything else.
    pub rest_s: f64,
}

/// Estimates how long the operations of `run` would take on `target`. They are estimated plain, and
/// with each cipher of `costs` on each system that was recorded with its crypto time.
///
/// # Errors
/// [`EstimateError::NothingRecorded`].
pub fn estimate(
    run: &Run,
    target: &Target,
    costs: &[Cost],
) -> Result<Vec<Estimate>, EstimateError> {
    let known: Vec<Recorded<'_>> = run.trials.iter().filter_map(Recorded::of).collect();
    let mut estimates: Vec<Estimate> = Vec::new();
    for plain in known.iter().filter(|trial| trial.crypto.is_none()) {
        let same = |estimate: &Estimate| {
            let trial = plain.trial;
            (estimate.operation == trial.workload && estimate.size == trial.device.size)
                && Some(estimate.fs.as_str()) == trial.fs()
                && estimate.system == trial.system
        };
        if estimates.iter().any(same) {
            // The plain system again.
            continue;
        }
        let waited = plain.waited();
        let encrypted: Vec<&Recorded<'_>> = known
            .iter()
            .filter(|other| other.crypto.is_some() && other.is_beside(plain))
            .collect();
        if encrypted.is_empty() {
            continue;
        }
        estimates.push(on(target, &[plain], waited, None));
        let mut systems: Vec<&str> = Vec::new();
        for trial in &encrypted {
            if !systems.contains(&trial.trial.system.as_str()) {
                systems.push(&trial.trial.system);
            }
        }
        for system in systems {
            for cost in costs {
                let of_system: Vec<&Recorded<'_>> = encrypted
                    .iter()
                    .copied()
                    .filter(|trial| trial.trial.system == system)
                    .collect();
                let own = |trial: &&&Recorded<'_>| {
                    trial.trial.cipher.as_deref() == Some(&cost.cipher)
                        && trial.trial.key_bits == Some(cost.key_bits)
                };
                // A recording with this very cipher is the best basis.
                let bases = match of_system.iter().find(own) {
                    Some(own) => vec![*own],
                    None => of_system,
                };
                estimates.push(on(target, &bases, waited, Some(cost)));
            }
        }
    }
    match estimates.is_empty() {
        true => Err(EstimateError::NothingRecorded {
            run: run.run.clone(),
        }),
        false => Ok(estimates),
    }
}

/// A cell of a run with what an estimate needs; each for one repetition.
struct Recorded<'a> {
    trial: &'a Trial,
    repetitions: f64,
    crypto: Option<f64>,
    bytes: [f64; 2],
    requests: [f64; 2],
}

impl<'a> Recorded<'a> {
    /// The parts of `trial`; `None` if one of them is missing.
    fn of(trial: &'a Trial) -> Option<Self> {
        let crypto = trial.time_s.crypto;
        let usable = trial.tier == Tier::Fs
            && trial.fs().is_some()
            && !trial.samples_s().is_empty()
            && trial.cipher.is_some() == crypto.is_some();
        let moved = trial.operation()?.moved.filter(|_| usable)?;
        let repetitions = f64::from(trial.repetitions.max(1));
        let each = |sum: u64| sum as f64 / repetitions;
        Some(Self {
            trial,
            repetitions,
            crypto: crypto.map(|crypto| crypto / repetitions),
            bytes: [each(moved.read_bytes), each(moved.written_bytes)],
            requests: [each(moved.reads), each(moved.writes)],
        })
    }

    /// Whether it is the same operation on the same kernel, encrypted.
    fn is_beside(&self, plain: &Self) -> bool {
        let key = |trial: &'a Trial| {
            (
                trial.fs(),
                trial.workload.as_str(),
                trial.device.size,
                trial.threads,
                trial.cold,
            )
        };
        let lab = |trial: &Trial| Kernel::of(&trial.system).0;
        key(self.trial) == key(plain.trial) && lab(self.trial) == lab(plain.trial)
    }

    /// Seconds of a repetition in which no thread worked, which are attributed to the device.
    fn waited(&self) -> f64 {
        let time = &self.trial.time_s;
        if self.trial.device.kind == "ram" {
            return 0.0;
        }
        let busy = time.cpu.map(|cpu| cpu + time.workers.unwrap_or(0.0));
        let waited = time
            .wall
            .zip(busy)
            .map(|(wall, busy)| (wall - busy) / self.repetitions);
        waited.map_or(0.0, |waited| waited.max(0.0))
    }

    /// All that is neither encryption nor waiting. Those are known of all
    /// repetitions together, and taken from each by their share.
    fn rest(&self, waited: f64) -> Span {
        let samples = self.trial.samples_s();
        let Some(wall) = stats::interval(samples) else {
            return Span::default();
        };
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let share = (waited + self.crypto.unwrap_or(0.0)) / mean;
        let wall = Span {
            expected: wall.median,
            low: wall.low,
            high: wall.high,
        };
        wall.times((1.0 - share).max(0.0))
    }
}

/// One operation with one cipher, by what was recorded with `bases`, which are
/// of the same operation on the same system.
fn on(target: &Target, bases: &[&Recorded<'_>], waited: f64, cost: Option<&Cost>) -> Estimate {
    let mean = |of: &dyn Fn(&Recorded<'_>) -> f64| {
        bases.iter().map(|base| of(base)).sum::<f64>() / bases.len() as f64
    };
    let [read, written] = [0, 1].map(|way| mean(&|base| base.bytes[way]));
    let [reads, writes] = [0, 1].map(|way| mean(&|base| base.requests[way]));

    let rests: Vec<Span> = bases.iter().map(|base| base.rest(waited)).collect();
    let expected: Vec<f64> = rests.iter().map(|rest| rest.expected).collect();
    let rest = Span {
        expected: stats::median(&expected).unwrap_or(0.0),
        low: rests
            .iter()
            .map(|rest| rest.low)
            .fold(f64::INFINITY, f64::min),
        high: rests.iter().map(|rest| rest.high).fold(0.0, f64::max),
    };
    let rest = rest.times(1.0 / target.speed);

    let hertz = target.clock_mhz * 1e6;
    let crypto = cost.map_or(Span::default(), |cost| {
        let decrypting = cost.decrypt.times(read / hertz);
        decrypting.plus(cost.encrypt.times(written / hertz))
    });
    let device = &target.device;
    let transfer = read / device.read_mb_s / 1e6 + written / device.write_mb_s / 1e6;
    let requests = (reads * device.read_us + writes * device.write_us) / 1e6;
    let storage = Span::within(transfer + requests, device.spread);

    let one_by_one = rest.plus(crypto).plus(storage);
    let first = bases[0].trial;
    Estimate {
        fs: first.fs().unwrap_or_default().to_owned(),
        size: first.device.size,
        operation: first.workload.clone(),
        system: first.system.clone(),
        cipher: cost.map(|cost| cost.cipher.clone()),
        key_bits: cost.map(|cost| cost.key_bits),
        recorded_with: bases
            .iter()
            .filter_map(|base| base.trial.cipher.clone())
            .collect(),
        seconds: Span {
            low: rest.low + crypto.low.max(storage.low),
            ..one_by_one
        },
        crypto_s: crypto.expected,
        device_s: storage.expected,
        rest_s: rest.expected,
    }
}
