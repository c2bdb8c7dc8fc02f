//! Opening a file of Windows once more, and what it says of files and disks.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle};
use std::path::Path;
use std::ptr;
use windows_sys::Win32::Foundation::{GENERIC_READ, GENERIC_WRITE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_NO_BUFFERING, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE,
    FILE_STANDARD_INFO, FILE_STORAGE_INFO, FileStandardInfo, FileStorageInfo, GetDiskFreeSpaceExW,
    GetFileInformationByHandleEx, ReOpenFile,
};

/// Opens the same file once more, whatever it is called by now, for writing too if
/// `write`, around the cache if `direct`.
pub(crate) fn reopen(file: &File, write: bool, direct: bool) -> io::Result<File> {
    let access = if write {
        GENERIC_READ | GENERIC_WRITE
    } else {
        GENERIC_READ
    };
    let share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    let flags = if direct { FILE_FLAG_NO_BUFFERING } else { 0 };
    // SAFETY: the handle is open for as long as `file` is borrowed; no memory is passed.
    let handle = unsafe { ReOpenFile(file.as_raw_handle(), access, share, flags) };
    if handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is a new one, and nobody else has it.
    Ok(unsafe { File::from_raw_handle(handle) })
}

/// The sector sizes of a disk, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sectors {
    /// Requests around the cache must be multiples of this.
    pub(crate) logical: u32,
    /// The request size that suits the disk best.
    pub(crate) physical: u32,
}

/// The sectors of the disk below a file.
pub(crate) fn sectors(file: &File) -> io::Result<Sectors> {
    let mut info = FILE_STORAGE_INFO::default();
    // SAFETY: the system writes at most the given size, which is that of the
    // structure, and every pattern of bits is a value of its numbers.
    let told = unsafe {
        GetFileInformationByHandleEx(
            file.as_raw_handle(),
            FileStorageInfo,
            ptr::from_mut(&mut info).cast(),
            size_of::<FILE_STORAGE_INFO>() as u32,
        )
    };
    match told {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(Sectors {
            logical: info.LogicalBytesPerSector,
            physical: info.PhysicalBytesPerSectorForPerformance,
        }),
    }
}

/// Bytes that the file system keeps for a file.
pub(crate) fn allocated(file: &File) -> io::Result<u64> {
    let mut info = FILE_STANDARD_INFO::default();
    // SAFETY: the system writes at most the given size, which is that of the
    // structure; its two truth values are 0 or 1, as FILE_STANDARD_INFO has them.
    let told = unsafe {
        GetFileInformationByHandleEx(
            file.as_raw_handle(),
            FileStandardInfo,
            ptr::from_mut(&mut info).cast(),
            size_of::<FILE_STANDARD_INFO>() as u32,
        )
    };
    match told {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(info.AllocationSize.cast_unsigned()),
    }
}

/// Bytes of the file system with this directory that this user may still fill,
/// and all that this user may.
pub(crate) fn space(directory: &Path) -> io::Result<(u64, u64)> {
    let mut name: Vec<u16> = directory.as_os_str().encode_wide().collect();
    name.push(0);
    let (mut available, mut total) = (0, 0);
    // SAFETY: the name ends with a zero, and both numbers live beyond the call.
    let told =
        unsafe { GetDiskFreeSpaceExW(name.as_ptr(), &mut available, &mut total, ptr::null_mut()) };
    match told {
        0 => Err(io::Error::last_os_error()),
        _ => Ok((available, total)),
    }
}
