//! Tests of the crate through its public interface.

mod any_input;
mod backends;
mod peers;
mod rejections;
mod samples;
mod vectors;
