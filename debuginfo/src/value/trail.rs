//! What was read to find a part of a value, and whether all of it was there at one moment.
//!
//! In a recording a container's header may have been seen long after the elements that it leads to, or before them. Shown
//! together they would be a container that there never was, unless what was seen last is known to have been the same
//! when the rest was seen.

use crate::machine::{Ages, Certainty, Machine, Unknown};
use crate::value::Value;

/// Bytes that were read, and how old they are.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    /// Address and length; `None` for what is in no memory.
    place: Option<(u64, u64)>,
    certainty: Certainty,
    /// Some of the bytes were seen later than that.
    is_mixed: bool,
}

impl Piece {
    /// What has just been read from a machine.
    pub fn just_read(address: u64, len: u64, certainty: Certainty, machine: &dyn Machine) -> Piece {
        Piece {
            place: Some((address, len)),
            certainty,
            is_mixed: machine.ages() == Ages::Several,
        }
    }

    /// A value that has been read, perhaps some time ago.
    pub fn of(value: &Value) -> Option<Piece> {
        let len = value.bytes.as_ref().ok()?.len() as u64;
        Some(match value.address() {
            Some(address) => Piece {
                place: Some((address, len)),
                certainty: value.certainty,
                // Where the way to it is as old as it is told to be, its bytes may be newer.
                is_mixed: value.ages == Ages::Several
                    || value.certainty != Certainty::Known && value.certainty == value.reached,
            },
            None => Piece::elsewhere(value.certainty),
        })
    }

    /// Bytes of registers, or of a value that is nowhere.
    pub fn elsewhere(certainty: Certainty) -> Piece {
        Piece {
            place: None,
            certainty,
            is_mixed: false,
        }
    }

    /// Tells whether the bytes are known to have been the same when those were seen that are as old as `oldest`.
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

/// The pieces that led to where a reader is.
#[derive(Debug, Clone, Default)]
pub struct Trail {
    pieces: Vec<Piece>,
    oldest: Option<Certainty>,
}

impl Trail {
    /// Adds a piece that the ones before led to.
    ///
    /// # Errors
    /// They need not fit together.
    pub fn add(&mut self, piece: Piece, machine: &dyn Machine) -> Result<(), Unknown> {
        let oldest = self.with(&piece, machine).ok_or_else(apart)?;
        self.pieces.push(piece);
        self.oldest = Some(oldest);
        Ok(())
    }

    /// Checks a piece that the trail leads to and nothing is read behind.
    ///
    /// # Errors
    /// It need not fit to them.
    pub fn ends_at(&self, piece: &Piece, machine: &dyn Machine) -> Result<(), Unknown> {
        self.with(piece, machine).map(|_| ()).ok_or_else(apart)
    }

    /// Checks that `value` was there when all that led to it was.
    ///
    /// # Errors
    /// It need not have been.
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

    /// The age of all pieces together, if all were there when the oldest was seen.
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

/// Why something is not known of which each part is.
#[must_use]
pub fn apart() -> Unknown {
    Unknown::because(APART)
}

/// Why parts are not shown of which each is known, or stale.
pub const APART: &str = "its parts were last seen at different events";

#[cfg(test)]
mod tests {
    use super::{Piece, Trail};
    use crate::machine::{Certainty, Machine, Register, Unknown};

    /// At events 10 to 20 only the first 100 bytes were what they are.
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
            // The header was something else then.
            (vec![at(96, 8, Certainty::Known), at(200, 8, ten)], None),
            (vec![at(200, 8, ten), at(96, 8, twenty)], None),
            (
                vec![at(8, 8, ten), at(16, 8, twenty), at(300, 8, twenty)],
                None,
            ),
            // Of one age they need no witness.
            (vec![at(200, 8, twenty), at(300, 8, twenty)], Some(twenty)),
            (
                vec![at(200, 8, Certainty::Known), at(300, 8, Certainty::Known)],
                Some(Certainty::Known),
            ),
            // Registers have no past.
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
