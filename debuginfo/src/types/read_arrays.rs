//! Reads arrays and Fortran strings as shapes: their dimensions, and what of these is known only at run time.

use std::sync::Arc;

use gimli::constants as dw;
use gimli::{AttributeValue, DwLang};

use super::arrays::{ArrayForm, Bound, Dimension, Stride, elements};
use super::node::{Computed, Count, DieId, Link, Node, Shape};
use super::read::{Reader, constant};
use super::{Language, Type, TypeKind};
use crate::dies::{Die, Value};

/// Dimensions read of one array, at most.
const MAX_DIMENSIONS: usize = 16;

impl<'a> Reader<'_, '_, 'a> {
    pub(super) fn array(&self, die: &Die<'a>) -> Shape {
        let session = self.session;
        let ranges = session.children(
            die,
            &[dw::DW_TAG_subrange_type, dw::DW_TAG_enumeration_type],
        );
        let ranges = ranges.iter().take(MAX_DIMENSIONS);
        let mut dimensions: Vec<Dimension> = ranges.map(|range| self.dimension(range)).collect();
        if dimensions.is_empty() {
            dimensions.push(Dimension {
                count: Count::Open,
                ..Dimension::plain(0)
            });
        }
        let column_major = match session.attr(die, dw::DW_AT_ordering) {
            Some(AttributeValue::Ordering(order)) => order == dw::DW_ORD_col_major,
            _ => self.language == Language::Fortran,
        };
        let descriptor = [
            dw::DW_AT_data_location,
            dw::DW_AT_allocated,
            dw::DW_AT_associated,
        ];
        let element_bits = session.unsigned(die, dw::DW_AT_bit_stride);
        Shape::Array {
            element: match element_bits {
                Some(_) => self.packed(die),
                None => self.target(die),
            },
            form: ArrayForm {
                column_major: column_major && dimensions.len() > 1,
                element_bits,
                has_descriptor: descriptor
                    .iter()
                    .any(|name| session.attr(die, *name).is_some()),
                is_vector: session.flag(die, dw::DW_AT_GNU_vector),
                is_text: false,
            },
            dimensions,
        }
    }

    /// Reads a Fortran string as an array of characters.
    pub(super) fn text(&self, die: &Die<'a>) -> Shape {
        let session = self.session;
        let stated = session.unsigned(die, dw::DW_AT_byte_size);
        let computed = session.attr(die, dw::DW_AT_string_length).is_some();
        let count = match (computed, stated) {
            (true, _) => Count::Computed(Computed {
                subrange: DieId::of(die),
                is_count: true,
            }),
            (false, Some(bytes)) => Count::Known(bytes),
            (false, None) => Count::Open,
        };
        let character = Shape::Base(TypeKind::Char { signed: false });
        let mut character = Node::made(character, Some("character".to_owned()), Some(1));
        character.language = self.language;
        Shape::Array {
            element: Link::Made(Box::new(Type::new(None, Arc::new(character)))),
            dimensions: vec![Dimension {
                count,
                lower: Bound::Known(1),
                stride: Stride::Natural,
                indexes: None,
            }],
            form: ArrayForm {
                has_descriptor: session.attr(die, dw::DW_AT_data_location).is_some(),
                is_text: true,
                ..ArrayForm::default()
            },
        }
    }

    fn dimension(&self, die: &Die<'a>) -> Dimension {
        let session = self.session;
        let lower = match session.attr(die, dw::DW_AT_lower_bound) {
            None => Bound::Known(self.first_index(die)),
            Some(value) => match self.number(die, &value) {
                Some(number) => Bound::Known(number),
                None => Bound::Computed(DieId::of(die)),
            },
        };
        let stride = match session.attr(die, dw::DW_AT_byte_stride) {
            None => match session.unsigned(die, dw::DW_AT_bit_stride) {
                Some(bits) => Stride::Bits(bits as i64),
                None => Stride::Natural,
            },
            Some(value) => match value.udata_value() {
                Some(bytes) => Stride::Bits((bytes as i64).saturating_mul(8)),
                None => Stride::Computed(DieId::of(die)),
            },
        };
        let indexes = self.indexes(die);
        Dimension {
            count: match &indexes {
                Some(indexes) => Count::Known(indexes.len() as u64),
                None => self.count(die, lower),
            },
            lower,
            stride,
            indexes,
        }
    }

    /// Returns the values of the enumerators that are indexes, if they are not consecutive.
    fn indexes(&self, die: &Die<'a>) -> Option<Arc<[i64]>> {
        if self.language != Language::Ada {
            return None;
        }
        let session = self.session;
        let mut at = die.clone();
        // The innermost bounds apply.
        let (mut lower, mut upper) = (None, None);
        for _ in 0..super::MAX_STEPS {
            if session.tag(&at) == Some(dw::DW_TAG_enumeration_type) {
                let names = session.children(&at, &[dw::DW_TAG_enumerator]);
                let numbers = names.iter().filter_map(|name| {
                    let value = session.attr(name, dw::DW_AT_const_value)?;
                    i64::try_from(constant(value, true)?).ok()
                });
                let all: Vec<i64> = numbers.collect();
                let (first, last) = (*all.first()?, *all.last()?);
                if elements(first, last) == all.len() as u64 {
                    return None;
                }
                let wanted = lower.unwrap_or(first)..=upper.unwrap_or(last);
                let inside = all.into_iter().filter(|number| wanted.contains(number));
                return Some(inside.collect());
            }
            let bound = |name| session.attr(&at, name).and_then(|v| self.number(&at, &v));
            lower = lower.or_else(|| bound(dw::DW_AT_lower_bound));
            upper = upper.or_else(|| bound(dw::DW_AT_upper_bound));
            at = session.follow(&at, dw::DW_AT_type)?;
        }
        None
    }

    /// Returns the first index if none is stated.
    fn first_index(&self, die: &Die<'a>) -> i64 {
        if self.session.tag(die) == Some(dw::DW_TAG_enumeration_type) {
            return 0;
        }
        match self.language {
            Language::C | Language::Cpp | Language::Rust => 0,
            Language::Fortran | Language::Ada => 1,
            Language::Other => default_lower_bound(self.session.language(die)),
        }
    }

    fn count(&self, die: &Die<'a>, lower: Bound) -> Count {
        let session = self.session;
        let computed = |is_count| {
            Count::Computed(Computed {
                subrange: DieId::of(die),
                is_count,
            })
        };
        if let Some(value) = session.attr(die, dw::DW_AT_count) {
            return value
                .udata_value()
                .map_or_else(|| computed(true), Count::Known);
        }
        if session.tag(die) == Some(dw::DW_TAG_enumeration_type) {
            let names = session.children(die, &[dw::DW_TAG_enumerator]);
            return Count::Known(names.len() as u64);
        }
        let Some(value) = session.attr(die, dw::DW_AT_upper_bound) else {
            return Count::Open;
        };
        match (self.number(die, &value), lower) {
            (Some(last), Bound::Known(lower)) => Count::Known(elements(lower, last)),
            _ => computed(false),
        }
    }

    /// Reads a constant bound. Its form states the number of bytes, its type whether it is signed.
    fn number(&self, die: &Die<'a>, value: &Value<'a>) -> Option<i64> {
        Some(match value {
            AttributeValue::Sdata(number) => *number,
            AttributeValue::Udata(number) | AttributeValue::Data8(number) => *number as i64,
            AttributeValue::Data1(number) => i64::from(*number),
            AttributeValue::Data2(number) => i64::from(*number),
            // Older compilers write the last index of an empty array like this.
            AttributeValue::Data4(u32::MAX) => -1,
            AttributeValue::Data4(number) if self.is_signed_word(die) => i64::from(*number as i32),
            AttributeValue::Data4(number) => i64::from(*number),
            _ => return None,
        })
    }

    /// Returns whether indexes are signed four-byte numbers.
    fn is_signed_word(&self, die: &Die<'a>) -> bool {
        let session = self.session;
        let Some(of) = session.follow(die, dw::DW_AT_type) else {
            return false;
        };
        let encoding = session.attr(&of, dw::DW_AT_encoding);
        matches!(encoding, Some(AttributeValue::Encoding(dw::DW_ATE_signed)))
            && session.unsigned(&of, dw::DW_AT_byte_size) == Some(4)
    }
}

/// Returns the default lower bound in DWARF's table of languages.
fn default_lower_bound(language: Option<DwLang>) -> i64 {
    let from_one = [
        dw::DW_LANG_Cobol74,
        dw::DW_LANG_Cobol85,
        dw::DW_LANG_Julia,
        dw::DW_LANG_Modula2,
        dw::DW_LANG_Modula3,
        dw::DW_LANG_Pascal83,
        dw::DW_LANG_PLI,
    ];
    i64::from(language.is_some_and(|language| from_one.contains(&language)))
}
