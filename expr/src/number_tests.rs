//! Goal: numbers are computed as in C, and operations without a result are refused.

use super::{IntKind, Number, Trouble, binary, unary};
use crate::{ExprKind, parse};

fn compute(text: &str) -> Result<Number, Trouble> {
    fn walk(expr: &crate::Expr) -> Result<Number, Trouble> {
        match &expr.kind {
            ExprKind::Literal(literal) => Ok(Number::literal(literal).unwrap()),
            ExprKind::Unary(op, of) => unary(*op, walk(of)?),
            ExprKind::Binary(op, a, b) => binary(*op, walk(a)?, walk(b)?),
            other => panic!("{other:?}"),
        }
    }
    walk(&parse(text).unwrap())
}

fn integer(signed: bool, bits: u8, value: i128) -> Result<Number, Trouble> {
    Ok(Number::integer(IntKind { signed, bits }, value as u128))
}

#[test]
fn literals_have_the_types_of_c() {
    assert_eq!(compute("1"), integer(true, 32, 1));
    assert_eq!(compute("2147483648"), integer(true, 64, 1 << 31));
    assert_eq!(compute("0x80000000"), integer(false, 32, 1 << 31));
    assert_eq!(compute("4294967296u"), integer(false, 64, 1 << 32));
    assert_eq!(compute("1ul"), integer(false, 64, 1));
    assert_eq!(compute("0x8000000000000000"), integer(false, 64, 1 << 63));
    assert_eq!(compute("9223372036854775808"), integer(true, 128, 1 << 63));
    assert_eq!(compute("5u8"), integer(false, 8, 5));
}

#[test]
fn operands_are_converted_as_in_c() {
    assert_eq!(compute("200u8 + 100u8"), integer(true, 32, 300));
    assert_eq!(compute("-1 < 1u"), Ok(Number::Bool(false)));
    assert_eq!(compute("-1 < 1ul"), Ok(Number::Bool(false)));
    assert_eq!(compute("-1l < 1u"), Ok(Number::Bool(true)));
    assert_eq!(compute("0xffffffff + 1"), integer(false, 32, 0));
    assert_eq!(compute("2147483647 + 1"), integer(true, 32, -1 << 31));
    assert_eq!(compute("1 + true"), integer(true, 32, 2));
    assert_eq!(compute("~0u8"), integer(true, 32, -1));
    assert_eq!(compute("-7 / 2"), integer(true, 32, -3));
    assert_eq!(compute("-7 % 2"), integer(true, 32, -1));
    assert_eq!(compute("-8 >> 1"), integer(true, 32, -4));
    assert_eq!(compute("1i128 << 100"), integer(true, 128, 1 << 100));
    let float = |value, single| Ok(Number::Float { value, single });
    assert_eq!(compute("1 + 0.5f"), float(1.5, true));
    assert_eq!(compute("1 + 0.5"), float(1.5, false));
    assert_eq!(
        compute("0.1f + 0.2f"),
        float(f64::from(0.1f32 + 0.2f32), true)
    );
    assert_eq!(compute("0.1f == 0.1"), Ok(Number::Bool(false)));
}

#[test]
fn what_has_no_answer_is_refused() {
    assert_eq!(compute("1 / 0"), Err(Trouble::DivisionByZero));
    assert_eq!(compute("1 % (1 - 1)"), Err(Trouble::DivisionByZero));
    assert_eq!(compute("1 << 32"), Err(Trouble::Shift { by: 32, bits: 32 }));
    assert_eq!(compute("1 << -1"), Err(Trouble::Shift { by: -1, bits: 32 }));
    assert_eq!(compute("(-2147483647 - 1) / -1"), Err(Trouble::Overflow));
    assert_eq!(compute("1.5 % 2"), Err(Trouble::NotForFloats("%")));
    assert_eq!(
        compute("1.0 / 0"),
        Ok(Number::Float {
            value: f64::INFINITY,
            single: false
        })
    );
    let nan = "(0.0 / 0.0)";
    assert_eq!(compute(&format!("{nan} == {nan}")), Ok(Number::Bool(false)));
    assert_eq!(compute(&format!("{nan} != {nan}")), Ok(Number::Bool(true)));
}

#[test]
fn floats_become_the_nearest_integers() {
    let to = |value, signed, bits| {
        let number = Number::Float {
            value,
            single: false,
        };
        number.to_kind(IntKind { signed, bits }).raw() as i128
    };
    assert_eq!(to(-1.9, true, 32), -1);
    assert_eq!(to(300.0, false, 8), 255);
    assert_eq!(to(-300.0, true, 8), -128);
    assert_eq!(to(-1.0, false, 8), 0);
    assert_eq!(to(f64::NAN, true, 64), 0);
    assert_eq!(to(1e300, false, 128), -1);
}

#[test]
fn bit_fields_become_int_if_it_holds_them() {
    let kind = |signed, bits| IntKind { signed, bits };
    let unsigned = kind(false, 32);
    assert_eq!(unsigned.of_bit_field(3), IntKind::INT);
    assert_eq!(unsigned.of_bit_field(31), IntKind::INT);
    assert_eq!(unsigned.of_bit_field(32), unsigned);
    assert_eq!(IntKind::UNSIGNED_LONG.of_bit_field(5), IntKind::INT);
    assert_eq!(IntKind::UNSIGNED_LONG.of_bit_field(32), unsigned);
    assert_eq!(IntKind::LONG.of_bit_field(32), IntKind::INT);
    assert_eq!(IntKind::LONG.of_bit_field(40), IntKind::LONG);
}
