//! The start of a device that is not blank, of any bytes:
//! `cargo +nightly fuzz run signature fuzz/corpus/signature fuzz/seeds/signature -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

extern crate cryptmark_cipher as cipher;

#[path = "../../crates/volume/tests/any_volume/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::signature(input));
