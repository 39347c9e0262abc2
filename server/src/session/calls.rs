//! Calls of the program's functions from expressions. Follows the System V ABI for values that fit registers.

use std::time::Duration;

use debuginfo::prototypes::prototype;
use debuginfo::types::{Language, Type, TypeKind};
use debuginfo::value::{Value, ValueError};
use debuginfo::{Diagnostic, Param, ParameterPlace, ValueKind};
use expr::{Callee, Calls};
use recorder::live::{Call, Live, Returned, Tid};

use crate::inspect::type_of_kind as type_of;

/// A thread that can be made to call functions.
pub trait Caller {
    /// Calls `name`. `points` is set if the result is a pointer.
    ///
    /// # Errors
    /// The function was not called, or did not return.
    fn call(&self, name: &str, call: Call, points: bool) -> Result<Returned, Diagnostic>;
}

/// A stopped thread of a program under control.
pub struct StoppedThread<'a> {
    /// The program.
    pub live: &'a Live,
    /// The thread.
    pub tid: Tid,
}

impl Caller for StoppedThread<'_> {
    fn call(&self, name: &str, call: Call, _: bool) -> Result<Returned, Diagnostic> {
        let returned = self.live.call(self.tid, call);
        returned.map_err(|error| Diagnostic {
            message: format!("the call of {name} failed: {error}"),
            hint: error.hint(),
        })
    }
}

/// Calls functions that expressions name.
pub struct ProgramCalls<'a> {
    /// The thread that calls them.
    pub caller: &'a dyn Caller,
    /// How long a function may take.
    pub timeout: Duration,
    /// Receives what is worth knowing about a call.
    pub tell: &'a dyn Fn(String),
}

impl Calls for ProgramCalls<'_> {
    fn call(&self, callee: &Callee<'_>, arguments: &[Value]) -> Result<Value, Diagnostic> {
        let (name, function) = (callee.name, callee.function);
        let described = function_type(function).map(|ty| (ty.parameters(), ty.target()));
        let (parameters, returns) = match described {
            Some((parameters, returns)) if !is_of_assembler(&parameters, returns.as_ref()) => {
                (parameters, returns)
            }
            described => by_prototype(name, function)
                .or(described)
                .ok_or_else(|| format!("{name} is not a function, nor a pointer to one"))?,
        };
        let address = match function.kind() {
            TypeKind::Function => function.address(),
            _ => function.as_address().ok(),
        };
        let address = address.ok_or_else(|| format!("the address of {name} is not known"))?;
        let wanted = Wanted::of(callee, &parameters);
        let given = registers(&wanted, arguments)?;
        check_return(name, returns.as_ref())?;
        let call = Call {
            function: address,
            integers: given.integers,
            floats: given.floats,
            texts: given.texts,
            timeout: self.timeout,
        };
        let points = returns
            .as_ref()
            .is_some_and(|ty| ty.strip().kind() == TypeKind::Pointer);
        let returned = self.caller.call(name, call, points)?;
        value(returns, &returned)
    }

    fn found_in(&self, function: &str, file: &str) {
        (self.tell)(format!("{function} is a function of {file}"));
    }
}

/// Tells whether debug information names a function without describing it, as that of assembler does: no parameters, and a
/// return type without a size.
fn is_of_assembler(parameters: &[Type], returns: Option<&Type>) -> bool {
    parameters.is_empty() && returns.is_some_and(|ty| ty.strip().kind() == TypeKind::Unspecified)
}

/// What the headers of the C library say of a function that debug information does not describe: its parameters, and what it returns.
fn by_prototype(name: &str, function: &Value) -> Option<(Vec<Type>, Option<Type>)> {
    let is_untyped = |ty: Type| ty.strip().kind() == TypeKind::Void;
    let is_described = function_type(function).is_some();
    if !is_described && !function.ty.strip().target().is_some_and(is_untyped) {
        return None;
    }
    let known = prototype(name.rsplit("::").next()?)?;
    let params = known.params.iter().map(|param| type_of(&param.kind));
    let params: Vec<Type> = params.collect::<Option<_>>()?;
    Some((params, Some(type_of(&known.ret)?)))
}

fn function_type(function: &Value) -> Option<Type> {
    let ty = function.ty.strip();
    match ty.kind() {
        TypeKind::Function => Some(ty),
        TypeKind::Pointer => ty
            .target()
            .map(|target| target.strip())
            .filter(|target| target.kind() == TypeKind::Function),
        _ => None,
    }
}

/// What a function takes.
struct Wanted<'a> {
    name: &'a str,
    parameters: &'a [Type],
    /// The same as its code takes them; empty if that is not known.
    taken: &'a [Param],
    /// It is of Fortran: most arguments are passed by their addresses.
    is_fortran: bool,
}

/// How an argument is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Value,
    /// A `float` as a `double` (C11, 6.5.2.2).
    Double,
    Address,
    Unknown,
}

impl<'a> Wanted<'a> {
    fn of(callee: &Callee<'a>, parameters: &'a [Type]) -> Wanted<'a> {
        let taken = callee.known.map_or(&[][..], |known| &known.params);
        let is_whole = taken.len() == parameters.len();
        let language = function_type(callee.function).map(|ty| ty.language());
        Wanted {
            name: callee.name,
            parameters,
            taken: if is_whole { taken } else { &[] },
            is_fortran: language == Some(Language::Fortran),
        }
    }

    fn manner(&self, index: usize) -> Manner {
        let is_typed = index < self.parameters.len();
        match self.taken.get(index) {
            Some(param) if self.is_fortran && param.indirect => Manner::Address,
            Some(param) if self.is_fortran && param.place == ParameterPlace::Unknown => {
                Manner::Unknown
            }
            None if self.is_fortran => Manner::Unknown,
            // The function has no prototype.
            Some(param) if param.kind == (ValueKind::Float { bytes: 8 }) => Manner::Double,
            None if !is_typed => Manner::Double,
            _ => Manner::Value,
        }
    }
}

/// Where the arguments of a call are.
#[derive(Debug, Default)]
struct Given {
    /// rdi and following.
    integers: Vec<u64>,
    /// xmm0 and following.
    floats: Vec<u64>,
    /// Texts that are not in memory yet, by the integer that will point to each.
    texts: Vec<(usize, Vec<u8>)>,
}

impl Given {
    /// An array is passed as its address, and so is what a reference leads to. A value of the expression itself, like `"text"`,
    /// gets an address for the call.
    fn array(&mut self, argument: &Value) -> Option<()> {
        let address = argument.address();
        if address.is_none() {
            let bytes = argument.known_bytes().ok()?.to_vec();
            self.texts.push((self.integers.len(), bytes));
        }
        self.integers.push(address.unwrap_or_default());
        Some(())
    }

    /// A variable of the wanted type is passed as its address. Another value is converted, and gets an address for the call.
    fn by_address(&mut self, wanted: &Type, argument: &Value) -> Result<(), ValueError> {
        let is_text = wanted.kind() == TypeKind::Array
            && wanted
                .element()
                .is_some_and(|of| matches!(of.strip().kind(), TypeKind::Char { .. }));
        let is_same = wanted.size().is_some() && argument.ty.strip().name() == wanted.name();
        let is_passed = is_same || is_text && argument.kind() == TypeKind::Array;
        match argument.address().filter(|_| is_passed) {
            Some(address) => self.integers.push(address),
            None => {
                let bytes = match is_passed {
                    true => argument.known_bytes()?.to_vec(),
                    false => values::encode_value(wanted, argument)?,
                };
                self.texts.push((self.integers.len(), bytes));
                self.integers.push(0);
            }
        }
        Ok(())
    }
}

/// Assigns arguments to registers.
fn registers(of: &Wanted<'_>, arguments: &[Value]) -> Result<Given, Diagnostic> {
    let (name, parameters) = (of.name, of.parameters);
    if arguments.len() < parameters.len() {
        return Err(expr::miscounted(name, parameters.len(), arguments.len()).into());
    }
    let mut given = Given::default();
    for (index, argument) in arguments.iter().enumerate() {
        let place = index + 1;
        let wanted = parameters
            .get(index)
            .map_or(argument.ty.strip(), Type::strip);
        let unusable = |error: &dyn std::fmt::Display| {
            Diagnostic::new(format!("argument {place} of {name}: {error}"))
        };
        let manner = of.manner(index);
        match wanted.kind() {
            _ if manner == Manner::Unknown => {
                let why = "whether the function takes it or its address is not known";
                return Err(unusable(&why));
            }
            _ if manner == Manner::Address => {
                let passed = given.by_address(&wanted, argument);
                passed.map_err(|error| unusable(&error))?;
            }
            TypeKind::Float => {
                let number = values::float(argument).map_err(|error| unusable(&error))?;
                given.floats.push(match wanted.size() {
                    Some(8) => number.to_bits(),
                    Some(4) if manner == Manner::Double => number.to_bits(),
                    Some(4) => u64::from((number as f32).to_bits()),
                    _ => return Err(unusable(&"a long double cannot be passed")),
                });
            }
            kind if kind == TypeKind::Array || argument.kind() == TypeKind::Array => {
                let passed = given.array(argument);
                passed.ok_or_else(|| unusable(&"it does not lie in memory"))?;
            }
            TypeKind::Reference | TypeKind::RvalueReference => {
                let passed = referred(&wanted, argument, &mut given);
                passed.ok_or_else(|| unusable(&"it does not lie in memory"))?;
            }
            kind if is_word(kind) => {
                let number = argument.as_integer().map_err(|error| unusable(&error))?;
                if wanted.size().is_some_and(|size| size > 8) {
                    return Err(unusable(&"it does not fit a register"));
                }
                given.integers.push(number as u64);
            }
            _ => {
                let why = format!("a value of type {} cannot be passed", wanted.name());
                return Err(unusable(&why).with_hint("pass its address"));
            }
        }
    }
    if given.integers.len() > 6 || given.floats.len() > 8 {
        let what = Diagnostic::new(format!("{name} would get arguments on the stack"));
        return Err(what.with_hint("at most 6 numbers and 8 floating-point numbers are passed"));
    }
    Ok(given)
}

/// Passes a reference to an argument. One that is not in memory is copied there, unless the function could change it.
fn referred(wanted: &Type, argument: &Value, given: &mut Given) -> Option<()> {
    let is_const = wanted.target().is_some_and(|target| target.is_const());
    let may_copy = is_const || wanted.kind() == TypeKind::RvalueReference;
    match argument.address() {
        None if !may_copy => None,
        _ => given.array(argument),
    }
}

fn is_word(kind: TypeKind) -> bool {
    matches!(
        kind,
        TypeKind::Integer { .. }
            | TypeKind::Bool
            | TypeKind::Char { .. }
            | TypeKind::Pointer
            | TypeKind::Enum
    )
}

/// Refuses a value returned in memory: there is no memory for the function to write to.
fn check_return(name: &str, ty: Option<&Type>) -> Result<(), Diagnostic> {
    let Some(ty) = ty else {
        return Ok(());
    };
    let stripped = ty.strip();
    let fits = match stripped.kind() {
        TypeKind::Void => true,
        TypeKind::Float => stripped.size().is_some_and(|size| size <= 8),
        TypeKind::Reference | TypeKind::RvalueReference => true,
        kind => is_word(kind) && stripped.size().is_some_and(|size| size <= 16),
    };
    match fits {
        true => Ok(()),
        false => {
            let what = Diagnostic::new(format!(
                "{name} returns {}, which is not fetched from registers",
                ty.name()
            ));
            Err(what.with_hint("call a function that returns a number or a pointer"))
        }
    }
}

/// Makes a value from the registers after the call.
fn value(ty: Option<Type>, returned: &Returned) -> Result<Value, Diagnostic> {
    let Some(ty) = ty else {
        let void = debuginfo::types::builtin("void").expect("a type of C");
        return Ok(Value::constant(void, Vec::new()));
    };
    let stripped = ty.strip();
    let mut bytes = match stripped.kind() {
        TypeKind::Float => returned.xmm0.to_le_bytes().to_vec(),
        _ => [returned.rax.to_le_bytes(), returned.rdx.to_le_bytes()].concat(),
    };
    let size = match stripped.kind() {
        TypeKind::Void => 0,
        TypeKind::Reference | TypeKind::RvalueReference => 8,
        _ => stripped.size().unwrap_or(8),
    };
    bytes.truncate(usize::try_from(size).unwrap_or(bytes.len()));
    Ok(Value::constant(ty, bytes))
}

#[cfg(test)]
mod tests {
    use debuginfo::types::builtin;

    use super::*;

    fn of_c(parameters: &[Type]) -> Wanted<'_> {
        Wanted {
            name: "f",
            parameters,
            taken: &[],
            is_fortran: false,
        }
    }

    #[test]
    fn a_float_without_a_parameter_is_passed_as_a_double() {
        let float = builtin("float").expect("a type of C");
        let argument = Value::constant(float.clone(), 2.5_f32.to_le_bytes().to_vec());
        let arguments = [argument.clone(), argument];
        let given = registers(&of_c(&[float]), &arguments).expect("they are passed");
        let single = u64::from(2.5_f32.to_bits());
        assert_eq!(given.floats, [single, 2.5_f64.to_bits()]);
    }

    #[test]
    fn a_short_without_a_parameter_keeps_its_sign() {
        let short = builtin("short").expect("a type of C");
        let argument = Value::constant(short, (-300_i16).to_le_bytes().to_vec());
        let given = registers(&of_c(&[]), &[argument]).expect("it is passed");
        assert_eq!(given.integers, [-300_i64 as u64]);
    }
}
