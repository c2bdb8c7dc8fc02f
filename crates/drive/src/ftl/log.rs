//! [`Log`]: blocks that are written one after the other, and which of them is
//! cleaned next.

use super::policy::Policy;
use super::{CLOSED, Flags};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::VecDeque;
use std::ops::Range;

/// A contiguous part of the blocks, written at one place at a time.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// Its blocks.
    pub(super) blocks: Range<u32>,
    /// The block that is written.
    pub(super) open: u32,
    /// The next page of it.
    pub(super) next: u32,
    /// Erased blocks.
    pub(super) free: Vec<u32>,
    order: Order,
    rng: Xoshiro256PlusPlus,
}

/// The state of a policy.
#[derive(Clone, Debug)]
enum Order {
    /// Where the last search ended: blocks that are equal take turns.
    Fewest { from: u32 },
    /// Filled blocks, the oldest first.
    Age(VecDeque<u32>),
    /// Nothing, for so many random blocks.
    Random { choices: u32 },
    /// When each block was filled, in pages written before.
    Filled(Vec<u64>),
}

impl Log {
    /// All blocks erased.
    pub(super) fn new(blocks: Range<u32>, policy: Policy, rng: Xoshiro256PlusPlus) -> Self {
        let mut free: Vec<u32> = blocks.clone().rev().collect();
        Self {
            open: free.pop().expect("a log has blocks"),
            next: 0,
            free,
            order: match policy {
                Policy::Greedy => Order::Fewest { from: 0 },
                Policy::Fifo => Order::Age(VecDeque::with_capacity(blocks.len())),
                Policy::Random => Order::Random { choices: 1 },
                Policy::Choices(choices) => Order::Random { choices },
                Policy::CostBenefit => Order::Filled(vec![0; blocks.len()]),
            },
            blocks,
            rng,
        }
    }

    /// Blocks as they are found after a power loss: the open one with so many
    /// pages written, the erased ones, and the full ones from the oldest on.
    pub(super) fn found(&mut self, open: (u32, u32), free: Vec<u32>, full: &[u32]) {
        (self.open, self.next) = open;
        self.free = free;
        let open = self.open;
        for &block in full {
            self.open = block;
            // How long ago is not known any more.
            self.filled(0);
        }
        self.open = open;
    }

    /// The open block is full, after `written` pages in all.
    pub(super) fn filled(&mut self, written: u64) {
        match &mut self.order {
            Order::Age(queue) => queue.push_back(self.open),
            Order::Filled(when) => when[(self.open - self.blocks.start) as usize] = written,
            Order::Fewest { .. } | Order::Random { .. } => {}
        }
    }

    /// Takes the block that is to be cleaned; `written` is pages in all.
    pub(super) fn victim(&mut self, valid: &[Flags], pages_per_block: u32, written: u64) -> u32 {
        let first = self.blocks.start;
        let mine = &valid[self.blocks.start as usize..self.blocks.end as usize];
        let place = match &mut self.order {
            Order::Age(queue) => queue.pop_front().expect("a full block") - first,
            Order::Fewest { from } => {
                *from = fewest(mine, *from);
                *from
            }
            Order::Random { choices } => {
                let mut best = any_closed(mine, &mut self.rng);
                for _ in 1..*choices {
                    let other = any_closed(mine, &mut self.rng);
                    if mine[other as usize] < mine[best as usize] {
                        best = other;
                    }
                }
                best
            }
            Order::Filled(when) => most_worth(mine, when, pages_per_block, written),
        };
        first + place
    }

    /// `block` is cleaned for another reason than its turn.
    pub(super) fn skip_queue(&mut self, block: u32) {
        if let Order::Age(queue) = &mut self.order {
            queue.retain(|other| *other != block);
        }
    }
}

/// The next block from `from` on with the fewest valid pages.
fn fewest(valid: &[Flags], from: u32) -> u32 {
    // Two passes that vectorise: what is the least, and where.
    let least = valid.iter().copied().min().unwrap_or(0);
    let is_least = |pages: &Flags| *pages == least;
    let start = from as usize + 1;
    let after = valid
        .get(start..)
        .and_then(|rest| rest.iter().position(is_least));
    let place = match after {
        Some(place) => start + place,
        None => valid.iter().position(is_least).unwrap_or(0),
    };
    place as u32
}

fn any_closed(valid: &[Flags], rng: &mut Xoshiro256PlusPlus) -> u32 {
    loop {
        let place = below(rng, valid.len() as u32);
        if valid[place as usize] <= CLOSED {
            return place;
        }
    }
}

fn most_worth(valid: &[Flags], when: &[u64], pages_per_block: u32, written: u64) -> u32 {
    let worth = |place: usize| {
        let used = f64::from(valid[place]) / f64::from(pages_per_block);
        // An empty block is worth more than any other.
        (written - when[place]) as f64 * (1.0 - used) / (2.0 * used)
    };
    let closed = (0..valid.len()).filter(|&place| valid[place] <= CLOSED);
    let best = closed.max_by(|&a, &b| worth(a).total_cmp(&worth(b)));
    best.unwrap_or(0) as u32
}

/// A number below `end`, all alike.
pub(super) fn below(rng: &mut Xoshiro256PlusPlus, end: u32) -> u32 {
    // The bias is below 2⁻³² × end: far below what any run could tell.
    ((u128::from(rng.next_u64()) * u128::from(end)) >> 64) as u32
}
