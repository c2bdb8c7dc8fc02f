//! Access rights of a file that takes another one's place.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Gives the owner, the mode and the access control list of the file at `path` to its replacement.
/// If the user may not set the owner, the user owns the replacement. If the group cannot be set
/// either, group and others get only the rights that both had.
///
/// Those of the system, except for missing permissions.
#[cfg(unix)]
pub fn keep(draft: &File, there: &Metadata, path: &Path) -> io::Result<()> {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    // Of a user that this system does not have, that is an invalid argument.
    let given = |owner, group| match fchown(draft, owner, Some(group)) {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput => Ok(false),
            _ => Err(error),
        },
    };
    let mode = there.mode() & 0o7777;
    let (mode, in_group) = if given(Some(there.uid()), there.gid())? {
        (mode, true)
    } else if given(None, there.gid())? {
        (mode & 0o777, true)
    } else {
        let everybody = mode >> 3 & mode & 0o7;
        (mode & 0o700 | everybody << 3 | everybody, false)
    };
    let list = access_list(path);
    // With a list, the mode limits the rights of every entry in it.
    let mode = if list.is_some() { mode & 0o7700 } else { mode };
    draft.set_permissions(Permissions::from_mode(mode))?;
    if in_group {
        // Without it, the owner alone may do anything.
        let _ = list.map(|list| set_access_list(draft, &list));
    }
    Ok(())
}

#[cfg(not(unix))]
pub fn keep(_: &File, _: &Metadata, _: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
const ACCESS_LIST: &str = "system.posix_acl_access";

/// The access control list of what is at `path`, as the system has it; nothing if there is
/// none beside the mode.
#[cfg(target_os = "linux")]
fn access_list(path: &Path) -> Option<Vec<u8>> {
    let mut list = vec![0; 64 << 10];
    let length = rustix::fs::getxattr(path, ACCESS_LIST, &mut list[..]).ok()?;
    list.truncate(length);
    Some(list)
}

#[cfg(target_os = "linux")]
fn set_access_list(draft: &File, list: &[u8]) -> io::Result<()> {
    use rustix::fs::XattrFlags;
    Ok(rustix::fs::fsetxattr(
        draft,
        ACCESS_LIST,
        list,
        XattrFlags::empty(),
    )?)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn access_list(_: &Path) -> Option<Vec<u8>> {
    None
}

#[cfg(all(unix, not(target_os = "linux")))]
fn set_access_list(_: &File, _: &[u8]) -> io::Result<()> {
    Ok(())
}
