//! Calls of C++ functions by their names: finds the functions that a name may mean, lets overload resolution choose, and
//! converts the arguments to its parameters.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ast::{CastKind, Expr, ExprKind, Span};
use crate::eval::operand::pointer_value;
use crate::eval::overloads::{Signature, Wanted, conversion};
use crate::eval::ranks::{Given, Rank, is_reference, way};
use crate::eval::{Answer, EvalError, Evaluator, Missing, Wants, base_type};
use debuginfo::location::ValuePlace;
use debuginfo::scope::{function_type, imported, is_external, unit_of_function};
use debuginfo::types::{Language, Type, TypeKind};
use debuginfo::value::Value;
use debuginfo::{Function, Mapped, Unknown};

/// Pointers and arrays around a class, at most.
const MAX_DEPTH: usize = 8;
/// A namespace without a name, in the names of functions: its members are names of the scope around it.
const ANONYMOUS: &str = "(anonymous namespace)::";

/// A function that a call may mean.
struct Candidate {
    entry: u64,
    /// The type of what it returns.
    result: Option<Type>,
    /// Its source file.
    file: Option<Arc<str>>,
    signature: Signature,
}

impl Evaluator<'_> {
    /// Calls the function of C++ that `function` names. `target` is what the name means without its arguments. Returns `None`
    /// for all other calls.
    pub(super) fn call_of_cpp(
        &self,
        function: &Expr,
        target: &Answer<Value>,
        arguments: &[Expr],
        at: Span,
    ) -> Answer<Option<Value>> {
        let ExprKind::Name(name) = &function.kind else {
            return Ok(None);
        };
        let Some((entry, file)) = self.entry_of_cpp(name, target) else {
            return Ok(None);
        };
        if let Some(result) = self.call_of_this(name, entry, arguments, at)? {
            return Ok(Some(result));
        }
        let calls = match self.wants.get() {
            Wants::Type => None,
            _ => Some(self.callable(name, at)?),
        };
        let values = self.values(arguments)?;
        let mut found = self.overloads(name, entry, &values);
        let wanted = Wanted::new(name, (arguments, &values), None, at);
        let signatures: Vec<&Signature> = found.iter().map(|one| &one.signature).collect();
        let chosen = wanted.resolve(&signatures)?;
        let chosen = found.swap_remove(chosen);
        let Some(calls) = calls else {
            return Ok(Some(not_called(chosen.result)));
        };
        if let Some(file) = file {
            calls.found_in(name, &file);
        }
        let values = self.passed(&chosen.signature, &wanted, &values)?;
        let function = self.function_value(chosen.entry);
        let result = self.called(calls, (name, &function), &values);
        result.map(Some).map_err(|why| EvalError::new(at, why))
    }

    /// Evaluates the arguments of a call.
    pub(super) fn values(&self, arguments: &[Expr]) -> Answer<Vec<Value>> {
        arguments.iter().map(|of| self.value(of)).collect()
    }

    /// Returns the entry of the function of C++ that a name means without its arguments, and the file of another module that it
    /// is in.
    fn entry_of_cpp(&self, name: &str, target: &Answer<Value>) -> Option<(u64, Option<String>)> {
        let (entry, file) = match target {
            // Variables that point to functions have a place, except for those that are constant.
            Ok(value)
                if matches!(value.place, ValuePlace::Implicit(_))
                    && self.variable(name).is_none() =>
            {
                let ty = value.ty.strip().target()?;
                let is_function = ty.strip().kind() == TypeKind::Function;
                let entry = value.as_address().ok().filter(|_| is_function)?;
                (entry, None)
            }
            Err(error) if error.missing == Some(Missing::Elsewhere) => {
                let (entry, file) = self.only_elsewhere(name)?;
                (entry, Some(file))
            }
            _ => return None,
        };
        let mapped = self.look.space.at(entry)?;
        let is_meant = self.function(name).is_none_or(|own| own == entry);
        let ty = function_type(&mapped.module, mapped.svma(entry))?;
        let is_known = function_at(mapped, entry).is_some();
        (is_meant && is_known && ty.language() == Language::Cpp).then_some((entry, file))
    }

    /// In a method, the plain name of a method means that of the same object.
    fn call_of_this(
        &self,
        name: &str,
        entry: u64,
        arguments: &[Expr],
        at: Span,
    ) -> Answer<Option<Value>> {
        let mapped = self.look.space.at(entry);
        let function = mapped.and_then(|mapped| function_at(mapped, entry));
        let first = function.and_then(|function| function.params.first());
        let is_method = first.is_some_and(|first| first.name == "this");
        if !is_method || name.contains("::") || self.variable("this").is_none() {
            return Ok(None);
        }
        let this = Expr::new(ExprKind::Name("this".to_owned()), at);
        self.method_call((&this, name), arguments, at)
    }

    /// Returns the functions that may be meant by `name`, which without its arguments means that at `entry`.
    fn overloads(&self, name: &str, entry: u64, values: &[Value]) -> Vec<Candidate> {
        let first = self.look.space.at(entry);
        let Some((mapped, first)) = first.and_then(|m| Some((m, function_at(m, entry)?))) else {
            return Vec::new();
        };
        let names = self.names_of_overloads(name, &first.name, values);
        let (is_explicit, here) = (name.ends_with('>'), self.file_here());
        let is_called = |function: &&Function| names.contains(&bare(&function.name, is_explicit));
        let last = last_of(&names[0]);
        let list = mapped.module.functions().list.iter();
        let may_be = list.filter(|function| function.name.contains(last));
        let seen = self.seen_here(mapped, first, may_be.filter(is_called).collect());
        let mut found: Vec<Candidate> = seen
            .into_iter()
            .filter_map(|function| candidate(mapped, function, is_explicit))
            .collect();
        // Copies that compilers make of a function come after it: they may take other arguments.
        found.sort_by_key(|one| (one.file != here, one.entry != entry));
        found.extend(undescribed(mapped, &names[0]));
        let mut seen = BTreeSet::new();
        found.retain(|one| seen.insert((one.signature.name.clone(), one.signature.list())));
        found
    }

    /// Leaves out functions that are private to other units. If none of them is of this unit, it is seen from that of `first`,
    /// which their name means.
    fn seen_here<'m>(
        &self,
        mapped: &'m Mapped,
        first: &Function,
        named: Vec<&'m Function>,
    ) -> Vec<&'m Function> {
        let unit = |function: &Function| unit_of_function(&mapped.module, function.svma);
        let pc = self.site.lookup_pc;
        let is_here = self.look.space.at(pc);
        let is_here = is_here.is_some_and(|here| std::ptr::eq(here, mapped));
        let own = is_here.then(|| unit_of_function(&mapped.module, mapped.svma(pc)));
        let own = own.flatten();
        let has_own = own.is_some() && named.iter().any(|function| unit(function) == own);
        let from = if has_own { own } else { unit(first) };
        let seen = named.into_iter().filter(|function| {
            unit(function) == from || is_external(&mapped.module, function.svma)
        });
        seen.collect()
    }

    /// Returns the qualified names that a call of `name` may mean, that of the function that it means without its arguments first:
    /// also those that the source imports, and those of the namespaces of the arguments ([basic.lookup.argdep]).
    fn names_of_overloads(&self, name: &str, full: &str, values: &[Value]) -> Vec<String> {
        let is_explicit = name.ends_with('>');
        let full = bare(full, is_explicit);
        let plain = name.strip_prefix("::").unwrap_or(name);
        let imported = imported(self.site, name).into_iter();
        let imported: Vec<String> = imported.map(|one| bare(&one.name, is_explicit)).collect();
        let is_imported = full == plain || imported.contains(&full);
        let mut names = vec![full];
        if is_imported {
            names.extend(imported);
        }
        if !name.contains("::") {
            let spaces = values.iter().filter_map(|value| self.space_of(&value.ty));
            names.extend(spaces.map(|space| bare(&format!("{space}::{name}"), is_explicit)));
        }
        names
    }

    /// Returns the innermost namespace of a class or enumeration, or of what a pointer to one leads to.
    fn space_of(&self, ty: &Type) -> Option<String> {
        let mut ty = ty.strip();
        for _ in 0..MAX_DEPTH {
            ty = match ty.kind() {
                TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference => {
                    ty.target()?.strip()
                }
                TypeKind::Array => ty.element()?.strip(),
                _ => break,
            };
        }
        let is_named = matches!(
            ty.kind(),
            TypeKind::Struct | TypeKind::Class | TypeKind::Union | TypeKind::Enum
        );
        let own = ty.own_name().filter(|_| is_named)?;
        let (mut space, _) = without_arguments(&own).rsplit_once("::")?;
        while self.find_type(space).is_some() {
            space = without_arguments(space).rsplit_once("::")?.0;
        }
        Some(space.to_owned())
    }

    /// Returns the source file of the frame's function.
    fn file_here(&self) -> Option<Arc<str>> {
        self.look.space.function_at(self.site.lookup_pc)?.file
    }

    /// Converts arguments to the parameters of a function.
    pub(super) fn passed(
        &self,
        to: &Signature,
        wanted: &Wanted<'_>,
        values: &[Value],
    ) -> Answer<Vec<Value>> {
        let parameters = to.parameters();
        let pairs = wanted.given().zip(values).enumerate();
        let passed = pairs.map(
            |(index, ((expr, given), value))| match parameters.get(index) {
                Some(parameter) => self.passed_as(value, parameter, (expr, given)),
                None => Ok(value.clone()),
            },
        );
        passed.collect()
    }

    /// Converts an argument as the program would. Other pointers and numbers of enumerations, which C++ does not convert, are left to
    /// the call, which passes what fits a register.
    fn passed_as(
        &self,
        value: &Value,
        parameter: &Type,
        (expr, given): (&Expr, &Given),
    ) -> Answer<Value> {
        let at = expr.at;
        let value = value
            .unreferenced(&self.look)
            .map_err(|e| self.unusable(value, e, at))?;
        let refused = |how: &str, hint: String| {
            let (from, to) = (given.ty.name(), parameter.name());
            let message = format!("{from} cannot be passed as {to}{how}");
            Err(EvalError::meaningless(at, message).with_hint(hint))
        };
        let has_place = value.address().is_some();
        let to = without_reference(parameter).kind();
        // The function gets the address of a pointer, not that of the array.
        let is_behind_pointer = is_reference(&parameter.strip())
            && to == TypeKind::Pointer
            && value.kind() == TypeKind::Array;
        let variable = || "pass a variable of that type".to_owned();
        match way(given, parameter).map(|way| way.rank) {
            None if is_reference(&parameter.strip()) && has_place => {
                let converted = conversion(parameter, expr);
                refused("", format!("if that is meant, write it so: {converted}"))
            }
            None if is_reference(&parameter.strip()) => refused("", variable()),
            Some(Rank::OfClass) => {
                refused(" without a conversion that a class defines", variable())
            }
            Some(_) if is_behind_pointer && !has_place => refused("", variable()),
            Some(Rank::Promoted | Rank::Converted) => self.converted_to(value, parameter, at),
            Some(_) if is_behind_pointer => self.converted_to(value, parameter, at),
            _ => Ok(value),
        }
    }

    fn converted_to(&self, value: Value, parameter: &Type, at: Span) -> Answer<Value> {
        let element = value.ty.strip().element();
        let is_truth = without_reference(parameter).kind() == TypeKind::Bool;
        let value = match (element, value.address()) {
            (Some(element), Some(address)) => {
                pointer_value(element.pointer(), address, value.certainty)
            }
            // Wherever it will lie, its address is not null.
            (Some(element), None) if is_truth => {
                pointer_value(element.pointer(), 1, value.certainty)
            }
            // A text gets its address when it is passed.
            (Some(_), None) => return Ok(value),
            (None, _) => value,
        };
        self.convert(&value, parameter, CastKind::Static, at)
    }
}

/// Returns the stripped type of a parameter, or of what it refers to.
fn without_reference(parameter: &Type) -> Type {
    let ty = parameter.strip();
    match ty.target().filter(|_| is_reference(&ty)) {
        Some(target) => target.strip(),
        None => ty,
    }
}

/// Returns the value of a call of which only the type is wanted.
pub(super) fn not_called(result: Option<Type>) -> Value {
    let why = Unknown::because("nothing is called for a type");
    Value::unknown(result.unwrap_or_else(|| base_type("void")), why)
}

/// Returns the function that begins at `entry`, according to the debug information.
pub(super) fn function_at(mapped: &Mapped, entry: u64) -> Option<&Function> {
    let list = &mapped.module.functions().list;
    let svma = mapped.svma(entry);
    let found = list.binary_search_by_key(&svma, |function| function.svma);
    found.ok().map(|at| &list[at])
}

fn candidate(mapped: &Mapped, function: &Function, is_explicit: bool) -> Option<Candidate> {
    let ty = function_type(&mapped.module, function.svma)?;
    Some(Candidate {
        entry: mapped.address(function.svma),
        result: ty.target(),
        file: function.file.clone(),
        signature: Signature {
            name: function.name.clone(),
            parameters: Some(ty.parameters()),
            is_variadic: function.variadic,
            is_of_template: !is_explicit && without_arguments(&function.name) != function.name,
            has_object: false,
        },
    })
}

/// Returns the functions called `name` that only symbols name.
fn undescribed(mapped: &Mapped, name: &str) -> Vec<Candidate> {
    let mut places = mapped.functions_matching(name);
    places.retain(|place| {
        let is_described = || function_type(&mapped.module, mapped.svma(place.entry)).is_some();
        place.name == name && function_at(mapped, place.entry).is_none() && !is_described()
    });
    let found = places.into_iter().map(|place| Candidate {
        entry: place.entry,
        result: None,
        file: None,
        signature: Signature {
            name: place.name,
            parameters: None,
            is_variadic: false,
            is_of_template: false,
            has_object: false,
        },
    });
    found.collect()
}

/// Returns a function's name without namespaces that have none, and without its template arguments if the call does not write
/// them.
fn bare(full: &str, is_explicit: bool) -> String {
    let full = full.replace(ANONYMOUS, "");
    match is_explicit {
        true => full,
        false => without_arguments(&full).to_owned(),
    }
}

/// Removes the template arguments at the end of a name: `Box<int>::f` of `Box<int>::f<char>`.
fn without_arguments(name: &str) -> &str {
    let mut depth = 0usize;
    for (at, byte) in name.bytes().enumerate().rev() {
        match byte {
            b'>' => depth += 1,
            b'<' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return if byte == b'<' { &name[..at] } else { name };
        }
    }
    name
}

/// Returns the last component of a name, without template arguments.
fn last_of(name: &str) -> &str {
    let name = without_arguments(name);
    name.rsplit_once("::").map_or(name, |(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::{bare, last_of};

    #[test]
    fn overloads_are_known_by_their_names_without_template_arguments() {
        for (full, name, last) in [
            ("f", "f", "f"),
            ("ns::f<int>", "ns::f", "f"),
            ("Box<ns::A>::f<Box<int> >", "Box<ns::A>::f", "f"),
            ("ns::(anonymous namespace)::f", "ns::f", "f"),
            ("P::operator->", "P::operator->", "operator->"),
        ] {
            assert_eq!(bare(full, false), name);
            assert_eq!(last_of(name), last);
        }
        assert_eq!(bare("ns::f<int>", true), "ns::f<int>");
    }
}
