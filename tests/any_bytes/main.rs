//! What the program reads from browsers and from its own files, of any bytes, by fuzz/driver.

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

#[test]
fn a_long_output_is_recognised_in_little_memory() {
    let long = format!(
        r#"{{"trials":[{}[]],"schema":"cryptmark/1"}}"#,
        "[],".repeat(1 << 20)
    );
    for input in [format!("[{long}]"), long] {
        driver::once(targets::earlier_output, input.as_bytes(), || {
            "a long output".to_owned()
        });
    }
}
