//! The journal of dm-integrity: the layout of its sections, and the choice of those to replay.
//!
//! ```text
//! section:  8 sectors with entries │ the data of entry 0 │ of entry 1 │ …
//! sector:   504 bytes │ commit id
//! entry:    number of the block's first sector │ the last 8 bytes of each of its sectors │ tag
//! ```
//!
//! Commit ids take the last 8 bytes of every sector. An id encodes the sector's place and the turn
//! around the ring that wrote it, so that a partly written section is found. Turns are counted
//! modulo 4. The sections are replayed from the oldest to the youngest, as long as they are whole.

use super::layout::{COMMIT_ID_BYTES, ENTRY_SECTORS, Journal, Layout, SECTOR};
use block::{BlockDevice, BlockError};

/// Turns around the ring that commit ids tell apart.
const TURNS: u8 = 4;

/// Sector numbers from here on belong to entries that are not used.
const UNUSED: u64 = 0xffff_ffff << 32;

/// Last bytes of a sector, less the commit id.
const SECTOR_DATA: usize = SECTOR as usize - COMMIT_ID_BYTES;

/// A section in memory.
pub(super) struct Section<'a> {
    journal: &'a Journal,
    bytes: &'a mut [u8],
}

/// The state of the journal, as a scan finds it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct State {
    /// The oldest section to replay.
    pub(super) start: u32,
    /// The number of sections to replay.
    pub(super) count: u32,
    /// The position of the next write, if all sections are whole.
    pub(super) go_on: Option<Position>,
    /// The turn to erase the journal with, if some are not.
    pub(super) erase: Turn,
}

/// Which turn around the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn(u8);

/// Where the next section is written, and on which turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) section: u32,
    pub(super) turn: Turn,
}

impl State {
    /// That of a journal in which nothing ever was.
    pub(super) const EMPTY: Self = Self {
        start: 0,
        count: 0,
        go_on: None,
        erase: Turn(0),
    };
}

impl Turn {
    const ALL: [Self; TURNS as usize] = [Self(0), Self(1), Self(2), Self(3)];

    pub(super) const fn next(self) -> Self {
        Self((self.0 + 1) % TURNS)
    }

    const fn previous(self) -> Self {
        Self((self.0 + TURNS - 1) % TURNS)
    }

    /// The commit id of a sector of a section.
    fn id(self, section: u32, sector: u32) -> u64 {
        let place = u64::from(section) << 32 | u64::from(sector);
        (0x1111_1111_1111_1111 * (u64::from(self.0) + 1)) ^ place
    }
}

impl Position {
    /// The place of the section after this one.
    pub(super) fn next(self, journal: &Journal) -> Self {
        match self.section + 1 < journal.sections {
            true => Self {
                section: self.section + 1,
                turn: self.turn,
            },
            false => Self {
                section: 0,
                turn: self.turn.next(),
            },
        }
    }
}

impl<'a> Section<'a> {
    /// Wraps `bytes`, which must be as long as a section.
    pub(super) fn new(journal: &'a Journal, bytes: &'a mut [u8]) -> Self {
        assert_eq!(bytes.len() as u64, journal.section_bytes);
        Self { journal, bytes }
    }

    /// The turn that wrote each sector of section number `section`; `None` if the commit id belongs
    /// to no turn.
    fn turns(&self, section: u32) -> impl Iterator<Item = Option<Turn>> {
        let (sectors, _) = self.bytes.as_chunks::<{ SECTOR as usize }>();
        (0..).zip(sectors).map(move |(number, sector)| {
            let id = sector.last_chunk().expect("a sector has an id at its end");
            let id = u64::from_le_bytes(*id);
            let turn = |turn: &Turn| turn.id(section, number) == id;
            Turn::ALL.into_iter().find(turn)
        })
    }

    fn entry(&self, entry: u64) -> std::ops::Range<usize> {
        let (sector, within) = (entry % ENTRY_SECTORS, entry / ENTRY_SECTORS);
        let start = (sector * SECTOR) as usize + within as usize * self.journal.entry_bytes;
        start..start + self.journal.entry_bytes
    }

    /// The number of the sector that the entry is for, in units of 512 bytes,
    /// if it is for one.
    pub(super) fn sector(&self, entry: u64) -> Option<u64> {
        let number = self.bytes[self.entry(entry)].first_chunk();
        let number = u64::from_le_bytes(*number.expect("an entry begins with a number"));
        (number < UNUSED).then_some(number)
    }

    /// Takes the data and the tag of an entry out.
    pub(super) fn take(&self, entry: u64, data: &mut [u8], tag: &mut [u8]) {
        let kept = &self.bytes[self.entry(entry)][8..];
        let at = (ENTRY_SECTORS * SECTOR) as usize + entry as usize * data.len();
        data.copy_from_slice(&self.bytes[at..][..data.len()]);
        let sectors = data.len() / SECTOR as usize;
        for (sector, last) in data
            .chunks_mut(SECTOR as usize)
            .zip(kept.chunks(COMMIT_ID_BYTES))
        {
            sector[SECTOR_DATA..].copy_from_slice(last);
        }
        tag.copy_from_slice(&kept[sectors * COMMIT_ID_BYTES..][..tag.len()]);
    }

    /// Makes an entry for the sector of this number.
    pub(super) fn put(&mut self, entry: u64, number: u64, data: &[u8], tag: &[u8]) {
        let range = self.entry(entry);
        let at = (ENTRY_SECTORS * SECTOR) as usize + entry as usize * data.len();
        self.bytes[at..][..data.len()].copy_from_slice(data);
        let kept = &mut self.bytes[range];
        kept[..8].copy_from_slice(&number.to_le_bytes());
        let (lasts, rest) = kept[8..].split_at_mut(data.len() / SECTOR as usize * COMMIT_ID_BYTES);
        for (sector, last) in data
            .chunks(SECTOR as usize)
            .zip(lasts.chunks_mut(COMMIT_ID_BYTES))
        {
            last.copy_from_slice(&sector[SECTOR_DATA..]);
        }
        rest[..tag.len()].copy_from_slice(tag);
    }

    /// Empties the section.
    pub(super) fn clear(&mut self) {
        self.bytes.fill(0);
        for entry in 0..self.journal.entries {
            let range = self.entry(entry);
            self.bytes[range][..8].copy_from_slice(&UNUSED.to_le_bytes());
        }
    }

    /// Signs all of the section's sectors.
    pub(super) fn commit(&mut self, at: Position) {
        let (sectors, _) = self.bytes.as_chunks_mut::<{ SECTOR as usize }>();
        for (number, sector) in (0..).zip(sectors) {
            let id = at.turn.id(at.section, number);
            sector[SECTOR_DATA..].copy_from_slice(&id.to_le_bytes());
        }
    }
}

/// Reads all of the journal; `None` if a sector of it is none.
pub(super) fn scan(device: &dyn BlockDevice, layout: &Layout) -> Result<Option<State>, BlockError> {
    let journal = &layout.journal;
    let mut buffer = block::AlignedBuffer::new(journal.section_bytes as usize);
    // The turn that wrote all of a section.
    let mut whole = Vec::with_capacity(journal.sections as usize);
    // The last section that a turn wrote a sector of.
    let mut last = [None; TURNS as usize];
    let mut empty = true;
    for number in 0..journal.sections {
        super::store::read(device, journal.section(number), &mut buffer)?;
        let section = Section::new(journal, &mut buffer);
        let mut common = None;
        for (index, turn) in section.turns(number).enumerate() {
            let Some(turn) = turn else { return Ok(None) };
            last[usize::from(turn.0)] = Some(number);
            common = match (index, common) {
                (0, _) => Some(turn),
                (_, Some(other)) if other == turn => common,
                _ => None,
            };
        }
        whole.push(common);
        empty &= (0..journal.entries).all(|entry| section.sector(entry).is_none());
    }
    Ok(state(journal, &whole, last, empty))
}

/// Decides how to treat a journal. `None` if all turns have left sections in it, which is
/// impossible in a valid journal.
fn state(
    journal: &Journal,
    whole: &[Option<Turn>],
    last: [Option<u32>; TURNS as usize],
    mut empty: bool,
) -> Option<State> {
    let used = |turn: Turn| last[usize::from(turn.0)].is_some();
    // Of the turns, at most three in a row have left something; the first that
    // has not comes after the youngest.
    let unused = match used(Turn(TURNS - 1)) {
        false => {
            let below = Turn::ALL.into_iter().rev().find(|&turn| used(turn));
            below.map_or(Turn(0), Turn::next)
        }
        true => Turn::ALL.into_iter().find(|&turn| !used(turn))?,
    };
    let youngest = unused.previous();
    let mut at = Position {
        section: last[usize::from(youngest.0)].unwrap_or(0),
        turn: youngest.previous(),
    };
    if !used(at.turn) && used(at.turn.previous()) {
        empty = true;
    }
    at = at.next(journal);
    let start = at.section;
    let mut count = 0;
    while count < journal.sections && whole[at.section as usize] == Some(at.turn) {
        at = at.next(journal);
        count += 1;
    }
    Some(State {
        start,
        count: if empty { 0 } else { count },
        go_on: (count == journal.sections).then_some(at),
        erase: youngest.previous().previous(),
    })
}
