//! `cryptmark ui`, as people use it in Chromium and Firefox, and as others attack it.

mod crowds;
mod drives;
mod ends;
mod figures;
mod hostile;
mod looks;
mod measure;
mod secrets;
mod volumes;

use std::path::PathBuf;
use std::time::Duration;
use testkit::browser::Browser;
use testkit::{CHEAP, Pages, Sandbox};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// Longer than a page takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longer than the measurements take here.
const MEASURED: Duration = Duration::from_secs(300);

/// A shipped plan that measures on a disk and takes seconds.
const PLAN: &str = "advice";

/// A plan that is done in a second, for runs that are there already.
const TINY: &str = r#"
title = "a tiny plan"
size = "8 MiB"
repetitions = 3
ciphers = ["aes-xts-plain64"]

[[workload]]
name = "rand-4k-read"
pattern = "random"
op = "read"
block_size = "4 KiB"
seconds = 0.02
"#;

/// The passphrase of the volumes, which is easy to find wherever it should not be.
const PASSPHRASE: &str = "a passphrase that is found: Zürich 7391";

/// A server, with a directory, a store and a home of its own.
struct Ui {
    pages: Pages,
    // Removed after the server has ended.
    sandbox: Sandbox,
}

impl Ui {
    fn start() -> Self {
        Self::serve(sandbox())
    }

    fn serve(sandbox: Sandbox) -> Self {
        let pages = Pages::start(sandbox.cryptmark("ui --port 0"));
        Self { pages, sandbox }
    }

    /// Opens a page in a browser, which must find no error there.
    #[track_caller]
    fn open(&self, browser: &mut Browser, page: &str) {
        browser.open(&self.pages.url(page));
        assert_no_errors(browser, page);
    }
}

/// An empty directory on a disk, where the server will be started.
fn sandbox() -> Sandbox {
    Sandbox::within(env!("CARGO_TARGET_TMPDIR"), PROGRAM)
        .with_directory("home")
        .with_path("HOME", "home")
        .with_path("CRYPTMARK_STORE", "store")
        .with_file("tiny.toml", TINY)
        .with_file("line", format!("{PASSPHRASE}\n"))
}

/// Measures and stores a run; its id.
fn measured(sandbox: &Sandbox) -> String {
    sandbox.ok("run tiny.toml --no-progress");
    ids(sandbox).pop().unwrap()
}

/// The ids of the stored runs, the oldest first.
fn ids(sandbox: &Sandbox) -> Vec<String> {
    let listed = sandbox.ok("list");
    let ids = listed.lines().filter_map(|line| line.split(' ').next());
    // They begin with the date. If there are no runs, it says so.
    let ids = ids.filter(|id| id.starts_with(|first: char| first.is_ascii_digit()));
    ids.map(str::to_owned).collect()
}

/// Makes a volume of a few MiB, whose header shows the passphrase's key slot at once.
fn create(sandbox: &Sandbox, image: &str) {
    sandbox.volume(&format!(
        "create {image} --size 20MiB --passphrase-file line {CHEAP}"
    ));
}

#[track_caller]
fn assert_no_errors(browser: &mut Browser, page: &str) {
    assert_eq!(browser.errors(), Vec::<String>::new(), "{page}");
}

/// The text of an element.
#[track_caller]
fn text(browser: &mut Browser, selector: &str) -> String {
    browser.text(&format!(
        "document.querySelector({selector:?}).textContent.trim()"
    ))
}

/// Whether there is an element that is seen.
#[track_caller]
fn has(browser: &mut Browser, selector: &str) -> bool {
    browser.eval(&seen(selector)) == true
}

/// The condition that an element is there and seen.
fn seen(selector: &str) -> String {
    format!("Boolean(document.querySelector({selector:?})?.checkVisibility())")
}

/// The condition that the page has loaded whose address ends in `page`, before a `?`.
fn at(page: &str) -> String {
    format!("document.readyState === 'complete' && location.pathname.endsWith('/{page}')")
}

/// Clicks, and waits until the page that this leads to has loaded.
#[track_caller]
fn go(browser: &mut Browser, selector: &str, page: &str) {
    browser.eval("window.wasLeft = true");
    browser.click(selector);
    browser.wait_for(&format!("!window.wasLeft && {}", at(page)), PATIENCE);
}

/// The path of a file of the sandbox, for a field of a form.
fn path(ui: &Ui, name: &str) -> String {
    let path: PathBuf = ui.sandbox.path(name);
    let path = path.to_str().unwrap();
    path.trim_end_matches('/').to_owned()
}

/// The same for the end of an address.
fn encoded(ui: &Ui, name: &str) -> String {
    path(ui, name).replace('/', "%2F")
}
