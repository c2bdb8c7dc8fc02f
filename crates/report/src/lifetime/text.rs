//! Lives as text: what they come to, then the series of the pictures.

use super::{Leak, Lifetime, Moment, SHARES, daily, lasts, seen};
use std::fmt::Write as _;

/// Width of the names of setups.
const NAME: usize = 38;

/// The whole text, for a terminal.
pub fn render(record: &Lifetime) -> String {
    let mut text = format!(
        "{}: {} a day into a file system that is {:.0} % full\n\n{:<NAME$}{:>13}{:>13}{:>16}   {}\n",
        record.title,
        daily(record.daily_bytes),
        record.fill * 100.0,
        "",
        "flash writes",
        "can write",
        "lasts",
        "who sees the drive without the key sees",
    );
    for life in &record.setups {
        let rate = life.moments.last().map_or(0.0, |moment| moment.write_mb_s);
        let _ = writeln!(
            text,
            "{:<NAME$}{:>11.2} x{:>8.0} MB/s{:>16}   {}",
            record.name(life.setup),
            life.write_amplification,
            rate,
            lasts(life.lifetime_years),
            seen(life.leak.as_ref()),
        );
    }
    let amplification = |moment: &Moment| format!("{:.2}", moment.write_amplification);
    text.push_str("\nFlash writes for a write of the host, after\n");
    series(&mut text, record, amplification);
    text.push_str("\nCan write for ever, MB/s, after\n");
    series(&mut text, record, |moment| {
        format!("{:.0}", moment.write_mb_s)
    });
    erases(&mut text, record);
    text.push_str("\nNoise on the drive, from its start to its end:\n");
    for life in &record.setups {
        if let Some(leak) = &life.leak {
            let _ = writeln!(text, "{:<NAME$}{}", record.name(life.setup), map(leak));
        }
    }
    let _ = writeln!(text, "\n{}", record.verdict());
    text
}

fn series(text: &mut String, record: &Lifetime, value: impl Fn(&Moment) -> String) {
    let times = record.times();
    let _ = write!(text, "{:<NAME$}", "");
    for (_, name) in &times {
        let _ = write!(text, "{name:>10}");
    }
    text.push('\n');
    for life in &record.setups {
        let _ = write!(text, "{:<NAME$}", record.name(life.setup));
        for (years, _) in &times {
            let _ = write!(
                text,
                "{:>10}",
                life.at(*years).map(&value).unwrap_or_default()
            );
        }
        text.push('\n');
    }
}

fn erases(text: &mut String, record: &Lifetime) {
    text.push_str("\nErases of a block, until nothing changed any more or the years were over\n");
    let _ = write!(text, "{:<NAME$}", "");
    for (_, name) in SHARES {
        let _ = write!(text, "{name:>10}");
    }
    let _ = writeln!(text, "{:>10}{:>12}", "mean", "after");
    for life in &record.setups {
        let _ = write!(text, "{:<NAME$}", record.name(life.setup));
        for (share, _) in SHARES {
            let _ = write!(text, "{:>10}", life.erases_at(share));
        }
        let (mean, after) = (life.erases_mean(), life.counted_until());
        let _ = writeln!(text, "{mean:>10.1}{after:>12}");
    }
}

/// A line of blocks, the darker the more noise.
fn map(leak: &Leak) -> String {
    let shade = |share: &f64| match *share {
        none if none < 0.02 => '·',
        little if little < 0.35 => '░',
        half if half < 0.7 => '▒',
        most if most < 0.98 => '▓',
        _ => '█',
    };
    leak.map.iter().map(shade).collect()
}
