//! The lives of drives, which follow the sliders.

use super::{PATIENCE, Ui, assert_no_errors, has, text};
use serde_json::json;
use testkit::browser::Browser;
use testkit::in_both_browsers;

in_both_browsers! {
    the_picture_follows_the_sliders,
}

fn the_picture_follows_the_sliders(browser: &mut Browser) {
    let ui = Ui::start();
    ui.open(browser, "drives");
    assert!(has(browser, "#life svg"));
    for slider in ["daily", "fill", "unpartitioned", "compression", "years"] {
        let field = format!("document.querySelector('#drive [name={slider}]')");
        browser.eval(&format!("{field}.focus()"));
        for (key, limit) in [("Home", "min"), ("End", "max")] {
            let before = text(browser, "#life");
            browser.press(key);
            let value = browser.text(&format!("{field}.value"));
            assert_eq!(value, browser.text(&format!("{field}.{limit}")), "{slider}");
            is_lived(browser, slider, &value, &before);
        }
        // The other sliders need something to change.
        browser.eval("document.querySelector('#drive').reset()");
    }

    let before = text(browser, "#life");
    let other = "document.querySelector('#drive [name=device] option:not(:checked)').value";
    let other = browser.text(other);
    browser.choose("#drive [name=device]", &other);
    is_lived(browser, "device", &other, &before);
    assert_no_errors(browser, "drives");
}

/// Waits until the page has fetched the life with this value, and shows another text than `before`.
#[track_caller]
fn is_lived(browser: &mut Browser, name: &str, value: &str, before: &str) {
    let fetched = format!(
        "performance.getEntriesByType('resource').map(entry => new URL(entry.name))
            .some(url => url.pathname.endsWith('/life')
                && url.searchParams.get({}) === {})",
        json!(name),
        json!(value)
    );
    browser.wait_for(&fetched, PATIENCE);
    let changed = format!(
        "document.querySelector('#life').textContent.trim() !== {}",
        json!(before)
    );
    browser.wait_for(&changed, PATIENCE);
    assert!(has(browser, "#life svg"), "{name}={value}");
}
