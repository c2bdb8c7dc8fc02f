//! Plans in TOML, of any bytes:
//! `cargo +nightly fuzz run plan fuzz/corpus/plan fuzz/seeds/plan -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

#[path = "../../crates/lab/tests/any_bytes/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::plan(input));
