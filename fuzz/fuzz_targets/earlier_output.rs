//! A file that an output is to replace, of any bytes:
//! `cargo +nightly fuzz run earlier_output fuzz/corpus/earlier_output fuzz/seeds/earlier_output -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

extern crate cryptmark_volume as volume;

#[path = "../../tests/any_bytes/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::earlier_output(input));
