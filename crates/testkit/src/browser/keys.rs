//! Keys, as both protocols name them.

/// A key that can be pressed.
pub struct Key {
    /// The `key` of its events.
    pub key: String,
    /// The `code` of its events.
    pub code: &'static str,
    /// The virtual key code.
    pub number: u32,
    /// The text that it types.
    pub text: String,
    /// The character that stands for it in WebDriver.
    pub webdriver: char,
}

impl Key {
    /// The key with this name.
    #[track_caller]
    pub fn named(name: &str) -> Self {
        let (code, number, text, webdriver) = match name {
            "Tab" => ("Tab", 9, "", '\u{e004}'),
            "Enter" => ("Enter", 13, "\r", '\u{e007}'),
            "Escape" => ("Escape", 27, "", '\u{e00c}'),
            "Space" => ("Space", 32, " ", ' '),
            "End" => ("End", 35, "", '\u{e010}'),
            "Home" => ("Home", 36, "", '\u{e011}'),
            "ArrowLeft" => ("ArrowLeft", 37, "", '\u{e012}'),
            "ArrowUp" => ("ArrowUp", 38, "", '\u{e013}'),
            "ArrowRight" => ("ArrowRight", 39, "", '\u{e014}'),
            "ArrowDown" => ("ArrowDown", 40, "", '\u{e015}'),
            other => panic!("no key {other}"),
        };
        let key = if name == "Space" { " " } else { name };
        Self {
            key: key.to_owned(),
            code,
            number,
            text: text.to_owned(),
            webdriver,
        }
    }

    /// The key that types a character.
    pub fn of(character: char) -> Self {
        Self {
            key: character.to_string(),
            code: "",
            number: 0,
            text: character.to_string(),
            webdriver: character,
        }
    }
}
