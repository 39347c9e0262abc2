//! Splits location expressions into pieces. Pieces are evaluated separately, so an unknown one does not hide the
//! others.
//!
//! GCC marks some locations where the variable may not be set yet (`DW_OP_GNU_uninit`, not part of the standard). The
//! place is correct all the same, and debuggers show its contents.

use gimli::{Encoding, Expression, Operation, Reader};

use crate::dwarf::Slice;

/// `DW_OP_GNU_uninit`: the variable at this place may be uninitialised.
const GNU_UNINIT: u8 = 0xf0;

/// A location.
pub(super) enum Parts<'a> {
    /// Of the whole value.
    Whole(Expression<Slice<'a>>),
    /// Of its pieces, in order.
    Pieces(Vec<Part<'a>>),
}

pub(super) struct Part<'a> {
    /// The place of the piece. Empty if it has none.
    pub expression: Expression<Slice<'a>>,
    /// Bits of the place before the piece.
    pub offset_bits: u64,
    /// The size of the piece in bits.
    pub size_bits: u64,
}

/// Splits an expression at its pieces. Operations after the last piece have no size and are dropped.
pub(super) fn split<'a>(
    expression: Expression<Slice<'a>>,
    encoding: Encoding,
) -> gimli::Result<Parts<'a>> {
    let Expression(whole) = expression;
    let (mut rest, mut start) = (whole, whole);
    let mut pieces = Vec::new();
    // A jump may pass over pieces, so an expression with jumps is not split.
    let mut jumps = false;
    while !rest.is_empty() {
        let before = rest;
        if before.slice()[0] == GNU_UNINIT {
            rest.skip(1)?;
            continue;
        }
        match Operation::parse(&mut rest, encoding)? {
            Operation::Bra { .. } | Operation::Skip { .. } => jumps = true,
            Operation::Piece {
                size_in_bits,
                bit_offset,
            } => {
                let mut part = start;
                part.truncate(start.len() - before.len())?;
                pieces.push(Part {
                    expression: without_uninit(Expression(part), encoding),
                    offset_bits: bit_offset.unwrap_or(0),
                    size_bits: size_in_bits,
                });
                start = rest;
            }
            _ => {}
        }
    }
    if pieces.is_empty() || jumps {
        return Ok(Parts::Whole(without_uninit(expression, encoding)));
    }
    Ok(Parts::Pieces(pieces))
}

/// Removes a `DW_OP_GNU_uninit` at the end of an expression.
pub(super) fn without_uninit<'a>(
    expression: Expression<Slice<'a>>,
    encoding: Encoding,
) -> Expression<Slice<'a>> {
    let Expression(whole) = expression;
    if whole.slice().last() != Some(&GNU_UNINIT) {
        return expression;
    }
    // The byte may be the end of an operand.
    let mut rest = whole;
    while rest.len() > 1 {
        if Operation::parse(&mut rest, encoding).is_err() {
            return expression;
        }
    }
    let mut shorter = whole;
    match rest.len() == 1 && shorter.truncate(whole.len() - 1).is_ok() {
        true => Expression(shorter),
        false => expression,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENCODING: Encoding = Encoding {
        address_size: 8,
        format: gimli::Format::Dwarf32,
        version: 5,
    };
    const REG0: u8 = 0x50;
    const LIT1: u8 = 0x31;
    const CONST1U: u8 = 0x08;
    const PIECE: u8 = 0x93;
    const SKIP: u8 = 0x2f;

    fn parts(bytes: &[u8]) -> Result<Vec<u8>, Vec<(Vec<u8>, u64)>> {
        let expression = Expression(Slice::new(bytes, gimli::LittleEndian));
        match split(expression, ENCODING).expect("whole operations") {
            Parts::Whole(whole) => Ok(whole.0.slice().to_vec()),
            Parts::Pieces(pieces) => Err(pieces
                .into_iter()
                .map(|part| (part.expression.0.slice().to_vec(), part.size_bits))
                .collect()),
        }
    }

    #[test]
    fn expressions_are_split_at_their_pieces() {
        assert_eq!(parts(&[REG0]), Ok(vec![REG0]));
        assert_eq!(parts(&[]), Ok(vec![]));
        // The second piece is nowhere, the third one is computed.
        let three = [REG0, PIECE, 4, PIECE, 4, CONST1U, PIECE, 0x9f, PIECE, 8];
        let wanted = vec![
            (vec![REG0], 32),
            (vec![], 32),
            (vec![CONST1U, PIECE, 0x9f], 64),
        ];
        assert_eq!(parts(&three), Err(wanted));
        let jumps = [SKIP, 0, 0, REG0, PIECE, 4];
        assert_eq!(parts(&jumps), Ok(jumps.to_vec()));
    }

    #[test]
    fn variables_that_may_be_uninitialised_are_where_they_are() {
        assert_eq!(parts(&[REG0, GNU_UNINIT]), Ok(vec![REG0]));
        // An operand with this value is not the mark.
        let operand = [CONST1U, GNU_UNINIT];
        assert_eq!(parts(&operand), Ok(operand.to_vec()));
        let both = [REG0, GNU_UNINIT, PIECE, 4, LIT1, PIECE, 4, GNU_UNINIT];
        let wanted = vec![(vec![REG0], 32), (vec![LIT1], 32)];
        assert_eq!(parts(&both), Err(wanted));
    }
}
