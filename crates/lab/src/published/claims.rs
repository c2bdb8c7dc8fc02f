//! Checks whether a document's percentages follow from the figures that it
//! prints with them.

use super::{Printed, Row, TableError};

/// Units in which less is better.
const TIMES: [&str; 7] = ["s", "ms", "us", "µs", "μs", "ns", "min"];

/// A percentage that a document claims, and what comes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim<'a> {
    /// The row that makes the claim.
    pub row: &'a Row,
    /// The result of the check.
    pub finding: Finding<'a>,
}

/// The result of recomputing a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding<'a> {
    /// The claim follows, as far as the printed digits tell.
    Follows,
    /// The printed figures give another percentage.
    DoesNotFollow {
        /// The figure of the system that is said to be better.
        better: &'a Row,
        /// The figure of the system that it is compared with.
        than: &'a Row,
        /// The percentage that the two figures give.
        gives: f64,
    },
    /// The document claims another number for the same quantity elsewhere.
    Contradicted {
        /// The other claim.
        by: &'a Row,
    },
    /// The document does not print the figures.
    Unfounded,
}

impl Finding<'_> {
    /// Whether the document disagrees with itself.
    pub fn is_wrong(&self) -> bool {
        matches!(self, Self::DoesNotFollow { .. } | Self::Contradicted { .. })
    }
}

/// Every claimed percentage of `rows`, recomputed.
///
/// `A over B` by p % means that A's figure is p % more than B's, or for times
/// that B's is p % more than A's: in the same figure, for the same drive,
/// cipher, pattern and direction. Printed figures and claims are rounded: a
/// claim follows if any numbers that may stand behind the printed ones give it.
///
/// # Errors
/// [`TableError::NotANumber`].
pub fn check(rows: &[Row]) -> Result<Vec<Claim<'_>>, TableError> {
    let is_claim = |row: &&Row| row.kind == "claimed difference" && row.unit.trim() == "%";
    let claims: Vec<&Row> = rows.iter().filter(is_claim).collect();
    claims
        .iter()
        .map(|row| {
            let finding = match recomputed(row, rows)? {
                Finding::Unfounded => match contradiction(row, &claims)? {
                    Some(by) => Finding::Contradicted { by },
                    None => Finding::Unfounded,
                },
                found => found,
            };
            Ok(Claim { row, finding })
        })
        .collect()
}

fn recomputed<'a>(claim: &Row, rows: &'a [Row]) -> Result<Finding<'a>, TableError> {
    let claimed = printed(claim)?;
    let Some((better, than)) = claim.system.split_once(" over ") else {
        return Ok(Finding::Unfounded);
    };
    let of = |system: &str| {
        let mut found = rows.iter().filter(|row| {
            row.kind == "measurement" && row.system == system && is_about(row, claim)
        });
        // Two figures of the same leave open which was meant.
        found.next().filter(|_| found.next().is_none())
    };
    let (Some(better), Some(than)) = (of(better), of(than)) else {
        return Ok(Finding::Unfounded);
    };
    let (mut more, mut less) = (printed(better)?, printed(than)?);
    if TIMES.contains(&better.unit.trim()) {
        std::mem::swap(&mut more, &mut less);
    }
    if better.unit != than.unit || less.value - less.last_digit / 2.0 <= 0.0 {
        return Ok(Finding::Unfounded);
    }
    let percent = |more: f64, less: f64| (more / less - 1.0) * 100.0;
    let (up, down) = (more.last_digit / 2.0, less.last_digit / 2.0);
    let lowest = percent(more.value - up, less.value + down);
    let highest = percent(more.value + up, less.value - down);
    // Some round a percentage, some cut it off.
    let (low, high) = (
        claimed.value - claimed.last_digit,
        claimed.value + claimed.last_digit,
    );
    Ok(match low <= highest && lowest <= high {
        true => Finding::Follows,
        false => Finding::DoesNotFollow {
            better,
            than,
            gives: percent(more.value, less.value),
        },
    })
}

/// Whether a measurement is what `claim` speaks of, but for the system.
fn is_about(row: &Row, claim: &Row) -> bool {
    let what = |row: &Row| {
        let fields = [&row.device, &row.cipher, &row.pattern, &row.direction];
        fields.map(|field| field.trim().to_owned())
    };
    // A claim about "Figure 1 text" is about "Figure 1", not "Figure 11".
    let rest = claim.figure.strip_prefix(row.figure.as_str());
    let same_figure = rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    same_figure && !row.figure.is_empty() && what(row) == what(claim)
}

/// A claim of the same that says another number.
fn contradiction<'a>(claim: &Row, claims: &[&'a Row]) -> Result<Option<&'a Row>, TableError> {
    let what = |row: &Row| {
        let fields = [&row.system, &row.device, &row.cipher, &row.pattern];
        let more = [&row.direction, &row.metric];
        (fields.map(Clone::clone), more.map(Clone::clone))
    };
    let value = printed(claim)?.value;
    for other in claims {
        if what(other) == what(claim) && printed(other)?.value != value {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

fn printed(row: &Row) -> Result<Printed, TableError> {
    Printed::parse(&row.value).ok_or_else(|| TableError::NotANumber {
        line: row.line,
        value: row.value.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::{Document, rows};
    use std::collections::BTreeMap;

    const HEADER: &str =
        "document,row,kind,system,device,cipher,pattern,direction,metric,unit,value,figure";

    fn wrong_in(document: Document) -> Vec<String> {
        let rows = document.rows().unwrap();
        let claims = check(&rows).unwrap();
        let wrong = claims.iter().filter(|claim| claim.finding.is_wrong());
        wrong.map(|claim| claim.row.row.clone()).collect()
    }

    /// `check` must find the same as a person did, whose findings are in a
    /// column that it does not read. The exceptions need more than the claim
    /// and its figures.
    #[test]
    fn it_finds_what_a_person_found() {
        let beyond: BTreeMap<&str, &str> = [
            ("crypto-fs 115", "contradicts the order in another table"),
            ("crypto-fs 120", "is no percentage: 2^32 ÷ a clock"),
            ("fde-passmark 6", "is a third range under another name"),
        ]
        .into();
        let mut left = beyond.len();
        for document in Document::ALL {
            let name = serde_json::to_value(document).unwrap();
            let name = name.as_str().unwrap();
            let mut reader = csv::Reader::from_reader(document.csv().as_bytes());
            let by_a_person: Vec<String> = reader
                .deserialize::<BTreeMap<String, String>>()
                .map(Result::unwrap)
                .filter(|row| row["kind"] == "claimed difference")
                .filter(|row| row["check"].starts_with("INCONSISTENT"))
                .map(|row| row["row"].clone())
                .filter(|row| {
                    let known = beyond.contains_key(format!("{name} {row}").as_str());
                    left -= usize::from(known);
                    !known
                })
                .collect();
            assert_eq!(wrong_in(document), by_a_person, "{name}");
        }
        assert_eq!(left, 0, "an exception that is none");
    }

    #[test]
    fn both_numbers_are_named() {
        let rows = Document::StorageCiphers.rows().unwrap();
        let claims = check(&rows).unwrap();
        assert_eq!(claims.len(), 36);
        let wrong: Vec<_> = claims
            .iter()
            .filter(|claim| claim.finding.is_wrong())
            .collect();
        let [
            Claim {
                row,
                finding:
                    Finding::DoesNotFollow {
                        better,
                        than,
                        gives,
                    },
            },
        ] = wrong[..]
        else {
            panic!("{wrong:?}");
        };
        assert_eq!(
            (row.value.as_str(), row.figure.as_str()),
            ("53.03", "Figure 11 text")
        );
        assert_eq!(
            (better.value.as_str(), than.value.as_str()),
            ("399.23", "360.89")
        );
        assert!((gives - 10.62).abs() < 0.01, "{gives}");
    }

    #[test]
    fn rounding_is_no_contradiction() {
        let verdict = |better: &str, than: &str, unit: &str, claim: &str| {
            let table = format!(
                "{HEADER}\nd,1,measurement,A,,,,,,{unit},{better},Figure 1\n\
                 d,2,measurement,B,,,,,,{unit},{than},Figure 1\n\
                 d,3,measurement,B,,,,,,{unit},1000,Figure 11\n\
                 d,4,claimed difference,A over B,,,,,,%,{claim},Figure 1 text\n"
            );
            let rows = rows(table.as_bytes()).unwrap();
            let claims = check(&rows).unwrap();
            claims[0].finding.is_wrong()
        };
        // 4.615: rounded, and cut off.
        assert!(!verdict("68.00", "65.00", "MB/s", "4.62"));
        assert!(!verdict("68.00", "65.00", "MB/s", "4.61"));
        assert!(verdict("68.00", "65.00", "MB/s", "4.70"));
        // One digit each: anything between 25 and 150 % may stand behind it.
        assert!(!verdict("4", "3", "MB/s", "50"));
        assert!(verdict("4", "3", "MB/s", "100"));
        // Of times, the shorter is better.
        assert!(!verdict("100.0", "110.0", "ms", "10"));
        assert!(verdict("110.0", "100.0", "ms", "10"));
    }

    #[test]
    fn without_figures_nothing_is_said() {
        let table = format!(
            "{HEADER}\nd,1,measurement,A,,,,,,MB/s,2,Figure 1\n\
             d,2,claimed difference,A over B,,,,,,%,100,Figure 1\n\
             d,3,measurement,B,,,,,,MB/s,0,Figure 1\n"
        );
        let table_rows = rows(table.as_bytes()).unwrap();
        assert_eq!(check(&table_rows).unwrap()[0].finding, Finding::Unfounded);
        let bad = table.replace(",%,100,", ",%,a lot,");
        let bad = rows(bad.as_bytes()).unwrap();
        assert!(matches!(
            check(&bad),
            Err(TableError::NotANumber { line: 3, .. })
        ));
    }
}
