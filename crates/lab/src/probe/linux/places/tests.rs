//! Simulated machines in a folder.

mod directories;
mod disks;
mod encryption;

use super::Machine;
use crate::probe::Site;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A machine in the making.
struct Simulated {
    folder: TempDir,
    mounts: Vec<u8>,
    /// The mount points so far. The first has the number 2.
    points: Vec<PathBuf>,
    current: Option<PathBuf>,
    home: Option<PathBuf>,
}

impl Simulated {
    /// A machine whose root is the first partition of `sda`.
    fn new() -> Self {
        let mut machine = Self {
            folder: tempfile::tempdir().unwrap(),
            mounts: Vec::new(),
            points: Vec::new(),
            current: None,
            home: None,
        };
        machine.disk("sda", "8:0", "Samsung SSD 980");
        machine.partition("sda", "sda1", "8:1");
        machine.mount("8:1", "/", "/", "ext4 /dev/sda1");
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    fn file(&self, path: &str, content: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), content).unwrap();
    }

    fn folder(&self, path: &str) {
        fs::create_dir_all(self.at(path)).unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        symlink(self.at(target), self.at(path)).unwrap();
    }

    /// A device of 1 GiB at `folder` of `/sys/devices`.
    fn device(&self, folder: &str, number: &str) {
        let name = folder.rsplit('/').next().unwrap();
        let target = format!("sys/devices/{folder}");
        self.file(&format!("{target}/dev"), &format!("{number}\n"));
        self.file(&format!("{target}/size"), "2097152\n");
        self.file(&format!("{target}/ro"), "0\n");
        self.link(&format!("sys/dev/block/{number}"), &target);
        self.link(&format!("sys/class/block/{name}"), &target);
        self.file(&format!("dev/{}", name.replace('!', "/")), "");
    }

    fn disk(&self, name: &str, number: &str, model: &str) {
        self.device(name, number);
        self.file(&format!("sys/devices/{name}/queue/rotational"), "0\n");
        if !model.is_empty() {
            self.file(&format!("sys/devices/{name}/device/model"), model);
        }
        self.link(&format!("sys/block/{name}"), &format!("sys/devices/{name}"));
    }

    fn partition(&self, disk: &str, name: &str, number: &str) {
        self.device(&format!("{disk}/{name}"), number);
        let digits = name.trim_start_matches(disk).trim_start_matches('p');
        self.file(&format!("sys/devices/{disk}/{name}/partition"), digits);
    }

    /// A device of device mapper on others.
    fn mapped(&self, name: &str, number: &str, label: &str, uuid: &str, below: &[&str]) {
        self.disk(name, number, "");
        self.file(&format!("sys/devices/{name}/dm/name"), label);
        self.file(&format!("sys/devices/{name}/dm/uuid"), uuid);
        self.stack(name, below);
    }

    fn stack(&self, name: &str, below: &[&str]) {
        for below in below {
            let node = fs::canonicalize(self.at(&format!("sys/class/block/{below}"))).unwrap();
            let folder = self.at(&format!("sys/devices/{name}/slaves"));
            fs::create_dir_all(&folder).unwrap();
            symlink(&node, folder.join(below)).unwrap();
            fs::create_dir_all(node.join("holders")).unwrap();
            symlink(
                self.at(&format!("sys/devices/{name}")),
                node.join("holders").join(name),
            )
            .unwrap();
        }
    }

    /// A mount on the latest one that holds its mount point, and the directory for it.
    fn mount(&mut self, number: &str, root: &str, point: &str, what: &str) {
        let path = PathBuf::from(point.replace("\\040", " "));
        let on = self.points.iter().rposition(|it| path.starts_with(it));
        let (id, parent) = (self.points.len() + 2, on.map_or(1, |on| on + 2));
        let options = "rw,relatime shared:1";
        let line = format!("{id} {parent} {number} {root} {point} {options} - {what} rw\n");
        self.mounts.extend(line.into_bytes());
        self.folder(path.to_str().unwrap());
        self.points.push(path);
    }

    fn build(&self) -> Machine {
        self.folder("proc/self");
        fs::write(self.at("proc/self/mountinfo"), &self.mounts).unwrap();
        let root = fs::canonicalize(self.folder.path()).unwrap();
        let secret = |name: &Path| name == Path::new("pool/secret");
        Machine::new(&root, self.current.clone(), self.home.clone(), secret)
    }

    fn directories(&self) -> Vec<Site> {
        self.build().directories()
    }

    fn disks(&self) -> Vec<Site> {
        self.build().disks()
    }

    fn disk_at(&self, path: &str) -> Site {
        let disks = self.disks();
        let found = disks.iter().find(|site| site.path == Path::new(path));
        found
            .unwrap_or_else(|| panic!("{path} is not in {disks:#?}"))
            .clone()
    }
}

fn paths(sites: &[Site]) -> Vec<&str> {
    sites
        .iter()
        .map(|site| site.path.to_str().unwrap())
        .collect()
}
