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
        browser.press("Home");
        settle(browser);
        let before = text(browser, "#life");
        browser.press("End");
        assert_eq!(
            browser.eval(&format!("{field}.value === {field}.max")),
            true,
            "{slider}"
        );
        let changed = format!(
            "document.querySelector('#life').textContent.trim() !== {}",
            json!(before)
        );
        browser.wait_for(&changed, PATIENCE);
        settle(browser);
        assert!(has(browser, "#life svg"), "{slider}");
        // Back, so that the other sliders have something to change.
        browser.eval("document.querySelector('#drive').reset()");
        browser.press("ArrowLeft");
        settle(browser);
    }

    let before = text(browser, "#life");
    let others = "document.querySelector('#drive [name=device] option:not(:checked)').value";
    let other = browser.text(others);
    browser.choose("#drive [name=device]", &other);
    let changed = format!(
        "document.querySelector('#life').textContent.trim() !== {}",
        json!(before)
    );
    browser.wait_for(&changed, PATIENCE);
    settle(browser);
    assert!(has(browser, "#life svg"));
    assert_no_errors(browser, "drives");
}

/// Waits until nothing is simulated, and the page has been the same for a second.
fn settle(browser: &mut Browser) {
    browser.eval(
        "new Promise(done => {
            const text = () => document.querySelector('main').textContent;
            let [last, same] = [text(), 0];
            const timer = setInterval(() => {
                same = text() === last && !/Simulating …/.test(last) ? same + 1 : 0;
                last = text();
                if (same === 10) { clearInterval(timer); done(); }
            }, 100);
        })",
    );
}
