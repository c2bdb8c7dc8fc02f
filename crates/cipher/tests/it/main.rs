//! Tests of the crate through its public interface.

mod backends;
mod oracle;
mod peers;
mod rejections;
mod vectors;
