//! A typed memory location that is not read yet: the cursor of the container readers.
//!
//! It reads only on demand, and every read is bounded by a constant, never by a number from memory.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::containers::names;
use debuginfo::types::{Discriminants, Member, MemberOffset, Role, Type, TypeKind, Variant};
use debuginfo::value::trail::{Piece, Trail};
use debuginfo::value::{Look, Value, inside};
use debuginfo::{AddressSpace, Certainty, Machine, Unknown};

/// Most nodes, blocks and groups of one walk through a container.
const MAX_STEPS: u64 = 1 << 20;
/// Most bytes of one read.
const MAX_READ: u64 = 1 << 16;
/// Most levels of base classes and wrappers that are searched.
const MAX_NESTING: usize = 16;
/// The end of the addresses that a program can use.
const END_OF_MEMORY: u64 = 1 << 47;

/// The machine, with the budget and the results of the reads so far.
pub(crate) struct Reach<'a> {
    pub machine: &'a dyn Machine,
    pub space: &'a AddressSpace,
    certainty: Cell<Certainty>,
    trail: RefCell<Trail>,
    steps: Cell<u64>,
}

impl<'a> Reach<'a> {
    pub(crate) fn new(machine: &'a dyn Machine, space: &'a AddressSpace) -> Reach<'a> {
        Reach::along(Trail::default(), machine, space)
    }

    /// Continues from another one.
    pub(crate) fn along(
        trail: Trail,
        machine: &'a dyn Machine,
        space: &'a AddressSpace,
    ) -> Reach<'a> {
        Reach {
            machine,
            space,
            certainty: Cell::new(Certainty::Known),
            trail: RefCell::new(trail),
            steps: Cell::new(MAX_STEPS),
        }
    }

    pub(crate) fn look(&self) -> Look<'a> {
        Look {
            machine: self.machine,
            space: self.space,
        }
    }

    /// Counts one step of a walk.
    pub(crate) fn step(&self) -> Result<(), Unknown> {
        let left = self.steps.get().checked_sub(1);
        let left = left.ok_or_else(|| Unknown::because("it has too many elements to look at"))?;
        self.steps.set(left);
        Ok(())
    }

    /// The certainty of all reads so far.
    pub(crate) fn certainty(&self) -> Certainty {
        self.certainty.get()
    }

    /// The reads that led here.
    pub(crate) fn into_trail(self) -> Trail {
        self.trail.into_inner()
    }

    /// Adds a read that was made elsewhere and whose result leads on.
    pub(crate) fn led_by(&self, piece: Piece) -> Result<(), Unknown> {
        self.trail.borrow_mut().add(piece, self.machine)
    }

    /// Checks that the pointers of all reads were valid when their targets were seen.
    pub(crate) fn ends_at(&self, piece: &Piece) -> Result<(), Unknown> {
        self.trail.borrow().ends_at(piece, self.machine)
    }

    /// Reads memory, within a constant limit. It refuses data that was seen at another moment than the pointers to it.
    pub(crate) fn read(&self, address: u64, len: u64) -> Result<Vec<u8>, Unknown> {
        if len > MAX_READ {
            return Err(Unknown::because(format!(
                "{len} bytes are too many to read"
            )));
        }
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        if !bytes.is_empty() {
            let certainty = self.machine.memory(address, &mut bytes)?;
            self.certainty.set(self.certainty.get().and(certainty));
            self.led_by(Piece::just_read(address, len, certainty, self.machine))?;
        }
        Ok(bytes)
    }

    /// Reads a word.
    pub(crate) fn word(&self, address: u64) -> Result<u64, Unknown> {
        Ok(number(&self.read(address, 8)?))
    }

    /// Checks that `len` elements of `size` bytes may lie at `start`.
    pub(crate) fn fits(&self, start: u64, len: u64, size: u64) -> Result<(), Unknown> {
        let end = len.checked_mul(size).and_then(|n| start.checked_add(n));
        match end {
            _ if size == 0 || len == 0 => Ok(()),
            Some(end) if end <= END_OF_MEMORY => Ok(()),
            _ => Err(Unknown::corrupt(format!(
                "{len} elements at {start:#x} are more than memory holds"
            ))),
        }
    }
}

/// Little-endian bytes as a number; bytes beyond eight are ignored.
fn number(bytes: &[u8]) -> u64 {
    let digits = bytes.iter().take(8).rev();
    digits.fold(0, |n, b| n << 8 | u64::from(*b))
}

/// The location of the bytes.
#[derive(Debug, Clone)]
pub(crate) enum At {
    Memory(u64),
    /// In a copy of a value without an address, from this offset on.
    Bytes(Arc<[u8]>, usize),
    /// In a value in pieces that is not known as a whole, from this offset on.
    Pieces(Arc<Value>, u64),
    /// Nowhere, for this reason.
    Nowhere(Unknown),
}

/// A typed location.
#[derive(Debug, Clone)]
pub(crate) struct TypedPlace {
    pub ty: Type,
    pub at: At,
}

/// The size of `ty`, or an error if it is unknown.
pub(crate) fn size(ty: &Type) -> Result<u64, Unknown> {
    let unknown = || Unknown::because(format!("the size of {} is not known", ty.name()));
    ty.size().ok_or_else(unknown)
}

/// The error for a part that `ty` lacks: everything, if its description is in another file's debug information.
fn lacks(ty: &Type, what: &str) -> Unknown {
    let what = match ty.size() {
        None => "is only declared in the debug information",
        Some(_) => what,
    };
    Unknown::because(format!("{} {what}", ty.name()))
}

/// Argument `index` of a generic type, if it is a type.
pub(crate) fn argument(ty: &Type, index: usize) -> Result<Type, Unknown> {
    let arguments = ty.template_arguments();
    let unknown = || lacks(ty, &format!("names no argument {index}"));
    arguments
        .get(index)
        .map(|a| a.ty.clone())
        .ok_or_else(unknown)
}

/// The number given as argument `index` of a template.
pub(crate) fn argument_value(ty: &Type, index: usize) -> Option<u64> {
    let value = ty.template_arguments().get(index)?.value?;
    u64::try_from(value).ok()
}

/// The path of the type's own name, such as `std::vector`.
pub(crate) fn path_of(ty: &Type) -> String {
    names::path(&ty.strip().own_name().unwrap_or_default())
}

/// The target type of the first pointer inside `ty`: pointers are wrapped in structures and options.
pub(crate) fn first_target(ty: &Type) -> Option<Type> {
    fn inside(ty: &Type, nesting: usize) -> Option<Type> {
        let nesting = nesting.checked_sub(1)?;
        let ty = ty.strip();
        if ty.kind() == TypeKind::Pointer {
            return ty.target();
        }
        let variants = ty.variants().map(|v| v.list).unwrap_or_default();
        let members = ty.members().into_iter();
        let mut members = members.chain(variants.into_iter().map(|v| v.member));
        members.find_map(|m| inside(&m.ty, nesting))
    }
    inside(ty, MAX_NESTING)
}

/// The variant with a discriminant in the bits of `mask`.
fn find_variant(list: &[Variant], discriminant: u128, mask: u128) -> Option<&Variant> {
    let named = list.iter().find(|v| match &v.discriminants {
        Discriminants::These(ranges) => ranges
            .iter()
            .any(|(first, last)| (first & mask..=last & mask).contains(&discriminant)),
        Discriminants::Others => false,
    });
    let others = |v: &&Variant| v.discriminants == Discriminants::Others;
    named.or_else(|| list.iter().find(others))
}

impl TypedPlace {
    pub(crate) fn memory(ty: &Type, address: u64) -> TypedPlace {
        TypedPlace {
            ty: ty.clone(),
            at: At::Memory(address),
        }
    }

    pub(crate) fn bytes(ty: &Type, bytes: &[u8]) -> TypedPlace {
        TypedPlace {
            ty: ty.clone(),
            at: At::Bytes(bytes.into(), 0),
        }
    }

    /// The same bytes as another type.
    pub(crate) fn cast(&self, ty: &Type) -> TypedPlace {
        TypedPlace {
            ty: ty.clone(),
            at: self.at.clone(),
        }
    }

    /// The location `offset` bytes further on.
    pub(crate) fn inner(&self, ty: &Type, offset: u64) -> TypedPlace {
        let at = match &self.at {
            At::Memory(address) => At::Memory(address.wrapping_add(offset)),
            At::Bytes(bytes, start) => {
                let offset = usize::try_from(offset).unwrap_or(usize::MAX);
                At::Bytes(bytes.clone(), start.saturating_add(offset))
            }
            At::Pieces(whole, start) => At::Pieces(whole.clone(), start.saturating_add(offset)),
            At::Nowhere(why) => At::Nowhere(why.clone()),
        };
        TypedPlace { ty: ty.clone(), at }
    }

    fn member(&self, member: &Member) -> Option<TypedPlace> {
        match member.offset {
            MemberOffset::Bytes(offset) => Some(self.inner(&member.ty, offset)),
            MemberOffset::Computed(_) | MemberOffset::Static(_) => None,
        }
    }

    /// The base classes.
    pub(crate) fn bases(&self) -> Vec<TypedPlace> {
        let members = self.ty.members();
        let bases = members.iter().filter(|m| m.role == Role::Base);
        bases.filter_map(|m| self.member(m)).collect()
    }

    /// The members that take up space, with their names.
    pub(crate) fn members(&self) -> Vec<(Option<String>, TypedPlace)> {
        let members = self.ty.members().into_iter();
        let sized = members.filter(|m| m.role == Role::Member && m.ty.size() != Some(0));
        sized
            .filter_map(|m| Some((m.name.clone(), self.member(&m)?)))
            .collect()
    }

    /// The member `name`, of the type itself or of an unnamed part: bases, unnamed unions.
    pub(crate) fn find(&self, name: &str) -> Option<TypedPlace> {
        self.find_within(name, MAX_NESTING)
    }

    fn find_within(&self, name: &str, nesting: usize) -> Option<TypedPlace> {
        let nesting = nesting.checked_sub(1)?;
        let members = self.ty.members();
        let named = members.iter().find(|m| m.name.as_deref() == Some(name));
        if let Some(member) = named.filter(|m| m.role == Role::Member) {
            return self.member(member);
        }
        let inside = members
            .iter()
            .filter(|m| m.role == Role::Base || (m.role == Role::Member && m.name.is_none()));
        let mut inside = inside.filter_map(|m| self.member(m));
        inside.find_map(|spot| spot.find_within(name, nesting))
    }

    /// The member `name`, or an error if the type has none: its version is unknown.
    pub(crate) fn field(&self, name: &str) -> Result<TypedPlace, Unknown> {
        let unknown = || lacks(&self.ty, &format!("has no member {name}"));
        self.find(name).ok_or_else(unknown)
    }

    /// The first existing one of several members.
    pub(crate) fn any_field(&self, names: &[&str]) -> Result<TypedPlace, Unknown> {
        let found = names.iter().find_map(|name| self.find(name));
        let unknown = || {
            let names = names.join(" or ");
            lacks(&self.ty, &format!("has no member {names}"))
        };
        found.ok_or_else(unknown)
    }

    /// A nested member.
    pub(crate) fn path(&self, names: &[&str]) -> Result<TypedPlace, Unknown> {
        let mut spot = self.clone();
        for name in names {
            spot = spot.field(name)?;
        }
        Ok(spot)
    }

    /// The address, if it has one.
    pub(crate) fn address(&self) -> Result<u64, Unknown> {
        match &self.at {
            At::Memory(address) => Ok(*address),
            At::Bytes(..) | At::Pieces(..) => Err(Unknown::because("it has no address")),
            At::Nowhere(why) => Err(why.clone()),
        }
    }

    /// The first `len` bytes.
    pub(crate) fn read(&self, reach: &Reach, len: u64) -> Result<Vec<u8>, Unknown> {
        match &self.at {
            At::Memory(address) => reach.read(*address, len),
            At::Bytes(bytes, start) => {
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                let end = start.saturating_add(len);
                let part = bytes.get(*start..end).map(<[u8]>::to_vec);
                part.ok_or_else(|| Unknown::because("it lies outside of its value"))
            }
            At::Pieces(whole, start) => {
                let part = inside::part(whole, &inside::storage(len), *start, &reach.look());
                let bytes = part.bytes?;
                let certainty = reach.certainty().and(part.certainty);
                reach.certainty.set(certainty);
                reach.led_by(Piece::elsewhere(part.certainty))?;
                Ok(bytes)
            }
            At::Nowhere(why) => Err(why.clone()),
        }
    }

    /// The bytes as an unsigned number: an integer, a pointer, or a structure around one.
    pub(crate) fn number(&self, reach: &Reach) -> Result<u64, Unknown> {
        let size = size(&self.ty)?;
        if size == 0 || size > 8 {
            let name = self.ty.name();
            return Err(Unknown::because(format!("{name} is not a number")));
        }
        Ok(number(&self.read(reach, size)?))
    }

    /// The target of the pointer here, or of the first one inside.
    pub(crate) fn target(&self, reach: &Reach) -> Result<TypedPlace, Unknown> {
        let unknown = || Unknown::because(format!("{} is not a pointer", self.ty.name()));
        let ty = first_target(&self.ty).ok_or_else(unknown)?;
        Ok(TypedPlace::memory(&ty, self.number(reach)?))
    }

    /// The live variant of a Rust enum: its name and its data.
    pub(crate) fn variant(&self, reach: &Reach) -> Result<(String, TypedPlace), Unknown> {
        let unknown = || Unknown::because(format!("{} has no variants", self.ty.name()));
        let variants = self.ty.variants().ok_or_else(unknown)?;
        let live = match &variants.discriminant {
            Some(member) => {
                let spot = self.member(member).ok_or_else(unknown)?;
                let bytes = spot.read(reach, size(&spot.ty)?.clamp(1, 16))?;
                let mut wide = [0; 16];
                wide[..bytes.len()].copy_from_slice(&bytes);
                let mask = u128::MAX >> (128 - 8 * bytes.len());
                find_variant(&variants.list, u128::from_le_bytes(wide), mask)
            }
            None => variants.only(),
        };
        let none = || Unknown::corrupt(format!("no variant of {}", self.ty.name()));
        let live = live.ok_or_else(none)?;
        let data = self.member(&live.member).ok_or_else(unknown)?;
        Ok((live.name.clone().unwrap_or_default(), data))
    }

    /// The scalar inside structures of one member each.
    pub(crate) fn innermost(&self) -> TypedPlace {
        let mut spot = self.clone();
        for _ in 0..MAX_NESTING {
            let mut members = spot.members();
            match (members.pop(), members.is_empty()) {
                (Some((_, only)), true) => spot = only,
                _ => break,
            }
        }
        spot
    }
}

/// A member of a type with many values, looked up once for all of them.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub ty: Type,
    offset: u64,
}

impl Slot {
    /// The whole value.
    pub(crate) fn whole(ty: &Type) -> Slot {
        Slot {
            ty: ty.clone(),
            offset: 0,
        }
    }

    /// The first of the members `names` that `ty` has.
    pub(crate) fn of(ty: &Type, names: &[&str]) -> Result<Slot, Unknown> {
        let member = TypedPlace::memory(ty, 0).any_field(names)?;
        let offset = member.address()?;
        Ok(Slot {
            ty: member.ty,
            offset,
        })
    }

    /// The member `name` of this member.
    pub(crate) fn inner(&self, name: &str) -> Result<Slot, Unknown> {
        let inner = Slot::of(&self.ty, &[name])?;
        Ok(Slot {
            offset: self.offset.wrapping_add(inner.offset),
            ..inner
        })
    }

    /// The same location as another type.
    pub(crate) fn cast(self, ty: &Type) -> Slot {
        Slot {
            ty: ty.clone(),
            ..self
        }
    }

    /// The member of the value at `address`.
    pub(crate) fn at(&self, address: u64) -> TypedPlace {
        TypedPlace::memory(&self.ty, address.wrapping_add(self.offset))
    }

    /// The pointer or other word in the member of the value at `address`.
    pub(crate) fn word(&self, reach: &Reach, address: u64) -> Result<u64, Unknown> {
        reach.word(address.wrapping_add(self.offset))
    }
}
