//! axe-core, which finds what keeps people with disabilities from using a page.

use super::Browser;
use std::fs;
use std::path::Path;

/// Where `cargo xtask test` installs it, below the root of the workspace.
const SCRIPT: &str = "target/tools/axe-core/node_modules/axe-core/axe.min.js";

/// Each violation with its help, its elements and what is wrong with them.
const RUN: &str = "axe.run(document, {resultTypes: ['violations']}).then(found =>
    found.violations.map(rule => [rule.id + ' (' + rule.impact + '): ' + rule.help]
        .concat(rule.nodes.map(node => node.target.join(' ') + ': ' + node.failureSummary))
        .join('\\n')))";

/// The violations that axe-core finds in the page that `browser` shows. Prints a note and returns
/// `None` if it is not installed.
#[track_caller]
pub fn axe(browser: &mut Browser) -> Option<Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let Ok(script) = fs::read_to_string(root.unwrap().join(SCRIPT)) else {
        println!("skipped: axe-core is not installed (cargo xtask install tests)");
        return None;
    };
    if browser.eval("typeof window.axe") == "undefined" {
        browser.eval(&format!("(() => {{ {script}\n; }})()"));
    }
    Some(browser.texts(RUN))
}
