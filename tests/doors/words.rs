//! The words of the program in those of the engine.

use std::path::Path;
use volume::Format;

/// What the engine says where the program says `what`.
///
/// The program names the volume or its header at one of the `paths`, and its own options. It also
/// names what it finds where the engine names only what it misses.
pub fn of_engine(what: &str, paths: &[&Path]) -> String {
    // It also tells what an import has done by then.
    let what = what
        .split_once("; the volume in ")
        .map_or(what, |(what, _)| what);
    let named = paths
        .iter()
        .find_map(|path| what.strip_prefix(&*path.to_string_lossy()));
    if let Some(impossible) = named.and_then(|said| said.strip_prefix(": ")) {
        return impossible.to_owned();
    }
    let named = named.filter(|said| said.starts_with(' '));
    let words = match named {
        Some(found) => of_place(found),
        None => of_option(what),
    };
    words.unwrap_or_else(|| what.to_owned())
}

/// Of a place, of which this is said.
fn of_place(said: &str) -> Option<String> {
    let unsigned = " no signature of a volume";
    let lost = " has lost the start of its LUKS header";
    match said.strip_suffix(unsigned) {
        Some(" has" | " is blank, and has") => Some(format!("this has{unsigned}")),
        Some(holds) => {
            let holds = holds.strip_prefix(" holds ")?.strip_suffix(", and")?;
            Some(format!("this has{unsigned}, and holds {holds}"))
        }
        None if said == lost => Some(format!("the volume{lost}")),
        None => Some(match said.strip_suffix(", which is not supported") {
            Some(holds) => format!("this has{unsigned}, and{holds}"),
            None => format!("the device or file{said}"),
        }),
    }
}

/// Of an option that the format does not have.
fn of_option(what: &str) -> Option<String> {
    let (option, format) = what.split_once(" has no meaning for a ")?;
    let parameter = option.strip_prefix("--")?.replace('-', "_");
    let format = Format::named(format.strip_suffix(" volume")?)?;
    Some(format!(
        "`{parameter}` has no meaning for {}",
        format.article()
    ))
}
