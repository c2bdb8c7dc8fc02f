//! Reading and writing at a place of a file, as each system has it.

pub(crate) use system::{read_at, read_exact_at, write_all_at};

#[cfg(unix)]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::FileExt;

    /// One read, as much as it gives.
    pub(crate) fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(into, offset)
    }

    /// Fills `into`.
    pub(crate) fn read_exact_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_exact_at(into, offset)
    }

    /// Writes all of `data`.
    pub(crate) fn write_all_at(file: &File, data: &[u8], offset: u64) -> io::Result<()> {
        file.write_all_at(data, offset)
    }
}

#[cfg(windows)]
mod system {
    //! These calls also move the file's own position; nothing here relies on it.

    use std::fs::File;
    use std::io;
    use std::os::windows::fs::FileExt;

    /// One read, as much as it gives.
    pub(crate) fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        file.seek_read(into, offset)
    }

    /// Fills `into`.
    pub(crate) fn read_exact_at(
        file: &File,
        mut into: &mut [u8],
        mut offset: u64,
    ) -> io::Result<()> {
        while !into.is_empty() {
            match file.seek_read(into, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => {
                    into = &mut into[length..];
                    offset += length as u64;
                }
            }
        }
        Ok(())
    }

    /// Writes all of `data`.
    pub(crate) fn write_all_at(file: &File, mut data: &[u8], mut offset: u64) -> io::Result<()> {
        while !data.is_empty() {
            match file.seek_write(data, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                length => {
                    data = &data[length..];
                    offset += length as u64;
                }
            }
        }
        Ok(())
    }
}
