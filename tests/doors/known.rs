//! Differences between the program and the engine that are known.

use crate::asked::Answer;

/// What the program says, and how what the engine says ends.
pub type Known = (&'static str, &'static str);

/// When a volume is opened. All of them are about the file in which an interrupted reencryption
/// keeps the header.
pub const OPENED: &[Known] = &[
    ("isn't the header of a reencryption", ""),
    ("is being reencrypted: ", REENCRYPTED),
    ("is being reencrypted: ", INTERRUPTED),
    (" is a header of the volume ", INTERRUPTED),
    ("this is a LUKS2 volume, not ", REENCRYPTED),
    (DONE, "`header` has no meaning for a plain volume"),
    (DONE, "`header` has no meaning for a cryptoloop volume"),
    (DONE, "`header` has no meaning for a loop-AES volume"),
];

/// When a volume is changed.
pub const CHANGED: &[Known] = &[
    // The engine looks at the header first, and the program at the data.
    (" holds data from byte 0 on", " bytes stored"),
    // The program has more words for what is no LUKS volume.
    (" has no LUKS header", NOT_LUKS),
    (" no signature of a volume", NOT_LUKS),
    (" holds an APFS container, which is not supported", NOT_LUKS),
    (" volume has no key slots", NOT_LUKS),
    (" no signature of a volume", UNSIGNED),
    (" holds an APFS container, which is not supported", UNSIGNED),
    // The program reads the header that is going to be replaced.
    (
        "this is a LUKS volume of version 4097",
        "would lose a LUKS volume, which it holds in place of that header",
    ),
];

const REENCRYPTED: &str = "the volume is being reencrypted";
const INTERRUPTED: &str =
    "the reencryption of this volume was interrupted in the middle of a write";
const NOT_LUKS: &str = "this is not a LUKS2 volume";
const UNSIGNED: &str = "this has no signature of a volume";
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
