//! Tests of the crate through its public interface.

mod backends;
mod peers;
mod rejections;
mod samples;
mod vectors;
