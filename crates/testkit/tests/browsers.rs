//! The interface to browsers, with the same small pages in Chromium and in Firefox.
#![cfg(target_os = "linux")]

use std::fs;
use std::time::Duration;
use tempfile::TempDir;
use testkit::browser::{Browser, axe};
use testkit::in_both_browsers;

const PATIENCE: Duration = Duration::from_secs(60);

in_both_browsers! {
    a_page_is_used_by_mouse_and_keyboard,
    sizes_and_schemes_are_set,
    errors_are_found,
    files_are_saved,
    windows_are_apart,
    axe_finds_what_is_wrong,
}

const PAGE: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>A page</title>
    <style>:root { color-scheme: light dark } body { margin: 0 } div { height: 2000px }</style>
    <main><h1>A page</h1><div></div>
    <form><label>Name <input name=name value=before></label>
    <label><input type=checkbox name=box>Box</label>
    <label>One <select name=one><option value=a>A</option><option value=b>B</option></select></label>
    <label>Many <input type=range name=many min=0 max=10 value=5></label>
    <button>Go</button></form><p id=said></p></main>
    <script>
        const form = document.forms[0], trusted = [];
        for (const kind of ['click', 'keydown', 'submit']) {
            form.addEventListener(kind, event => trusted.push(event.isTrusted));
        }
        form.onsubmit = event => {
            event.preventDefault();
            said.textContent = new URLSearchParams(new FormData(form)) + ' ' + trusted.every(Boolean);
        };
        onchange = event => document.title = event.target.name + ' changed';
    </script>";

/// Opens a file with this text.
fn open(browser: &mut Browser, text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    fs::write(&page, text).unwrap();
    browser.open_file(&page);
    folder
}

fn a_page_is_used_by_mouse_and_keyboard(browser: &mut Browser) {
    let _folder = open(browser, PAGE);
    assert_eq!(browser.text("document.title"), "A page");
    let promise = "new Promise(done => setTimeout(() => done(['later']), 50))";
    assert_eq!(browser.texts(promise), ["later"]);

    browser.type_text("[name=name]", "Zoë 1/2");
    browser.click("[name=box]");
    assert_eq!(browser.text("document.title"), "box changed");
    browser.choose("[name=one]", "b");
    assert_eq!(browser.text("document.title"), "one changed");
    browser.press("Tab");
    browser.press("ArrowRight");
    browser.press("Tab");
    assert_eq!(browser.text("document.activeElement.textContent"), "Go");
    browser.press("Enter");
    let said = "name=Zo%C3%AB+1%2F2&box=on&one=b&many=6 true";
    browser.wait_for("said.textContent", PATIENCE);
    assert_eq!(browser.text("said.textContent"), said);

    // From the address: the first stops of the keyboard.
    let _folder = open(browser, PAGE);
    browser.press("Tab");
    assert_eq!(browser.text("document.activeElement.name"), "name");
    browser.press("Tab");
    browser.press("Space");
    assert_eq!(browser.eval("document.forms[0].elements.box.checked"), true);
    browser.click("button");
    browser.wait_for("said.textContent.includes('box=on')", PATIENCE);
}

fn sizes_and_schemes_are_set(browser: &mut Browser) {
    let folder = open(browser, PAGE);
    let mut pictures: Vec<Vec<u8>> = Vec::new();
    for width in [390, 1200] {
        for dark in [false, true] {
            browser.size(width, 800);
            browser.dark(dark);
            let fits = "document.documentElement.scrollWidth <= innerWidth";
            assert_eq!(browser.eval(fits), true, "{width}");
            let picture = browser.screenshot(&folder.path().join("page.png"));
            assert!(picture.starts_with(b"\x89PNG"));
            // The header says how large the picture is: at least the page, which is higher than
            // the window.
            let [wide, high] =
                [16, 20].map(|at| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap()));
            assert!(wide.abs_diff(width) < 20 && high > 2000, "{wide} x {high}");
            assert!(!pictures.contains(&picture));
            pictures.push(picture);
        }
    }
    // They stay with the window.
    browser.open("about:blank");
    assert_eq!(browser.eval("innerWidth"), 1200);
}

fn errors_are_found(browser: &mut Browser) {
    let _folder = open(browser, PAGE);
    assert_eq!(browser.errors(), Vec::<String>::new());
    for (page, said) in [
        (
            "<script>setTimeout(() => { throw Error('thrown') })</script>",
            "thrown",
        ),
        (
            "<script>Promise.reject(Error('rejected'))</script>",
            "rejected",
        ),
        (
            "<meta http-equiv=Content-Security-Policy content=\"script-src 'none'\"><script>1</script>",
            "script-src 'none'",
        ),
    ] {
        let _folder = open(browser, &format!("<!doctype html>{page}"));
        browser.eval("new Promise(done => setTimeout(done, 100))");
        let errors = browser.errors().concat();
        assert!(errors.contains(said), "{said}: {errors}");
        assert_eq!(browser.errors(), Vec::<String>::new());
    }
}

fn files_are_saved(browser: &mut Browser) {
    let _folder = open(
        browser,
        "<!doctype html><button>Save</button><script>
            document.querySelector('button').onclick = () => {
                const link = document.createElement('a');
                link.href = URL.createObjectURL(new Blob(['<svg/>'], {type: 'image/svg+xml'}));
                link.download = 'figure.svg';
                link.click();
            };
        </script>",
    );
    browser.click("button");
    assert_eq!(fs::read(browser.saved("figure.svg")).unwrap(), b"<svg/>");
}

fn windows_are_apart(browser: &mut Browser) {
    let _folder = open(browser, PAGE);
    let second = browser.new_window();
    browser.open("about:blank");
    assert_eq!(browser.eval("location.href"), "about:blank");
    browser.to_window(0);
    assert_eq!(browser.text("document.title"), "A page");
    browser.press("Tab");
    assert_eq!(browser.text("document.activeElement.name"), "name");
    browser.to_window(second);
    assert_eq!(browser.eval("location.href"), "about:blank");
}

fn axe_finds_what_is_wrong(browser: &mut Browser) {
    // The policy of the program's pages keeps out every script but their own.
    let policy = "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\">";
    let good = "<!doctype html><html lang=en><title>A page</title><main><h1>A page</h1>
        <label>Name <input></label></main>";
    for (page, wrong) in [
        (good, ""),
        (&good.replace("label>", "div>"), "label (critical)"),
    ] {
        let _folder = open(
            browser,
            &page.replacen("<title>", &format!("{policy}<title>"), 1),
        );
        let Some(violations) = axe(browser) else {
            return;
        };
        let found = violations.concat();
        assert_eq!(violations.len(), usize::from(!wrong.is_empty()), "{found}");
        assert!(found.starts_with(wrong), "{found}");
    }
}
