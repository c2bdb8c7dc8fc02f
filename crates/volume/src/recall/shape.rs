//! [`Shape`]: strings of bytes of one length, any combination of what may stand at each place.

use cipher::Key;
use std::cmp::Ordering;
use std::convert::Infallible;
use zeroize::Zeroizing;

/// Strings of one length: one of several bytes at some places, the same byte at the others.
pub(super) struct Shape {
    /// The text with the first choice at every place, then the choices of all wild places.
    bytes: Key,
    length: usize,
    wild: Vec<Wild>,
    /// The number of the [`Recipe`](super::recipe::Recipe) that they come from.
    pub(super) recipe: usize,
}

/// A place of several choices.
#[derive(Clone, Copy)]
struct Wild {
    at: usize,
    /// Where its choices begin in the bytes.
    from: usize,
    count: usize,
}

impl Shape {
    /// `text`, with each of `sets` at its place. Places rise, and no set is empty.
    pub(super) fn new(text: &[u8], sets: &[(usize, &[u8])], recipe: usize) -> Self {
        let mut wild = Vec::new();
        let mut end = text.len();
        for &(at, set) in sets.iter().filter(|(_, set)| set.len() > 1) {
            wild.push(Wild {
                at,
                from: end,
                count: set.len(),
            });
            end += set.len();
        }
        let bytes = Key::filled(end, |bytes| {
            bytes[..text.len()].copy_from_slice(text);
            for &(at, set) in sets {
                bytes[at] = set[0];
            }
            let many = sets.iter().filter(|(_, set)| set.len() > 1);
            for (place, (_, set)) in wild.iter().zip(many) {
                bytes[place.from..][..place.count].copy_from_slice(set);
            }
            Ok::<_, Infallible>(())
        });
        Self {
            bytes: bytes.expect("nothing fails"),
            length: text.len(),
            wild,
            recipe,
        }
    }

    /// How many strings it has, or the most that fits.
    pub(super) fn count(&self) -> u128 {
        let counts = self.wild.iter().map(|wild| wild.count as u128);
        counts.fold(1, u128::saturating_mul)
    }

    /// One of the strings, of which the last place changes fastest.
    pub(super) fn string(&self, number: u64) -> Key {
        let string = Key::filled(self.length, |string| {
            string.copy_from_slice(&self.bytes.as_bytes()[..self.length]);
            let mut rest = number;
            for wild in self.wild.iter().rev() {
                let count = wild.count as u64;
                string[wild.at] = self.set(wild)[(rest % count) as usize];
                rest /= count;
            }
            Ok::<_, Infallible>(())
        });
        string.expect("nothing fails")
    }

    fn set(&self, wild: &Wild) -> &[u8] {
        &self.bytes.as_bytes()[wild.from..][..wild.count]
    }

    /// The possible bytes at a place.
    fn choices(&self, at: usize) -> &[u8] {
        match self.wild.binary_search_by_key(&at, |wild| wild.at) {
            Ok(wild) => self.set(&self.wild[wild]),
            Err(_) => &self.bytes.as_bytes()[at..=at],
        }
    }

    /// Whether both have a string.
    fn meets(&self, other: &Self) -> bool {
        self.length == other.length
            && (0..self.length).all(|at| {
                let there = other.choices(at);
                self.choices(at).iter().any(|byte| there.contains(byte))
            })
    }

    /// Shapes of all the strings that `other` does not have, none of them twice.
    pub(super) fn without(self, other: &Self) -> Vec<Self> {
        if !self.meets(other) {
            return vec![self];
        }
        let of = |wild: &Wild, shared: bool| {
            let there = other.choices(wild.at);
            let mut kept = self.set(wild).to_vec();
            kept.retain(|byte| there.contains(byte) == shared);
            Zeroizing::new(kept)
        };
        let shared: Vec<_> = self.wild.iter().map(|wild| of(wild, true)).collect();
        let mut left = Vec::new();
        // A string that is not there differs first at one place.
        for (first, wild) in self.wild.iter().enumerate() {
            let only_here = of(wild, false);
            if only_here.is_empty() {
                continue;
            }
            let sets: Vec<(usize, &[u8])> = self
                .wild
                .iter()
                .enumerate()
                .map(|(number, wild)| {
                    let set = match number.cmp(&first) {
                        Ordering::Less => &shared[number],
                        Ordering::Equal => &only_here[..],
                        Ordering::Greater => self.set(wild),
                    };
                    (wild.at, set)
                })
                .collect();
            let text = &self.bytes.as_bytes()[..self.length];
            left.push(Self::new(text, &sets, self.recipe));
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn strings(shapes: &[Shape]) -> Vec<Vec<u8>> {
        let of = |shape: &Shape| {
            let numbers = 0..shape.count() as u64;
            let all = numbers.map(|number| shape.string(number).as_bytes().to_vec());
            all.collect::<Vec<_>>()
        };
        shapes.iter().flat_map(of).collect()
    }

    #[test]
    fn strings_in_their_order() {
        let shape = Shape::new(b"x.y.", &[(1, b"ab"), (3, b"123")], 0);
        let expected = ["xay1", "xay2", "xay3", "xby1", "xby2", "xby3"];
        assert!(strings(&[shape]).iter().eq(&expected.map(str::as_bytes)));
        assert_eq!(strings(&[Shape::new(b"", &[], 0)]), [b""]);
        assert_eq!(Shape::new(b".", &[(0, b"z")], 0).string(0).as_bytes(), b"z");
    }

    #[test]
    fn what_is_left_is_the_difference() {
        type Sets = [(usize, &'static [u8]); 3];
        let all: [Sets; 6] = [
            [(0, b"abc"), (1, b"abc"), (2, b"abc")],
            [(0, b"ab"), (1, b"cd"), (2, b"a")],
            [(0, b"c"), (1, b"a"), (2, b"xa")],
            [(0, b"xyz"), (1, b"abc"), (2, b"abc")],
            [(0, b"a"), (1, b"b"), (2, b"c")],
            [(0, b"cba"), (1, b"bca"), (2, b"a")],
        ];
        for one in &all {
            for other in &all {
                let here = Shape::new(b"...", one, 0);
                let there = Shape::new(b"...", other, 1);
                let mut expected: BTreeSet<_> = strings(&[here]).into_iter().collect();
                let taken = strings(&[Shape::new(b"...", other, 1)]);
                expected.retain(|string| !taken.contains(string));
                let left = strings(&Shape::new(b"...", one, 0).without(&there));
                assert_eq!(left.len(), expected.len(), "a string is there twice");
                assert_eq!(left.into_iter().collect::<BTreeSet<_>>(), expected);
            }
        }
        let longer = Shape::new(b"abcd", &[], 0);
        let shape = Shape::new(b"abc", &[], 0);
        assert_eq!(strings(&shape.without(&longer)), [b"abc"]);
    }
}
