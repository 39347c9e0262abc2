//! Fixed-point numbers: a whole number of steps.

use crate::floats;
use debuginfo::Unknown;
use debuginfo::types::{FloatFormat, Step, TypeKind};
use debuginfo::value::number::{raw, signed};
use debuginfo::value::{Value, ValueError};

/// Powers of ten that are written digit by digit.
const MAX_DIGITS: i64 = 38;

/// The number of steps, and the value of one.
fn steps(value: &Value) -> Result<(i128, Step), ValueError> {
    let (number, bits) = raw(value)?;
    let number = match value.kind() {
        TypeKind::Fixed { signed: true } => signed(number, bits),
        _ => number as i128,
    };
    match value.ty.step() {
        Some(Step::Unknown) | None => {
            let why = "nothing says what one step of the fixed-point number is worth";
            Err(ValueError::Unknown(Unknown::because(why)))
        }
        Some(step) => Ok((number, step)),
    }
}

pub(super) fn float(value: &Value) -> Result<f64, ValueError> {
    let (steps, step) = steps(value)?;
    Ok(worth(steps, step))
}

fn worth(steps: i128, step: Step) -> f64 {
    let steps = steps as f64;
    let power = |power: i64| i32::try_from(power).unwrap_or(i32::MAX);
    match step {
        Step::PowerOfTwo(exponent) => steps * 2f64.powi(power(exponent)),
        Step::PowerOfTen(exponent) if exponent < 0 => steps / 10f64.powi(power(-exponent)),
        Step::PowerOfTen(exponent) => steps * 10f64.powi(power(exponent)),
        Step::Fraction(above, below) => steps * above / below,
        Step::Unknown => f64::NAN,
    }
}

pub(super) fn text(value: &Value) -> Result<String, ValueError> {
    let (steps, step) = steps(value)?;
    if let Step::PowerOfTen(exponent) = step
        && (-MAX_DIGITS..=0).contains(&exponent)
    {
        return Ok(decimal(steps, exponent.unsigned_abs() as usize));
    }
    let number = worth(steps, step).to_le_bytes();
    Ok(floats::text(FloatFormat::Double, &number).expect("a double has eight bytes"))
}

/// A number with this many digits after the point; trailing zeros are omitted.
fn decimal(steps: i128, places: usize) -> String {
    let sign = if steps < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", steps.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_steps_are_written_exactly() {
        assert_eq!(decimal(1234, 2), "12.34");
        assert_eq!(decimal(-5, 2), "-0.05");
        assert_eq!(decimal(1200, 2), "12");
        assert_eq!(decimal(0, 3), "0");
        assert_eq!(decimal(7, 0), "7");
        assert_eq!(
            decimal(i128::MAX, 38),
            "1.70141183460469231731687303715884105727"
        );
    }

    #[test]
    fn steps_are_powers_or_fractions() {
        assert_eq!(worth(0x1a0, Step::PowerOfTwo(-7)), 3.25);
        assert_eq!(worth(25, Step::PowerOfTen(-1)), 2.5);
        assert_eq!(worth(3, Step::Fraction(1.0, 3.0)), 1.0);
    }
}
