//! `cargo xtask pictures`: what the program shows of a stored run, as pictures for the
//! README.

use crate::root;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The run that is shown.
const RUN: &str = "results/quick.json.zst";

/// Lines of the terminal that are shown, and characters in each.
const LINES: usize = 27;
const COLUMNS: usize = 111;

/// Pixels of a character in the picture of a terminal, and of the margin.
const WIDTH: f64 = 7.83;
const HEIGHT: usize = 18;
const MARGIN: usize = 14;

/// Draws `terminal.svg` and `report.png` in docs/pictures by the program that was built
/// beside this one, and by Chromium.
pub fn run() -> bool {
    match draw(&root()) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("{error}");
            false
        }
    }
}

fn draw(root: &Path) -> Result<(), String> {
    let folder = root.join("target/pictures");
    let _ = std::fs::remove_dir_all(&folder);
    let at = |name: &str| folder.join(name).display().to_string();
    let (run, store, page) = (at("run.json"), at("store"), at("report.html"));
    let pictures = root.join("docs/pictures");

    let packed = std::fs::read(root.join(RUN)).map_err(|error| format!("{RUN}: {error}"))?;
    let unpacked = zstd::decode_all(&packed[..]).map_err(|error| format!("{RUN}: {error}"))?;
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&run, unpacked))
        .map_err(|error| format!("{run}: {error}"))?;
    cryptmark(&["import", &run, "--store", &store])?;
    let shown = cryptmark(&["show", "latest", "--store", &store])?;
    let file = pictures.join("terminal.svg");
    std::fs::write(&file, terminal(&shown))
        .map_err(|error| format!("{}: {error}", file.display()))?;

    cryptmark(&["report", "latest", "-o", &page, "--store", &store])?;
    let mut chromium = Command::new("chromium");
    chromium
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--hide-scrollbars", "--window-size=1000,860"])
        .arg(format!(
            "--screenshot={}",
            pictures.join("report.png").display()
        ))
        .arg(format!("file://{page}"));
    output(&mut chromium).map(drop)
}

/// What the program prints.
fn cryptmark(arguments: &[&str]) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    output(Command::new(own.with_file_name("cryptmark")).args(arguments))
}

fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().display().to_string();
    let output = command
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{program} failed: {said}"))
        }
    }
}

/// A terminal with the first lines of `text`.
fn terminal(text: &str) -> String {
    let lines: Vec<&str> = text.lines().take(LINES).collect();
    let width = (COLUMNS as f64 * WIDTH) as usize + 2 * MARGIN;
    let height = (lines.len() + 1) * HEIGHT + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>The answer of cryptmark run</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#16191f\"/>\n\
         <g font-family=\"ui-monospace, DejaVu Sans Mono, monospace\" font-size=\"13\" \
         fill=\"#dfe5ec\">\n"
    );
    for (nth, line) in ["$ cryptmark run"].iter().chain(&lines).enumerate() {
        let y = MARGIN + (nth + 1) * HEIGHT - 5;
        let columns = line.chars().count();
        let length = columns as f64 * WIDTH;
        let line = line
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            // Spaces side by side would become one.
            .replace(' ', "\u{a0}");
        if columns > 0 {
            let _ = writeln!(
                svg,
                "<text x=\"{MARGIN}\" y=\"{y}\" textLength=\"{length:.0}\">{line}</text>"
            );
        }
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

#[test]
fn a_terminal_has_every_line_and_no_markup_of_its_text() {
    let svg = terminal("a < b\n\nc & d\n");
    assert!(svg.contains(">a\u{a0}&lt;\u{a0}b</text>") && svg.contains("c\u{a0}&amp;\u{a0}d"));
    assert_eq!(svg.matches("<text ").count(), 3);
}
