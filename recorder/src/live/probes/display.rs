//! Displayed expressions: their values are reported with every stop, and recorded in its event.

use debuginfo::{Certainty, TypeKind, Value, disassemble};
use expr::{Context, Expression};
use values::{Format, RenderOptions, Units, render};

use crate::live::{
    error::{LiveError, LiveResult},
    guard::guarded,
    model::{Display, Displayed, MAX_DISPLAYS, Tid},
    probes::evaluate::Evaluator,
};

/// How a displayed value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayFormat {
    /// As a value.
    Value(Format),
    /// As the memory at this address.
    Memory(Units),
    /// As so many instructions from this address on.
    Instructions(usize),
}

/// What is displayed at every stop.
#[derive(Clone, Debug, PartialEq)]
pub struct Displaying {
    /// As written: `n`, or `/x n`.
    pub text: String,
    /// Its expression.
    pub expression: Expression,
    /// How its value is written.
    pub format: DisplayFormat,
}

impl Displaying {
    /// Returns the value as text.
    ///
    /// # Errors
    /// It has none. The text says why.
    pub fn value(&self, context: &Context<'_>) -> Result<String, String> {
        let parsed = self.expression.within(context);
        let parsed = parsed.map_err(|error| error.one_line())?;
        let value = expr::evaluate(&parsed, context).map_err(|error| error.one_line())?;
        let (machine, space) = (context.machine, context.space);
        match self.format {
            DisplayFormat::Value(format) => {
                let options = RenderOptions {
                    format,
                    ..RenderOptions::asked_for()
                };
                Ok(render(&value, &options, machine, space))
            }
            DisplayFormat::Memory(units) => {
                let address = address_of(&value)?;
                let units = units.at(Some(&value.ty), units.bytes);
                let (text, certainty) = memory(context, address, units)?;
                Ok(dated(text, certainty.and(way_to(&value))))
            }
            DisplayFormat::Instructions(count) => {
                let address = match value.as_address() {
                    Ok(address) => address,
                    // A register, or a number.
                    Err(_) => value.as_integer().map_err(|error| error.to_string())? as u64,
                };
                let text = instructions(context, address, count)?;
                Ok(dated(text, way_to(&value)))
            }
        }
    }
}

/// How far the address that a value denotes may be trusted.
fn way_to(value: &Value) -> Certainty {
    match value.kind() {
        TypeKind::Array | TypeKind::Function => value.reached,
        _ => value.certainty,
    }
}

fn dated(text: String, certainty: Certainty) -> String {
    match certainty {
        Certainty::Known => text,
        Certainty::Stale { as_of } => format!("{text} <stale: as of event {as_of}>"),
    }
}

/// Most bytes of memory that are displayed.
const MOST_BYTES: usize = 4096;

/// The address that a value denotes: that of an array or a function, or what a pointer or a number says.
fn address_of(value: &Value) -> Result<u64, String> {
    let by_place = matches!(value.kind(), TypeKind::Array | TypeKind::Function);
    let address = match value.address() {
        Some(address) if by_place => Ok(address),
        Some(_) => value.as_address(),
        None => value
            .as_address()
            .or_else(|_| value.as_integer().map(|number| number as u64)),
    };
    address.map_err(|error| error.to_string())
}

/// Writes units of memory.
fn memory(
    context: &Context<'_>,
    address: u64,
    units: Units,
) -> Result<(String, Certainty), String> {
    let len = units.count * units.bytes;
    if len > MOST_BYTES {
        return Err(format!("at most {MOST_BYTES} bytes are displayed"));
    }
    let mut bytes = vec![0; len];
    let read = context.machine.memory(address, &mut bytes);
    let certainty = read.map_err(|unknown| unknown.to_string())?;
    let symbol = |address| named(context, address);
    let each = bytes.chunks_exact(units.bytes);
    let each: Vec<String> = each.map(|unit| units.text(unit, &symbol)).collect();
    let text = format!("{address:#x}: {}", each.join("  "));
    Ok((text, certainty))
}

/// Writes instructions, as many as can be read.
fn instructions(context: &Context<'_>, address: u64, count: usize) -> Result<String, String> {
    let found = disassemble(context.space, context.machine, address, count);
    let found = found.map_err(|error| error.to_string())?;
    let each = found.iter().map(|instruction| {
        let at = instruction.address;
        let symbol = named(context, at).map_or_else(String::new, |name| format!(" <{name}>"));
        let target = instruction.target.as_ref();
        let target = target.map_or_else(String::new, |name| format!("  <{name}>"));
        format!("{at:#x}{symbol}: {}{target}", instruction.text)
    });
    let each: Vec<String> = each.collect();
    match each.is_empty() {
        true => Err("there is no instruction".to_owned()),
        false => Ok(each.join("; ")),
    }
}

/// The symbol of code at an address, and the offset in it.
fn named(context: &Context<'_>, address: u64) -> Option<String> {
    let (name, start) = context.space.symbol_at(address)?;
    Some(format!("{name}+{}", address.wrapping_sub(start)))
}

/// The displayed expressions, in the order in which they were added.
#[derive(Debug, Default)]
pub struct Displays {
    shown: Vec<(Display, Displaying)>,
    last_id: u32,
}

impl Displays {
    /// Returns all.
    #[must_use]
    pub fn all(&self) -> Vec<Display> {
        self.shown
            .iter()
            .map(|(display, _)| display.clone())
            .collect()
    }

    /// Adds an expression. One that is already displayed keeps its number.
    ///
    /// # Errors
    /// [`MAX_DISPLAYS`] are displayed.
    pub fn add(&mut self, what: Displaying) -> LiveResult<Display> {
        let mut known = self.shown.iter();
        if let Some((known, _)) = known.find(|(_, shown)| *shown == what) {
            return Ok(known.clone());
        }
        if self.shown.len() == MAX_DISPLAYS {
            let message = format!("{MAX_DISPLAYS} expressions are displayed, and no more can be");
            return Err(LiveError::Evaluate(message.into()));
        }
        self.last_id += 1;
        let display = Display {
            id: self.last_id,
            expression: what.text.clone(),
        };
        self.shown.push((display.clone(), what));
        Ok(display)
    }

    /// Shows these instead, with the numbers that they have.
    pub fn replace(&mut self, shown: Vec<(Display, Displaying)>) {
        self.shown = shown;
    }

    /// Removes expressions: all of `ids`, or none if one of them does not exist.
    ///
    /// # Errors
    /// [`LiveError::NoDisplay`].
    pub fn remove(&mut self, ids: &[u32]) -> LiveResult<Vec<Display>> {
        if let Some(missing) = ids
            .iter()
            .find(|id| self.shown.iter().all(|(d, _)| d.id != **id))
        {
            return Err(LiveError::NoDisplay(*missing));
        }
        Ok(self
            .shown
            .extract_if(.., |(display, _)| ids.contains(&display.id))
            .map(|(display, _)| display)
            .collect())
    }
}

impl Evaluator<'_> {
    /// Evaluates the displayed expressions in a halted thread.
    pub fn displayed(&self, tid: Tid) -> Vec<Displayed> {
        let values = self.probes.displays.shown.iter().map(|(display, what)| {
            let value = guarded(|| self.value_text(tid, what));
            Displayed {
                display: display.clone(),
                value: value.unwrap_or_else(|error| format!("<{}>", error.one_line())),
            }
        });
        values.collect()
    }

    fn value_text(&self, tid: Tid, what: &Displaying) -> String {
        match self.in_context(tid, |context| what.value(context)) {
            Ok(Ok(text)) => text,
            Ok(Err(error)) | Err(error) => format!("<{error}>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Displaying {
        Displaying {
            text: text.to_owned(),
            expression: Expression::parse(text).expect(text),
            format: DisplayFormat::Value(Format::Natural),
        }
    }

    #[test]
    fn a_number_is_given_once_and_an_expression_is_displayed_once() {
        let mut displays = Displays::default();
        let ids: Vec<u32> = ["a", "b", "a"]
            .iter()
            .map(|text| displays.add(parsed(text)).unwrap().id)
            .collect();
        assert_eq!(ids, [1, 2, 1]);
        assert!(matches!(
            displays.remove(&[2, 7]),
            Err(LiveError::NoDisplay(7))
        ));
        assert_eq!(displays.all().len(), 2, "all or none");
        displays.remove(&[2]).unwrap();
        assert_eq!(displays.add(parsed("b")).unwrap().id, 3);
    }

    #[test]
    fn there_is_a_limit() {
        let mut displays = Displays::default();
        for number in 0..MAX_DISPLAYS {
            displays.add(parsed(&format!("v{number}"))).unwrap();
        }
        assert!(displays.add(parsed("v0")).is_ok(), "it is there already");
        let refused = displays.add(parsed("one_more")).unwrap_err();
        assert!(refused.to_string().contains("64 expressions"), "{refused}");
    }
}
