//! Headless Chromium, driven by its own protocol over a pipe: real clicks, real keys, and the
//! information that a screen reader would get.
// Each program that uses this uses a part of it.
#![allow(dead_code)]

use base64::Engine as _;
use command_fds::{CommandFdExt, FdMapping};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long the browser may say nothing before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: PipeWriter,
    from: Receiver<Value>,
    session: Option<String>,
    last: u64,
    loaded: bool,
    // Removed after the browser has ended.
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts the browser; prints a note if it is not installed.
    pub fn start() -> Option<Self> {
        let program = ["/usr/bin/chromium", "/usr/bin/chromium-browser"]
            .into_iter()
            .find(|program| Path::new(program).is_file());
        let Some(program) = program else {
            println!("skipped: chromium is not installed (Debian: chromium)");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // The browser reads descriptor 3 and writes 4.
        let (its_input, to) = std::io::pipe().unwrap();
        let (answers, its_output) = std::io::pipe().unwrap();
        let mappings = [(its_input.into(), 3), (its_output.into(), 4)];
        let mappings = mappings.map(|(parent_fd, child_fd)| FdMapping {
            parent_fd,
            child_fd,
        });
        let mut command = Command::new(program);
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.fd_mappings(mappings.into()).unwrap();
        let child = command.spawn().unwrap();
        // The ends that are the child's go with it.
        drop(command);
        let (send, from) = channel();
        std::thread::spawn(move || {
            let messages = BufReader::new(answers).split(0);
            for message in messages.map_while(Result::ok) {
                let message = serde_json::from_slice(&message).unwrap();
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self {
            child,
            to,
            from,
            session: None,
            last: 0,
            loaded: false,
            _profile: profile,
        };
        let page = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.enable", json!({}));
        Some(browser)
    }

    /// Calls a method of the browser's protocol.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .unwrap();
        loop {
            let mut answer = self.next();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }

    fn next(&mut self) -> Value {
        let message = match self.from.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("the browser hangs"),
            Err(RecvTimeoutError::Disconnected) => panic!("the browser has ended"),
        };
        self.loaded |= message["method"] == "Page.loadEventFired";
        message
    }

    /// Opens a page and returns when it has loaded.
    pub fn open(&mut self, address: &str) {
        self.loaded = false;
        self.call("Page.navigate", json!({"url": address}));
        while !self.loaded {
            self.next();
        }
    }

    /// Opens a file.
    pub fn open_file(&mut self, path: &Path) {
        self.open(&format!("file://{}", path.display()));
    }

    /// The value of an expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let mut result = self.call("Runtime.evaluate", parameters);
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {result}"
        );
        result["result"]["value"].take()
    }

    /// The value of an expression that is a text.
    pub fn text(&mut self, expression: &str) -> String {
        let value = self.value(expression);
        value
            .as_str()
            .unwrap_or_else(|| panic!("{expression}: {value}"))
            .to_owned()
    }

    /// The value of an expression that is a list of texts.
    pub fn texts(&mut self, expression: &str) -> Vec<String> {
        serde_json::from_value(self.value(expression)).unwrap()
    }

    /// Sets the size of the window in CSS pixels.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Shows pages as for a medium (`screen`, `print`) and a scheme of colours
    /// (`light`, `dark`).
    pub fn look(&mut self, medium: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let media = json!({"media": medium, "features": features});
        self.call("Emulation.setEmulatedMedia", media);
    }

    /// Moves the mouse over the middle of what an expression finds.
    pub fn hover(&mut self, element: &str) -> (f64, f64) {
        let place = self.value(&format!(
            "(() => {{ const element = {element};
                element.scrollIntoView({{block: 'center', behavior: 'instant'}});
                const box = element.getBoundingClientRect();
                return [box.left + box.width / 2, box.top + box.height / 2]; }})()"
        ));
        let [x, y] = [0, 1].map(|at| place[at].as_f64().unwrap());
        // Scrolling tells the page that the mouse is elsewhere, a frame later.
        self.value("new Promise(done => requestAnimationFrame(() => setTimeout(done)))");
        self.mouse("mouseMoved", x, y);
        (x, y)
    }

    /// Clicks the middle of what an expression finds.
    pub fn click(&mut self, element: &str) {
        let (x, y) = self.hover(element);
        self.mouse("mousePressed", x, y);
        self.mouse("mouseReleased", x, y);
    }

    fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let event = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
        self.call("Input.dispatchMouseEvent", event);
    }

    /// Presses and releases a key: `Tab`, `Enter`, `Space`, `ArrowDown`, `Escape`.
    pub fn key(&mut self, key: &str) {
        let (key, code, number, text) = match key {
            "Tab" => ("Tab", "Tab", 9, ""),
            "Enter" => ("Enter", "Enter", 13, "\r"),
            "Space" => (" ", "Space", 32, " "),
            "ArrowDown" => ("ArrowDown", "ArrowDown", 40, ""),
            "Escape" => ("Escape", "Escape", 27, ""),
            other => panic!("no key {other}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({
                "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number,
            });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// The whole page as a PNG.
    pub fn screenshot(&mut self) -> Vec<u8> {
        let whole = json!({"format": "png", "captureBeyondViewport": true});
        decoded(&self.call("Page.captureScreenshot", whole))
    }

    /// The page on A4 paper, as a PDF.
    pub fn pdf(&mut self) -> Vec<u8> {
        let paper = json!({"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": false});
        decoded(&self.call("Page.printToPDF", paper))
    }

    /// The information that a screen reader gets: roles with names, in the order of the page.
    pub fn accessible(&mut self) -> Vec<(String, String)> {
        let tree = self.call("Accessibility.getFullAXTree", json!({}));
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
}

fn decoded(answer: &Value) -> Vec<u8> {
    let data = answer["data"].as_str().unwrap();
    base64::engine::general_purpose::STANDARD
        .decode(data)
        .unwrap()
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A browser that does not end when asked to is killed.
        let close = json!({"id": 0, "method": "Browser.close"});
        let asked = self.to.write_all(format!("{close}\0").as_bytes());
        if asked.is_ok() {
            let until_it_ends = |from: &Receiver<Value>| {
                while from.recv_timeout(Duration::from_secs(5)).is_ok() {}
            };
            until_it_ends(&self.from);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
