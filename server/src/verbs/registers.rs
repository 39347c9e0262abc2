//! `registers`: the registers as the selected frame sees them.

use debuginfo::Machine;
use serde::{Deserialize, Serialize};

use super::{Call, Column, Command, Does, Form, Needs, Text, Verb, Word};
use crate::inspect::{self, RegisterValue, View};
use crate::protocol::Failure;

/// The `registers` verb.
pub struct Registers;

/// The arguments of `registers`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegistersArgs {
    /// The registers to show. Default: the general ones.
    pub names: Vec<String>,
    /// Show the vectors too.
    pub vectors: bool,
}

/// The reply of `registers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistersReply {
    /// The frame, counted from 0 for the innermost.
    pub frame: usize,
    /// The registers.
    pub registers: Vec<RegisterReport>,
}

/// A register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterReport {
    /// Its name and value.
    #[serde(flatten)]
    pub value: RegisterValue,
    /// The function or symbol that the value points into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
}

impl Verb for Registers {
    const NAME: &'static str = "registers";
    const DOC: &'static str = "Show the registers of the current frame";
    const NEEDS: Needs = Needs::Stop;
    const DOES: Does = Does::Look;
    type Args = RegistersArgs;
    type Reply = RegistersReply;

    fn run(call: &Call<'_>, args: RegistersArgs) -> Result<RegistersReply, Failure> {
        call.look(1, |view| match view.recorded {
            // Shows all that is known about the thread, even if no frame is known.
            Some(_) if view.frame == 0 => described(view, view.machine, &args),
            _ => described(view, &view.frame_machine()?, &args),
        })
    }
}

impl Command for Registers {
    const WORDS: &'static [Word] = &[
        Word::new(
            "names",
            "NAMES",
            Form::Words,
            "Which [default: the general ones]",
        )
        .optional(),
        Word::flag("vectors", None, "The vectors too"),
    ];

    fn text(reply: &RegistersReply, _: &RegistersArgs) -> Text {
        let row = |register: &RegisterReport| {
            let RegisterValue {
                name,
                value,
                unknown,
                stale_since,
                ..
            } = &register.value;
            let shown = match (value, stale_since, unknown) {
                (Some(value), Some(seq), _) => format!("{value} <stale: as of event {seq}>"),
                (Some(value), None, _) => value.clone(),
                (None, _, Some(reason)) => format!("<{reason}>"),
                (None, _, None) => String::new(),
            };
            vec![
                name.clone(),
                shown,
                register.symbol.clone().unwrap_or_default(),
            ]
        };
        Text::table(
            &["Register", "Value", "Symbol"].map(Column::text),
            reply.registers.iter().map(row).collect(),
        )
    }
}

/// Describes registers; `machine` has those of the selected frame.
fn described(
    view: &View<'_>,
    machine: &dyn Machine,
    args: &RegistersArgs,
) -> Result<RegistersReply, Failure> {
    let values = inspect::registers(machine, &args.names, args.vectors)?;
    let symbol = |value: &RegisterValue| {
        let digits = value.value.as_deref()?.strip_prefix("0x")?;
        let address = u64::from_str_radix(digits, 16).ok()?;
        let (name, start) = view.space.symbol_at(address)?;
        Some(format!("{name}+{}", address.wrapping_sub(start)))
    };
    Ok(RegistersReply {
        frame: view.frame,
        registers: values
            .into_iter()
            .map(|value| RegisterReport {
                symbol: symbol(&value),
                value,
            })
            .collect(),
    })
}
