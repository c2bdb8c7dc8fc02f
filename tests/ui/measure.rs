//! Measurements: begun, paused, watched, stopped, kept.

use super::{MEASURED, PATIENCE, PLAN, Ui, assert_no_errors, at, go, has, ids, seen, text};
use std::collections::BTreeSet;
use testkit::browser::Browser;
use testkit::in_both_browsers;

in_both_browsers! {
    a_report_is_three_clicks_away,
    a_stopped_measurement_keeps_what_it_has,
    windows_and_reloads_show_the_same,
    the_keyboard_is_enough,
    a_refused_place_is_told,
    two_do_not_measure_at_once,
}

/// The places of the button Stop in three seconds, each once.
const TOPS: &str = "new Promise(done => {
    const [button, tops] = [document.querySelector('#stop button'), new Set()];
    const timer = setInterval(
        () => tops.add(Math.round(button.getBoundingClientRect().top + scrollY)), 50);
    setTimeout(() => { clearInterval(timer); done([...tops]); }, 3000);
})";

/// The condition that the job's page shows one of these states.
pub fn is(states: &[&str]) -> String {
    let states = states.join("|");
    format!(
        "/^({states})\\b/.test(document.querySelector('#state')?.textContent.trim()) && {}",
        at("watch")
    )
}

/// Chooses [`PLAN`] in the form, as a script would; it stands in for the default question, which
/// takes a minute.
fn choose_plan(browser: &mut Browser) {
    browser.eval(
        "(radio => { radio.checked = true;
            radio.dispatchEvent(new Event('change', {bubbles: true})); })
         (document.querySelector('[name=what][value=plan]'))",
    );
    browser.choose("[name=plan]", PLAN);
}

/// Begins [`PLAN`] in the server's directory, and waits until something was measured.
pub fn begin(browser: &mut Browser, ui: &Ui) {
    ui.open(browser, "");
    choose_plan(browser);
    go(browser, "#start button", "preview");
    go(browser, "#begin button", "watch");
    browser.wait_for(&seen("#answer svg"), MEASURED);
}

/// The names of everything in the server's directory that is not kept for the user.
fn names(ui: &Ui) -> BTreeSet<String> {
    let entries = std::fs::read_dir(ui.sandbox.directory()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| !["data", "state", "store"].contains(&name.as_str()))
        .collect()
}

fn a_report_is_three_clicks_away(browser: &mut Browser) {
    let ui = Ui::start();
    let before = names(&ui);
    ui.open(browser, "");
    // The defaults: the first question, in the directory that the server was started in.
    let checked = |name: &str| format!("document.querySelector('[name={name}]:checked').value");
    assert_eq!(browser.text(&checked("what")), "cost");
    let place = ui.sandbox.path(browser.text(&checked("at")));
    assert_eq!(
        place.canonicalize().unwrap(),
        ui.sandbox.directory().canonicalize().unwrap()
    );
    choose_plan(browser);

    let mut clicks = 0;
    let mut click = |browser: &mut Browser, selector: &str, page: &str| {
        go(browser, selector, page);
        clicks += 1;
    };
    click(browser, "#start button", "preview");
    let will = text(browser, "#will");
    assert!(
        will.contains("rand-4k-write") && will.contains("256"),
        "{will}"
    );
    let command = text(browser, "#command");
    assert!(
        command.starts_with(&format!("cryptmark run {PLAN}")),
        "{command}"
    );
    // Looking at it has begun nothing.
    assert_eq!(ids(&ui.sandbox), Vec::<String>::new());

    click(browser, "#begin button", "watch");
    browser.wait_for(&is(&["Measuring"]), PATIENCE);
    assert_eq!(
        browser.text("document.querySelector('#state').getAttribute('role')"),
        "status"
    );
    browser.wait_for("document.querySelector('#progress').position > 0", MEASURED);
    browser.wait_for(
        "document.querySelector('#left').textContent.trim()",
        MEASURED,
    );
    // The answer grows while the measurement goes on.
    browser.wait_for(&seen("#answer svg"), MEASURED);
    assert_eq!(
        browser.eval(&is(&["Measuring"])),
        true,
        "a picture before the end"
    );
    browser.wait_for(&is(&["Done"]), MEASURED);
    assert!(!has(browser, "#pause") && !has(browser, "#stop"));

    click(browser, "#report", "run");
    assert!(clicks <= 3, "{clicks} clicks");
    assert!(has(browser, "svg"), "the report has pictures");
    assert_no_errors(browser, "the whole way");

    let [id] = &ids(&ui.sandbox)[..] else {
        panic!("one run is stored");
    };
    assert!(browser.text("location.search").contains(id));
    assert_eq!(
        names(&ui),
        before,
        "what was written for the measurement is gone"
    );
}

fn a_stopped_measurement_keeps_what_it_has(browser: &mut Browser) {
    let ui = Ui::start();
    ui.open(browser, "");
    // The question that most people have, as it is offered.
    go(browser, "#start button", "preview");
    go(browser, "#begin button", "watch");
    browser.wait_for(&seen("#answer svg"), MEASURED);
    assert!(
        !has(browser, "#report"),
        "there is no report before the end"
    );
    // A button that moves while the page changes is hard to hit.
    let tops = browser.eval(TOPS);
    assert_eq!(tops.as_array().map(Vec::len), Some(1), "{tops}");
    browser.click("#stop button");
    browser.wait_for(&is(&["Stopped"]), MEASURED);
    assert!(has(browser, "#answer svg"), "the answer so far stays");

    go(browser, "#report", "run");
    assert!(has(browser, "svg"));
    assert_no_errors(browser, "the report");
    assert_eq!(ids(&ui.sandbox).len(), 1);
    // It is in the list, too.
    ui.open(browser, "runs");
    go(browser, "main a[href^='run?id=']", "run");
}

fn windows_and_reloads_show_the_same(browser: &mut Browser) {
    let ui = Ui::start();
    begin(browser, &ui);
    browser.click("#pause button");
    browser.wait_for(&is(&["Paused"]), PATIENCE);
    browser.wait_for(
        "/Continue/.test(document.querySelector('#pause button').textContent)",
        PATIENCE,
    );
    let progress = "document.querySelector('#progress').value";
    let before = browser.eval(progress);
    browser.eval("new Promise(done => setTimeout(done, 2000))");
    assert_eq!(
        browser.eval(progress),
        before,
        "nothing is done while it is paused"
    );

    // The same in a reloaded window and in another one.
    let address = browser.text("location.href");
    browser.open(&address);
    browser.wait_for(&is(&["Paused"]), PATIENCE);
    assert!(has(browser, "#answer svg"));
    assert_eq!(browser.eval(progress), before);
    let second = browser.new_window();
    browser.open(&address);
    browser.wait_for(&is(&["Paused"]), PATIENCE);
    assert!(has(browser, "#answer svg"));

    // What one window does, the other shows without a reload.
    browser.click("#pause button");
    browser.wait_for(&is(&["Measuring"]), PATIENCE);
    browser.to_window(0);
    browser.wait_for(&is(&["Measuring", "Done"]), PATIENCE);
    browser.open(&address);
    browser.wait_for(&is(&["Measuring", "Done"]), PATIENCE);
    assert!(has(browser, "#answer svg"));

    let mut ends = Vec::new();
    for window in [0, second] {
        browser.to_window(window);
        browser.wait_for(&is(&["Done"]), MEASURED);
        browser.wait_for(&seen("#report"), PATIENCE);
        ends.push((
            text(browser, "#answer"),
            browser.text("document.querySelector('#report').getAttribute('href')"),
        ));
    }
    assert_eq!(ends[0], ends[1]);
    assert_no_errors(browser, "two windows");
}

/// Goes on by Tab until the focus is on an element, and checks that each stop is seen.
#[track_caller]
fn tab_to(browser: &mut Browser, selector: &str) {
    for _ in 0..100 {
        browser.press("Tab");
        let stop = browser.eval(&format!(
            "(stop => {{ const style = getComputedStyle(stop); return {{
                reached: stop.matches({selector:?}),
                marked: style.outlineStyle !== 'none' || style.boxShadow !== 'none',
                what: stop.outerHTML.slice(0, 200) }}; }})(document.activeElement)"
        ));
        let at_the_end = stop["what"]
            .as_str()
            .is_some_and(|what| what.starts_with("<body"));
        assert!(
            at_the_end || stop["marked"] == true,
            "the focus is not seen: {stop}"
        );
        if stop["reached"] == true {
            return;
        }
    }
    panic!("{}: Tab does not reach {selector}", browser.name());
}

fn the_keyboard_is_enough(browser: &mut Browser) {
    let ui = Ui::start();
    ui.open(browser, "");
    tab_to(browser, "#start [name=what]");
    browser.press("Space");
    tab_to(browser, "#start button");
    browser.press("Enter");
    browser.wait_for(&seen("#begin button"), PATIENCE);
    tab_to(browser, "#begin button");
    browser.press("Space");
    browser.wait_for(&is(&["Waiting", "Measuring"]), PATIENCE);
    browser.wait_for(&is(&["Measuring"]), MEASURED);
    // The events must not take the focus away.
    tab_to(browser, "#stop button");
    browser.eval("new Promise(done => setTimeout(done, 2000))");
    assert_eq!(
        browser.eval("document.activeElement.matches('#stop button')"),
        true
    );
    browser.press("Enter");
    browser.wait_for(&is(&["Stopped"]), MEASURED);
    assert_no_errors(browser, "by keyboard");
}

fn a_refused_place_is_told(browser: &mut Browser) {
    let ui = Ui::start();
    ui.sandbox.write("holds", vec![7; 1 << 20]);
    ui.open(browser, "");
    browser.type_text("[name=other]", &super::path(&ui, "nowhere/at/all"));
    go(browser, "#start button", "preview");
    assert!(!has(browser, "#begin"));
    assert!(text(browser, "h1").contains("does not exist"));
    browser.errors();

    // A file that holds something is overwritten only after its name was typed.
    let path = super::path(&ui, "holds");
    ui.open(browser, "");
    choose_plan(browser);
    browser.type_text("[name=other]", &path);
    go(browser, "#start button", "preview");
    if has(browser, "#begin") {
        browser.type_text("[name=confirm]", "something else");
        go(browser, "#begin button", "start");
        assert!(text(browser, "h1").contains("overwritten"));
    } else {
        assert!(has(browser, "p.refused"));
    }
    assert!(ui.sandbox.read("holds") == vec![7; 1 << 20]);
    assert_eq!(ids(&ui.sandbox), Vec::<String>::new());
}

fn two_do_not_measure_at_once(browser: &mut Browser) {
    let ui = Ui::start();
    begin(browser, &ui);
    let first = browser.text("location.href");
    ui.open(browser, "");
    choose_plan(browser);
    go(browser, "#start button", "preview");
    assert!(!has(browser, "#begin"));
    assert!(has(browser, "p.refused"));
    browser.open(&first);
    browser.click("#stop button");
    browser.wait_for(&is(&["Stopped"]), MEASURED);
    // Then the next one may begin.
    ui.open(browser, "");
    choose_plan(browser);
    go(browser, "#start button", "preview");
    assert!(has(browser, "#begin button"));
}
