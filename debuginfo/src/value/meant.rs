//! Which bits of a small value mean something in every run. Padding holds whatever was there before; so do the members of a union
//! that nobody wrote, and the value of a `std::optional` that has none.

use crate::types::{Member, MemberOffset, Type, TypeKind};

/// Largest value, in bytes: what two registers hold.
const MAX_BYTES: u64 = 16;
/// Nesting of structures, at most.
const MAX_DEPTH: usize = 16;
/// Members and elements examined, at most.
const MAX_PARTS: usize = 256;

/// The bits of a value of up to 16 bytes that mean something. The first is the lowest bit of the first byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Meant {
    /// They always do.
    pub always: u128,
    /// They do if the flag is set: the number of its bit, and these bits.
    pub held: Option<(u32, u128)>,
    /// Those that always mean an address.
    pub pointers: u128,
}

impl Meant {
    /// Returns `None` for a larger value, or one about which the debug information says too little.
    #[must_use]
    pub fn of(ty: &Type) -> Option<Meant> {
        ty.size().filter(|size| *size <= MAX_BYTES)?;
        let mut walk = Walk { parts: 0 };
        walk.value(ty, 0, MAX_DEPTH)
    }

    fn add(&mut self, other: Meant) {
        self.always |= other.always;
        self.pointers |= other.pointers;
        // Of two such values, neither is compared.
        self.held = match (self.held, other.held) {
            (Some(_), Some(_)) => Some((0, 0)),
            (own, other) => own.or(other),
        };
    }

    fn any(self) -> u128 {
        self.always | self.held.map_or(0, |(_, bits)| bits)
    }
}

struct Walk {
    parts: usize,
}

impl Walk {
    fn value(&mut self, ty: &Type, first: u64, depth: usize) -> Option<Meant> {
        self.parts += 1;
        let depth = depth.checked_sub(1).filter(|_| self.parts <= MAX_PARTS)?;
        let ty = ty.strip();
        match ty.kind() {
            _ if ty.is_declaration() => None,
            TypeKind::Struct | TypeKind::Class if ty.variants().is_some() => {
                let variants = ty.variants()?;
                let all = variants.list.iter().map(|variant| &variant.member);
                let mut meant = self.common(all, first, depth)?;
                if let Some(discriminant) = &variants.discriminant {
                    meant.add(self.member(discriminant, first, depth)?);
                }
                Some(meant)
            }
            TypeKind::Union => self.common(ty.members().iter(), first, depth),
            TypeKind::Struct | TypeKind::Class => self.members(&ty.members(), first, depth),
            TypeKind::Array if ty.is_plain_array() => {
                let (element, count) = (ty.element()?, ty.count()?);
                let bits = element.size()?.checked_mul(8)?;
                let mut meant = Meant::default();
                for at in 0..count {
                    let start = first.checked_add(at.checked_mul(bits)?)?;
                    meant.add(self.value(&element, start, depth)?);
                }
                Some(meant)
            }
            kind => {
                let own = marked(first, ty.size()?.checked_mul(8)?)?;
                let is_pointer = matches!(
                    kind,
                    TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference
                );
                let pointers = if is_pointer { own.always } else { 0 };
                Some(Meant { pointers, ..own })
            }
        }
    }

    /// What all of `members` use: nothing says which one was written.
    fn common<'m>(
        &mut self,
        members: impl Iterator<Item = &'m Member>,
        first: u64,
        depth: usize,
    ) -> Option<Meant> {
        let mut common: Option<Meant> = None;
        for member in members {
            let own = self.member(member, first, depth)?;
            let (always, pointers) = common.map_or((u128::MAX, u128::MAX), |common| {
                (common.always, common.pointers)
            });
            common = Some(Meant {
                always: always & own.always,
                pointers: pointers & own.pointers,
                held: None,
            });
        }
        Some(common.unwrap_or_default())
    }

    fn members(&mut self, members: &[Member], first: u64, depth: usize) -> Option<Meant> {
        let mut meant = Meant::default();
        for member in members {
            meant.add(self.member(member, first, depth)?);
        }
        // std::optional of libstdc++ has _M_engaged, that of libc++ __engaged_, both beside a union.
        let is_flag = |member: &&Member| {
            let name = member.name.as_deref().unwrap_or_default();
            name.contains("engaged") && member.ty.size() == Some(1)
        };
        let is_union = |member: &&Member| member.ty.strip().kind() == TypeKind::Union;
        let flag = members.iter().find(is_flag);
        let value = members.iter().find(is_union);
        if let (Some(flag), Some(value)) = (flag, value)
            && let MemberOffset::Bytes(at) = flag.offset
            && let MemberOffset::Bytes(start) = value.offset
        {
            let start = first.checked_add(start.checked_mul(8)?)?;
            let mut bits = 0;
            for choice in value.ty.strip().members() {
                bits |= self.member(&choice, start, depth)?.any();
            }
            let flag = u32::try_from(first.checked_add(at.checked_mul(8)?)?).ok()?;
            meant.add(Meant {
                held: Some((flag, bits)),
                ..Meant::default()
            });
        }
        Some(meant)
    }

    fn member(&mut self, member: &Member, first: u64, depth: usize) -> Option<Meant> {
        match (&member.offset, member.bits) {
            (MemberOffset::Static(_), _) => Some(Meant::default()),
            (MemberOffset::Bytes(_), Some(bits)) => {
                marked(first.checked_add(bits.offset)?, bits.size)
            }
            (MemberOffset::Bytes(offset), None) => {
                let start = first.checked_add(offset.checked_mul(8)?)?;
                self.value(&member.ty, start, depth)
            }
            (MemberOffset::Computed(_), _) => None,
        }
    }
}

fn marked(first: u64, count: u64) -> Option<Meant> {
    let last = first.checked_add(count)?;
    if last > MAX_BYTES * 8 {
        return None;
    }
    let mask = match count {
        0 => 0,
        128 => u128::MAX,
        count => ((1 << count) - 1) << first,
    };
    Some(Meant {
        always: mask,
        ..Meant::default()
    })
}
