//! Elements and ranges of arrays, pointers, slices and containers.

use crate::BinaryOp;
use crate::ast::{Expr, ExprKind, Span};
use crate::eval::operand::{Operand, stands_for_target};
use crate::eval::strings::presented;
use crate::eval::{Answer, EvalError, Evaluator, Wants};
use debuginfo::Certainty;
use debuginfo::types::{Language, Type, TypeKind};
use debuginfo::value::trail::Trail;
use debuginfo::value::{Look, MAX_BYTES, Value, ValueError};
use values::Children;
use values::containers::Container;

/// Elements of a container that are searched, at most.
const MAX_ELEMENTS: usize = 1 << 16;
/// References and wrappers followed to find elements, at most.
const MAX_STEPS: usize = 8;

impl Evaluator<'_> {
    pub(super) fn index(&self, of: &Expr, index: &Expr, at: Span) -> Answer<Value> {
        self.index_by(&self.look, of, index, at)
    }

    /// Like `index`, but reads an element of an array through `look`.
    pub(super) fn index_by(
        &self,
        look: &Look<'_>,
        of: &Expr,
        index: &Expr,
        at: Span,
    ) -> Answer<Value> {
        let key = self.value(index)?;
        if self.means_arguments(of) {
            let number = self.whole(&key, index.at)?;
            return self.argument(number, at);
        }
        let key_at = (&key, index.at);
        // In a recording, a whole value takes longer to find than an element. There are no calls, so none is made
        // twice.
        let unread = match self.context.calls.is_none() && !self.look.machine.is_symbolic() {
            true => self.holder(of).ok().filter(leads_to_elements),
            false => None,
        };
        let found = unread.and_then(|value| self.element_by(look, &value, key_at, of.at).ok());
        let found = match found {
            Some(found) => found,
            None => self.element_by(look, &self.value(of)?, key_at, of.at)?,
        };
        // The selected element depends on the moment, too.
        if !matches!(index.kind, ExprKind::Literal(_)) {
            self.compute_with(&found);
        }
        Ok(found.reached_by(key.certainty))
    }

    pub(super) fn element(&self, value: &Value, key: (&Value, Span), at: Span) -> Answer<Value> {
        self.element_by(&self.look, value, key, at)
    }

    fn element_by(
        &self,
        look: &Look<'_>,
        value: &Value,
        key: (&Value, Span),
        at: Span,
    ) -> Answer<Value> {
        let found = self.element_in(look, value.clone(), key, at);
        // How many there are depends on the moment, too.
        found.inspect_err(|_| self.note(value.certainty))
    }

    fn element_in(
        &self,
        look: &Look<'_>,
        mut value: Value,
        (key, key_at): (&Value, Span),
        at: Span,
    ) -> Answer<Value> {
        for _ in 0..MAX_STEPS {
            value = value
                .unreferenced(&self.look)
                .map_err(|e| self.unusable(&value, e, at))?;
            match value.kind() {
                TypeKind::Pointer if self.refers_to_elements(&value.ty) => {
                    let next = self.target(&value, &self.look);
                    value = next.map_err(|e| self.unusable(&value, e, at))?;
                    continue;
                }
                TypeKind::Struct if value.ty.language() == Language::Ada => {
                    let number = self.whole(key, key_at)?;
                    let number = self.small(number, key_at)?;
                    let found = value.index(number, &self.look);
                    return found.map_err(|e| self.unusable(&value, e, at));
                }
                TypeKind::Array | TypeKind::Pointer => {
                    let number = self.whole(key, key_at)?;
                    let number = self.small(number, key_at)?;
                    let found = match value.index(number, look) {
                        Err(ValueError::Null | ValueError::Unknown(_))
                            if self.wants.get() != Wants::Value
                                && value.kind() == TypeKind::Pointer =>
                        {
                            self.element_of_nothing(&value, number, look)
                        }
                        found => found,
                    };
                    return found.map_err(|e| self.unusable(&value, e, at));
                }
                TypeKind::Struct | TypeKind::Class => {}
                _ => break,
            }
            if let Some((pointer, length)) = self.slice(&value) {
                let (number, count) = (self.whole(key, key_at)?, self.whole(&length, at)?);
                within(number, count, key_at)?;
                let number = self.small(number, key_at)?;
                let found = pointer.index(number, &self.look);
                let found = found.map_err(|e| self.unusable(&pointer, e, at))?;
                let fits = Trail::check(&[&pointer, &length], &found, self.look.machine);
                fits.map_err(|why| EvalError::new(key_at, why))?;
                return Ok(found.reached_by(length.certainty));
            }
            match self.presented_element(&value, (key, key_at), at)? {
                Ok(found) => return Ok(found),
                Err(Some(inner)) => value = inner,
                Err(None) => break,
            }
        }
        let message = format!("{} has no elements", value.ty.name());
        Err(EvalError::new(at, message))
    }

    /// Returns the place where a pointer that leads nowhere would have an element.
    fn element_of_nothing(
        &self,
        pointer: &Value,
        number: i64,
        look: &Look<'_>,
    ) -> Result<Value, ValueError> {
        let first = self.target(pointer, look)?;
        let size = first.ty.size().unwrap_or(0) as i64;
        Ok(match first.address() {
            Some(address) => {
                let address = address.wrapping_add_signed(number.wrapping_mul(size));
                Value::at(first.ty, address, look.machine).reached_by(first.reached)
            }
            None => first,
        })
    }

    /// Returns whether the type is a Rust reference to something with elements of its own, or a box of it. All other pointers are
    /// arrays as in C.
    fn refers_to_elements(&self, ty: &Type) -> bool {
        stands_for_target(ty)
            && ty.strip().target().is_some_and(|target| {
                let kind = target.strip().kind();
                matches!(kind, TypeKind::Struct | TypeKind::Array | TypeKind::Pointer)
            })
    }

    /// Returns an element found by the container's printer, or else the value that the printer shows instead.
    fn presented_element(
        &self,
        value: &Value,
        (key, key_at): (&Value, Span),
        at: Span,
    ) -> Answer<Result<Value, Option<Value>>> {
        let is_number = matches!(self.operand(key, key_at)?, Operand::Number(_));
        let wanted = match is_number {
            true => usize::try_from(self.whole(key, key_at)?).unwrap_or(MAX_ELEMENTS),
            false => MAX_ELEMENTS,
        };
        let limit = wanted.saturating_add(1).min(MAX_ELEMENTS);
        if let Some(Ok(container)) = Container::of(value, &self.look)
            && container.is_numbered()
        {
            let number = self.whole(key, key_at)?;
            let length = container.len(&self.look).and_then(Result::ok);
            within(number, length.map_or(i128::MAX, i128::from), key_at)?;
            let number = u64::try_from(number).unwrap_or(u64::MAX);
            let found = container.at(number, &self.look);
            return match found {
                Ok(found) => Ok(Ok(found)),
                Err(why) => Err(EvalError::new(key_at, why)),
            };
        }
        // Characters of C++ may have several bytes.
        if value.ty.language() == Language::Cpp
            && let Some(Ok(container)) = Container::of(value, &self.look)
            && let Some(length) = container.text(&self.look, 0).and(container.len(&self.look))
        {
            let number = self.whole(key, key_at)?;
            let length = length.map_err(|why| EvalError::new(at, why))?;
            within(number, i128::from(length), key_at)?;
            let found = container.at(u64::try_from(number).unwrap_or(u64::MAX), &self.look);
            return found.map(Ok).map_err(|why| EvalError::new(key_at, why));
        }
        let Some(shown) = presented(value, &self.look, limit) else {
            return Ok(Err(None));
        };
        let shown = shown.map_err(|why| EvalError::new(at, why))?;
        match shown.children {
            Children::Map(_) => self.in_map(value, (key, key_at), at).map(Ok),
            Children::Text(bytes) => {
                let number = self.whole(key, key_at)?;
                within(number, bytes.len() as i128, key_at)?;
                let byte = bytes[number as usize];
                let unit = Value::constant(super::base_type("u8"), vec![byte]);
                Ok(Ok(unit.reached_by(shown.certainty)))
            }
            Children::Transparent(inner) => Ok(Err(Some(*inner))),
            Children::Fields(fields) if owns_array(value) => {
                let mut pointers = fields.into_iter().filter(|(name, _)| name == "get()");
                Ok(Err(pointers.next().map(|(_, pointer)| pointer)))
            }
            _ => Ok(Err(None)),
        }
    }

    fn in_map(&self, value: &Value, (key, key_at): (&Value, Span), at: Span) -> Answer<Value> {
        let shown = presented(value, &self.look, MAX_ELEMENTS);
        let Some(Ok(shown)) = shown else {
            return Err(EvalError::unknown(at, "its elements are not known"));
        };
        let Children::Map(pairs) = shown.children else {
            return Err(EvalError::unknown(at, "its elements are not known"));
        };
        let whole = shown.total.is_none_or(|total| total <= pairs.len() as u64);
        for (own, found) in pairs {
            let same = self.binary(BinaryOp::Equal, (&own, at), (key, key_at), key_at)?;
            if self.truth(&same, key_at)? {
                return Ok(found);
            }
        }
        let message = match whole {
            true => "the map has no such key".to_owned(),
            false => format!("none of the first {MAX_ELEMENTS} keys is this one"),
        };
        Err(EvalError::new(key_at, message))
    }

    fn small(&self, number: i128, at: Span) -> Answer<i64> {
        i64::try_from(number)
            .map_err(|_| EvalError::new(at, format!("no array has an element {number}")))
    }

    /// Returns `of[from..to]` as an array.
    pub(super) fn range(
        &self,
        of: &Expr,
        (from, to, inclusive): (Option<&Expr>, Option<&Expr>, bool),
        at: Span,
    ) -> Answer<Value> {
        let value = self.value(of)?;
        // Some elements of a partly known array are known. Apart from them, only the certainty of the bounds matters.
        let mut certainty = Certainty::Known;
        let mut bound = |expr: Option<&Expr>| match expr {
            Some(expr) => {
                let value = self.value(expr)?;
                certainty = certainty.and(value.certainty);
                self.whole(&value, expr.at).map(Some)
            }
            None => Ok(None),
        };
        let first = bound(from)?.unwrap_or(0);
        let to = bound(to)?;
        let last = match to {
            Some(last) => last.saturating_add(i128::from(inclusive)),
            None => {
                let through = self.pointee_of_slices(&value, of.at)?;
                let Some(length) = self.length(&through, of.at)? else {
                    let error = EvalError::new(of.at, "it does not say how many elements it has");
                    return Err(error.with_hint("write the end of the range"));
                };
                certainty = certainty.and(length.certainty);
                self.whole(&length, of.at)?
            }
        };
        let Some(count) = last.checked_sub(first).filter(|count| *count >= 0) else {
            let message = format!("the range from {first} to {last} ends before it begins");
            return Err(EvalError::new(at, message));
        };
        if count == 0 {
            let element = self.element_type(&value, of.at)?;
            return Ok(Value::constant(element.array(0), Vec::new()));
        }
        let key = |number: i128| {
            super::operand::number_value(
                crate::number::Number::integer(crate::number::IntKind::LONG, number as u128),
                certainty,
            )
        };
        let start = self.element(&value, (&key(first), at), of.at)?;
        let end = match count {
            1 => start.clone(),
            _ => self.element(&value, (&key(last - 1), at), of.at)?,
        };
        let row = self.row(&start, count, Some(&end), at)?;
        Ok(row.reached_by(certainty))
    }

    /// Follows references to slices and containers.
    fn pointee_of_slices(&self, value: &Value, at: Span) -> Answer<Value> {
        let mut value = value.clone();
        for _ in 0..MAX_STEPS {
            let refers = match value.kind() {
                TypeKind::Reference | TypeKind::RvalueReference => true,
                TypeKind::Pointer => self.refers_to_elements(&value.ty),
                _ => false,
            };
            if !refers {
                break;
            }
            let next = value.deref(&self.look);
            value = next.map_err(|e| self.unusable(&value, e, at))?;
        }
        Ok(value)
    }

    fn element_type(&self, value: &Value, at: Span) -> Answer<Type> {
        let value = self.pointee_of_slices(value, at)?;
        let ty = value.ty.strip();
        let found = match ty.kind() {
            TypeKind::Array => ty.element(),
            TypeKind::Pointer => ty.target(),
            _ => self
                .slice(&value)
                .and_then(|(pointer, _)| pointer.ty.strip().target()),
        };
        Ok(found.unwrap_or_else(|| super::base_type("u8")))
    }

    /// Returns `first@count`.
    pub(super) fn repeat(&self, first: &Expr, count: &Expr, at: Span) -> Answer<Value> {
        let value = self.value(first)?;
        let number = self.value(count)?;
        let number = self.whole(&number, count.at)?;
        if number < 1 {
            let message = format!("expected how many values there are, not {number}");
            return Err(EvalError::new(count.at, message));
        }
        self.row(&value, number, None, at)
    }

    /// Returns `count` consecutive values, starting with `first`. `last`, if given, is the last of them.
    fn row(&self, first: &Value, count: i128, last: Option<&Value>, at: Span) -> Answer<Value> {
        let Some(address) = first.address() else {
            return Err(EvalError::new(
                at,
                "only values in memory are followed by others",
            ));
        };
        if first.bits.is_some() {
            let error = EvalError::new(at, "its elements do not begin at bytes");
            return Err(error.with_hint("look at them one by one"));
        }
        let size = first.ty.size().unwrap_or(0);
        let bytes = i128::from(size).saturating_mul(count);
        if bytes > i128::from(MAX_BYTES) {
            let message = format!("{count} values are too many to be read at once");
            return Err(EvalError::new(at, message));
        }
        let end = last.and_then(Value::address);
        let expected = address.wrapping_add((bytes as u64).wrapping_sub(size));
        if end.is_some_and(|end| end != expected) {
            let error = EvalError::new(at, "its elements do not lie side by side");
            return Err(error.with_hint("look at them one by one"));
        }
        let ty = first.ty.array(u64::try_from(count).unwrap_or(0));
        let row = Value::at(ty, address, self.look.machine);
        Ok(row.reached_by(first.reached))
    }
}

/// Returns whether a value is a smart pointer of C++ to an array: `std::unique_ptr<int[]>`.
fn owns_array(value: &Value) -> bool {
    let name = value.ty.strip().own_name().unwrap_or_default();
    let arguments = name.split_once('<').map(|(_, arguments)| arguments);
    let first = arguments.and_then(|arguments| arguments.split([',', '>']).next());
    first.is_some_and(|first| first.trim_end().ends_with(']'))
}

/// Returns whether the elements of a value can be found without its bytes, or its bytes are known. Array descriptors
/// are checked when the whole array is read.
fn leads_to_elements(value: &Value) -> bool {
    let language = value.ty.strip().language();
    let is_plain = matches!(language, Language::C | Language::Cpp | Language::Rust);
    is_plain && (value.bytes.is_ok() || value.address().is_some())
}

fn within(number: i128, length: i128, at: Span) -> Answer<()> {
    match (0..length).contains(&number) {
        true => Ok(()),
        false => {
            let error = EvalError::new(at, format!("there is no element {number}"));
            Err(error.with_hint(format!("it has {length}")))
        }
    }
}
