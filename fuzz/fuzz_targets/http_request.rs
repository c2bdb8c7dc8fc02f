//! What a browser sends to `ui`, of any bytes:
//! `cargo +nightly fuzz run http_request fuzz/corpus/http_request fuzz/seeds/http_request -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

extern crate cryptmark_volume as volume;

#[path = "../../tests/any_bytes/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::http_request(input));
