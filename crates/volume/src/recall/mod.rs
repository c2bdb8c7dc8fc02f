//! A passphrase of which its owner still knows something: what it may have been, and the search
//! for it on one volume.
//!
//! ```text
//! secret or pattern → recipes → shapes, no string twice → numbered candidates → search
//! ```
//!
//! Every candidate costs what the volume's key derivation costs. A candidate is known by its
//! number, so a search can go on where it ended, and needs no memory for what it has tried.

mod content;
mod error;
mod layout;
mod pattern;
mod pims;
mod recipe;
mod search;
mod shape;
#[cfg(test)]
mod tests;
mod text;

pub use content::Content;
pub use error::RecallError;
pub use layout::{Layout, UnknownLayout};
pub use pattern::{Characters, UnknownSet};
pub use pims::{Pims, UnknownPims};
pub use recipe::{Changes, Layouts};
pub use search::{End, Report, Search, Watch, check_format};

use crate::Secret;
use cipher::Key;
use pattern::Spot;
use recipe::Recipe;
use shape::Shape;
use text::Encoding;

/// The most candidates of a search.
pub const MOST_CANDIDATES: u64 = 1 << 40;

/// The most shapes of a search, each of which has pages of its own.
const MOST_SHAPES: usize = 4096;

/// The longest secret whose characters are changed, bytes.
const MOST_TEXT: usize = 64 << 10;

/// The version of the candidates' order. It is part of what a kept search is recognised by.
const ORDER: u32 = 2;

/// The facts about a secret that its owner still knows.
#[derive(Debug)]
pub struct Known<'a> {
    /// The passphrase or key file, or a pattern.
    pub secret: &'a Secret,
    /// The characters that `?` stands for, if the secret is a pattern. In a pattern, `[abc]` stands
    /// for one of its characters. A backslash before `?`, `[`, `]` or another backslash makes it
    /// literal.
    pub pattern: Option<&'a Characters>,
    /// The keyboards, if it may have been typed on another one.
    pub layouts: Option<Layouts>,
    /// The PIMs to try; `None` if the opening has it.
    pub pims: Option<Pims>,
}

impl Known<'_> {
    /// The possible passphrases, beginning with the secret as given. Then come other line ends,
    /// other forms of Unicode, and typing slips. These changes are combined, but a pattern has only
    /// one of them at a time.
    ///
    /// # Errors
    /// [`RecallError`].
    pub fn candidates(&self) -> Result<Candidates, RecallError> {
        let (bytes, is_file) = match self.secret {
            Secret::Passphrase(key) => (key.as_bytes(), false),
            Secret::KeyFile(key) => (key.as_bytes(), true),
            Secret::VolumeKey(_) => return Err(RecallError::VolumeKey),
        };
        let end = text::line_end(bytes);
        let bytes = &bytes[..bytes.len() - end.len()];
        let source = self.source(bytes)?;
        // All kinds of changes, or one.
        let most = if self.pattern.is_some() { 1 } else { 4 };
        let mut recipes = Recipe::all(matches!(source, Source::Text(..)), self.layouts, most);
        if self.pattern.is_none() {
            let is_text = matches!(source, Source::Text(..));
            recipes.extend(Recipe::of_files().filter(|recipe| is_text || recipe.is_undressed()));
        }
        let pims = self.pims.map_or(1, |pims| pims.count());
        let mut candidates = Candidates {
            shapes: Vec::new(),
            starts: Vec::new(),
            count: 0,
            recipes,
            is_file,
            pims: self.pims,
        };
        for number in 0..candidates.recipes.len() {
            let recipe = &candidates.recipes[number];
            let end = recipe.ending.bytes(end);
            let made = match &source {
                _ if recipe.is_of_files() => {
                    let dressed = recipe.dress.put_on(bytes, end, is_file);
                    dressed
                        .map(|whole| Shape::new(&whole, &[], number))
                        .into_iter()
                        .collect()
                }
                Source::Text(spots, encoding) => {
                    let spots = text::changed(spots, recipe)?;
                    text::shapes(&spots, recipe.form, *encoding, end, number)?
                }
                Source::Bytes => {
                    let whole = zeroize::Zeroizing::new([bytes, end].concat());
                    vec![Shape::new(&whole, &[], number)]
                }
            };
            for shape in made {
                candidates.add(shape, pims)?;
            }
        }
        Ok(candidates)
    }

    /// The part of the secret to change: the characters of a text, or the end of bytes that are not
    /// text.
    fn source(&self, bytes: &[u8]) -> Result<Source, RecallError> {
        let encoding = Encoding::of(bytes).filter(|_| bytes.len() <= MOST_TEXT);
        match (self.pattern, encoding) {
            (Some(characters), Some(Encoding::Utf8)) => {
                let text = Encoding::Utf8.decoded(bytes);
                let spots = pattern::parse(&text, characters)?;
                Ok(Source::Text(spots, Encoding::Utf8))
            }
            (Some(_), _) => Err(RecallError::NotText),
            (None, Some(encoding)) => {
                let text = encoding.decoded(bytes);
                let spots = text.chars().map(Spot::known).collect();
                Ok(Source::Text(spots, encoding))
            }
            (None, None) if self.layouts.is_some() => Err(RecallError::NotTyped),
            (None, None) => Ok(Source::Bytes),
        }
    }
}

/// The input of the recipes.
enum Source {
    /// Places of characters, without the end of the line.
    Text(Vec<Spot>, Encoding),
    /// A key that is not text: only its end changes.
    Bytes,
}

/// The candidates for a passphrase, numbered from 0. No two are the same.
pub struct Candidates {
    shapes: Vec<Shape>,
    /// The first number of each shape.
    starts: Vec<u64>,
    count: u64,
    recipes: Vec<Recipe>,
    is_file: bool,
    pims: Option<Pims>,
}

/// One of them.
#[derive(Debug)]
pub struct Candidate {
    /// The secret to open the volume with.
    pub secret: Secret,
    /// The PIM, if several are tried.
    pub pim: Option<u32>,
    /// The changes made to the secret that was given.
    pub changes: Changes,
}

impl Candidates {
    /// Adds what no earlier shape has.
    fn add(&mut self, shape: Shape, pims: u64) -> Result<(), RecallError> {
        // Before anything is worked out for it.
        let whole = shape.count().saturating_mul(u128::from(pims));
        if whole > u128::from(MOST_CANDIDATES) {
            return Err(RecallError::Many(whole));
        }
        let mut new = vec![shape];
        for earlier in &self.shapes {
            new = new
                .into_iter()
                .flat_map(|shape| shape.without(earlier))
                .collect();
            if new.len() > MOST_SHAPES {
                return Err(RecallError::Tangled);
            }
        }
        for shape in new {
            let more = shape.count().saturating_mul(u128::from(pims));
            let count = more.saturating_add(u128::from(self.count));
            let Some(count) = u64::try_from(count)
                .ok()
                .filter(|count| *count <= MOST_CANDIDATES)
            else {
                return Err(RecallError::Many(count));
            };
            if self.shapes.len() == MOST_SHAPES {
                return Err(RecallError::Tangled);
            }
            self.starts.push(self.count);
            self.shapes.push(shape);
            self.count = count;
        }
        Ok(())
    }

    /// How many there are, at most [`MOST_CANDIDATES`].
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The one with this number, which is below the count.
    ///
    /// # Panics
    /// For another number.
    pub fn candidate(&self, number: u64) -> Candidate {
        assert!(number < self.count, "there is no such candidate");
        let place = self.starts.partition_point(|start| *start <= number) - 1;
        let shape = &self.shapes[place];
        let within = number - self.starts[place];
        let strings = shape.count() as u64;
        // All strings with one PIM, then with the next, which costs more.
        let string: Key = shape.string(within % strings);
        let pim = self.pims.map(|pims| pims.nth(within / strings));
        Candidate {
            secret: match self.is_file {
                true => Secret::KeyFile(string),
                false => Secret::Passphrase(string),
            },
            pim,
            changes: Changes::of(&self.recipes[shape.recipe], pim),
        }
    }

    /// The changes that any of them makes to the secret that was given.
    pub fn changes(&self) -> Changes {
        let used = self.shapes.iter().map(|shape| &self.recipes[shape.recipe]);
        Changes::of_all(used)
    }

    /// The PIMs that are tried, if there are several.
    pub fn pims(&self) -> Option<Pims> {
        self.pims
    }

    /// The work of the candidates from `number` on, as a sum of what each PIM costs.
    fn work_from(&self, number: u64, cost: impl Fn(Option<u32>) -> f64) -> f64 {
        let pims = self.pims.map_or(1, |pims| pims.count());
        let costs: Vec<f64> = (0..pims)
            .map(|nth| cost(self.pims.map(|pims| pims.nth(nth))))
            .collect();
        let of_shape = |(shape, start): (&Shape, &u64)| {
            let strings = shape.count() as u64;
            let skipped = number.saturating_sub(*start);
            let left = |(nth, cost): (u64, &f64)| {
                let gone = skipped.saturating_sub(nth * strings).min(strings);
                (strings - gone) as f64 * cost
            };
            (0..).zip(&costs).map(left).sum::<f64>()
        };
        self.shapes.iter().zip(&self.starts).map(of_shape).sum()
    }
}
