//! Sensors of simulated machines: trees of files, and a clock that the tests set.

mod coverage;
mod faults;
mod trees;

use super::{Meter, Sensor, sensors};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// The range of a client processor's counter, µJ.
const RANGE: u64 = 262_143_328_850;

/// A processor counts energy in steps of 2⁻¹⁴ J.
const STEP: f64 = 1.0 / 16384.0;

/// A machine whose files a test writes, and its clock.
pub(crate) struct Machine {
    root: TempDir,
    now: Arc<Mutex<f64>>,
    /// Joules that each counter has counted, by its file.
    counters: Vec<(PathBuf, f64, u64)>,
    /// Whether a thread reads while the test writes.
    watched: bool,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self {
            // Thousands of small files are written.
            root: TempDir::new_in("/dev/shm")
                .or_else(|_| TempDir::new())
                .unwrap(),
            now: Arc::new(Mutex::new(0.0)),
            counters: Vec::new(),
            watched: false,
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.root.path().join(file)
    }

    /// Writes a file at once, so that a reader finds it whole.
    fn write(&self, file: &str, text: &str) {
        replace(&self.path(file), text);
    }

    /// Adds a zone of RAPL whose counter begins at `joules`.
    fn zone(&mut self, zone: &str, name: &str, range: u64, joules: f64) {
        let folder = format!("class/powercap/{zone}");
        self.write(&format!("{folder}/name"), name);
        self.write(&format!("{folder}/max_energy_range_uj"), &range.to_string());
        self.counter(&format!("{folder}/energy_uj"), range, joules);
    }

    /// Adds a counter in µJ.
    fn counter(&mut self, file: &str, range: u64, joules: f64) {
        self.counters.push((self.path(file), joules, range));
        self.passes(0.0, &[]);
    }

    /// A processor with one package, and its parts.
    pub(crate) fn laptop() -> Self {
        let mut machine = Self::new();
        machine.zone("intel-rapl:0", "package-0", RANGE, 1000.0);
        machine.zone("intel-rapl:0:0", "core", RANGE, 600.0);
        machine.zone("intel-rapl:0:1", "uncore", RANGE, 20.0);
        machine.zone("intel-rapl:1", "psys", RANGE, 5000.0);
        machine.zone("intel-rapl-mmio:0", "package-0", RANGE, 1000.0);
        machine
    }

    /// Lets `seconds` pass in which the counters take `watts`, in the order in which they were
    /// added. The others take nothing.
    pub(crate) fn passes(&mut self, seconds: f64, watts: &[f64]) {
        *self.now.lock().unwrap() += seconds;
        for (number, (file, joules, range)) in self.counters.iter_mut().enumerate() {
            *joules += watts.get(number).unwrap_or(&0.0) * seconds;
            let counted = (*joules / STEP).floor() * STEP * 1e6;
            let text = (counted as u64 % *range).to_string();
            match self.watched || !file.exists() {
                true => replace(file, &text),
                false => fs::write(file, text).unwrap(),
            }
        }
    }

    /// The sensor of this name.
    fn sensor(&self, name: &str) -> Sensor {
        let found = sensors(self.root.path()).into_iter();
        let mut named = found.filter(|found| found.sensor.name() == name);
        named.next().expect("the sensor is there").sensor
    }

    /// A meter that reads a sensor by this machine's clock.
    pub(crate) fn meter(&self, name: &str) -> Meter {
        let now = Arc::clone(&self.now);
        Meter::unwatched(self.sensor(name), Arc::new(move || *now.lock().unwrap()))
    }
}

fn replace(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let new = file.with_extension("new");
    fs::write(&new, format!("{text}\n")).unwrap();
    fs::rename(new, file).unwrap();
}
