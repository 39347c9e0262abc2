//! Methods: functions whose first parameter is the object. They are found by the object's type and called by name
//! alone. A name may be qualified with a base class.
//!
//! The first parameter, not the name, determines the type of a method, in C++ and in Rust, because names are written in
//! too many ways. A virtual function is that of the object's own class, which its type_info names.

use crate::ast::{Expr, Span};
use crate::eval::calls::miscounted;
use crate::eval::operand::pointer_value;
use crate::eval::{Answer, EvalError, Evaluator};
use debuginfo::Certainty;
use debuginfo::scope::function_type;
use debuginfo::types::{Role, Type, TypeKind, find_qualifier};
use debuginfo::value::{Value, ValueError, inside};

/// Pointers, wrappers and base classes searched for a method, at most.
const MAX_STEPS: usize = 8;
/// Functions of one name whose parameters are examined, at most.
const MAX_CANDIDATES: usize = 4096;

/// A method with its object.
struct Method {
    /// The function, as a callable value.
    function: Value,
    /// Its first argument.
    object: Value,
    /// The types of all its parameters.
    parameters: Vec<Type>,
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
        let values: Answer<Vec<Value>> = arguments.iter().map(|a| self.value(a)).collect();
        let values = values?;
        let Some(method) = self.method(&object, name, &values, of.at)? else {
            return Ok(None);
        };
        let Some(calls) = self.context.calls else {
            let error = EvalError::new(at, format!("{name} cannot be called here"));
            return Err(
                error.with_hint("eval calls functions; everything else only looks at memory")
            );
        };
        let wanted = method.parameters.len().saturating_sub(1);
        if values.len() < wanted {
            return Err(EvalError::new(at, miscounted(name, wanted, values.len())));
        }
        let mut all = vec![method.object];
        all.extend(values);
        let result = calls.call(name, &method.function, &all);
        result.map(Some).map_err(|why| EvalError::new(at, why))
    }

    /// Finds the method that fits the arguments best: in the object's class, its bases, or the object it points to.
    fn method(
        &self,
        object: &Value,
        name: &str,
        arguments: &[Value],
        at: Span,
    ) -> Answer<Option<Method>> {
        let mut value = object.clone();
        for _ in 0..MAX_STEPS {
            let (object, name) = self.called_on(&value, name, at)?;
            let mut found = self.methods_of(&object, name, at)?;
            if !found.is_empty() {
                found.sort_by_key(|method| misfits(&method.parameters, arguments));
                return Ok(found.into_iter().next());
            }
            match self.behind(&value, at)? {
                Some(next) => value = next,
                None => break,
            }
        }
        Ok(None)
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
        let mut level = vec![value.clone()];
        for _ in 0..MAX_STEPS {
            let mut found = Vec::new();
            for part in &level {
                for (function, parameters) in self.functions_on(&part.ty, name) {
                    found.push(Method {
                        object: receiver(part, parameters.first(), name, at)?,
                        function,
                        parameters,
                    });
                }
            }
            level = level.iter().flat_map(|part| self.bases(part)).collect();
            if !found.is_empty() || level.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
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
    fn functions_on(&self, ty: &Type, name: &str) -> Vec<(Value, Vec<Type>)> {
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
                is_its.then_some((callable, parameters))
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

/// Returns how badly arguments fit parameters, excluding the object.
fn misfits(parameters: &[Type], arguments: &[Value]) -> usize {
    let wanted = parameters.get(1..).unwrap_or_default();
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
