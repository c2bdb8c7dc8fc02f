//! Raw flash: erase blocks on one chip, with a trivial layer over them or with
//! the one that Linux gives to an MTD device.
//!
//! ```text
//! reading  a page:  tR, then the bus
//! writing  a page:  the bus, then tPROG      only behind the last one written of its block
//! erasing a block:  tBERS                    before anything in it is written again
//! ```
//!
//! The chip does one thing at a time. jffs2 works on the chip itself, [`RawFlash`]. A [`BlockMap`],
//! as in USB keys, or an [`MtdBlock`], as Linux's `mtdblock`, makes a block device of it.

mod at_work;
mod block_map;
mod chip;
mod mtdblock;
mod preset;
mod wear;

pub use at_work::FlashDrive;
pub use block_map::BlockMap;
pub use chip::{Chip, RawFlash};
pub use mtdblock::MtdBlock;
pub use preset::{FlashLayer, FlashPreset};
pub use wear::{Wear, Worn};
