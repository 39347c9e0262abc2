//! Renders log messages: templates with their values inserted.

use crate::Expr;
use crate::eval::{Context, Evaluator, with_evaluator};
use crate::template::{Format, Part, Template};
use debuginfo::types::TypeKind;
use debuginfo::value::Value;
use values::{RenderOptions, render_with};

impl Template {
    /// Renders the message for this moment. Strings are inserted without quotes. A part without a value becomes
    /// `<error: REASON>`, and the others stay.
    #[must_use]
    pub fn render(&self, context: &Context<'_>, options: &RenderOptions) -> String {
        with_evaluator(context, |evaluator| {
            let mut out = String::new();
            for part in &self.parts {
                match evaluator.part(part, options) {
                    Ok(text) => out.push_str(&text),
                    Err(why) => out.push_str(&format!("<error: {why}>")),
                }
            }
            out
        })
    }
}

impl Part {
    /// Renders this part.
    ///
    /// # Errors
    /// The part has no value; the text states the reason. Scripts never have one here.
    pub fn render(&self, context: &Context<'_>, options: &RenderOptions) -> Result<String, String> {
        with_evaluator(context, |evaluator| evaluator.part(self, options))
    }

    /// As [`Expression::needs_callers`](crate::Expression::needs_callers).
    #[must_use]
    pub fn needs_callers(&self, context: &Context<'_>) -> bool {
        match self {
            Part::Value { expression, .. } => expression.needs_callers(context),
            Part::Text(_) | Part::Script { .. } => false,
        }
    }
}

impl Evaluator<'_> {
    fn part(&self, part: &Part, options: &RenderOptions) -> Result<String, String> {
        match part {
            Part::Text(text) => Ok(text.clone()),
            Part::Script { source } => Err(format!("{source} is JavaScript")),
            Part::Value { expression, format } => {
                let expr = expression.within(&self.context);
                let expr = expr.map_err(|error| error.one_line())?;
                self.shown(&expr, *format, options)
            }
        }
    }

    fn shown(
        &self,
        expr: &Expr,
        format: Format,
        options: &RenderOptions,
    ) -> Result<String, String> {
        let value = self.value(expr).map_err(|error| error.one_line())?;
        let is_text = matches!(format, Format::Natural | Format::Text);
        if is_text && let Some(text) = self.plain_text(&value, expr, options.max_string) {
            return Ok(text);
        }
        let is_float = |value: Value| value.kind() == TypeKind::Float;
        let format = match format {
            Format::Natural | Format::Text => values::Format::Natural,
            // A message has no other way to say that a number is to be written as one.
            Format::Decimal if value.unreferenced(&self.look).is_ok_and(is_float) => {
                values::Format::Natural
            }
            Format::Hex => values::Format::Hex,
            Format::Decimal => values::Format::Decimal,
            Format::Unsigned => values::Format::Unsigned,
            Format::Octal => values::Format::Octal,
            Format::Binary => values::Format::Binary,
            Format::Char => values::Format::Char,
            Format::Address => values::Format::Address,
        };
        let options = RenderOptions { format, ..*options };
        Ok(render_with(&value, &options, &self.look))
    }

    /// Returns a string without quotes, if the value is a readable string.
    fn plain_text(&self, value: &Value, expr: &Expr, limit: usize) -> Option<String> {
        let bytes = self.text_bytes(value, expr.at).ok()??;
        let text = String::from_utf8_lossy(&bytes);
        let cut = text.char_indices().nth(limit);
        Some(match cut {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text.into_owned(),
        })
    }
}
