//! How large trees are.

use super::{Float, Int};

impl Int {
    /// Counts the operations and operands of the tree.
    #[must_use]
    pub fn parts(&self) -> usize {
        1 + match self {
            Int::Const(_) | Int::Register(_) | Int::Vector(_) => 0,
            Int::Load { at: of, .. }
            | Int::Extend { of, .. }
            | Int::Not(of)
            | Int::Within { of, .. }
            | Int::NonNull(of)
            | Int::OneOf { of, .. }
            | Int::Outside { of, .. }
            | Int::TextLength { at: of, .. } => of.parts(),
            Int::Match { at, bytes } => at.parts() + bytes.len(),
            Int::Binary { left, right, .. }
            | Int::Compare { left, right, .. }
            | Int::And(left, right)
            | Int::Or(left, right)
            | Int::Ascii {
                at: left,
                len: right,
            } => left.parts() + right.parts(),
            Int::Contains { at, len, bytes } => at.parts() + len.parts() + bytes.len(),
            Int::Choose {
                condition,
                if_true,
                if_false,
            } => condition.parts() + if_true.parts() + if_false.parts(),
            Int::CompareFloats { left, right, .. } => left.parts() + right.parts(),
            Int::Truncate { of, .. } => of.parts(),
        }
    }
}

impl Float {
    /// Counts the operations and operands of the tree.
    #[must_use]
    pub fn parts(&self) -> usize {
        1 + match self {
            Float::Const(_) => 0,
            Float::Bits { of, .. } | Float::Signed(of) => of.parts(),
            Float::Round(of) | Float::Negate(of) | Float::Magnitude(of) | Float::Root(of) => {
                of.parts()
            }
            Float::Binary { left, right, .. } => left.parts() + right.parts(),
            Float::Choose {
                condition,
                if_true,
                if_false,
            } => condition.parts() + if_true.parts() + if_false.parts(),
        }
    }
}
