//! Chromium, by its DevTools protocol over a pipe.

use super::keys::Key;
use super::{Engine, Mouse, PATIENCE, decoded};
use command_fds::{CommandFdExt, FdMapping};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Chromium with its windows, each of which is a session of the protocol.
pub struct Chromium {
    child: Child,
    to: PipeWriter,
    from: Receiver<Value>,
    windows: Vec<String>,
    /// The session that methods are called in; none while the browser itself is asked.
    session: Option<String>,
    last: u64,
    loaded: bool,
    errors: Vec<String>,
}

impl Chromium {
    /// Starts the browser with its profile in `folder`; `None` if it is not installed.
    pub fn start(folder: &Path, downloads: &Path) -> Option<Self> {
        let program = ["/usr/bin/chromium", "/usr/bin/chromium-browser"]
            .into_iter()
            .find(|program| Path::new(program).is_file())?;
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
            .arg(format!("--user-data-dir={}", folder.display()))
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
        let mut chromium = Self {
            child,
            to,
            from,
            windows: Vec::new(),
            session: None,
            last: 0,
            loaded: false,
            errors: Vec::new(),
        };
        let allow = json!({"behavior": "allow", "downloadPath": downloads});
        chromium.call("Browser.setDownloadBehavior", allow);
        chromium.new_window();
        Some(chromium)
    }

    fn try_call(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let message = format!("{message}\0");
        self.to.write_all(message.as_bytes()).unwrap();
        loop {
            let mut answer = self.next();
            if answer["id"] == self.last {
                return match answer["error"].is_null() {
                    true => Ok(answer["result"].take()),
                    false => Err(format!("{method}: {answer}")),
                };
            }
        }
    }

    /// The next message of the browser, of which events are noted.
    fn next(&mut self) -> Value {
        let message = match self.from.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("the browser hangs"),
            Err(RecvTimeoutError::Disconnected) => panic!("the browser has ended"),
        };
        let here = message["sessionId"].as_str() == self.session.as_deref();
        self.loaded |= here && message["method"] == "Page.loadEventFired";
        self.errors.extend(error_of(&message));
        message
    }
}

/// What a message says of an error in a page.
fn error_of(message: &Value) -> Option<String> {
    let parameters = &message["params"];
    match message["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(parameters["exceptionDetails"].to_string()),
        "Runtime.consoleAPICalled" if parameters["type"] == "error" => {
            Some(parameters["args"].to_string())
        }
        "Log.entryAdded" if parameters["entry"]["level"] == "error" => {
            let entry = &parameters["entry"];
            // Browsers ask for the icon of a site, whether it has one or not.
            let icon = entry["url"].as_str().unwrap_or_default();
            (!icon.ends_with("/favicon.ico")).then(|| entry.to_string())
        }
        _ => None,
    }
}

impl Engine for Chromium {
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        let answer = self.try_call(method, parameters);
        answer.unwrap_or_else(|error| panic!("{error}"))
    }

    fn open(&mut self, address: &str) {
        self.loaded = false;
        let navigated = self.call("Page.navigate", json!({"url": address}));
        assert!(navigated["errorText"].is_null(), "{address}: {navigated}");
        while !self.loaded {
            self.next();
        }
    }

    fn eval(&mut self, expression: &str) -> Result<Value, String> {
        let parameters = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let mut result = self.try_call("Runtime.evaluate", parameters)?;
        match result["exceptionDetails"].is_null() {
            true => Ok(result["result"]["value"].take()),
            false => Err(result["exceptionDetails"].to_string()),
        }
    }

    fn mouse(&mut self, what: Mouse, x: f64, y: f64) {
        let (kind, button) = match what {
            Mouse::Move => ("mouseMoved", "none"),
            Mouse::Down => ("mousePressed", "left"),
            Mouse::Up => ("mouseReleased", "left"),
        };
        let event = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
        self.call("Input.dispatchMouseEvent", event);
    }

    fn key(&mut self, key: &Key) {
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({
                "type": kind, "key": key.key, "code": key.code, "windowsVirtualKeyCode": key.number,
            });
            if kind == "keyDown" && !key.text.is_empty() {
                event["text"] = json!(key.text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    fn size(&mut self, width: u32, height: u32) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    fn dark(&mut self, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let media = json!({"media": "", "features": features});
        self.call("Emulation.setEmulatedMedia", media);
    }

    fn screenshot(&mut self) -> Vec<u8> {
        let whole = json!({"format": "png", "captureBeyondViewport": true});
        decoded(&self.call("Page.captureScreenshot", whole)["data"])
    }

    fn errors(&mut self) -> Vec<String> {
        // What happened before this call is told before its answer.
        self.call("Browser.getVersion", json!({}));
        std::mem::take(&mut self.errors)
    }

    fn new_window(&mut self) {
        self.session = None;
        let window = json!({"url": "about:blank", "newWindow": true});
        let page = self.call("Target.createTarget", window);
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", attach);
        let session = attached["sessionId"].as_str().unwrap().to_owned();
        self.session = Some(session.clone());
        self.windows.push(session);
        for domain in ["Page", "Runtime", "Log"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    fn to_window(&mut self, number: usize) {
        self.session = Some(self.windows[number].clone());
        self.call("Page.bringToFront", json!({}));
    }
}

impl Drop for Chromium {
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
