//! URIs of NBD exports, of any bytes:
//! `cargo +nightly fuzz run nbd_uri fuzz/corpus/nbd_uri fuzz/seeds/nbd_uri -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

#[path = "../../crates/serve/tests/any_bytes/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::nbd_uri(input));
