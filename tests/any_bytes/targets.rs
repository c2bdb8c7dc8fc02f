//! Any bytes as a request of a browser: what the fuzzer and a test with random bytes drive.

#[path = "../../src/cli/web/request.rs"]
#[allow(dead_code)]
mod request;

use request::{Asked, Head, Request};

/// A parser that takes any bytes.
pub type Target = fn(&[u8]);

/// The parsers by name.
pub const TARGETS: &[(&str, Target)] = &[("http_request", http_request)];

/// As in src/cli/web/mod.rs.
const REQUEST: usize = 32 << 10;

/// A request, and the fields in it.
pub fn http_request(input: &[u8]) {
    let input = &input[..input.len().min(REQUEST)];
    let Asked::Whole(head) = Head::parse(input) else {
        return;
    };
    let _ = (head.is_for(80), head.is_for(8080), head.names_its_origin());
    let request = Request::new(&head, head.path);
    for name in ["path", "passphrase", ""] {
        // A byte that is not text becomes a character of three.
        assert!(request.secret(name).len() <= 3 * input.len());
    }
}
