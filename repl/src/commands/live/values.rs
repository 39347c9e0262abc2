//! `locals`, `args`, `print`, `display`, `eval`, `set`, `memory` and `registers`: what the program holds.

use std::fmt::Write;

use server::inspect::{ValueFormat, ValueReport};
use server::session::DisplayReport;
use server::verbs::{
    self, DisplayArgs, EvalArgs, LocalsArgs, MemoryArgs, MemoryReply, PrintArgs, RegistersArgs,
    RegistersReply, SetArgs, UndisplayArgs, VariablesReply,
};

use super::Link;
use super::ask::{Common, Patience, answer, ask, fetch};
use super::show;
use crate::error::Error;
use crate::render::{Align, Terminal, escaped};

/// How values are written.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Form {
    #[default]
    Natural,
    #[value(alias = "x")]
    Hex,
    #[value(alias = "d")]
    Decimal,
    #[value(alias = "u")]
    Unsigned,
    #[value(alias = "o")]
    Octal,
    #[value(aliases = ["t", "b"])]
    Binary,
    #[value(alias = "c")]
    Char,
    #[value(alias = "a")]
    Address,
}

impl From<Form> for ValueFormat {
    fn from(form: Form) -> ValueFormat {
        match form {
            Form::Natural => ValueFormat::Natural,
            Form::Hex => ValueFormat::Hex,
            Form::Decimal => ValueFormat::Decimal,
            Form::Unsigned => ValueFormat::Unsigned,
            Form::Octal => ValueFormat::Octal,
            Form::Binary => ValueFormat::Binary,
            Form::Char => ValueFormat::Char,
            Form::Address => ValueFormat::Address,
        }
    }
}

#[derive(Debug, clap::Args)]
pub struct Locals {
    #[command(flatten)]
    common: Common,
    /// How numbers are written
    #[arg(long, value_name = "FORMAT", default_value = "natural")]
    format: Form,
}

impl Locals {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        let args = LocalsArgs {
            format: self.format.into(),
        };
        ask::<verbs::Locals>(&self.common, link, &args, Patience::Answer, |reply| {
            variables(reply, terminal)
        })
    }
}

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// How numbers are written
    #[arg(long, value_name = "FORMAT", default_value = "natural")]
    format: Form,
}

impl Args {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        let args = LocalsArgs {
            format: self.format.into(),
        };
        ask::<verbs::Args>(&self.common, link, &args, Patience::Answer, |reply| {
            variables(reply, terminal)
        })
    }
}

fn variables(reply: &VariablesReply, terminal: &Terminal) -> String {
    match reply.variables.is_empty() {
        true => "None are known here.\n".to_owned(),
        false => show::variables(&reply.variables, terminal),
    }
}

#[derive(Debug, clap::Args)]
pub struct Print {
    #[command(flatten)]
    common: Common,
    /// How numbers are written
    #[arg(long, value_name = "FORMAT", default_value = "natural")]
    format: Form,
    /// Show the type too
    #[arg(long = "type")]
    with_type: bool,
    /// The expression: x, a.b, *p, v[5], $rax
    #[arg(
        value_name = "EXPRESSION",
        required = true,
        allow_negative_numbers = true
    )]
    expression: Vec<String>,
}

impl Print {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let args = PrintArgs {
            expression: self.expression.join(" ").trim_start().to_owned(),
            format: self.format.into(),
        };
        let reply = fetch::<verbs::Print>(&self.common, link, &args, Patience::Answer);
        let reply = reply.map_err(|error| self.with_cast(error));
        answer::<verbs::Print>(&self.common, reply, |reply| value(reply, self.with_type))
    }

    /// Names the cast that `--type TYPE EXPRESSION` may have been meant for.
    fn with_cast(&self, error: Error) -> Error {
        match (error, self.expression.as_slice()) {
            (
                Error::Live {
                    source: server::Error::Failed(mut failure),
                },
                [ty @ .., expression],
            ) if self.with_type && !ty.is_empty() && failure.hint.is_none() => {
                failure.hint = Some(format!(
                    "--type shows the type that a value has; to read it as another one, cast it: print \"({}){expression}\"",
                    ty.join(" ")
                ));
                Error::Live {
                    source: server::Error::Failed(failure),
                }
            }
            (error, _) => error,
        }
    }
}

#[derive(Debug, clap::Args)]
pub struct Display {
    #[command(flatten)]
    common: Common,
    /// The expression, as for print; of the innermost frame of the thread that stops
    #[arg(value_name = "EXPRESSION", allow_negative_numbers = true)]
    expression: Vec<String>,
}

impl Display {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let args = DisplayArgs {
            expression: Some(self.expression.join(" ").trim_start().to_owned())
                .filter(|text| !text.is_empty()),
        };
        let is_list = args.expression.is_none();
        ask::<verbs::Display>(
            &self.common,
            link,
            &args,
            Patience::Answer,
            |reply| match is_list && reply.displays.is_empty() {
                true => "Nothing is displayed.\n".to_owned(),
                false => show::displays(&reply.displays),
            },
        )
    }
}

#[derive(Debug, clap::Args)]
pub struct Undisplay {
    #[command(flatten)]
    common: Common,
    /// Their numbers
    #[arg(value_name = "N", required_unless_present = "all")]
    ids: Vec<u32>,
    /// All of them
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

impl Undisplay {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let args = UndisplayArgs {
            ids: self.ids.clone(),
            all: self.all,
        };
        ask::<verbs::Undisplay>(&self.common, link, &args, Patience::Answer, |reply| {
            let line = |gone: &DisplayReport| {
                let text = escaped(&gone.expression);
                format!("Display {} removed: {text}\n", gone.id)
            };
            reply.displays.iter().map(line).collect()
        })
    }
}

#[derive(Debug, clap::Args)]
pub struct Eval {
    #[command(flatten)]
    common: Common,
    /// The expression
    #[arg(
        value_name = "EXPRESSION",
        required = true,
        allow_negative_numbers = true
    )]
    expression: Vec<String>,
}

impl Eval {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let args = EvalArgs {
            expression: self.expression.join(" ").trim_start().to_owned(),
            format: ValueFormat::Natural,
        };
        ask::<verbs::Eval>(&self.common, link, &args, Patience::Stop(None), |reply| {
            value(reply, false)
        })
    }
}

fn value(reply: &ValueReport, with_type: bool) -> String {
    let text = show::shown(&reply.shown);
    let note = reply.note.as_ref().map(|note| format!("({note})\n"));
    let text = match with_type {
        true => format!(
            "({}) {} = {}\n",
            escaped(&reply.type_name),
            escaped(&reply.expression),
            escaped(&text)
        ),
        false => format!("{} = {}\n", escaped(&reply.expression), escaped(&text)),
    };
    text + &note.unwrap_or_default()
}

#[derive(Debug, clap::Args)]
pub struct Set {
    #[command(flatten)]
    common: Common,
    /// What gets the value
    target: String,
    /// The value: an expression
    #[arg(allow_negative_numbers = true)]
    value: String,
}

impl Set {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let args = SetArgs {
            target: self.target.clone(),
            value: self.value.clone(),
        };
        ask::<verbs::Set>(&self.common, link, &args, Patience::Answer, |reply| {
            let line = |written: &verbs::Written| {
                let name = written.variable.as_ref().unwrap_or(&written.address);
                let change = format!(
                    "{name}: {} -> {}",
                    written.previous_value, written.new_value
                );
                format!("{}\n", escaped(&change))
            };
            reply.results.iter().map(line).collect()
        })
    }
}

#[derive(Debug, clap::Args)]
pub struct Memory {
    #[command(flatten)]
    common: Common,
    /// read or write, then an address or an expression that is one, then for write the bytes
    #[arg(value_name = "[read] ADDRESS | write ADDRESS BYTES", required = true)]
    words: Vec<String>,
    /// How many bytes [default: 64]
    #[arg(long, value_name = "N")]
    count: Option<usize>,
    /// hex is the only one; here for those who write it
    #[arg(long, value_name = "FORMAT", value_parser = ["hex"], default_value = "hex")]
    format: String,
}

impl Memory {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let (at, write) = match words.as_slice() {
            ["write", at, bytes @ ..] if !bytes.is_empty() => (*at, Some(bytes.concat())),
            ["read", at] | [at] if !matches!(*at, "read" | "write") => (*at, None),
            _ => {
                let help =
                    "hindsight memory read ADDRESS, or memory write ADDRESS BYTES".to_owned();
                return Err(Error::usage("that is not a place in memory", Some(help)));
            }
        };
        let args = MemoryArgs {
            at: at.to_owned(),
            count: self.count,
            write,
        };
        ask::<verbs::Memory>(&self.common, link, &args, Patience::Answer, memory)
    }
}

/// Writes bytes as 16 to the line, with what of them is text.
fn memory(reply: &MemoryReply) -> String {
    let mut text = String::new();
    let digits = reply.memory.address.trim_start_matches("0x");
    let start = u64::from_str_radix(digits, 16).unwrap_or_default();
    for (row, line) in reply.memory.bytes.as_bytes().chunks(32).enumerate() {
        let pairs: Vec<&str> = line
            .chunks(2)
            .map(|pair| std::str::from_utf8(pair).unwrap_or("??"))
            .collect();
        let shown = |pair: &&str| match u8::from_str_radix(pair, 16) {
            Ok(byte) if (0x20..0x7f).contains(&byte) => char::from(byte),
            _ => '.',
        };
        let readable: String = pairs.iter().map(shown).collect();
        let address = start.wrapping_add(row as u64 * 16);
        _ = writeln!(text, "{address:#018x}  {:<47}  {readable}", pairs.join(" "));
    }
    if let Some(seq) = reply.memory.stale_since {
        _ = writeln!(
            text,
            "(stale: as of event {seq}; it may have changed since)"
        );
    }
    if let Some(end) = &reply.memory.end {
        _ = writeln!(text, "(ends here: {})", escaped(end));
    }
    text
}

#[derive(Debug, clap::Args)]
pub struct Registers {
    #[command(flatten)]
    common: Common,
    /// Which [default: the general ones]
    names: Vec<String>,
    /// The vectors too
    #[arg(long)]
    vectors: bool,
}

impl Registers {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        let args = RegistersArgs {
            names: self.names.clone(),
            vectors: self.vectors,
        };
        ask::<verbs::Registers>(&self.common, link, &args, Patience::Answer, |reply| {
            registers(reply, terminal)
        })
    }
}

fn registers(reply: &RegistersReply, terminal: &Terminal) -> String {
    let row = |register: &verbs::RegisterReport| {
        let value = &register.value;
        let unknown = value.unknown.as_ref().map(|reason| format!("<{reason}>"));
        let stale = value.stale_since;
        let stale = stale.map(|seq| format!(" <stale: as of event {seq}>"));
        let found = value.value.as_ref();
        let found = found.map(|value| format!("{value}{}", stale.unwrap_or_default()));
        vec![
            Some(value.name.clone()),
            found.or(unknown),
            Some(register.symbol.clone().unwrap_or_default()),
        ]
    };
    let headings = [
        ("Register", Align::Left),
        ("Value", Align::Left),
        ("Symbol", Align::Left),
    ];
    show::table(
        &headings,
        reply.registers.iter().map(row).collect(),
        terminal,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use server::inspect::MemoryReport;

    #[test]
    fn memory_is_written_as_bytes_and_text() {
        let reply = MemoryReply {
            memory: MemoryReport {
                address: "0x1000".to_owned(),
                bytes: "48656c6c6f00ff0102030405060708090a".to_owned(),
                stale_since: Some(7),
                end: Some("no memory at 0x1011".to_owned()),
            },
            previous: None,
        };
        expect![[r"
            0x0000000000001000  48 65 6c 6c 6f 00 ff 01 02 03 04 05 06 07 08 09  Hello...........
            0x0000000000001010  0a                                               .
            (stale: as of event 7; it may have changed since)
            (ends here: no memory at 0x1011)
        "]]
        .assert_eq(&memory(&reply));
    }
}
