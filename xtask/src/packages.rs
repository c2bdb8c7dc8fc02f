//! What tests need from Debian, and how it gets here.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program that some tests drive, and the package that brings it.
struct Tool {
    /// Its name, or the path of a file that no program needs to find.
    program: &'static str,
    package: &'static str,
    purpose: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        program: "chromium",
        package: "chromium",
        purpose: "the HTML report is opened in a browser",
    },
    Tool {
        program: "firefox-esr",
        package: "firefox-esr",
        purpose: "the pages of cryptmark ui are used in a browser",
    },
    Tool {
        program: "npm",
        package: "npm",
        purpose: "axe-core, which checks pages for accessibility",
    },
    Tool {
        program: "fio",
        package: "fio",
        purpose: "the peer that the load generator is compared with",
    },
    Tool {
        program: "strace",
        package: "strace",
        purpose: "what the program writes and hands on is searched for secrets",
    },
    Tool {
        program: "initdb",
        package: "postgresql",
        purpose: "the store's second backend",
    },
    Tool {
        program: "slurmctld",
        package: "slurmctld",
        purpose: "job arrays on a real Slurm",
    },
    Tool {
        program: "slurmd",
        package: "slurmd",
        purpose: "its nodes",
    },
    Tool {
        program: "sbatch",
        package: "slurm-client",
        purpose: "its commands",
    },
    Tool {
        program: "munged",
        package: "munge",
        purpose: "how its parts know each other",
    },
    Tool {
        program: "python3",
        package: "python3-venv",
        purpose: "the schemas of Kubernetes",
    },
    Tool {
        program: "mkfs.ext4",
        package: "e2fsprogs",
        purpose: "signatures on devices, and file systems under test",
    },
    Tool {
        program: "gocryptfs",
        package: "gocryptfs",
        purpose: "encryption of files behind FUSE",
    },
    Tool {
        program: "encfs",
        package: "encfs",
        purpose: "the same",
    },
    Tool {
        program: "cryfs",
        package: "cryfs",
        purpose: "the same",
    },
    Tool {
        program: "securefs",
        package: "securefs",
        purpose: "the same",
    },
    Tool {
        program: "mkfs.xfs",
        package: "xfsprogs",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mkfs.btrfs",
        package: "btrfs-progs",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mkfs.vfat",
        package: "dosfstools",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mksquashfs",
        package: "squashfs-tools",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mkfs.f2fs",
        package: "f2fs-tools",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mkfs.exfat",
        package: "exfatprogs",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mkfs.ntfs",
        package: "ntfs-3g",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mkfs.nilfs2",
        package: "nilfs-tools",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mkfs.jfs",
        package: "jfsutils",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mkfs.reiserfs",
        package: "reiserfsprogs",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mkfs.reiser4",
        package: "reiser4progs",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mkfs.udf",
        package: "udftools",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mkfs.erofs",
        package: "erofs-utils",
        purpose: "signatures on devices",
    },
    Tool {
        program: "hformat",
        package: "hfsutils",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mkfs.gfs2",
        package: "gfs2-utils",
        purpose: "signatures on devices",
    },
    Tool {
        program: "mkfs.ocfs2",
        package: "ocfs2-tools",
        purpose: "signatures on devices",
    },
    Tool {
        program: "make-bcache",
        package: "bcache-tools",
        purpose: "signatures on devices",
    },
    Tool {
        program: "genromfs",
        package: "genromfs",
        purpose: "signatures on devices",
    },
    Tool {
        program: "genisoimage",
        package: "genisoimage",
        purpose: "signatures on devices",
    },
    Tool {
        program: "makefs",
        package: "makefs",
        purpose: "signatures on devices",
    },
    Tool {
        program: "blkid",
        package: "util-linux",
        purpose: "signatures on devices",
    },
    Tool {
        program: "sgdisk",
        package: "gdisk",
        purpose: "signatures on devices",
    },
    Tool {
        program: "modprobe",
        package: "kmod",
        purpose: "modules of the kernel that reads what is written here",
    },
    Tool {
        program: "mkfs.cramfs",
        package: "util-linux",
        purpose: "cramfs under test",
    },
    Tool {
        program: "mkfs.jffs2",
        package: "mtd-utils",
        purpose: "signatures on devices, and jffs2 under test",
    },
    Tool {
        program: "linux.uml",
        package: "user-mode-linux",
        purpose: "the real dm-crypt, in a kernel that is a program",
    },
    Tool {
        program: "cc",
        package: "gcc",
        purpose: "what that kernel needs on new processors",
    },
    Tool {
        program: "clang",
        package: "clang",
        purpose: "programs in C that use the library",
    },
    Tool {
        program: "pkg-config",
        package: "pkg-config",
        purpose: "what tells them where it is",
    },
    Tool {
        program: "flex",
        package: "flex",
        purpose: "building the lab kernel",
    },
    Tool {
        program: "bison",
        package: "bison",
        purpose: "building the lab kernel",
    },
    Tool {
        program: "bc",
        package: "bc",
        purpose: "building the lab kernel",
    },
    Tool {
        program: "make",
        package: "make",
        purpose: "building the lab kernel",
    },
    Tool {
        program: "patch",
        package: "patch",
        purpose: "building the lab kernel",
    },
    Tool {
        program: "xz",
        package: "xz-utils",
        purpose: "building the lab kernel",
    },
    Tool {
        program: "dmsetup",
        package: "dmsetup",
        purpose: "dm-crypt in the lab kernel",
    },
    Tool {
        program: "qemu-img",
        package: "qemu-utils",
        purpose: "the peer that reads and writes LUKS1",
    },
    Tool {
        program: "fusermount3",
        package: "fuse3",
        purpose: "mounts of volumes by users",
    },
    Tool {
        program: "fuse2fs",
        package: "fuse2fs",
        purpose: "file systems in volumes, without root",
    },
    Tool {
        program: "nbdcopy",
        package: "libnbd-bin",
        purpose: "clients of the NBD server",
    },
    Tool {
        program: "nbdkit",
        package: "nbdkit",
        purpose: "the NBD server that ours is measured beside",
    },
    Tool {
        program: "openssl",
        package: "openssl",
        purpose: "certificates for the NBD server",
    },
    Tool {
        program: "sfdisk",
        package: "fdisk",
        purpose: "partition tables of disk images",
    },
    Tool {
        program: "lvcreate",
        package: "lvm2",
        purpose: "logical volumes inside disk images",
    },
    Tool {
        program: "mdadm",
        package: "mdadm",
        purpose: "mirrors inside disk images",
    },
    Tool {
        program: "dislocker-file",
        package: "dislocker",
        purpose: "the peer that opens BitLocker volumes",
    },
    Tool {
        program: "bdemount",
        package: "libbde-utils",
        purpose: "the peer that opens BitLocker volumes",
    },
    Tool {
        program: "tcplay",
        package: "tcplay",
        purpose: "the peer that opens TrueCrypt volumes",
    },
    Tool {
        program: "cryptsetup",
        package: "cryptsetup-bin",
        purpose: "signatures on devices",
    },
    Tool {
        program: "valgrind",
        package: "valgrind",
        purpose: "no branch and no address depends on a secret",
    },
    Tool {
        program: "javac",
        package: "openjdk-17-jdk-headless",
        purpose: "Java's ciphers, measured beside the engine",
    },
    Tool {
        program: "script",
        package: "bsdutils",
        purpose: "passphrases that are asked for at a terminal",
    },
    Tool {
        program: "unshare",
        package: "util-linux",
        purpose: "small file systems of the tests' own, and users without rights",
    },
    Tool {
        program: "man",
        package: "man-db",
        purpose: "manual pages are read",
    },
    Tool {
        program: "groff",
        package: "groff",
        purpose: "manual pages are set without a warning",
    },
    Tool {
        program: "zsh",
        package: "zsh",
        purpose: "completions",
    },
    Tool {
        program: "fish",
        package: "fish",
        purpose: "completions",
    },
    Tool {
        program: "dpkg-shlibdeps",
        package: "dpkg-dev",
        purpose: "the libraries that the Debian package needs",
    },
    Tool {
        program: "qemu-aarch64-static",
        package: "qemu-user-static",
        purpose: "the engine on other machines",
    },
    Tool {
        program: "aarch64-linux-gnu-gcc",
        package: "gcc-aarch64-linux-gnu",
        purpose: "the engine on aarch64",
    },
    Tool {
        program: "/usr/aarch64-linux-gnu/lib/libc.so",
        package: "libc6-dev-arm64-cross",
        purpose: "the engine on aarch64",
    },
    Tool {
        program: "arm-linux-gnueabihf-gcc",
        package: "gcc-arm-linux-gnueabihf",
        purpose: "the engine on 32 bits",
    },
    Tool {
        program: "/usr/arm-linux-gnueabihf/lib/libc.so",
        package: "libc6-dev-armhf-cross",
        purpose: "the engine on 32 bits",
    },
    Tool {
        program: "s390x-linux-gnu-gcc",
        package: "gcc-s390x-linux-gnu",
        purpose: "the engine on a big-endian machine",
    },
    Tool {
        program: "/usr/s390x-linux-gnu/lib/libc.so",
        package: "libc6-dev-s390x-cross",
        purpose: "the engine on a big-endian machine",
    },
];

/// What comes from PyPI, in a folder of its own below `target/tools`, where tests look.
struct Python {
    folder: &'static str,
    packages: &'static [&'static str],
    /// What it is known by: a program or module.
    file: &'static str,
    purpose: &'static str,
}

const PYTHONS: &[Python] = &[
    Python {
        folder: "kubernetes-validate",
        packages: &["kubernetes-validate"],
        file: "bin/kubernetes-validate",
        purpose: "manifests are checked",
    },
    Python {
        folder: "dissect",
        packages: &["dissect.fve"],
        file: "bin/fve-dd",
        purpose: "the peer that opens BitLocker volumes",
    },
    Python {
        folder: "tables",
        packages: &["duckdb", "pandas", "pyarrow", "moto[server]"],
        file: "bin/moto_server",
        purpose: "exported trials are read, and kept in a store that speaks S3",
    },
];

/// A package of npm, in a folder of its own below `target/tools`, where tests look.
struct Node {
    folder: &'static str,
    /// Its name, with `@` and the version if tests depend on that.
    package: &'static str,
    purpose: &'static str,
}

const AXE: Node = Node {
    folder: "axe-core",
    package: "axe-core@4.14.1",
    purpose: "pages are checked for accessibility",
};

const AZURITE: Node = Node {
    folder: "elsewhere/azurite",
    package: "azurite",
    purpose: "a store of objects as Azure's",
};

/// What packages are made and tried with, beside the above.
const PACKAGING: &[Tool] = &[
    Tool {
        program: "musl-gcc",
        package: "musl-tools",
        purpose: "static programs",
    },
    Tool {
        program: "lintian",
        package: "lintian",
        purpose: "what Debian expects of packages",
    },
    Tool {
        program: "zstd",
        package: "zstd",
        purpose: "volumes that the packages' programs open",
    },
];

/// What begins the clients and servers of [`provide_elsewhere`].
const ELSEWHERE: &[Tool] = &[
    Tool {
        program: "npm",
        package: "npm",
        purpose: "a store of objects as Azure's",
    },
    Tool {
        program: "java",
        package: "default-jre-headless",
        purpose: "Spark",
    },
];

const CLIENTS: Python = Python {
    folder: "elsewhere",
    packages: &["pyspark", "azure-storage-blob"],
    file: "bin/spark-submit",
    purpose: "Spark reads exported trials, and Azure's client looks at them",
};

/// What suites of others are built with.
const SUITES: &[Tool] = &[Tool {
    program: "/usr/include/sys/acl.h",
    package: "libacl1-dev",
    purpose: "pjdfstest",
}];

/// A Ceph of three OSDs on one machine, and what exports its images.
const CEPH: &[Tool] = &[
    Tool {
        program: "ceph-mon",
        package: "ceph-mon",
        purpose: "a cluster's monitor",
    },
    Tool {
        program: "ceph-mgr",
        package: "ceph-mgr",
        purpose: "its manager",
    },
    Tool {
        program: "ceph-osd",
        package: "ceph-osd",
        purpose: "its disks",
    },
    Tool {
        program: "rbd",
        package: "ceph-common",
        purpose: "its images",
    },
    Tool {
        program: "qemu-nbd",
        package: "qemu-utils",
        purpose: "images over NBD",
    },
    Tool {
        program: "/usr/lib/x86_64-linux-gnu/qemu/block-rbd.so",
        package: "qemu-block-extra",
        purpose: "images over NBD",
    },
];

/// What builds, runs and packs the program for Windows.
const WINDOWS: &[Tool] = &[
    Tool {
        program: "x86_64-w64-mingw32-gcc",
        package: "gcc-mingw-w64-x86-64",
        purpose: "the program for Windows",
    },
    Tool {
        program: "wine",
        package: "wine",
        purpose: "the program for Windows",
    },
    Tool {
        program: "/usr/lib/wine/wine64",
        package: "wine64",
        purpose: "the program for Windows",
    },
    Tool {
        program: "zip",
        package: "zip",
        purpose: "the package for Windows",
    },
    Tool {
        program: "unzip",
        package: "unzip",
        purpose: "the package for Windows",
    },
];

/// What models Arm's processors.
const MODELS: &[Tool] = &[Tool {
    program: "llvm-mca-19",
    package: "llvm-19",
    purpose: "models of Arm's processors",
}];

/// Installs what tests need and is missing, as root and with apt; names what
/// stays missing.
pub fn provide() {
    provide_all(TOOLS.iter().collect());
    open_fuse();
    PYTHONS.iter().for_each(provide_python);
    provide_node(&AXE);
}

/// The same for making and trying packages.
pub fn provide_for_packages() {
    provide_all(TOOLS.iter().chain(PACKAGING).collect());
}

/// The same for readers of exported trials, and stores of objects, that are too large for
/// every run of the tests.
pub fn provide_elsewhere() {
    provide_all(ELSEWHERE.iter().collect());
    provide_python(&CLIENTS);
    provide_node(&AZURITE);
}

/// The same for building suites of others.
pub fn provide_for_suites() {
    provide_all(SUITES.iter().collect());
}

/// The same for models of Arm's processors, and what builds and runs programs for them.
pub fn provide_for_models() {
    let for_arm = |tool: &&Tool| tool.program.contains("aarch64");
    provide_all(TOOLS.iter().filter(for_arm).chain(MODELS).collect());
}

/// The same for a Ceph.
pub fn provide_ceph() {
    provide_all(CEPH.iter().collect());
}

/// The same for the program for Windows.
pub fn provide_windows() {
    provide_all(WINDOWS.iter().collect());
}

/// What comes from PyPI, where it is missing.
fn provide_python(wanted: &Python) {
    let folder = crate::root().join("target/tools").join(wanted.folder);
    if present(wanted.folder) || folder.join(wanted.file).is_file() {
        return;
    }
    let run = |program: &std::path::Path, arguments: &[&str]| {
        Command::new(program)
            .args(arguments)
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let environment = folder.to_string_lossy();
    let install = [&["install", "--quiet"], wanted.packages].concat();
    let made = run("python3".as_ref(), &["-m", "venv", &environment])
        && run(&folder.join("bin/pip"), &install);
    if !made {
        println!(
            "missing: {} ({}); pip install {}",
            wanted.folder,
            wanted.purpose,
            wanted.packages.join(" ")
        );
    }
}

/// What comes from npm, if it or its version is missing.
fn provide_node(wanted: &Node) {
    let Node {
        folder,
        package,
        purpose,
    } = wanted;
    let folder = crate::root().join("target/tools").join(folder);
    if has_package(&folder, package) {
        return;
    }
    let installed = Command::new("npm")
        .args(["install", "--silent", "--no-save", "--prefix"])
        .args([folder.as_os_str(), package.as_ref()])
        .status()
        .is_ok_and(|status| status.success());
    if !installed {
        println!("missing: {package} ({purpose}); npm install {package}");
    }
}

/// Whether npm has installed a package in a folder, with the version that its name may end in.
fn has_package(folder: &Path, package: &str) -> bool {
    let (name, version) = package.split_once('@').unwrap_or((package, ""));
    let about = folder.join("node_modules").join(name).join("package.json");
    let about = std::fs::read(about).unwrap_or_default();
    let about: serde_json::Value = serde_json::from_slice(&about).unwrap_or_default();
    let installed = about["version"].as_str();
    installed.is_some_and(|installed| version.is_empty() || installed == version)
}

fn provide_all(mut missing: Vec<&Tool>) {
    missing.retain(|tool| !present(tool.program));
    if missing.is_empty() {
        return;
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    if is_root() && present("apt-get") {
        println!("installing {}", packages.join(" "));
        apt(&["update"]);
        let mut install = vec!["install", "--yes", "--no-install-recommends"];
        install.extend(&packages);
        if !apt(&install) {
            // One package that is not to be had must not keep the others away.
            for package in &packages {
                apt(&["install", "--yes", "--no-install-recommends", package]);
            }
        }
    }
    for tool in missing.iter().filter(|tool| !present(tool.program)) {
        println!(
            "missing: {} ({}); as root: apt-get install {}",
            tool.program, tool.purpose, tool.package
        );
    }
}

/// Gives users who are not root the device that mounts need, as udev does where it runs.
fn open_fuse() {
    let device = Path::new("/dev/fuse");
    let closed = device
        .metadata()
        .is_ok_and(|device| device.permissions().mode() & 0o666 != 0o666);
    if closed && is_root() {
        println!("{} is opened to all users", device.display());
        if let Err(error) = std::fs::set_permissions(device, Permissions::from_mode(0o666)) {
            println!("missing: {} for users: {error}", device.display());
        }
    }
}

fn apt(arguments: &[&str]) -> bool {
    Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Whether a program can be found; servers hide theirs in folders of their own.
pub fn present(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let postgres = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"));
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .chain(postgres)
        .any(|folder| folder.join(program).is_file())
}

/// Whether this process may change the system.
pub fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[test]
fn packages_of_npm_are_known_by_name_and_version() {
    let folder = tempfile::tempdir().unwrap();
    let about = folder.path().join("node_modules/axe-core");
    std::fs::create_dir_all(&about).unwrap();
    std::fs::write(about.join("package.json"), r#"{"version": "4.14.1"}"#).unwrap();
    let has = |package: &str| has_package(folder.path(), package);
    assert!(has("axe-core") && has("axe-core@4.14.1"));
    assert!(!has("axe-core@4.14.0") && !has("azurite"));
}
