//! Variables and expressions, as they go over the wire.

use debuginfo::location::FrameContext;
use debuginfo::scope::variables_at;
use debuginfo::types::{Type, TypeKind};
use debuginfo::value::{Look, Value, ValueError};
use debuginfo::{AddressSpace, Certainty, Machine, at_frame};
use expr::{Calls, Context, EvalError, Expr, ParseError};
use serde::{Deserialize, Serialize};
use values::{Format, RenderOptions, Write, render_certain, render_with};

use super::View;
use crate::protocol::{Code, ExpressionFault, Failure};

/// How values are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueFormat {
    /// As the type suggests.
    #[default]
    Natural,
    /// Numbers in base 16.
    Hex,
    /// Numbers in base 10.
    Decimal,
    /// Numbers in base 10, their bits taken as unsigned.
    Unsigned,
    /// Numbers in base 8.
    Octal,
    /// Numbers in base 2.
    Binary,
    /// Numbers as characters.
    Char,
    /// As an address with its symbol.
    Address,
}

/// A value as text, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Why it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// The event that showed it, if it may have changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<u64>,
    /// Its address, if it is in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariableReport {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its value.
    #[serde(flatten)]
    pub shown: Shown,
    /// It is a parameter.
    pub is_parameter: bool,
    /// One of the same name further inside hides it.
    pub shadowed: bool,
    /// The line that declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// The value of an expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueReport {
    /// The expression.
    pub expression: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its value.
    #[serde(flatten)]
    pub shown: Shown,
    /// What to know of it besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Shown {
    /// Returns the value, or in angle brackets why it is not known.
    #[must_use]
    pub fn text(&self) -> String {
        match (&self.value, &self.unknown) {
            (Some(value), _) => value.clone(),
            (None, Some(unknown)) => format!("<{unknown}>"),
            (None, None) => "<not known>".to_owned(),
        }
    }
}

/// An assignment, ready to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The value before, as text.
    pub previous: String,
    /// What to write, in order.
    pub writes: Vec<Write>,
}

/// Splits `target = value`; `None` for any other expression.
#[must_use]
pub fn as_assignment(text: &str) -> Option<(String, String)> {
    if expr::parse(text).is_ok() {
        return None;
    }
    let assignment = expr::parse_assignment(text).ok()?;
    Some((assignment.place.to_string(), assignment.value.to_string()))
}

/// Returns the variables in scope, the innermost scope's first; none where nothing describes the code.
///
/// # Errors
/// [`Code::NotStopped`]: there is no frame.
pub fn variables(view: &View<'_>, format: ValueFormat) -> Result<Vec<VariableReport>, Failure> {
    let frame = view.frame()?;
    if !frame.pc_is_known {
        let name = frame.function.as_deref().unwrap_or("its function");
        return Err(Failure::new(
            Code::NotStopped,
            format!("where in {name} the thread was at this event is not known"),
        )
        .hint("go to the next event or the one before: step, or step back"));
    }
    // Its callers tell what arguments were, each by the one around it.
    let found = at_frame(view.space, view.machine, view.frames, view.frame, |site| {
        variables_in(site, format)
    });
    Ok(found.unwrap_or_default())
}

fn variables_in(site: &FrameContext<'_>, format: ValueFormat) -> Vec<VariableReport> {
    let look = Look {
        space: site.space,
        machine: site.machine,
    };
    let found = variables_at(site);
    found
        .into_iter()
        .map(|variable| {
            let value = variable.read(site);
            VariableReport {
                name: variable.name.clone(),
                type_name: value.ty.name(),
                shown: shown(&value, format, &look),
                is_parameter: variable.is_parameter,
                shadowed: variable.shadowed,
                line: variable.line,
            }
        })
        .collect()
}

/// Returns the value of an expression. Functions of the program are called through `calls`, if there is one.
///
/// # Errors
/// [`Code::EvalFailed`], with the position of the part that is concerned.
pub fn evaluate(
    view: &View<'_>,
    text: &str,
    format: ValueFormat,
    calls: Option<&dyn Calls>,
) -> Result<ValueReport, Failure> {
    let value = value(view, text, calls)?;
    Ok(ValueReport {
        expression: text.to_owned(),
        type_name: value.ty.name(),
        shown: shown(
            &value,
            format,
            &Look {
                space: view.space,
                machine: view.machine,
            },
        ),
        note: None,
    })
}

/// Returns the type of an expression, or the type that the text names.
///
/// # Errors
/// [`Code::EvalFailed`]: it is neither.
pub fn type_of(view: &View<'_>, text: &str) -> Result<Type, Failure> {
    match value(view, text, None) {
        Ok(value) => Ok(value.ty.clone()),
        Err(failure) => expr::find_type(text, &context(view, None)).ok_or(failure),
    }
}

/// Tells whether an expression means nothing in the frame, whichever values there are.
#[must_use]
pub fn is_meaningless(view: &View<'_>, text: &str) -> bool {
    let context = context(view, None);
    let Ok(expression) = parsed(text, &context) else {
        return false;
    };
    expr::evaluate(&expression, &context).is_err_and(|error| error.is_meaningless)
}

/// A value that lies in memory.
#[derive(Clone, Debug)]
pub struct MemoryPlace {
    /// Its first byte.
    pub address: u64,
    /// How many bytes it has.
    pub len: u64,
    /// Its type.
    pub ty: Type,
}

/// Returns where the value of an expression lies in memory.
///
/// # Errors
/// [`Code::EvalFailed`]: also if it lies nowhere.
pub fn evaluate_place(view: &View<'_>, text: &str) -> Result<MemoryPlace, Failure> {
    let value = value(view, text, None)?;
    if value.bits.is_some() {
        let message = format!("{text} is a bit field, and only whole bytes have an address");
        return Err(Failure::new(Code::EvalFailed, message).hint("name the structure around it"));
    }
    match (value.address(), value.ty.size()) {
        (Some(address), Some(len)) => Ok(MemoryPlace {
            address,
            len,
            ty: value.ty.clone(),
        }),
        (None, _) if value.is_optimized_out() => Err(Failure::new(
            Code::EvalFailed,
            format!("Variable '{text}' is optimized out at this PC. Recompile with -O0."),
        )),
        (None, _) => Err(Failure::new(
            Code::EvalFailed,
            format!("{text} does not lie in memory"),
        )),
        (Some(_), None) => Err(Failure::new(
            Code::EvalFailed,
            format!("the size of {text} is not known"),
        )),
    }
}

/// Writes bytes as a value of a type, as `print` would.
#[must_use]
pub fn bytes_text(space: &AddressSpace, machine: &dyn Machine, ty: &Type, bytes: &[u8]) -> String {
    let value = Value::constant(ty.clone(), bytes.to_vec());
    shown(&value, ValueFormat::Natural, &Look { space, machine }).text()
}

/// Returns the address that an expression means: the value of a pointer or number, the place of an array or function.
///
/// # Errors
/// [`Code::EvalFailed`].
pub fn evaluate_address(view: &View<'_>, text: &str) -> Result<u64, Failure> {
    let value = value(view, text, None)?;
    let by_place = matches!(value.kind(), TypeKind::Array | TypeKind::Function);
    let address = match value.address() {
        Some(address) if by_place => Ok(address),
        Some(_) => value.as_address(),
        // Numbers that lie nowhere in memory are meant as addresses: registers, and what is computed of them.
        None => value
            .as_address()
            .or_else(|error| match value.as_integer() {
                Ok(number) => u64::try_from(number).map_err(|_| error),
                Err(unknown @ ValueError::Unknown(_)) => Err(unknown),
                Err(_) => Err(error),
            }),
    };
    address.map_err(|error| {
        Failure::new(
            Code::EvalFailed,
            format!("{text} is not an address: {error}"),
        )
        .hint(format!("for its address, write &{text}"))
    })
}

/// Says what has to be written for `target` to become `text`.
///
/// # Errors
/// [`Code::EvalFailed`], [`Code::WriteFailed`], [`Code::NotStopped`] for a local of a program that runs.
pub fn assign(view: &View<'_>, target: &str, text: &str) -> Result<Change, Failure> {
    let context = context(view, None);
    let place = parsed(target, &context)?;
    let before = expr::evaluate(&place, &context).map_err(|error| of_eval(target, &error))?;
    let writes = expr::assign_value(&place, text, &context).map_err(|error| {
        let position = error.at.start;
        Failure::of(Code::WriteFailed, error).at(position)
    })?;
    let look = Look {
        space: view.space,
        machine: view.machine,
    };
    Ok(Change {
        previous: shown(&before, ValueFormat::Natural, &look).text(),
        writes,
    })
}

fn context<'a>(view: &View<'a>, calls: Option<&'a dyn Calls>) -> Context<'a> {
    // Where it is not known what a frame executes, its variables are not known either: only globals are.
    let is_known = view.frames.get(view.frame).is_some_and(|f| f.pc_is_known);
    Context {
        space: view.space,
        machine: view.machine,
        frames: if is_known { view.frames } else { &[] },
        index: if is_known { view.frame } else { 0 },
        calls,
    }
}

fn parsed(text: &str, context: &Context<'_>) -> Result<Expr, Failure> {
    let is_type = |name: &str| expr::is_type(name, context);
    expr::parse_with(text, &is_type)
        .map_err(|error| of_parse(Code::EvalFailed, "expression", text, &error))
}

fn value(view: &View<'_>, text: &str, calls: Option<&dyn Calls>) -> Result<Value, Failure> {
    let context = context(view, calls);
    let expression = parsed(text, &context)?;
    expr::evaluate(&expression, &context).map_err(|error| of_eval(text, &error))
}

pub(super) fn shown(value: &Value, format: ValueFormat, look: &Look<'_>) -> Shown {
    let options = RenderOptions {
        format: format.into(),
        ..RenderOptions::default()
    };
    let (_, certainty) = render_certain(value, &options, look);
    let (text, unknown) = match &value.bytes {
        Ok(_) => (Some(render_with(value, &options, look)), None),
        // What is in pieces may have members that are known.
        Err(_) if value.is_partly_known(look.machine) => {
            (Some(render_with(value, &options, look)), None)
        }
        Err(_) if value.is_optimized_out() => (None, Some("optimized out".to_owned())),
        Err(unknown) => (None, Some(unknown.to_string())),
    };
    Shown {
        value: text,
        unknown,
        stale_since: match certainty {
            Certainty::Known => None,
            Certainty::Stale { as_of } => Some(as_of),
        },
        address: value.address().map(|address| format!("{address:#x}")),
    }
}

impl From<ValueFormat> for Format {
    fn from(format: ValueFormat) -> Format {
        match format {
            ValueFormat::Natural => Format::Natural,
            ValueFormat::Hex => Format::Hex,
            ValueFormat::Decimal => Format::Decimal,
            ValueFormat::Unsigned => Format::Unsigned,
            ValueFormat::Octal => Format::Octal,
            ValueFormat::Binary => Format::Binary,
            ValueFormat::Char => Format::Char,
            ValueFormat::Address => Format::Address,
        }
    }
}

fn of_eval(text: &str, error: &EvalError) -> Failure {
    let failure = Failure::of(Code::EvalFailed, error.clone());
    Failure {
        expression: error.missing.map(ExpressionFault::Missing),
        ..failure.at(error.at.start.min(text.len()))
    }
}

pub(super) fn of_parse(code: Code, what: &str, text: &str, error: &ParseError) -> Failure {
    let failure = Failure {
        hint: error.hint.clone(),
        expression: Some(ExpressionFault::Unreadable),
        ..Failure::new(code, format!("the {what} \"{text}\": {error}")).at(error.position)
    };
    // What is left of p->x where the shell has taken the rest for the name of a file.
    match text.trim_end().ends_with('-') {
        true => failure.hint("in a shell, put an expression with > in quotes: 'p->x'"),
        false => failure,
    }
}
