//! Reports of stored runs: figures as files, the page as a file, names.

use super::{Ui, assert_no_errors, go, measured, sandbox};
use std::fs;
use testkit::browser::Browser;
use testkit::in_both_browsers;

in_both_browsers! {
    figures_are_saved,
    a_run_is_saved_and_named,
}

/// The first button of the page with this text.
fn button(text: &str) -> String {
    format!(
        "[...document.querySelectorAll('button')]
            .find(button => button.textContent.trim() === '{text}')"
    )
}

fn figures_are_saved(browser: &mut Browser) {
    let sandbox = sandbox();
    let id = measured(&sandbox);
    let ui = Ui::serve(sandbox);
    ui.open(browser, &format!("run?id={id}"));
    // Each figure has both.
    for kind in ["SVG", "PNG"] {
        let count = format!(
            "[...document.querySelectorAll('button')]
                .filter(button => button.textContent.trim() === '{kind}').length
            === document.querySelectorAll('main svg').length"
        );
        assert_eq!(browser.eval(&count), true, "{kind}");
        browser.click_on(&button(kind));
    }
    let (svg, png) = (browser.saved(".svg"), browser.saved(".png"));
    assert_no_errors(browser, "saving figures");

    // Twice as large as the figure at the least: what is printed should be sharp.
    let png = fs::read(png).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    let width = u32::from_be_bytes(png[16..20].try_into().unwrap());
    assert!(width >= 600, "{width} pixels");
    assert!(
        png.len() > 4096,
        "the picture is blank: {} bytes",
        png.len()
    );

    // The file stands by itself: it is well-formed, has its own colours, loads nothing.
    let text = fs::read_to_string(&svg).unwrap();
    for external in ["http://127", "href=", "url(http", "<script", "@import"] {
        assert!(!text.contains(external), "{external}: {text}");
    }
    browser.open_file(&svg);
    assert_eq!(
        browser.text("document.documentElement.namespaceURI"),
        "http://www.w3.org/2000/svg"
    );
    let drawn = browser.eval("document.documentElement.getBoundingClientRect().width");
    assert!(drawn.as_f64().unwrap() >= 300.0, "{drawn}");
    let texts =
        browser.texts("[...document.querySelectorAll('text')].map(text => text.textContent)");
    assert!(texts.iter().any(|text| text.contains("plain")), "{texts:?}");
    // Every shape has a colour that the file itself gives.
    let colours = browser.texts(
        "[...document.querySelectorAll('rect, text')].map(shape => getComputedStyle(shape).fill)",
    );
    assert!(
        colours.iter().any(|colour| *colour != colours[0]),
        "all is {:?}",
        colours[0]
    );
}

fn a_run_is_saved_and_named(browser: &mut Browser) {
    let sandbox = sandbox();
    let id = measured(&sandbox);
    let ui = Ui::serve(sandbox);
    ui.open(browser, &format!("run?id={id}"));
    browser.click("#page");
    let page = fs::read_to_string(browser.saved(".html")).unwrap();
    assert!(page.contains(&id) && page.contains("<svg"));
    assert!(
        !page.contains(&ui.pages.secret),
        "the file is for others, too"
    );

    browser.type_text("#name [name=name]", "before");
    go(browser, "#name button", "run");
    let names = ui.sandbox.ok("baseline list");
    assert!(names.contains("before") && names.contains(&id), "{names}");
    assert_no_errors(browser, "naming");

    // Two runs of the list are compared.
    let second = measured(&ui.sandbox);
    ui.open(browser, &format!("compare?a=before&b={second}"));
    assert!(
        browser
            .text("document.body.innerText")
            .contains("B against A")
    );
}
