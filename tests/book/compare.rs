//! Whether a command printed what its page shows.

/// Stands for any lines, or for any part of one.
const ANY: &str = "…";

/// Checks `printed` against what the page shows, where it shows something;
/// where figures vary, only that the rows and headings are there, in order.
///
/// # Errors
/// What the page has and was not printed, with all that was.
pub fn agree(shown: &[String], printed: &str, varies: bool) -> Result<(), String> {
    if shown.is_empty() {
        return Ok(());
    }
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let agrees = match varies {
        true => heads(shown, &printed),
        false => whole(shown, &printed),
    };
    match agrees {
        true => Ok(()),
        false => Err(format!(
            "the page shows\n{}\nand it printed\n{}",
            shown.join("\n"),
            printed.join("\n")
        )),
    }
}

fn whole(shown: &[String], printed: &[&str]) -> bool {
    match (shown.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first.trim() == ANY => {
            (0..=printed.len()).any(|from| whole(rest, &printed[from..]))
        }
        (Some((first, rest)), Some((line, lines))) => same(first, line) && whole(rest, lines),
        _ => false,
    }
}

/// Whether a line is the one that is shown.
fn same(shown: &str, line: &str) -> bool {
    let mut parts = shown.split(ANY);
    let first = parts.next().unwrap_or_default();
    let Some(mut left) = line.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return left.is_empty();
    };
    for part in parts {
        let Some((_, rest)) = left.split_once(part) else {
            return false;
        };
        left = rest;
    }
    left.ends_with(last)
}

fn heads(shown: &[String], printed: &[&str]) -> bool {
    let mut printed = printed.iter();
    shown
        .iter()
        .map(|line| head(line))
        // Rules are as long as their table is wide.
        .filter(|head| !head.trim_matches('─').is_empty())
        .all(|head| printed.any(|line| line.trim_start().starts_with(head)))
}

/// A line up to its first figure, its colon or its second column.
fn head(line: &str) -> &str {
    let line = line.trim_start();
    let is_figure = |at: &usize| {
        let rest = &line[*at..];
        let after_space = line[..*at].ends_with([' ', '(']);
        rest.starts_with(ANY)
            || rest.starts_with("  ")
            || line[..*at].ends_with(": ")
            || rest.starts_with(|sign: char| sign.is_ascii_digit()) && after_space
    };
    let ends = line.char_indices().map(|(at, _)| at).find(is_figure);
    line[..ends.unwrap_or(line.len())].trim_end()
}

#[test]
fn what_differs_is_found() {
    let page = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let shown = page("keyslot     0\n…\ndata  … bytes");
    assert!(agree(&shown, "keyslot     0\na\nb\ndata  77 bytes\n", false).is_ok());
    assert!(agree(&shown, "keyslot     0\ndata  7 bytes", false).is_ok());
    for other in [
        "keyslot     1\ndata  7 bytes",
        "keyslot     0\n",
        "keyslot     0\ndata  7 bytes\nx",
    ] {
        assert!(agree(&shown, other, false).is_err(), "{other}");
    }
    let shown = page("seq-4m-read, depth 8\n  plain   9 MB/s\n  AES-256 XTS   8 MB/s");
    let printed = "x\nseq-4m-read, depth 8\n  plain   5 MB/s   a\n  AES-256 XTS   -\n";
    assert!(agree(&shown, printed, true).is_ok());
    for other in [
        &printed.replace("plain", "bare"),
        "seq-4m-read, depth 8\n  AES-256 XTS\n  plain",
    ] {
        assert!(agree(&shown, other, true).is_err(), "{other}");
    }
    assert_eq!(
        head("Noise floor: plain against itself 0.995 (0.9)"),
        "Noise floor:"
    );
    assert_eq!(
        head("  AES-256 XTS, builtin     1,114 MB/s"),
        "AES-256 XTS, builtin"
    );
}
