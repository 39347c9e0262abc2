//! Evaluates expressions at a frame of a stopped thread, or without a frame for global names.
//!
//! The result is a [`Value`]. A value in the program keeps its place; a computed value has none. A result is as certain
//! as its least certain operand. An unknown value may be named, but computing with it is an error that states the
//! reason.

mod arguments;
mod arithmetic;
mod assign;
mod calls;
mod candidates;
mod classes;
pub mod compile;
mod convert;
mod elements;
mod enclosing;
mod error;
mod foreign;
mod lookup;
mod members;
mod message;
mod methods;
mod named;
mod names;
mod operand;
mod overloads;
mod ranks;
mod statics;
mod strings;

use std::cell::Cell;

use crate::ast::{BinaryOp, Expr, ExprKind, Literal, Span, UnaryOp};
use crate::eval::members::component;
use crate::eval::strings::not_number_and_text;
use crate::kept::Kept;
use crate::number::{Number, compares};
use debuginfo::location::{FrameContext, Piece, ValuePlace, at_frame};
use debuginfo::scope::{imported, local_type, scope_at, template_type, unit_at};
use debuginfo::types::{self, Near, Type, TypeKind};
use debuginfo::value::trail::apart;
use debuginfo::value::{Look, Value, ValueError};
use debuginfo::{
    AddressSpace, Ages, Certainty, Diagnostic, Extended, Frame, Function, Machine, Register,
    RegisterPart, Unknown,
};

pub use assign::{assign, assign_value, bytes_as};
pub use calls::miscounted;
pub(crate) use error::Answer;
pub use error::{EvalError, Missing};
pub use lookup::{argument, argument_count, find_global, find_local, find_type, unknown_name};
pub use names::nearest;
#[cfg(test)]
pub(crate) use operand::number_value;
pub use statics::private_elsewhere;

/// The moment at which expressions are evaluated.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The modules of the process.
    pub space: &'a AddressSpace,
    /// The thread.
    pub machine: &'a dyn Machine,
    /// Its frames. Empty if only global names are needed.
    pub frames: &'a [Frame],
    /// The index of the frame whose variables are in scope. With that of no frame, none are, except those that are
    /// qualified with the function of one.
    pub index: usize,
    /// Calls functions of the program. Without it, a call is an error.
    pub calls: Option<&'a dyn Calls>,
    /// The values that the session keeps. Without it, `$1` and `$name` are errors.
    pub kept: Option<&'a Kept>,
}

impl<'a> Context<'a> {
    /// Returns the moment of a thread. It calls no functions, and nothing is kept.
    #[must_use]
    pub fn new(
        space: &'a AddressSpace,
        machine: &'a dyn Machine,
        frames: &'a [Frame],
        index: usize,
    ) -> Self {
        Self {
            space,
            machine,
            frames,
            index,
            calls: None,
            kept: None,
        }
    }

    /// Returns the same with the values that a session keeps.
    #[must_use]
    pub fn with_kept(self, kept: &'a Kept) -> Self {
        Self {
            kept: Some(kept),
            ..self
        }
    }
}

/// A function that is to be called.
#[derive(Debug, Clone, Copy)]
pub struct Callee<'a> {
    /// How the expression writes it.
    pub name: &'a str,
    /// The function, or a pointer to it.
    pub function: &'a Value,
    /// The same as its code takes its arguments, if debug information describes it.
    pub known: Option<&'a Function>,
}

/// Calls functions in the program.
pub trait Calls {
    /// Calls a function.
    ///
    /// # Errors
    /// The function was not called, or did not return. The error states the reason.
    fn call(&self, callee: &Callee<'_>, arguments: &[Value]) -> Result<Value, Diagnostic>;

    /// Called when `function`, which is about to be called, is in another module, `file`: the program has none of that name.
    fn found_in(&self, _function: &str, _file: &str) {}
}

/// Evaluates an expression.
///
/// # Errors
/// The expression has no value. The error states the reason and the part that failed.
pub fn evaluate(expr: &Expr, context: &Context<'_>) -> Result<Value, EvalError> {
    let asked = at_one_moment(context, |evaluator| {
        let value = evaluator.value(expr).map_err(|e| evaluator.dated(e))?;
        Ok(value.reached_by(evaluator.seen.get()))
    });
    match asked {
        Asked::Together(answer) => answer,
        Asked::Apart(Ok(value)) => Ok(Value::unknown(value.ty, apart())),
        Asked::Apart(Err(error)) if error.is_meaningless => Err(error),
        Asked::Apart(Err(_)) => Err(EvalError::new(expr.at, apart())),
    }
}

/// Returns the type of an expression. Pointers need not be valid, and nothing is called. The name of a function has the
/// function's type, although its value is a pointer.
///
/// # Errors
/// The expression has no meaning here. The error states the reason and the part that failed.
pub fn type_of(expr: &Expr, context: &Context<'_>) -> Result<Type, EvalError> {
    with_evaluator(context, |evaluator| {
        let ty = evaluator.wanting(Wants::Type, expr)?.ty;
        let function = ty.target().filter(|_| evaluator.names_function(expr));
        let function = function.filter(|target| target.kind() == TypeKind::Function);
        Ok(function.unwrap_or(ty))
    })
}

/// Evaluates a condition.
///
/// # Errors
/// The condition has no value, or one that is neither a number nor a pointer.
pub fn evaluate_condition(
    expr: &Expr,
    context: &Context<'_>,
) -> Result<(bool, Certainty), EvalError> {
    let asked = at_one_moment(context, |evaluator| {
        let judge = || {
            let value = evaluator.value(expr)?;
            Ok((evaluator.truth(&value, expr.at)?, value))
        };
        let (is_true, value) = judge().map_err(|e| evaluator.dated(e))?;
        Ok((is_true, value.certainty.and(evaluator.seen.get())))
    });
    match asked {
        Asked::Together(answer) => answer,
        Asked::Apart(Err(error)) if error.is_meaningless => Err(error),
        Asked::Apart(_) => Err(EvalError::new(expr.at, apart())),
    }
}

/// An answer, and whether all its operands existed at one moment.
enum Asked<T> {
    Together(Answer<T>),
    /// The operands were seen at different events, and not all of them are known at the oldest one.
    Apart(Answer<T>),
}

/// Calls `ask`. If the operands were seen at different events, the answer might never have been true at any moment. In
/// that case, asks again for the moment of the oldest operand.
fn at_one_moment<T>(context: &Context<'_>, ask: impl Fn(&Evaluator<'_>) -> Answer<T>) -> Asked<T> {
    let run = || {
        with_evaluator(context, |evaluator| {
            (ask(evaluator), evaluator.moments.get())
        })
    };
    let (answer, moments) = run();
    let Moments::Several {
        oldest: Certainty::Stale { as_of },
    } = moments
    else {
        return Asked::Together(answer);
    };
    if !context.machine.pin(Some(as_of)) {
        return Asked::Together(answer);
    }
    let (then, moments) = run();
    context.machine.pin(None);
    let is_one = moments == Moments::One(Certainty::Stale { as_of });
    match then {
        Ok(then) if is_one => Asked::Together(Ok(then)),
        _ => Asked::Apart(answer),
    }
}

/// Returns whether `name` is a type and not a variable in `context`, as required by [`super::parse_with`].
#[must_use]
pub fn is_type(name: &str, context: &Context<'_>) -> bool {
    with_evaluator(context, |evaluator| {
        evaluator.find_type(name).is_some() && !evaluator.has_variable(name)
    })
}

/// Makes the frame's view of the thread and calls `ask` with it.
fn with_evaluator<T>(context: &Context<'_>, ask: impl FnOnce(&Evaluator<'_>) -> T) -> T {
    let mut ask = Some(ask);
    let mut run = |site: &FrameContext<'_>| {
        let evaluator = Evaluator {
            context: *context,
            site,
            look: Look {
                space: site.space,
                machine: site.machine,
            },
            seen: Cell::new(Certainty::Known),
            moments: Cell::default(),
            wants: Cell::default(),
        };
        ask.take().map(|ask| ask(&evaluator))
    };
    let (space, machine) = (context.space, context.machine);
    let in_frame = at_frame(space, machine, context.frames, context.index, &mut run);
    let answer = in_frame.unwrap_or_else(|| run(&FrameContext::outside(space, machine)));
    answer.expect("the question is asked once")
}

pub(super) struct Evaluator<'e> {
    context: Context<'e>,
    site: &'e FrameContext<'e>,
    look: Look<'e>,
    /// The certainty of what was read but is not an operand: compared strings, targets of references.
    seen: Cell<Certainty>,
    /// When the operands were seen.
    moments: Cell<Moments>,
    /// What is wanted of the expression being evaluated.
    wants: Cell<Wants>,
}

/// What is wanted of an expression. A pointer that leads nowhere still has a target with a type and a place.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Wants {
    #[default]
    Value,
    /// Its address.
    Place,
    /// Its type.
    Type,
}

/// When the operands of an expression were seen.
#[derive(Clone, Copy, Default, PartialEq)]
enum Moments {
    /// All operands are constants.
    #[default]
    None,
    One(Certainty),
    Several {
        oldest: Certainty,
    },
}

impl Moments {
    fn oldest(self) -> Certainty {
        match self {
            Moments::None => Certainty::Known,
            Moments::One(certainty) | Moments::Several { oldest: certainty } => certainty,
        }
    }

    fn with(self, certainty: Certainty, ages: Ages) -> Moments {
        let before = match self {
            Moments::None if ages != Ages::Several => return Moments::One(certainty),
            Moments::One(before) if before == certainty && ages != Ages::Several => return self,
            Moments::None => certainty,
            Moments::One(before) | Moments::Several { oldest: before } => before,
        };
        Moments::Several {
            oldest: before.and(certainty),
        }
    }
}

impl Evaluator<'_> {
    /// Records that the answer depends on something with this certainty.
    fn note(&self, certainty: Certainty) {
        self.seen.set(self.seen.get().and(certainty));
    }

    /// Says of an error that comes of stale values, such as a null pointer, when it was so.
    fn dated(&self, error: EvalError) -> EvalError {
        match self.moments.get().oldest().and(self.seen.get()) {
            Certainty::Stale { as_of } if !error.is_meaningless && !error.is_unknown => EvalError {
                message: format!("{} <stale: as of event {as_of}>", error.message),
                ..error
            },
            _ => error,
        }
    }

    /// Records that the answer is computed from a value of the program.
    fn compute_with(&self, value: &Value) {
        if !matches!(value.place, ValuePlace::Implicit(_)) {
            let moments = self.moments.get();
            self.moments.set(moments.with(value.certainty, value.ages));
        }
    }

    /// Records that the answer depends on a string that was read.
    fn note_text(&self, certainty: Certainty) {
        self.note(certainty);
        let moments = self.moments.get();
        self.moments.set(moments.with(certainty, Ages::One));
    }

    /// Evaluates an expression of which only so much is wanted.
    pub(super) fn wanting(&self, wants: Wants, expr: &Expr) -> Answer<Value> {
        let outer = self.wants.get();
        self.wants.set(match outer {
            Wants::Type => outer,
            _ => wants,
        });
        let value = self.value(expr);
        self.wants.set(outer);
        value
    }

    pub(super) fn value(&self, expr: &Expr) -> Answer<Value> {
        let at = expr.at;
        match &expr.kind {
            ExprKind::Name(name) => self.name(name, at),
            ExprKind::Register(name) => self.register(name, at),
            ExprKind::Literal(literal) => Ok(self.literal(literal)),
            ExprKind::Member { of, name, .. } => self.member(of, name, at),
            ExprKind::Index { of, index } => self.index(of, index, at),
            ExprKind::Range {
                of,
                from,
                to,
                inclusive,
            } => self.range(of, (from.as_deref(), to.as_deref(), *inclusive), at),
            ExprKind::Unary(UnaryOp::Deref, of) => self.deref(of, at),
            ExprKind::Unary(UnaryOp::AddressOf, of) => self.address_of(of, at),
            ExprKind::Unary(op, of) => self.unary(*op, &self.value(of)?, at),
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
                self.logical(*op, left, right)
            }
            ExprKind::Binary(BinaryOp::Repeat, first, count) => self.repeat(first, count, at),
            ExprKind::Binary(op, of, member) if op.selects() => self.select(of, member),
            ExprKind::Binary(BinaryOp::Remainder, of, member) if self.is_component(member) => {
                self.value(&component(of, member))
            }
            ExprKind::Binary(op, left, right) => {
                let (a, b) = self.both(left, right)?;
                if compares(*op) {
                    not_number_and_text((left, &a), (right, &b), at)?;
                }
                self.binary(*op, (&a, left.at), (&b, right.at), at)
            }
            ExprKind::Conditional {
                condition,
                if_true,
                if_false,
            } => {
                let asked = self.value(condition)?;
                let chosen = match self.truth(&asked, condition.at)? {
                    true => self.value(if_true)?,
                    false => self.value(if_false)?,
                };
                // The selected operand depends on the moment, too.
                self.compute_with(&chosen);
                Ok(chosen.reached_by(asked.certainty))
            }
            ExprKind::Cast { how, to, of } => self.cast(&to.text, *how, of, at),
            ExprKind::SizeOf(of) => size_of_type(&self.measured(of)?, of.at),
            ExprKind::SizeOfType(ty) => size_of_type(&self.measured_named(&ty.text, at)?, at),
            ExprKind::AlignOf(of) => align_of_type(&self.measured(of)?, of.at),
            ExprKind::AlignOfType(ty) => align_of_type(&self.measured_named(&ty.text, at)?, at),
            ExprKind::Call {
                function,
                arguments,
            } => self.call(function, arguments, at),
        }
    }

    /// Evaluates two operands. An enumerator that is not in scope may belong to the type of the other operand.
    fn both(&self, left: &Expr, right: &Expr) -> Answer<(Value, Value)> {
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

    /// Returns a register that only the area of XSAVE has.
    fn extended_register(&self, register: Extended) -> Value {
        let (bytes, ty) = match register {
            Extended::Ymm(_) => (32, base_type("unsigned __int128").array(2)),
            Extended::Zmm(_) => (64, base_type("unsigned __int128").array(4)),
            Extended::Mask(_) => (8, base_type("unsigned long")),
            Extended::X87(_) => (16, base_type("long double")),
            Extended::Mxcsr => (4, base_type("unsigned int")),
            Extended::X87Word(_) | Extended::X87Tag => (2, base_type("unsigned short")),
        };
        let area = self.look.machine.extended();
        let found = area.as_deref().and_then(|area| register.read(area));
        match found {
            Some(mut found) => {
                found.resize(bytes, 0);
                Value::constant(ty, found)
            }
            None => Value::unknown(
                ty,
                Unknown::because(match area {
                    Some(_) => "the processor has no such register",
                    None => {
                        "only the innermost frame of a stopped thread, live or in a recording of every instruction, has it"
                    }
                }),
            ),
        }
    }

    /// A signed number, as in gdb.
    fn register_part(&self, part: RegisterPart) -> Value {
        let ty = base_type(match part.bytes {
            1 => "i8",
            2 => "short",
            _ => "int",
        });
        let whole = ValuePlace::Register(part.register);
        let place = match part.offset_bits {
            0 => whole,
            offset_bits => {
                let bits = u64::from(part.bytes) * 8;
                ValuePlace::Pieces(vec![Piece::new(whole, offset_bits.into(), bits)])
            }
        };
        Value::read(ty, place, self.look.machine)
    }

    fn register(&self, name: &str, at: Span) -> Answer<Value> {
        if let Some(register) = Extended::by_name(name) {
            return Ok(self.extended_register(register));
        }
        if let Some(part) = RegisterPart::by_name(name) {
            return Ok(self.register_part(part));
        }
        let Some(register) = Register::by_name(name) else {
            if let Some(kept) = self.context.kept {
                return kept
                    .find(name)
                    .map_err(|what| EvalError::meaningless(at, what));
            }
            let error = EvalError::meaningless(at, format!("no register \"{name}\""));
            return Err(error.with_hint(
                "known are rax to r15, rip, rflags, xmm0 to xmm15, ymm, zmm, k0 to k7, st0 to st7, mxcsr, fctrl, fs_base and gs_base",
            ));
        };
        let is_vector = (17..=32).contains(&register.0);
        let kind = match is_vector {
            true => "unsigned __int128",
            false if register.is_segment() => "int",
            false => "unsigned long",
        };
        let ty = base_type(kind);
        Ok(Value::read(
            ty,
            ValuePlace::Register(register),
            self.look.machine,
        ))
    }

    fn literal(&self, literal: &Literal) -> Value {
        match literal {
            Literal::Char { code, kind } => operand::character(*code, *kind),
            Literal::Text(bytes) => {
                let mut bytes = bytes.clone();
                bytes.push(0);
                let ty = base_type("char").array(bytes.len() as u64);
                Value::constant(ty, bytes)
            }
            Literal::Null => {
                operand::pointer_value(base_type("void").pointer(), 0, Certainty::Known)
            }
            number => {
                let number = Number::literal(number).unwrap_or(Number::Bool(false));
                operand::number_value(number, Certainty::Known)
            }
        }
    }

    fn logical(&self, op: BinaryOp, left: &Expr, right: &Expr) -> Answer<Value> {
        let first = self.value(left)?;
        let is_true = self.truth(&first, left.at)?;
        if is_true == (op == BinaryOp::Or) {
            return Ok(operand::number_value(
                Number::Bool(is_true),
                first.certainty,
            ));
        }
        let second = self.value(right)?;
        let answer = Number::Bool(self.truth(&second, right.at)?);
        let certainty = first.certainty.and(second.certainty);
        Ok(operand::number_value(answer, certainty))
    }

    /// Returns the type of the operand of `sizeof` or `alignof`, which may be the name of a type.
    fn measured(&self, of: &Expr) -> Answer<Type> {
        if let ExprKind::Name(name) = &of.kind
            && !self.has_variable(name)
            && let Some(ty) = self.find_type(name)
        {
            return Ok(ty);
        }
        // The target of a pointer has a size even if there is none.
        if let ExprKind::Unary(UnaryOp::Deref, pointer) = &of.kind {
            let stripped = self.wanting(Wants::Type, pointer)?.ty.strip();
            if stripped.kind() == TypeKind::Pointer
                && let Some(target) = stripped.target()
            {
                return Ok(target);
            }
        }
        Ok(self.wanting(Wants::Type, of)?.ty)
    }

    /// Returns the type that a name in parentheses means. A variable hides a type of that name, as in C.
    fn measured_named(&self, name: &str, at: Span) -> Answer<Type> {
        match self.has_variable(name) {
            true => self.measured(&Expr::new(ExprKind::Name(name.to_owned()), at)),
            // A reference is measured as its target.
            false => self.wanted_type(name.trim_end_matches('&'), at),
        }
    }

    pub(super) fn find_type(&self, text: &str) -> Option<Type> {
        let has_frame = self.context.frames.get(self.context.index).is_some();
        let function = || scope_at(self.site);
        let imported = |name: &str| imported(self.site, name);
        let given =
            |name: &str| template_type(self.site, name).or_else(|| local_type(self.site, name));
        let near = has_frame.then(|| Near {
            address: self.site.lookup_pc,
            unit: unit_at(self.site),
            function: &function,
            imported: &imported,
            given: &given,
        });
        types::find_type(self.look.space, near, text)
    }

    fn wanted_type(&self, text: &str, at: Span) -> Answer<Type> {
        let found = self.find_type(text);
        found.ok_or_else(|| {
            EvalError::missing(at, Missing::Type, format!("no type \"{text}\" here"))
        })
    }
}

/// The size of a reference is that of its target ([expr.sizeof] of the C++ standard).
fn size_of_type(ty: &Type, at: Span) -> Answer<Value> {
    let stripped = ty.strip();
    let is_reference = matches!(
        stripped.kind(),
        TypeKind::Reference | TypeKind::RvalueReference
    );
    let target = stripped.target().filter(|_| is_reference);
    let ty = target.as_ref().unwrap_or(ty);
    let Some(size) = ty.size() else {
        let message = format!("the size of {} is not known", ty.name());
        return Err(EvalError::new(at, message));
    };
    Ok(unsigned_long(size))
}

/// The alignment of a type. Debug information states it only where the source demands one.
fn align_of_type(ty: &Type, at: Span) -> Answer<Value> {
    let unknown = || EvalError::new(at, format!("the alignment of {} is not known", ty.name()));
    ty.alignment().map(unsigned_long).ok_or_else(unknown)
}

fn unsigned_long(number: u64) -> Value {
    let number = Number::integer(super::number::IntKind::UNSIGNED_LONG, u128::from(number));
    operand::number_value(number, Certainty::Known)
}

fn base_type(name: &str) -> Type {
    types::builtin(name).expect("one of the base types of C or Rust")
}

fn failed(at: Span) -> impl Fn(ValueError) -> EvalError {
    move |error| EvalError::of_value(at, &error)
}
