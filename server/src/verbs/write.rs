//! `write`: writes several variables or places in memory at once. It is meant for programs; people use `set`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::set::{Written, assign};
use super::{Call, Does, Needs, SetReply, Verb};
use crate::inspect::hex_bytes;
use crate::location::address;
use crate::protocol::{Code, Failure};
use crate::session::{LiveSession, hex, of_recorder_text};

/// The `write` verb.
pub struct Write;

/// The arguments of `write`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteArgs {
    /// The writes, in this order. The first failure ends them.
    pub targets: Vec<WriteTarget>,
}

/// A write to a variable, or to an address with a type or bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WriteTarget {
    /// An expression that has a place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// An address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// With `address`: the type there, such as `f64`, `i32`, `unsigned long`, `char *` or `pointer`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// A number, a Boolean or an expression.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub value: Value,
    /// With `address`, instead of `value`: bytes in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
}

impl Verb for Write {
    const NAME: &'static str = "write";
    const DOC: &'static str = "Write several variables or places in memory at once";
    const NEEDS: Needs = Needs::RunningProgram;
    const DOES: Does = Does::Change;
    type Args = WriteArgs;
    type Reply = SetReply;

    fn run(call: &Call<'_>, args: WriteArgs) -> Result<SetReply, Failure> {
        let session = call.live()?;
        session.must_run()?;
        let mut results = Vec::new();
        for target in &args.targets {
            match write(&session, target) {
                Ok(written) => results.push(written),
                Err(failure) => return Err(at(failure, target, results.len(), args.targets.len())),
            }
        }
        Ok(SetReply { results })
    }
}

/// Says which of several writes has failed, and what the program has of them.
fn at(failure: Failure, target: &WriteTarget, written: usize, all: usize) -> Failure {
    if all < 2 {
        return failure;
    }
    let name = target.variable.as_ref().or(target.address.as_ref());
    let name = name.map_or("a target", String::as_str);
    let others = match written {
        0 => "nothing was written".to_owned(),
        1 => "the first one was written".to_owned(),
        written => format!("the first {written} were written"),
    };
    Failure {
        message: format!("{name}: {}; {others}", failure.message),
        ..failure
    }
}

fn write(session: &LiveSession, target: &WriteTarget) -> Result<Written, Failure> {
    match target {
        WriteTarget {
            variable: Some(variable),
            address: None,
            type_name: None,
            bytes: None,
            value,
        } => assign(session, variable, &value_text(value)?),
        WriteTarget {
            variable: None,
            address: Some(at),
            type_name: Some(type_name),
            bytes: None,
            value,
        } => {
            // Programs use this word for a type that the expression language cannot name.
            let type_name = match type_name.as_str() {
                "pointer" => "void *",
                name => name,
            };
            let place = format!("*({type_name} *){:#x}", address(at)?);
            assign(session, &place, &value_text(value)?)
        }
        WriteTarget {
            variable: None,
            address: Some(at),
            type_name: None,
            bytes: Some(bytes),
            value: Value::Null,
        } => write_bytes(session, address(at)?, &parse_bytes(bytes)?),
        _ => Err(Failure::bad_request("a target is none").hint(
            "write {variable, value}, {address, type, value} or {address, bytes}, nothing else",
        )),
    }
}

fn write_bytes(session: &LiveSession, address: u64, bytes: &[u8]) -> Result<Written, Failure> {
    let old = session
        .live
        .write(&hex(address), address, bytes)
        .map_err(|error| of_recorder_text(Code::WriteFailed, &error))?;
    Ok(Written {
        variable: None,
        address: hex(address),
        previous_value: hex_bytes(&old),
        new_value: hex_bytes(bytes),
    })
}

fn value_text(value: &Value) -> Result<String, Failure> {
    match value {
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(truth) => Ok(truth.to_string()),
        Value::String(text) => Ok(text.clone()),
        _ => Err(Failure::bad_request(
            "the value is neither a number nor a truth value nor a text",
        )),
    }
}

/// Parses bytes of two hexadecimal digits each, with or without spaces between them.
pub(super) fn parse_bytes(text: &str) -> Result<Vec<u8>, Failure> {
    let wrong = || {
        Failure::bad_request(format!("\"{text}\" is not made of bytes"))
            .hint("write two hexadecimal digits for each: 2a00ff")
    };
    let digits: String = text.split_whitespace().collect();
    let digits = digits.strip_prefix("0x").unwrap_or(&digits);
    let is_hexadecimal = digits.bytes().all(|b| b.is_ascii_hexdigit());
    if digits.is_empty() || !is_hexadecimal || !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_pairs_of_digits() {
        assert_eq!(parse_bytes("2a00FF").unwrap(), [0x2a, 0, 0xff]);
        assert_eq!(parse_bytes("0x2a 00").unwrap(), [0x2a, 0]);
        for text in ["", "2", "2g", "0x", "caf\u{e9}", "+1"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
