//! How large a page is, how long it takes to write, and how long a browser takes
//! to show it: of 5,000 trials, or of runs in JSON files.
//!
//! Run it with `cargo bench -p cryptmark-report --bench page -- [FILE.json…]`.

#[path = "../tests/sample/mod.rs"]
mod sample;

use cryptmark_report::html;
use lab::record::Run;
use std::time::Instant;
use testkit::browser::Browser;

/// How often each page is written and opened; the median counts.
const TIMES: usize = 5;

fn main() {
    let files: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let mut runs = vec![sample::many(50, 100)];
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        runs.push(serde_json::from_str(&text).unwrap());
    }
    println!(
        "plan            trials      bytes  written ms  loaded ms  painted ms  picked ms  sorted ms"
    );
    for run in runs {
        measure(run);
    }
}

fn measure(run: Run) {
    let (plan, trials) = (run.plan.clone(), run.trials.len());
    let runs = [run];
    let mut written = Vec::new();
    for _ in 0..TIMES {
        let start = Instant::now();
        html::render(&runs);
        written.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let page = html::render(&runs);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    std::fs::write(&file, &page).unwrap();
    let mut columns: [Vec<f64>; 4] = Default::default();
    if let Some(mut browser) = Browser::chromium() {
        browser.size(1200, 900);
        for _ in 0..TIMES {
            for (column, value) in columns.iter_mut().zip(opened(&mut browser, &file)) {
                column.push(value);
            }
        }
    }
    let shown = columns.map(median);
    println!(
        "{plan:<14} {trials:>7} {:>10} {:>11.0} {:>10.0} {:>11.0} {:>10.0} {:>10.0}",
        page.len(),
        median(written),
        shown[0],
        shown[1],
        shown[2],
        shown[3]
    );
}

/// When something was seen first; the browser may tell later than it was.
const PAINTED: &str = "new Promise(done => new PerformanceObserver(list => {
    for (const entry of list.getEntriesByName('first-contentful-paint')) done(entry.startTime);
}).observe({ type: 'paint', buffered: true }))";

/// Milliseconds until all is there, until something is seen, and until a pick
/// and a sort are seen.
fn opened(browser: &mut Browser, file: &std::path::Path) -> [f64; 4] {
    browser.open_file(file);
    // After two frames what was done is on the screen.
    const SEEN: &str =
        "await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))";
    let mut ms = |expression: String| browser.eval(&expression).as_f64().unwrap();
    let act = |act: &str| {
        format!(
            "(async () => {{ const start = performance.now(); {act}; {SEEN};
                return performance.now() - start; }})()"
        )
    };
    [
        ms(format!(
            "(async () => {{ {SEEN}; return performance.getEntriesByType('navigation')[0].loadEventEnd; }})()"
        )),
        ms(PAINTED.to_owned()),
        ms(act("document.querySelector('#pick input').click()")),
        ms(act("document.querySelectorAll('thead button')[1].click()")),
    ]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
