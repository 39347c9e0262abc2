//! Members, targets of pointers of all kinds, and addresses.

use crate::ast::{Expr, ExprKind, Span};
use crate::eval::names::nearest;
use crate::eval::operand::{Operand, number_value, pointer_value};
use crate::eval::strings::presented;
use crate::eval::{Answer, EvalError, Evaluator, Wants, failed};
use crate::number::{IntKind, Number};
use debuginfo::location::{FrameContext, ValuePlace};
use debuginfo::scope::language_at;
use debuginfo::types::{Language, TypeKind};
use debuginfo::value::{Look, MAX_NAMED, Value, ValueError, ada};
use debuginfo::{Certainty, Diagnostic, Machine, Register, Unknown};
use values::Children;

/// Pointers and wrappers followed to find a member, at most.
const MAX_STEPS: usize = 8;
/// Names for the number of elements.
pub(super) const LENGTHS: [&str; 3] = ["len", "length", "size"];

impl Evaluator<'_> {
    pub(super) fn member(&self, of: &Expr, name: &str, at: Span) -> Answer<Value> {
        self.member_by(&self.look, of, name, at)
    }

    /// Evaluates the value whose member or element is requested. Values longer than a few words are not read.
    pub(super) fn holder(&self, of: &Expr) -> Answer<Value> {
        let machine = &Narrow(self.look.machine);
        match &of.kind {
            ExprKind::Name(name) => self.name_at(
                name,
                of.at,
                &FrameContext {
                    machine,
                    ..*self.site
                },
            ),
            ExprKind::Member {
                of: inner, name, ..
            } => {
                let look = Look {
                    machine,
                    ..self.look
                };
                self.member_by(&look, inner, name, of.at)
            }
            ExprKind::Index { of: inner, index } => {
                let look = Look {
                    machine,
                    ..self.look
                };
                self.index_by(&look, inner, index, of.at)
            }
            _ => self.value(of),
        }
    }

    fn member_by(&self, look: &Look<'_>, of: &Expr, name: &str, at: Span) -> Answer<Value> {
        if self.means_arguments(of)
            && let Ok(number) = name.parse()
        {
            return self.argument(number, at);
        }
        if self.means_arguments(of)
            && LENGTHS.contains(&name)
            && let Some(count) = self.argument_count()
        {
            return Ok(count);
        }
        let value = self.holder(of)?;
        let found = self.member_of(look, &value, name, (of.at, at));
        match (found, self.folded(name)) {
            (Err(_), Some(folded)) => self.member_of(look, &value, &folded, (of.at, at)),
            (found, _) => found,
        }
    }

    /// Returns whether what stands behind `%` is a component, as in Fortran.
    pub(super) fn is_component(&self, member: &Expr) -> bool {
        let is_named = match &member.kind {
            ExprKind::Name(_) => true,
            ExprKind::Call { function, .. } => matches!(function.kind, ExprKind::Name(_)),
            _ => false,
        };
        is_named && language_at(self.site) == Language::Fortran
    }

    /// Returns the member `name` of a value or of its target, read through `look`.
    pub(super) fn member_of(
        &self,
        look: &Look<'_>,
        value: &Value,
        name: &str,
        (of, at): (Span, Span),
    ) -> Answer<Value> {
        if name == "all" && value.ty.language() == Language::Ada {
            return self.all_of(look, value, of);
        }
        let field = match name.starts_with(|c: char| c.is_ascii_digit()) {
            // The name of a tuple field in the debug information.
            true => format!("__{name}"),
            false => name.to_owned(),
        };
        let machine = &Narrow(self.look.machine);
        let narrow = Look {
            machine,
            ..self.look
        };
        let mut value = value.clone();
        // Messages are made only if everything else fails, because type names take long to compute.
        let (mut refused, mut without, mut near) = (None, None, None);
        for _ in 0..MAX_STEPS {
            let kind = value.kind();
            let found = match kind {
                TypeKind::Struct | TypeKind::Class | TypeKind::Union => {
                    // The active variant has to be determined together with its contents.
                    let is_one_of_several = value.ty.strip().variants().is_some();
                    let look = if is_one_of_several { &self.look } else { look };
                    Some(value.member(&field, look))
                }
                _ => None,
            };
            match found {
                Some(Ok(found)) => return Ok(found),
                // An error about a pointer's target is more helpful than one about the pointer.
                Some(Err(error @ ValueError::NoMember { .. })) => {
                    near = nearest_member(&value, &field);
                    refused = Some(error);
                }
                Some(Err(error @ ValueError::WrongType { .. })) => {
                    refused.get_or_insert(error);
                }
                Some(Err(error @ ValueError::Ambiguous(_))) => {
                    return Err(EvalError::of_value(at, &error));
                }
                Some(Err(error)) => return Err(self.unusable(&value, error, of)),
                None => {
                    without.get_or_insert_with(|| value.ty.clone());
                }
            }
            if LENGTHS.contains(&name)
                && let Some(length) = self.length(&value, of)?
            {
                return Ok(length);
            }
            match self.behind_by(&narrow, &value, of)? {
                Some(next) => value = next,
                None => break,
            }
        }
        let without = without.map(|ty| ValueError::WrongType {
            ty: ty.name(),
            what: "has no members",
            hint: None,
        });
        let what = match (refused.or(without), near) {
            (Some(error), Some(near)) => {
                Diagnostic::new(error.to_string()).with_hint(format!("did you mean \"{near}\"?"))
            }
            (Some(error), None) => error.diagnostic(),
            (None, _) => format!("there is no member {name}").into(),
        };
        Err(EvalError::meaningless(at, what))
    }

    /// Returns the target of an Ada access value: a pointer, or a pair of pointers to an array and its bounds.
    fn all_of(&self, look: &Look<'_>, value: &Value, of: Span) -> Answer<Value> {
        let access = value.unreferenced(look);
        let access = access.map_err(|e| self.unusable(value, e, of))?;
        let found = match access.kind() {
            TypeKind::Pointer => self.target(&access, look),
            _ => access.member("all", look),
        };
        found.map_err(|e| self.unusable(&access, e, of))
    }

    /// Returns the target of a pointer or reference, read through `look`.
    pub(super) fn target(&self, value: &Value, look: &Look<'_>) -> Result<Value, ValueError> {
        let error = match value.deref(look) {
            Err(error) if self.wants.get() != Wants::Value => error,
            found => return found,
        };
        match (value.ty.strip().target(), error) {
            (Some(target), ValueError::Null) => {
                Ok(Value::at(target, 0, look.machine).reached_by(value.certainty))
            }
            (Some(target), ValueError::Unknown(why)) => Ok(Value::unknown(target, why)),
            (_, error) => Err(error),
        }
    }

    /// Returns what a value refers to: the target of a reference, a pointer or a box. `None` if it is not such a
    /// value.
    pub(super) fn behind(&self, value: &Value, at: Span) -> Answer<Option<Value>> {
        self.behind_by(&self.look, value, at)
    }

    /// Like `behind`, but reads the target of a plain pointer through `look`.
    fn behind_by(&self, look: &Look<'_>, value: &Value, at: Span) -> Answer<Option<Value>> {
        match value.kind() {
            TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference => {
                let next = self.target(value, look);
                next.map(Some).map_err(|e| self.unusable(value, e, at))
            }
            // The children of a smart pointer are the pointer, then its target.
            TypeKind::Struct | TypeKind::Class => match presented(value, &self.look, 2) {
                Some(Ok(shown)) => match shown.children {
                    Children::Transparent(inner) => Ok(Some(*inner)),
                    Children::Fields(fields) => match pointed(value, fields.clone(), at) {
                        Err(_) if self.wants.get() == Wants::Type => Ok(pointed_type(&fields)),
                        found => found,
                    },
                    _ => Ok(None),
                },
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Follows references and pointers to a value with members.
    pub(super) fn pointee(&self, value: &Value, at: Span) -> Answer<Value> {
        let mut value = value.clone();
        for _ in 0..MAX_STEPS {
            match value.kind() {
                TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference => {
                    let next = self.target(&value, &self.look);
                    value = next.map_err(|e| self.unusable(&value, e, at))?;
                }
                _ => break,
            }
        }
        Ok(value)
    }

    /// Returns the number of elements of a value, if its kind has elements.
    pub(super) fn length(&self, value: &Value, at: Span) -> Answer<Option<Value>> {
        let number = |count: u64, certainty: Certainty| {
            let number = Number::integer(IntKind::UNSIGNED_LONG, u128::from(count));
            Some(number_value(number, certainty))
        };
        let ty = value.ty.strip();
        if ty.kind() == TypeKind::Array {
            return Ok(ty.count().and_then(|count| number(count, Certainty::Known)));
        }
        if let Some((_, length)) = self.slice(value) {
            let count = self.whole(&length, at)?;
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            return Ok(number(count, length.certainty));
        }
        // The elements themselves are not read.
        match presented(value, &self.look, 0) {
            Some(Ok(shown)) => match (&shown.children, shown.total) {
                (Children::Sequence(_) | Children::Map(_) | Children::Text(_), Some(count)) => {
                    Ok(number(count, shown.certainty))
                }
                (Children::Sequence(_) | Children::Map(_), None) => {
                    Err(EvalError::new(at, "its elements cannot be counted"))
                }
                _ => Ok(None),
            },
            Some(Err(why)) => Err(EvalError::new(at, why)),
            None => Ok(None),
        }
    }

    /// Returns the pointer and the length of a Rust slice or string slice.
    pub(super) fn slice(&self, value: &Value) -> Option<(Value, Value)> {
        let ty = value.ty.strip();
        if ty.kind() != TypeKind::Struct || ty.members().len() != 2 {
            return None;
        }
        if !leads_to_elements(&ty.own_name()?) {
            return None;
        }
        let pointer = value.member("data_ptr", &self.look).ok()?;
        let length = value.member("length", &self.look).ok()?;
        Some((pointer, length))
    }

    pub(super) fn deref(&self, of: &Expr, at: Span) -> Answer<Value> {
        let value = self.value(of)?;
        let value = value
            .unreferenced(&self.look)
            .map_err(|e| self.unusable(&value, e, of.at))?;
        if let Some(array) = ada::array(&value, &self.look) {
            return array.map_err(|e| self.unusable(&value, e, of.at));
        }
        match value.kind() {
            TypeKind::Pointer => {
                let target = value.ty.strip().target();
                let is_void = target.is_none_or(|t| t.strip().kind() == TypeKind::Void);
                if is_void {
                    let error = EvalError::meaningless(of.at, "it points to void");
                    return Err(
                        error.with_hint("convert it to another pointer first, such as (char*)")
                    );
                }
                let found = self.target(&value, &self.look);
                found.map_err(|e| self.unusable(&value, e, of.at))
            }
            TypeKind::Array => value.index(0, &self.look).map_err(failed(at)),
            TypeKind::Function => Ok(value),
            _ => match self.behind(&value, of.at)? {
                Some(found) => Ok(found),
                None => {
                    let message = format!("{} is not a pointer", value.ty.name());
                    let error = EvalError::meaningless(of.at, message);
                    Err(match self.operand(&value, of.at) {
                        Ok(Operand::Number(_)) => {
                            error.with_hint("to look at that address, convert it: *(char*)...")
                        }
                        _ => error,
                    })
                }
            },
        }
    }

    pub(super) fn address_of(&self, of: &Expr, at: Span) -> Answer<Value> {
        let value = self.wanting(Wants::Place, of)?;
        // A reference is a name for its target.
        let value = match value.kind() {
            TypeKind::Reference | TypeKind::RvalueReference => {
                let target = value.deref(&self.look);
                target.map_err(|e| self.unusable(&value, e, of.at))?
            }
            _ => value,
        };
        if let ExprKind::Name(name) = &of.kind
            && value.address().is_none()
            && matches!(value.place, ValuePlace::Implicit(_))
            && self.function(name).is_some()
        {
            return Ok(value);
        }
        if let Some(address) = value.address() {
            let ty = value.ty.pointer();
            return Ok(pointer_value(ty, address, value.reached));
        }
        let why = match &value.place {
            _ if value.bits.is_some() => "a bit field has no address".to_owned(),
            ValuePlace::Register(register) => match register.name() {
                Some(name) => format!("it is in register {name} and has no address"),
                None => "it is in a register and has no address".to_owned(),
            },
            ValuePlace::OptimizedOut => "it is optimized out here and has no address".to_owned(),
            ValuePlace::Unknown(why) => {
                let why = Diagnostic::from(why.clone());
                let why = why.map(|why| format!("its address is not known: {why}"));
                return Err(EvalError::new(at, why));
            }
            _ => "it is not in memory and has no address".to_owned(),
        };
        Err(EvalError::new(at, why))
    }
}

/// Returns the target of a smart pointer with these parts, or `None` for other values.
fn pointed(value: &Value, fields: Vec<(String, Value)>, at: Span) -> Answer<Option<Value>> {
    let holds_value = value.ty.strip().own_name().is_some_and(|name| {
        let holding = [
            "alloc::rc::Rc<",
            "alloc::sync::Arc<",
            "std::optional<",
            "std::__1::optional<",
        ];
        holding.iter().any(|path| name.starts_with(path))
    });
    let mut pointer = None;
    for (name, field) in fields {
        match name.as_str() {
            "*get()" | "*" => return Ok(Some(field)),
            "value" if holds_value => return Ok(Some(field)),
            "get()" => pointer = Some(field),
            _ => {}
        }
    }
    match pointer.map(|pointer| pointer.as_address()) {
        None => Ok(None),
        Some(Ok(0)) => Err(EvalError::new(at, "the pointer is null")),
        Some(_) => Err(EvalError::new(at, "what it points to is not known")),
    }
}

/// Returns an unknown target of a smart pointer with these parts.
fn pointed_type(fields: &[(String, Value)]) -> Option<Value> {
    let mut pointers = fields.iter().filter(|(name, _)| name == "get()");
    let target = pointers.find_map(|(_, pointer)| pointer.ty.strip().target())?;
    Some(Value::unknown(
        target,
        Unknown::because("the pointer is null"),
    ))
}

/// Returns the member with the name most similar to a missing one, if there are too many for the message to list.
fn nearest_member(value: &Value, name: &str) -> Option<String> {
    let members = value.ty.strip().members();
    let names: Vec<&str> = members.iter().filter_map(|m| m.name.as_deref()).collect();
    let is_long = names.len() > MAX_NAMED;
    let near = is_long.then(|| nearest(name, names.iter().copied()));
    near.flatten().map(str::to_owned)
}

/// A machine that reads only a few words at once. Members of longer values are read from their places.
struct Narrow<'m>(&'m dyn Machine);

/// The size of a slice or a `std::string_view`. Values of an address and a length are read whole.
const NARROW_LEN: usize = 16;

impl Machine for Narrow<'_> {
    fn behind(&self) -> Option<&dyn Machine> {
        Some(self.0)
    }

    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        match bytes.len() <= NARROW_LEN {
            true => self.0.memory(address, bytes),
            false => Err(Unknown::because("it is read in parts")),
        }
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        self.0.register(register)
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        self.0.vector(register)
    }

    fn vector_low(&self, register: Register) -> Result<([u8; 8], Certainty), Unknown> {
        self.0.vector_low(register)
    }
}

/// Returns `of % member` of Fortran as `of.member`; an element of it, `of % member(1)`, likewise.
pub(super) fn component(of: &Expr, member: &Expr) -> Expr {
    let at = Span {
        start: of.at.start,
        end: member.at.end,
    };
    let kind = match &member.kind {
        ExprKind::Name(name) => ExprKind::Member {
            of: Box::new(of.clone()),
            name: name.clone(),
            arrow: false,
        },
        ExprKind::Call {
            function,
            arguments,
        } => ExprKind::Call {
            function: Box::new(component(of, function)),
            arguments: arguments.clone(),
        },
        other => other.clone(),
    };
    Expr::new(kind, at)
}

/// Returns whether a pointer of two words with this name leads to elements: `&[u8]`, `&mut str` and `Box<[u8]>` do, but
/// `&RefCell<[u8]>` leads to a structure that ends with some.
fn leads_to_elements(name: &str) -> bool {
    let marks = ["&mut ", "&", "*const ", "*mut ", "alloc::boxed::Box<"];
    let target = marks.iter().find_map(|mark| name.strip_prefix(mark));
    target.is_some_and(|t| t.starts_with('[') || t == "str" || t.starts_with("str,"))
}
