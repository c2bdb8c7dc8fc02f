//! A run in a store, of any bytes:
//! `cargo +nightly fuzz run stored_run fuzz/corpus/stored_run fuzz/seeds/stored_run -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

#[path = "../../crates/lab/tests/any_bytes/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::stored_run(input));
