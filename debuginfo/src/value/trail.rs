//! Tracks what was read to find a part of a value, and whether all of it existed at one moment.
//!
//! In a recording, a container's header may have been seen long after the elements that it leads to, or before them.
//! Shown together, they could form a container that never existed. They are combined only if what was seen last is
//! known to have been the same when the rest was seen.

use crate::machine::{Ages, Certainty, Machine, Unknown};
use crate::value::Value;

/// Bytes that were read, and their age.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    /// Address and length. `None` for bytes that are not in memory.
    place: Option<(u64, u64)>,
    certainty: Certainty,
    /// Some of the bytes were seen later than that.
    is_mixed: bool,
}

impl Piece {
    /// Makes a piece of what has just been read from a machine.
    pub fn just_read(address: u64, len: u64, certainty: Certainty, machine: &dyn Machine) -> Piece {
        Piece {
            place: Some((address, len)),
            certainty,
            is_mixed: machine.ages() == Ages::Several,
        }
    }

    /// Makes a piece of a value that was read, perhaps some time ago.
    pub fn of(value: &Value) -> Option<Piece> {
        let len = value.bytes.as_ref().ok()?.len() as u64;
        Some(match value.address() {
            Some(address) => Piece {
                place: Some((address, len)),
                certainty: value.certainty,
                // If the value is only as certain as the way to it, its bytes may be newer.
                is_mixed: value.ages == Ages::Several
                    || value.certainty != Certainty::Known && value.certainty == value.reached,
            },
            None => Piece::elsewhere(value.certainty),
        })
    }

    /// Makes a piece of bytes in registers, or of a value that has no place.
    pub fn elsewhere(certainty: Certainty) -> Piece {
        Piece {
            place: None,
            certainty,
            is_mixed: false,
        }
    }

    /// Returns whether the bytes are known to have been the same at the time of `oldest`.
    fn held(&self, machine: &dyn Machine, oldest: Certainty) -> bool {
        match (oldest, self.place) {
            _ if self.certainty == oldest && !self.is_mixed => true,
            (Certainty::Stale { as_of }, Some((address, len))) => {
                machine.was_same(address, len, as_of)
            }
            _ => false,
        }
    }
}

/// The pieces that led to the current position.
#[derive(Debug, Clone, Default)]
pub struct Trail {
    pieces: Vec<Piece>,
    oldest: Option<Certainty>,
}

impl Trail {
    /// Adds a piece to which the previous ones led.
    ///
    /// # Errors
    /// The pieces may not fit together.
    pub fn add(&mut self, piece: Piece, machine: &dyn Machine) -> Result<(), Unknown> {
        let oldest = self.with(&piece, machine).ok_or_else(apart)?;
        self.pieces.push(piece);
        self.oldest = Some(oldest);
        Ok(())
    }

    /// Checks a piece at the end of the trail, from which nothing else is read.
    ///
    /// # Errors
    /// The piece may not fit the others.
    pub fn ends_at(&self, piece: &Piece, machine: &dyn Machine) -> Result<(), Unknown> {
        self.with(piece, machine).map(|_| ()).ok_or_else(apart)
    }

    /// Checks that `value` existed together with everything that led to it.
    ///
    /// # Errors
    /// It may not have.
    pub fn check(led_by: &[&Value], value: &Value, machine: &dyn Machine) -> Result<(), Unknown> {
        let mut trail = Trail::default();
        let pieces = led_by.iter().filter_map(|value| Piece::of(value));
        pieces
            .into_iter()
            .try_for_each(|piece| trail.add(piece, machine))?;
        match Piece::of(value) {
            Some(piece) => trail.ends_at(&piece, machine),
            None => Ok(()),
        }
    }

    /// Returns the age of all pieces together, if all of them existed when the oldest was seen.
    fn with(&self, piece: &Piece, machine: &dyn Machine) -> Option<Certainty> {
        let before = self.oldest.unwrap_or(piece.certainty);
        let oldest = before.and(piece.certainty);
        let agree = piece.held(machine, oldest)
            && (oldest == before || self.pieces.iter().all(|p| p.held(machine, oldest)));
        if !agree {
            machine.disregarded();
        }
        agree.then_some(oldest)
    }
}

/// Why a value is unknown although each of its parts is known.
#[must_use]
pub fn apart() -> Unknown {
    Unknown::because(APART)
}

/// Why a value is not shown although each of its parts is known or stale.
pub const APART: &str = "its parts were last seen at different events";

#[cfg(test)]
mod tests {
    use super::{Piece, Trail};
    use crate::machine::{Certainty, Machine, Register, Unknown};

    /// At events 10 to 20, only the first 100 bytes were the same as now.
    struct Halves;

    impl Machine for Halves {
        fn memory(&self, _: u64, _: &mut [u8]) -> Result<Certainty, Unknown> {
            unreachable!("trails read nothing")
        }

        fn register(&self, _: Register) -> Result<(u64, Certainty), Unknown> {
            unreachable!("trails read nothing")
        }

        fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
            unreachable!("trails read nothing")
        }

        fn was_same(&self, address: u64, len: u64, event: u64) -> bool {
            (10..=20).contains(&event) && address + len <= 100
        }
    }

    fn walked(pieces: &[Piece]) -> Option<Certainty> {
        let mut trail = Trail::default();
        for piece in pieces {
            trail.add(*piece, &Halves).ok()?;
        }
        trail.oldest
    }

    #[test]
    fn pieces_fit_that_were_there_when_the_oldest_was_seen() {
        let ten = Certainty::Stale { as_of: 10 };
        let twenty = Certainty::Stale { as_of: 20 };
        let at = |address, len, certainty| Piece::just_read(address, len, certainty, &Halves);
        for (pieces, fit) in [
            (vec![at(8, 8, Certainty::Known), at(200, 8, ten)], Some(ten)),
            (vec![at(200, 8, ten), at(8, 8, Certainty::Known)], Some(ten)),
            (
                vec![
                    at(8, 8, twenty),
                    at(8, 8, Certainty::Known),
                    at(200, 8, ten),
                ],
                Some(ten),
            ),
            // The header was different at that event.
            (vec![at(96, 8, Certainty::Known), at(200, 8, ten)], None),
            (vec![at(200, 8, ten), at(96, 8, twenty)], None),
            (
                vec![at(8, 8, ten), at(16, 8, twenty), at(300, 8, twenty)],
                None,
            ),
            // Pieces of one age fit without further knowledge.
            (vec![at(200, 8, twenty), at(300, 8, twenty)], Some(twenty)),
            (
                vec![at(200, 8, Certainty::Known), at(300, 8, Certainty::Known)],
                Some(Certainty::Known),
            ),
            // The past of registers is unknown.
            (
                vec![Piece::elsewhere(Certainty::Known), at(8, 8, ten)],
                None,
            ),
            (vec![Piece::elsewhere(ten), at(200, 8, ten)], Some(ten)),
        ] {
            assert_eq!(walked(&pieces), fit, "{pieces:?}");
        }
    }
}
