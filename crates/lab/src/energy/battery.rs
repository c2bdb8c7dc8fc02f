//! Batteries of `/sys/class/power_supply`, while they discharge.

use super::gauge::{Gauge, Part};
use super::sensor::{Sensor, Source};
use super::sysfs::{folders, name, word};
use std::path::Path;

/// Time from one refresh of a battery's numbers to the next, seconds. Laptops take 1 to 30 s.
const REFRESH: f64 = 10.0;

/// Every battery of the machine. Those of a mouse or a keyboard have the scope `Device`, and are
/// left out.
pub(super) fn sensors(root: &Path) -> Vec<Sensor> {
    let supplies = folders(&root.join("class/power_supply"));
    supplies.iter().filter_map(|supply| of(supply)).collect()
}

fn of(supply: &Path) -> Option<Sensor> {
    let says = |file: &str, text: &str| word(&supply.join(file)).as_deref() == Some(text);
    if !says("type", "Battery") || says("scope", "Device") {
        return None;
    }
    let there = |file: &str| Some(supply.join(file)).filter(|path| path.exists());
    let status = supply.join("status");
    let voltage = there("voltage_now");
    let gauge = if let Some(file) = there("energy_now") {
        Gauge::Stored { file, status }
    } else if let (Some(file), Some(voltage)) = (there("charge_now"), voltage.clone()) {
        Gauge::Charge {
            file,
            voltage,
            status,
        }
    } else if let Some(file) = there("power_now") {
        let status = Some(status);
        Gauge::Power { file, status }
    } else {
        let (file, voltage) = (there("current_now")?, voltage?);
        Gauge::Current {
            file,
            voltage,
            status,
        }
    };
    let name = name(supply);
    Some(Sensor {
        name: format!("battery:{name}"),
        source: Source::Battery,
        parts: vec![Part {
            name,
            gauge,
            refresh: REFRESH,
            optional: false,
        }],
        is_known: true,
    })
}
