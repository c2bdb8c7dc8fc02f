//! The energy sensors in `cryptmark doctor`.

use lab::energy::{Choice, Found, SYSFS, sensors};
use std::path::Path;

/// A line for each sensor of this machine; a hypervisor is the reason why there is none.
pub(super) fn lines(hypervisor: Option<&str>) -> Vec<String> {
    told(&sensors(Path::new(SYSFS)), hypervisor.is_some())
}

fn told(found: &[Found], is_virtual: bool) -> Vec<String> {
    if found.is_empty() {
        return vec![match is_virtual {
            true => "no sensor (virtual machines have none)".to_owned(),
            false => "no sensor; load the driver: modprobe intel_rapl_msr".to_owned(),
        }];
    }
    let chosen = Choice::Auto.of(found).ok().flatten();
    let line = |Found { sensor, fault }: &Found| {
        let name = sensor.name();
        let line = format!("{name}: {}", sensor.describe());
        match fault {
            None if chosen.as_ref() == Some(sensor) => format!("{line}, read by every run"),
            None => format!("{line}, read with --energy '{name}'"),
            Some(fault) => format!("{line}: {fault}. {}", fault.remedy()),
        }
    };
    found.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    /// A machine with these files; a folder for those without a text.
    fn machine(files: &[(&str, &str)]) -> TempDir {
        let root = TempDir::new().unwrap();
        for (file, text) in files {
            let path = root.path().join("class").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match text.is_empty() {
                true => fs::create_dir(path).unwrap(),
                false => fs::write(path, text).unwrap(),
            }
        }
        root
    }

    #[test]
    fn a_machine_without_sensors_is_one_line() {
        let root = machine(&[]);
        let found = sensors(root.path());
        assert_eq!(
            told(&found, true),
            ["no sensor (virtual machines have none)"]
        );
        assert_eq!(told(&found, false).len(), 1);
    }

    #[test]
    fn each_sensor_says_whether_it_is_read_and_what_opens_it() {
        let root = machine(&[
            ("powercap/intel-rapl:0/name", "package-0"),
            ("powercap/intel-rapl:0/energy_uj", "5"),
            ("powercap/intel-rapl:0:0/name", "dram"),
            ("powercap/intel-rapl:0:0/energy_uj", "5"),
            ("powercap/intel-rapl:1/name", "psys"),
            ("powercap/intel-rapl:1/energy_uj", "5"),
            ("power_supply/BAT0/type", "Battery"),
            ("power_supply/BAT0/status", "Charging"),
            ("power_supply/BAT0/energy_now", "5"),
        ]);
        assert_eq!(
            told(&sensors(root.path()), false),
            [
                "package: package-0 + dram (powercap), read by every run",
                "psys: psys (powercap), read with --energy 'psys'",
                "battery:BAT0: BAT0 (battery): the battery BAT0 is not discharging. Unplug the charger.",
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let root = machine(&[
            ("powercap/intel-rapl:0/name", "package-0"),
            ("powercap/intel-rapl:0/energy_uj", ""),
        ]);
        let lines = told(&sensors(root.path()), false);
        assert!(
            lines[0].contains("cannot be read: is a directory"),
            "{lines:?}"
        );
    }
}
