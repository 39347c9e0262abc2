//! Values: bytes with a type, a place and a certainty, and their parts. The crate `values` formats them.

pub mod ada;
mod elements;
mod error;
pub mod inside;
mod look;
mod meant;
pub mod number;
mod padding;
pub mod place;
mod rust;
mod seen;
pub mod trail;
pub mod variants;

use crate::location::{FrameContext, Piece, ValuePlace};
use crate::machine::{Ages, Certainty, Machine, Unknown};
use crate::types::{BitRange, Type, TypeKind};

pub use error::ValueError;
pub use inside::MAX_NAMED;
pub use look::Look;
pub use meant::Meant;
use padding::Used;
pub(crate) use seen::SeenRegister;

/// Largest value that is read whole, in bytes. Parts of larger ones are read from their places.
pub const MAX_BYTES: u64 = 1 << 20;

/// A value of the program.
#[derive(Debug, Clone)]
pub struct Value {
    /// Its type.
    pub ty: Type,
    /// Its place.
    pub place: ValuePlace,
    /// Its bytes. For a bit field, the bytes that contain it.
    pub bytes: Result<Vec<u8>, Unknown>,
    /// The certainty of the bytes: at most that of `reached`.
    pub certainty: Certainty,
    /// The certainty of its place. The target of a pointer is as certain as the pointer.
    pub reached: Certainty,
    /// Whether its bytes were seen together. `certainty` is that of the oldest.
    pub ages: Ages,
    /// For a bit field, its bits in `bytes`.
    pub bits: Option<BitRange>,
}

impl Value {
    /// Makes a value that has no place in the program.
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

    /// Makes an unknown value.
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

    /// Reads `size` bytes of the value, starting at byte `offset`, wherever they are.
    pub(crate) fn bytes_at(&self, offset: u64, size: u64, machine: &dyn Machine) -> Value {
        let byte = crate::types::builtin("u8").expect("u8 is a base type");
        let place = place::part(&self.place, offset, size);
        Value::read(byte.array(size), place, machine).reached_by(self.reached)
    }

    /// Reads the value of type `ty` at `place`. If it cannot be read, [`Value::bytes`] has the error.
    #[must_use]
    pub fn read(ty: Type, place: ValuePlace, machine: &dyn Machine) -> Value {
        let size = ty.size();
        let place = seen::with_registers(place, machine);
        let read = match size {
            Some(size) if size > MAX_BYTES => Err(too_large(size)),
            // A type without a size has no bytes that could be missing.
            size => place::read(&place, size.unwrap_or(0), machine),
        };
        let place = match (&read, place, size) {
            // Its members are read one by one, from what the register holds now.
            (Err(_), ValuePlace::Register(register), Some(size)) if is_aggregate(&ty) => {
                let whole = Piece::new(ValuePlace::Register(register), 0, size.saturating_mul(8));
                seen::with_registers(ValuePlace::Pieces(vec![whole]), machine)
            }
            (_, place, _) => place,
        };
        let read = match (read, &place, size) {
            (Err(why), ValuePlace::Pieces(pieces), Some(size)) => match Used::of(&ty) {
                Some(used) => place::read_used(pieces, size, machine, &used),
                None => Err(why),
            },
            (read, ..) => read,
        };
        let (bytes, certainty) = match read {
            Ok((bytes, certainty)) => (Ok(bytes), certainty),
            Err(why) => (Err(why), place::oldest(&place, machine)),
        };
        let ages = match &place {
            ValuePlace::Memory(_) if bytes.is_ok() => machine.ages(),
            // Pieces are read one by one.
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
        .if_told()
    }

    /// Leaves out bytes that do not tell what the value is.
    fn if_told(mut self) -> Value {
        if self.bytes.is_ok()
            && let Some(why) = self.ty.strip().unread()
        {
            self.bytes = Err(Unknown::because(why));
        }
        self
    }

    /// Limits the certainty to that of what led to the value.
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

    /// Returns whether the value is unknown because its bytes were seen at another moment than what led to them.
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

    /// Returns whether the compiler removed the value.
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

    /// Returns whether it is a structure or array in several pieces, of which some can be read and others cannot.
    #[must_use]
    pub fn is_partly_known(&self, machine: &dyn Machine) -> bool {
        let ValuePlace::Pieces(pieces) = &self.place else {
            return false;
        };
        let is_read = |piece: &Piece| place::read_piece(piece, 1, machine).is_ok();
        is_aggregate(&self.ty) && self.bytes.is_err() && pieces.iter().any(is_read)
    }

    /// Returns the kind of its type, without typedefs and qualifiers.
    #[must_use]
    pub fn kind(&self) -> TypeKind {
        self.ty.strip().kind()
    }

    /// Returns the bytes.
    ///
    /// # Errors
    /// The bytes are unknown.
    pub fn known_bytes(&self) -> Result<&[u8], ValueError> {
        match &self.bytes {
            Ok(bytes) => Ok(bytes),
            Err(why) => Err(ValueError::Unknown(why.clone())),
        }
    }

    /// Returns an integer, character, boolean, enumerator or pointer as a number.
    ///
    /// # Errors
    /// The value has another type or is unknown.
    pub fn as_integer(&self) -> Result<i128, ValueError> {
        number::integer(self)
    }

    /// Returns the address in a pointer or reference.
    ///
    /// # Errors
    /// The value has another type or is unknown.
    pub fn as_address(&self) -> Result<u64, ValueError> {
        number::address(self)
    }

    /// Returns the member called `name`. Also searches base classes, unnamed members and the active variant of a Rust
    /// enum. Does not follow pointers; see [`Value::deref`].
    ///
    /// # Errors
    /// There is no such member, or its place is unknown.
    pub fn member(&self, name: &str, look: &Look<'_>) -> Result<Value, ValueError> {
        inside::member(self, name, look)
    }

    /// Returns element `index` of an array, or of the target of a pointer.
    ///
    /// # Errors
    /// The value is neither, or the address of the element is unknown. An index outside an array is not an error if the
    /// array is in memory.
    pub fn index(&self, index: i64, look: &Look<'_>) -> Result<Value, ValueError> {
        elements::index(self, index, look)
    }

    /// Returns the element at a position of an array, counted from 0 regardless of its first index.
    ///
    /// # Errors
    /// The value is not an array, or the place of the element is unknown.
    pub fn nth(&self, position: u64, look: &Look<'_>) -> Result<Value, ValueError> {
        elements::nth(self, position, look)
    }

    /// Returns the target of a pointer or reference.
    ///
    /// # Errors
    /// The value is neither, is null, or is unknown. If a known address cannot be read, the result is an unknown value,
    /// not an error.
    pub fn deref(&self, look: &Look<'_>) -> Result<Value, ValueError> {
        inside::deref(self, look)
    }

    /// Follows references to the value itself. Returns a value that is not a reference unchanged.
    ///
    /// # Errors
    /// As for [`Value::deref`].
    pub fn unreferenced(&self, look: &Look<'_>) -> Result<Value, ValueError> {
        match self.kind() {
            TypeKind::Reference | TypeKind::RvalueReference => self.deref(look),
            _ => Ok(self.clone()),
        }
    }

    /// Returns name and data of the active variant of a Rust enum.
    ///
    /// # Errors
    /// The value is not such an enum, or its discriminant is unknown or fits no variant.
    pub fn variant(&self, look: &Look<'_>) -> Result<(String, Value), ValueError> {
        rust::variant(self, look)
    }
}

/// Returns whether values of the type have parts of their own.
fn is_aggregate(ty: &Type) -> bool {
    matches!(
        ty.strip().kind(),
        TypeKind::Struct | TypeKind::Class | TypeKind::Union | TypeKind::Array
    )
}

fn too_large(size: u64) -> Unknown {
    Unknown::because(format!("{size} bytes are too many to be read at once"))
}
