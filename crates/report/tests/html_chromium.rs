//! The HTML as a browser shows it: opened in headless Chromium, on a phone and
//! on a desk, light and dark.

#[path = "lifetime/sample.rs"]
mod lifetime;
mod sample;

use cryptmark_report::html;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Chromium's output for `page`, or why there is none.
fn chromium(page: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let program = ["/usr/bin/chromium", "/usr/bin/chromium-browser"]
        .into_iter()
        .find(|program| Path::new(program).is_file())
        .ok_or("chromium is not installed (Debian: chromium)")?;
    let profile = tempfile::tempdir().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .stderr(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    assert!(output.status.success(), "{program} failed: {output:?}");
    Ok(output.stdout)
}

/// True when Chromium is here; says so when it is not.
fn opened(result: Result<Vec<u8>, String>) -> Option<Vec<u8>> {
    result.map_err(|reason| println!("skipped: {reason}")).ok()
}

#[test]
fn a_browser_shows_the_figures() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("report.html");
    fs::write(&page, html::render(&[sample::run()])).unwrap();
    let Some(dom) = opened(chromium(&page, &["--dump-dom"])) else {
        return;
    };
    let dom = String::from_utf8(dom).unwrap();
    // Three workloads with throughput and latency, one forest, one ledger.
    assert_eq!(dom.matches("<svg").count(), 8);
    assert_eq!(dom.matches("role=\"img\"").count(), 8);
    assert_eq!(dom.matches("aria-label=").count(), 8);
    for shown in [
        "12,409 (12,161–12,657) IOPS",
        "slower by 29.0 % (27.6–30.4)",
        "not distinguishable (±2.2 %)",
        "plain against itself 1.001 (0.994–1.008, n 10): quiet",
        "Choose AES-256 XTS, builtin",
        "AMD Ryzen 7 5800U",
        "Samsung SSD 980 PRO 1TB",
        "not preconditioned",
        "How to read this",
        "<td data-name=\"p99\">546 µs</td>",
    ] {
        assert!(dom.contains(shown), "{shown} is not shown");
    }
    for external in [
        "http:", "https:", "src=", "url(", "@import", "<script", "<link",
    ] {
        assert!(!dom.contains(external), "{external} reaches out");
    }
}

#[test]
fn a_browser_runs_nothing_that_a_record_holds() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("hostile.html");
    fs::write(&page, html::render(&[sample::hostile()])).unwrap();
    let Some(dom) = opened(chromium(&page, &["--dump-dom"])) else {
        return;
    };
    let dom = String::from_utf8(dom).unwrap();
    assert!(!dom.contains("<script"));
    assert!(dom.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_eq!(dom.matches("<svg").count(), dom.matches("</svg>").count());
}

#[test]
fn it_fits_a_phone_and_a_desk() {
    fits(&html::render(&[
        sample::run(),
        sample::ciphers(),
        sample::beside_a_paper(),
    ]));
}

#[test]
fn lives_fit_a_phone_and_a_desk() {
    fits(&html::lifetime::render(&lifetime::lifetime()));
}

/// Asks the browser itself: nothing is wider than the window, and the text of
/// the charts is large enough to be read.
fn fits(report: &str) {
    // The page is measured from outside: it may run no script of its own.
    const PROBE: &str = "<!doctype html><body style='margin:0'>
        <iframe id=f src='report.html' style='border:0;width:WIDTHpx;height:800px'></iframe>
        <script>onload = () => {
            const page = document.getElementById('f').contentDocument;
            const texts = [...page.querySelectorAll('svg text')];
            const heights = texts.map(text => {
                const svg = text.ownerSVGElement;
                const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
                return parseFloat(text.getAttribute('font-size')) * scale;
            });
            const right = texts.map(text => text.getBoundingClientRect().right);
            document.body.textContent = JSON.stringify({
                wide: page.documentElement.scrollWidth,
                text: Math.min(...heights),
                right: Math.max(...right),
            });
        }</script>";
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("report.html"), report).unwrap();
    for width in [360, 768, 1030, 1200] {
        let page = directory.path().join(format!("probe-{width}.html"));
        fs::write(&page, PROBE.replace("WIDTH", &width.to_string())).unwrap();
        let arguments = [
            "--dump-dom",
            "--allow-file-access-from-files",
            "--window-size=1400,900",
        ];
        let Some(dom) = opened(chromium(&page, &arguments)) else {
            return;
        };
        let dom = String::from_utf8(dom).unwrap();
        let start = dom.find("{\"wide\"").expect(&dom);
        let end = start + dom[start..].find('}').expect(&dom) + 1;
        let seen: serde_json::Value = serde_json::from_str(&dom[start..end]).unwrap();
        let number = |name: &str| seen[name].as_f64().expect(name);
        assert!(number("wide") <= f64::from(width), "{width}: {seen}");
        assert!(number("right") <= f64::from(width), "{width}: {seen}");
        assert!(number("text") >= 12.0, "{width}: {seen}");
    }
}

#[test]
fn it_follows_the_dark_mode() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("report.html");
    fs::write(&page, html::render(&[sample::run()])).unwrap();
    let shots = ["light", "dark"].map(|mode| {
        let shot = directory.path().join(format!("{mode}.png"));
        let screenshot = format!("--screenshot={}", shot.display());
        let mut arguments = vec!["--window-size=1200,1000", &screenshot];
        if mode == "dark" {
            // 0 is dark in Blink's settings.
            arguments.push("--blink-settings=preferredColorScheme=0");
        }
        opened(chromium(&page, &arguments)).map(|_| fs::read(shot).unwrap())
    });
    let [Some(light), Some(dark)] = shots else {
        return;
    };
    for shot in [&light, &dark] {
        assert!(shot.starts_with(b"\x89PNG"));
        assert!(shot.len() > 20_000, "the page is not blank");
    }
    assert_ne!(light, dark);
}
