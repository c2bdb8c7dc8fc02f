//! Clients of an export, and what they may expect after a power cut.

use block::ByteRange;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serve::{Export, Lane, Zeros};
use std::ops::Range;

/// Clients at the same time.
pub const CLIENTS: u64 = 4;

/// Longest write, bytes.
const PIECE: usize = 16 << 10;

/// Longest request of other kinds, which the export does in pieces.
const LONGEST: u64 = 24 << 10;

/// What a power cut leaves whole, bytes.
const SECTOR: u64 = 512;

/// One client, which has a range of bytes for itself: ranges meet in the middle
/// of sectors, so that each has neighbours there.
pub struct Client<'a> {
    lane: Lane<'a>,
    tick: &'a (dyn Fn() -> u64 + Sync),
    range: Range<u64>,
    random: Xoshiro256PlusPlus,
    done: Done,
}

/// What a client has done.
#[derive(Default)]
pub struct Done {
    range: Range<u64>,
    changes: Vec<Change>,
    /// When each of its flushes began and was done.
    flushes: Vec<(u64, u64)>,
}

struct Change {
    begun: u64,
    done: u64,
    offset: u64,
    bytes: Vec<u8>,
}

impl<'a> Client<'a> {
    /// Client number `number` of all; `tick` is the clock of the record.
    pub fn new(
        export: &'a Export,
        tick: &'a (dyn Fn() -> u64 + Sync),
        number: u64,
        seed: u64,
    ) -> Self {
        let border = |number: u64| match number {
            0 => 0,
            CLIENTS => export.size(),
            number => export.size() / CLIENTS * number + 777 * number,
        };
        let range = border(number)..border(number + 1);
        Self {
            lane: export.lane(PIECE).unwrap(),
            tick,
            random: Xoshiro256PlusPlus::seed_from_u64(seed ^ number << 32),
            done: Done {
                range: range.clone(),
                ..Done::default()
            },
            range,
        }
    }

    /// Does so many things, each durable or not.
    pub fn work(mut self, steps: u32) -> Done {
        for _ in 0..steps {
            match self.below(16) {
                0..=4 => self.write(true),
                5..=8 => self.write(false),
                9 => self.zero(Zeros::Written),
                10 | 11 => self.zero(Zeros::Punched),
                12 | 13 => self.trim(),
                _ => self.flush(),
            }
            // As with FUA: the write, and then a flush.
            if self.below(8) == 0 {
                self.flush();
            }
        }
        self.done
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    /// A part of the client's range, often at one of its ends.
    fn part(&mut self, aligned: bool) -> ByteRange {
        let Range { start, end } = self.range;
        let block = u64::from(self.lane.export().geometry().logical_block);
        let length = match self.below(3) {
            0 => 1 + self.below(700),
            _ => 1 + self.below(LONGEST),
        };
        let offset = match self.below(8) {
            0 => start,
            1 => end - length,
            _ => start + self.below(end - start - length),
        };
        match aligned {
            false => ByteRange::new(offset, length),
            true => {
                let offset = offset.next_multiple_of(block);
                let length = length.next_multiple_of(block);
                let most = (end.saturating_sub(offset)) / block * block;
                ByteRange::new(offset, length.min(most))
            }
        }
    }

    fn write(&mut self, aligned: bool) {
        let part = self.part(aligned);
        let mut bytes = vec![0; PIECE.min(part.length as usize)];
        self.random.fill_bytes(&mut bytes);
        self.change(part.offset, bytes, |lane, bytes| {
            lane.space(bytes.len()).copy_from_slice(bytes);
            lane.write(part.offset).unwrap();
        });
    }

    fn zero(&mut self, zeros: Zeros) {
        let aligned = self.below(2) == 0;
        let part = self.part(aligned);
        self.change(part.offset, vec![0; part.length as usize], |lane, _| {
            lane.zero(part, zeros).unwrap();
        });
    }

    fn trim(&mut self) {
        let export = self.lane.export();
        if !export.discards() {
            return;
        }
        assert!(export.geometry().discard_zeroes);
        let block = u64::from(export.geometry().logical_block);
        let part = self.part(false);
        // Parts of blocks stay as they are.
        let start = part.offset.next_multiple_of(block);
        let end = (part.offset + part.length) / block * block;
        let zeros = vec![0; end.saturating_sub(start) as usize];
        self.change(start, zeros, |lane, _| lane.trim(part).unwrap());
    }

    fn change(&mut self, offset: u64, bytes: Vec<u8>, carry_out: impl FnOnce(&mut Lane, &[u8])) {
        let begun = (self.tick)();
        carry_out(&mut self.lane, &bytes);
        let done = (self.tick)();
        self.done.changes.push(Change {
            begun,
            done,
            offset,
            bytes,
        });
    }

    fn flush(&mut self) {
        let begun = (self.tick)();
        self.lane.flush().unwrap();
        self.done.flushes.push((begun, (self.tick)()));
    }
}

/// What all clients have done, sector by sector.
pub struct History {
    sectors: Vec<Sector>,
}

/// The part of a sector that belongs to one client.
struct Sector {
    offset: u64,
    /// In their order, the first from before all of it.
    versions: Vec<Version>,
}

struct Version {
    begun: u64,
    /// From when on the client may rely on it.
    promised: u64,
    bytes: Vec<u8>,
}

/// Bytes that nobody may have expected.
pub struct Broken {
    pub offset: u64,
    pub what: &'static str,
}

impl History {
    /// What `clients` have done to a device that held `before`. A change is
    /// promised to be there from the end of a flush on that began after the
    /// change was done; on a device that writes through, from its own end on.
    pub fn new(before: &[u8], clients: &[Done], writes_through: bool) -> Self {
        let flushes = || clients.iter().flat_map(|client| &client.flushes);
        let mut sectors = Vec::new();
        for client in clients {
            let Range { start, end } = client.range;
            let mut offset = start;
            while offset < end {
                let next = (offset / SECTOR + 1) * SECTOR;
                let bytes = before[offset as usize..next.min(end) as usize].to_vec();
                sectors.push(Sector {
                    offset,
                    versions: vec![Version {
                        begun: 0,
                        promised: 0,
                        bytes,
                    }],
                });
                offset = next;
            }
            for change in &client.changes {
                let promised = match writes_through {
                    true => Some(change.done),
                    false => flushes()
                        .filter(|(begun, _)| *begun > change.done)
                        .map(|(_, done)| *done)
                        .min(),
                };
                for sector in &mut sectors {
                    sector.change(change, promised.unwrap_or(u64::MAX));
                }
            }
        }
        Self { sectors }
    }

    /// What the device holds when nothing was lost.
    pub fn after(&self, size: u64) -> Vec<u8> {
        let mut bytes = vec![0; size as usize];
        for sector in &self.sectors {
            if let Some(last) = sector.versions.last() {
                bytes[sector.offset as usize..][..last.bytes.len()].copy_from_slice(&last.bytes);
            }
        }
        bytes
    }

    /// Holds `found`, what the device has after a cut at `at`, against what was
    /// promised by then: each sector is as it was promised last, or as a
    /// change made it that had begun since.
    pub fn judge(&self, found: &[u8], at: u64) -> Result<(), Broken> {
        for sector in &self.sectors {
            let versions = &sector.versions;
            let promised = versions.iter().rposition(|version| version.promised < at);
            let promised = promised.unwrap_or(0);
            let found = &found[sector.offset as usize..][..versions[0].bytes.len()];
            let same = |version: &Version| version.bytes == found;
            let allowed = versions[promised..]
                .iter()
                .enumerate()
                .filter(|(index, version)| *index == 0 || version.begun < at);
            if !allowed.into_iter().any(|(_, version)| same(version)) {
                let lost = versions[..promised].iter().any(same);
                let what = match lost {
                    true => "what was acknowledged is lost",
                    false => "what nobody wrote is there",
                };
                let offset = sector.offset;
                return Err(Broken { offset, what });
            }
        }
        Ok(())
    }
}

impl Sector {
    fn change(&mut self, change: &Change, promised: u64) {
        let mut bytes = match self.versions.last() {
            Some(last) => last.bytes.clone(),
            None => return,
        };
        let end = self.offset + bytes.len() as u64;
        let from = change.offset.max(self.offset);
        let to = (change.offset + change.bytes.len() as u64).min(end);
        if from >= to {
            return;
        }
        let data = &change.bytes[(from - change.offset) as usize..(to - change.offset) as usize];
        bytes[(from - self.offset) as usize..][..data.len()].copy_from_slice(data);
        self.versions.push(Version {
            begun: change.begun,
            promised,
            bytes,
        });
    }
}
