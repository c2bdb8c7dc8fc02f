//! Sensors that lie, stall, disappear or cannot be read give no figure.

use super::{Machine, RANGE};
use crate::energy::{Choice, Fault, Meter, sensors};
use std::{fs, io};

/// A meter of a package, and the joules of the next second if the counter then holds `next`.
fn after(next: impl FnOnce(&mut Machine)) -> Result<f64, Fault> {
    let mut machine = Machine::laptop();
    let meter = machine.meter("package");
    let from = meter.mark();
    next(&mut machine);
    let to = meter.mark();
    meter.between(from, to)
}

const FILE: &str = "class/powercap/intel-rapl:0/energy_uj";

#[test]
fn one_wrap_is_counted_and_two_are_not_known() {
    let mut machine = Machine::new();
    let range = RANGE as f64 / 1e6;
    machine.zone("intel-rapl:0", "package-0", RANGE, range - 5.0);
    let meter = machine.meter("package");
    let from = meter.mark();
    machine.passes(1.0, &[15.0]);
    let to = meter.mark();
    let joules = meter.between(from, to).unwrap();
    assert!((joules - 15.0).abs() < 0.01, "{joules}");

    // Ten minutes at 900 W wrap the counter twice. Whoever did not look cannot know.
    machine.passes(600.0, &[900.0]);
    let late = meter.mark();
    assert!(matches!(
        meter.between(to, late),
        Err(Fault::Unwatched { .. })
    ));
    // The next stretch is known again.
    machine.passes(1.0, &[15.0]);
    assert!(meter.between(late, meter.mark()).is_ok());

    // Whoever looks every minute knows all of it.
    let from = meter.mark();
    for _ in 0..10 {
        machine.passes(60.0, &[900.0]);
        meter.mark();
    }
    let joules = meter.between(from, meter.mark()).unwrap();
    assert!((joules / 540_000.0 - 1.0).abs() < 0.01, "{joules}");
}

#[test]
fn a_counter_that_stands_still_stalls() {
    let stalled = after(|machine| machine.passes(1.0, &[]));
    assert!(matches!(stalled, Err(Fault::Stalled { part }) if part == "package-0"));
}

/// Memory that counts nothing while the package does is no sum of both.
#[test]
fn no_part_may_stand_still() {
    let mut machine = Machine::laptop();
    machine.zone("intel-rapl:0:2", "dram", RANGE, 7.0);
    let meter = machine.meter("package");
    let from = meter.mark();
    machine.passes(1.0, &[10.0]);
    let stalled = meter.between(from, meter.mark());
    assert!(matches!(stalled, Err(Fault::Stalled { part }) if part == "dram"));
    // If it never moved, it is left out, and the name of the sum says so.
    meter.leave_out_what_stands();
    assert_eq!(meter.describe(), "package-0 (powercap)");
    let from = meter.mark();
    machine.passes(1.0, &[10.0]);
    assert!(meter.between(from, meter.mark()).is_ok());
}

#[test]
fn a_power_that_stands_still_stalls() {
    let machine = Machine::new();
    machine.write("class/hwmon/hwmon0/name", "power_meter");
    machine.write("class/hwmon/hwmon0/power1_average", "9000000");
    machine.write("class/hwmon/hwmon0/power1_average_interval", "100");
    let meter = machine.meter("power_meter:power1");
    let from = meter.mark();
    for _ in 0..100 {
        *machine.now.lock().unwrap() += 0.05;
        meter.mark();
    }
    let to = meter.mark();
    assert!(matches!(
        meter.between(from, to),
        Err(Fault::Stalled { .. })
    ));
    // At rest it may.
    assert!((meter.between_idle(from, to).unwrap() - 45.0).abs() < 1e-6);
}

#[test]
fn a_counter_that_goes_back_or_jumps_is_not_believed() {
    let back = after(|machine| {
        machine.passes(1.0, &[10.0]);
        machine.write(FILE, "900000000");
    });
    assert!(matches!(back, Err(Fault::Backwards { .. })), "{back:?}");
    let jump = after(|machine| {
        machine.passes(1.0, &[10.0]);
        machine.write(FILE, "9000000000");
    });
    assert!(matches!(jump, Err(Fault::Jump { watts, .. }) if watts > 1000.0));
    // Without a range, zero is behind it, too.
    let mut machine = Machine::new();
    machine.write("class/hwmon/hwmon0/name", "amd_energy");
    machine.write("class/hwmon/hwmon0/energy1_label", "Esocket0");
    machine.counter("class/hwmon/hwmon0/energy1_input", u64::MAX, 50.0);
    let meter = machine.meter("amd_energy");
    let from = meter.mark();
    machine.passes(1.0, &[10.0]);
    machine.write("class/hwmon/hwmon0/energy1_input", "0");
    let back = meter.between(from, meter.mark());
    assert!(matches!(back, Err(Fault::Backwards { .. })));
}

#[test]
fn a_sensor_that_disappears_has_no_figure_until_it_is_back() {
    let mut machine = Machine::laptop();
    let meter = machine.meter("package");
    let from = meter.mark();
    machine.passes(1.0, &[10.0]);
    fs::remove_file(machine.path(FILE)).unwrap();
    let gone = meter.mark();
    assert!(matches!(meter.between(from, gone), Err(Fault::Gone { .. })));
    machine.passes(1.0, &[10.0]);
    let back = meter.mark();
    assert!(matches!(meter.between(gone, back), Err(Fault::Gone { .. })));
    machine.passes(1.0, &[10.0]);
    let joules = meter.between(back, meter.mark()).unwrap();
    assert!((joules - 10.0).abs() < 0.01);
    assert!(meter.between(from, meter.mark()).is_err());
}

/// A folder in the place of a file cannot be read, not even by root.
#[test]
fn what_cannot_be_read_says_why() {
    let machine = Machine::laptop();
    fs::remove_file(machine.path(FILE)).unwrap();
    fs::create_dir(machine.path(FILE)).unwrap();
    let found = sensors(machine.root.path());
    let kind = io::ErrorKind::IsADirectory;
    assert!(
        matches!(&found[0].fault, Some(Fault::Unreadable { kind: why, .. }) if *why == kind),
        "{found:?}"
    );
    // The next one is used instead, but not in place of one that was named.
    let chosen = Choice::Auto.of(&found).unwrap().unwrap();
    assert_eq!(chosen.name(), "psys");
    let named = Choice::Named("package".to_owned());
    assert!(matches!(named.of(&found), Err(Fault::Unreadable { .. })));
    let unknown = Choice::Named("packages".to_owned()).of(&found);
    assert!(matches!(unknown, Err(Fault::Absent { known, .. }) if known == ["package", "psys"]));
    assert_eq!(Choice::Off.of(&found), Ok(None));

    let machine = Machine::laptop();
    machine.write(FILE, "no number");
    let fault = machine.sensor("package").check().unwrap_err();
    assert!(matches!(fault, Fault::NotANumber { .. }));
}

#[test]
fn a_file_of_root_says_what_opens_it() {
    let denied = io::Error::from(io::ErrorKind::PermissionDenied);
    let fault = Fault::reading("/sys/class/powercap/intel-rapl:0/energy_uj".into(), &denied);
    assert!(matches!(fault, Fault::Denied { .. }));
    assert_eq!(
        fault.remedy(),
        "As root, run `chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj`."
    );
}

#[test]
fn a_battery_that_is_charged_has_no_figure() {
    let machine = Machine::new();
    machine.write("class/power_supply/BAT0/type", "Battery");
    machine.write("class/power_supply/BAT0/energy_now", "30000000");
    let sensor = |status: &str| {
        machine.write("class/power_supply/BAT0/status", status);
        machine.sensor("battery:BAT0")
    };
    for status in ["Charging", "Full", "Not charging", "Unknown"] {
        let fault = sensor(status).check().unwrap_err();
        assert!(matches!(fault, Fault::NotDischarging { .. }), "{status}");
    }
    assert_eq!(sensor("Discharging").check(), Ok(()));
    // Plugged in on the way.
    let meter = machine.meter("battery:BAT0");
    let from = meter.mark();
    *machine.now.lock().unwrap() += 200.0;
    machine.write("class/power_supply/BAT0/energy_now", "29000000");
    let between = meter.mark();
    assert!((meter.between(from, between).unwrap() - 3600.0).abs() < 1e-6);
    *machine.now.lock().unwrap() += 200.0;
    machine.write("class/power_supply/BAT0/status", "Charging");
    let fault = meter.between(between, meter.mark());
    assert!(matches!(fault, Err(Fault::NotDischarging { .. })));
}

#[test]
fn a_visit_that_is_too_short_has_no_figure() {
    let mut machine = Machine::laptop();
    let meter: Meter = machine.meter("package");
    let from = meter.mark();
    machine.passes(0.009, &[10.0]);
    let short = meter.between(from, meter.mark());
    assert!(matches!(short, Err(Fault::TooShort { .. })));
    machine.passes(0.001, &[10.0]);
    assert!(meter.between(from, meter.mark()).is_ok());
}
