//! `cargo xtask results`: the tables of the pages of results, from the runs in results/.
//!
//! A table stands between `<!-- generated: NAME -->` and `<!-- end -->`. Its heading
//! stands there too, so a section without a stored run leaves nothing behind.

mod ciphers;
mod constant_time;
mod machines;
mod storage;
mod stored;

use crate::root;
use std::path::Path;
use stored::Runs;

/// The pages, each with the most bytes that it may have.
const PAGES: [(&str, usize); 2] = [("docs/RESULTS.md", 8192), ("docs/RESULTS-FILES.md", 8192)];
const BEGIN: &str = "<!-- generated: ";
const BEGIN_END: &str = " -->\n";
const END: &str = "<!-- end -->";

/// A section by the name in its marker. It gives nothing if its run is not stored.
type Section = fn(&Runs) -> String;

const SECTIONS: [(&str, Section); 7] = [
    ("storage", storage::sections),
    ("tiers", ciphers::tiers),
    ("slower", ciphers::slower),
    ("ciphers native", ciphers::native),
    ("constant time", constant_time::sentences),
    ("machines", machines::machines),
    ("file encryption", storage::file_encryption),
];

/// Rewrites the pages.
pub fn run() -> bool {
    let root = root();
    let rewrite = |name: &str| -> Result<usize, String> {
        let (before, after) = page(&root, name)?;
        if before != after {
            std::fs::write(root.join(name), &after).map_err(|error| format!("{name}: {error}"))?;
            println!("{name} was rewritten");
        }
        Ok(after.len())
    };
    for (name, _) in PAGES {
        match rewrite(name) {
            Ok(bytes) => println!("{name} has {bytes} bytes"),
            Err(error) => {
                eprintln!("{error}");
                return false;
            }
        }
    }
    true
}

/// A page as it is, and as the stored runs give it.
fn page(root: &Path, name: &str) -> Result<(String, String), String> {
    let runs = Runs::read(root)?;
    let page = std::fs::read_to_string(root.join(name)).map_err(|e| format!("{name}: {e}"))?;
    let filled = fill(&page, &runs)?;
    Ok((page, filled))
}

/// The page with all of its tables made anew.
fn fill(page: &str, runs: &Runs) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after
            .split_once(BEGIN_END)
            .ok_or("a marker in the page does not end")?;
        let (_, after) = after
            .split_once(END)
            .ok_or_else(|| format!("the table \"{name}\" has no {END}"))?;
        let section = SECTIONS.iter().find(|(known, _)| *known == name);
        let (_, section) = section.ok_or_else(|| format!("no table is called \"{name}\""))?;
        let table = section(runs);
        filled.push_str(&[before, BEGIN, name, BEGIN_END].concat());
        if !table.is_empty() {
            filled.push_str(&["\n", table.trim_end(), "\n\n"].concat());
        }
        filled.push_str(END);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// A table in Markdown. The columns after the first `words` are figures.
fn table(heads: &[String], words: usize, rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<&str> = (0..heads.len())
        .map(|column| if column < words { "---" } else { "---:" })
        .collect();
    let mut text = line(heads);
    text.push_str(&format!("|{}|\n", rule.join("|")));
    rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}

/// Column heads from text.
fn heads<const N: usize>(heads: [&str; N]) -> Vec<String> {
    heads.map(str::to_owned).to_vec()
}

/// A figure with three significant digits, and its thousands apart.
fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 || size == 0.0 => 2,
        size if size >= 0.01 => 3,
        _ => 5,
    };
    grouped(&format!("{value:.decimals$}"))
}

/// A number as it is written, with its thousands apart.
fn grouped(text: &str) -> String {
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        let left = whole.len() - at;
        if at > 0 && left % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// Bytes of a request: `512 B`, `16 KiB`.
fn bytes(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b.is_multiple_of(1 << 20) => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b.is_multiple_of(1 << 10) => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_what_the_stored_runs_give() {
        let mut all = String::new();
        for (name, most) in PAGES {
            let (is, should) = page(&root(), name).unwrap();
            assert!(
                is == should,
                "{name} is out of date: run cargo xtask results"
            );
            assert!(is.len() <= most, "{name} has {} bytes of {most}", is.len());
            all += &is;
        }
        for (name, _) in SECTIONS {
            let marker = [BEGIN, name, BEGIN_END].concat();
            assert_eq!(all.matches(&marker).count(), 1, "{name}");
        }
    }

    #[test]
    fn a_page_keeps_its_text_around_the_tables() {
        let page = "a\n<!-- generated: storage -->\nold\n<!-- end -->\nb\n";
        let filled = fill(page, &Runs::default()).unwrap();
        assert_eq!(filled, "a\n<!-- generated: storage -->\n<!-- end -->\nb\n");
        for wrong in [
            "<!-- generated: storage -->\n",
            "<!-- generated: unknown -->\n<!-- end -->",
            "<!-- generated: storage",
        ] {
            fill(wrong, &Runs::default()).unwrap_err();
        }
    }

    #[test]
    fn figures_have_three_digits() {
        let written = [
            1234567.4, 123.4, 12.34, 1.234, 0.1234, 0.0123, 0.00046, 0.0, -1500.0,
        ];
        let expected = [
            "1,234,567",
            "123",
            "12.3",
            "1.23",
            "0.12",
            "0.012",
            "0.00046",
            "0.00",
            "-1,500",
        ];
        assert_eq!(written.map(figure), expected);
        assert_eq!([512, 4096, 4 << 20].map(bytes), ["512 B", "4 KiB", "4 MiB"]);
    }
}
