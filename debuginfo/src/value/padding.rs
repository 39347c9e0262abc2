//! Which bits of a value mean something: all but the padding between its members and behind them. Compilers state no
//! place for padding.

use crate::types::{MemberOffset, Type, TypeKind};

/// Largest value whose padding is determined, in bytes.
const MAX_BYTES: u64 = 4096;
/// Nesting of structures, at most.
const MAX_DEPTH: usize = 16;
/// Members and elements examined, at most.
const MAX_PARTS: usize = 4096;

/// The bits of a value that mean something. The first is the lowest bit of the first byte.
pub(super) struct Used {
    bits: Vec<bool>,
    parts: usize,
}

impl Used {
    /// Returns `None` for a type without padding, or one whose padding is not known.
    pub(super) fn of(ty: &Type) -> Option<Used> {
        let size = ty.size().filter(|size| *size <= MAX_BYTES)?;
        let mut used = Used {
            bits: vec![false; usize::try_from(size).ok()?.checked_mul(8)?],
            parts: 0,
        };
        used.take(ty, 0, MAX_DEPTH)?;
        (!used.bits.iter().all(|used| *used)).then_some(used)
    }

    /// Returns whether any of these bits is used. Bits behind the value are not.
    pub(super) fn any(&self, first: u64, count: u64) -> bool {
        let at = |bit: u64| {
            let bit = usize::try_from(bit).unwrap_or(usize::MAX);
            bit.min(self.bits.len())
        };
        let range = at(first)..at(first.saturating_add(count));
        self.bits[range].contains(&true)
    }

    /// Marks the bits of a value of type `ty` that begins at bit `first`. Returns `None` if they are not known.
    fn take(&mut self, ty: &Type, first: u64, depth: usize) -> Option<()> {
        self.parts += 1;
        let depth = depth.checked_sub(1).filter(|_| self.parts <= MAX_PARTS)?;
        let ty = ty.strip();
        match ty.kind() {
            TypeKind::Struct | TypeKind::Class | TypeKind::Union
                if ty.variants().is_none() && !ty.is_declaration() =>
            {
                for member in ty.members() {
                    match (&member.offset, member.bits) {
                        (MemberOffset::Static(_), _) => {}
                        (MemberOffset::Bytes(_), Some(bits)) => {
                            self.mark(first.checked_add(bits.offset)?, bits.size)?;
                        }
                        (MemberOffset::Bytes(offset), None) => {
                            let start = first.checked_add(offset.checked_mul(8)?)?;
                            self.take(&member.ty, start, depth)?;
                        }
                        (MemberOffset::Computed(_), _) => return None,
                    }
                }
                Some(())
            }
            TypeKind::Array if ty.is_plain_array() => {
                let (element, count) = (ty.element()?, ty.count()?);
                let bits = element.size()?.checked_mul(8)?;
                for at in 0..count {
                    self.take(&element, first.checked_add(at.checked_mul(bits)?)?, depth)?;
                }
                Some(())
            }
            _ => self.mark(first, ty.size()?.checked_mul(8)?),
        }
    }

    fn mark(&mut self, first: u64, count: u64) -> Option<()> {
        let start = usize::try_from(first).ok()?;
        let end = start.checked_add(usize::try_from(count).ok()?)?;
        self.bits.get_mut(start..end)?.fill(true);
        Some(())
    }
}
