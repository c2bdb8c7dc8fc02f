//! Colours: Okabe and Ito's palette, which colour-blind people tell apart.
//!
//! Those that are not the same on a light and on a dark page are in `style.css`.

use lab::record::Trial;

/// As SVG writes it.
pub(crate) type Colour = &'static str;

/// Text and whiskers.
pub(crate) const INK: Colour = "var(--ink)";
/// Secondary text.
pub(crate) const MUTED: Colour = "var(--muted)";
/// Grid lines and axes.
pub(crate) const GRID: Colour = "var(--grid)";
/// The band in which A/A pairs lie.
pub(crate) const BAND: Colour = "var(--band)";
/// Text on a coloured bar, in both modes.
pub(crate) const ON_COLOUR: Colour = "#000000";

/// The plain system, and what belongs to no cipher.
pub(crate) const GREY: Colour = "var(--plain)";
pub(crate) const ORANGE: Colour = "#E69F00";
pub(crate) const SKY: Colour = "#56B4E9";
pub(crate) const GREEN: Colour = "#009E73";
pub(crate) const YELLOW: Colour = "var(--yellow)";
pub(crate) const BLUE: Colour = "var(--blue)";
pub(crate) const VERMILLION: Colour = "#D55E00";
pub(crate) const PURPLE: Colour = "#CC79A7";

/// The colour of a cipher, the same in every chart of every report.
pub(crate) fn of(trial: &Trial) -> Colour {
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
        (Some((_, colour)), true, _) | (Some((_, colour)), _, None) => colour,
        // A cascade of several, and everything that is rare on disks.
        (Some(_), false, Some(_)) => INK,
        (None, _, _) => SKY,
    }
}
