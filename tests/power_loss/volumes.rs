//! The volumes that lose power, small ones.

use block::layer::{Trim, TrimPolicy};
use block::{BlockDevice, RamDevice};
use cipher::{Algorithm, IvSector, Key, SectorSize};
use std::ops::ControlFlow;
use std::sync::Arc;
use volume::luks2;
use volume::tcrypt::{self, Family, Prf, Sealing};
use volume::{Access, Hash, Kdf, Limits, Opening, SealedDevice, SealedMapping, Secret, Terms};

/// Plaintext of each.
pub const SIZE: u64 = 512 << 10;

/// Where the data of the LUKS2 volumes begin.
const DATA_OFFSET: u64 = 1 << 20;

/// What TrueCrypt keeps at both ends.
const TRUECRYPT_HEADERS: u64 = 2 * 131_072;

const PASSPHRASE: &[u8] = b"a passphrase";
const VOLUME_KEY: [u8; 64] = {
    let mut key = [0; 64];
    let mut at = 0;
    while at < 64 {
        key[at] = at as u8;
        at += 1;
    }
    key
};

/// A volume as it is before the first write.
pub struct Volume {
    pub image: Vec<u8>,
    format: Format,
    policy: TrimPolicy,
}

enum Format {
    Luks2,
    TrueCrypt,
    /// Without a header: nothing but what dm-integrity keeps.
    Sealed(SectorSize),
}

impl Volume {
    /// LUKS2, AES-XTS.
    pub fn luks2(sector_size: SectorSize, policy: TrimPolicy) -> Self {
        let device = RamDevice::new(DATA_OFFSET + SIZE);
        let kdf = Kdf::Pbkdf2 {
            hash: Hash::Sha256,
            iterations: 1000,
        };
        let creation = luks2::Creation {
            key_bytes: VOLUME_KEY.len(),
            sector_size,
            data_offset: Some(DATA_OFFSET),
            ..luks2::Creation::new(kdf)
        };
        let (key, passphrase) = (Key::from_slice(&VOLUME_KEY), Key::from_slice(PASSPHRASE));
        luks2::Header::create(&device, &creation, &key, &passphrase).unwrap();
        Self {
            image: bytes_of(&device),
            format: Format::Luks2,
            policy,
        }
    }

    /// TrueCrypt, Serpent: VeraCrypt's volumes differ from it in the cost of
    /// opening, which is paid for each image.
    pub fn truecrypt(policy: TrimPolicy) -> Self {
        let device = RamDevice::new(TRUECRYPT_HEADERS + SIZE);
        let creation = tcrypt::Creation {
            family: Family::TrueCrypt,
            algorithms: vec![Algorithm::Serpent],
            sealing: Sealing::new(Prf::Pbkdf2(Hash::Sha512)),
        };
        let passphrase = Key::from_slice(PASSPHRASE);
        let limits = Limits::default();
        creation.create(&device, &passphrase, &limits).unwrap();
        Self {
            image: bytes_of(&device),
            format: Format::TrueCrypt,
            policy,
        }
    }

    /// AES-GCM with random IVs, as cryptsetup's `--integrity` has it, with a
    /// journal of `sections`; all of it wiped.
    pub fn sealed(sector: SectorSize, sections: u32) -> Self {
        let volume = Self {
            image: Shape { sector, sections }.image(),
            format: Format::Sealed(sector),
            policy: TrimPolicy::Block,
        };
        let device = volume.device();
        let opened = volume.open(device.clone(), Access::Write);
        opened.write_at(0, &vec![0; SIZE as usize]).unwrap();
        Self {
            image: bytes_of(&*device),
            ..volume
        }
    }

    /// Whether a write is durable when it returns, without a flush.
    pub fn is_sealed(&self) -> bool {
        matches!(self.format, Format::Sealed(_))
    }

    /// A disk that holds the volume as it was made.
    pub fn device(&self) -> Arc<RamDevice> {
        disk(&self.image)
    }

    /// The plaintext of the volume on `device`, from its header on.
    pub fn open(
        &self,
        device: Arc<dyn BlockDevice>,
        access: Access,
    ) -> Arc<dyn BlockDevice + 'static> {
        let (opening, secret) = match self.format {
            Format::Luks2 => (
                Opening::Luks2 { slot: None },
                // It is held against the header's digest.
                Secret::VolumeKey(Key::from_slice(&VOLUME_KEY)),
            ),
            Format::TrueCrypt => {
                let opening = tcrypt::Opening {
                    prf: Some(Prf::Pbkdf2(Hash::Sha512)),
                    algorithms: Some(vec![Algorithm::Serpent]),
                    ..tcrypt::Opening::new(Family::TrueCrypt)
                };
                (
                    Opening::Tcrypt(Box::new(opening)),
                    Secret::Passphrase(Key::from_slice(PASSPHRASE)),
                )
            }
            Format::Sealed(sector) => {
                let sealed = SealedDevice::open(device, &sealed(sector, access));
                return Arc::new(sealed.expect("a sealed volume opens"));
            }
        };
        let limits = Limits::default();
        let go_on = |_, _| ControlFlow::Continue(());
        let mut opened = opening
            .unlock(
                &device,
                &device,
                &secret,
                &Terms {
                    access,
                    ..Terms::reading(&limits, &go_on)
                },
            )
            .expect("a volume opens");
        if self.policy == TrimPolicy::Pass {
            opened = opened.allowing_discards().reading_holes();
        }
        let plain = opened.device(device.clone(), device).unwrap();
        Arc::new(Trim::new(plain, self.policy))
    }
}

/// A disk with these bytes.
pub fn disk(bytes: &[u8]) -> Arc<RamDevice> {
    let device = RamDevice::new(bytes.len() as u64);
    device.write_at(0, bytes).unwrap();
    Arc::new(device)
}

/// All that a device holds.
pub fn bytes_of(device: &dyn BlockDevice) -> Vec<u8> {
    let mut bytes = vec![0; device.geometry().size as usize];
    device.read_at(0, &mut bytes).unwrap();
    bytes
}

fn sealed(sector_size: SectorSize, access: Access) -> SealedMapping {
    SealedMapping {
        encryption: "aes-gcm-random".into(),
        integrity: "aead".into(),
        key: Key::from_slice(&VOLUME_KEY[..32]),
        mac_key_bytes: None,
        sector_size,
        offset: 0,
        size: Some(SIZE),
        first: IvSector::new(0),
        access,
    }
}

/// What dm-integrity's superblock says.
struct Shape {
    sector: SectorSize,
    sections: u32,
}

impl Shape {
    /// Those of AES-GCM with its IV.
    const TAG_BYTES: u64 = 28;
    const LOG2_AREA_SECTORS: u8 = 7;

    /// Superblock, empty journal and areas, as Linux lays them out.
    fn image(&self) -> Vec<u8> {
        let block_sectors = self.sector.bytes() as u64 / 512;
        let entry_bytes = (8 + 8 * block_sectors + Self::TAG_BYTES).next_multiple_of(8);
        let entries_per_sector = 504 / entry_bytes;
        let section_sectors = 8 + 8 * entries_per_sector * block_sectors;
        let mut bytes = vec![0; 4096];
        bytes[..8].copy_from_slice(b"integrt\0");
        bytes[8] = 4;
        bytes[9] = Self::LOG2_AREA_SECTORS;
        bytes[10] = Self::TAG_BYTES as u8;
        bytes[12..16].copy_from_slice(&self.sections.to_le_bytes());
        bytes[16..24].copy_from_slice(&(SIZE / 512).to_le_bytes());
        bytes[24] = 8;
        bytes[28] = block_sectors.ilog2() as u8;
        for section in 0..u64::from(self.sections) {
            for number in 0..section_sectors {
                let mut sector = [0; 512];
                if number < 8 {
                    for entry in 0..entries_per_sector {
                        sector[(entry * entry_bytes) as usize + 4..][..4].fill(0xff);
                    }
                }
                let id = 0x3333_3333_3333_3333 ^ (section << 32 | number);
                sector[504..].copy_from_slice(&id.to_le_bytes());
                bytes.extend_from_slice(&sector);
            }
        }
        let area_sectors = 1 << Self::LOG2_AREA_SECTORS;
        let tags = (area_sectors / block_sectors * Self::TAG_BYTES).next_multiple_of(4096);
        let areas = (SIZE / 512).div_ceil(area_sectors);
        let end = bytes.len() as u64 + areas * (tags + area_sectors * 512);
        bytes.resize(end as usize, 0);
        bytes
    }
}
