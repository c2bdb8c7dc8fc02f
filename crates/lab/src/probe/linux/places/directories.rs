//! A directory of each file system that users can fill.

use super::encryption::{Walk, is_encrypted, program};
use super::{Machine, models, name, whole};
use crate::probe::linux::mounts::Mount;
use crate::probe::linux::storage::medium;
use crate::probe::{Site, SiteKind};
use rustix::fs::{Access, access, statvfs};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// File systems without a block device of their own that hold files of users.
const WITHOUT_DEVICE: [&str; 21] = [
    "9p",
    "bcachefs",
    "btrfs",
    "ceph",
    "cifs",
    "ecryptfs",
    "fuse.cryfs",
    "fuse.encfs",
    "fuse.glusterfs",
    "fuse.gocryptfs",
    "fuse.mergerfs",
    "fuse.securefs",
    "fuse.sshfs",
    "jffs2",
    "lustre",
    "nfs",
    "nfs4",
    "smb3",
    "ubifs",
    "virtiofs",
    "zfs",
];

/// Time for all file systems together to answer. A file server that is gone never does.
const PATIENCE: Duration = Duration::from_secs(2);

/// A directory to choose from.
pub(super) struct Candidate<'a> {
    pub(super) path: PathBuf,
    pub(super) mount: &'a Mount,
    /// The current directory or the home, which are listed even if they cannot be written to.
    pub(super) own: bool,
}

/// The state of a directory and its file system.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) size: u64,
    pub(super) free: u64,
    pub(super) writable: bool,
    /// By fscrypt, which encrypts some directories of a file system and not others.
    pub(super) encrypted: bool,
}

impl Machine {
    /// A directory of each file system that users can fill, that of the current directory first.
    pub(super) fn directories(&self) -> Vec<Site> {
        let candidates = self.candidates();
        let paths = candidates.iter().map(|it| self.real(&it.path)).collect();
        let seen = candidates.into_iter().zip(ask_all(paths, look, PATIENCE));
        let mut walk = Walk::new(self);
        choose(seen.filter_map(|(candidate, look)| Some((candidate, look?))))
            .into_iter()
            .map(|(Candidate { path, mount, .. }, look)| {
                let node = self.source(mount);
                Site {
                    kind: SiteKind::Directory,
                    size: look.size,
                    free: Some(look.free),
                    filesystem: Some(mount.kind.clone()),
                    device: node.as_deref().and_then(models),
                    medium: medium(Some(mount), node.as_deref().map(whole).as_deref()).to_owned(),
                    encrypted_by: walk.directory(&path),
                    in_use: None,
                    writable: look.writable,
                    path,
                }
            })
            .collect()
    }

    /// All directories to choose from. Of one file system, the earlier ones are preferred.
    fn candidates(&self) -> Vec<Candidate<'_>> {
        let at = |path: &Path, own: bool| {
            let path = self.resolve(path)?;
            let mount = self.mounts.holding(&path)?;
            (own || self.is_listed(mount)).then_some(Candidate { path, mount, own })
        };
        let own = [&self.current, &self.home].into_iter().flatten();
        let mut points: Vec<&Mount> = (self.mounts.iter())
            .filter(|mount| self.is_listed(mount) && self.mounts.is_visible(mount))
            .collect();
        // A bind mount shows a part of what another mount shows.
        points.sort_by_key(|mount| mount.root.components().count());
        let points = points.into_iter().map(|mount| Candidate {
            path: mount.point.clone(),
            mount,
            own: false,
        });
        let for_all = ["/var/tmp", "/tmp"].map(Path::new);
        (own.filter_map(|path| at(path, true)))
            .chain(points)
            .chain(for_all.into_iter().filter_map(|path| at(path, false)))
            .collect()
    }

    /// Whether a mount holds files of users.
    fn is_listed(&self, mount: &Mount) -> bool {
        let is_at = |points: &[&str]| points.iter().any(|point| mount.point == Path::new(point));
        let of_the_system = ["/boot", "/efi"].map(|folder| mount.point.starts_with(folder));
        if mount.read_only || of_the_system.contains(&true) {
            return false;
        }
        match mount.kind.as_str() {
            "tmpfs" => is_at(&["/tmp", "/dev/shm"]),
            "overlay" => is_at(&["/"]),
            "squashfs" => false,
            kind if WITHOUT_DEVICE.contains(&kind) => true,
            _ => match self.source(mount) {
                Some(node) => !name(&node).starts_with("loop") || self.is_served(&node),
                // A container does not see the devices of its mounts.
                None => mount.number.0 != 0,
            },
        }
    }

    /// Whether a loop device is not an image but a volume that a program such as VeraCrypt serves.
    fn is_served(&self, node: &Path) -> bool {
        let backing = super::encryption::backing(&whole(node));
        let mount = backing.and_then(|path| self.mounts.holding(&path));
        mount.is_some_and(|mount| program(mount).is_some())
    }
}

/// The first writable candidate of each file system, in the order in which the file systems come
/// first. Directories that fscrypt encrypts count as a file system of their own.
pub(super) fn choose<'a>(
    seen: impl Iterator<Item = (Candidate<'a>, Look)>,
) -> Vec<(Candidate<'a>, Look)> {
    let mut chosen: Vec<(Candidate<'a>, Look)> = Vec::new();
    // Pseudo file systems have no size.
    for (candidate, look) in seen.filter(|(_, look)| look.size > 0) {
        let before = chosen.iter_mut().find(|(other, there)| {
            other.mount.number == candidate.mount.number && there.encrypted == look.encrypted
        });
        match before {
            Some(before) if look.writable && !before.1.writable => *before = (candidate, look),
            None if look.writable || candidate.own => chosen.push((candidate, look)),
            _ => {}
        }
    }
    chosen
}

/// Asks all `paths` at the same time. Those that do not answer within `patience` are `None`.
pub(super) fn ask_all<T: Send + 'static>(
    paths: Vec<PathBuf>,
    ask: fn(&Path) -> Option<T>,
    patience: Duration,
) -> Vec<Option<T>> {
    let end = Instant::now() + patience;
    let answers: Vec<_> = paths
        .into_iter()
        .map(|path| {
            let (sender, answer) = mpsc::channel();
            // A call into a file server that is gone does not return, so its thread is left alone.
            let asked = std::thread::Builder::new().spawn(move || {
                let _ = sender.send(ask(&path));
            });
            asked.ok().map(|_| answer)
        })
        .collect();
    let left = || end.saturating_duration_since(Instant::now());
    let wait = |answer: mpsc::Receiver<_>| answer.recv_timeout(left()).ok().flatten();
    (answers.into_iter())
        .map(|answer| answer.and_then(wait))
        .collect()
}

fn look(path: &Path) -> Option<Look> {
    if !fs::metadata(path).ok()?.is_dir() {
        return None;
    }
    let space = statvfs(path).ok()?;
    Some(Look {
        size: space.f_blocks.saturating_mul(space.f_frsize),
        free: space.f_bavail.saturating_mul(space.f_frsize),
        writable: access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
        encrypted: is_encrypted(path),
    })
}
