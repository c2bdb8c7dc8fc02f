//! Raw flash against a plain list: what was written is found, also when the
//! power goes; what things take follows from the chip's numbers.

extern crate cryptmark_drive as drive;

mod host;

use drive::flash::{BlockMap, Chip, FlashPreset, MtdBlock, RawFlash, Wear};
use drive::ftl::{Flash, Layout, Stamps};
use drive::preset::Preset;
use host::{ClosedLoop, Pattern};
use proptest::prelude::*;
use std::ops::ControlFlow;

const LAYOUT: Layout = Layout {
    blocks: 14,
    pages_per_block: 8,
    logical_pages: 12 * 8,
};

/// A chip that holds a number in each page, until its power goes.
struct Content {
    chip: Chip,
    stamps: Stamps,
    pages: Vec<Option<u64>>,
    /// The number that the host writes with the next program of a map.
    next: u64,
    /// The copy of a block that `mtdblock` has in memory.
    copy: Option<Vec<Option<u64>>>,
    /// Changes that still happen.
    power: usize,
}

impl Content {
    fn new(power: usize, copy: bool) -> Self {
        let preset = FlashPreset {
            blocks: LAYOUT.blocks,
            pages_per_block: LAYOUT.pages_per_block,
            capacity: bytesize::ByteSize::b(96 * 2048),
            ..named("mtd-nand-128m")
        };
        Self {
            chip: Chip::new(&preset),
            stamps: Stamps::new(LAYOUT),
            pages: vec![None; LAYOUT.pages() as usize],
            next: 0,
            copy: copy.then(|| vec![None; LAYOUT.pages_per_block as usize]),
            power,
        }
    }

    fn powered(&mut self) -> bool {
        let powered = self.power > 0;
        self.power = self.power.saturating_sub(1);
        powered
    }

    fn place(page: u32) -> usize {
        (page % LAYOUT.pages_per_block) as usize
    }
}

/// The chip refuses what no chip can do, and tells whether it was right.
impl Flash for Content {
    fn program(&mut self, page: u32, logical: u32) {
        if self.powered() {
            self.chip.program(page, logical);
            self.stamps.program(page, logical);
            self.pages[page as usize] = match &self.copy {
                Some(copy) => copy[Self::place(page)],
                None => Some(self.next),
            };
        }
    }

    fn relocate(&mut self, from: u32, to: u32) {
        if self.powered() {
            self.chip.relocate(from, to);
            self.stamps.relocate(from, to);
            self.pages[to as usize] = self.pages[from as usize];
        }
    }

    fn erase(&mut self, block: u32) {
        if self.powered() {
            self.chip.erase(block);
            self.stamps.erase(block);
            let first = (block * LAYOUT.pages_per_block) as usize;
            self.pages[first..][..LAYOUT.pages_per_block as usize].fill(None);
        }
    }
}

impl RawFlash for Content {
    fn read(&mut self, page: u32) {
        if let Some(copy) = &mut self.copy {
            copy[Self::place(page)] = self.pages[page as usize];
        }
    }
}

fn named(name: &str) -> FlashPreset {
    match Preset::named(name) {
        Ok(Preset::Flash(flash)) => flash,
        other => panic!("{name}: {other:?}"),
    }
}

/// Runs of pages: some go on where the last one ended, as files do.
fn writes() -> impl Strategy<Value = Vec<u32>> {
    let run = (0..LAYOUT.logical_pages, 1_u32..20);
    prop::collection::vec(run, 0..120).prop_map(|runs| {
        let pages = runs.into_iter().flat_map(|(first, length)| {
            (first..first + length).map(|page| page % LAYOUT.logical_pages)
        });
        pages.collect()
    })
}

#[track_caller]
fn check(map: &BlockMap, chip: &Content, model: &[Option<u64>]) {
    let mut seen = std::collections::HashSet::new();
    for (logical, expected) in (0..).zip(model) {
        let page = map.lookup(logical);
        let content = page.and_then(|page| chip.pages[page as usize]);
        assert_eq!(content, *expected, "logical page {logical} at {page:?}");
        assert!(page.is_none_or(|page| seen.insert(page)), "{page:?} twice");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Also in the next life of a chip whose power went at any change to it; the
    /// last write may be there or not.
    #[test]
    fn a_map_of_blocks_loses_nothing(first in writes(), more in writes(), power in 1_usize..4000) {
        let mut chip = Content::new(power, false);
        let mut map = BlockMap::new(LAYOUT);
        let mut model = vec![None; LAYOUT.logical_pages as usize];
        for (number, &page) in (1..).zip(&first) {
            chip.next = number;
            map.write(page, &mut chip);
            if chip.power == 0 {
                break;
            }
            model[page as usize] = Some(number);
        }
        if chip.power > 0 {
            check(&map, &chip, &model);
        }
        chip.power = usize::MAX;
        let mut map = BlockMap::recover(LAYOUT, &chip.stamps);
        for (logical, content) in (0..).zip(&mut model) {
            let there = map.lookup(logical).and_then(|page| chip.pages[page as usize]);
            if there != *content && there == Some(chip.next) {
                *content = there;
            }
        }
        check(&map, &chip, &model);
        for (number, &page) in (1 << 32..).zip(&more) {
            chip.next = number;
            map.write(page, &mut chip);
            model[page as usize] = Some(number);
        }
        check(&map, &chip, &model);
    }

    /// Data that was written back stays, except for the block that is being written when the power
    /// goes.
    #[test]
    fn mtdblock_loses_a_block_at_most(writes in writes(), power in 1_usize..4000) {
        let mut chip = Content::new(power, true);
        let mut mtd = MtdBlock::new(LAYOUT);
        let mut model = vec![None; LAYOUT.logical_pages as usize];
        let mut back = model.clone();
        let block_of = |page: u32| page / LAYOUT.pages_per_block;
        let mut copied = None;
        for (number, &page) in (1..).zip(&writes) {
            let leaves = copied.filter(|block| *block != block_of(page));
            mtd.write(page, &mut chip);
            if chip.power == 0 {
                break;
            }
            if leaves.is_some() {
                back.clone_from(&model);
            }
            copied = Some(block_of(page));
            chip.copy.as_mut().unwrap()[Content::place(page)] = Some(number);
            model[page as usize] = Some(number);
        }
        if chip.power > 0 {
            mtd.flush(&mut chip);
        }
        if chip.power > 0 {
            prop_assert_eq!(&chip.pages[..model.len()], &model[..]);
        }
        for (page, (there, wanted)) in (0..).zip(chip.pages.iter().zip(&back)) {
            prop_assert!(there == wanted || Some(block_of(page)) == copied, "page {}", page);
        }
    }
}

/// A known weakness of mtdblock: a power cut after the erase loses old data.
#[test]
fn mtdblock_can_lose_what_was_flushed() {
    let mut chip = Content::new(usize::MAX, true);
    let mut mtd = MtdBlock::new(LAYOUT);
    mtd.write(0, &mut chip);
    chip.copy.as_mut().unwrap()[0] = Some(1);
    mtd.flush(&mut chip);
    assert_eq!(chip.pages[0], Some(1));
    mtd.write(1, &mut chip);
    chip.power = 1;
    mtd.flush(&mut chip);
    assert_eq!(chip.pages[0], None);
}

#[test]
#[should_panic(expected = "without an erase")]
fn a_chip_cannot_be_overwritten() {
    let mut chip = Chip::new(&named("mtd-nand-128m"));
    chip.program(5, 5);
    chip.erase(1);
    chip.program(5, 5);
}

const LOOP: ClosedLoop = ClosedLoop {
    driver: drive::Driver::Queue,
    offset: 0,
    extent: 100 << 20,
    request: 4096,
    pattern: Pattern::Random,
    writes: 1.0,
    queue_depth: 1,
    requests: 500,
    cipher_mb_s: None,
    cores: 1,
    seed: 1,
};

fn seconds(name: &str, demands: ClosedLoop) -> f64 {
    let preset = Preset::named(name).unwrap();
    let drive = preset.drive(demands.extent, 1).unwrap();
    demands.run(drive).seconds / demands.requests as f64
}

#[track_caller]
fn about(seconds: f64, microseconds: f64) {
    let ratio = seconds * 1e6 / microseconds;
    assert!(
        (ratio - 1.0).abs() < 0.01,
        "{seconds} s, not {microseconds} us"
    );
}

/// Of a block of 64 pages two are written and 62 copied.
#[test]
fn a_keys_random_writes_copy_blocks() {
    let bus = 2048.0 / 33.3;
    let copy = 25.0 + 2.0 * bus + 200.0;
    let expected = 375.0 + 2048.0 / 40.0 + 62.0 * copy + 2.0 * (bus + 200.0) + 2000.0;
    about(seconds("flash-key-128m", LOOP), expected);
    // In order nothing is copied, and the interface is faster than the chip.
    let in_order = ClosedLoop {
        request: 128 << 10,
        pattern: Pattern::Sequential,
        ..LOOP
    };
    let expected = 375.0 + 2048.0 / 40.0 + 64.0 * (bus + 200.0) + 2000.0;
    about(seconds("flash-key-128m", in_order), expected);
    let reads = ClosedLoop {
        writes: 0.0,
        ..LOOP
    };
    let expected = 375.0 + 2.0 * (25.0 + bus) + 2048.0 / 40.0;
    about(seconds("flash-key-128m", reads), expected);
}

/// A block is read, erased and written for 4 KiB of it, or for all of it.
#[test]
fn mtdblocks_writes_take_a_block() {
    let nand = 10.0 + 64.0 * (25.0 + 2048.0 / 33.3) + 2000.0 + 64.0 * (2048.0 / 33.3 + 200.0);
    let whole = ClosedLoop {
        request: 128 << 10,
        pattern: Pattern::Sequential,
        ..LOOP
    };
    about(seconds("mtd-nand-128m", whole), nand);
    let nor = 10.0 + 4096.0 * (0.5 + 0.4) + 1e6 + 4096.0 * (0.4 + 217.6);
    let in_nor = |demands| ClosedLoop {
        extent: 16 << 20,
        ..demands
    };
    about(seconds("mtd-nor-16m", in_nor(whole)), nor);
    // A write into the copy in memory costs the time of the request.
    let again = ClosedLoop {
        extent: 128 << 10,
        ..LOOP
    };
    about(seconds("mtd-nand-128m", again), 10.0);
}

fn worn(name: &str) -> (FlashPreset, drive::flash::Worn) {
    let flash = named(name);
    let wear = Wear::new(&flash).unwrap();
    let worn = wear.uniform(None, [1.0, 2.0], 3, &mut |_, _| ControlFlow::Continue(()));
    (flash.clone(), worn.unwrap().unwrap())
}

/// 4 KiB of 128 are written, unless the next ones are of the same block.
#[test]
fn random_writes_wear_whole_blocks() {
    for (name, blocks) in [
        ("flash-key-128m", 977.0),
        ("mtd-nand-128m", 1024.0),
        ("mtd-nor-16m", 128.0),
    ] {
        let (flash, worn) = worn(name);
        let amplification = worn.write_amplification().unwrap();
        let expected = 32.0 * (1.0 - 1.0 / blocks);
        let ratio = amplification / expected;
        assert!((ratio - 1.0).abs() < 0.01, "{name}: {amplification}");
        let erased: u64 = worn.erases.iter().copied().map(u64::from).sum();
        let written = (erased * u64::from(flash.pages_per_block)) as f64;
        // The key's last block has pages that the host does not see.
        let quotient = written / worn.flash_pages as f64;
        assert!((quotient - 1.0).abs() < 0.005, "{name}: {quotient}");
        let most = *worn.erases.iter().max().unwrap();
        let mean = erased as f64 / worn.erases.len() as f64;
        // Nothing levels it.
        assert!(f64::from(most) > 1.2 * mean, "{name}: {most} {mean}");
        let host = worn.host_pages as f64 * flash.page.as_u64() as f64 / 1e12;
        let terabytes = worn.terabytes_written(&flash).unwrap();
        let expected = host * 1e5 / f64::from(most);
        assert!((terabytes / expected - 1.0).abs() < 1e-9);
    }
}
