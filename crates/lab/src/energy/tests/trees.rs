//! What is found in a tree, and the joules that it tells.

use super::{Machine, RANGE};
use crate::energy::{Choice, Meter, sensors};
use std::path::Path;
use std::time::Duration;

fn names(machine: &Machine) -> Vec<String> {
    let found = sensors(machine.root.path()).into_iter();
    found.map(|found| found.sensor.name().to_owned()).collect()
}

/// Whether `joules` is within a per cent of `planted`.
fn is_near(joules: f64, planted: f64) -> bool {
    (joules / planted - 1.0).abs() < 0.01
}

#[test]
fn a_machine_without_sensors_has_none() {
    let machine = Machine::new();
    assert!(sensors(machine.root.path()).is_empty());
    assert!(sensors(Path::new("/nonexistent")).is_empty());
    assert_eq!(Choice::Auto.of(&[]), Ok(None));
}

/// The cores are in the package, psys contains both, and the zones of MMIO are the same again.
#[test]
fn a_package_is_counted_once() {
    let mut machine = Machine::laptop();
    assert_eq!(names(&machine), ["package", "psys"]);
    assert_eq!(machine.sensor("package").describe(), "package-0 (powercap)");
    let (package, platform) = (machine.meter("package"), machine.meter("psys"));
    let (from, before) = (package.mark(), platform.mark());
    machine.passes(2.0, &[12.0, 9.0, 1.0, 20.0, 12.0]);
    let joules = package.between(from, package.mark()).unwrap();
    assert!(is_near(joules, 24.0), "{joules}");
    let joules = platform.between(before, platform.mark()).unwrap();
    assert!(is_near(joules, 40.0), "{joules}");
}

#[test]
fn sockets_and_their_memory_are_added() {
    let mut machine = Machine::new();
    for (socket, start) in [(0, 100.0), (1, 60_000.0)] {
        let zone = format!("intel-rapl:{socket}");
        let name = format!("package-{socket}");
        machine.zone(&zone, &name, 65_532_610_987, start);
        machine.zone(&format!("{zone}:0"), "dram", 65_532_610_987, start);
    }
    let sensor = machine.sensor("package");
    assert_eq!(
        sensor.describe(),
        "package-0 + package-1 + dram + dram (powercap)"
    );
    let meter = machine.meter("package");
    let from = meter.mark();
    machine.passes(1.0, &[100.0, 10.0, 50.0, 5.0]);
    let joules = meter.between(from, meter.mark()).unwrap();
    assert!(is_near(joules, 165.0), "{joules}");
}

/// AMD's processors have no memory domain; some machines have psys alone.
#[test]
fn missing_domains_are_not_missed() {
    let mut amd = Machine::new();
    amd.zone("intel-rapl:0", "package-0", RANGE, 0.0);
    amd.zone("intel-rapl:0:0", "core", RANGE, 0.0);
    assert_eq!(names(&amd), ["package"]);
    let mut platform = Machine::new();
    platform.zone("intel-rapl:0", "psys", RANGE, 0.0);
    assert_eq!(names(&platform), ["psys"]);
    let chosen = Choice::Auto.of(&sensors(platform.root.path()));
    assert_eq!(chosen.unwrap().unwrap().name(), "psys");
    // A zone without a name is no domain.
    let unnamed = Machine::new();
    unnamed.write("class/powercap/intel-rapl:0/energy_uj", "5");
    assert!(names(&unnamed).is_empty());
}

#[test]
fn hwmon_counts_and_integrates() {
    let mut machine = Machine::new();
    machine.write("class/hwmon/hwmon0/name", "coretemp");
    machine.write("class/hwmon/hwmon0/temp1_input", "50000");
    machine.write("class/hwmon/hwmon1/name", "amd_energy");
    machine.write("class/hwmon/hwmon1/energy1_label", "Ecore000");
    machine.write("class/hwmon/hwmon1/energy2_label", "Esocket0");
    machine.counter("class/hwmon/hwmon1/energy1_input", u64::MAX, 5.0);
    machine.counter("class/hwmon/hwmon1/energy2_input", u64::MAX, 50.0);
    machine.write("class/hwmon/hwmon2/name", "ina226");
    machine.write("class/hwmon/hwmon2/update_interval", "20");
    machine.write("class/hwmon/hwmon2/power1_input", "4000000");
    machine.write("class/hwmon/hwmon3/name", "macsmc_hwmon");
    machine.write("class/hwmon/hwmon3/power1_label", "Total System Power");
    machine.write("class/hwmon/hwmon3/power1_input", "4000000");
    assert_eq!(
        names(&machine),
        [
            "amd_energy",
            "ina226:power1",
            "macsmc_hwmon:Total System Power"
        ]
    );
    // A power is never chosen by itself.
    let found = sensors(machine.root.path());
    let chosen = Choice::Auto.of(&found).unwrap().unwrap();
    assert_eq!(chosen.describe(), "Esocket0 (hwmon)");
    let meter = machine.meter("amd_energy");
    let from = meter.mark();
    machine.passes(1.0, &[3.0, 30.0]);
    assert!(is_near(meter.between(from, meter.mark()).unwrap(), 30.0));

    // 4 W to 8 W within two seconds are 12 J.
    let named = Choice::Named("ina226:power1".to_owned());
    assert_eq!(named.of(&found).unwrap().unwrap().name(), "ina226:power1");
    let meter = machine.meter("ina226:power1");
    let from = meter.mark();
    for step in 1..=100_u32 {
        machine.passes(0.02, &[]);
        let microwatts = 4_000_000 + 40_000 * step;
        machine.write("class/hwmon/hwmon2/power1_input", &microwatts.to_string());
        meter.mark();
    }
    let joules = meter.between(from, meter.mark()).unwrap();
    assert!(is_near(joules, 12.0), "{joules}");
}

/// Joules of ten minutes at 10 W, by what each kind of battery tells.
#[test]
fn batteries_are_read_in_all_their_units() {
    let battery = |files: &[&str]| {
        let machine = Machine::new();
        machine.write("class/power_supply/AC/type", "Mains");
        machine.write("class/power_supply/BAT0/type", "Battery");
        machine.write("class/power_supply/BAT0/status", "Discharging");
        machine.write("class/power_supply/hid/type", "Battery");
        machine.write("class/power_supply/hid/scope", "Device");
        machine.write("class/power_supply/hid/energy_now", "1");
        let write = |minutes: f64| {
            for file in files {
                let value = match *file {
                    // 50 Wh less a sixth of a watt-hour each minute.
                    "energy_now" => 50e6 - minutes / 60.0 * 10e6,
                    // The same at 10 V.
                    "charge_now" => 5e6 - minutes / 60.0 * 1e6,
                    "voltage_now" => 10e6,
                    "current_now" => -1e6 + minutes,
                    _ => 10e6 - minutes,
                };
                let path = format!("class/power_supply/BAT0/{file}");
                machine.write(&path, &format!("{value:.0}"));
            }
        };
        write(0.0);
        let meter = machine.meter("battery:BAT0");
        let from = meter.mark();
        for second in 1..=600 {
            *machine.now.lock().unwrap() += 1.0;
            write(f64::from(second) / 60.0);
            meter.mark();
        }
        meter.between(from, meter.mark()).unwrap()
    };
    for files in [
        &["energy_now", "power_now"][..],
        &["charge_now", "voltage_now", "current_now"],
        &["power_now"],
        &["current_now", "voltage_now"],
    ] {
        let joules = battery(files);
        assert!(is_near(joules, 6000.0), "{files:?}: {joules}");
    }
}

/// Between two readings, energy grows evenly.
#[test]
fn a_stretch_needs_no_marks() {
    let mut machine = Machine::laptop();
    let meter = machine.meter("package");
    for step in 0..100 {
        machine.passes(0.01, &[if step < 50 { 10.0 } else { 30.0 }]);
        meter.mark();
    }
    // From 0.355 s on, half a second: 0.145 s at 10 W and 0.355 s at 30 W.
    let joules = meter.over(0.145, 0.5).unwrap();
    assert!(is_near(joules, 1.45 + 10.65), "{joules}");
    // Before the first reading nothing is known.
    assert!(meter.over(0.5, 2.0).is_err());
    assert!(meter.over(0.5, 0.05).is_err(), "too short for these gaps");
}

/// The thread of a meter reads while the counter wraps, however often that is.
#[test]
fn a_thread_reads_across_a_wrap() {
    let mut machine = Machine::new();
    machine.watched = true;
    // It begins again at zero after 1000 J.
    machine.zone("intel-rapl:0", "package-0", 1_000_000_000, 950.0);
    let meter = Meter::start(machine.sensor("package"), true);
    let from = meter.mark();
    for _ in 0..100 {
        machine.passes(1.0, &[1.0]);
        // 500 W at most.
        std::thread::sleep(Duration::from_millis(2));
    }
    let joules = meter.between(from, meter.mark()).unwrap();
    assert!(is_near(joules, 100.0), "{joules}");
}
