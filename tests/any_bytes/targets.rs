//! Any bytes as a request of a browser, and as files that commands have written: what the fuzzer
//! and a test with random bytes drive.

#[path = "../../src/cli/whole/kind.rs"]
#[allow(dead_code)]
mod kind;
#[path = "../../src/cli/web/request.rs"]
#[allow(dead_code)]
mod request;

use kind::Kind;
use request::{Asked, Head, Request};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{LazyLock, Mutex};
use volume::recall::Content;

/// A parser that takes any bytes.
pub type Target = fn(&[u8]);

/// The parsers by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("http_request", http_request),
    ("recall_file", recall_file),
    ("earlier_output", earlier_output),
];

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

/// The file of `recall --resume`. What is read is written in a form that is read as the same.
pub fn recall_file(input: &[u8]) {
    let Some(content) = Content::parse(input) else {
        return;
    };
    let told = |content: &Content| serde_json::to_string(content).unwrap();
    let again = Content::new(content.search.clone(), content.candidates, content.tried);
    let again = Content::parse(told(&again).as_bytes()).unwrap();
    assert_eq!(told(&again), told(&content));
}

/// A file that has the name of an output. It is of one kind at most.
pub fn earlier_output(input: &[u8]) {
    static FILE: LazyLock<Mutex<File>> = LazyLock::new(|| {
        // In memory where there is such a folder.
        let file = tempfile::tempfile_in("/dev/shm").or_else(|_| tempfile::tempfile());
        Mutex::new(file.unwrap())
    });
    let file = FILE.lock().unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(input, 0).unwrap();
    let kinds = [
        Kind::Json("cryptmark"),
        Kind::Json("cryptmark-recall"),
        Kind::Html,
        Kind::Markdown,
        Kind::Csv,
        Kind::Manual,
    ];
    let of = kinds.iter().filter(|kind| kind.is_of(&file).unwrap());
    assert!(of.count() <= 1);
}
