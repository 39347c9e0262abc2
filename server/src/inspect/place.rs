//! Where the value of an expression lies, and the address that an expression denotes.

use debuginfo::types::{BitRange, Type, TypeKind};
use debuginfo::value::ValueError;
use debuginfo::{Certainty, ValuePlace};
use expr::{BinaryOp, Expr, ExprKind, UnaryOp};

use super::View;
use super::values::value_of;
use crate::location::{ParsedLocation, Target};
use crate::protocol::{Code, Failure};

/// A value that lies in memory.
#[derive(Clone, Debug)]
pub struct MemoryPlace {
    /// The address of its first byte.
    pub address: u64,
    /// Its size in bytes.
    pub len: u64,
    /// Its type.
    pub ty: Type,
    /// For a bit field, its bits in these bytes.
    pub bits: Option<BitRange>,
}

/// Returns where the value of an expression lies in memory.
///
/// # Errors
/// [`Code::EvalFailed`], also if the value is not in memory.
pub fn evaluate_place(view: &View<'_>, text: &str) -> Result<MemoryPlace, Failure> {
    let value = value_of(view, text)?;
    if value.bits.is_some() {
        let message = format!("{text} is a bit field, and only whole bytes have an address");
        return Err(Failure::new(Code::EvalFailed, message).hint("name the structure around it"));
    }
    match (value.address(), value.ty.size()) {
        (Some(address), Some(len)) => Ok(MemoryPlace {
            address,
            len,
            ty: value.ty.clone(),
            bits: None,
        }),
        (None, _) if value.is_optimized_out() => Err(Failure::new(
            Code::EvalFailed,
            format!("Variable '{text}' is optimized out at this PC. Recompile with -O0."),
        )),
        (None, _) => {
            let message = format!("{text} does not lie in memory");
            let hint = format!(
                "a value in a register has no address; in the past, go back line by line: next-back, print {text}"
            );
            Err(Failure::new(Code::EvalFailed, message).hint(hint))
        }
        (Some(_), None) => Err(Failure::new(
            Code::EvalFailed,
            format!("the size of {text} is not known"),
        )),
    }
}

/// Refuses to watch what never changes: `5`, `sizeof(int) * 2`.
///
/// # Errors
/// [`Code::BadRequest`].
pub fn refuse_constant(text: &str) -> Result<(), Failure> {
    match expr::parse(text) {
        Ok(parsed) if is_constant(&parsed) => {
            let message = format!("cannot watch the constant value {text}: it never changes");
            Err(Failure::new(Code::BadRequest, message)
                .hint("name a variable, or memory with a type: watch *(int *)0x404010"))
        }
        // What cannot be read is refused with the reason where it is evaluated.
        _ => Ok(()),
    }
}

fn is_constant(expr: &Expr) -> bool {
    let is_plain = match &expr.kind {
        ExprKind::SizeOf(_)
        | ExprKind::SizeOfType(_)
        | ExprKind::AlignOf(_)
        | ExprKind::AlignOfType(_) => return true,
        ExprKind::Literal(_) | ExprKind::Conditional { .. } | ExprKind::Cast { .. } => true,
        ExprKind::Unary(operator, _) => !matches!(operator, UnaryOp::Deref | UnaryOp::AddressOf),
        ExprKind::Binary(operator, ..) => *operator != BinaryOp::Repeat,
        _ => false,
    };
    let mut are_all = is_plain;
    expr.kind
        .for_each_child(|child| are_all = are_all && is_constant(child));
    are_all
}

/// As [`evaluate_place`]; of a bit field, the bytes that contain it.
///
/// # Errors
/// As there.
pub fn evaluate_place_around(view: &View<'_>, text: &str) -> Result<MemoryPlace, Failure> {
    let value = value_of(view, text)?;
    match (value.bits, &value.place) {
        (Some(bits), ValuePlace::Memory(address)) => Ok(MemoryPlace {
            address: *address,
            len: (bits.offset + bits.size).div_ceil(8),
            ty: value.ty.clone(),
            bits: Some(bits),
        }),
        _ => evaluate_place(view, text),
    }
}

/// Parses a location, and evaluates the expression after `*` in the selected frame: `*$pc` and `*main` are addresses.
///
/// # Errors
/// [`Code::EvalFailed`], also if the address may be another one by now; and those of [`Target::parse`].
pub fn place_of(view: &View<'_>, target: &Target) -> Result<ParsedLocation, Failure> {
    match target.address_expression() {
        Some(expression) => certain_address(view, expression).map(ParsedLocation::Address),
        None => target.parse(),
    }
}

/// As [`evaluate_address`]; refuses an address that may be another one by now: a place would be the wrong one.
///
/// # Errors
/// As there.
pub fn certain_address(view: &View<'_>, text: &str) -> Result<u64, Failure> {
    match dated_address(view, text)? {
        (address, Certainty::Known) => Ok(address),
        (address, Certainty::Stale { as_of }) => Err(Failure::new(
            Code::EvalFailed,
            format!("{text} was {address:#x} at event {as_of}, and may have changed since"),
        )
        .hint(format!("if you mean that address, write it: *{address:#x}"))),
    }
}

/// Returns the address that an expression denotes: the value of a pointer or number, or the place of an array or
/// function.
///
/// # Errors
/// [`Code::EvalFailed`].
pub fn evaluate_address(view: &View<'_>, text: &str) -> Result<u64, Failure> {
    dated_address(view, text).map(|(address, _)| address)
}

/// As [`evaluate_address`], with how far the address may be trusted. What is found there is no more certain.
///
/// # Errors
/// As there.
pub fn dated_address(view: &View<'_>, text: &str) -> Result<(u64, Certainty), Failure> {
    let value = value_of(view, text)?;
    let by_place = matches!(value.kind(), TypeKind::Array | TypeKind::Function);
    let address = match value.address() {
        Some(address) if by_place => return Ok((address, value.reached)),
        Some(_) => value.as_address(),
        // A number that is not in memory denotes an address: a register, or a value computed from registers.
        None => value
            .as_address()
            .or_else(|error| match value.as_integer() {
                Ok(number) => u64::try_from(number).map_err(|_| error),
                Err(unknown @ ValueError::Unknown(_)) => Err(unknown),
                Err(_) => Err(error),
            }),
    };
    let address = address.map_err(|error| {
        let message = format!("{text} is not an address: {error}");
        let failure = Failure::new(Code::EvalFailed, message);
        // A value that is not in memory has no address.
        match value.address() {
            Some(_) => failure.hint(format!("for its address, write &{text}")),
            None => failure,
        }
    });
    Ok((address?, value.certainty))
}
