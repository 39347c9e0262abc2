//! Arrays of every language: their first index, the distance between elements, and what of these is known only at run
//! time.
//!
//! Dimensions are in the order of the indexes. [`Type::in_order_of_display`] has them in memory order.

use std::sync::Arc;

use super::node::{Count, DieId, Link, Shape};
use super::{Language, MAX_STEPS, Type, TypeKind, members};

/// A number that the debug information states, or that is computed at run time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    Known(i64),
    /// Computed by an attribute of this DIE.
    Computed(DieId),
}

/// The distance from an element to the next one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stride {
    /// The elements are adjacent.
    Natural,
    Bits(i64),
    /// `DW_AT_byte_stride` of this DIE computes the bytes.
    Computed(DieId),
}

#[derive(Debug, Clone)]
pub(crate) struct Dimension {
    pub count: Count,
    /// The index of the first element.
    pub lower: Bound,
    pub stride: Stride,
    /// The indexes in order, if they are not consecutive. Ada arrays have one element for each enumerator of an
    /// enumeration, regardless of its value.
    pub indexes: Option<Arc<[i64]>>,
}

impl Dimension {
    /// Makes a dimension of `count` adjacent elements, starting at index 0.
    pub(crate) fn plain(count: u64) -> Dimension {
        Dimension {
            count: Count::Known(count),
            lower: Bound::Known(0),
            stride: Stride::Natural,
            indexes: None,
        }
    }

    fn is_decided(&self) -> bool {
        !matches!(self.count, Count::Computed(_))
            && matches!(self.lower, Bound::Known(_))
            && !matches!(self.stride, Stride::Computed(_))
    }
}

/// Properties of an array as a whole.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ArrayForm {
    /// Elements adjacent in memory differ in the first index.
    pub column_major: bool,
    /// The bits of an element, if it has fewer than its type.
    pub element_bits: Option<u64>,
    /// The array's DIE states where the elements are, and whether there are any.
    pub has_descriptor: bool,
    /// A vector register holds it.
    pub is_vector: bool,
    /// The characters form one string (Fortran).
    pub is_text: bool,
}

/// Returns the number of indexes from the first to the last.
pub(crate) fn elements(lower: i64, last: i64) -> u64 {
    let count = i128::from(last) - i128::from(lower) + 1;
    u64::try_from(count.max(0)).unwrap_or(u64::MAX)
}

impl Type {
    fn as_array(&self) -> Option<(&Link, &[Dimension], ArrayForm)> {
        match &self.node().shape {
            Shape::Array {
                element,
                dimensions,
                form,
            } => Some((element, dimensions, *form)),
            _ => None,
        }
    }

    /// Returns the type of an array's elements. For an array of several dimensions, this is an array of the remaining
    /// ones.
    #[must_use]
    pub fn element(&self) -> Option<Type> {
        let (element, dimensions, form) = self.as_array()?;
        let element = Type::linked(self.module(), element);
        let rest = match dimensions.get(1..) {
            None | Some([]) => return Some(element),
            Some(rest) => rest,
        };
        let mut rest = rest.to_vec();
        if form.column_major {
            // Elements of the first dimension lie between two neighbours of the rest.
            let strides = self.strides()?;
            for (dimension, stride) in rest.iter_mut().zip(&strides[1..]) {
                dimension.stride = Stride::Bits(*stride);
            }
        }
        Some(self.made_array(element, rest, form))
    }

    fn made_array(&self, element: Type, dimensions: Vec<Dimension>, form: ArrayForm) -> Type {
        self.made(
            Shape::Array {
                element: Link::Made(Box::new(element)),
                form: ArrayForm {
                    column_major: form.column_major && dimensions.len() > 1,
                    has_descriptor: false,
                    ..form
                },
                dimensions,
            },
            None,
        )
    }

    /// Returns the array with the dimensions determined at run time.
    pub(crate) fn decided(&self, dimensions: Vec<Dimension>) -> Option<Type> {
        let (element, _, form) = self.as_array()?;
        let element = Type::linked(self.module(), element);
        Some(self.made_array(element, dimensions, form))
    }

    /// Returns the array with another type of its elements.
    pub(crate) fn with_elements(&self, element: Type) -> Option<Type> {
        let (_, dimensions, form) = self.as_array()?;
        Some(self.made_array(element, dimensions.to_vec(), form))
    }

    /// Returns the type of a reference of this kind to another target.
    pub(crate) fn referring_to(&self, target: Type) -> Type {
        let shape = Shape::Reference {
            target: Link::Made(Box::new(target)),
            rvalue: self.kind() == TypeKind::RvalueReference,
        };
        self.made(shape, self.size())
    }

    /// Returns the type of an array's elements, if they are texts whose length is known only at run time (Fortran).
    pub(crate) fn undecided_text(&self) -> Option<Type> {
        let (element, _, form) = self.as_array()?;
        if self.language() != Language::Fortran || form.is_text {
            return None;
        }
        let element = Type::linked(self.module(), element).strip();
        (element.is_text() && element.is_undecided()).then_some(element)
    }

    /// Returns whether the place of each element of a row follows from the place of the array, even if their number is
    /// not known.
    pub(crate) fn has_placed_elements(&self) -> bool {
        self.as_array().is_some_and(|(_, dimensions, form)| {
            let is_row = matches!(
                dimensions,
                [Dimension {
                    lower: Bound::Known(_),
                    stride: Stride::Natural | Stride::Bits(_),
                    ..
                }]
            );
            is_row && !form.has_descriptor && !form.is_text && self.stride().is_some()
        })
    }

    /// Returns the number of an array's elements, or `None` if it is not stated or known only at run time.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        match self.as_array()?.1.first()?.count {
            Count::Known(count) => Some(count),
            _ => None,
        }
    }

    /// Returns the index of an array's first element; 0 for other types.
    #[must_use]
    pub fn lower_bound(&self) -> i64 {
        let dimensions = self.as_array().map(|(_, dimensions, _)| dimensions);
        match dimensions.and_then(|d| d.first()).map(|d| d.lower) {
            Some(Bound::Known(lower)) => lower,
            _ => 0,
        }
    }

    /// Returns the position of the element with an index, counted from 0, or `None` if there can be none.
    pub(crate) fn position_of(&self, index: i64) -> Option<i64> {
        match self.indexes() {
            Some(indexes) => {
                let position = indexes.iter().position(|of| *of == index)?;
                i64::try_from(position).ok()
            }
            None => index.checked_sub(self.lower_bound()),
        }
    }

    /// Returns the index of the element at a position, counted from 0.
    #[must_use]
    pub fn index_of(&self, position: u64) -> i64 {
        let listed = self.indexes().zip(usize::try_from(position).ok());
        match listed.and_then(|(indexes, position)| indexes.get(position)) {
            Some(index) => *index,
            None => self.lower_bound().wrapping_add_unsigned(position),
        }
    }

    /// Returns the indexes of an array in order, if they are not consecutive.
    pub(crate) fn indexes(&self) -> Option<&[i64]> {
        self.dimensions().first()?.indexes.as_deref()
    }

    /// Returns the dimensions of an array in the order of its indexes. Empty for other types.
    pub(crate) fn dimensions(&self) -> &[Dimension] {
        self.as_array().map_or(&[], |(_, dimensions, _)| dimensions)
    }

    /// Returns whether the place or the bounds of an array are known only at run time, or the length of the texts in it.
    pub(crate) fn is_undecided(&self) -> bool {
        self.as_array().is_some_and(|(_, dimensions, form)| {
            form.has_descriptor
                || dimensions.iter().any(|d| !d.is_decided())
                || self.undecided_text().is_some()
        })
    }

    /// Returns whether an array is like a C array: adjacent elements, starting at index 0.
    pub fn is_plain_array(&self) -> bool {
        self.as_array().is_some_and(|(_, dimensions, form)| {
            let plain =
                |d: &Dimension| matches!((d.lower, d.stride), (Bound::Known(0), Stride::Natural));
            !form.column_major
                && !form.has_descriptor
                && form.element_bits.is_none()
                && dimensions.iter().all(plain)
        })
    }

    pub(crate) fn is_text(&self) -> bool {
        self.as_array().is_some_and(|(_, _, form)| form.is_text)
    }

    /// Returns the bits of an innermost element, also for several dimensions.
    fn element_bits(&self, steps: usize) -> Option<i64> {
        let (element, _, form) = self.as_array()?;
        let bits = match form.element_bits {
            Some(bits) => bits,
            None => {
                let element = Type::linked(self.module(), element);
                members::size(&element, steps)?.checked_mul(8)?
            }
        };
        i64::try_from(bits).ok()
    }

    fn strides(&self) -> Option<Vec<i64>> {
        self.strides_within(MAX_STEPS)
    }

    /// Returns the distance between the elements of each dimension, in bits.
    fn strides_within(&self, steps: usize) -> Option<Vec<i64>> {
        let (_, dimensions, form) = self.as_array()?;
        let mut order: Vec<usize> = (0..dimensions.len()).collect();
        if !form.column_major {
            order.reverse();
        }
        let mut strides = vec![0; dimensions.len()];
        let mut side_by_side = self.element_bits(steps);
        for at in order {
            let dimension = &dimensions[at];
            let stride = match dimension.stride {
                Stride::Natural => side_by_side?,
                Stride::Bits(bits) => bits,
                Stride::Computed(_) => return None,
            };
            strides[at] = stride;
            side_by_side = match dimension.count {
                Count::Known(count) => i64::try_from(count).ok()?.checked_mul(stride),
                _ => None,
            };
        }
        Some(strides)
    }

    /// Returns the distance between the elements of an array, in bits.
    pub fn stride(&self) -> Option<i64> {
        let (_, dimensions, form) = self.as_array()?;
        // The number of innermost elements does not matter here.
        let is_innermost = form.column_major || dimensions.len() == 1;
        match dimensions.first()?.stride {
            Stride::Bits(bits) => Some(bits),
            Stride::Natural if is_innermost => self.element_bits(MAX_STEPS),
            Stride::Natural => self.strides()?.first().copied(),
            Stride::Computed(_) => None,
        }
    }

    /// Returns the bits of a packed array's elements, or `None` if they have all bits of their type.
    pub(crate) fn packed_bits(&self) -> Option<u64> {
        let (element, _, form) = self.as_array()?;
        let bits = form.element_bits?;
        let whole = Type::linked(self.module(), element)
            .size()?
            .checked_mul(8)?;
        (bits % 8 != 0 || bits < whole).then_some(bits)
    }

    /// Returns the bits from the first element to the last.
    pub(super) fn bits(&self, steps: usize) -> Option<u64> {
        let (_, dimensions, _) = self.as_array()?;
        let strides = self.strides_within(steps)?;
        let mut total = u64::try_from(self.element_bits(steps)?).ok()?;
        for (dimension, stride) in dimensions.iter().zip(strides) {
            let Count::Known(count) = dimension.count else {
                return None;
            };
            let Some(steps) = count.checked_sub(1) else {
                return Some(0);
            };
            // With a negative stride, the first element is not the lowest.
            let stride = u64::try_from(stride).ok()?;
            total = total.checked_add(steps.checked_mul(stride)?)?;
        }
        Some(total)
    }

    /// Returns the array with its dimensions in display order, in which neighbours in memory are adjacent.
    pub fn in_order_of_display(&self) -> Option<Type> {
        let (element, dimensions, form) = self.as_array()?;
        if !form.column_major {
            return Some(self.clone());
        }
        let mut turned = dimensions.to_vec();
        for (dimension, stride) in turned.iter_mut().zip(self.strides()?) {
            dimension.stride = Stride::Bits(stride);
        }
        turned.reverse();
        let form = ArrayForm {
            column_major: false,
            ..form
        };
        let element = Type::linked(self.module(), element);
        Some(self.made_array(element, turned, form))
    }

    /// Returns the type of an array of `count` elements of this type.
    #[must_use]
    pub fn array(&self, count: u64) -> Type {
        self.made(
            Shape::Array {
                element: Link::Made(Box::new(self.clone())),
                dimensions: vec![Dimension::plain(count)],
                form: ArrayForm::default(),
            },
            None,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::builtin;

    fn array(counts: &[u64], column_major: bool) -> Type {
        let int = builtin("int").expect("int is a base type");
        let dimension = |count: &u64| Dimension {
            lower: Bound::Known(1),
            ..Dimension::plain(*count)
        };
        let form = ArrayForm {
            column_major,
            ..ArrayForm::default()
        };
        int.made_array(int.clone(), counts.iter().map(dimension).collect(), form)
    }

    #[test]
    fn the_last_index_of_a_row_major_array_is_that_of_neighbours() {
        let all = array(&[2, 3, 4], false);
        assert_eq!(all.strides(), Some(vec![384, 128, 32]));
        assert_eq!((all.size(), all.lower_bound()), (Some(96), 1));
        let plane = all.element().unwrap();
        assert_eq!((plane.size(), plane.stride()), (Some(48), Some(128)));
    }

    #[test]
    fn the_first_index_of_a_column_major_array_is_that_of_neighbours() {
        let all = array(&[2, 3, 4], true);
        assert_eq!(all.strides(), Some(vec![32, 64, 192]));
        assert_eq!(all.size(), Some(96));
        // A plane extends from its first to its last element, across elements of the others.
        let plane = all.element().unwrap();
        assert_eq!((plane.size(), plane.stride()), (Some(92), Some(64)));
        let shown = all.in_order_of_display().unwrap();
        assert_eq!((shown.count(), shown.stride()), (Some(4), Some(192)));
        assert_eq!(shown.size(), Some(96));
    }

    #[test]
    fn indexes_are_counted_with_their_sign() {
        assert_eq!(elements(-2, -1), 2);
        assert_eq!(elements(0, 255), 256);
        assert_eq!(elements(1, 0), 0);
        assert_eq!(elements(0, -1), 0);
        assert_eq!(elements(i64::MIN, i64::MAX), u64::MAX);
    }
}
