//! What Chromium alone can be asked for: the page on paper, and the information that a screen
//! reader would get.

use base64::Engine as _;
use serde_json::{Value, json};
use testkit::browser::Browser;

/// Shows pages as on paper, while the screen has this colour scheme.
pub fn show_on_paper(browser: &mut Browser, scheme: &str) {
    let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
    let media = json!({"media": "print", "features": features});
    browser.call("Emulation.setEmulatedMedia", media);
}

/// The page on A4 paper, as a PDF.
pub fn pdf(browser: &mut Browser) -> Vec<u8> {
    let paper = json!({"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": false});
    let pdf = browser.call("Page.printToPDF", paper);
    base64::engine::general_purpose::STANDARD
        .decode(pdf["data"].as_str().unwrap())
        .unwrap()
}

/// The information that a screen reader gets: roles with names, in the order of the page.
pub fn accessible(browser: &mut Browser) -> Vec<(String, String)> {
    let tree = browser.call("Accessibility.getFullAXTree", json!({}));
    let text = |node: &Value, field: &str| {
        let value = node[field]["value"].as_str();
        value.unwrap_or_default().to_owned()
    };
    let nodes = tree["nodes"].as_array().unwrap().iter();
    nodes
        .filter(|node| node["ignored"] == false)
        .map(|node| (text(node, "role"), text(node, "name")))
        .collect()
}
