//! `info_address`: where a variable or a function lies: at an address, in a register, or nowhere.

use debuginfo::location::Piece;
use debuginfo::{TypeKind, Value, ValuePlace};
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word};
use crate::inspect::{self, View};
use crate::past::frames_for;
use crate::protocol::Failure;

/// The `info_address` verb.
pub struct InfoAddress;

/// The arguments of `info_address`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InfoAddressArgs {
    /// The name of a variable or a function.
    pub of: String,
}

/// The reply of `info_address`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoAddressReply {
    /// The name.
    pub name: String,
    /// The address, in hexadecimal, if it lies in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What it is and where it lies, in words.
    pub place: String,
}

impl Verb for InfoAddress {
    const NAME: &'static str = "info_address";
    const DOC: &'static str = "Show where a variable or a function lies\n\n  info address total     info address settle\n\nA local variable is that of the selected frame.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = InfoAddressArgs;
    type Reply = InfoAddressReply;

    fn run(call: &Call<'_>, args: InfoAddressArgs) -> Result<InfoAddressReply, Failure> {
        call.look(frames_for(&args.of), |view| described(view, &args.of))
    }
}

impl Command for InfoAddress {
    const WORDS: &'static [Word] = &[Word::new(
        "of",
        "NAME",
        Form::Operand,
        "A variable or a function",
    )];

    fn text(reply: &InfoAddressReply, _: &InfoAddressArgs) -> Text {
        Text::line(format!("Symbol \"{}\" is {}.", reply.name, reply.place))
    }
}

fn described(view: &View<'_>, name: &str) -> Result<InfoAddressReply, Failure> {
    let value = inspect::value_of(view, name)?;
    let address = entry_of(view, &value, name).or_else(|| value.address());
    let place = match address {
        Some(address) if entry_of(view, &value, name).is_some() => {
            format!("a function at address {address:#x}")
        }
        // What a module has is there without any frame.
        Some(address) if view.space.at(address).is_some() => {
            format!("static storage at address {address:#x}")
        }
        Some(address) => format!("a variable at address {address:#x}{}", of_frame(view)),
        None => elsewhere(&value),
    };
    Ok(InfoAddressReply {
        name: name.to_owned(),
        address: address.map(|address| format!("{address:#x}")),
        place,
    })
}

/// The entry of the function of this name. A function's name has a pointer to it as its value.
fn entry_of(view: &View<'_>, value: &Value, name: &str) -> Option<u64> {
    if value.kind() == TypeKind::Function {
        return value.address();
    }
    let is_pointer = value.kind() == TypeKind::Pointer && value.address().is_none();
    let entry = value.as_address().ok().filter(|_| is_pointer)?;
    let (symbol, start) = view.space.symbol_at(entry)?;
    let plain = symbol.split('(').next().unwrap_or(&symbol);
    (start == entry && plain.ends_with(name)).then_some(entry)
}

fn of_frame(view: &View<'_>) -> String {
    let frame = view.frames.get(view.frame);
    let function = frame.and_then(|frame| frame.function.as_deref());
    match function {
        Some(function) => format!(
            " in frame {} ({})",
            view.frame,
            inspect::short_name(function)
        ),
        None => format!(" in frame {}", view.frame),
    }
}

/// Where a value lies that has no address.
fn elsewhere(value: &Value) -> String {
    match &value.place {
        ValuePlace::Memory(address) => format!("a part of the bytes at address {address:#x}"),
        ValuePlace::Register(register) => match register.name() {
            Some(name) => format!("a variable in ${name}"),
            None => "a variable in a register".to_owned(),
        },
        ValuePlace::Pieces(pieces) => format!("in pieces: {}", in_pieces(pieces)),
        ValuePlace::Implicit(_) | ValuePlace::ImplicitPointer { .. } => {
            "a value without a place: the debug information states it".to_owned()
        }
        ValuePlace::OptimizedOut => "optimized out".to_owned(),
        ValuePlace::Unknown(why) => format!("at a place that is not known: {why}"),
    }
}

fn in_pieces(pieces: &[Piece]) -> String {
    let piece = |piece: &Piece| match &piece.place {
        ValuePlace::Memory(address) => format!("{address:#x}"),
        ValuePlace::Register(register) => {
            let name = register.name();
            name.map_or_else(|| "a register".to_owned(), |name| format!("${name}"))
        }
        ValuePlace::OptimizedOut => "optimized out".to_owned(),
        _ => "no place".to_owned(),
    };
    let pieces: Vec<String> = pieces.iter().map(piece).collect();
    pieces.join(", ")
}
