//! The figures that documents print about encrypted storage, as rows. Some ship
//! with the program (`plans/published`), others are files of the same shape.
//!
//! [`repeats`] tells which of our cells repeats which row. [`claims`] tells
//! whether a document's percentages follow from its own figures. Both are pure
//! functions.

pub mod claims;
pub mod repeats;

use crate::error::LabError;
use serde::{Deserialize, Serialize};
use std::io::Read;

/// A document whose figures ship with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Document {
    /// AES, Serpent and Twofish on three drives under two programs.
    StorageCiphers,
    /// The whitepaper on full-disk encryption, with PassMark's disk tests.
    FdePassmark,
    /// Java's ciphers on two operating systems.
    JavaOs,
    /// The article on SSDs and TrueCrypt.
    SsdTruecrypt,
    /// File systems on cryptoloop and dm-crypt.
    CryptoFs,
    /// gocryptfs's page that compares it with other programs.
    GocryptfsComparison,
}

impl Document {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::StorageCiphers,
        Self::FdePassmark,
        Self::JavaOs,
        Self::SsdTruecrypt,
        Self::CryptoFs,
        Self::GocryptfsComparison,
    ];

    /// Its name, which is that of its file without the suffix.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StorageCiphers => "storage-ciphers",
            Self::FdePassmark => "fde-passmark",
            Self::JavaOs => "java-os",
            Self::SsdTruecrypt => "ssd-truecrypt",
            Self::CryptoFs => "crypto-fs",
            Self::GocryptfsComparison => "gocryptfs-comparison",
        }
    }

    /// Its rows as CSV.
    pub const fn csv(self) -> &'static str {
        match self {
            Self::StorageCiphers => include_str!("../../plans/published/storage-ciphers.csv"),
            Self::FdePassmark => include_str!("../../plans/published/fde-passmark.csv"),
            Self::JavaOs => include_str!("../../plans/published/java-os.csv"),
            Self::SsdTruecrypt => include_str!("../../plans/published/ssd-truecrypt.csv"),
            Self::CryptoFs => include_str!("../../plans/published/crypto-fs.csv"),
            Self::GocryptfsComparison => {
                include_str!("../../plans/published/gocryptfs-comparison.csv")
            }
        }
    }

    /// Its rows.
    ///
    /// # Errors
    /// None as long as the test of all rows passes.
    pub fn rows(self) -> Result<Vec<Row>, LabError> {
        rows(self.csv().as_bytes())
    }
}

/// Columns that a table of published figures must have; others are ignored.
const COLUMNS: [&str; 12] = [
    "document",
    "row",
    "kind",
    "system",
    "device",
    "cipher",
    "pattern",
    "direction",
    "metric",
    "unit",
    "value",
    "figure",
];

/// A printed number, in the document's words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Row {
    /// Line of the file on which it begins, from 1.
    #[serde(skip)]
    pub line: u64,
    /// The document; in the file, that of the row above if it is empty.
    pub document: String,
    /// Its number in the file.
    pub row: String,
    /// `measurement`, `claimed difference`, or what no program reads.
    pub kind: String,
    /// The system; `A over B` of a claimed difference.
    pub system: String,
    /// The machine or drive.
    pub device: String,
    /// The cipher.
    pub cipher: String,
    /// The access pattern or operation.
    pub pattern: String,
    /// `read`, `encrypt` and so on.
    pub direction: String,
    /// The measured quantity, such as `throughput`.
    pub metric: String,
    /// The unit as printed.
    pub unit: String,
    /// The number as printed.
    pub value: String,
    /// Figure, table or section.
    pub figure: String,
}

impl Row {
    /// The printed number.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn number(&self) -> Result<f64, LabError> {
        Printed::parse(&self.value)
            .map(|printed| printed.value)
            .ok_or_else(|| not_a_number(self))
    }
}

/// The refusal of a table that is not one.
fn no_table(what: impl Into<String>) -> LabError {
    LabError::invalid(
        what,
        format!(
            "The first line must name the columns, and one row must follow for each number: {}.",
            COLUMNS.join(", ")
        ),
    )
}

/// The refusal of a row without a number.
fn not_a_number(row: &Row) -> LabError {
    LabError::invalid(
        format!("line {}: {:?} is not a number", row.line, row.value),
        "Give measurements and percentages as printed, 58.70 or 58,70, without their unit.",
    )
}

/// The refusal of what the CSV parser refuses.
fn unreadable(error: csv::Error) -> LabError {
    let line = |position: &Option<csv::Position>| position.as_ref().map_or(0, |p| p.line());
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            pos,
            expected_len,
            len,
        } => LabError::invalid(
            format!(
                "line {}: there are {len} fields, and the header has {expected_len}",
                line(pos)
            ),
            "Put a field that holds a comma into double quotes, and give every row all columns.",
        ),
        csv::ErrorKind::Utf8 { pos, .. } => LabError::invalid(
            format!("line {} is not in UTF-8", line(pos)),
            "Save the file as UTF-8.",
        ),
        _ => {
            let remedy = "Give a readable file of comma-separated values.";
            LabError::invalid(error.to_string(), remedy).because(error)
        }
    }
}

/// Reads a table of published figures.
///
/// # Errors
/// [`LabError`] with the line.
pub fn rows(csv: impl Read) -> Result<Vec<Row>, LabError> {
    let mut reader = csv::Reader::from_reader(csv);
    let header = reader.headers().map_err(unreadable)?.clone();
    for column in COLUMNS {
        if !header.iter().any(|name| name == column) {
            let what = format!("line 1: the header has no column {column:?}");
            return Err(no_table(what));
        }
    }
    let mut rows: Vec<Row> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let mut row = Row {
            line: record.position().map_or(0, csv::Position::line),
            ..record.deserialize(Some(&header)).map_err(unreadable)?
        };
        if let (true, Some(above)) = (row.document.is_empty(), rows.last()) {
            row.document.clone_from(&above.document);
        }
        rows.push(row);
    }
    match rows.is_empty() {
        true => Err(no_table("there is no row after the header")),
        false => Ok(rows),
    }
}

/// A number as a document prints it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Printed {
    value: f64,
    /// The value of one unit in the last printed digit.
    last_digit: f64,
}

impl Printed {
    /// Commas are decimal, unless every one has three digits behind it or there
    /// is a point: `9,5` is 9.5, and `5,400` is 5400.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let in_thousands =
            text.contains('.') || text.split(',').skip(1).all(|group| group.len() == 3);
        let plain = match in_thousands {
            true => text.replace(',', ""),
            false => text.replacen(',', ".", 1),
        };
        let digits = plain
            .trim_start_matches(['-', '+'])
            .chars()
            .all(|c| c.is_ascii_digit() || c == '.');
        let value = plain.parse::<f64>().ok().filter(|_| digits)?;
        let decimals = plain.split_once('.').map_or(0, |(_, after)| after.len());
        Some(Self {
            value,
            last_digit: 0.1_f64.powi(decimals as i32),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_print_them() {
        for (text, value, last_digit) in [
            ("58.70", 58.7, 0.01),
            ("9,5", 9.5, 0.1),
            ("5,400", 5400.0, 1.0),
            ("1,234,567.8", 1_234_567.8, 0.1),
            ("-2.9", -2.9, 0.1),
            ("9", 9.0, 1.0),
        ] {
            let printed = Printed::parse(text).expect(text);
            assert!((printed.value - value).abs() < 1e-9, "{text}: {printed:?}");
            assert!((printed.last_digit - last_digit).abs() < 1e-12, "{text}");
        }
        for text in [
            "",
            "significantly higher",
            "1,2,3",
            "inf",
            "NaN",
            "1e3",
            "5 %",
        ] {
            assert_eq!(Printed::parse(text), None, "{text:?}");
        }
    }

    /// Every row of all six, with the numbers that a program reads.
    #[test]
    fn every_shipped_row_is_read() {
        let counts = [129, 36, 69, 15, 132, 124];
        for (document, count) in Document::ALL.into_iter().zip(counts) {
            let rows = document.rows().unwrap();
            assert_eq!(rows.len(), count, "{document:?}");
            for (index, row) in rows.iter().enumerate() {
                assert_eq!(row.row, (index + 1).to_string(), "{document:?}");
                assert_eq!(row.document, rows[0].document, "{row:?}");
                if matches!(row.kind.as_str(), "measurement" | "setup") {
                    assert!(row.number().is_ok(), "{row:?}");
                }
            }
        }
        // A note with commas and quotes stands between these.
        let blog = Document::SsdTruecrypt.rows().unwrap();
        assert_eq!(blog[1].number().unwrap(), 9.5);
        assert_eq!(blog[6].kind, "claim in words");
        let whitepaper = Document::FdePassmark.rows().unwrap();
        assert_eq!(whitepaper[19].number().unwrap(), 5400.0);
    }

    #[test]
    fn bad_tables_are_refused_with_their_line() {
        let header = COLUMNS.join(",");
        let refused = |bytes: &[u8], what: &str| {
            let error = rows(bytes).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
            assert!(error.remedy().ends_with('.'));
        };
        refused(header.as_bytes(), "no row after the header");
        refused(
            b"a,b\n1,2\n",
            "line 1: the header has no column \"document\"",
        );
        let whole = format!("{header}\nd,1,measurement,s,v,c,p,r,t,u,1,f\n");
        let short = format!("{whole}d,2\n");
        refused(
            short.as_bytes(),
            "line 3: there are 2 fields, and the header has 12",
        );
        let foreign = [whole.as_bytes(), b"d,2,x,\xff,v,c,p,r,t,u,1,f\n"].concat();
        refused(&foreign, "line 3 is not in UTF-8");
    }
}
