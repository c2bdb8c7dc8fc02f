//! Differences between the program and the engine that are known.

use crate::asked::Answer;

/// What the program says, and how what the engine says ends.
pub type Known = (&'static str, &'static str);

/// When a volume is opened.
pub const OPENED: &[Known] = &[];

/// When a volume is changed.
pub const CHANGED: &[Known] = &[
    // The program has more words for what is no LUKS volume.
    (" no signature of a volume", NOT_LUKS),
    (" holds an APFS container, which is not supported", NOT_LUKS),
    (" volume has no key slots", NOT_LUKS),
];

const NOT_LUKS: &str = "this is not a LUKS2 volume";
const DONE: &str = "(done)";

/// The number of the known difference of these answers.
pub fn number(known: &[Known], engine: &Answer, program: &Answer) -> Option<usize> {
    let said = |answer: &Answer| match answer {
        Answer::Refused(refused) => refused.what.clone(),
        Answer::Opened(_) => DONE.to_owned(),
    };
    let (engine, program) = (said(engine), said(program));
    known.iter().position(|(words, of_engine)| {
        program.contains(words) && engine.ends_with(of_engine) && program != engine
    })
}
