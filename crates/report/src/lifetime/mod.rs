//! [`Lifetime`]: what encryption and its way with TRIM do to an SSD over the
//! years, as a record, as text and as a page.

mod report;

use crate::render::{self, text::Style};
use serde::Serialize;

/// The lives for a terminal.
pub fn text(record: &Lifetime, style: &Style) -> String {
    render::text::render(&report::document(record), style)
}

/// The lives as one HTML file.
pub fn page(record: &Lifetime) -> String {
    render::html::render(&report::document(record))
}

/// The lives as a part of a page.
pub(crate) fn part(record: &Lifetime) -> maud::Markup {
    let document = report::document(record);
    let (head, body) = (document.head.into_iter().skip(1), document.body);
    render::html::blocks(&head.chain(body).collect::<Vec<_>>())
}

/// The schema of the record.
pub const SCHEMA: &str = "cryptmark-lifetime/1";

/// One drive, set up in several ways.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lifetime {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The drive, as the user named it.
    pub device: String,
    /// The drive in one line.
    pub title: String,
    /// Bytes that the host writes a day.
    pub daily_bytes: u64,
    /// Share of the file system that holds files.
    pub fill: f64,
    /// Share of the writes that goes to pages within files.
    pub overwrites: f64,
    /// Share of the drive that [`Setup::Unpartitioned`] leaves.
    pub unpartitioned: f64,
    /// Bytes that the controller stores for a plain byte, 0 to 1.
    pub compression: f64,
    /// Length of the simulated life, years.
    pub years: f64,
    /// Seed of the lives: the same seed gives the same lives.
    pub seed: u64,
    /// A life for each setup.
    pub setups: Vec<Life>,
}

/// How a volume is made, and what it does with discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Setup {
    /// No encryption; discards reach the drive.
    Plain,
    /// Encrypted; discards reach the drive.
    Passed,
    /// Encrypted; discards do not.
    Blocked,
    /// The same, after the volume was filled with noise as it was made.
    Filled,
    /// The same, on a part of the drive only.
    Unpartitioned,
}

/// The life of the drive under one setup.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Life {
    /// Which.
    pub setup: Setup,
    /// From the beginning until the end, or until nothing changed any more.
    pub moments: Vec<Moment>,
    /// From when on nothing changed, in years.
    pub steady_after: Option<f64>,
    /// Flash writes ÷ host writes over all the years.
    pub write_amplification: f64,
    /// Time until the blocks have reached their erase limit, years.
    pub lifetime_years: f64,
    /// Bytes that the host has written by then, in units of 10¹² bytes.
    pub terabytes_written: f64,
    /// Erases of the simulated blocks until the last moment: how often, and how
    /// many blocks; ascending.
    pub erases: Vec<(u32, u32)>,
    /// The information that an observer gains; `None` for a drive that is not
    /// encrypted.
    pub leak: Option<Leak>,
}

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// Since the beginning.
    pub years: f64,
    /// Flash writes ÷ host writes until here, from the moment before on.
    pub write_amplification: f64,
    /// The rate at which the drive can then write forever, 10⁶ bytes a second.
    pub write_mb_s: f64,
}

/// The information that an observer of the encrypted drive gains without the
/// key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Leak {
    /// Share of the drive that is visibly unused.
    pub unused: f64,
    /// Share of each part of the drive that looks used.
    pub map: Vec<f64>,
    /// Share of the observer's guesses, used or unused, that are right.
    pub right: f64,
}

/// A day, in years.
const DAY: f64 = 1.0 / 365.25;

/// Times at which the series are reported, in years, and their names.
const TIMES: [(f64, &str); 13] = [
    (DAY / 24.0, "1 hour"),
    (DAY / 4.0, "6 hours"),
    (DAY, "1 day"),
    (DAY * 3.0, "3 days"),
    (DAY * 7.0, "1 week"),
    (DAY * 14.0, "2 weeks"),
    (1.0 / 12.0, "1 month"),
    (3.0 / 12.0, "3 months"),
    (1.0, "1 year"),
    (3.0, "3 years"),
    (10.0, "10 years"),
    (30.0, "30 years"),
    (100.0, "100 years"),
];

/// Shares of the blocks for which the erases are reported, and their names.
pub(crate) const SHARES: [(f64, &str); 5] = [
    (0.0, "least"),
    (0.1, "10 %"),
    (0.5, "50 %"),
    (0.9, "90 %"),
    (1.0, "most"),
];

impl Lifetime {
    /// The name of a setup, for people.
    pub(crate) fn name(&self, setup: Setup) -> String {
        match setup {
            Setup::Plain if self.compression < 1.0 => {
                let percent = self.compression * 100.0;
                format!("not encrypted, compressed to {percent:.0} %")
            }
            Setup::Plain => "not encrypted".to_owned(),
            Setup::Passed => "encrypted, TRIM passed".to_owned(),
            Setup::Blocked => "encrypted, TRIM blocked".to_owned(),
            Setup::Filled => "TRIM blocked, filled with noise".to_owned(),
            Setup::Unpartitioned => {
                let percent = self.unpartitioned * 100.0;
                format!("filled, {percent:.0} % left unpartitioned")
            }
        }
    }

    /// When the first moments end, in years.
    pub(crate) fn begin(&self) -> f64 {
        let first = self.setups.iter().filter_map(|life| life.moments.first());
        first.map(|moment| moment.years).fold(self.years, f64::min)
    }

    /// Round times between the first moment and the last year, and that.
    pub(crate) fn times(&self) -> Vec<(f64, String)> {
        let (begin, end) = (self.begin(), self.years);
        let within = |time: &&(f64, &str)| time.0 >= begin && time.0 < end * 0.999;
        let named = |(years, name): &(f64, &str)| (*years, (*name).to_owned());
        let mut times: Vec<_> = TIMES.iter().filter(within).map(named).collect();
        times.push((end, time(end)));
        times
    }

    /// The conclusion, in a sentence; empty if a setup is missing.
    pub(crate) fn verdict(&self) -> String {
        let of = |wanted: Setup| {
            let found = self.setups.iter().find(|life| life.setup == wanted);
            found.map(|life| life.write_amplification)
        };
        let setups = [Setup::Passed, Setup::Filled, Setup::Unpartitioned].map(of);
        let [Some(passed), Some(filled), Some(spared)] = setups else {
            return String::new();
        };
        format!(
            "Over {}, blocking TRIM on a drive filled at first writes {:.1} times as much to the \
             flash as passing it. With an unpartitioned part, it writes {:.1} times as much.",
            time(self.years),
            filled / passed,
            spared / passed
        )
    }
}

impl Life {
    /// How it is at a time, in years; as in the last moment behind that.
    pub(crate) fn at(&self, years: f64) -> Option<&Moment> {
        let then = self.moments.iter().find(|moment| moment.years >= years);
        then.or(self.moments.last())
    }

    /// Erases that a share of the blocks does not exceed.
    pub(crate) fn erases_at(&self, share: f64) -> u32 {
        let wanted = f64::from(self.blocks()) * share;
        let mut passed = 0.0;
        for (erases, blocks) in &self.erases {
            passed += f64::from(*blocks);
            if passed >= wanted {
                return *erases;
            }
        }
        self.erases.last().map_or(0, |(erases, _)| *erases)
    }

    /// Erases of a block, on average.
    pub(crate) fn erases_mean(&self) -> f64 {
        let of = |(erases, blocks): &(u32, u32)| f64::from(*erases) * f64::from(*blocks);
        self.erases.iter().map(of).sum::<f64>() / f64::from(self.blocks().max(1))
    }

    fn blocks(&self) -> u32 {
        self.erases.iter().map(|(_, blocks)| blocks).sum()
    }

    /// The time until which its erases were counted, in words.
    pub(crate) fn counted_until(&self) -> String {
        time(self.moments.last().map_or(0.0, |moment| moment.years))
    }
}

/// A time in the unit that suits.
pub(crate) fn time(years: f64) -> String {
    let days = years / DAY;
    let (value, unit) = match days {
        days if days < 2.0 => (days * 24.0, "hours"),
        days if days < 600.0 => (days, "days"),
        _ => (years, "years"),
    };
    match value {
        value if value >= 10.0 => format!("{value:.0} {unit}"),
        value => {
            let text = format!("{value:.1}");
            format!("{} {unit}", text.trim_end_matches(".0"))
        }
    }
}

/// A lifetime in words. Lifetimes beyond a century are not credible, so they
/// all read alike.
pub(crate) fn lasts(years: f64) -> String {
    match years {
        years if years >= 100.0 => "over 100 years".to_owned(),
        years if years < 1.0 => time(years),
        years => format!("{years:.1} years"),
    }
}

/// The view that an observer has of the drive.
pub(crate) fn seen(leak: Option<&Leak>) -> String {
    match leak.map(|leak| leak.unused) {
        None => "everything".to_owned(),
        Some(unused) if unused < 0.0005 => "noise everywhere".to_owned(),
        Some(unused) => format!("{:.1} % unused", unused * 100.0),
    }
}

/// The amount of data written in a day, with its unit.
pub(crate) fn daily(bytes: u64) -> String {
    let bytes = bytes as f64;
    let (value, unit) = match bytes {
        bytes if bytes < 1e6 => (bytes, "B"),
        bytes if bytes < 1e9 => (bytes / 1e6, "MB"),
        bytes if bytes < 1e12 => (bytes / 1e9, "GB"),
        bytes => (bytes / 1e12, "TB"),
    };
    let text = crate::figure::with_unit(value, unit);
    text.replace(".00 ", " ").replace(".0 ", " ")
}
