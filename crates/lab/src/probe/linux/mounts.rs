//! The mounts that this process sees, from `/proc/self/mountinfo`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A mounted file system, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    id: u32,
    parent: u32,
    /// Major and minor number. All mounts of one file system share them.
    pub(super) number: (u32, u32),
    /// The mounted directory of the file system: `/`, unless it is a bind mount or a subvolume.
    pub(super) root: PathBuf,
    /// Where it is mounted.
    pub(super) point: PathBuf,
    /// Whether the mount or its file system refuses to be written.
    pub(super) read_only: bool,
    /// The type of the file system.
    pub(super) kind: String,
    /// The device, or whatever the file system has in its place.
    pub(super) source: PathBuf,
}

/// The table of mounts, in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub(super) struct Mounts(Vec<Mount>);

impl Mounts {
    /// Reads the table below this `/proc`. It is empty if it cannot be read.
    pub(super) fn read(proc: &Path) -> Self {
        Self::parse(&fs::read(proc.join("self/mountinfo")).unwrap_or_default())
    }

    fn parse(table: &[u8]) -> Self {
        let lines = table.split(|&byte| byte == b'\n');
        Self(lines.filter_map(parse_line).collect())
    }

    /// All mounts.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.0.iter()
    }

    /// The mount that holds `path`, an absolute path without symbolic links.
    ///
    /// It follows the path from the root, as the kernel does, because a later mount on a parent
    /// directory hides earlier mounts below it.
    pub(super) fn holding(&self, path: &Path) -> Option<&Mount> {
        let is_first =
            |mount: &Mount| !(self.0.iter()).any(|it| it.id == mount.parent && it.id != mount.id);
        let root = |mount: &&Mount| mount.point == Path::new("/") && is_first(mount);
        let Some(mut mount) = self.0.iter().find(root) else {
            // A root directory that was changed to is not always a mount.
            let holds = self.0.iter().filter(|it| path.starts_with(&it.point));
            return holds.max_by_key(|it| it.point.components().count());
        };
        // A damaged table could lead in a circle.
        for _ in 0..self.0.len() {
            let next = (self.0.iter())
                .filter(|it| it.parent == mount.id && it.id != mount.id)
                .filter(|it| path.starts_with(&it.point))
                .min_by_key(|it| it.point.components().count());
            match next {
                Some(next) => mount = next,
                None => break,
            }
        }
        Some(mount)
    }

    /// Whether no later mount hides the mount point of `mount`.
    pub(super) fn is_visible(&self, mount: &Mount) -> bool {
        let seen = self.holding(&mount.point);
        seen.is_some_and(|seen| std::ptr::eq(seen, mount))
    }
}

/// `id parent major:minor root point options [tags…] - type source options`
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ');
    let mut text = || std::str::from_utf8(fields.next()?).ok();
    let id = text()?.parse().ok()?;
    let parent = text()?.parse().ok()?;
    let (major, minor) = text()?.split_once(':')?;
    let number = (major.parse().ok()?, minor.parse().ok()?);
    let root = unescape(fields.next()?);
    let point = unescape(fields.next()?);
    let is_read_only = |options: &[u8]| options.split(|&byte| byte == b',').any(|it| it == b"ro");
    let mount_read_only = is_read_only(fields.next()?);
    fields.by_ref().find(|field| *field == b"-")?;
    Some(Mount {
        id,
        parent,
        number,
        root,
        point,
        kind: String::from_utf8_lossy(fields.next()?).into_owned(),
        source: unescape(fields.next()?),
        read_only: mount_read_only || fields.next().is_some_and(is_read_only),
    })
}

/// Undoes the kernel's `\ooo` for blanks and backslashes.
pub(super) fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        match (first, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                bytes.push(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'));
                rest = tail;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point_holding(mounts: &Mounts, path: &str) -> (u32, PathBuf) {
        let mount = mounts.holding(Path::new(path)).unwrap();
        (mount.id, mount.point.clone())
    }

    #[test]
    fn lines_are_read_with_blanks_tags_and_both_kinds_of_read_only() {
        let table = br"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
31 22 0:27 /sub /mnt/with\040blank rw shared:5 master:2 - btrfs /dev/sdz1 rw,space_cache
40 22 0:5 / /odd ro - tmpfs tm\134fs rw
41 22 0:6 / /mnt/x rw - ext4 /dev/sdy ro
42 22 0:7 / /empty rw - tmpfs  rw
broken line
43 22 nonsense / /y rw - ext4 /dev/sdx rw
44 22 8:1 / /y rw
";
        let mounts = Mounts::parse(table);
        let seen: Vec<_> = (mounts.iter())
            .map(|it| (it.point.to_str().unwrap(), it.read_only, it.kind.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                ("/", false, "ext4"),
                ("/mnt/with blank", false, "btrfs"),
                ("/odd", true, "tmpfs"),
                ("/mnt/x", true, "ext4"),
                ("/empty", false, "tmpfs"),
            ]
        );
        assert_eq!(mounts.0[1].root, Path::new("/sub"));
        assert_eq!(mounts.0[1].source, Path::new("/dev/sdz1"));
        assert_eq!(mounts.0[2].source, Path::new("tm\\fs"));
        assert_eq!(mounts.0[3].number, (0, 6));
    }

    #[test]
    fn names_that_are_not_text_are_kept() {
        let mounts = Mounts::parse(b"1 0 8:1 / /mnt/\xff rw - ext4 /dev/sda1 rw\n");
        let name = mounts.0[0].point.file_name().unwrap();
        assert_eq!(name.as_encoded_bytes(), b"\xff");
    }

    #[test]
    fn the_mount_of_a_path_is_the_one_that_is_seen() {
        let mounts = Mounts::parse(
            b"2 1 8:1 / / rw - ext4 /dev/sda1 rw
3 2 8:2 / /home rw - ext4 /dev/sda2 rw
4 3 8:3 / /home/me rw - ext4 /dev/sda3 rw
5 2 0:1 / /dev/shm rw - tmpfs first rw
6 5 0:2 / /dev/shm rw - tmpfs second rw
7 3 8:4 / /home rw - ext4 /dev/sda4 rw
",
        );
        assert_eq!(point_holding(&mounts, "/etc").0, 2);
        assert_eq!(point_holding(&mounts, "/homely").0, 2);
        // The mount 7 hides 3, and with it 4.
        assert_eq!(point_holding(&mounts, "/home/me/x").0, 7);
        assert_eq!(point_holding(&mounts, "/dev/shm").0, 6);
        let visible: Vec<_> = (mounts.iter())
            .filter(|it| mounts.is_visible(it))
            .map(|it| it.id)
            .collect();
        assert_eq!(visible, [2, 6, 7]);
    }

    #[test]
    fn damaged_tables_are_no_obstacle() {
        assert!(Mounts::parse(b"").holding(Path::new("/")).is_none());
        let circle = b"2 3 8:1 / /a rw - ext4 x rw\n3 2 8:2 / /a rw - ext4 y rw\n";
        assert_eq!(point_holding(&Mounts::parse(circle), "/a/b").0, 3);
        let circle = b"1 1 8:1 / / rw - ext4 x rw\n2 1 8:2 / /a rw - ext4 y rw\n\
            2 2 8:2 / /a rw - ext4 y rw\n3 2 8:3 / /a rw - ext4 z rw\n2 3 8:2 / /a rw - ext4 y rw\n";
        assert!(Mounts::parse(circle).holding(Path::new("/a/b")).is_some());
        // Without a root, the longest mount point wins, and the latest of those.
        let part = b"4 9 8:1 / /a rw - ext4 x rw\n5 9 8:2 / /a/b rw - ext4 y rw\n6 9 8:3 / /a/b rw - ext4 z rw\n";
        assert_eq!(point_holding(&Mounts::parse(part), "/a/b/c").0, 6);
    }
}
