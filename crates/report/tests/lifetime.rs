//! The lives of an SSD as text, JSON and a page.

#[path = "lifetime/sample.rs"]
mod sample;

use cryptmark_report::text::Style;
use cryptmark_report::{html, lifetime};

/// The text contains everything that the charts show.
#[test]
fn text_tells_the_series() {
    let text = lifetime::text(&sample::lifetime(), &Style::default());
    let line = |number: usize, begin: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with(begin));
        let line = lines.nth(number).unwrap_or_else(|| panic!("{text}"));
        line[begin.len()..]
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let blocked = "encrypted, TRIM blocked";
    assert_eq!(
        line(0, blocked),
        "4.50 x 77 MB/s 12.0 years noise everywhere"
    );
    // After three days, a week, two, a month, three, a year and three.
    assert_eq!(line(1, blocked), "2.17 2.46 2.75 3.04 3.33 3.92 3.92");
    assert_eq!(line(2, blocked), "138 122 109 98.6 90.0 76.6 76.6");
    assert_eq!(line(3, blocked), "9 9 10 11 40 13.1 374 days");
    assert!(line(4, blocked).starts_with("·░░▒▒▓▓█·░░"), "{text}");
    let plain = "not encrypted, compressed to 50 %";
    assert!(
        line(0, plain).ends_with("over 100 years everything"),
        "{text}"
    );
    assert!(text.contains("writes 3.8 times as much"), "{text}");
}

#[test]
fn a_page_has_each_picture_and_its_values() {
    let page = html::lifetime(&sample::lifetime());
    assert_eq!(page.matches("<svg").count(), 5);
    assert_eq!(page.matches("role=\"img\"").count(), 5);
    assert_eq!(page.matches("<table").count(), 5);
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
    for shown in [
        "How long it lasts, at 20 GB a day",
        "<td data-name=\"lasts\">over 100 years</td>",
        "<td data-name=\"encrypted, TRIM blocked\">3.92</td>",
        "<td data-name=\"most\">40</td>",
        "<td class=\"word\" data-name=\"sees\">20.0 % unused</td>",
    ] {
        assert!(page.contains(shown), "{shown} is not in\n{page}");
    }
}

/// A record without the data of the charts must not fail.
#[test]
fn lives_without_moments() {
    let mut record = sample::lifetime();
    for life in &mut record.setups {
        life.moments.clear();
        life.erases.clear();
        life.leak = None;
    }
    for _ in 0..2 {
        let page = html::lifetime(&record);
        assert!(!page.contains("could not be drawn"), "{page}");
        assert!(lifetime::text(&record, &Style::default()).contains("20 GB a day"));
        record.setups.clear();
    }
}
