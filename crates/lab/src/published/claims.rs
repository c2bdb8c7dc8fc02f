//! Checks whether a document's percentages follow from the figures that it
//! prints with them.

use super::{Printed, Row, not_a_number};
use crate::error::LabError;

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
/// `A over B` by p % means that A's figure is p % more than B's: in the same figure, for the same
/// drive, cipher, pattern and direction. Of times it may also mean that B's is p % more than A's,
/// as A is faster then; a claim follows in either sense. A figure without a cipher, as that of a
/// plain drive, is one of all ciphers. Printed figures and claims are rounded: a
/// claim follows if any numbers that may stand behind the printed ones give it.
///
/// # Errors
/// [`LabError`].
pub fn check(rows: &[Row]) -> Result<Vec<Claim<'_>>, LabError> {
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

fn recomputed<'a>(claim: &Row, rows: &'a [Row]) -> Result<Finding<'a>, LabError> {
    let claimed = printed(claim)?;
    let Some((better, than)) = claim.system.split_once(" over ") else {
        return Ok(Finding::Unfounded);
    };
    let of = |system: &str| {
        let of_cipher = |cipher: &str| {
            let mut found = rows.iter().filter(move |row| {
                row.kind == "measurement"
                    && row.system == system
                    && row.cipher.trim() == cipher
                    && is_about(row, claim)
            });
            // Two figures of the same leave open which was meant.
            (found.next(), found.next())
        };
        match of_cipher(claim.cipher.trim()) {
            (None, _) => of_cipher(""),
            found => found,
        }
    };
    let of = |system: &str| match of(system) {
        (found, None) => found,
        _ => None,
    };
    let (Some(better), Some(than)) = (of(better), of(than)) else {
        return Ok(Finding::Unfounded);
    };
    let (more, less) = (printed(better)?, printed(than)?);
    let is_above_0 = |figure: &Printed| figure.value - figure.last_digit / 2.0 > 0.0;
    let are_times = TIMES.contains(&better.unit.trim());
    if better.unit != than.unit || !is_above_0(&less) || are_times && !is_above_0(&more) {
        return Ok(Finding::Unfounded);
    }
    let follows = follows(&claimed, &more, &less) || are_times && follows(&claimed, &less, &more);
    Ok(match follows {
        true => Finding::Follows,
        false => Finding::DoesNotFollow {
            better,
            than,
            gives: match are_times {
                true => percent(less.value, more.value),
                false => percent(more.value, less.value),
            },
        },
    })
}

fn percent(more: f64, less: f64) -> f64 {
    (more / less - 1.0) * 100.0
}

/// Whether numbers that are printed so give a percentage that is printed so.
fn follows(claimed: &Printed, more: &Printed, less: &Printed) -> bool {
    let (up, down) = (more.last_digit / 2.0, less.last_digit / 2.0);
    let lowest = percent(more.value - up, less.value + down);
    let highest = percent(more.value + up, less.value - down);
    // Some round a percentage, some cut it off.
    let (low, high) = (
        claimed.value - claimed.last_digit,
        claimed.value + claimed.last_digit,
    );
    low <= highest && lowest <= high
}

/// Whether a measurement is what `claim` speaks of, but for the system and the cipher.
fn is_about(row: &Row, claim: &Row) -> bool {
    let what = |row: &Row| {
        let fields = [&row.device, &row.pattern, &row.direction];
        fields.map(|field| field.trim().to_owned())
    };
    // A claim about "Figure 1 text" is about "Figure 1", not "Figure 11".
    let rest = claim.figure.strip_prefix(row.figure.as_str());
    let same_figure = rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    same_figure && !row.figure.is_empty() && what(row) == what(claim)
}

/// A claim of the same that says another number.
fn contradiction<'a>(claim: &Row, claims: &[&'a Row]) -> Result<Option<&'a Row>, LabError> {
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

fn printed(row: &Row) -> Result<Printed, LabError> {
    Printed::parse(&row.value).ok_or_else(|| not_a_number(row))
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
        // Of times, the shorter is faster, and the longer is longer.
        assert!(!verdict("100.0", "110.0", "ms", "10"));
        assert!(!verdict("110.0", "100.0", "ms", "10"));
        assert!(!verdict("51", "40", "us", "27.5"));
        assert!(!verdict("300", "200", "s", "50"));
        assert!(verdict("110.0", "100.0", "ms", "12"));
        assert!(verdict("110.0", "100.0", "MB/s", "-9.1"));
    }

    /// A plain drive has no cipher; its figure is compared with those of all ciphers.
    #[test]
    fn a_figure_without_a_cipher_is_of_all() {
        let finding = |plain: &str, claim: &str| {
            let table = format!(
                "{HEADER}\nd,1,measurement,encrypted,,AES,,,,MB/s,490,text\n\
                 d,2,measurement,plain,,{plain},,,,MB/s,607,text\n\
                 d,3,claimed difference,encrypted over plain,,AES,,,,%,{claim},text\n"
            );
            let rows = rows(table.as_bytes()).unwrap();
            let found = check(&rows).unwrap().remove(0).finding.is_wrong();
            let is_founded = check(&rows).unwrap()[0].finding != Finding::Unfounded;
            (is_founded, found)
        };
        assert_eq!(finding("", "-19.3"), (true, false));
        assert_eq!(finding("", "-21"), (true, true));
        assert_eq!(finding("Serpent", "-21"), (false, false));
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
        let refused = check(&bad).unwrap_err().to_string();
        assert!(refused.starts_with("line 3: "), "{refused}");
    }
}
