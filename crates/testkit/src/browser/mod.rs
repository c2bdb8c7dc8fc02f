//! Chromium and Firefox without a screen: real clicks and real keys, by one interface for both.

mod axe;
mod chromium;
mod firefox;
mod keys;

pub use axe::axe;

use base64::Engine as _;
use chromium::Chromium;
use firefox::Firefox;
use keys::Key;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Makes two tests of each scenario, a function that takes `&mut Browser`: `chromium::scenario`
/// and `firefox::scenario`.
#[macro_export]
macro_rules! in_both_browsers {
    ($($scenario:ident),* $(,)?) => {
        mod chromium {
            $(#[test]
            fn $scenario() {
                let mut browser = $crate::browser::Browser::chromium();
                browser.iter_mut().for_each(super::$scenario);
            })*
        }
        mod firefox {
            $(#[test]
            fn $scenario() {
                let mut browser = $crate::browser::Browser::firefox();
                browser.iter_mut().for_each(super::$scenario);
            })*
        }
    };
}

/// How long a browser may say nothing before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the mouse does.
#[derive(Clone, Copy)]
enum Mouse {
    Move,
    Down,
    Up,
}

/// What differs between browsers.
trait Engine {
    /// Calls a method of the browser's own protocol.
    fn call(&mut self, method: &str, parameters: Value) -> Value;
    /// Opens a page and returns when it has loaded.
    fn open(&mut self, address: &str);
    /// The value of an expression, or the exception.
    fn eval(&mut self, expression: &str) -> Result<Value, String>;
    /// Moves the mouse to a place of the page that is seen, or uses its left button there.
    fn mouse(&mut self, what: Mouse, x: f64, y: f64);
    /// Presses and releases a key.
    fn key(&mut self, key: &Key);
    /// Sets the size of the page that is seen, in CSS pixels.
    fn size(&mut self, width: u32, height: u32);
    /// Chooses the dark or the light colour scheme.
    fn dark(&mut self, dark: bool);
    /// The whole page as a PNG.
    fn screenshot(&mut self) -> Vec<u8>;
    /// The errors of pages since the last call.
    fn errors(&mut self) -> Vec<String>;
    /// Opens a window and goes there.
    fn new_window(&mut self);
    /// Goes to a window, by its number in the order of opening.
    fn to_window(&mut self, number: usize);
}

/// A browser with one window or several, of which one is used.
pub struct Browser {
    name: &'static str,
    engine: Box<dyn Engine>,
    windows: usize,
    // Removed after the browser has ended.
    folder: TempDir,
}

impl Browser {
    /// Starts Chromium; prints a note if it is not installed.
    pub fn chromium() -> Option<Self> {
        Self::start("chromium", "chromium", Chromium::start)
    }

    /// Starts Firefox; prints a note if it is not installed.
    pub fn firefox() -> Option<Self> {
        Self::start("firefox", "firefox-esr", Firefox::start)
    }

    fn start<E: Engine + 'static>(
        name: &'static str,
        package: &str,
        start: fn(&Path, &Path) -> Option<E>,
    ) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let [profile, downloads] = ["profile", "downloads"].map(|name| folder.path().join(name));
        fs::create_dir(&profile).unwrap();
        fs::create_dir(&downloads).unwrap();
        let Some(engine) = start(&profile, &downloads) else {
            println!("skipped: {name} is not installed (Debian: {package})");
            return None;
        };
        Some(Self {
            name,
            engine: Box::new(engine),
            windows: 1,
            folder,
        })
    }

    /// `chromium` or `firefox`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Calls a method of the browser's own protocol, for what the two browsers do not share.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.engine.call(method, parameters)
    }

    /// Opens a page and returns when it has loaded.
    #[track_caller]
    pub fn open(&mut self, address: &str) {
        self.engine.open(address);
    }

    /// Opens a file.
    #[track_caller]
    pub fn open_file(&mut self, path: &Path) {
        self.open(&format!("file://{}", path.display()));
    }

    /// The value of an expression. A promise is awaited. What scripts of the page declare by
    /// `const` or `let` is not seen in Firefox.
    #[track_caller]
    pub fn eval(&mut self, expression: &str) -> Value {
        match self.engine.eval(expression) {
            Ok(value) => value,
            Err(error) => panic!("{}: {expression}: {error}", self.name),
        }
    }

    /// The value of an expression that is a text.
    #[track_caller]
    pub fn text(&mut self, expression: &str) -> String {
        match self.eval(expression) {
            Value::String(text) => text,
            other => panic!("{}: {expression}: {other}", self.name),
        }
    }

    /// The value of an expression that is a list of texts.
    #[track_caller]
    pub fn texts(&mut self, expression: &str) -> Vec<String> {
        serde_json::from_value(self.eval(expression)).unwrap()
    }

    /// Waits until an expression is true, and panics after `patience`. It may fail meanwhile, as
    /// it does while a page is left.
    #[track_caller]
    pub fn wait_for(&mut self, condition: &str, patience: Duration) {
        let begun = Instant::now();
        let condition = format!("Boolean({condition})");
        loop {
            let value = self.engine.eval(&condition);
            if value == Ok(Value::Bool(true)) {
                return;
            }
            if begun.elapsed() > patience {
                let page = self
                    .engine
                    .eval("location.href + '\\n' + document.body?.innerText");
                panic!("{}: {condition} is {value:?} in {page:?}", self.name);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Moves the mouse over the middle of the element that an expression finds.
    #[track_caller]
    pub fn hover_on(&mut self, element: &str) -> (f64, f64) {
        let place = self.eval(&format!(
            "(() => {{ const element = {element};
                element.scrollIntoView({{block: 'center', behavior: 'instant'}});
                const box = element.getBoundingClientRect();
                return [box.left + box.width / 2, box.top + box.height / 2]; }})()"
        ));
        let [x, y] = [0, 1].map(|at| place[at].as_f64().unwrap());
        // Scrolling tells the page that the mouse is elsewhere, a frame later.
        self.eval("new Promise(done => requestAnimationFrame(() => setTimeout(done)))");
        self.engine.mouse(Mouse::Move, x, y);
        (x, y)
    }

    /// Clicks the middle of the element that an expression finds.
    #[track_caller]
    pub fn click_on(&mut self, element: &str) {
        let (x, y) = self.hover_on(element);
        self.engine.mouse(Mouse::Down, x, y);
        self.engine.mouse(Mouse::Up, x, y);
    }

    /// Clicks the middle of the first element that matches a selector. Panics if something else
    /// covers it, except a label of its own.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        let element = element(selector);
        let (x, y) = self.hover_on(&element);
        let covered = self.eval(&format!(
            "(() => {{ const element = {element}, hit = document.elementFromPoint({x}, {y});
                return element.contains(hit) || hit?.closest('label')?.control === element
                    ? null : hit?.outerHTML ?? 'nothing'; }})()"
        ));
        assert!(
            covered.is_null(),
            "{}: {selector} is behind {covered}",
            self.name
        );
        self.engine.mouse(Mouse::Down, x, y);
        self.engine.mouse(Mouse::Up, x, y);
    }

    /// Clicks into a field and types a text in place of the field's own.
    #[track_caller]
    pub fn type_text(&mut self, selector: &str, text: &str) {
        self.click(selector);
        self.eval(&format!("{}.select()", element(selector)));
        for character in text.chars() {
            self.engine.key(&Key::of(character));
        }
    }

    /// Chooses the option of a `select` that has this value. The events are the page's own: a
    /// browser without a screen opens no list.
    #[track_caller]
    pub fn choose(&mut self, selector: &str, value: &str) {
        let chosen = self.text(&format!(
            "(select => {{ select.value = {}; select.focus();
                for (const kind of ['input', 'change']) {{
                    select.dispatchEvent(new Event(kind, {{bubbles: true}}));
                }}
                return select.value; }})({})",
            json!(value),
            element(selector)
        ));
        assert_eq!(chosen, value, "{}: {selector}", self.name);
    }

    /// Presses and releases a key: `Tab`, `Enter`, `Space`, `Escape`, `Home`, `End`, `ArrowDown`, …
    #[track_caller]
    pub fn press(&mut self, key: &str) {
        self.engine.key(&Key::named(key));
    }

    /// Sets the size of the page that is seen, in CSS pixels.
    #[track_caller]
    pub fn size(&mut self, width: u32, height: u32) {
        self.engine.size(width, height);
        let set = format!("innerWidth === {width} && innerHeight === {height}");
        self.wait_for(&set, PATIENCE);
    }

    /// Chooses the dark or the light colour scheme.
    #[track_caller]
    pub fn dark(&mut self, dark: bool) {
        self.engine.dark(dark);
        let set = format!("matchMedia('(prefers-color-scheme: dark)').matches === {dark}");
        self.wait_for(&set, PATIENCE);
    }

    /// Writes the whole page to a file as a PNG, and returns its bytes.
    #[track_caller]
    pub fn screenshot(&mut self, path: &Path) -> Vec<u8> {
        let picture = self.engine.screenshot();
        fs::write(path, &picture).unwrap();
        picture
    }

    /// The errors of pages since the last call: exceptions that no script caught, and what the
    /// policy of a page kept out. In Chromium also failed requests and `console.error`.
    #[track_caller]
    pub fn errors(&mut self) -> Vec<String> {
        self.engine.errors()
    }

    /// Opens a window, goes there and returns its number; the first window is 0.
    #[track_caller]
    pub fn new_window(&mut self) -> usize {
        self.engine.new_window();
        self.windows += 1;
        self.windows - 1
    }

    /// Goes to a window.
    #[track_caller]
    pub fn to_window(&mut self, number: usize) {
        self.engine.to_window(number);
    }

    /// Waits until a file that pages saved ends like this, and returns it.
    #[track_caller]
    pub fn saved(&self, ending: &str) -> PathBuf {
        let folder = self.folder.path().join("downloads");
        let mut found = None;
        crate::wait_until(&format!("{}: no {ending} was saved", self.name), || {
            let files = fs::read_dir(&folder)
                .unwrap()
                .map(|file| file.unwrap().path());
            // An empty one may still be written.
            found = files.into_iter().find(|file| {
                file.to_string_lossy().ends_with(ending)
                    && file.metadata().is_ok_and(|about| about.len() > 0)
            });
            found.is_some()
        });
        found.unwrap()
    }
}

/// An expression for the first element that matches a selector.
fn element(selector: &str) -> String {
    format!(
        "(document.querySelector({selector}) ?? (() => {{ throw Error('no element is ' + {selector}) }})())",
        selector = json!(selector)
    )
}

/// The bytes of a value in Base64.
fn decoded(value: &Value) -> Vec<u8> {
    let engine = base64::engine::general_purpose::STANDARD;
    engine.decode(value.as_str().unwrap()).unwrap()
}
