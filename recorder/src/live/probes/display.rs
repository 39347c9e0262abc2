//! Displayed expressions: their values are reported with every stop, and recorded in its event.

use debuginfo::disassemble;
use expr::{Context, Expression};
use values::{Format, RenderOptions, render};

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
    /// As the instruction at this address.
    Instruction,
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
            DisplayFormat::Instruction => {
                let address = match value.as_address() {
                    Ok(address) => address,
                    // A register, or a number.
                    Err(_) => value.as_integer().map_err(|error| error.to_string())? as u64,
                };
                let found = disassemble(space, machine, address, 1);
                let found = found.map_err(|error| error.to_string())?;
                let first = found.first().ok_or("there is no instruction")?;
                let symbol = space.symbol_at(address);
                let symbol = symbol
                    .map(|(name, start)| format!(" <{name}+{}>", address.wrapping_sub(start)))
                    .unwrap_or_default();
                let target = first.target.as_ref();
                let target = target.map(|name| format!("  <{name}>")).unwrap_or_default();
                Ok(format!("{address:#x}{symbol}: {}{target}", first.text))
            }
        }
    }
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
