//! JSON out of a header: bounded, without duplicates, and read by name.

use crate::Damage;
use crate::damage::printable;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;

/// Values in a header, at most: a JSON of 4 MiB that is all brackets must not
/// take a hundred times its size.
const MOST_VALUES: usize = 1 << 16;

/// The JSON object that `text` begins with; what follows must be zeros.
pub(super) fn object(area: &[u8]) -> Result<Map<String, Value>, Damage> {
    let end = area
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(area.len());
    if end == area.len() {
        return Err(Damage::Kind {
            field: "json".into(),
            expected: "a text that ends with a zero byte",
        });
    }
    let values = Cell::new(0);
    let mut reader = serde_json::Deserializer::from_slice(&area[..end]);
    let value = Bounded { values: &values }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(Damage::Json)?;
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(Damage::Kind {
            field: "json".into(),
            expected: "an object",
        }),
    }
}

/// Reads one value, and counts it.
#[derive(Clone, Copy)]
struct Bounded<'a> {
    values: &'a Cell<usize>,
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

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = from.next_element_seed(self)? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            let value = from.next_value_seed(self)?;
            if object.contains_key(&name) {
                let name = printable(&name);
                return Err(A::Error::custom(format!("`{name}` stands there twice")));
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
            None => Err(Damage::Missing { field: name.into() }),
        }
    }

    /// The way here.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    fn kind(&self, expected: &'static str) -> Damage {
        Damage::Kind {
            field: self.path.as_str().into(),
            expected,
        }
    }

    /// A number here that makes no sense.
    pub(super) fn refuse(&self, value: u64, rule: impl Into<Box<str>>) -> Damage {
        Damage::number(self.path.as_str(), value, rule)
    }

    /// So many bytes here, which make no sense.
    pub(super) fn refuse_length(&self, bytes: usize, rule: impl Into<Box<str>>) -> Damage {
        Damage::Length {
            field: self.path.as_str().into(),
            bytes,
            rule: rule.into(),
        }
    }

    /// A text here that is not known.
    pub(super) fn unknown(&self, value: &str) -> Damage {
        Damage::unknown(self.path.as_str(), value)
    }

    fn object(&self) -> Result<&'a Map<String, Value>, Damage> {
        self.value.as_object().ok_or_else(|| self.kind("an object"))
    }

    /// The member `name`, which must be there.
    pub(super) fn get(&self, name: &str) -> Result<Self, Damage> {
        self.find(name)?.ok_or_else(|| Damage::Missing {
            field: format!("{}.{name}", self.path).into(),
        })
    }

    /// The member `name`, if it is there.
    pub(super) fn find(&self, name: &str) -> Result<Option<Self>, Damage> {
        let value = self.object()?.get(name);
        Ok(value.map(|value| Self {
            value,
            path: format!("{}.{name}", self.path),
        }))
    }

    /// The members of an object whose names are numbers up to `most`.
    pub(super) fn numbered(&self, most: u32) -> Result<Vec<(u32, Self)>, Damage> {
        let member = |(name, value): (&String, &'a Value)| {
            let path = format!("{}.{}", self.path, printable(name));
            let number = digits(name).and_then(|number| u32::try_from(number).ok());
            match number.filter(|&number| number <= most) {
                Some(number) => Ok((number, Self { value, path })),
                None => Err(Damage::Kind {
                    field: path.into(),
                    expected: "named by a number that is possible there",
                }),
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
        self.value.as_str().ok_or_else(|| self.kind("a text"))
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
        number.ok_or_else(|| self.kind("a number of 64 bits in quotes"))
    }

    /// The bytes here, in base64.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, Damage> {
        let bytes = STANDARD.decode(self.text()?).ok();
        bytes.ok_or_else(|| self.kind("base64"))
    }
}

/// A decimal number and nothing else: no sign, no space, no zero before it.
fn digits(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    let all = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| canonical && all)
}
