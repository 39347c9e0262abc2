//! Variables and expressions, as they are on the wire.

use debuginfo::location::FrameContext;
use debuginfo::scope::{Variable, variables_at};
use debuginfo::types::{Type, TypeKind};
use debuginfo::value::{Look, Value};
use debuginfo::{AddressSpace, Certainty, Frame, Machine, at_frame};
use expr::{Calls, Context, EvalError, Expr, ExprKind, Kept, ParseError};
use serde::{Deserialize, Serialize};
use values::{Format, RenderOptions, Write, render_shortened};

use super::View;
use super::declared;
use super::near_names::with_near_global;
use super::place::MemoryPlace;
use crate::protocol::{Code, ExpressionFault, Failure};

/// How to write values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueFormat {
    /// The format that suits the type.
    #[default]
    Natural,
    /// Numbers in base 16.
    Hex,
    /// Numbers in base 16, with zeros up to the size of the type.
    Zeros,
    /// Numbers in base 10.
    Decimal,
    /// Numbers in base 10, their bits read as unsigned.
    Unsigned,
    /// Numbers in base 8.
    Octal,
    /// Numbers in base 2.
    Binary,
    /// Numbers as characters.
    Char,
    /// As an address with its symbol.
    Address,
    /// Their bits read as floating-point numbers.
    Float,
}

/// How much of a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// As much as of one among others.
    OneOfMany,
    /// As much as of one requested value.
    Asked,
    /// All.
    Full,
}

/// How values are written, and how much of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// How.
    pub format: ValueFormat,
    /// How much.
    pub extent: Extent,
}

impl Manner {
    /// Returns the manner of one value of many; all of it if `is_full`.
    #[must_use]
    pub fn of_many(is_full: bool) -> Manner {
        Manner {
            format: ValueFormat::Natural,
            extent: if is_full {
                Extent::Full
            } else {
                Extent::OneOfMany
            },
        }
    }

    /// Returns the manner of a requested value; all of it if `is_full`.
    #[must_use]
    pub fn of_one(is_full: bool) -> Manner {
        Manner {
            format: ValueFormat::Natural,
            extent: if is_full { Extent::Full } else { Extent::Asked },
        }
    }

    /// Returns the same in another format.
    #[must_use]
    pub fn in_format(self, format: ValueFormat) -> Manner {
        Manner { format, ..self }
    }

    /// Returns the same for the crate `values`.
    pub(crate) fn options(self) -> RenderOptions {
        let options = match self.extent {
            Extent::OneOfMany => RenderOptions::one_of_many(),
            Extent::Asked => RenderOptions::asked_for(),
            Extent::Full => RenderOptions::full(),
        };
        RenderOptions {
            format: self.format.into(),
            ..options
        }
    }
}

/// A value as text, or the reason why there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Why the value is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// The event that showed the value, if it may have changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<u64>,
    /// Its address, if it is in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Some members are not known: the text says which. Not on the wire.
    #[serde(skip)]
    pub is_partial: bool,
    /// The text leaves something out: the expression that shows the first such part, or a part around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
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
    /// The variable is a parameter.
    pub is_parameter: bool,
    /// A variable of the same name in an inner scope hides it.
    pub shadowed: bool,
    /// The line that declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The value is the one that the parameter had at the entry of its function: the present one is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_entry: bool,
    /// It is optimized out at this place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optimized_out: bool,
}

/// The variables of a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameVariables {
    /// The frame, counted from 0 for the innermost.
    pub frame: usize,
    /// Its function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The variables, innermost scope first.
    pub variables: Vec<VariableReport>,
}

/// The value of an expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueReport {
    /// The expression.
    pub expression: String,
    /// The number under which the session keeps the value: 1 is `$1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its value.
    #[serde(flatten)]
    pub shown: Shown,
    /// A remark on the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl ValueReport {
    /// Returns the type's name without the paths and default arguments of standard libraries.
    #[must_use]
    pub fn short_type(&self) -> String {
        debuginfo::short_name(&self.type_name)
    }
}

impl Shown {
    /// Returns the value, or the reason why it is not known in angle brackets.
    #[must_use]
    pub fn text(&self) -> String {
        match (&self.value, &self.unknown) {
            (Some(value), _) => value.clone(),
            (None, Some(unknown)) => format!("<{unknown}>"),
            (None, None) => "<not known>".to_owned(),
        }
    }
}

impl VariableReport {
    /// Returns the expression for the omitted part of the value, if any; empty if none names it.
    #[must_use]
    pub fn left_out(&self) -> Option<&str> {
        let left_out = self.shown.left_out.as_deref()?;
        Some(match self.shadowed || self.at_entry {
            true => "",
            false => left_out,
        })
    }

    /// Returns the name to show; `NAME@entry`, as in gdb, for a value of the entry.
    #[must_use]
    pub fn shown_name(&self) -> String {
        let entry = if self.at_entry { "@entry" } else { "" };
        format!("{}{entry}", self.name)
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
    let place = &assignment.place;
    let target = match &place.kind {
        // As the user wrote it.
        ExprKind::Name(_) => text.get(place.at.start..place.at.end)?.to_owned(),
        _ => place.to_string(),
    };
    Some((target, assignment.value.to_string()))
}

/// Returns the bytes of an expression's value as one of a type, by the conversions that C makes for `return`.
///
/// # Errors
/// [`Code::EvalFailed`], with the position of the failing part.
pub fn bytes_as(view: &View<'_>, text: &str, ty: &Type) -> Result<Vec<u8>, Failure> {
    let context = context(view, None);
    let expression = parsed(text, &context)?;
    let bytes = expr::bytes_as(&expression, ty, &context);
    bytes.map_err(|error| with_near_global(view, text, &error))
}

/// Returns the variables in scope, innermost scope first; empty if nothing describes the code.
///
/// # Errors
/// [`Code::NotStopped`]: there is no frame.
pub fn variables(view: &View<'_>, manner: Manner) -> Result<Vec<VariableReport>, Failure> {
    let found = chosen(view, manner, |_| true)?;
    Ok(with_entries(view, manner, found))
}

/// As [`variables`], for the parameters alone.
///
/// # Errors
/// As there.
pub fn arguments(view: &View<'_>, manner: Manner) -> Result<Vec<VariableReport>, Failure> {
    match chosen(view, manner, is_parameter) {
        Ok(found) => Ok(with_entries(view, manner, found)),
        // Where in its function the thread was is not known.
        Err(why) => match at_entry(view, manner) {
            known if known.is_empty() => Err(why),
            known => Ok(known),
        },
    }
}

fn is_parameter(variable: &Variable) -> bool {
    variable.is_parameter
}

/// Returns what the parameter `name` of the selected frame was at the entry of its function, if that is recorded.
#[must_use]
pub fn parameter_at_entry(view: &View<'_>, name: &str, manner: Manner) -> Option<VariableReport> {
    let mut known = at_entry(view, manner).into_iter();
    known.find(|parameter| parameter.name == name)
}

/// Returns the parameters whose values at the entry of the frame's function are recorded.
fn at_entry(view: &View<'_>, manner: Manner) -> Vec<VariableReport> {
    let mut found = Vec::new();
    if let Some(recorded) = view.recorded {
        let mut ask = |then: &View<'_>| {
            found = chosen(then, manner, is_parameter).unwrap_or_default();
        };
        // An argument that cannot be read stays unknown.
        _ = recorded.at_entry(view.frame, &mut ask);
    }
    found.retain(|parameter| parameter.shown.value.is_some());
    for parameter in &mut found {
        parameter.at_entry = true;
    }
    found
}

/// Replaces parameters that are not known by what they were at the entry of the frame's function.
fn with_entries(
    view: &View<'_>,
    manner: Manner,
    mut variables: Vec<VariableReport>,
) -> Vec<VariableReport> {
    let is_unknown =
        |variable: &VariableReport| variable.is_parameter && variable.shown.value.is_none();
    if !variables.iter().any(is_unknown) {
        return variables;
    }
    let known = at_entry(view, manner);
    for variable in variables.iter_mut().filter(|variable| is_unknown(variable)) {
        if let Some(then) = known.iter().find(|then| then.name == variable.name) {
            variable.shown = then.shown.clone();
            variable.at_entry = true;
            variable.optimized_out = false;
        }
    }
    variables
}

fn chosen(
    view: &View<'_>,
    manner: Manner,
    wanted: fn(&Variable) -> bool,
) -> Result<Vec<VariableReport>, Failure> {
    let frame = view.frame()?;
    if !frame.pc_is_known {
        let name = frame.function.as_deref().unwrap_or("its function");
        return Err(Failure::new(
            Code::NotStopped,
            format!("where in {name} the thread was at this event is not known"),
        )
        .hint("go to the next event or the one before: step, or step back"));
    }
    // The value of an argument may be known from its caller, whose own values may be known from the next caller.
    let found = at_frame(view.space, view.machine, view.frames, view.frame, |site| {
        variables_in(site, manner, wanted)
    });
    let found = found.unwrap_or_default();
    Ok(match found.is_empty() {
        true => declared::parameters(view, manner),
        false => found,
    })
}

/// Returns the variables of the first frame of the program's own code, if the innermost frame is selected and is one of
/// a library.
#[must_use]
pub fn own_variables(view: &View<'_>, manner: Manner) -> Option<FrameVariables> {
    let innermost = view.frames.first().filter(|_| view.frame == 0)?;
    if view.space.is_own_code(innermost) {
        return None;
    }
    // Start-up code is in the program's file, and is nobody's own.
    let is_own = |frame: &Frame| {
        let is_start = frame.function.as_deref() == Some("_start");
        frame.pc_is_known && view.space.is_own_code(frame) && !is_start
    };
    let frame = view.frames.iter().position(is_own)?;
    Some(FrameVariables {
        frame,
        function: view.frames[frame].function.clone(),
        variables: variables(&view.at_frame(frame), manner).ok()?,
    })
}

fn variables_in(
    site: &FrameContext<'_>,
    manner: Manner,
    wanted: fn(&Variable) -> bool,
) -> Vec<VariableReport> {
    let look = Look {
        space: site.space,
        machine: site.machine,
    };
    let found = variables_at(site);
    found
        .into_iter()
        .filter(wanted)
        .map(|variable| {
            let value = variable.read(site);
            VariableReport {
                name: variable.name.clone(),
                type_name: value.ty.name(),
                shown: shown(&value, &variable.name, manner, &look),
                is_parameter: variable.is_parameter,
                shadowed: variable.shadowed,
                line: variable.line,
                at_entry: false,
                optimized_out: value.is_optimized_out(),
            }
        })
        .collect()
}

/// Returns the value of an expression. Functions of the program are called through `calls`, if given.
///
/// # Errors
/// [`Code::EvalFailed`], with the position of the failing part.
pub fn evaluate(
    view: &View<'_>,
    text: &str,
    manner: Manner,
    calls: Option<&dyn Calls>,
) -> Result<ValueReport, Failure> {
    let value = value(view, text, calls)?;
    Ok(report(view, text, manner, &value))
}

/// As [`evaluate`]; the session keeps the value and numbers it. A value that is not known takes no number, but one that is
/// optimized out does, as in gdb.
///
/// # Errors
/// As there.
pub fn evaluate_and_keep(
    view: &View<'_>,
    text: &str,
    manner: Manner,
    calls: Option<&dyn Calls>,
) -> Result<ValueReport, Failure> {
    let value = value(view, text, calls)?;
    let mut report = report(view, text, manner, &value);
    // What a call returns without a value is not kept.
    let is_nothing = calls.is_some() && value.kind() == TypeKind::Void;
    let is_shown = report.shown.value.is_some() || value.is_optimized_out();
    report.number = (is_shown && !is_nothing).then(|| view.kept.show(&value));
    Ok(report)
}

/// Returns the name of the variable that the session keeps, if `target` is one: `$name`.
#[must_use]
pub fn kept_name(target: &str) -> Option<&str> {
    let name = target.trim().strip_prefix('$')?;
    Kept::can_set(name).then_some(name)
}

/// Sets a variable that the session keeps to the value of `text`. Returns its value before, if it had one.
///
/// # Errors
/// [`Code::EvalFailed`], with the position of the failing part.
pub fn keep(
    view: &View<'_>,
    name: &str,
    text: &str,
    calls: Option<&dyn Calls>,
) -> Result<Option<Shown>, Failure> {
    let set = value(view, text, calls)?;
    let look = Look {
        space: view.space,
        machine: view.machine,
    };
    let before = view.kept.find(name).ok();
    let before = before.map(|value| shown(&value, name, Manner::of_many(false), &look));
    view.kept.set(name, &set);
    Ok(before)
}

fn report(view: &View<'_>, text: &str, manner: Manner, value: &Value) -> ValueReport {
    let look = Look {
        space: view.space,
        machine: view.machine,
    };
    let mut shown = shown(value, text, manner, &look);
    if manner.format == ValueFormat::Natural && OF_ADDRESSES.contains(&text.trim()) {
        shown.value = shown.value.map(|number| as_address(view.space, &number));
    }
    ValueReport {
        expression: text.to_owned(),
        number: None,
        type_name: value.ty.name(),
        shown,
        note: None,
    }
}

/// Registers that hold addresses.
const OF_ADDRESSES: [&str; 6] = ["$pc", "$rip", "$sp", "$rsp", "$fp", "$rbp"];

/// Writes the number that a text begins with as an address, with the symbol of code that it is in.
fn as_address(space: &AddressSpace, text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    let Ok(address) = number.parse::<u64>() else {
        return text.to_owned();
    };
    let symbol = match space.symbol_at(address) {
        None => String::new(),
        Some((name, start)) if start == address => format!(" <{name}>"),
        Some((name, start)) => format!(" <{name}+{}>", address.wrapping_sub(start)),
    };
    format!("{address:#x}{symbol}{rest}")
}

/// Returns the value of an expression itself, without calls of functions.
///
/// # Errors
/// [`Code::EvalFailed`], with the position of the failing part.
pub fn value_of(view: &View<'_>, text: &str) -> Result<Value, Failure> {
    value(view, text, None)
}

/// Returns whether an expression has no meaning in the frame, for any values.
#[must_use]
pub fn is_meaningless(view: &View<'_>, text: &str) -> bool {
    let context = context(view, None);
    let Ok(expression) = parsed(text, &context) else {
        return false;
    };
    expr::evaluate(&expression, &context).is_err_and(|error| error.is_meaningless)
}

/// Returns a remark on an expression that names variables which other source files than the frame's have for themselves.
#[must_use]
pub fn of_other_files(view: &View<'_>, text: &str) -> Option<String> {
    let context = context(view, None);
    if context.frames.is_empty() {
        return None;
    }
    let expression = parsed(text, &context).ok()?;
    let found = expr::private_elsewhere(&expression, &context).into_iter();
    let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let mut told: Vec<String> = found
        .map(|(name, file)| format!("{name} is private to {}", last(&file)))
        .collect();
    told.dedup();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Formats bytes as a value of a type, like `print`.
#[must_use]
pub fn bytes_text(space: &AddressSpace, machine: &dyn Machine, ty: &Type, bytes: &[u8]) -> String {
    let value = Value::constant(ty.clone(), bytes.to_vec());
    let look = Look { space, machine };
    shown(&value, "", Manner::of_many(false), &look).text()
}

/// Formats the bytes at a place as its value.
#[must_use]
pub fn place_text(view: &View<'_>, place: &MemoryPlace, bytes: &[u8]) -> String {
    let value = Value {
        bits: place.bits,
        ..Value::constant(place.ty.clone(), bytes.to_vec())
    };
    let look = Look {
        space: view.space,
        machine: view.machine,
    };
    shown(&value, "", Manner::of_many(false), &look).text()
}

/// Returns the writes that set `target` to `text`.
///
/// # Errors
/// [`Code::EvalFailed`], [`Code::WriteFailed`], or [`Code::NotStopped`] for a local of a running program.
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
        previous: shown(&before, target, Manner::of_many(false), &look).text(),
        writes,
    })
}

pub(crate) fn context<'a>(view: &View<'a>, calls: Option<&'a dyn Calls>) -> Context<'a> {
    // Where the frame's position is not known, its variables are not known either; globals are, and what is qualified
    // with the function of another frame.
    let is_known = view.frames.get(view.frame).is_some_and(|f| f.pc_is_known);
    let none = view.frames.len();
    Context {
        space: view.space,
        machine: view.machine,
        frames: view.frames,
        index: if is_known { view.frame } else { none },
        calls,
        kept: Some(view.kept),
    }
}

pub(super) fn parsed(text: &str, context: &Context<'_>) -> Result<Expr, Failure> {
    let is_type = |name: &str| expr::is_type(name, context);
    expr::parse_with(text, &is_type)
        .map_err(|error| of_parse(Code::EvalFailed, "expression", text, &error))
}

fn value(view: &View<'_>, text: &str, calls: Option<&dyn Calls>) -> Result<Value, Failure> {
    let context = context(view, calls);
    let expression = parsed(text, &context)?;
    let value = expr::evaluate(&expression, &context);
    value.map_err(|error| with_near_global(view, text, &error))
}

/// Writes the value of an expression.
pub(super) fn shown(value: &Value, expression: &str, manner: Manner, look: &Look<'_>) -> Shown {
    let rendered = render_shortened(value, &manner.options(), look);
    let (text, unknown) = match &value.bytes {
        Ok(_) => (Some(rendered.with_age(value, look)), None),
        // A value in pieces may have known members.
        Err(_) if value.is_partly_known(look.machine) => {
            (Some(rendered.with_age(value, look)), None)
        }
        Err(_) if value.is_optimized_out() => (None, Some("optimized out".to_owned())),
        Err(unknown) => (None, Some(unknown.to_string())),
    };
    let left_out = rendered.left_out.filter(|_| text.is_some());
    Shown {
        is_partial: text.is_some() && value.bytes.is_err(),
        value: text,
        unknown,
        left_out: left_out.map(|inside| inner(expression, &inside)),
        stale_since: match rendered.certainty {
            Certainty::Known => None,
            Certainty::Stale { as_of } => Some(as_of),
        },
        address: value.address().map(|address| format!("{address:#x}")),
    }
}

/// Returns the expression of a part of the value of an expression.
fn inner(expression: &str, inside: &str) -> String {
    let is_simple = |c: char| c.is_alphanumeric() || "_.:[]$".contains(c);
    match inside.is_empty() || expression.chars().all(is_simple) {
        true => format!("{expression}{inside}"),
        false => format!("({expression}){inside}"),
    }
}

impl From<ValueFormat> for Format {
    fn from(format: ValueFormat) -> Format {
        match format {
            ValueFormat::Natural => Format::Natural,
            ValueFormat::Hex => Format::Hex,
            ValueFormat::Zeros => Format::Zeros,
            ValueFormat::Decimal => Format::Decimal,
            ValueFormat::Unsigned => Format::Unsigned,
            ValueFormat::Octal => Format::Octal,
            ValueFormat::Binary => Format::Binary,
            ValueFormat::Char => Format::Char,
            ValueFormat::Address => Format::Address,
            ValueFormat::Float => Format::Float,
        }
    }
}

pub(super) fn of_eval(text: &str, error: &EvalError) -> Failure {
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
    // A shell takes the `>` of p->x as a redirection, which leaves only `p-`.
    match text.trim_end().ends_with('-') {
        true => failure.hint("in a shell, put an expression with > in quotes: 'p->x'"),
        false => failure,
    }
}
