//! Containers as a presentation: the interface for types that are not shown as their members.

use crate::containers::Container;
use crate::containers::content::{Content, Part};
use crate::containers::line::{Limits, Show};
use crate::draft::Draft;
use crate::natural::Later;
use crate::printer::{Children, Presented, Printer};
use crate::{RenderOptions, render_with};
use debuginfo::Unknown;
use debuginfo::types::Type;
use debuginfo::value::{Look, Value};

/// All printers; the first that matches a type shows it.
pub(crate) fn printers() -> &'static [&'static dyn Printer] {
    &[&Containers]
}

struct Containers;

impl Printer for Containers {
    fn matches(&self, ty: &Type) -> bool {
        Container::is_type(ty)
    }

    fn present(&self, value: &Value, look: &Look<'_>, limit: usize) -> Result<Presented, Unknown> {
        let container = Container::of(value, look).ok_or_else(super::nothing)??;
        container.present(look, limit)
    }

    fn line(
        &self,
        value: &Value,
        look: &Look<'_>,
        limits: &Limits,
        show: Show,
    ) -> Option<Result<Draft<Later>, Unknown>> {
        let container = Container::of(value, look)?;
        Some(container.map(|container| container.line(limits, look, show)))
    }
}

impl Container {
    fn present(&self, look: &Look<'_>, limit: usize) -> Result<Presented, Unknown> {
        if let Content::Text(text) = &self.content {
            let reach = self.reach(look.machine, look.space);
            return Ok(Presented {
                summary: None,
                children: Children::Text(text.utf8(&reach, limit as u64)?),
                total: Some(text.len),
                certainty: self.certainty.and(reach.certainty()),
            });
        }
        let entries = self.entries(limit, look);
        if let (Some(why), true) = (entries.error, entries.list.is_empty()) {
            return Err(why);
        }
        let list = entries.list;
        let label = Some(self.label.clone()).filter(|label| !label.is_empty());
        let (summary, children) = match &self.content {
            Content::Map(_) => {
                let pair = |entry: super::Entry| Some((entry.key?, entry.value));
                (
                    label,
                    Children::Map(list.into_iter().filter_map(pair).collect()),
                )
            }
            Content::Parts { text, children } => match (&text[..], list.is_empty()) {
                ([Part::Value(_)], false) if children.len() == 1 => {
                    let only = list.into_iter().next().ok_or_else(super::nothing)?;
                    (None, Children::Transparent(Box::new(only.value)))
                }
                (_, true) => {
                    let options = RenderOptions::default();
                    let mut show = |inner: &Value, _: Option<&str>| {
                        Draft::from(render_with(inner, &options, look))
                    };
                    let line = self.line(&Limits::default(), look, &mut show);
                    (Some(line.into_text()), Children::None)
                }
                _ => {
                    let fields = list.into_iter().map(|entry| (entry.name, entry.value));
                    (label, Children::Fields(fields.collect()))
                }
            },
            _ => {
                let values = list.into_iter().map(|entry| entry.value);
                (label, Children::Sequence(values.collect()))
            }
        };
        let reach = self.reach(look.machine, look.space);
        let total = self.items().and_then(|items| items.len(&reach).ok());
        Ok(Presented {
            summary,
            children,
            total,
            certainty: self.certainty.and(reach.certainty()),
        })
    }
}
