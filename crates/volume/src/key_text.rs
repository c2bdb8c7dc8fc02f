//! Volume keys as other programs print them: hexadecimal, base64, or a line of `dmsetup table`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cipher::Key;
use zeroize::Zeroizing;

/// The longest text that is looked at, bytes.
const MOST_TEXT: usize = 8192;

/// The key that `given` is, or the only one that it is as a text. `fits` knows the lengths of keys.
/// Bytes that fit are never taken for a text, and neither is a text that can be two keys.
pub(crate) fn key_in(given: &Key, fits: impl Fn(usize) -> bool) -> Key {
    let bytes = given.as_bytes();
    let as_it_is = || Key::from_slice(bytes);
    if fits(bytes.len()) || bytes.len() > MOST_TEXT {
        return as_it_is();
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return as_it_is();
    };
    let text = text.trim_start_matches('\u{feff}').trim();
    let found = [in_table(text), hexadecimal(text), base64(text)];
    let mut found = found.into_iter().flatten().filter(|key| fits(key.len()));
    match (found.next(), found.next()) {
        (Some(key), None) => Key::from_slice(&key),
        _ => as_it_is(),
    }
}

/// Digits in pairs, perhaps with spaces or colons between them and `0x` before them.
fn hexadecimal(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let text = text.strip_prefix("0x").unwrap_or(text);
    let is_between = |c: char| c == ':' || c.is_ascii_whitespace();
    let digits = text.chars().filter(|c| !is_between(*c));
    let mut key = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut high = None;
    for digit in digits {
        let digit = digit.to_digit(16)? as u8;
        match high.take() {
            None => high = Some(digit << 4),
            Some(high) => key.push(high | digit),
        }
    }
    high.is_none().then_some(key)
}

fn base64(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut joined = Zeroizing::new(String::with_capacity(text.len()));
    joined.extend(text.split_ascii_whitespace());
    STANDARD.decode(joined.as_bytes()).ok().map(Zeroizing::new)
}

/// The key of the only line of a table: `NAME: START LENGTH crypt CIPHER KEY …`.
fn in_table(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut words = text.split_ascii_whitespace();
    words.find(|word| *word == "crypt")?;
    let key = hexadecimal(words.nth(1)?)?;
    (!text.contains('\n')).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_keys_where_bytes_are_none() {
        let key: Vec<u8> = (200..232).collect();
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let table = format!("0 2048 crypt aes-xts-plain64 {digits} 0 7:0 8");
        let pairs: Vec<_> = key.iter().map(|byte| format!("{byte:02X}")).collect();
        for text in [
            digits.clone(),
            digits.to_uppercase() + "\r\n",
            format!("0x{digits}\n"),
            format!("\u{feff}{digits}"),
            pairs.join(":"),
            pairs.join(" "),
            STANDARD.encode(&key) + "\n",
            format!("{}\n", table),
            format!("name: {table}"),
        ] {
            let found = key_in(&Key::from_slice(text.as_bytes()), |length| length == 32);
            assert_eq!(found.as_bytes(), key, "{text}");
            // Bytes of the right length are a key, whatever they look like.
            let found = key_in(&Key::from_slice(text.as_bytes()), |length| length > 31);
            assert_eq!(found.as_bytes(), text.as_bytes());
        }
        for text in [
            digits[1..].to_owned(),
            format!("{table}\n{table}\n"),
            String::new(),
            "key".to_owned(),
        ] {
            let found = key_in(&Key::from_slice(text.as_bytes()), |length| length == 32);
            assert_eq!(found.as_bytes(), text.as_bytes());
        }
        // Two lengths fit: it could be either.
        let found = key_in(&Key::from_slice(digits.as_bytes()), |length| {
            length == 32 || length == 48
        });
        assert_eq!(found.as_bytes(), digits.as_bytes());
    }
}
