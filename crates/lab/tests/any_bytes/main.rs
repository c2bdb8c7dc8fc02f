//! Parsers of the lab and of simulated drives under any bytes, by fuzz/driver.

extern crate cryptmark_lab as lab;

#[path = "../../../../fuzz/driver/mod.rs"]
mod driver;
mod long;
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
fn long_inputs_take_time_and_memory_in_proportion() {
    for (what, target, input) in long::inputs() {
        let (time, taken) = driver::once(target, input.as_bytes(), || what.to_owned());
        println!(
            "{what}: {} bytes, {time:?}, {taken} bytes of memory",
            input.len()
        );
    }
}
