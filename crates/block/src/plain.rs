//! Names of others' in commands that people are told to run.

use std::path::Path;

/// A path as a shell takes it for one word, in a command that the user is told to run.
pub fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_bare = |letter: char| letter.is_alphanumeric() || "/._-+:@%,=".contains(letter);
    let is_hidden = |letter: char| steers(letter) || matches!(letter, '\n' | '\t');
    if text.chars().all(is_bare) && !text.is_empty() {
        return text;
    }
    if !text.contains(is_hidden) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let mut quoted = String::from("$'");
    for letter in text.chars() {
        match letter {
            '\'' | '\\' => quoted.extend(['\\', letter]),
            letter if is_hidden(letter) => quoted += &format!("\\u{:04x}", u32::from(letter)),
            letter => quoted.push(letter),
        }
    }
    quoted + "'"
}

/// Whether a terminal would obey the letter, or print those behind it in another direction.
#[doc(hidden)]
pub fn steers(letter: char) -> bool {
    let is_kept = matches!(letter, '\n' | '\t');
    let turns = matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    (letter.is_control() && !is_kept) || turns
}
