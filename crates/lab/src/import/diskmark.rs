//! Reads the text that CrystalDiskMark and KDiskMark copy and save:
//! `SEQ    1MiB (Q=  8, T= 1):   562.430 MB/s [    536.4 IOPS] < 14895.06 us>`.

use super::{ImportError, Measurement, Results, Work, device};
use crate::record::Tier;
use std::sync::Arc;

pub(super) fn read(text: &str) -> Result<Results, ImportError> {
    // Without its head, KDiskMark's text is known by the system, and its unit by each line.
    let is_headed = text.contains("DiskMark");
    let (tool, name, usual) = match text.contains("KDiskMark") {
        true => ("kdiskmark", "KDiskMark", Some(1.024)),
        false if !is_headed && text.contains("[linux ") => ("kdiskmark", "KDiskMark", None),
        false => ("crystaldiskmark", "CrystalDiskMark", Some(1.0)),
    };
    let mut measurements: Vec<Measurement> = Vec::new();
    let (mut section, mut started, mut bytes) = (None, None, None);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(heading) = line.strip_prefix('[') {
            section = heading.split_once(']').and_then(|(op, mix)| match op {
                "Read" => Some(("read", String::new())),
                "Write" => Some(("write", String::new())),
                "Mix" => Some(("mixed", mixed(mix))),
                _ => None,
            });
        } else if let Some(date) = after(line, "Date") {
            started = when(date);
        } else if let Some(test) = after(line, "Test") {
            bytes = tested(test);
        } else if line.contains("(Q=") || is_row(line) {
            let measured = row(line, section.as_ref(), usual);
            let measured = measured.ok_or(ImportError::Line { number })?;
            // Tests that were not measured are listed with zero.
            measurements.extend((measured.mb_s > 0.0).then_some(measured));
        }
    }
    for measured in &mut measurements {
        let work = Arc::make_mut(&mut measured.work);
        work.device.size = bytes.unwrap_or_default();
        // What was written compresses to nothing.
        if text.contains("<0Fill>") {
            work.workload += "-0fill";
        }
    }
    if measurements.is_empty() {
        return Err(ImportError::Empty { tool });
    }
    Ok(Results {
        tool,
        version: version(text, name),
        started,
        left_out: Vec::new(),
        measurements,
    })
}

/// `CrystalDiskMark 8.0.4 x64 (C) …`, `KDiskMark (3.0.0): …`.
fn version(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.contains(name))?;
    let word = line.split(name).nth(1)?.split_whitespace().next()?;
    let digits = word.trim_matches(|sign: char| !sign.is_ascii_digit());
    (!digits.is_empty()).then(|| digits.to_owned())
}

/// What is behind `Date:`, or `Date :`.
fn after<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(name)?.trim_start().strip_prefix(':')?;
    Some(rest.trim())
}

/// The share of reads in ` Read 70%/Write 30%`, as a part of the name.
fn mixed(heading: &str) -> String {
    let share = heading.split('%').next().unwrap_or_default();
    let digits: String = share.chars().filter(char::is_ascii_digit).collect();
    format!("-r{}", if digits.is_empty() { "?" } else { &digits })
}

/// The bytes in `1 GiB (x5) [C: 30% (300/1000GiB)]`, `1024 MiB [D: …`.
fn tested(test: &str) -> Option<u64> {
    let mut words = test.split_whitespace();
    size(&(words.next()?.to_owned() + words.next()?))
}

/// The time in `2021/05/09 12:00:00` or `2021-05-09 12:00:00`. Its time zone is unknown.
fn when(date: &str) -> Option<String> {
    let date = jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", date.replace('/', "-")).ok()?;
    Some(format!("{date}Z"))
}

/// Whether a line is one of results.
fn is_row(line: &str) -> bool {
    let pattern = line.split([' ', '(']).next().and_then(pattern);
    pattern.is_some() && line.contains("MB/s")
}

fn pattern(word: &str) -> Option<&'static str> {
    match word {
        "SEQ" | "Sequential" => Some("seq"),
        "RND" | "Random" => Some("rnd"),
        _ => None,
    }
}

/// One line, of a section that says what its operation is and how that is mixed.
///
/// Version 3 has `Random Read 4KB (QD=32)`, 4 to 6 have `Random Read 4KiB (Q= 32,T= 1)`. Without a
/// size, a stream with several requests in flight is one of 128 KiB, and otherwise one of 1 MiB.
fn row(
    line: &str,
    section: Option<&(&'static str, String)>,
    usual: Option<f64>,
) -> Option<Measurement> {
    let (what, rest) = line.split_once(':')?;
    let (what, load) = match what.split_once('(') {
        Some((what, load)) => (what, Some(load.trim_end().strip_suffix(')')?)),
        None => (what, None),
    };
    let (mut queue_depth, mut threads) = (None, None);
    for part in load.into_iter().flat_map(|load| load.split(',')) {
        let (name, number) = part.split_once('=')?;
        let number: u32 = number.trim().parse().ok().filter(|number| *number > 0)?;
        match name.trim() {
            "Q" | "QD" => queue_depth = Some(number),
            "T" => threads = Some(number),
            _ => return None,
        }
    }
    let least_block = match queue_depth {
        None => 1 << 20,
        Some(_) => 128 << 10,
    };
    let (queue_depth, threads) = (queue_depth.unwrap_or(1), threads.unwrap_or(1));
    let mut words = what.split_whitespace();
    let pattern = pattern(words.next()?)?;
    let (mut block, mut op) = (String::new(), section.map(|(op, _)| *op));
    let mix = section.map_or("", |(_, mix)| mix);
    for word in words {
        match word {
            "Read" => op = Some("read"),
            "Write" => op = Some("write"),
            "Mix" => op = Some("mixed"),
            size => block += size,
        }
    }
    let op = op?;
    let block_bytes = match block.is_empty() {
        true if pattern == "seq" => least_block,
        true => return None,
        false => size(&block)?,
    };
    let (rate, rest) = rest.split_once("MB/s")?;
    let number = |text: &str| -> Option<f64> {
        // Some systems write a comma there.
        let number: f64 = text.trim().replace(',', ".").parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    };
    let between = |open: char, close: &str| {
        let (_, rest) = rest.split_once(open)?;
        number(rest.split_once(close)?.0)
    };
    let printed = number(rate)?;
    let iops = between('[', "IOPS");
    let mb_s = printed * unit(printed, iops, block_bytes, usual)?;
    let short = match block_bytes {
        kib if kib < 1 << 20 => format!("{}k", kib >> 10),
        mib => format!("{}m", mib >> 20),
    };
    Some(Measurement {
        work: Arc::new(Work {
            tier: Tier::Block,
            cipher: None,
            key_bits: None,
            // As the plans `crystaldiskmark` and `crystaldiskmark-nvme` call it.
            workload: format!("{pattern}{short}-q{queue_depth}t{threads}{mix}-{op}"),
            op,
            block_bytes: Some(block_bytes),
            queue_depth: Some(queue_depth),
            threads: Some(threads),
            device: device("direct", "unknown"),
        }),
        seconds: None,
        bytes: None,
        requests: None,
        mb_s,
        iops: iops.unwrap_or(mb_s * 1e6 / block_bytes as f64),
        // It prints the mean, and no percentile.
        latency_us: None,
        user: None,
        sys: None,
    })
}

/// What a line's MB is, 10⁶ bytes: its own number of requests decides, which must fit one of the
/// units that are known. KDiskMark divides KiB by 1000, so 10,000 requests of 4 KiB a second are its
/// 40 MB/s. `usual` is the program's, if that is known.
fn unit(printed: f64, iops: Option<f64>, block_bytes: u64, usual: Option<f64>) -> Option<f64> {
    if printed == 0.0 {
        return Some(1.0);
    }
    let Some(iops) = iops else {
        return usual;
    };
    // Rates have three decimals, and requests one.
    let at = |iops: f64, printed: f64| iops * block_bytes as f64 / 1e6 / printed;
    let (least, most) = (
        at(iops - 0.1, printed + 0.001),
        at(iops + 0.1, printed - 0.001),
    );
    let fits = |unit: &f64| *unit * 1.002 >= least && (*unit * 0.998 <= most || most < 0.0);
    let known = [1.0, 1.024, 1.048_576].into_iter();
    usual.into_iter().chain(known).find(fits)
}

/// `1MiB`, `4KiB`.
fn size(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|sign: char| !sign.is_ascii_digit())?);
    let number: u64 = number.parse().ok()?;
    let unit = match unit {
        "KiB" | "KB" => 1 << 10,
        "MiB" | "MB" => 1 << 20,
        "GiB" | "GB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit).filter(|bytes| *bytes > 0)
}
