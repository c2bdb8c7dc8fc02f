//! [`Wrapped`]: files that other programs wrap an image in.

/// The format that wraps an image.
pub enum Wrapped {
    /// A packed file.
    Archive(&'static str),
    /// The image of a disk.
    Image {
        /// Its kind.
        what: &'static str,
        /// QEMU's driver for it, if the image is one file.
        driver: Option<&'static str>,
    },
}

impl Wrapped {
    /// Its kind, with an article.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Archive(what) | Self::Image { what, .. } => what,
        }
    }

    /// The one of that [name](Self::name).
    pub fn named(name: &str) -> Option<&'static Self> {
        let mut all = WRAPPED.iter().map(|(.., wrapped)| wrapped);
        all.find(|wrapped| wrapped.name() == name)
    }

    /// The format whose signature is in `start`, which holds at least a sector.
    pub fn known(start: &[u8]) -> Option<&'static Self> {
        let mut known = WRAPPED.iter();
        known.find_map(|(magic, at, wrapped)| {
            let rest = start.get(*at..)?;
            rest.starts_with(magic).then_some(wrapped)
        })
    }
}

const fn image(what: &'static str, driver: &'static str) -> Wrapped {
    let driver = Some(driver);
    Wrapped::Image { what, driver }
}

const fn unread(what: &'static str) -> Wrapped {
    Wrapped::Image { what, driver: None }
}

/// Files that other programs wrap an image in, by what they begin with.
const WRAPPED: [(&[u8], usize, Wrapped); 15] = [
    (b"QFI\xfb", 0, image("a qcow2 image", "qcow2")),
    (
        b"\x7f\x10\xda\xbe",
        0x40,
        image("a VirtualBox image (VDI)", "vdi"),
    ),
    (b"KDMV", 0, image("a VMware image (VMDK)", "vmdk")),
    (
        b"# Disk DescriptorFile",
        0,
        unread("the description of a VMware image (VMDK)"),
    ),
    (b"vhdxfile", 0, image("a Hyper-V image (VHDX)", "vhdx")),
    (b"conectix", 0, image("a Virtual PC image (VHD)", "vpc")),
    (b"QED\0", 0, unread("a QED image")),
    (b"WithoutFreeSpace", 0, unread("a Parallels image")),
    (b"WithouFreSpacExt", 0, unread("a Parallels image")),
    (b"\x1f\x8b", 0, Wrapped::Archive("a gzip archive")),
    (b"\xfd7zXZ\0", 0, Wrapped::Archive("an xz archive")),
    (b"BZh", 0, Wrapped::Archive("a bzip2 archive")),
    (b"\x28\xb5\x2f\xfd", 0, Wrapped::Archive("a zstd archive")),
    (b"PK\x03\x04", 0, Wrapped::Archive("a ZIP archive")),
    (
        b"7z\xbc\xaf\x27\x1c",
        0,
        Wrapped::Archive("a 7-Zip archive"),
    ),
];
