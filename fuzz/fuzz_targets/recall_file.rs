//! The file of `recall --resume`, of any bytes:
//! `cargo +nightly fuzz run recall_file fuzz/corpus/recall_file fuzz/seeds/recall_file -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

extern crate cryptmark_volume as volume;

#[path = "../../tests/any_bytes/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::recall_file(input));
