//! What the program reads from browsers, of any bytes, by fuzz/driver.

#[path = "../../fuzz/driver/mod.rs"]
mod driver;
mod targets;

#[test]
fn any_bytes_are_read_or_refused() {
    driver::for_a_moment(targets::TARGETS);
}

#[test]
#[ignore = "as long as one likes: FUZZ_TARGET, FUZZ_EXECUTIONS"]
fn at_length() {
    driver::at_length(targets::TARGETS);
}
