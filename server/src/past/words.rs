//! Calls in words: their arguments and results, as numbers that can be compared and as text; and who called.

use replay::CallHead;
use store::control::{FunctionDef, ParameterPlace, RetPlace, ValueKind};

use super::{Past, Position, of_replay};
use crate::inspect::{self, Manner};
use crate::protocol::Failure;

/// Registers that carry integer arguments, in order.
const REGISTERS: [&str; 6] = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];
/// Arguments of a function without a description that are shown.
const UNDESCRIBED: usize = 3;
/// Frames that are unwound for the source line of a call: its own and its caller's.
const FRAMES: usize = 2;
/// Characters of a value.
const LONGEST: usize = 60;

/// An argument or a result in a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The parameter's name.
    pub name: String,
    /// Its bits, extended according to its type.
    pub bits: u64,
    /// As it is written.
    pub text: String,
    /// It is an address, according to its type.
    pub is_address: bool,
    /// Nothing describes it.
    pub is_raw: bool,
}

impl Word {
    /// Returns whether an equal value is unlikely to be a coincidence.
    pub fn is_telling(&self) -> bool {
        let is_small = |bits: i64| (-4096..=4096).contains(&bits);
        match self.is_address {
            true => self.bits > 0xffff,
            false => !is_small(self.bits as i64),
        }
    }
}

impl Past {
    /// Returns the definition of a call's function.
    pub(super) fn definition(&self, call: &CallHead) -> Option<&FunctionDef> {
        self.timeline.function(call.function)
    }

    /// Returns whether a call is of the program: not of a system library, and not an entry of the procedure linkage
    /// table.
    pub(super) fn is_own(&self, call: &CallHead) -> bool {
        if self.timeline.name(call).ends_with("@plt") {
            return false;
        }
        let module = self.definition(call).map(|function| function.module);
        module.is_none_or(|module| !self.timeline.modules().is_system(module))
    }

    /// Returns the arguments of a call that registers hold.
    pub(super) fn arguments(&self, call: &CallHead) -> Result<Vec<Word>, Failure> {
        let whole = self.timeline.call(call).map_err(|e| of_replay(&e))?;
        let Some(function) = self.definition(call).filter(|f| f.params_known) else {
            let raw = whole.args.iter().zip(REGISTERS).take(UNDESCRIBED);
            return Ok(raw
                .map(|(bits, name)| Word {
                    name: name.to_owned(),
                    bits: *bits,
                    text: format!("{bits:#x}"),
                    is_address: false,
                    is_raw: true,
                })
                .collect());
        };
        let mut words = Vec::new();
        for (number, param) in function.params.iter().enumerate() {
            let ParameterPlace::Int(register) = param.place else {
                continue;
            };
            let Some(bits) = whole.args.get(usize::from(register)) else {
                continue;
            };
            let Some((bits, text)) = read(&param.kind, *bits).filter(|_| param.second.is_none())
            else {
                continue;
            };
            let name = match param.name.as_str() {
                "" => format!("arg{number}"),
                name => name.to_owned(),
            };
            words.push(Word {
                name,
                bits,
                text,
                is_address: param.kind == ValueKind::Pointer,
                is_raw: false,
            });
        }
        Ok(words)
    }

    /// Returns what a call returned in rax; `None` if it has not returned, or returned nothing there.
    pub(super) fn result(&self, call: &CallHead) -> Result<Option<Word>, Failure> {
        let whole = self.timeline.call(call).map_err(|e| of_replay(&e))?;
        Ok(match whole.rax {
            Some(rax) if call.returned() => self.result_of(call, rax),
            _ => None,
        })
    }

    /// Returns the result of a call that left `rax` in that register; `None` if that is not its result.
    pub(super) fn result_of(&self, call: &CallHead, rax: u64) -> Option<Word> {
        let function = self.definition(call);
        let place = function.and_then(|function| function.ret_place);
        let kind = function.map_or(&ValueKind::Unknown, |function| &function.ret);
        if !matches!(place, None | Some(RetPlace::Rax)) {
            return None;
        }
        read(kind, rax).map(|(bits, text)| Word {
            name: "the result".to_owned(),
            bits,
            text,
            is_address: *kind == ValueKind::Pointer,
            is_raw: *kind == ValueKind::Unknown,
        })
    }

    /// Writes a call with its arguments: arguments in registers as numbers, others by name if they are known at its
    /// beginning.
    pub(super) fn call_text(&self, call: &CallHead) -> Result<String, Failure> {
        let words = self.arguments(call)?;
        let name = self.timeline.short_name(call);
        let name = without_types(&name);
        let is_raw = words.first().is_some_and(|word| word.is_raw);
        let Some(function) = self.definition(call).filter(|_| !is_raw) else {
            let words: Vec<String> = words.iter().map(Word::written).collect();
            return Ok(format!("{name}({}, ..)", words.join(", ")));
        };
        let is_whole =
            function.params.len() == words.len() && words.iter().all(|word| !word.is_address);
        let shown = match is_whole {
            true => Vec::new(),
            false => self.at_entry(call),
        };
        let parts = function.params.iter().enumerate().map(|(number, param)| {
            let found = shown.iter().find(|(known, _)| *known == param.name);
            let word = words
                .iter()
                .find(|word| word.name == param.name || word.name == format!("arg{number}"));
            match (found, word) {
                (Some((name, text)), _) => format!("{name}={}", cut(text)),
                (None, Some(word)) => word.written(),
                (None, None) => format!("{}=?", param.name),
            }
        });
        let parts: Vec<String> = parts.collect();
        Ok(format!("{name}({})", parts.join(", ")))
    }

    /// Names and values of parameters that are known where a call began.
    fn at_entry(&self, call: &CallHead) -> Vec<(String, String)> {
        let Some(tid) = call.tid else {
            return Vec::new();
        };
        let position = Position::of_event(call.start, tid);
        let variables = self.look_at(position, 1, |looked| {
            inspect::variables(&looked.view(), Manner::of_many(false))
        });
        let variables = variables.unwrap_or_default().into_iter();
        let known = variables.filter(|variable| variable.is_parameter && !variable.shadowed);
        known
            .filter(|variable| variable.shown.stale_since.is_none())
            .filter_map(|variable| Some((variable.name, variable.shown.value?)))
            .collect()
    }

    /// Returns the line from which a call was made; `None` if the line of its direct caller is unknown.
    pub(super) fn called_at(&self, call: &CallHead) -> Option<(String, u32)> {
        let position = Position::of_event(call.start, call.tid?);
        let place = self.look_at(position, FRAMES, |looked| {
            let caller = looked.moment.trace.backtrace.frames.get(1);
            let caller = caller.filter(|frame| frame.pc_is_known);
            let source = caller.and_then(|frame| frame.source.as_ref());
            Ok(source.map(|source| (source.file.to_string(), source.line)))
        });
        place.ok().flatten()
    }
}

impl Word {
    fn written(&self) -> String {
        format!("{}={}", self.name, self.text)
    }
}

/// A name without the types of its parameters, which some names have: `ns::f(int)`, but `operator()` and `(anonymous
/// namespace)::f`.
fn without_types(name: &str) -> &str {
    let mut depth = 0;
    let opens = |(at, c): (usize, char)| {
        match c {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        (c == '(' && depth == 0).then_some(at)
    };
    let plain = name.trim_end_matches(" const");
    let list = plain
        .ends_with(')')
        .then(|| plain.char_indices().rev().find_map(opens));
    match list.flatten() {
        Some(at) if at > 0 && !plain[..at].ends_with("operator") => &plain[..at],
        _ => name,
    }
}

/// Cuts a long value.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// Reads a value that one register holds: its bits, extended according to its type, and as text.
fn read(kind: &ValueKind, bits: u64) -> Option<(u64, String)> {
    let narrowed = |bytes: u8, signed: bool| {
        let shift = 64 - 8 * u32::from(bytes.clamp(1, 8));
        match signed {
            true => ((bits as i64) << shift >> shift) as u64,
            false => bits << shift >> shift,
        }
    };
    Some(match kind {
        ValueKind::Bool => (bits & 0xff, (bits as u8 != 0).to_string()),
        ValueKind::Char => (bits & 0xff, format!("'{}'", (bits as u8).escape_ascii())),
        ValueKind::Unicode { bytes } => {
            let code = narrowed(*bytes, false);
            let character = u32::try_from(code).ok().and_then(char::from_u32);
            let text = character.map(|c| format!("'{}'", c.escape_debug()));
            (code, text.unwrap_or_else(|| code.to_string()))
        }
        ValueKind::Int { bytes, signed } if *bytes <= 8 => {
            let value = narrowed(*bytes, *signed);
            match signed {
                true => (value, (value as i64).to_string()),
                false => (value, value.to_string()),
            }
        }
        ValueKind::Enum {
            bytes,
            signed,
            names,
        } => {
            let value = narrowed(*bytes, *signed);
            let name = names.iter().find(|(known, _)| *known as u64 == value);
            let text = name.map(|(_, name)| name.clone());
            (value, text.unwrap_or_else(|| (value as i64).to_string()))
        }
        ValueKind::Pointer | ValueKind::Unknown => (bits, format!("{bits:#x}")),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_without_types() {
        for (name, plain) in [
            ("f", "f"),
            ("ns::f(int, char (*)(int))", "ns::f"),
            ("(anonymous namespace)::f", "(anonymous namespace)::f"),
            ("F::operator()(int) const", "F::operator()"),
            ("F::operator()", "F::operator()"),
        ] {
            assert_eq!(without_types(name), plain);
        }
    }

    #[test]
    fn values_are_extended_as_their_types_say() {
        let int = |bytes, signed| ValueKind::Int { bytes, signed };
        let minus = u64::MAX;
        for (kind, bits, value, text) in [
            (int(4, true), 0xffff_ffff, minus, "-1"),
            (int(4, false), 0xffff_ffff, 0xffff_ffff, "4294967295"),
            (int(1, true), 0x1ff, minus, "-1"),
            (ValueKind::Pointer, 0x10, 0x10, "0x10"),
            (ValueKind::Bool, 0x100, 0, "false"),
            (ValueKind::Unicode { bytes: 4 }, 0xe9, 0xe9, "'\u{e9}'"),
            // Half of a character.
            (ValueKind::Unicode { bytes: 2 }, 0xd83d, 0xd83d, "55357"),
        ] {
            assert_eq!(
                read(&kind, bits),
                Some((value, text.to_owned())),
                "{kind:?}"
            );
        }
        assert_eq!(read(&ValueKind::Void, 1), None);
    }
}
