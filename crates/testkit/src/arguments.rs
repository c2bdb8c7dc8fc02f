//! Arguments of a program, written as tests like to write them.

use std::ffi::{OsStr, OsString};

/// Arguments: a text that is split at white space, or a list whose items are taken as they are.
pub trait Arguments {
    /// The arguments, one by one.
    fn words(&self) -> Vec<OsString>;
}

impl Arguments for str {
    fn words(&self) -> Vec<OsString> {
        self.split_whitespace().map(OsString::from).collect()
    }
}

impl Arguments for String {
    fn words(&self) -> Vec<OsString> {
        self.as_str().words()
    }
}

impl<T: AsRef<OsStr>> Arguments for [T] {
    fn words(&self) -> Vec<OsString> {
        self.iter().map(|word| word.as_ref().to_owned()).collect()
    }
}

impl<T: AsRef<OsStr>, const N: usize> Arguments for [T; N] {
    fn words(&self) -> Vec<OsString> {
        self.as_slice().words()
    }
}

impl<T: AsRef<OsStr>> Arguments for Vec<T> {
    fn words(&self) -> Vec<OsString> {
        self.as_slice().words()
    }
}
