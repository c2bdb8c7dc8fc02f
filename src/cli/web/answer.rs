//! [`Answer`]: what a browser gets.

use super::{LASTING, left};
use ::report::html;
use std::io::{self, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Bytes that are sent at a time.
const PART: usize = 64 << 10;
/// How long a browser that follows events may take to receive some of them.
const RECEIVING: Duration = Duration::from_secs(5);

const HTML: &str = "text/html; charset=utf-8";

/// The answer to a request.
pub struct Answer {
    status: &'static str,
    /// The lines of the head that only some answers have.
    more: String,
    body: Body,
}

enum Body {
    Text(&'static str, String),
    /// Events, until the closure ends or the browser leaves.
    Events(Box<Follow>),
}

/// Sends events as they come.
type Follow = dyn FnOnce(&mut Events<'_>) -> io::Result<()>;

/// A browser that follows events (server-sent events, WHATWG HTML, section 9.2).
pub struct Events<'a>(&'a TcpStream);

impl Events<'_> {
    /// Sends an event.
    ///
    /// # Errors
    /// The browser has left, or does not receive it in time.
    pub fn send(&mut self, data: &str) -> io::Result<()> {
        // One line of data: JSON has no line breaks.
        let (start, text) = (Instant::now(), format!("data: {data}\n\n"));
        put(self.0, text.as_bytes(), || left(start, RECEIVING))
    }
}

/// Writes all bytes, each part within the time that `left` gives.
fn put(
    mut stream: &TcpStream,
    mut bytes: &[u8],
    left: impl Fn() -> io::Result<Duration>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left()?))?;
        match stream.write(&bytes[..bytes.len().min(PART)])? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

impl Answer {
    fn of(status: &'static str, page: String) -> Self {
        Self {
            status,
            more: String::new(),
            body: Body::Text(HTML, page),
        }
    }

    /// A page, or a part of one.
    pub fn page(page: String) -> Self {
        Self::of("200 OK", page)
    }

    /// A page that the browser saves as a file.
    pub fn file(name: &str, page: String) -> Self {
        let harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name: String = name.chars().filter(|c| harmless(*c)).collect();
        Self {
            more: format!("content-disposition: attachment; filename=\"{name}\"\r\n"),
            ..Self::page(page)
        }
    }

    /// Leads the browser to another page, after a form.
    pub fn go_to(address: &str) -> Self {
        // Addresses are made by the program, of encoded parts.
        let line = |c: char| !c.is_control();
        let address: String = address.chars().filter(|c| line(*c)).collect();
        Self {
            more: format!("location: {address}\r\n"),
            ..Self::of("303 See Other", String::new())
        }
    }

    /// Events, until `follow` ends or the browser leaves.
    pub fn events(follow: impl FnOnce(&mut Events<'_>) -> io::Result<()> + 'static) -> Self {
        Self {
            body: Body::Events(Box::new(follow)),
            ..Self::page(String::new())
        }
    }

    /// A page that is not there.
    pub fn not_found(page: String) -> Self {
        Self::of("404 Not Found", page)
    }

    /// A page that says what is wrong with a request.
    pub fn refused(page: String) -> Self {
        Self::of("422 Unprocessable Content", page)
    }

    /// A page that says what failed.
    pub fn failed(page: String) -> Self {
        Self::of("500 Internal Server Error", page)
    }

    pub(super) fn forbidden(what: &str, remedy: &str) -> Self {
        Self::of("403 Forbidden", html::notice(what, remedy, None))
    }

    pub(super) fn malformed() -> Self {
        let page = html::notice("This is not a request", "Use a browser.", None);
        Self::of("400 Bad Request", page)
    }

    pub(super) fn too_long() -> Self {
        let remedy = "Enter the address again.";
        let page = html::notice("The request is too long", remedy, None);
        Self::of("431 Request Header Fields Too Large", page)
    }

    pub(super) fn not_allowed(takes_forms: bool) -> Self {
        let (what, allow) = match takes_forms {
            true => (
                "Pages and forms are here, and nothing else",
                "GET, HEAD, POST",
            ),
            false => ("Pages can be read here, and nothing else", "GET, HEAD"),
        };
        let page = html::notice(what, &format!("Use {allow}."), None);
        Self {
            more: format!("allow: {allow}\r\n"),
            ..Self::of("405 Method Not Allowed", page)
        }
    }

    pub(super) fn busy() -> Self {
        let remedy = "Close other windows.";
        let page = html::notice("Too many windows follow a measurement", remedy, None);
        Self {
            more: "retry-after: 5\r\n".to_owned(),
            ..Self::of("503 Service Unavailable", page)
        }
    }

    /// Whether it lasts as long as the browser stays.
    pub(super) fn goes_on(&self) -> bool {
        matches!(self.body, Body::Events(_))
    }

    /// Sends it, without its page if only the head is wanted.
    pub(super) fn send(self, stream: &mut TcpStream, whole: bool) -> io::Result<()> {
        let start = Instant::now();
        let (kind, length) = match &self.body {
            Body::Text(kind, text) => (*kind, format!("content-length: {}\r\n", text.len())),
            Body::Events(_) => ("text/event-stream", String::new()),
        };
        // The page itself says what it may load; who may show it, only the head can. A form's
        // origin is told to this server only.
        let head = format!(
            "HTTP/1.1 {}\r\n{}content-type: {kind}\r\n{length}\
             cache-control: no-store\r\n\
             x-content-type-options: nosniff\r\n\
             referrer-policy: same-origin\r\n\
             content-security-policy: frame-ancestors 'none'\r\n\
             cross-origin-resource-policy: same-origin\r\n\
             connection: close\r\n\r\n",
            self.status, self.more,
        );
        put(stream, head.as_bytes(), || left(start, LASTING))?;
        match self.body {
            _ if !whole => Ok(()),
            Body::Text(_, text) => put(stream, text.as_bytes(), || left(start, LASTING)),
            Body::Events(follow) => follow(&mut Events(stream)),
        }
    }
}
