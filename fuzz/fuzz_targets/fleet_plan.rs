//! A plan that many hosts share, of any bytes:
//! `cargo +nightly fuzz run fleet_plan fuzz/corpus/fleet_plan fuzz/seeds/fleet_plan -- -malloc_limit_mb=64 -timeout=1`.

#![no_main]

#[path = "../../crates/lab/tests/any_bytes/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::fleet_plan(input));
