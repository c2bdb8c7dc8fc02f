//! A file that goes with its last handle, on Windows.

use super::{Space, under_a_new_name};
use crate::sys::windows;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;
use windows_sys::Win32::Foundation::{GENERIC_READ, GENERIC_WRITE};
use windows_sys::Win32::Storage::FileSystem::{DELETE, FILE_FLAG_DELETE_ON_CLOSE};

/// The space of the file system that holds this directory, bytes.
pub(super) fn space(directory: &Path) -> io::Result<Space> {
    let (available, total) = windows::space(directory)?;
    Ok(Space { available, total })
}

/// A file that the system removes when this is dropped or the program ends.
#[derive(Debug)]
pub(crate) struct Nameless(File);

impl Nameless {
    pub(super) fn create(directory: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .access_mode(GENERIC_READ | GENERIC_WRITE | DELETE)
            .custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
        under_a_new_name(directory, |path| options.open(path).map(Self))
    }

    /// Takes the space before it is written to, so that too little is known early.
    pub(super) fn allocate(&self, size: u64) -> io::Result<()> {
        self.0.set_len(size)
    }

    pub(super) fn open_again(&self, write: bool) -> io::Result<File> {
        windows::reopen(&self.0, write, false)
    }

    /// Bytes that the file system keeps for it.
    pub(super) fn allocated(&self) -> io::Result<u64> {
        windows::allocated(&self.0)
    }
}
