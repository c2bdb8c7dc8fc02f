//! The encryption that a place has already, by device mapper below it or by its file system.

use super::{Machine, name, slaves, whole};
use crate::probe::linux::host::line;
use crate::probe::linux::mounts::Mount;
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const TCRYPT: &str = "dm-crypt (TrueCrypt or VeraCrypt)";
const VERACRYPT: &str = "VeraCrypt";
const TRUECRYPT: &str = "TrueCrypt";

/// Follows places down to their disks.
pub(super) struct Walk<'a> {
    machine: &'a Machine,
    /// The answers so far, by directory and by folder in `/sys`. A place is entered before its
    /// answer is known, so that a circle ends.
    known: BTreeMap<PathBuf, Vec<String>>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(machine: &'a Machine) -> Self {
        Self {
            machine,
            known: BTreeMap::new(),
        }
    }

    /// The layers that encrypt the files in a directory, the one next to the disk first.
    pub(super) fn directory(&mut self, path: &Path) -> Vec<String> {
        self.once(path, |walk| {
            let machine = walk.machine;
            let Some(mount) = machine.mounts.holding(path) else {
                return Vec::new();
            };
            let program = program(mount);
            let mut layers = match machine.source(mount) {
                Some(node) => walk.device(&node),
                None => program
                    .and_then(|_| lower(mount))
                    .map_or_else(Vec::new, |lower| {
                        let lower = machine.resolve(lower).unwrap_or_else(|| lower.to_owned());
                        walk.directory(&lower)
                    }),
            };
            layers.extend(program.map(str::to_owned));
            if mount.kind == "zfs" && (machine.dataset)(&mount.source) {
                layers.push("ZFS".to_owned());
            }
            if is_encrypted(&machine.real(path)) {
                layers.push("fscrypt".to_owned());
            }
            layers
        })
    }

    /// The layers that encrypt a block device, a folder in `/sys`, the one next to the disk first.
    pub(super) fn device(&mut self, node: &Path) -> Vec<String> {
        let node = whole(node);
        self.once(&node, |walk| {
            let mut layers = match backing(&node) {
                Some(path) => {
                    let path = walk.machine.resolve(&path).unwrap_or(path);
                    walk.directory(&path)
                }
                None => Vec::new(),
            };
            for below in slaves(&node) {
                // The members of a RAID have the same layers beside each other, not on top. A layer
                // of one member alone counts, because it changes what is measured.
                let mut below = walk.device(&below);
                if !layers.is_empty() {
                    below.retain(|layer| !layers.contains(layer));
                }
                layers.append(&mut below);
            }
            if let Some(own) = mapping(&node) {
                // A cascade of ciphers has a mapping for each of them.
                let of_cascade = own == TCRYPT || own == VERACRYPT || own == TRUECRYPT;
                if !of_cascade || layers.last().is_none_or(|last| last != own) {
                    layers.push(own.to_owned());
                }
            }
            layers
        })
    }

    fn once(&mut self, place: &Path, find: impl FnOnce(&mut Self) -> Vec<String>) -> Vec<String> {
        if let Some(known) = self.known.get(place) {
            return known.clone();
        }
        self.known.insert(place.to_owned(), Vec::new());
        let found = find(self);
        self.known.insert(place.to_owned(), found.clone());
        found
    }
}

/// The encryption of a mapping of device mapper.
///
/// cryptsetup gives its mappings a UUID of the form `CRYPT-<type>-<uuid>-<name>`. Of its types,
/// INTEGRITY, VERITY, TEMP and SUBDEV (a layer inside of another type) are not here. VeraCrypt
/// gives its mappings a name, `veracrypt1`, and no UUID.
fn mapping(node: &Path) -> Option<&'static str> {
    let Some(uuid) = line(node.join("dm/uuid")) else {
        let name = line(node.join("dm/name"))?;
        let known = [("veracrypt", VERACRYPT), ("truecrypt", TRUECRYPT)];
        let known = known.iter().find(|(prefix, _)| name.starts_with(prefix));
        return known.map(|(_, program)| *program);
    };
    let mut parts = uuid.strip_prefix("CRYPT-")?.split('-');
    Some(match (parts.next()?, parts.next()) {
        // The drive encrypts, and dm-crypt only if it was asked for besides.
        ("LUKS2", Some("OPAL")) => "Opal drive (LUKS2)",
        ("LUKS1", _) => "dm-crypt (LUKS1)",
        ("LUKS2", _) => "dm-crypt (LUKS2)",
        ("PLAIN", _) => "dm-crypt (plain)",
        ("LOOPAES", _) => "dm-crypt (loop-AES)",
        ("TCRYPT", _) => TCRYPT,
        ("BITLK", _) => "dm-crypt (BitLocker)",
        ("FVAULT2", _) => "dm-crypt (FileVault)",
        _ => return None,
    })
}

/// The program or file system that encrypts what is mounted, if it does so itself.
pub(super) fn program(mount: &Mount) -> Option<&'static str> {
    Some(match mount.kind.as_str() {
        "ecryptfs" => "eCryptfs",
        "fuse.gocryptfs" => "gocryptfs",
        "fuse.encfs" => "EncFS",
        "fuse.cryfs" => "CryFS",
        "fuse.securefs" => "securefs",
        "fuse.veracrypt" => VERACRYPT,
        "fuse.truecrypt" => TRUECRYPT,
        "fuse"
            if mount
                .source
                .as_os_str()
                .as_encoded_bytes()
                .starts_with(b"cryptmark:") =>
        {
            "cryptmark"
        }
        _ => return None,
    })
}

/// The directory with the encrypted files, if the source of the mount names it.
fn lower(mount: &Mount) -> Option<&Path> {
    let source = mount.source.to_str()?;
    let path = Path::new(source.strip_prefix("cryfs@").unwrap_or(source));
    path.is_absolute().then_some(path)
}

/// The file behind a loop device.
pub(super) fn backing(node: &Path) -> Option<PathBuf> {
    let is_loop = name(node).starts_with("loop");
    let file = line(node.join("loop/backing_file")).filter(|_| is_loop)?;
    Some(PathBuf::from(file))
}

/// Whether fscrypt encrypts this directory.
pub(super) fn is_encrypted(path: &Path) -> bool {
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::ENCRYPTED))
}
