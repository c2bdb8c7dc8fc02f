//! The numbers of a simulated drive with which it does what a real one did.
//!
//! ```text
//! probes ─▶ the real device ──▶ measured ┐
//!    └────▶ the simulated drive ▶ figures ┴▶ least squares of the logarithms ─▶ numbers ─┐
//!               ▲                                                                        │
//!               └────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Both run the same workloads by the same loop. A number that no probe shows
//! stays what it was, and is said to be so.

mod probe;
mod search;
mod written;

pub use probe::{Probe, Shows, probes};
pub use written::written;

use super::simulated;
use crate::clock::Clock;
use crate::error::LabError;
use crate::trial::{self, Options, Sample};
use crate::workload::{Extent, Workload};
use block::layer::Slice;
use block::{BlockDevice, NullDevice};
use bytesize::ByteSize;
use drive::demand::Drive;
use drive::preset::Preset;
use drive::{DriveError, SimulatedDevice};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Maximum number of requests of a simulated probe, more than a disk's cache takes.
const REQUESTS: u64 = 1500;

/// Maximum bytes of a simulated probe, except for bursts.
const BYTES: u64 = 128 << 20;

/// Time for which a real device rests before each probe.
const REST: Duration = Duration::from_millis(100);

/// A number counts as visible if its change alters a figure by this share of that change.
const SEEN: f64 = 0.03;

/// Offsets of slices are multiples of this.
const ALIGNMENT: u64 = 4096;

/// A device, real or simulated, that measures a probe's figure.
pub trait Bench {
    /// Runs a probe and returns its figure, above 0, in the unit of [`Probe::shows`].
    fn figure(&mut self, probe: &Probe) -> Result<f64, LabError>;
}

/// A device that is here.
pub struct Real<'a> {
    /// The extent for reads. All of it has been written, unless it is a disk, for which that does
    /// not matter.
    pub read: &'a dyn BlockDevice,
    /// The extent for writes, which is the beginning of the same device.
    pub written: &'a dyn BlockDevice,
    /// Seed of the offsets: the same seed gives the same offsets.
    pub seed: u64,
    /// Flag that another thread sets to end the probe.
    pub stop: &'a AtomicBool,
}

impl Bench for Real<'_> {
    fn figure(&mut self, probe: &Probe) -> Result<f64, LabError> {
        self.written.flush()?;
        std::thread::sleep(REST);
        let device = match probe.workload.writes() {
            true => self.written,
            false => self.read,
        };
        let slice = Slice::new(device, probe.range(device.geometry().size))?;
        let options = Options {
            seed: self.seed,
            metered: false,
            slice: false,
            stop: self.stop,
            clock: Clock::get(),
        };
        run(&slice, probe, &probe.workload, options)
    }
}

/// A drive that is not here, whose first `extent` bytes were written.
pub struct Virtual<'a> {
    drive: Box<dyn Drive>,
    reach: u64,
    extent: u64,
    seed: u64,
    stop: &'a AtomicBool,
}

impl<'a> Virtual<'a> {
    /// The first `reach` bytes of it may be read, and the first `extent` of those written.
    ///
    /// # Errors
    /// [`DriveError`] if such a drive is impossible, or is smaller.
    pub fn new(
        preset: &Preset,
        [reach, extent]: [u64; 2],
        seed: u64,
        stop: &'a AtomicBool,
    ) -> Result<Self, DriveError> {
        let drive = preset.drive(extent, seed)?;
        let capacity = drive.capacity();
        if reach > capacity {
            return Err(DriveError::TooSmall {
                capacity,
                needed: reach,
            });
        }
        Ok(Self {
            reach,
            drive,
            extent,
            seed,
            stop,
        })
    }
}

impl Bench for Virtual<'_> {
    fn figure(&mut self, probe: &Probe) -> Result<f64, LabError> {
        let bytes = match probe.workload.writes() {
            true => self.extent,
            false => self.reach,
        };
        let nowhere = NullDevice::new(bytes);
        let device = SimulatedDevice::new(self.drive.duplicate(), nowhere, None)?;
        let slice = Slice::new(device, probe.range(bytes))?;
        let options = Options {
            seed: self.seed,
            metered: false,
            slice: false,
            stop: self.stop,
            clock: &simulated::clock(),
        };
        run(&slice, probe, &counted(&probe.workload), options)
    }
}

/// The same workload with enough requests for a steady figure; a burst keeps its length.
fn counted(workload: &Workload) -> Workload {
    let bytes = match workload.extent() {
        Extent::Bytes(bytes) => bytes,
        Extent::Time(_) => (REQUESTS * workload.block_bytes()).min(BYTES),
    };
    Workload {
        seconds: None,
        bytes: Some(ByteSize::b(bytes)),
        ..workload.clone()
    }
}

fn run(
    device: &dyn BlockDevice,
    probe: &Probe,
    workload: &Workload,
    options: Options<'_>,
) -> Result<f64, LabError> {
    let sample = match trial::run(device, workload, options) {
        Ok(sample) => sample,
        Err(error) if error.is_interrupted() => {
            return Err(LabError::interrupted("Nothing was written. Run it again."));
        }
        Err(source) => {
            let remedy = source.remedy().to_owned();
            return Err(LabError::failed(probe.name, remedy).because(source));
        }
    };
    let figure = shown(probe.shows, &sample);
    match figure.is_finite() && figure > 0.0 {
        true => Ok(figure),
        false => Err(LabError::failed(
            format!("{} took no time at all", probe.name),
            "Give `at` a disk: this device is as fast as memory.",
        )),
    }
}

fn shown(shows: Shows, sample: &Sample) -> f64 {
    match shows {
        Shows::MegabytesASecond => sample.mb_s(),
        Shows::RequestsASecond => sample.iops(),
        Shows::SpreadMs => {
            let at = |quantile| sample.latency.value_at_quantile(quantile) as f64 / 1e6;
            at(0.9) - at(0.1)
        }
    }
}

/// The outcome of a fit.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The drive that best reproduces the measured figures.
    pub preset: Preset,
    /// The measured figures, and those of that drive.
    pub cells: Vec<Cell>,
    /// The numbers of that drive.
    pub numbers: Vec<Number>,
}

/// A probe's figures.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// The probe's name.
    pub probe: &'static str,
    /// The quantity that the figures measure.
    pub shows: Shows,
    /// The figure of the real device.
    pub measured: f64,
    /// The figure of the simulated drive.
    pub fitted: f64,
}

impl Cell {
    /// Fitted ÷ measured, less one.
    pub fn error(&self) -> f64 {
        self.fitted / self.measured - 1.0
    }
}

/// A number of the drive.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Its key in TOML.
    pub key: &'static str,
    /// Of the drive that the search began with.
    pub before: f64,
    /// The fitted value.
    pub after: f64,
    /// Whether any probe shows the number. If none does, it keeps its value.
    pub seen: bool,
}

/// Finds the numbers of a drive of `from`'s kind with which it gives the `measured` figures of
/// `probes`, over the same bytes. `report` gets the number of simulations so far.
///
/// # Errors
/// [`LabError`], also if `stop` was set.
pub fn fit(
    from: &Preset,
    probes: &[Probe],
    measured: &[f64],
    [reach, extent]: [u64; 2],
    stop: &AtomicBool,
    report: &mut dyn FnMut(u64),
) -> Result<Fit, LabError> {
    let start = from.knobs();
    let mut simulated = 0;
    // In logarithms: numbers differ by orders of magnitude, errors are shares.
    let mut figures = |logs: &[f64]| -> Result<Vec<f64>, LabError> {
        report(simulated);
        simulated += 1;
        let knobs: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        let mut bench = Virtual::new(&from.turned(&knobs)?, [reach, extent], SEED, stop)?;
        let figures = probes.iter().map(|probe| Ok(bench.figure(probe)?.ln()));
        figures.collect()
    };
    let logs: Vec<f64> = start.iter().map(|knob| knob.ln()).collect();
    let wanted: Vec<f64> = measured.iter().map(|figure| figure.ln()).collect();
    let found = search::least_squares(&logs, &wanted, &mut figures)?;
    let knobs: Vec<f64> = found.place.iter().map(|log| log.exp()).collect();
    // A number that no probe shows keeps its start value. Any change of it is smaller than the
    // error.
    let seen: Vec<bool> = found.influence.iter().map(|most| *most > SEEN).collect();
    let kept = start.iter().zip(&knobs).zip(&seen);
    let knobs: Vec<f64> = kept
        .map(|((before, after), seen)| if *seen { *after } else { *before })
        .collect();
    let preset = from.turned(&knobs)?;
    let mut bench = Virtual::new(&preset, [reach, extent], SEED, stop)?;
    let mut cells = Vec::new();
    for (probe, &measured) in probes.iter().zip(measured) {
        cells.push(Cell {
            probe: probe.name,
            shows: probe.shows,
            measured,
            fitted: bench.figure(probe)?,
        });
    }
    let before_and_after = from.numbers().into_iter().zip(preset.numbers());
    let numbers = before_and_after.zip(&seen);
    Ok(Fit {
        numbers: numbers
            .map(|(((key, before), (_, after)), seen)| Number {
                key,
                before,
                after,
                seen: *seen,
            })
            .collect(),
        preset,
        cells,
    })
}

/// Of the simulated drives' offsets: not those of what is measured.
const SEED: u64 = 0x5eed;
