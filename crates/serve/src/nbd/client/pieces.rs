//! [`Pieces`]: which bytes of a read have arrived.

use std::collections::BTreeMap;
use std::ops::Range;

/// Pieces that do not touch; a server that sends what was asked for in order has one.
const MOST: usize = 4096;

/// The parts of a buffer that chunks have filled, each once.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Ends by starts; none touches another.
    ends: BTreeMap<usize, usize>,
}

impl Pieces {
    /// Adds `piece`; false where it is empty, or was there in part, or there are too
    /// many of them.
    #[must_use]
    pub fn add(&mut self, piece: &Range<usize>) -> bool {
        let before = self.ends.range(..=piece.start).next_back();
        let before = before.map(|(&start, &end)| (start, end));
        let after = self.ends.range(piece.start..).next();
        let after = after.map(|(&start, &end)| (start, end));
        if piece.is_empty()
            || before.is_some_and(|(_, end)| end > piece.start)
            || after.is_some_and(|(start, _)| start < piece.end)
        {
            return false;
        }
        let start = match before {
            Some((start, end)) if end == piece.start => start,
            _ => piece.start,
        };
        let end = match after {
            Some((next, end)) if next == piece.end => {
                self.ends.remove(&next);
                end
            }
            _ => piece.end,
        };
        self.ends.insert(start, end);
        self.ends.len() <= MOST
    }

    /// Whether all of the first `length` bytes have arrived.
    pub fn are_all_of(&self, length: usize) -> bool {
        length == 0 || self.ends.get(&0) == Some(&length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_in_any_order_and_once() {
        let mut pieces = Pieces::default();
        assert!(pieces.are_all_of(0) && !pieces.are_all_of(10));
        for piece in [4..6, 0..2, 8..10, 2..4] {
            assert!(pieces.add(&piece));
            assert!(!pieces.are_all_of(10));
        }
        for again in [0..1, 5..7, 3..9, 0..10, 7..7, 9..12] {
            assert!(!pieces.add(&again), "{again:?}");
        }
        assert!(pieces.add(&(6..8)));
        assert!(pieces.are_all_of(10) && !pieces.are_all_of(9) && !pieces.are_all_of(11));
    }

    #[test]
    fn there_are_not_too_many() {
        let mut pieces = Pieces::default();
        let added = (0..MOST + 1).filter(|&at| pieces.add(&(2 * at..2 * at + 1)));
        assert_eq!(added.count(), MOST);
    }
}
