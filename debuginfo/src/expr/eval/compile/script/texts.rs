//! Texts: those of the program are UTF-8 in memory, and are compared with what stands in the condition byte by byte.
//!
//! What is no UTF-8 is replaced by U+FFFD when a text is read. So the bytes of a text begin with, are or end with those of
//! another one exactly if the texts do, as long as the other one has no U+FFFD itself. Lengths count units of UTF-16, which
//! are bytes in texts of ASCII; others have no answer there.

use super::super::super::super::ir::{Int, IntOp, Order};
use super::super::{Result, not};
use super::equality;
use super::numbers::Whole;
use super::value::{
    Js, Kind, Nothing, both, boxed, constant, either, negated, nowhere, only_if, short,
};
use crate::layout::Type;

/// Bytes of a text that are looked through at most.
const MOST_BYTES: u16 = 1024;
/// Bytes of a text in a condition.
const MOST_CONSTANT: usize = 128;
/// Characters with numbers below this have one unit of UTF-16, and are no part of a pair.
const PAIRS: i64 = 0xd800;

/// A text.
#[derive(Debug, Clone)]
pub(super) enum Text {
    /// It stands in the condition.
    Const(String),
    /// One character, by its number; at most this one.
    Char { code: Int, most: i64 },
    /// The bytes from an address on.
    Bytes { at: Int, end: End },
    /// What an enumerator is called.
    Name { number: Whole, ty: Type },
}

/// Where a text ends.
#[derive(Debug, Clone)]
pub(super) enum End {
    /// At a zero.
    Zero,
    /// At a zero, but behind so many bytes at the latest.
    Within(u64),
    /// Behind so many bytes; bounded.
    Counted(Int),
}

/// A text that can be compared by its bytes.
fn plain(text: &str) -> Result<&[u8]> {
    match text.contains(char::REPLACEMENT_CHARACTER) || text.len() > MOST_CONSTANT {
        true => Err(not("such a text")),
        false => Ok(text.as_bytes()),
    }
}

fn matches(at: Int, bytes: &[u8]) -> Int {
    Int::Match {
        at: boxed(at),
        bytes: bytes.to_vec(),
    }
}

/// Equality of two texts.
pub(super) fn equal(a: &Text, b: &Text) -> Result<Int> {
    match (a, b) {
        (Text::Const(a), Text::Const(b)) => Ok(constant(a == b)),
        (Text::Const(text), other) | (other, Text::Const(text)) => is_constant(other, text),
        (Text::Char { code: a, .. }, Text::Char { code: b, .. }) => {
            Ok(Int::compare(Order::Equal, false, a.clone(), b.clone()))
        }
        _ => Err(not("two texts of the program are compared")),
    }
}

fn is_constant(of: &Text, text: &str) -> Result<Int> {
    let bytes = plain(text)?;
    let here = Js::of(Kind::Text(of.clone()));
    match of {
        Text::Const(own) => Ok(constant(own == text)),
        Text::Char { code, .. } => {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(only), None) => {
                    let only = Int::Const(u32::from(only).into());
                    Ok(Int::compare(Order::Equal, false, code.clone(), only))
                }
                _ => Ok(here.before(constant(false))),
            }
        }
        Text::Name { number, ty } => equality::called(number, ty, text),
        Text::Bytes { at, end } => match end {
            End::Zero | End::Within(_) if bytes.contains(&0) => Ok(here.before(constant(false))),
            End::Within(count) if bytes.len() as u64 > *count => Ok(here.before(constant(false))),
            End::Within(count) if bytes.len() as u64 == *count => Ok(matches(at.clone(), bytes)),
            End::Zero | End::Within(_) => Ok(matches(at.clone(), &[bytes, &[0]].concat())),
            End::Counted(len) => {
                let count = Int::Const(bytes.len() as u64);
                let same = Int::compare(Order::Equal, false, len.clone(), count);
                Ok(both(same, matches(at.clone(), bytes)))
            }
        },
    }
}

/// `<` and its like, between characters.
pub(super) fn ordered(order: Order, a: &Text, b: &Text) -> Result<Int> {
    let (Some(a), Some(b)) = (single(a), single(b)) else {
        return Err(not("the order of texts"));
    };
    Ok(Int::compare(order, false, a, b))
}

/// The number of the only character, if it has one unit.
fn single(of: &Text) -> Option<Int> {
    match of {
        Text::Char { code, most } if *most < PAIRS => Some(code.clone()),
        Text::Char { code, .. } => Some(Int::Within {
            of: boxed(code.clone()),
            low: 0,
            high: PAIRS - 1,
        }),
        Text::Const(text) => {
            let mut characters = text.chars();
            let only = characters
                .next()
                .filter(|c| i64::from(u32::from(*c)) < PAIRS)?;
            let is_alone = characters.next().is_none();
            is_alone.then(|| Int::Const(u32::from(only).into()))
        }
        _ => None,
    }
}

impl Text {
    /// Whether it has a character.
    pub fn truth(&self) -> Result<Int> {
        let here = || Js::of(Kind::Text(self.clone()));
        Ok(match self {
            Text::Const(text) => constant(!text.is_empty()),
            Text::Char { .. } | Text::Name { .. } => here().before(constant(true)),
            Text::Bytes {
                end: End::Within(0),
                ..
            } => constant(false),
            Text::Bytes { at, end } => {
                let first = Int::Load {
                    at: boxed(at.clone()),
                    bytes: 1,
                    signed: false,
                };
                match end {
                    End::Counted(len) => both(len.clone(), either(first, Int::Const(1))),
                    End::Zero | End::Within(_) => first.is_true(),
                }
            }
        })
    }

    /// `startsWith`
    pub fn starts_with(&self, text: &str) -> Result<Int> {
        let bytes = plain(text)?;
        match self {
            Text::Const(own) => Ok(constant(own.starts_with(text))),
            Text::Bytes {
                end: End::Zero | End::Within(_),
                ..
            } if bytes.contains(&0) => Err(not("such a text")),
            Text::Bytes { at, end } => {
                let begins = matches(at.clone(), bytes);
                match end {
                    End::Zero => Ok(begins),
                    End::Within(count) if *count < bytes.len() as u64 => Err(not("such a text")),
                    End::Within(_) => Ok(begins),
                    End::Counted(len) => {
                        let count = Int::Const(bytes.len() as u64);
                        let fits = Int::compare(Order::GreaterEqual, true, len.clone(), count);
                        Ok(both(fits, begins))
                    }
                }
            }
            _ => Err(not("such a text")),
        }
    }

    /// `endsWith`
    pub fn ends_with(&self, text: &str) -> Result<Int> {
        let bytes = plain(text)?;
        match self {
            Text::Const(own) => Ok(constant(own.ends_with(text))),
            Text::Bytes { at, .. } => {
                let len = self.bytes(false)?;
                short(&len)?;
                short(at)?;
                let count = Int::Const(bytes.len() as u64);
                let fits = Int::compare(Order::GreaterEqual, true, len.clone(), count.clone());
                let start = Int::binary(IntOp::Subtract, len, count);
                let start = Int::binary(IntOp::Add, at.clone(), start);
                Ok(both(fits, matches(start, bytes)))
            }
            _ => Err(not("such a text")),
        }
    }

    /// `includes`
    pub fn includes(&self, text: &str) -> Result<Int> {
        let bytes = plain(text)?;
        match self {
            Text::Const(own) => Ok(constant(own.contains(text))),
            Text::Bytes { at, .. } if !bytes.is_empty() => {
                short(at)?;
                Ok(Int::Contains {
                    at: boxed(at.clone()),
                    len: boxed(self.bytes(false)?),
                    bytes: bytes.to_vec(),
                })
            }
            _ => Err(not("such a text")),
        }
    }

    /// Whether a character is in a text that stands in the condition.
    pub fn includes_character(&self, code: &Int) -> Result<Int> {
        let Text::Const(own) = self else {
            return Err(not("two texts of the program"));
        };
        short(code)?;
        plain(own)?;
        let is = |c: char| {
            let c = Int::Const(u32::from(c).into());
            Int::compare(Order::Equal, false, code.clone(), c)
        };
        let witness = either(code.clone(), Int::Const(1));
        let any = own
            .chars()
            .fold(constant(false), |any, c| either(any, is(c)));
        Ok(both(witness, any))
    }

    /// The number of bytes; `ascii`: no answer where these are not as many units of UTF-16.
    fn bytes(&self, ascii: bool) -> Result<Int> {
        let Text::Bytes { at, end } = self else {
            return Err(not("such a text"));
        };
        let counted = |most: u16, open: bool| Int::TextLength {
            at: boxed(at.clone()),
            most,
            open,
            ascii,
        };
        Ok(match end {
            End::Zero => counted(MOST_BYTES, false),
            End::Within(count) => match u16::try_from(*count) {
                Ok(count) if count <= MOST_BYTES => counted(count, true),
                _ => counted(MOST_BYTES, false),
            },
            End::Counted(len) => {
                let len = Int::Within {
                    of: boxed(len.clone()),
                    low: 0,
                    high: MOST_BYTES.into(),
                };
                match ascii {
                    false => len,
                    true => Int::Ascii {
                        at: boxed(at.clone()),
                        len: boxed(len),
                    },
                }
            }
        })
    }

    /// `length`
    pub fn length(&self) -> Result<Whole> {
        match self {
            Text::Const(text) => Ok(Whole::constant(text.encode_utf16().count() as i64)),
            Text::Char { code, most } => {
                let value = match *most < PAIRS {
                    true => code.clone(),
                    false => Int::Within {
                        of: boxed(code.clone()),
                        low: 0,
                        high: PAIRS - 1,
                    },
                };
                let one = either(value, Int::Const(1));
                Ok(Whole {
                    value: one,
                    low: 1,
                    high: 1,
                })
            }
            Text::Bytes { .. } => Ok(Whole {
                value: self.bytes(true)?,
                low: 0,
                high: MOST_BYTES.into(),
            }),
            Text::Name { .. } => Err(not("the length of a name")),
        }
    }

    /// Unit `index`: whether there is one, and the character.
    fn unit(&self, index: u16) -> Result<(Int, Int)> {
        let Text::Bytes { at, end } = self else {
            return Err(not("such a text"));
        };
        let here = index.checked_add(1).filter(|here| *here <= MOST_BYTES);
        let here = here.ok_or_else(|| not("so far into a text"))?;
        short(at)?;
        let wanted = Int::Const(here.into());
        let exists = match end {
            End::Within(count) if *count < here.into() => return Err(not("so far into a text")),
            End::Zero | End::Within(_) => {
                let len = Int::TextLength {
                    at: boxed(at.clone()),
                    most: here,
                    open: true,
                    ascii: true,
                };
                Int::compare(Order::Equal, false, len, wanted)
            }
            End::Counted(len) => {
                short(len)?;
                let fits = Int::compare(Order::GreaterEqual, true, len.clone(), wanted.clone());
                let plain = Int::Ascii {
                    at: boxed(at.clone()),
                    len: boxed(wanted),
                };
                both(fits, plain)
            }
        };
        let code = Int::Load {
            at: boxed(at.clone().plus(index.into())),
            bytes: 1,
            signed: false,
        };
        Ok((exists, code))
    }

    /// `[index]`
    pub fn character(&self, index: u16) -> Result<Js> {
        if let (Text::Char { .. }, 0, Some(code)) = (self, index, single(self)) {
            return Ok(Js::of(Kind::Text(Text::Char {
                code,
                most: PAIRS - 1,
            })));
        }
        let (exists, code) = self.unit(index)?;
        let code = only_if(exists.clone(), code);
        let text = Js::of(Kind::Text(Text::Char { code, most: 0x7f }));
        text.unless(negated(exists), Nothing::Undefined)
    }

    /// `charAt`, and `at`; no answer behind the end.
    pub fn character_within(&self, index: u16) -> Result<Js> {
        let mut found = self.character(index)?;
        found.absent = None;
        Ok(found)
    }

    /// `charCodeAt`; no answer behind the end.
    pub fn code(&self, index: u16) -> Result<Whole> {
        match self.character_within(index)?.kind {
            Kind::Text(Text::Char { code, most }) => Ok(Whole {
                value: code,
                low: 0,
                high: most.into(),
            }),
            _ => Ok(Whole {
                value: nowhere(),
                low: 0,
                high: 0,
            }),
        }
    }
}
