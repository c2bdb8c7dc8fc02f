//! Estimates of the time that file system operations take on another machine.

use crate::cli::in_memory::in_memory;
use crate::cli::{Failure, open_store, print};
use lab::estimate::{
    Battery, Cipher, Cost, Drain, Estimate, EstimateError, Span, Target, estimate,
};
use lab::record::{Interval, Run};
use lab::store::Store;
use lab::system::{Backend, Encryption, notation};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// The output of `--json`. Times are seconds.
#[derive(Serialize)]
struct Answer<'a> {
    target: &'a Target,
    run: Option<&'a str>,
    costs: &'a [Cost],
    estimates: &'a [Estimate],
    #[serde(skip_serializing_if = "Option::is_none")]
    drains: Option<&'a [Drain]>,
}

/// Estimates for the machine that the file `target` describes. Costs that the file lacks are
/// measured here, on `backend` if one is forced.
pub fn run(
    target: &Path,
    backend: Option<Backend>,
    json: bool,
    store: Option<&str>,
) -> Result<(), Failure> {
    let target = Target::load(target)?;
    let run = recorded(&open_store(store)?, &target)?;
    let has_battery = target.battery.is_some();
    if run.is_none() && !has_battery {
        return Err(nothing_recorded().into());
    }
    let costs: Vec<Cost> = target
        .ciphers
        .iter()
        .map(|cipher| cost(cipher, run.as_ref(), backend))
        .collect::<Result<_, _>>()?;
    let estimates = match &run {
        Some(run) => estimate(run, &target, &costs),
        None => Err(nothing_recorded()),
    };
    // Without a run, there is still the battery.
    let estimates = match estimates {
        Err(EstimateError::NothingRecorded { .. }) if target.run.is_none() && has_battery => {
            Vec::new()
        }
        estimates => estimates?,
    };
    let hertz = target.clock_mhz * 1e6;
    let drains = target.battery.map(|battery| battery.drains(&costs, hertz));
    if !json {
        let mut text = text(&target, run.as_ref(), &costs, &estimates);
        if let (Some(battery), Some(drains)) = (&target.battery, &drains) {
            text += &of_battery(battery, drains);
        }
        return print(&text);
    }
    let answer = Answer {
        target: &target,
        run: run.as_ref().map(|run| run.run.as_str()),
        costs: &costs,
        estimates: &estimates,
        drains: drains.as_deref(),
    };
    let json = serde_json::to_string_pretty(&answer).map_err(Failure::unprintable)?;
    print(&(json + "\n"))
}

fn nothing_recorded() -> EstimateError {
    EstimateError::NothingRecorded {
        run: "latest".to_owned(),
    }
}

/// The run that the target names, or the newest that says what file systems moved, if there is
/// one.
fn recorded(store: &Store, target: &Target) -> Result<Option<Run>, Failure> {
    if let Some(name) = &target.run {
        return Ok(Some(store.load(name)?));
    }
    for summary in store.list()?.iter().rev() {
        let run = store.load(&summary.run)?;
        if run
            .trials
            .iter()
            .any(|trial| trial.operation().is_some_and(|o| o.moved.is_some()))
        {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// The cost of `cipher`: the values in the target, and measurements made here for the missing ones.
fn cost(cipher: &Cipher, run: Option<&Run>, backend: Option<Backend>) -> Result<Cost, Failure> {
    let mut trials = run.into_iter().flat_map(|run| &run.trials);
    let sector_bytes = trials.find_map(|trial| trial.sector_bytes);
    let sector_bytes = sector_bytes.unwrap_or(512);
    let name = notation(&cipher.name);
    let encryption = Encryption::parse(&name, cipher.key_size, sector_bytes, None)?;
    let given = |cycles: f64| Span::within(cycles, cipher.spread);
    let (encrypt, decrypt) = (cipher.encrypt.map(given), cipher.decrypt.map(given));
    let cost = |encrypt, decrypt, measured| Cost {
        cipher: encryption.spec.to_string(),
        key_bits: encryption.key_bits,
        encrypt,
        decrypt,
        measured,
    };
    if let (Some(encrypt), Some(decrypt)) = (encrypt, decrypt) {
        return Ok(cost(encrypt, decrypt, false));
    }
    let measured = in_memory(&name, cipher.key_size, sector_bytes, backend)?;
    let of = |way: &str| {
        let trial = measured.trials.iter().find(|trial| trial.op == way);
        let cycles = trial.and_then(|trial| trial.cycles_per_byte);
        cycles.map(span).ok_or_else(|| {
            Failure::new(
                1,
                format!(
                    "the cycles of {} cannot be counted on this machine",
                    cipher.name
                ),
                "Give encrypt and decrypt in the file, in cycles per byte.",
            )
        })
    };
    let or_measured = |known: Option<Span>, way| known.map_or_else(|| of(way), Ok);
    Ok(cost(
        or_measured(encrypt, "encrypt")?,
        or_measured(decrypt, "decrypt")?,
        true,
    ))
}

fn span(interval: Interval) -> Span {
    Span {
        expected: interval.median,
        low: interval.low,
        high: interval.high,
    }
}

fn text(target: &Target, run: Option<&Run>, costs: &[Cost], estimates: &[Estimate]) -> String {
    let by = run.map_or_else(String::new, |run| {
        format!(", by run {} ({})", run.run, run.plan)
    });
    let mut text = format!(
        "{}{by}\n{} MHz; reads {} MB/s, writes {} MB/s\n",
        target.title, target.clock_mhz, target.device.read_mb_s, target.device.write_mb_s
    );
    for cost in costs {
        let _ = writeln!(
            text,
            "  {} {}: {:.2} cycles per byte to encrypt, {:.2} to decrypt{}",
            cost.cipher,
            cost.key_bits,
            cost.encrypt.expected,
            cost.decrypt.expected,
            if cost.measured { ", measured here" } else { "" }
        );
    }
    let mut above: Option<&Estimate> = None;
    let mut plain = 0.0;
    for estimate in estimates {
        let same = |above: &&Estimate| above.fs == estimate.fs && above.size == estimate.size;
        if above.is_none_or(|above| !same(&above)) {
            let _ = writeln!(
                text,
                "\n{}, {}\n{:<18}{:<40}{:>12}{:>22}{:>10}{:>10}{:>10}{:>9}",
                estimate.fs,
                bytesize::ByteSize(estimate.size).display().iec(),
                "operation",
                "system",
                "expected",
                "between",
                "crypto",
                "device",
                "rest",
                "× plain"
            );
        }
        let again = above.is_some_and(|a| same(&a) && a.operation == estimate.operation);
        let operation = if again { "" } else { &estimate.operation };
        let expected = estimate.seconds.expected;
        if estimate.cipher.is_none() {
            plain = expected;
        }
        let cipher = estimate.cipher.as_deref().unwrap_or_default();
        let between = format!(
            "{}–{}",
            milliseconds(estimate.seconds.low),
            milliseconds(estimate.seconds.high)
        );
        let _ = writeln!(
            text,
            "{operation:<18}{:<40}{:>12}{between:>22}{:>10}{:>10}{:>10}{:>9.2}",
            format!("{} {cipher}", estimate.system),
            milliseconds(expected),
            milliseconds(estimate.crypto_s),
            milliseconds(estimate.device_s),
            milliseconds(estimate.rest_s),
            expected / plain
        );
        above = Some(estimate);
    }
    if !estimates.is_empty() {
        text.push_str(
            "\nTimes in ms. Rest is the recorded time without encryption and device waits, scaled to the target's speed.\n",
        );
    }
    text
}

/// The hours that each cipher takes from the battery.
fn of_battery(battery: &Battery, drains: &[Drain]) -> String {
    let mut text = format!(
        "\nA battery of {} Wh lasts {:.1} hours at {} W without encryption\n{:<40}{:>14}{:>12}{:>12}{:>16}\n",
        battery.watt_hours,
        battery.hours(),
        battery.average_watts,
        "cipher",
        "seconds a day",
        "mWh a day",
        "hours lost",
        "between"
    );
    for drain in drains {
        let lost = &drain.hours_lost;
        let _ = writeln!(
            text,
            "{:<40}{:>14.1}{:>12.2}{:>12.2}{:>16}{}",
            format!("{} {}", drain.cipher, drain.key_bits),
            drain.seconds_a_day.expected,
            drain.watt_hours_a_day.expected * 1e3,
            lost.expected,
            format!("{:.2}–{:.2}", lost.low, lost.high),
            match drain.seconds_a_day.expected > DAY {
                true => "  more than a core has time for",
                false => "",
            }
        );
    }
    text
}

/// Seconds in a day.
const DAY: f64 = 86_400.0;

fn milliseconds(seconds: f64) -> String {
    match seconds * 1e3 {
        ms if ms < 10.0 => format!("{ms:.2}"),
        ms => format!("{ms:.1}"),
    }
}
