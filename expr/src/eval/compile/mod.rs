//! Compiles an expression to operations on registers and memory that are valid for every thread at one address.
//!
//! The compiler follows the evaluator step by step, but its values describe where their bytes will be. It refuses, with
//! a reason, what the evaluator has to inspect first (strings, containers, variants), values without a place, and
//! values that only the caller knows. An expression that fails only at some moments has no answer at those.

mod access;
mod known;
mod message;
mod missing;
mod names;
mod operators;
mod value;

use std::fmt;

use crate::ast::{BinaryOp, CastKind, Expr, ExprKind, UnaryOp};
use crate::eval::{Context, Evaluator, with_evaluator};
use crate::expression::Expression;
use debuginfo::location::ir::Int;
use debuginfo::{
    AddressSpace, Certainty, Frame, FrameRegisters, Machine, Register, Unknown, innermost_call,
};
use value::{Bytes, Static};

pub use known::{Known, KnownPlace, PlainValue, known_argument, known_global, known_local};
pub use message::{Logged, Message, MessagePart, Shown, compile_message};
pub use missing::{is_word, members, missing_names, missing_values, names};

/// Why an expression cannot be compiled: a sentence about a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCompiled(pub String);

impl fmt::Display for NotCompiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotCompiled {}

type Result<T> = std::result::Result<T, NotCompiled>;

fn not(why: impl Into<String>) -> NotCompiled {
    NotCompiled(why.into())
}

/// Compiles a condition for the instruction at `pc`, an address of the process. Its scope is that around the innermost
/// `to_come` inlined calls ([`Machine::calls_to_come`]). The result is 0 for false.
///
/// # Errors
/// The condition cannot be compiled.
pub fn compile_condition(
    condition: &Expression,
    space: &AddressSpace,
    pc: u64,
    to_come: usize,
) -> Result<Int> {
    at_address(space, pc, to_come, |context| {
        let expr = condition.within(context);
        let expr = expr.map_err(|error| not(error.one_line()))?;
        with_evaluator(context, |evaluator| {
            let compiler = Compiler { evaluator };
            let value = compiler.value(&expr)?;
            compiler.truth(&value, &expr)
        })
    })
}

/// Calls `ask` with the context of an address, without a thread.
fn at_address<T>(
    space: &AddressSpace,
    pc: u64,
    to_come: usize,
    ask: impl FnOnce(&Context<'_>) -> T,
) -> T {
    let (depth, entry) = innermost_call(space, pc);
    let depth = depth.saturating_sub(to_come);
    let frame = Frame {
        pc,
        lookup_pc: pc,
        pc_is_known: true,
        cfa: None,
        registers: FrameRegisters::innermost(&Nobody),
        function: None,
        function_entry: entry,
        module: None,
        source: None,
        inlined: depth > 0,
        inline_depth: depth,
        is_signal: false,
        is_tail_call: false,
    };
    ask(&Context::new(space, &Nobody, &[frame], 0))
}

/// A substitute for a thread, since compiling must not depend on one.
struct Nobody;

impl Machine for Nobody {
    fn memory(&self, _: u64, _: &mut [u8]) -> std::result::Result<Certainty, Unknown> {
        Err(Unknown::because("there is no thread"))
    }

    fn register(&self, _: Register) -> std::result::Result<(u64, Certainty), Unknown> {
        Err(Unknown::because("there is no thread"))
    }

    fn vector(&self, _: Register) -> std::result::Result<([u8; 16], Certainty), Unknown> {
        Err(Unknown::because("there is no thread"))
    }
}

struct Compiler<'c, 'e> {
    evaluator: &'c Evaluator<'e>,
}

impl Compiler<'_, '_> {
    fn value(&self, expr: &Expr) -> Result<Static> {
        match &expr.kind {
            ExprKind::Name(name) => self.name(name),
            ExprKind::Register(name) => self.register(name),
            // These need no thread.
            ExprKind::Literal(_) | ExprKind::SizeOfType(_) | ExprKind::AlignOfType(_) => {
                let value = self.evaluator.value(expr);
                let value = value.map_err(|error| not(error.one_line()))?;
                Static::constant(&value).ok_or_else(|| not(format!("{expr} is not a number")))
            }
            ExprKind::Member { of, name, .. } => self.member(of, name),
            ExprKind::Index { of, index } => self.index(of, index),
            ExprKind::Unary(UnaryOp::Deref, of) => self.deref(of),
            ExprKind::Unary(UnaryOp::AddressOf, of) => self.address_of(of),
            ExprKind::Unary(op, of) => self.unary(*op, of),
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
                let (a, b) = (self.value(left)?, self.value(right)?);
                let a = Box::new(self.truth(&a, left)?);
                let b = Box::new(self.truth(&b, right)?);
                Ok(value::bool_value(match op {
                    BinaryOp::And => Int::And(a, b),
                    _ => Int::Or(a, b),
                }))
            }
            ExprKind::Binary(BinaryOp::Repeat, ..) | ExprKind::Range { .. } => {
                Err(not(format!("{expr} is more than one value")))
            }
            ExprKind::Binary(op, ..) if op.selects() => {
                Err(not(format!("{expr} depends on the pointer to members")))
            }
            ExprKind::Binary(op, left, right) => {
                let (a, b) = self.both(left, right)?;
                self.binary(*op, (&a, left), (&b, right))
            }
            ExprKind::Conditional {
                condition,
                if_true,
                if_false,
            } => self.conditional(condition, if_true, if_false),
            ExprKind::Cast {
                how: CastKind::Dynamic,
                ..
            } => Err(not(format!("{expr} depends on the object"))),
            ExprKind::Cast { to, of, .. } => {
                let ty = self.evaluator.find_type(&to.text);
                let ty = ty.ok_or_else(|| not(format!("no type \"{}\" here", to.text)))?;
                self.convert(&self.value(of)?, &ty, of)
            }
            ExprKind::SizeOf(_) | ExprKind::AlignOf(_) => {
                Err(not(format!("{expr} may depend on the thread")))
            }
            ExprKind::Call { .. } => Err(not(format!("{expr} is a call"))),
        }
    }

    /// Compiles two operands. An enumerator that is not in scope may belong to the type of the other operand.
    fn both(&self, left: &Expr, right: &Expr) -> Result<(Static, Static)> {
        match (self.value(left), self.value(right)) {
            (Ok(a), Ok(b)) => Ok((a, b)),
            (Err(error), Ok(b)) => match self.enumerator_like(left, &b) {
                Some(a) => Ok((a, b)),
                None => Err(error),
            },
            (Ok(a), Err(error)) => match self.enumerator_like(right, &a) {
                Some(b) => Ok((a, b)),
                None => Err(error),
            },
            (Err(error), Err(_)) => Err(error),
        }
    }

    fn register(&self, name: &str) -> Result<Static> {
        let register = Register::by_name(name);
        let number = match register.map(|register| register.0) {
            Some(number @ 0..=15) => Int::Register(Register(number)),
            Some(16) => Int::Const(self.evaluator.site.lookup_pc),
            _ => return Err(not(format!("${name} is not a general register"))),
        };
        Ok(Static::new(
            super::base_type("unsigned long"),
            Bytes::Number(number),
        ))
    }

    fn conditional(&self, condition: &Expr, if_true: &Expr, if_false: &Expr) -> Result<Static> {
        let asked = self.truth(&self.value(condition)?, condition)?;
        let (a, b) = (self.value(if_true)?, self.value(if_false)?);
        let types = (a.ty.strip(), b.ty.strip());
        let same = types.0 == types.1 && a.bits.is_none() && b.bits.is_none();
        match (same, self.number_of(&a), self.number_of(&b)) {
            (true, Some(if_true), Some(if_false)) => Ok(Static::new(
                a.ty.clone(),
                Bytes::Number(Int::Choose {
                    condition: Box::new(asked),
                    if_true: Box::new(if_true),
                    if_false: Box::new(if_false),
                }),
            )),
            _ => Err(not("the two values after \"?\" are of different types")),
        }
    }
}
