//! The translation layer against a plain list: every page is found, mapped
//! once and none is lost, also when the power goes at any write to the flash.

extern crate cryptmark_drive as drive;

use drive::DriveError;
use drive::ftl::{Flash, Ftl, Layout, LogLayout, Policy, Stamps, WearLevelling};
use proptest::prelude::*;

const LAYOUT: Layout = Layout {
    blocks: 24,
    pages_per_block: 8,
    logical_pages: 130,
};

/// A flash that holds a number in each page, until its power goes.
struct Chips {
    stamps: Stamps,
    content: Vec<Option<u64>>,
    /// The number that the host writes with the next program.
    next: u64,
    /// Changes that still happen.
    power: usize,
}

impl Chips {
    fn new(power: usize) -> Self {
        Self {
            stamps: Stamps::new(LAYOUT),
            content: vec![None; LAYOUT.pages() as usize],
            next: 0,
            power,
        }
    }

    fn powered(&mut self) -> bool {
        let powered = self.power > 0;
        self.power = self.power.saturating_sub(1);
        powered
    }
}

impl Flash for Chips {
    fn program(&mut self, page: u32, logical: u32) {
        if self.powered() {
            self.stamps.program(page, logical);
            self.content[page as usize] = Some(self.next);
        }
    }

    fn relocate(&mut self, from: u32, to: u32) {
        if self.powered() {
            self.stamps.relocate(from, to);
            self.content[to as usize] = self.content[from as usize];
        }
    }

    fn erase(&mut self, block: u32) {
        if self.powered() {
            self.stamps.erase(block);
            let first = (block * LAYOUT.pages_per_block) as usize;
            self.content[first..first + LAYOUT.pages_per_block as usize].fill(None);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write(u32),
    Discard(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let page = 0..LAYOUT.logical_pages;
    let step = prop_oneof![
        4 => page.clone().prop_map(Step::Write),
        1 => page.prop_map(Step::Discard),
    ];
    prop::collection::vec(step, 0..1500)
}

const POLICIES: [Policy; 5] = [
    Policy::Greedy,
    Policy::Fifo,
    Policy::Random,
    Policy::Choices(3),
    Policy::CostBenefit,
];

fn policies() -> impl Strategy<Value = Policy> {
    prop::sample::select(POLICIES.to_vec())
}

fn levelling() -> impl Strategy<Value = WearLevelling> {
    prop::sample::select(vec![
        WearLevelling::None,
        WearLevelling::Dynamic,
        WearLevelling::Static { spread: 3 },
    ])
}

fn log(blocks: u32, logical_pages: u32) -> LogLayout {
    LogLayout {
        blocks,
        logical_pages,
    }
}

/// One log, or two.
fn logs() -> impl Strategy<Value = Vec<LogLayout>> {
    let two = vec![log(8, 44), log(16, 86)];
    prop::sample::select(vec![vec![LAYOUT.whole()], two])
}

/// Pages alternate between the logs; a page always goes to the same one.
fn log_of(logs: &[LogLayout], logical: u32) -> usize {
    match logs.len() {
        1 => 0,
        // The first log has room for a third of the pages.
        _ => usize::from(!logical.is_multiple_of(3)),
    }
}

#[track_caller]
fn check(ftl: &Ftl, chips: &Chips, model: &[Option<u64>]) {
    let mut seen = std::collections::HashSet::new();
    for (logical, expected) in (0..).zip(model) {
        let page = ftl.lookup(logical);
        let content = page.and_then(|page| chips.content[page as usize]);
        assert_eq!(content, *expected, "logical page {logical} at {page:?}");
        assert!(
            page.is_none_or(|page| seen.insert(page)),
            "{page:?} has two owners"
        );
    }
    assert_eq!(ftl.in_use() as usize, seen.len());
}

/// Does the steps; the model, and the place of the step in which the power goes.
fn play(ftl: &mut Ftl, chips: &mut Chips, steps: &[Step], logs: &[LogLayout]) -> Vec<Option<u64>> {
    let mut model = vec![None; LAYOUT.logical_pages as usize];
    for (number, step) in (1..).zip(steps) {
        match *step {
            Step::Write(logical) => {
                chips.next = number;
                ftl.write(log_of(logs, logical), logical, chips);
                if chips.power == 0 {
                    return model;
                }
                model[logical as usize] = Some(number);
            }
            Step::Discard(logical) => {
                let had = model[logical as usize].is_some();
                assert_eq!(ftl.discard(logical), had);
                if chips.powered() {
                    chips.stamps.discard(logical);
                    model[logical as usize] = None;
                }
            }
        }
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_page_is_found(
        steps in steps(), policy in policies(), levelling in levelling(), logs in logs(), seed: u64,
    ) {
        let mut ftl = Ftl::split(LAYOUT, policy, seed, &logs).unwrap().levelling(levelling);
        let mut chips = Chips::new(usize::MAX);
        let model = play(&mut ftl, &mut chips, &steps, &logs);
        check(&ftl, &chips, &model);
        let writes = steps.iter().filter(|step| matches!(step, Step::Write(_))).count();
        prop_assert_eq!(ftl.counts().host, writes as u64);
    }

    /// The last write may be there or not; all before it are.
    #[test]
    fn nothing_is_lost_with_the_power(
        steps in steps(), more in steps(), policy in policies(), logs in logs(), seed: u64, power in 1_usize..2000,
    ) {
        let mut ftl = Ftl::split(LAYOUT, policy, seed, &logs).unwrap();
        let mut chips = Chips::new(power);
        let mut model = play(&mut ftl, &mut chips, &steps, &logs);
        chips.power = usize::MAX;
        let stamps = chips.stamps.clone();
        let mut found = Ftl::recover(LAYOUT, policy, seed, &logs, &stamps, &mut chips).unwrap();
        // Of the write in which the power went, both are right.
        for (logical, content) in (0..).zip(&mut model) {
            let page = found.lookup(logical);
            let there = page.and_then(|page| chips.content[page as usize]);
            if there != *content && there == Some(chips.next) {
                *content = there;
            }
        }
        check(&found, &chips, &model);
        // And it goes on.
        for (number, step) in (1 << 32..).zip(&more) {
            match *step {
                Step::Write(logical) => {
                    chips.next = number;
                    found.write(log_of(&logs, logical), logical, &mut chips);
                    model[logical as usize] = Some(number);
                }
                Step::Discard(logical) => {
                    found.discard(logical);
                    model[logical as usize] = None;
                }
            }
        }
        check(&found, &chips, &model);
    }
}

/// Blocks that hold what never changes are worn as the others are.
#[test]
fn static_wear_levelling_keeps_blocks_together() {
    let spread = |levelling| {
        let layout = Layout::new(256, 16, 0.2).unwrap();
        let mut ftl = Ftl::new(layout, Policy::Greedy, 1)
            .unwrap()
            .levelling(levelling);
        for logical in 0..layout.logical_pages {
            ftl.write(0, logical, &mut ());
        }
        // A tenth of the pages takes all writes.
        for number in 0..400_000_u32 {
            let logical = number.wrapping_mul(2_654_435_761) % (layout.logical_pages / 10);
            ftl.write(0, logical, &mut ());
        }
        let erases = ftl.erases();
        erases.iter().max().unwrap() - erases.iter().min().unwrap()
    };
    assert!(spread(WearLevelling::None) > 300);
    assert!(spread(WearLevelling::Static { spread: 20 }) <= 30);
}

/// Two blocks and a page more than it holds are enough for a log, less is refused.
#[test]
fn the_least_spare_pages() {
    let layout = Layout {
        blocks: 24,
        pages_per_block: 8,
        logical_pages: 24 * 8 - 34,
    };
    let few = 6 * 8 - 17;
    let least = [log(6, few), log(18, layout.logical_pages - few)];
    for (policy, levelling) in POLICIES.into_iter().flat_map(|policy| {
        [WearLevelling::None, WearLevelling::Static { spread: 3 }].map(|levels| (policy, levels))
    }) {
        let ftl = Ftl::split(layout, policy, 1, &least).unwrap();
        let mut ftl = ftl.levelling(levelling);
        for number in 0..20_000_u32 {
            let logical = number.wrapping_mul(2_654_435_761) % layout.logical_pages;
            ftl.write(usize::from(logical >= few), logical, &mut ());
        }
        assert_eq!(ftl.in_use(), layout.logical_pages);
    }
    let less = [log(6, few + 1), log(18, layout.logical_pages - few - 1)];
    let refused = Ftl::split(layout, Policy::Greedy, 1, &less).expect_err("a log is too full");
    let (spare, needed) = (16, 17);
    assert_eq!(refused, DriveError::NoSpare { spare, needed });
}

#[test]
fn impossible_layouts() {
    for (blocks, pages, spare, says) in [
        (8192, 64, 0.0, "over-provisioning"),
        (8192, 64, -0.1, "over-provisioning"),
        (8192, 64, f64::NAN, "over-provisioning"),
        (0, 64, 0.1, "blocks"),
        (3, 64, 0.1, "blocks"),
        (u32::MAX, 64, 0.1, "blocks"),
        (8192, 0, 0.1, "pages-per-block"),
        (8192, 16385, 0.1, "pages-per-block"),
        (100, 64, 0.005, "spare pages"),
    ] {
        let error = Layout::new(blocks, pages, spare).expect_err("it is impossible");
        assert!(error.to_string().contains(says), "{error}");
    }
}
