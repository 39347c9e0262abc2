//! `info_scope`: the variables that are visible at a place in the program, whether or not a thread is there.

use debuginfo::scope::variables_at;
use debuginfo::{FrameContext, InnermostFrame, Wish, at_frame};
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, source};
use crate::inspect::{self, View};
use crate::location::{ParsedLocation, Target};
use crate::protocol::Failure;

/// The `info_scope` verb.
pub struct InfoScope;

/// The arguments of `info_scope`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InfoScopeArgs {
    /// The place.
    pub at: Target,
}

/// The reply of `info_scope`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoScopeReply {
    /// The place in the code, in hexadecimal.
    pub address: String,
    /// The variables of the blocks around it, the innermost block first.
    pub variables: Vec<ScopeLine>,
}

/// A variable that is visible at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeLine {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its size in bytes, if its type states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// It is a parameter.
    pub is_parameter: bool,
    /// The line that declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Verb for InfoScope {
    const NAME: &'static str = "info_scope";
    const DOC: &'static str = "List the variables that are visible at a place\n\n  info scope settle     info scope orders.c:36     info scope *$pc";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Location;
    type Args = InfoScopeArgs;
    type Reply = InfoScopeReply;

    fn run(call: &Call<'_>, args: InfoScopeArgs) -> Result<InfoScopeReply, Failure> {
        call.look(1, |view| described(view, &args.at))
    }
}

impl Command for InfoScope {
    const WORDS: &'static [Word] = &[Word::new(
        "at",
        "LOCATION",
        Form::Text,
        "function, file:line, a line of the current file, 0xADDRESS or *EXPRESSION",
    )];

    fn text(reply: &InfoScopeReply, asked: &InfoScopeArgs) -> Text {
        if reply.variables.is_empty() {
            return Text::line(format!(
                "The scope of {} contains no variables or parameters.",
                asked.at
            ));
        }
        let mut text = Text::line(format!("Scope for {}:", asked.at));
        for variable in &reply.variables {
            let kind = if variable.is_parameter {
                "a parameter"
            } else {
                "a variable"
            };
            let size = variable.size;
            let size = size.map_or_else(String::new, |size| format!(", length {size}"));
            let (name, ty) = (&variable.name, debuginfo::short_name(&variable.type_name));
            text.push(format!("Symbol {name} is {kind} of type {ty}{size}."));
        }
        text
    }
}

fn described(view: &View<'_>, at: &Target) -> Result<InfoScopeReply, Failure> {
    let (address, to_come) = place(view, at)?;
    let space = view.space;
    let frame = InnermostFrame::at(space, address, to_come);
    let frame = frame.map(|frame| frame.unread(Wish::default()));
    let variables = match frame {
        Some(frame) => at_frame(space, view.machine, &[frame], 0, lines).unwrap_or_default(),
        None => lines(&FrameContext {
            lookup_pc: address,
            ..FrameContext::outside(space, view.machine)
        }),
    };
    Ok(InfoScopeReply {
        address: format!("{address:#x}"),
        variables,
    })
}

fn lines(site: &FrameContext<'_>) -> Vec<ScopeLine> {
    let all = variables_at(site).into_iter();
    let line = all.map(|variable| {
        let ty = variable.ty();
        ScopeLine {
            name: variable.name.clone(),
            type_name: ty.name(),
            size: ty.size(),
            is_parameter: variable.is_parameter,
            line: variable.line,
        }
    });
    line.collect()
}

/// The address of a location, and how many of the inlined calls that begin there are outside of it.
fn place(view: &View<'_>, at: &Target) -> Result<(u64, usize), Failure> {
    let space = view.space;
    if let Some(expression) = at.address_expression() {
        return Ok((inspect::evaluate_address(view, expression)?, 0));
    }
    let line = match at.parse()? {
        ParsedLocation::Address(address) => return Ok((address, 0)),
        ParsedLocation::Function(name) => {
            let Some(place) = space.function_places(&name).into_iter().next() else {
                let place = source::first_function(space, &name)?;
                return Ok((place.after_prologue, 0));
            };
            let to_come = space.calls_before(place.address, place.function.as_deref());
            return Ok((place.address, to_come));
        }
        ParsedLocation::Line(line) => line,
        ParsedLocation::LineHere(line) => inspect::line_here(view, line)?,
    };
    let places = space.resolve_line(&line.file, line.line, line.column);
    let places = places.map_err(|error| inspect::of_line_error(&error))?;
    // There is one at least.
    let place = places.first();
    let address = place.map_or(0, |place| place.address);
    let function = place.and_then(|place| place.function.as_deref());
    Ok((address, space.calls_before(address, function)))
}
