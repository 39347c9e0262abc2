//! Methods: functions whose first parameter is the object. They are found by the object's type and called by name
//! alone. A name may be qualified with a base class.
//!
//! The first parameter, not the name, determines the type of a method, in C++ and in Rust, because names are written in
//! too many ways. A virtual function is that of the object's own class, which its type_info names.

use std::collections::BTreeSet;

use crate::ast::{Expr, Span};
use crate::eval::calls::{miscounted, result_type};
use crate::eval::candidates::not_called;
use crate::eval::classes::derives;
use crate::eval::operand::pointer_value;
use crate::eval::overloads::{Signature, Wanted};
use crate::eval::{Answer, EvalError, Evaluator, Wants};
use debuginfo::Certainty;
use debuginfo::scope::{function_type, is_virtual};
use debuginfo::types::{Language, Role, Type, TypeKind, find_qualifier};
use debuginfo::value::{Value, ValueError, inside};

/// Pointers, wrappers and base classes searched for a method, at most.
const MAX_STEPS: usize = 8;
/// Functions of one name whose parameters are examined, at most.
const MAX_CANDIDATES: usize = 4096;

/// A method with its object.
#[derive(Clone)]
struct Method {
    /// The function, as a callable value.
    function: Value,
    /// Its first argument.
    object: Value,
    /// The class that it is found in.
    class: Type,
    signature: Signature,
}

/// The arguments of a call.
#[derive(Clone, Copy)]
struct Arguments<'a> {
    written: &'a [Expr],
    values: &'a [Value],
    at: Span,
}

impl Evaluator<'_> {
    /// Calls the method `name` of `of`. Returns `None` if its type has no such method.
    pub(super) fn method_call(
        &self,
        (of, name): (&Expr, &str),
        arguments: &[Expr],
        at: Span,
    ) -> Answer<Option<Value>> {
        let object = self.value(of)?;
        let values = self.values(arguments)?;
        let given = Arguments {
            written: arguments,
            values: &values,
            at,
        };
        let Some(method) = self.method(&object, name, given, of.at)? else {
            return Ok(None);
        };
        if self.wants.get() == Wants::Type {
            return Ok(Some(not_called(result_type(&method.function))));
        }
        let calls = self.callable(name, at)?;
        let mut all = vec![method.object.clone()];
        all.extend(self.arguments_of(&method, name, given)?);
        let result = self.called(calls, (name, &method.function), &all);
        result.map(Some).map_err(|why| EvalError::new(at, why))
    }

    /// Returns the arguments as the method takes them.
    fn arguments_of(
        &self,
        method: &Method,
        name: &str,
        given: Arguments<'_>,
    ) -> Answer<Vec<Value>> {
        let Arguments {
            written,
            values,
            at,
        } = given;
        if is_of_cpp(method) {
            let wanted = Wanted::new(name, (written, values), None, at);
            return self.passed(&method.signature, &wanted, values);
        }
        let wanted = method.signature.parameters().len();
        match values.len() < wanted {
            true => Err(EvalError::new(at, miscounted(name, wanted, values.len()))),
            false => Ok(values.to_vec()),
        }
    }

    /// Finds the method that fits the arguments best: in the object's class, its bases, or the object it points to.
    fn method(
        &self,
        object: &Value,
        name: &str,
        arguments: Arguments<'_>,
        at: Span,
    ) -> Answer<Option<Method>> {
        let mut value = object.clone();
        for _ in 0..MAX_STEPS {
            let (own, plain) = self.called_on(&value, name, at)?;
            let mut found = self.methods_of(&own, plain, at)?;
            if found.first().is_some_and(is_of_cpp) {
                let stated = match plain == name {
                    true => self.methods_of(&value, name, at)?,
                    // The class is written: it decides, also for virtual functions.
                    false => Vec::new(),
                };
                let chosen = self.overload((stated, found), (&own, &value), plain, arguments);
                return chosen.map(Some);
            }
            if !found.is_empty() {
                let values = arguments.values;
                found.sort_by_key(|method| misfits(method.signature.parameters(), values));
                return Ok(found.into_iter().next());
            }
            match self.behind(&value, at)? {
                Some(next) => value = next,
                None => break,
            }
        }
        Ok(None)
    }

    /// Returns the method of C++ that the arguments choose: among those of the class that the source states, or else of `own`,
    /// the whole object. A method of the whole object with the same parameters overrides a virtual one.
    fn overload(
        &self,
        (stated, own): (Vec<Method>, Vec<Method>),
        (whole, value): (&Value, &Value),
        name: &str,
        arguments: Arguments<'_>,
    ) -> Answer<Method> {
        let is_const = value.ty.is_const();
        let Arguments {
            written,
            values,
            at,
        } = arguments;
        let wanted = Wanted::new(name, (written, values), Some(is_const), at);
        if stated.is_empty() {
            return chosen(&wanted, &own);
        }
        let first = match chosen(&wanted, &stated) {
            Ok(first) => first,
            // A function that the class only declares, as a pure virtual one, has no code of its own.
            Err(why) => {
                let hidden = own.into_iter().filter(|one| is_hidden(one, &stated));
                let all: Vec<Method> = hidden.chain(stated.iter().cloned()).collect();
                return chosen(&wanted, &all).map_err(|_| why);
            }
        };
        let mut more = own.into_iter();
        let better = more.find(|one| is_hidden(one, &stated) && is_preferred(&wanted, one, &first));
        if let Some(better) = better {
            let all = [&first.signature, &better.signature];
            let why = format!("the class of the object has a better {name} than its type");
            let error = wanted.refused(&why, &all);
            let way = format!(
                "convert the object to {}, or the arguments",
                better.class.name()
            );
            return Err(error.with_hint(way));
        }
        if !self.is_virtual(&first) {
            return Ok(first);
        }
        let list = first.signature.list();
        let mut overriding = self.all_methods_of(whole, name, at)?.into_iter();
        let found = overriding.find(|one| one.signature.list() == list);
        Ok(found.unwrap_or(first))
    }

    fn is_virtual(&self, method: &Method) -> bool {
        let entry = method.function.as_address().ok();
        let mapped = entry.and_then(|entry| Some((entry, self.look.space.at(entry)?)));
        mapped.is_some_and(|(entry, mapped)| is_virtual(&mapped.module, mapped.svma(entry)))
    }

    /// Returns the object whose methods are searched, and for which name. A qualified name, `Base::f`, means the function
    /// of that class, even if it is virtual.
    fn called_on<'n>(&self, value: &Value, name: &'n str, at: Span) -> Answer<(Value, &'n str)> {
        let is_class = matches!(value.kind(), TypeKind::Struct | TypeKind::Class);
        let found = match is_class {
            true => find_qualifier(&value.ty, name).map_err(ValueError::Ambiguous),
            false => Ok(None),
        };
        let Some((path, last)) = found.map_err(|error| EvalError::of_value(at, &error))? else {
            let own = self.own_class(value).unwrap_or_else(|| value.clone());
            return Ok((own, name));
        };
        let mut part = value.clone();
        for base in &path {
            let next = inside::member_value(&part, base, &self.look);
            part = next.map_err(|error| self.unusable(&part, error, at))?;
        }
        Ok((part, last))
    }

    /// Returns the methods of a value's type, or else of its base classes.
    fn methods_of(&self, value: &Value, name: &str, at: Span) -> Answer<Vec<Method>> {
        self.methods_up(value, name, at, |found| !found.is_empty())
    }

    /// Returns the methods of a value's type and of all its base classes, from the class upwards.
    fn all_methods_of(&self, value: &Value, name: &str, at: Span) -> Answer<Vec<Method>> {
        self.methods_up(value, name, at, |_| false)
    }

    /// Collects methods from the class upwards, until they are enough.
    fn methods_up(
        &self,
        value: &Value,
        name: &str,
        at: Span,
        is_enough: fn(&[Method]) -> bool,
    ) -> Answer<Vec<Method>> {
        let mut level = vec![value.clone()];
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        for _ in 0..MAX_STEPS {
            for part in &level {
                for (function, signature) in self.functions_on(&part.ty, name) {
                    // Several modules may have the same one, and several paths lead to a virtual base class.
                    if !seen.insert((part.ty.strip().own_name(), signature.list())) {
                        continue;
                    }
                    let first = signature.parameters.iter().flatten().next();
                    found.push(Method {
                        object: receiver(part, first, name, at)?,
                        function,
                        class: part.ty.clone(),
                        signature,
                    });
                }
            }
            level = level.iter().flat_map(|part| self.bases(part)).collect();
            if is_enough(&found) || level.is_empty() {
                break;
            }
        }
        Ok(found)
    }

    fn bases(&self, value: &Value) -> Vec<Value> {
        let members = value.ty.strip().members();
        let bases = members
            .iter()
            .filter(|member| matches!(member.role, Role::Base | Role::VirtualBase));
        bases
            .filter_map(|base| inside::member_value(value, base, &self.look).ok())
            .collect()
    }

    /// Returns the functions called `name` whose first parameter is a `ty`, or a pointer or reference to one.
    fn functions_on(&self, ty: &Type, name: &str) -> Vec<(Value, Signature)> {
        let Some(wanted) = ty.strip().own_name() else {
            return Vec::new();
        };
        let modules = self.look.space.modules().iter();
        let candidates = modules.flat_map(|mapped| {
            let functions = mapped.module.functions().list.iter();
            functions
                .filter(|function| is_called(&function.name, name))
                .map(move |function| (mapped, function))
        });
        let found = candidates
            .take(MAX_CANDIDATES)
            .filter_map(|(mapped, function)| {
                let ty = function_type(&mapped.module, function.svma)?;
                let parameters = ty.parameters();
                let first = parameters.first()?.strip();
                let object = match first.kind() {
                    TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference => {
                        first.target()?.strip()
                    }
                    _ => first,
                };
                let is_its = object.own_name().as_deref() == Some(&wanted);
                let entry = mapped.address(function.svma);
                let callable = pointer_value(ty.pointer(), entry, Certainty::Known);
                let signature = Signature {
                    name: function.name.clone(),
                    parameters: Some(parameters),
                    is_variadic: function.variadic,
                    is_of_template: !function.name.ends_with(name),
                    has_object: true,
                };
                is_its.then_some((callable, signature))
            });
        found.collect()
    }
}

/// Returns the argument for the object: the object itself, or its address.
fn receiver(object: &Value, parameter: Option<&Type>, name: &str, at: Span) -> Answer<Value> {
    let is_pointer = parameter.is_some_and(|ty| ty.strip().kind() == TypeKind::Pointer);
    if !is_pointer {
        return Ok(object.clone());
    }
    match object.address() {
        Some(address) => {
            let pointer = object.ty.pointer();
            Ok(pointer_value(pointer, address, object.certainty))
        }
        None => Err(EvalError::new(
            at,
            format!("{name} needs an object in memory, and this one is not there"),
        )),
    }
}

/// Returns whether the last component of a function's name is `name`, without template arguments.
fn is_called(function: &str, name: &str) -> bool {
    let Some(at) = function.rfind(&format!("::{name}")) else {
        return false;
    };
    let rest = &function[at + 2 + name.len()..];
    rest.is_empty() || rest.starts_with('<')
}

fn is_of_cpp(method: &Method) -> bool {
    method.class.strip().language() == Language::Cpp
}

/// Returns the method that a call chooses.
fn chosen(wanted: &Wanted<'_>, all: &[Method]) -> Answer<Method> {
    let signatures: Vec<&Signature> = all.iter().map(|one| &one.signature).collect();
    wanted.resolve(&signatures).map(|at| all[at].clone())
}

/// Returns whether the class that the source states has no such method: it is one of a class that is derived from it.
fn is_hidden(one: &Method, stated: &[Method]) -> bool {
    let list = one.signature.list();
    let is_above = |other: &Method| derives(&one.class, &other.class);
    stated
        .iter()
        .all(|other| is_above(other) && other.signature.list() != list)
}

fn is_preferred(wanted: &Wanted<'_>, one: &Method, first: &Method) -> bool {
    let chosen = wanted.resolve(&[&first.signature, &one.signature]);
    chosen.is_ok_and(|at| at == 1)
}

/// Returns how badly arguments fit parameters.
fn misfits(wanted: &[Type], arguments: &[Value]) -> usize {
    let is_float = |ty: &Type| ty.strip().kind() == TypeKind::Float;
    let other_kind = wanted
        .iter()
        .zip(arguments)
        .filter(|(parameter, argument)| is_float(parameter) != is_float(&argument.ty));
    wanted.len().abs_diff(arguments.len()) * 100 + other_kind.count()
}

#[cfg(test)]
mod tests {
    use super::is_called;

    #[test]
    fn a_method_is_known_by_the_last_part_of_its_name() {
        assert!(is_called("audio::Filter::scale", "scale"));
        assert!(is_called("Box<ns::A>::get<int>", "get"));
        assert!(is_called("<looked_at::Point>::work", "work"));
        assert!(!is_called("audio::Filter::rescale", "scale"));
        assert!(!is_called("audio::Filter::scaled", "scale"));
        assert!(!is_called("scale", "scale"));
    }
}
