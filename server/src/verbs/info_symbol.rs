//! `info_symbol`: the symbol to which an address belongs: of code, or of a global variable.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, memory};
use crate::inspect::View;
use crate::protocol::{Code, Failure};

/// The `info_symbol` verb.
pub struct InfoSymbol;

/// The arguments of `info_symbol`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InfoSymbolArgs {
    /// An address, or an expression with an address as its value.
    pub at: String,
}

/// The reply of `info_symbol`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoSymbolReply {
    /// The address, in hexadecimal.
    pub address: String,
    /// The symbol's name.
    pub symbol: String,
    /// The distance of the address from the symbol's.
    pub offset: u64,
    /// The module's file.
    pub module: String,
    /// If the address may have changed since it was seen: the event that showed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<u64>,
}

impl Verb for InfoSymbol {
    const NAME: &'static str = "info_symbol";
    const DOC: &'static str =
        "Show which symbol an address belongs to\n\n  info symbol $pc     info symbol 0x404010";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = InfoSymbolArgs;
    type Reply = InfoSymbolReply;

    fn run(call: &Call<'_>, args: InfoSymbolArgs) -> Result<InfoSymbolReply, Failure> {
        call.look(1, |view| {
            let (address, certainty) = memory::dated_address(view, &args.at)?;
            let reply =
                described(view, address).map_err(|failure| memory::dated(failure, certainty))?;
            Ok(InfoSymbolReply {
                stale_since: memory::oldest(None, certainty),
                ..reply
            })
        })
    }
}

impl Command for InfoSymbol {
    const WORDS: &'static [Word] = &[Word::new(
        "at",
        "ADDRESS",
        Form::Operand,
        "An address or an expression that is one: 0x404010, &table, $pc",
    )];

    fn text(reply: &InfoSymbolReply, _: &InfoSymbolArgs) -> Text {
        let offset = match reply.offset {
            0 => String::new(),
            offset => format!(" + {offset}"),
        };
        let line = format!("{}{offset} of {}", reply.symbol, reply.module);
        Text::lines(
            [line]
                .into_iter()
                .chain(reply.stale_since.map(memory::stale)),
        )
    }
}

fn described(view: &View<'_>, address: u64) -> Result<InfoSymbolReply, Failure> {
    let mapped = view.space.at(address);
    let of_code = view.space.symbol_at(address);
    let of_data = || {
        let mapped = mapped?;
        let (name, start) = mapped.module.variable_symbol_at(mapped.svma(address))?;
        Some((name, mapped.address(start)))
    };
    let found = of_code.or_else(of_data);
    let (Some(mapped), Some((symbol, start))) = (mapped, found) else {
        let message = format!("no symbol has {address:#x}");
        let hint = match mapped {
            Some(mapped) => format!(
                "it is in {}, where no symbol covers it",
                mapped.module.path().display()
            ),
            None => "it is in no module; object says which block of the heap has it".to_owned(),
        };
        return Err(Failure::new(Code::InvalidAddress, message).hint(hint));
    };
    Ok(InfoSymbolReply {
        address: format!("{address:#x}"),
        symbol,
        offset: address.wrapping_sub(start),
        module: mapped.module.path().display().to_string(),
        stale_since: None,
    })
}
