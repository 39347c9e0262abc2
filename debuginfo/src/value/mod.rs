//! Values: bytes with a type, a place and a certainty, and what is inside them. What they look like is for the crate `values`.

pub mod ada;
mod elements;
mod error;
pub mod inside;
mod look;
pub mod number;
pub mod place;
mod rust;
pub mod trail;
pub mod variants;

use crate::location::{FrameContext, Piece, ValuePlace};
use crate::machine::{Ages, Certainty, Machine, Unknown};
use crate::types::{BitRange, Type, TypeKind};

pub use error::ValueError;
pub use inside::MAX_NAMED;
pub use look::Look;

/// Bytes of one value that are read whole; parts of larger ones are read from their place.
pub const MAX_BYTES: u64 = 1 << 20;

/// A value of the program.
#[derive(Debug, Clone)]
pub struct Value {
    /// Its type.
    pub ty: Type,
    /// Where it is.
    pub place: ValuePlace,
    /// Its bytes; for a bit field those that hold it.
    pub bytes: Result<Vec<u8>, Unknown>,
    /// How far the bytes may be trusted: at most as far as `reached`.
    pub certainty: Certainty,
    /// How far its place may be trusted: that of what a pointer leads to as far as the pointer.
    pub reached: Certainty,
    /// Whether its bytes were seen together; `certainty` is that of the oldest.
    pub ages: Ages,
    /// For a bit field its bits in `bytes`.
    pub bits: Option<BitRange>,
}

impl Value {
    /// Makes a value that is nowhere in the program.
    #[must_use]
    pub fn constant(ty: Type, bytes: Vec<u8>) -> Value {
        Value {
            ty,
            place: ValuePlace::Implicit(bytes.clone()),
            bytes: Ok(bytes),
            certainty: Certainty::Known,
            reached: Certainty::Known,
            ages: Ages::One,
            bits: None,
        }
    }

    /// Makes a value that is not known.
    #[must_use]
    pub fn unknown(ty: Type, why: Unknown) -> Value {
        Value {
            ty,
            place: ValuePlace::Unknown(why.clone()),
            bytes: Err(why),
            certainty: Certainty::Known,
            reached: Certainty::Known,
            ages: Ages::One,
            bits: None,
        }
    }

    /// Reads `size` bytes that begin `offset` bytes behind its start, wherever they are.
    pub(crate) fn bytes_at(&self, offset: u64, size: u64, machine: &dyn Machine) -> Value {
        let byte = crate::types::builtin("u8").expect("u8 is a base type");
        let place = place::part(&self.place, offset, size);
        Value::read(byte.array(size), place, machine).reached_by(self.reached)
    }

    /// Reads the value of type `ty` at `place`. What cannot be read is in [`Value::bytes`] as an error.
    #[must_use]
    pub fn read(ty: Type, place: ValuePlace, machine: &dyn Machine) -> Value {
        let size = ty.size();
        let read = match size {
            Some(size) if size > MAX_BYTES => Err(too_large(size)),
            // A type without a size has no bytes that could be missing.
            size => place::read(&place, size.unwrap_or(0), machine),
        };
        let (bytes, certainty) = match read {
            Ok((bytes, certainty)) => (Ok(bytes), certainty),
            Err(why) => (Err(why), place::oldest(&place, machine)),
        };
        let ages = match &place {
            ValuePlace::Memory(_) if bytes.is_ok() => machine.ages(),
            // Read one by one.
            ValuePlace::Pieces(_) if certainty != Certainty::Known => Ages::Several,
            _ => Ages::One,
        };
        Value {
            ty,
            place,
            bytes,
            certainty,
            reached: Certainty::Known,
            ages,
            bits: None,
        }
    }

    /// Returns the value as one that was found by what is so certain.
    #[must_use]
    pub fn reached_by(mut self, certainty: Certainty) -> Value {
        self.reached = self.reached.and(certainty);
        self.certainty = self.certainty.and(certainty);
        self
    }

    /// Reads the value of type `ty` in memory.
    #[must_use]
    pub fn at(ty: Type, address: u64, machine: &dyn Machine) -> Value {
        Value::read(ty, ValuePlace::Memory(address), machine)
    }

    /// Tells whether it is not known because its bytes were seen at another moment than what led to them.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        matches!(&self.bytes, Err(why) if why.reason == trail::APART)
    }

    /// Returns the value's address, if it is in memory.
    #[must_use]
    pub fn address(&self) -> Option<u64> {
        match self.place {
            ValuePlace::Memory(address) if self.bits.is_none() => Some(address),
            _ => None,
        }
    }

    /// Tells whether the compiler removed the value.
    #[must_use]
    pub fn is_optimized_out(&self) -> bool {
        match &self.place {
            ValuePlace::OptimizedOut => true,
            ValuePlace::Pieces(pieces) => pieces
                .iter()
                .all(|piece| matches!(piece.place, ValuePlace::OptimizedOut)),
            _ => false,
        }
    }

    /// Tells whether it is a structure or array in several pieces, of which one can be read and another one cannot.
    #[must_use]
    pub fn is_partly_known(&self, machine: &dyn Machine) -> bool {
        let is_aggregate = matches!(
            self.kind(),
            TypeKind::Struct | TypeKind::Class | TypeKind::Union | TypeKind::Array
        );
        let ValuePlace::Pieces(pieces) = &self.place else {
            return false;
        };
        let is_read = |piece: &Piece| place::read(&piece.place, 1, machine).is_ok();
        is_aggregate && self.bytes.is_err() && pieces.iter().any(is_read)
    }

    /// Returns the kind of its type, typedefs and qualifiers aside.
    #[must_use]
    pub fn kind(&self) -> TypeKind {
        self.ty.strip().kind()
    }

    /// Returns the bytes.
    ///
    /// # Errors
    /// They are not known.
    pub fn known_bytes(&self) -> Result<&[u8], ValueError> {
        match &self.bytes {
            Ok(bytes) => Ok(bytes),
            Err(why) => Err(ValueError::Unknown(why.clone())),
        }
    }

    /// Returns an integer, character, boolean, enumerator or pointer as a number.
    ///
    /// # Errors
    /// It is of another type, or not known.
    pub fn as_integer(&self) -> Result<i128, ValueError> {
        number::integer(self)
    }

    /// Returns the address that a pointer or reference holds.
    ///
    /// # Errors
    /// It is of another type, or not known.
    pub fn as_address(&self) -> Result<u64, ValueError> {
        number::address(self)
    }

    /// Returns the member called `name`, also one of a base class, of an unnamed member, of the live variant of a Rust
    /// enum. Members of what a pointer points to are found through [`Value::deref`].
    ///
    /// # Errors
    /// There is none of this name, or where it is cannot be known.
    pub fn member(&self, name: &str, look: &Look<'_>) -> Result<Value, ValueError> {
        inside::member(self, name, look)
    }

    /// Returns element `index` of an array, or of what a pointer points to.
    ///
    /// # Errors
    /// It is neither, or the address of the element cannot be known. An index outside of an array is no error where
    /// the array is in memory.
    pub fn index(&self, index: i64, look: &Look<'_>) -> Result<Value, ValueError> {
        elements::index(self, index, look)
    }

    /// Returns the element at a position of an array, counted from 0 whatever its first index is.
    ///
    /// # Errors
    /// It is no array, or the place of the element cannot be known.
    pub fn nth(&self, position: u64, look: &Look<'_>) -> Result<Value, ValueError> {
        elements::nth(self, position, look)
    }

    /// Returns what a pointer or reference refers to.
    ///
    /// # Errors
    /// It is neither, it is null, or not known. What cannot be read at a known address is no error but an unknown value.
    pub fn deref(&self, look: &Look<'_>) -> Result<Value, ValueError> {
        inside::deref(self, look)
    }

    /// Follows references until the value itself; a value that is no reference is returned as it is.
    ///
    /// # Errors
    /// As for [`Value::deref`].
    pub fn unreferenced(&self, look: &Look<'_>) -> Result<Value, ValueError> {
        match self.kind() {
            TypeKind::Reference | TypeKind::RvalueReference => self.deref(look),
            _ => Ok(self.clone()),
        }
    }

    /// Returns the live variant of a Rust enum: its name and its data.
    ///
    /// # Errors
    /// It is no such enum, or its discriminant is not known or fits no variant.
    pub fn variant(&self, look: &Look<'_>) -> Result<(String, Value), ValueError> {
        rust::variant(self, look)
    }
}

fn too_large(size: u64) -> Unknown {
    Unknown::because(format!("{size} bytes are too many to be read at once"))
}
