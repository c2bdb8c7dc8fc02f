//! Sensors of `/sys/class/hwmon`: counters in µJ and powers in µW.

use super::gauge::{Gauge, Part};
use super::sensor::{Sensor, Source};
use super::sysfs::{folders, index, name, number, word};
use std::path::Path;

/// Refresh of counters that the driver reads from the processor whenever it is asked, seconds.
const AT_ONCE: f64 = 1e-3;

/// Refresh of a counter whose driver does not say it, seconds.
const COUNTER: f64 = 0.1;

/// Refresh of a power whose driver does not say it, seconds.
const POWER: f64 = 1.0;

/// Chips that measure the whole processor or the whole machine.
const WHOLE: &[&str] = &["amd_energy", "fam15h_power", "power_meter"];

/// Words in a label that say the same.
const WHOLE_LABELS: &[&str] = &["total", "system", "socket", "package", "vdd_in"];

/// All of them. The sockets of `amd_energy` are one sensor, and its cores are left out, because
/// the sockets contain them.
pub(super) fn sensors(root: &Path) -> Vec<Sensor> {
    let chips = folders(&root.join("class/hwmon"));
    chips.iter().flat_map(|chip| of_chip(chip)).collect()
}

fn of_chip(chip: &Path) -> Vec<Sensor> {
    let Some(driver) = word(&chip.join("name")) else {
        return Vec::new();
    };
    let interval = |file: &str| {
        let ms = number(&chip.join(file)).ok();
        ms.filter(|ms| *ms > 0).map(|ms| ms as f64 / 1e3)
    };
    let refresh = interval("update_interval");
    let mut sensors: Vec<Sensor> = Vec::new();
    let mut sockets: Vec<Part> = Vec::new();
    let mut files: Vec<String> = folders(chip).iter().map(|file| name(file)).collect();
    files.sort_by_key(|file| (file.len(), file.clone()));
    for file in files {
        let (what, number) = match (
            index(&file, "energy", "_input"),
            index(&file, "power", "_average"),
            index(&file, "power", "_input"),
        ) {
            (Some(number), ..) => ("energy", number),
            (_, Some(number), _) => ("power", number),
            // An average says more than the value of a moment.
            (.., Some(number)) if !chip.join(format!("power{number}_average")).exists() => {
                ("power", number)
            }
            _ => continue,
        };
        let label = word(&chip.join(format!("{what}{number}_label")));
        let label = label.unwrap_or_else(|| format!("{what}{number}"));
        if driver == "amd_energy" && !label.starts_with("Esocket") {
            continue;
        }
        let path = chip.join(&file);
        let (gauge, refresh) = match what {
            "energy" => {
                let own = if driver == "amd_energy" {
                    AT_ONCE
                } else {
                    COUNTER
                };
                let counter = Gauge::Counter {
                    file: path,
                    range: None,
                };
                (counter, refresh.unwrap_or(own))
            }
            _ => {
                let average = interval(&format!("power{number}_average_interval"));
                let power = Gauge::Power {
                    file: path,
                    status: None,
                };
                (power, average.or(refresh).unwrap_or(POWER))
            }
        };
        let part = Part {
            name: label.clone(),
            gauge,
            refresh,
            optional: false,
        };
        if driver == "amd_energy" {
            sockets.push(part);
            continue;
        }
        sensors.push(Sensor {
            name: format!("{driver}:{label}"),
            source: Source::Hwmon,
            parts: vec![part],
            is_known: is_whole(&driver, &label),
        });
    }
    if !sockets.is_empty() {
        sensors.push(Sensor {
            name: driver,
            source: Source::Hwmon,
            parts: sockets,
            is_known: true,
        });
    }
    sensors
}

fn is_whole(driver: &str, label: &str) -> bool {
    let label = label.to_lowercase();
    WHOLE.contains(&driver) || WHOLE_LABELS.iter().any(|word| label.contains(word))
}
