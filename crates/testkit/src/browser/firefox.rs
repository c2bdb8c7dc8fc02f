//! Firefox ESR, by Marionette: messages in JSON over TCP, each after its length and a colon.

use super::keys::Key;
use super::{Engine, Mouse, PATIENCE, decoded};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "/usr/bin/firefox-esr";

/// The windows of Firefox are no smaller; pages can be.
const LEAST_WIDTH: u32 = 500;
/// Height of a window's own bars, at most.
const BARS: u32 = 200;

/// The errors of pages that Firefox lists, apart from its own and from warnings. A stream of events
/// that ends because its page is left is no error.
const ERRORS: &str = "
    const errors = Services.console.getMessageArray()
        .filter(message => message instanceof Ci.nsIScriptError)
        .filter(message => !(message.flags & Ci.nsIScriptError.warningFlag))
        .filter(message => !/^(chrome|resource|moz-extension|about):|^$/.test(message.sourceName))
        .filter(message => !/was interrupted while the page was loading/.test(message.errorMessage))
        .map(message => message.sourceName + ': ' + message.errorMessage);
    Services.console.reset();
    return errors;";

/// The page gets a size of its own within the window.
const SIZE: &str = "
    for (const [name, value] of [['width', arguments[0]], ['height', arguments[1]]]) {
        for (const limit of ['', 'min-', 'max-']) {
            gBrowser.selectedBrowser.style.setProperty(limit + name, value + 'px', 'important');
        }
    }";

const SCHEME: &str =
    "Services.prefs.setIntPref('layout.css.prefers-color-scheme.content-override', arguments[0]);";

/// Firefox with its windows.
pub struct Firefox {
    child: Child,
    answers: BufReader<TcpStream>,
    last: u64,
    windows: Vec<String>,
}

impl Firefox {
    /// Starts the browser with its profile in `folder`; `None` if it is not installed.
    pub fn start(folder: &Path, downloads: &Path) -> Option<Self> {
        if !Path::new(PROGRAM).is_file() {
            return None;
        }
        // Port 0 is any free port, which Firefox writes to a file in the profile.
        let preferences = [
            ("marionette.port", json!(0)),
            ("browser.download.folderList", json!(2)),
            ("browser.download.dir", json!(downloads)),
            (
                "browser.download.always_ask_before_handling_new_types",
                json!(false),
            ),
            ("layout.css.prefers-color-scheme.content-override", json!(1)),
            ("datareporting.policy.dataSubmissionEnabled", json!(false)),
        ];
        let preferences =
            preferences.map(|(name, value)| format!("user_pref({name:?}, {value});\n"));
        fs::write(folder.join("user.js"), preferences.concat()).unwrap();
        let mut command = Command::new(PROGRAM);
        command
            .args(["--headless", "--no-remote", "--marionette"])
            // For what is asked of the browser itself: sizes, colour schemes, errors.
            .arg("--remote-allow-system-access")
            .arg("--profile")
            .arg(folder)
            .env("HOME", folder)
            .env("MOZ_CRASHREPORTER_DISABLE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.join("said")).unwrap());
        let child = command.spawn().unwrap();
        let stream = connected(folder);
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut firefox = Self {
            child,
            answers: BufReader::new(stream),
            last: 0,
            windows: Vec::new(),
        };
        // It introduces itself.
        firefox.read();
        firefox.call("WebDriver:NewSession", json!({"capabilities": {}}));
        let patience = PATIENCE.as_millis() as u64;
        let timeouts = json!({"script": patience, "pageLoad": patience});
        firefox.call("WebDriver:SetTimeouts", timeouts);
        let first = firefox.call("WebDriver:GetWindowHandle", json!({}));
        firefox
            .windows
            .push(first["value"].as_str().unwrap().to_owned());
        Some(firefox)
    }

    /// The next message.
    fn read(&mut self) -> Value {
        let mut length = Vec::new();
        self.answers
            .read_until(b':', &mut length)
            .expect("the browser hangs");
        let length = length.strip_suffix(b":").expect("the browser has ended");
        let length: usize = std::str::from_utf8(length).unwrap().parse().unwrap();
        let mut message = vec![0; length];
        self.answers
            .read_exact(&mut message)
            .expect("the browser has ended");
        serde_json::from_slice(&message).unwrap()
    }

    fn send(&mut self, command: &str, parameters: &Value) -> std::io::Result<()> {
        self.last += 1;
        let message = json!([0, self.last, command, parameters]).to_string();
        let message = format!("{}:{message}", message.len());
        self.answers.get_mut().write_all(message.as_bytes())
    }

    fn try_call(&mut self, command: &str, parameters: &Value) -> Result<Value, String> {
        self.send(command, parameters).unwrap();
        loop {
            // Kind, number, error and result.
            let mut answer = self.read();
            if answer[0] == 1 && answer[1] == self.last {
                return match answer[2].is_null() {
                    true => Ok(answer[3].take()),
                    false => Err(format!("{command}: {}", answer[2])),
                };
            }
        }
    }

    /// Runs a script in the browser's own window.
    fn in_chrome(&mut self, script: &str, arguments: Value) -> Value {
        self.call("Marionette:SetContext", json!({"value": "chrome"}));
        let script = json!({"script": script, "args": arguments, "sandbox": "system"});
        let mut result = self.call("WebDriver:ExecuteScript", script);
        self.call("Marionette:SetContext", json!({"value": "content"}));
        result["value"].take()
    }

    fn act(&mut self, device: Value) {
        self.call("WebDriver:PerformActions", json!({"actions": [device]}));
    }
}

/// A connection to the browser that was started with this profile.
fn connected(folder: &Path) -> TcpStream {
    let begun = Instant::now();
    loop {
        let port = fs::read_to_string(folder.join("MarionetteActivePort"));
        let port = port.ok().and_then(|port| port.trim().parse::<u16>().ok());
        let stream = port.and_then(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
        if let Some(stream) = stream {
            return stream;
        }
        let said = || fs::read_to_string(folder.join("said")).unwrap_or_default();
        assert!(
            begun.elapsed() < PATIENCE,
            "Firefox does not listen: {}",
            said()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Engine for Firefox {
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        let answer = self.try_call(method, &parameters);
        answer.unwrap_or_else(|error| panic!("{error}"))
    }

    fn open(&mut self, address: &str) {
        self.call("WebDriver:Navigate", json!({"url": address}));
    }

    fn eval(&mut self, expression: &str) -> Result<Value, String> {
        let script = json!({"script": format!("return (\n{expression}\n)"), "args": []});
        let mut result = self.try_call("WebDriver:ExecuteScript", &script)?;
        Ok(result["value"].take())
    }

    fn mouse(&mut self, what: Mouse, x: f64, y: f64) {
        let act = match what {
            Mouse::Move => json!({"type": "pointerMove", "origin": "viewport", "x": x, "y": y}),
            Mouse::Down => json!({"type": "pointerDown", "button": 0}),
            Mouse::Up => json!({"type": "pointerUp", "button": 0}),
        };
        let kind = json!({"pointerType": "mouse"});
        self.act(json!({"type": "pointer", "id": "mouse", "parameters": kind, "actions": [act]}));
    }

    fn key(&mut self, key: &Key) {
        let acts = ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.webdriver}));
        self.act(json!({"type": "key", "id": "keyboard", "actions": acts}));
    }

    fn size(&mut self, width: u32, height: u32) {
        let window = json!({"width": width.max(LEAST_WIDTH), "height": height + BARS});
        self.call("WebDriver:SetWindowRect", window);
        self.in_chrome(SIZE, json!([width, height]));
    }

    fn dark(&mut self, dark: bool) {
        self.in_chrome(SCHEME, json!([if dark { 0 } else { 1 }]));
    }

    fn screenshot(&mut self) -> Vec<u8> {
        decoded(&self.call("WebDriver:TakeScreenshot", json!({"full": true}))["value"])
    }

    fn errors(&mut self) -> Vec<String> {
        serde_json::from_value(self.in_chrome(ERRORS, json!([]))).unwrap()
    }

    fn new_window(&mut self) {
        let window = json!({"type": "window", "focus": true});
        let window = self.call("WebDriver:NewWindow", window);
        self.windows
            .push(window["handle"].as_str().unwrap().to_owned());
        self.to_window(self.windows.len() - 1);
    }

    fn to_window(&mut self, number: usize) {
        let window = json!({"handle": self.windows[number], "focus": true});
        self.call("WebDriver:SwitchToWindow", window);
    }
}

impl Drop for Firefox {
    fn drop(&mut self) {
        // A browser that does not end when asked to is killed.
        let asked = self.send("Marionette:Quit", &json!({"flags": ["eForceQuit"]}));
        let begun = Instant::now();
        while asked.is_ok() && begun.elapsed() < Duration::from_secs(10) {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
