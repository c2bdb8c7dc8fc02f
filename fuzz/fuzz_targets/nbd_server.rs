//! What an NBD server says to the client here, of any bytes:
//! `cargo +nightly fuzz run nbd_server fuzz/corpus/nbd_server fuzz/seeds/nbd_server -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

#[path = "../../crates/serve/tests/any_bytes/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::nbd_server(input));
