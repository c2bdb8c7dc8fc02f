//! Every page: for eyes, for screen readers, on a phone and on a desk, in light and dark.

use super::measure::{begin, is};
use super::{MEASURED, PATIENCE, Ui, assert_no_errors, create, encoded, measured, sandbox};
use std::fs;
use std::path::{Path, PathBuf};
use testkit::browser::{Browser, axe};
use testkit::in_both_browsers;

in_both_browsers! {
    pages_fit_a_phone_and_a_desk_and_axe_finds_nothing,
}

/// A server with runs and a volume.
fn furnished() -> (Ui, Vec<(&'static str, String)>) {
    let sandbox = sandbox();
    let (a, b) = (measured(&sandbox), measured(&sandbox));
    create(&sandbox, "volume.img");
    sandbox.write("holds", vec![7; 1 << 20]);
    let ui = Ui::serve(sandbox);
    let at = |name: &str| encoded(&ui, name);
    let pages = vec![
        ("start", String::new()),
        ("preview", format!("preview?at={}&what=cost", at(""))),
        (
            "preview-overwrites",
            format!("preview?at={}&what=cost", at("holds")),
        ),
        (
            "preview-refused",
            format!("preview?at={}&what=cost", at("nowhere")),
        ),
        ("runs", "runs".to_owned()),
        ("runs-found", "runs?q=tiny".to_owned()),
        ("run", format!("run?id={b}")),
        ("compare", format!("compare?a={a}&b={b}")),
        ("volumes", "volumes".to_owned()),
        ("files", format!("files?at={}", at(""))),
        ("volume", format!("volume?path={}", at("volume.img"))),
        ("volume-refused", format!("volume?path={}", at("tiny.toml"))),
        ("drives", "drives".to_owned()),
        ("not-found", "nothing/like/this".to_owned()),
    ];
    (ui, pages)
}

/// Looks at every page, and at a job's page while it measures, while it is paused and after it has
/// ended.
fn each_page(browser: &mut Browser, mut look: impl FnMut(&mut Browser, &str)) {
    let (ui, pages) = furnished();
    for (name, page) in &pages {
        browser.open(&ui.pages.url(page));
        structure(browser, name);
        look(browser, name);
        // To the console, an answer that is not 200 is an error. There is no other.
        let mut errors = browser.errors();
        errors.retain(|error| !error.contains("Failed to load resource"));
        assert_eq!(errors, Vec::<String>::new(), "{name}");
    }
    begin(browser, &ui);
    let watched = browser.text("location.href");
    browser.click("#pause button");
    browser.wait_for(&is(&["Paused"]), PATIENCE);
    structure(browser, "watch");
    look(browser, "watch-paused");
    browser.click("#stop button");
    browser.wait_for(&is(&["Stopped"]), MEASURED);
    browser.open(&watched);
    look(browser, "watch-stopped");
    assert_no_errors(browser, "watch");
}

/// What every page has.
#[track_caller]
fn structure(browser: &mut Browser, name: &str) {
    for (selector, count) in [("h1", 1), ("main", 1), ("nav", 1)] {
        let found = browser.eval(&format!("document.querySelectorAll('{selector}').length"));
        assert_eq!(found, count, "{name}: {selector}");
    }
    let links = browser
        .texts("[...document.querySelectorAll('nav a')].map(link => link.textContent.trim())");
    for link in ["Measure", "Runs", "Volumes", "Drives"] {
        assert!(links.iter().any(|known| known == link), "{name}: {links:?}");
    }
    assert_ne!(browser.text("document.title"), "", "{name}");
}

/// The folder with the screenshots of the last run.
fn shots() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = target.join("ui");
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn pages_fit_a_phone_and_a_desk_and_axe_finds_nothing(browser: &mut Browser) {
    let shots = shots();
    let mut found = Vec::new();
    each_page(browser, |browser, name| {
        for (width, dark) in [(390, false), (390, true), (1200, true), (1200, false)] {
            browser.size(width, 844);
            browser.dark(dark);
            let scheme = if dark { "dark" } else { "light" };
            let place = format!("{}-{name}-{width}-{scheme}", browser.name());
            browser.screenshot(&shots.join(format!("{place}.png")));
            if browser.eval("document.documentElement.scrollWidth <= innerWidth") != true {
                found.push(format!(
                    "{place} is too wide: {}",
                    browser.texts(WIDE).join(", ")
                ));
            }
            // Another width moves things, another scheme colours them.
            if (width, dark) != (390, true) {
                let violations = axe(browser).into_iter().flatten();
                found.extend(violations.map(|violation| format!("{place}: {violation}")));
            }
        }
    });
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// The innermost elements that reach out of the window, or whose text does.
const WIDE: &str = "[...document.querySelectorAll('body *')]
    .filter(element => element.getBoundingClientRect().right > innerWidth
        || element.scrollWidth > innerWidth && getComputedStyle(element).overflowX === 'visible')
    .reverse().slice(0, 3).map(element => element.outerHTML.slice(0, 120))";
