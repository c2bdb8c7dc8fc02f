//! cryptmark
fn main() {}
