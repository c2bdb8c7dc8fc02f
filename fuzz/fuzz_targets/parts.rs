//! Tables of partitions, of LVM2 and of RAIDs, with any bytes:
//! `cargo +nightly fuzz run parts fuzz/corpus/parts fuzz/seeds/parts -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

extern crate cryptmark_cipher as cipher;

#[path = "../../crates/volume/tests/any_volume/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::parts(input));
