//! RAPL through powercap: `/sys/class/powercap/intel-rapl:N` and its subzones.
//!
//! AMD's processors have the same names. The zones of `intel-rapl-mmio` are the same domains a
//! second time, and are left out.

use super::gauge::{Gauge, Part};
use super::sensor::{Sensor, Source};
use super::sysfs::{folders, name, number, word};
use std::path::{Path, PathBuf};

/// The counters are refreshed every millisecond.
const REFRESH: f64 = 1e-3;

/// The processor's packages with the memory that belongs to them, and `psys` by itself.
///
/// A package contains its cores and its uncore part, so these are never added. `psys` contains
/// the packages and more of the machine, so it is a sensor of its own.
pub(super) fn sensors(root: &Path) -> Vec<Sensor> {
    let zones = folders(&root.join("class/powercap"));
    let (mut packages, mut memories, mut platform) = (Vec::new(), Vec::new(), Vec::new());
    for zone in zones {
        let Some(depth) = depth(&zone) else {
            continue;
        };
        let Some(domain) = word(&zone.join("name")) else {
            continue;
        };
        match (depth, domain.as_str()) {
            (1, "psys") => platform.push(part(&zone, domain, false)),
            (1, package) if package.starts_with("package") => {
                packages.push(part(&zone, domain, false));
            }
            (2, "dram") => memories.push(part(&zone, domain, true)),
            _ => {}
        }
    }
    let mut sensors = Vec::new();
    if !packages.is_empty() {
        packages.extend(memories);
        sensors.push(Sensor {
            name: "package".to_owned(),
            source: Source::Powercap,
            parts: packages,
            is_known: true,
        });
    }
    if !platform.is_empty() {
        sensors.push(Sensor {
            name: "psys".to_owned(),
            source: Source::Powercap,
            parts: platform,
            is_known: true,
        });
    }
    sensors
}

/// 1 for a zone such as `intel-rapl:0`, 2 for its subzone `intel-rapl:0:1`.
fn depth(zone: &Path) -> Option<usize> {
    let name = name(zone);
    let numbers = name.strip_prefix("intel-rapl:")?;
    Some(numbers.split(':').count())
}

fn part(zone: &Path, name: String, optional: bool) -> Part {
    let range = number(&zone.join("max_energy_range_uj")).ok();
    let range = range.filter(|range| *range > 0);
    Part {
        name,
        gauge: Gauge::Counter {
            file: file(zone),
            range: range.map(|range| range as f64 / 1e6),
        },
        refresh: REFRESH,
        optional,
    }
}

fn file(zone: &Path) -> PathBuf {
    zone.join("energy_uj")
}
