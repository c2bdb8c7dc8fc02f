//! Fits to simulated drives whose numbers are known: what is measured is
//! another drive in virtual time, with other offsets.

use cryptmark_lab::system::fit::{Bench, Fit, Virtual, fit, probes};
use drive::preset::Preset;
use std::sync::atomic::AtomicBool;

const EXTENT: u64 = 256_000_000;

/// Fits from the drive `name` to the same with its knobs times `factors`.
fn fitted(name: &str, factors: &[f64]) -> (Fit, Vec<f64>) {
    let from = Preset::named(name).unwrap();
    let knobs = from.knobs();
    assert_eq!(knobs.len(), factors.len());
    let knobs: Vec<f64> = knobs.iter().zip(factors).map(|(k, f)| k * f).collect();
    let other = from.turned(&knobs).unwrap();
    let stop = AtomicBool::new(false);
    // A disk is read everywhere, an SSD only in its written part.
    let extent = EXTENT;
    let reach = match from {
        Preset::Hdd(_) => from.capacity(),
        _ => extent,
    };
    let mut device = Virtual::new(&other, [reach, extent], 77, &stop).unwrap();
    let probes = probes(&from);
    let measured: Vec<f64> = probes
        .iter()
        .map(|probe| device.figure(probe).unwrap())
        .collect();
    let mut simulated = 0;
    let fit = fit(
        &from,
        &probes,
        &measured,
        [reach, extent],
        &stop,
        &mut |n| {
            simulated = n;
        },
    );
    let truth = other.numbers().into_iter().map(|(_, value)| value);
    println!("{name}: simulated {simulated} times");
    (fit.unwrap(), truth.collect())
}

#[track_caller]
fn recovers(name: &str, factors: &[f64], within: &[(&str, f64)]) {
    let (fit, truth) = fitted(name, factors);
    for cell in &fit.cells {
        println!(
            "{:<24}{:>12.3}{:>12.3}",
            cell.probe, cell.measured, cell.fitted
        );
    }
    for (number, truth) in fit.numbers.iter().zip(&truth) {
        println!(
            "{:<18}{:>12.4} -> {:>12.4}, truly {truth:>12.4} {}",
            number.key, number.before, number.after, number.seen
        );
    }
    for cell in &fit.cells {
        assert!(cell.error().abs() < 0.05, "{cell:?}");
    }
    for (key, within) in within {
        let place = fit.numbers.iter().position(|number| number.key == *key);
        let place = place.unwrap();
        let number = fit.numbers[place];
        assert!(number.seen, "{number:?}");
        let error = (number.after / truth[place] - 1.0).abs();
        assert!(error < *within, "{number:?}, truly {}", truth[place]);
    }
}

#[test]
fn an_ssd_is_recovered() {
    recovers(
        "mlc-128g",
        &[0.7, 1.6, 0.8, 0.9, 0.5, 2.0],
        &[
            ("read_us", 0.05),
            ("program_us", 0.02),
            ("channel_mb_s", 0.1),
            ("interface_mb_s", 0.02),
            ("command_us", 0.02),
            ("cache", 0.05),
        ],
    );
}

#[test]
fn a_disk_is_recovered() {
    recovers(
        "hdd-wd",
        &[7200.0 / 5400.0, 0.8, 0.7, 0.6, 0.6, 1.5, 1.6, 2.0],
        &[
            ("rpm", 0.03),
            ("average_seek_ms", 0.06),
            ("full_seek_ms", 0.08),
            ("outer_mb_s", 0.02),
            ("inner_mb_s", 0.02),
            ("overhead_ms", 0.02),
        ],
    );
}

#[test]
fn a_fit_can_be_ended() {
    let from = Preset::named("hdd-wd").unwrap();
    let stop = AtomicBool::new(true);
    let probes = probes(&from);
    let measured = vec![1.0; probes.len()];
    let reach = [100_000_000; 2];
    let ended = fit(&from, &probes, &measured, reach, &stop, &mut |_| {});
    assert!(ended.unwrap_err().is_interrupted());
}

#[test]
fn a_drive_too_small_is_refused() {
    let from = Preset::named("flash-key-128m").unwrap();
    let stop = AtomicBool::new(false);
    for reach in [[1 << 30; 2], [1 << 30, 1 << 20]] {
        assert!(Virtual::new(&from, reach, 1, &stop).is_err());
    }
}
