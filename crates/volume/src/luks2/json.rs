//! JSON out of a header: bounded, without duplicates, and read by name.

use super::numbers::{self, Shown};
use crate::Damage;
use crate::damage::printable;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// Objects and lists within one another, at most: json-c's limit, and so
/// cryptsetup's.
const MOST_DEPTH: u32 = 32;

/// Values in a header, at most: a JSON of 4 MiB that is all brackets must not
/// take a hundred times its size.
const MOST_VALUES: usize = 1 << 16;

/// The JSON object that begins `area`; what follows it must be zeros.
pub(super) fn object(area: &[u8]) -> Result<Map<String, Value>, Damage> {
    let kind = |expected| Damage::kind("json", expected);
    let end = area.iter().position(|&byte| byte == 0);
    let end = end.ok_or_else(|| kind("text that ends with a zero byte"))?;
    let (text, behind) = area.split_at(end);
    let values = Cell::new(0);
    let hidden = numbers::hide(text);
    let mut reader = serde_json::Deserializer::from_slice(&hidden);
    let bounded = Bounded {
        values: &values,
        depth: 0,
    };
    let value = bounded
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| Damage::Json(Arc::new(error)))?;
    let Value::Object(object) = value else {
        return Err(kind("an object"));
    };
    match text.starts_with(b"{") && behind.iter().all(|&byte| byte == 0) {
        true => Ok(object),
        false => Err(kind(
            "an object with nothing before it and only zeros after it",
        )),
    }
}

/// The text of `object` as it was read, but for spaces between values.
pub(super) fn text(object: &Map<String, Value>) -> String {
    let mut text = String::new();
    write_object(object, &mut text);
    text
}

fn write_object(object: &Map<String, Value>, text: &mut String) {
    text.push('{');
    for (at, (name, value)) in object.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        write_text(name, text);
        text.push(':');
        write_value(value, text);
    }
    text.push('}');
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => write_object(object, text),
        Value::Array(values) => {
            text.push('[');
            for (at, value) in values.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_value(value, text);
            }
            text.push(']');
        }
        Value::String(value) => write_text(value, text),
        Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
    }
}

fn write_text(value: &str, text: &mut String) {
    match numbers::shown(value) {
        Shown::Number(number) => text.push_str(number),
        Shown::Text(value) => text.push_str(&Value::from(value).to_string()),
    }
}

/// Reads one value, and counts it.
#[derive(Clone, Copy)]
struct Bounded<'a> {
    values: &'a Cell<usize>,
    depth: u32,
}

impl Bounded<'_> {
    /// The same for what is within a value.
    fn deeper<E: Error>(self) -> Result<Self, E> {
        let depth = self.depth + 1;
        match depth {
            ..MOST_DEPTH => Ok(Self { depth, ..self }),
            _ => Err(E::custom(format!("more than {} levels", MOST_DEPTH - 1))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        self.values.set(self.values.get() + 1);
        if self.values.get() > MOST_VALUES {
            return Err(D::Error::custom(format!("more than {MOST_VALUES} values")));
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let (mut values, within) = (Vec::new(), self.deeper()?);
        while let Some(value) = from.next_element_seed(within)? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let (mut object, within) = (Map::new(), self.deeper()?);
        while let Some(name) = from.next_key::<String>()? {
            if let Shown::Number(_) = numbers::shown(&name) {
                return Err(A::Error::custom("a number as the name of a member"));
            }
            let value = from.next_value_seed(within)?;
            if object.contains_key(&name) {
                let name = printable(&name);
                return Err(A::Error::custom(format!("`{name}` occurs twice")));
            }
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

/// A value and the way to it, for errors.
#[derive(Clone)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    path: String,
}

impl<'a> Node<'a> {
    /// The member `name` of the outermost object.
    pub(super) fn root(object: &'a Map<String, Value>, name: &str) -> Result<Self, Damage> {
        match object.get(name) {
            Some(value) => Ok(Self {
                value,
                path: name.to_owned(),
            }),
            None => Err(Damage::missing(name)),
        }
    }

    /// The way here.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    fn kind(&self, expected: &'static str) -> Damage {
        Damage::kind(self.path.as_str(), expected)
    }

    /// A number here that makes no sense.
    pub(super) fn refuse(&self, value: u64, rule: impl Into<Box<str>>) -> Damage {
        Damage::number(self.path.as_str(), value, rule)
    }

    /// So many bytes here, which make no sense.
    pub(super) fn refuse_length(&self, bytes: usize, rule: impl Into<Box<str>>) -> Damage {
        Damage::length(self.path.as_str(), bytes, rule)
    }

    /// A text here that is not known.
    pub(super) fn unknown(&self, value: &str) -> Damage {
        Damage::unknown(self.path.as_str(), value)
    }

    /// The object here.
    pub(super) fn object(&self) -> Result<&'a Map<String, Value>, Damage> {
        self.value.as_object().ok_or_else(|| self.kind("an object"))
    }

    /// The member `name`, which must be there.
    pub(super) fn get(&self, name: &str) -> Result<Self, Damage> {
        self.find(name)?
            .ok_or_else(|| Damage::missing(format!("{}.{name}", self.path)))
    }

    /// The member `name`, if it is there.
    pub(super) fn find(&self, name: &str) -> Result<Option<Self>, Damage> {
        let value = self.object()?.get(name);
        Ok(value.map(|value| Self {
            value,
            path: format!("{}.{name}", self.path),
        }))
    }

    /// Refuses a member `name` that is not the text `known`.
    pub(super) fn must_be(&self, name: &str, known: &str) -> Result<(), Damage> {
        let member = self.get(name)?;
        match member.text()? {
            text if text == known => Ok(()),
            other => Err(member.unknown(other)),
        }
    }

    /// The members of an object whose names are numbers.
    pub(super) fn numbered(&self) -> Result<Vec<(u32, Self)>, Damage> {
        let member = |(name, value): (&String, &'a Value)| {
            let path = format!("{}.{}", self.path, printable(name));
            let number = digits(name).and_then(|number| u32::try_from(number).ok());
            match number.filter(|number| number.to_string() == *name) {
                Some(number) => Ok((number, Self { value, path })),
                None => Err(Damage::kind(path, "named by a valid number")),
            }
        };
        self.object()?.iter().map(member).collect()
    }

    /// The values of a list.
    pub(super) fn list(&self) -> Result<Vec<Self>, Damage> {
        let values = self.value.as_array().ok_or_else(|| self.kind("a list"))?;
        let element = |(at, value)| Self {
            value,
            path: format!("{}.{at}", self.path),
        };
        Ok(values.iter().enumerate().map(element).collect())
    }

    /// The text here.
    pub(super) fn text(&self) -> Result<&'a str, Damage> {
        let text = self.value.as_str().map(numbers::shown);
        match text {
            Some(Shown::Text(text)) => Ok(text),
            _ => Err(self.kind("a text")),
        }
    }

    /// The text here, which must have a character at least.
    pub(super) fn some_text(&self) -> Result<&'a str, Damage> {
        match self.text()? {
            "" => Err(self.kind("text of at least one character")),
            text => Ok(text),
        }
    }

    /// An integer here, however large.
    pub(super) fn integer(&self) -> Result<(), Damage> {
        match self.value.as_str().map(numbers::shown) {
            Some(Shown::Number(number)) if !number.contains(['.', 'e', 'E']) => Ok(()),
            None if self.value.is_number() => Ok(()),
            _ => Err(self.kind("an integer")),
        }
    }

    /// The number here, which is written as a number.
    pub(super) fn number(&self) -> Result<u32, Damage> {
        let number = self
            .value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.kind("a number of 0 to 4294967295"))
    }

    /// The number here, which is written as a text, as those of 64 bits are.
    pub(super) fn big_number(&self) -> Result<u64, Damage> {
        let number = self.value.as_str().and_then(digits);
        number.ok_or_else(|| self.kind("a 64-bit number in quotes"))
    }

    /// The number here that names a keyslot or a segment.
    pub(super) fn reference(&self) -> Result<u32, Damage> {
        let number = self.big_number()?;
        match u32::try_from(number) {
            Ok(number) if self.text()? == number.to_string() => Ok(number),
            _ => Err(self.refuse(number, "is not a valid number")),
        }
    }

    /// The bytes here, in base64.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, Damage> {
        let bytes = STANDARD.decode(self.text()?).ok();
        bytes.ok_or_else(|| self.kind("base64"))
    }
}

/// A decimal number and nothing else: no sign and no space.
fn digits(text: &str) -> Option<u64> {
    let all = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| all)
}
