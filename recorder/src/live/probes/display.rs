//! Displayed expressions: their values are reported with every stop, and recorded in its event.

use expr::Expression;
use values::{RenderOptions, render};

use crate::live::{
    error::{LiveError, LiveResult},
    guard::guarded,
    model::{Display, Displayed, MAX_DISPLAYS, Tid},
    probes::evaluate::Evaluator,
};

/// The displayed expressions, in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Displays {
    shown: Vec<(Display, Expression)>,
    last_id: u32,
}

impl Displays {
    pub fn all(&self) -> Vec<Display> {
        self.shown
            .iter()
            .map(|(display, _)| display.clone())
            .collect()
    }

    /// Adds an expression. One that is already displayed keeps its number.
    pub fn add(&mut self, expression: Expression) -> LiveResult<Display> {
        let mut known = self.shown.iter();
        if let Some((known, _)) = known.find(|(_, shown)| *shown == expression) {
            return Ok(known.clone());
        }
        if self.shown.len() == MAX_DISPLAYS {
            let message = format!("{MAX_DISPLAYS} expressions are displayed, and no more can be");
            return Err(LiveError::Evaluate(message.into()));
        }
        self.last_id += 1;
        let display = Display {
            id: self.last_id,
            expression: expression.text().to_owned(),
        };
        self.shown.push((display.clone(), expression));
        Ok(display)
    }

    /// Removes expressions: all of `ids`, or none if one of them does not exist.
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
        let values = self
            .probes
            .displays
            .shown
            .iter()
            .map(|(display, expression)| {
                let value = guarded(|| self.value_text(tid, expression));
                Displayed {
                    display: display.clone(),
                    value: value.unwrap_or_else(|error| format!("<{}>", error.one_line())),
                }
            });
        values.collect()
    }

    fn value_text(&self, tid: Tid, expression: &Expression) -> String {
        let shown = self.in_context(tid, |context| {
            let parsed = expression.within(context);
            let parsed = parsed.map_err(|error| error.one_line())?;
            let value = expr::evaluate(&parsed, context).map_err(|error| error.one_line())?;
            let options = RenderOptions::asked_for();
            Ok::<_, String>(render(&value, &options, context.machine, context.space))
        });
        match shown {
            Ok(Ok(text)) => text,
            Ok(Err(error)) | Err(error) => format!("<{error}>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Expression {
        Expression::parse(text).expect(text)
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
