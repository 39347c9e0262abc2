//! Assignments: converts a place and a value to the bytes to write.

use crate::ast::{CastKind, Expr, ExprKind, Span, UnaryOp};
use crate::eval::convert::without_place;
use crate::eval::operand::{Operand, int_kind, stands_for_target, type_name};
use crate::eval::strings::is_character;
use crate::eval::{Answer, Context, EvalError, Evaluator, base_type, is_type, with_evaluator};
use crate::number::IntKind;
use crate::parse::{Assignment, parse_with};
use debuginfo::location::ValuePlace;
use debuginfo::types::{Type, TypeKind};
use debuginfo::value::Value;
use debuginfo::{Diagnostic, Register};
use values::containers::{self, Room};
use values::{Write, WriteTarget, encode, encode_value, writes};

/// Returns the writes for an assignment. Writes nothing itself.
///
/// # Errors
/// The place or the value cannot be evaluated, the value does not fit the place, or the place cannot be written.
pub fn assign(assignment: &Assignment, context: &Context<'_>) -> Result<Vec<Write>, EvalError> {
    with_evaluator(context, |evaluator| {
        let place = evaluator.place(&assignment.place)?;
        let value = evaluator.value(&assignment.value)?;
        evaluator.change(&assignment.place, &place, &value, &assignment.value)
    })
}

/// Returns the writes that give a place the value of `text`. `text` is an expression, a notation for a value of the
/// place's type such as the name of an enumerator, or the raw contents of a string.
///
/// # Errors
/// As for [`assign`].
pub fn assign_value(
    place: &Expr,
    text: &str,
    context: &Context<'_>,
) -> Result<Vec<Write>, EvalError> {
    let is_type = |name: &str| is_type(name, context);
    let parsed = parse_with(text, &is_type).map_err(|error| {
        let at = super::Span {
            start: error.position,
            end: error.position,
        };
        EvalError::new(at, error.diagnostic())
    });
    with_evaluator(context, |evaluator| {
        let target = evaluator.place(place)?;
        let written = parsed.and_then(|expr| {
            let value = evaluator.value(&expr)?;
            evaluator.change(place, &target, &value, &expr)
        });
        written.or_else(|error| evaluator.as_it_is(place, &target, text).ok_or(error))
    })
}

/// Returns the bytes of an expression's value as one of type `ty`, by the conversions that C makes for `return`.
///
/// # Errors
/// The expression has no value, or none that becomes one of the type.
pub fn bytes_as(expr: &Expr, ty: &Type, context: &Context<'_>) -> Result<Vec<u8>, EvalError> {
    with_evaluator(context, |evaluator| {
        let value = evaluator.value(expr)?;
        evaluator.bytes_as(&value, ty, expr.at)
    })
}

impl Evaluator<'_> {
    fn bytes_as(&self, value: &Value, ty: &Type, at: Span) -> Answer<Vec<u8>> {
        let stripped = ty.strip();
        let kind = stripped.kind();
        if matches!(kind, TypeKind::Reference | TypeKind::RvalueReference) {
            let object = value
                .unreferenced(&self.look)
                .map_err(|e| self.unusable(value, e, at))?;
            let target = stripped.target().unwrap_or_else(|| stripped.clone());
            let is_same = target.strip().name() == object.ty.strip().name();
            let address = object.address().filter(|_| is_same);
            let address = address.ok_or_else(|| without_place(&target, at))?;
            return Ok(address.to_le_bytes().to_vec());
        }
        if stands_for_target(&stripped) {
            return self.reference(&stripped, value, at);
        }
        if let Some(bytes) = self.converted(value, &stripped, at)? {
            return Ok(bytes);
        }
        let settled = self.settled(value, at)?;
        let bytes = encode_value(ty, &settled);
        bytes.map_err(|e| self.unusable(&settled, e, at))
    }

    /// Evaluates the target of an assignment, which must have a place.
    fn place(&self, expr: &Expr) -> Answer<Value> {
        let is_place = matches!(
            &expr.kind,
            ExprKind::Name(_)
                | ExprKind::Register(_)
                | ExprKind::Member { .. }
                | ExprKind::Index { .. }
                | ExprKind::Unary(UnaryOp::Deref, _)
        );
        let element = self.element_written_as_call(expr)?;
        if !is_place && element.is_none() {
            let error = EvalError::new(expr.at, format!("{} cannot be assigned to", expr.told()));
            return Err(
                error.with_hint("give a variable, a register, a member, an element or *pointer")
            );
        }
        let value = element.map_or_else(|| self.value(expr), Ok)?;
        if value.is_optimized_out() {
            return Err(optimized_out(expr));
        }
        // A reference is a name for its target.
        value
            .unreferenced(&self.look)
            .map_err(|e| self.unusable(&value, e, expr.at))
    }

    /// Returns an element as Fortran and Ada write it: `mat(2, 1)`.
    fn element_written_as_call(&self, expr: &Expr) -> Answer<Option<Value>> {
        let ExprKind::Call {
            function,
            arguments,
        } = &expr.kind
        else {
            return Ok(None);
        };
        match self.value(function) {
            Ok(array) => self.indexed(&array, arguments, function.at),
            Err(_) => Ok(None),
        }
    }

    /// Returns the writes that give `place`, written as `target`, the value `value`, written as `expr`.
    fn change(
        &self,
        target: &Expr,
        place: &Value,
        value: &Value,
        expr: &Expr,
    ) -> Answer<Vec<Write>> {
        if let Some(room) = self.room(place, target.at)? {
            let text = self.text_bytes(value, expr.at)?;
            let text = text.ok_or_else(|| {
                let message = format!("{} is not text", value.ty.name());
                EvalError::new(expr.at, message)
            })?;
            return text_writes(&room, &place.ty, &text)
                .map_err(|why| EvalError::new(expr.at, why));
        }
        let bytes = match &target.kind {
            ExprKind::Register(_) => self.bytes_for_register(place, value, expr)?,
            _ => self.bytes_for(place, value, expr)?,
        };
        self.writes(target, place, &bytes)
    }

    /// Returns the writes that make `place` hold the text itself, or the value that the text denotes there.
    fn as_it_is(&self, target: &Expr, place: &Value, text: &str) -> Option<Vec<Write>> {
        if let Some(room) = self.room(place, target.at).ok()? {
            return text_writes(&room, &place.ty, text.as_bytes()).ok();
        }
        if stands_for_target(&place.ty) {
            return None;
        }
        let characters = text_for(&place.ty.strip(), text.as_bytes());
        let bytes = characters.or_else(|_| encode(&place.ty, text)).ok()?;
        self.writes(target, place, &bytes).ok()
    }

    /// Returns the place of a string's characters.
    fn room(&self, place: &Value, at: Span) -> Answer<Option<Room>> {
        let room = containers::room(place, &self.look).transpose();
        room.map_err(|why| {
            let message = format!("{} cannot be written: {why}", place.ty.name());
            EvalError::new(at, message)
        })
    }

    /// Returns the bytes of `value`, converted to the type of `place`.
    fn bytes_for(&self, place: &Value, value: &Value, expr: &Expr) -> Answer<Vec<u8>> {
        let at = expr.at;
        let ty = place.ty.strip();
        let text = match &expr.kind {
            ExprKind::Literal(super::Literal::Text(text)) => Some(text),
            _ => None,
        };
        if let Some(text) = text {
            return text_for(&ty, text).map_err(|why| EvalError::new(at, why));
        }
        if stands_for_target(&ty) {
            return self.reference(&ty, value, at);
        }
        let operand = self.operand(value, at)?;
        let scalar = matches!(ty.kind(), TypeKind::Pointer | TypeKind::Bool);
        if scalar && !matches!(operand, Operand::Other) {
            let converted = self.convert(value, &place.ty, CastKind::Plain, at)?;
            let bytes = converted.known_bytes();
            let bytes = bytes.map_err(|e| self.unusable(&converted, e, at))?;
            return Ok(bytes.to_vec());
        }
        let settled = self.settled(value, at)?;
        let bytes = encode_value(&place.ty, &settled);
        bytes.map_err(|e| self.unusable(&settled, e, at))
    }

    /// As [`Evaluator::bytes_for`]. The bits of a register have no sign, though it is shown unsigned: -1 sets them all.
    fn bytes_for_register(&self, place: &Value, value: &Value, expr: &Expr) -> Answer<Vec<u8>> {
        let settled = self.settled(value, expr.at)?;
        let is_signed = int_kind(&settled.ty).is_some_and(|kind| kind.signed);
        let is_negative = is_signed && settled.as_integer().is_ok_and(|number| number < 0);
        let kind = int_kind(&place.ty).filter(|kind| is_negative && !kind.signed);
        let Some(kind) = kind else {
            return self.bytes_for(place, value, expr);
        };
        let signed = type_name(IntKind {
            signed: true,
            ..kind
        });
        let bytes = encode_value(&base_type(signed), &settled);
        bytes.map_err(|e| self.unusable(&settled, e, expr.at))
    }

    /// Returns the bytes of another pointer for one that stands for its target. A number is meant for the target.
    fn reference(&self, ty: &Type, value: &Value, at: Span) -> Answer<Vec<u8>> {
        if value.kind() == TypeKind::Pointer {
            return self.own_bytes(value, at);
        }
        let message = format!("{} is no address for {}", value.ty.name(), ty.name());
        Err(EvalError::new(at, message).with_hint("write what it refers to: *name"))
    }

    fn writes(&self, expr: &Expr, place: &Value, bytes: &[u8]) -> Answer<Vec<Write>> {
        let found = writes(place, bytes, self.look.machine);
        let mut found = found.map_err(|error| match &place.place {
            ValuePlace::OptimizedOut => optimized_out(expr),
            _ => EvalError::new(expr.at, error.diagnostic()),
        })?;
        for write in &mut found {
            self.redirect(write, expr)?;
        }
        Ok(found)
    }

    /// A caller's register is where its callees saved it.
    fn redirect(&self, write: &mut Write, expr: &Expr) -> Answer<()> {
        let WriteTarget::Register(register) = write.target else {
            return Ok(());
        };
        let frames = self.context.frames;
        let innermost = frames.iter().take(self.context.index).all(|f| f.inlined);
        let Some(frame) = frames.get(self.context.index).filter(|_| !innermost) else {
            return Ok(());
        };
        if let Some(address) = frame.registers.saved_at(register) {
            write.target = WriteTarget::Memory(address);
            return Ok(());
        }
        // If the callees did not change it, it is still in the register itself.
        let kept = frame.registers.get(register).is_ok()
            && ![Register::RSP, Register::RIP].contains(&register);
        match kept {
            true => Ok(()),
            false => {
                let name = register.name().unwrap_or_default();
                let message = format!("register {name} of this frame cannot be written");
                Err(EvalError::new(expr.at, message).with_hint("select frame 0"))
            }
        }
    }
}

fn optimized_out(expr: &Expr) -> EvalError {
    let mut root = expr;
    loop {
        root = match &root.kind {
            ExprKind::Member { of, .. } | ExprKind::Index { of, .. } => of,
            _ => break,
        };
    }
    let message = format!(
        "Variable '{}' is optimized out at this PC. Recompile with -O0.",
        root.told()
    );
    EvalError::new(expr.at, message)
}

/// Returns the writes that change a string to `text`.
fn text_writes(room: &Room, ty: &Type, text: &[u8]) -> Result<Vec<Write>, Diagnostic> {
    let len = text.len() as u64;
    if len > room.capacity {
        let message = format!(
            "the text has {len} bytes, but this {} has room for {}",
            ty.name(),
            room.capacity
        );
        return Err(Diagnostic::new(message).with_hint("only the program itself can make it grow"));
    }
    if room.is_utf8 && std::str::from_utf8(text).is_err() {
        return Err(format!("the text is not UTF-8, which {} must be", ty.name()).into());
    }
    let mut characters = text.to_vec();
    if room.is_terminated {
        characters.push(0);
    }
    let to = |address, bytes| Write {
        target: WriteTarget::Memory(address),
        bytes,
    };
    let mut writes = vec![to(room.len_at, len.to_le_bytes().to_vec())];
    if !characters.is_empty() {
        writes.insert(0, to(room.start, characters));
    }
    Ok(writes)
}

/// Returns a text as the contents of a character array.
fn text_for(ty: &Type, text: &[u8]) -> Result<Vec<u8>, Diagnostic> {
    let is_array = ty.kind() == TypeKind::Array && ty.element().is_some_and(|e| is_character(&e));
    if !is_array {
        return Err(format!(
            "a text can be written into a string or an array of characters, not into {}",
            ty.name()
        )
        .into());
    }
    let mut bytes = text.to_vec();
    bytes.push(0);
    match ty.count() {
        Some(count) if bytes.len() as u64 > count => {
            let message = format!(
                "the text and the zero at its end have {} bytes",
                bytes.len()
            );
            Err(Diagnostic::new(message).with_hint(format!("{} holds {count}", ty.name())))
        }
        _ => Ok(bytes),
    }
}
