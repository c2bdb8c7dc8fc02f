//! The HTML as a browser shows it: opened in headless Chromium, on a phone, on a
//! desk and on paper, by mouse, by keyboard and as a screen reader hears it.

mod chromium;
#[path = "lifetime/sample.rs"]
mod lifetime;
mod sample;

use cryptmark_report::html;
use lab::record::Run;
use std::fs;
use std::path::{Path, PathBuf};
use testkit::browser::Browser;

/// A browser that has opened the report of `runs`; the file goes with the folder.
fn opened(runs: &[Run]) -> Option<(Browser, tempfile::TempDir)> {
    opened_page(&html::render(runs))
}

fn opened_page(report: &str) -> Option<(Browser, tempfile::TempDir)> {
    let mut browser = Browser::chromium()?;
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    fs::write(&page, report).unwrap();
    browser.open_file(&page);
    Some((browser, folder))
}

fn markup(browser: &mut Browser) -> String {
    browser.text("document.documentElement.outerHTML")
}

#[test]
fn a_browser_shows_the_figures() {
    let Some((mut browser, _folder)) = opened(&[sample::run()]) else {
        return;
    };
    let dom = markup(&mut browser);
    // Three workloads with throughput and latency, one forest, one ledger.
    assert_eq!(dom.matches("<svg").count(), 8);
    assert_eq!(
        browser.eval("document.querySelectorAll('svg[aria-label] > desc').length"),
        8
    );
    for shown in [
        "12,409 (12,161–12,657) IOPS",
        "slower by 29.0 % (27.6–30.4)",
        "not distinguishable (±2.2 %)",
        "plain against itself 1.001 (0.994–1.008, n 10): quiet",
        "Choose AES-256 XTS.",
        "AMD Ryzen 7 5800U",
        "Samsung SSD 980 PRO 1TB",
        "not preconditioned",
        "How to read this",
        ">546 µs</td>",
    ] {
        assert!(dom.contains(shown), "{shown} is not shown");
    }
    // The answer stands above everything else.
    let answer = dom.find("Choose AES-256 XTS").unwrap();
    for later in ["<svg", "<table", "Noise floor"] {
        assert!(
            answer < dom.find(later).unwrap(),
            "{later} comes before the answer"
        );
    }
    for external in ["http:", "https:", "src=", "url(", "@import", "<link"] {
        assert!(!dom.contains(external), "{external} reaches out");
    }
}

#[test]
fn a_browser_runs_nothing_that_a_record_holds() {
    let Some((mut browser, _folder)) = opened(&[sample::hostile()]) else {
        return;
    };
    let dom = markup(&mut browser);
    assert_eq!(dom.matches("<script").count(), 1, "the page's own");
    assert_eq!(browser.eval("document.documentElement.className"), "live");
    assert!(dom.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_eq!(dom.matches("<svg").count(), dom.matches("</svg>").count());
    // An injected script would not run.
    let other = "(() => { const other = document.createElement('script');
        other.textContent = 'window.ran = 1'; document.body.append(other);
        return String(window.ran); })()";
    assert_eq!(browser.text(other), "undefined");
}

#[test]
fn it_fits_a_phone_and_a_desk() {
    let runs = [
        sample::scored(),
        sample::ciphers(),
        sample::beside_a_paper(),
        sample::kdf_run(),
    ];
    fits(opened(&runs));
}

#[test]
fn lives_fit_a_phone_and_a_desk() {
    let page = html::lifetime(&lifetime::lifetime());
    fits(opened_page(&page));
}

/// Nothing is wider than the window, the text of the charts is large enough to be
/// read and lies on no other, and each of their shapes is seen: none is within another.
fn fits(opened: Option<(Browser, tempfile::TempDir)>) {
    const SEEN: &str = "(() => {
        const texts = [...document.querySelectorAll('svg text')];
        const heights = texts.map(text => {
            const svg = text.ownerSVGElement;
            const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            return parseFloat(getComputedStyle(text).fontSize) * scale;
        });
        const cells = [...document.querySelectorAll('td, th, button, .lead')];
        const right = [...texts, ...cells].map(shown => shown.getBoundingClientRect().right);
        return {
            wide: document.documentElement.scrollWidth,
            text: Math.min(...heights),
            right: Math.max(...right),
            touching: [...document.querySelectorAll('svg')].flatMap(svg => {
                const boxes = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
                return boxes.flatMap(([a, one], at) => boxes.slice(at + 1)
                    .filter(([, other]) => one.left < other.right && other.left < one.right
                        && one.top + 4 < other.bottom && other.top + 4 < one.bottom)
                    .map(([b]) => a + ' | ' + b));
            }),
            lost: document.querySelectorAll(':is(rect, polyline, polygon, circle, text) > *').length,
        };
    })()";
    let Some((mut browser, _folder)) = opened else {
        return;
    };
    for width in [360, 768, 1030, 1200] {
        browser.size(width, 800);
        let seen = browser.eval(SEEN);
        let number = |name: &str| seen[name].as_f64().expect(name);
        assert!(number("wide") <= f64::from(width), "{width}: {seen}");
        assert!(number("right") <= f64::from(width), "{width}: {seen}");
        assert!(number("text") >= 12.0, "{width}: {seen}");
        assert_eq!(seen["touching"], serde_json::json!([]), "{width}");
        assert_eq!(number("lost"), 0.0, "{width}: {seen}");
    }
}

/// The rows that are seen of the body of `workload`, by an expression on `row`.
fn rows(workload: &str, of: &str) -> String {
    format!(
        "[...document.querySelectorAll('table.sorts tbody')]
            .find(body => body.querySelector('.group').textContent.startsWith('{workload}'))
            .querySelectorAll('tr[data-system]:not([hidden])').values()
            .map(row => {of}).toArray()"
    )
}

/// The button that sorts by a column.
fn head(column: &str) -> String {
    format!(
        "[...document.querySelectorAll('thead button')].find(button => button.textContent === '{column}')"
    )
}

/// The box that picks a system or a cipher.
fn choice(name: &str) -> String {
    format!("document.querySelector('#pick input[value=\"{name}\"]')")
}

#[test]
fn tables_sort_by_mouse_and_by_keyboard() {
    let run = sample::run();
    let Some((mut browser, _folder)) = opened(std::slice::from_ref(&run)) else {
        return;
    };
    browser.size(1200, 900);
    // The recorded values, to the last digit, in the order of the plan.
    let mut recorded: Vec<f64> = run
        .trials
        .iter()
        .filter(|trial| trial.workload == "rand-4k-write")
        .map(|trial| trial.iops.median)
        .collect();
    let shown = |browser: &mut Browser| -> Vec<f64> {
        let values = rows("rand-4k-write", "row.cells[1].dataset.value");
        let values = browser.texts(&values);
        values.iter().map(|value| value.parse().unwrap()).collect()
    };
    let of = |workload: &str| rows(workload, "row.cells[0].textContent");
    // The A/A cell is measured second and stands last.
    let again = recorded.remove(1);
    recorded.push(again);
    assert_eq!(shown(&mut browser), recorded);
    let as_it_was = recorded.clone();

    browser.click_on(&head("rate"));
    recorded.sort_by(f64::total_cmp);
    assert_eq!(shown(&mut browser), recorded);
    let sorted = "document.querySelector('[aria-sort=ascending]').textContent";
    assert_eq!(browser.text(sorted), "rate");
    let first = &browser.texts(&of("rand-4k-write"))[0];
    assert_eq!(first, "Serpent-256 XTS, dm-crypt");

    // The button has the focus: Enter sorts down, Space as it was.
    browser.press("Enter");
    recorded.reverse();
    assert_eq!(shown(&mut browser), recorded);
    browser.press("Space");
    assert_eq!(shown(&mut browser), as_it_was);
    assert!(
        browser
            .eval("document.querySelector('[aria-sort=ascending]')")
            .is_null()
    );

    // The next column is one tab away; each workload is sorted by itself.
    browser.press("Tab");
    assert_eq!(browser.text("document.activeElement.textContent"), "n");
    browser.press("Tab");
    browser.press("Enter");
    assert_eq!(browser.texts(&of("rand-4k-read"))[0], "plain");
    // A row without a value comes last in both directions.
    for _ in 0..2 {
        browser.click_on(&head("against plain"));
        assert_eq!(browser.texts(&of("seq-1m-read")).last().unwrap(), "plain");
    }
}

#[test]
fn what_is_picked_is_seen() {
    let run = sample::run();
    let Some((mut browser, _folder)) = opened(std::slice::from_ref(&run)) else {
        return;
    };
    browser.size(1200, 900);
    let seen = |browser: &mut Browser| {
        browser.eval("document.querySelectorAll('tr[data-system]:not([hidden])').length")
    };
    let count = |keep: &dyn Fn(&lab::record::Trial) -> bool| {
        run.trials.iter().filter(|trial| keep(trial)).count()
    };
    assert_eq!(seen(&mut browser), count(&|_| true));

    browser.click_on(&choice("builtin"));
    assert_eq!(
        seen(&mut browser),
        count(&|trial| trial.system == "builtin")
    );
    let systems = "[...new Set([...document.querySelectorAll('tr[data-system]')]
        .filter(row => row.checkVisibility()).map(row => row.dataset.system))]";
    assert_eq!(browser.texts(systems), ["builtin"]);
    let said = browser.text("document.getElementById('shown').textContent");
    assert_eq!(said, "Only builtin: 6 of 15 rows");

    // By keyboard from there: both systems with one of the ciphers.
    let focus = choice("dm-crypt");
    browser.eval(&format!("{focus}.focus()"));
    browser.press("Space");
    browser.eval(&format!("{}.focus()", choice("Serpent-256 XTS")));
    browser.press("Space");
    let serpent = |trial: &lab::record::Trial| {
        let cipher = trial.cipher.as_deref().unwrap_or_default();
        cipher.starts_with("serpent")
    };
    assert_eq!(seen(&mut browser), count(&serpent));
    // In pictures what is not picked steps back.
    let marks = |browser: &mut Browser, of: &str| {
        let marks = format!("document.querySelectorAll('svg g[data-cipher]{of}').length");
        browser.eval(&marks).as_u64().unwrap()
    };
    let serpents = "[data-cipher=\"Serpent-256 XTS\"]";
    assert_eq!(marks(&mut browser, &format!("{serpents}.off")), 0);
    let others = marks(&mut browser, "") - marks(&mut browser, serpents);
    assert_eq!(marks(&mut browser, ".off"), others);
    assert!(others > 0);

    // A section without any of them leaves nothing behind, not even an empty heading.
    browser.click_on(&choice("builtin"));
    browser.click_on(&choice("dm-crypt"));
    browser.click_on(&choice("plain"));
    assert_eq!(seen(&mut browser), 0);
    let headings =
        "[...document.querySelectorAll('tr.group')].filter(row => row.checkVisibility()).length";
    assert_eq!(browser.eval(headings), 0);

    browser.click_on("document.querySelector('#pick button')");
    assert_eq!(seen(&mut browser), count(&|_| true));
    assert_eq!(marks(&mut browser, ".off"), 0);
    assert_eq!(
        browser.text("document.getElementById('shown').textContent"),
        ""
    );
}

#[test]
fn pictures_show_values_to_the_mouse_the_keyboard_and_the_ear() {
    let Some((mut browser, _folder)) = opened(&[sample::run()]) else {
        return;
    };
    browser.size(1200, 900);
    let tip = |browser: &mut Browser| {
        let text = "(tip => tip.hidden ? '' : tip.textContent)(document.getElementById('tip'))";
        browser.text(text)
    };
    let bar = "document.querySelector('svg[aria-label^=Rate] g[data-cipher^=AES] rect')";
    assert_eq!(tip(&mut browser), "");
    browser.hover_on(bar);
    let aes = "AES-256 XTS, builtin: 12,409 (12,161–12,657) IOPS, n 10";
    assert_eq!(tip(&mut browser), aes);
    browser.hover_on("document.querySelector('h1')");
    assert_eq!(tip(&mut browser), "");

    browser.eval("document.querySelector('svg[aria-label^=Latency]').focus()");
    browser.press("ArrowDown");
    assert!(
        tip(&mut browser).starts_with("plain: p50 78.2 µs, p90 102 µs, p99 188 µs,"),
        "{}",
        tip(&mut browser)
    );
    browser.press("ArrowDown");
    assert!(tip(&mut browser).starts_with("AES-256 XTS, builtin: p50"));
    browser.press("Escape");
    assert_eq!(tip(&mut browser), "");

    // A screen reader hears the same, and a table with heads at any width.
    for width in [1200, 360] {
        browser.size(width, 900);
        let told = chromium::accessible(&mut browser);
        let has = |role: &str, name: &str| {
            told.iter()
                .any(|(its_role, its_name)| its_role == role && its_name == name)
        };
        assert!(has("image", aes) || has("img", aes), "{width}: {told:?}");
        for (role, name) in [
            ("group", "Rate: rand-4k-read, depth 1"),
            ("columnheader", "against plain"),
            ("button", "against plain"),
            ("rowheader", "Serpent-256 XTS, dm-crypt"),
            ("cell", "slower by 29.0 % (27.6–30.4)"),
            ("checkbox", "dm-crypt"),
            ("link", "Skip to the content"),
            ("heading", "What encryption costs"),
        ] {
            assert!(has(role, name), "{width}: no {role} “{name}” in {told:?}");
        }
    }
    // The first stop of the keyboard leads to the pictures.
    browser.open_file(&_folder.path().join("report.html"));
    browser.press("Tab");
    assert_eq!(browser.text("document.activeElement.className"), "skip");
    let seen = "document.activeElement.getBoundingClientRect().left >= 0";
    assert_eq!(browser.eval(seen), true);
    browser.press("Enter");
    assert_eq!(browser.text("location.hash"), "#figures");
}

/// The folder with the screenshots of the last run.
fn shots() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn it_follows_light_dark_phone_and_paper() {
    let runs = [
        sample::scored(),
        sample::ciphers(),
        sample::beside_a_paper(),
        sample::kdf_run(),
    ];
    let Some((mut browser, _folder)) = opened(&runs) else {
        return;
    };
    let shots = shots();
    let mut taken: Vec<Vec<u8>> = Vec::new();
    for (name, width, scheme) in [
        ("light", 1200, "light"),
        ("dark", 1200, "dark"),
        ("phone", 360, "light"),
        ("phone-dark", 360, "dark"),
    ] {
        browser.size(width, 900);
        browser.dark(scheme == "dark");
        let shot = browser.screenshot(&shots.join(format!("{name}.png")));
        assert!(shot.starts_with(b"\x89PNG"));
        assert!(shot.len() > 100_000, "{name} is blank");
        assert!(!taken.contains(&shot), "{name} looks like another");
        taken.push(shot);
        let paper = browser.text("getComputedStyle(document.body).backgroundColor");
        let bright = match scheme {
            "dark" => "rgb(21, 23, 26)",
            _ => "rgb(253, 253, 252)",
        };
        assert_eq!(paper, bright, "{name}");
    }
    // On paper, controls are hidden in every colour scheme of the screen.
    chromium::show_on_paper(&mut browser, "dark");
    let controls = "[...document.querySelectorAll('#pick form, .skip, #tip')]
        .filter(control => control.checkVisibility()).length";
    assert_eq!(browser.eval(controls), 0);
    let paper = browser.text("getComputedStyle(document.body).backgroundColor");
    assert_eq!(paper, "rgb(255, 255, 255)");
    let pdf = chromium::pdf(&mut browser);
    fs::write(shots.join("paper.pdf"), &pdf).unwrap();
    assert!(pdf.starts_with(b"%PDF"));
    assert!(pdf.len() > 50_000);
}
