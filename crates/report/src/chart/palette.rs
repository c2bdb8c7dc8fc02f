//! Colours: Okabe and Ito's palette, which colour-blind people tell apart.
//!
//! The grey tones are stand-ins that `style.css` replaces by the page's own.

use lab::record::Trial;
use plotters::style::RGBColor;

/// Text and whiskers.
pub(crate) const INK: RGBColor = RGBColor(0x1b, 0x1b, 0x1b);
/// Secondary text.
pub(crate) const MUTED: RGBColor = RGBColor(0x5e, 0x5e, 0x5e);
/// Grid lines and axes.
pub(crate) const GRID: RGBColor = RGBColor(0xd9, 0xd9, 0xd9);
/// The band in which A/A pairs lie.
pub(crate) const BAND: RGBColor = RGBColor(0xe6, 0xe6, 0xe6);
/// Text on a coloured bar, in both modes.
pub(crate) const ON_COLOUR: RGBColor = RGBColor(0, 0, 0);

/// The plain system, and what belongs to no cipher.
pub(crate) const GREY: RGBColor = RGBColor(0x8c, 0x8c, 0x8c);
pub(crate) const ORANGE: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
pub(crate) const SKY: RGBColor = RGBColor(0x56, 0xb4, 0xe9);
pub(crate) const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);
pub(crate) const YELLOW: RGBColor = RGBColor(0xf0, 0xe4, 0x42);
pub(crate) const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
pub(crate) const VERMILLION: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
pub(crate) const PURPLE: RGBColor = RGBColor(0xcc, 0x79, 0xa7);

/// The colour of a cipher, the same in every chart of every report.
pub(crate) fn of(trial: &Trial) -> RGBColor {
    let Some(cipher) = trial.cipher.as_deref() else {
        return GREY;
    };
    let known = [
        ("adiantum", ORANGE),
        ("serpent", VERMILLION),
        ("twofish", GREEN),
        ("camellia", PURPLE),
        ("aes", BLUE),
    ];
    let mut named = known.iter().filter(|(name, _)| cipher.contains(name));
    match (named.next(), cipher.contains("adiantum"), named.next()) {
        (Some((_, colour)), true, _) | (Some((_, colour)), _, None) => *colour,
        // A cascade of several, and everything that is rare on disks.
        (Some(_), false, Some(_)) => INK,
        (None, _, _) => SKY,
    }
}
