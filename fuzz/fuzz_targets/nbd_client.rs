//! What an NBD client says to the server here, of any bytes:
//! `cargo +nightly fuzz run nbd_client fuzz/corpus/nbd_client fuzz/seeds/nbd_client -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

#[path = "../../crates/serve/tests/any_bytes/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::nbd_client(input));
