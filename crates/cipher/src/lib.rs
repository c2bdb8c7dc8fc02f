//! cipher
