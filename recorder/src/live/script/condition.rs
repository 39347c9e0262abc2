//! A compiled condition or part of a message, and how to evaluate it.
//!
//! JavaScript that resolves names through one of our scope objects queries that object for each name, which takes
//! longer than everything else. So the names that a condition may use are extracted from its text, looked up before it
//! runs, and passed as arguments. If one of them has no value, or the text may look up names in another way, the
//! condition runs in the scope object, which reports what is missing.

use std::{cell::RefCell, collections::HashMap};

use rquickjs::{Array, Ctx, Function, Persistent, Value, function::Args};

use super::{engine::Engine, program::Seen};

/// A condition with its `state`.
pub struct Script {
    /// Resolves names through the scope object.
    in_scope: Persistent<Function<'static>>,
    direct: Option<Direct>,
}

/// How to call it with its names as arguments.
struct Direct {
    /// The names, and whether JavaScript defines them itself.
    names: Vec<(String, bool)>,
    /// `state`, `args` and `$`.
    first: Vec<Persistent<Value<'static>>>,
    /// Makes the function for a set of found names, given as bits.
    form: Persistent<Function<'static>>,
    /// The functions made so far; `None`: use the scope object.
    forms: RefCell<HashMap<u32, Option<Persistent<Function<'static>>>>>,
}

impl Script {
    /// Takes the result of compiling a condition in the prelude.
    pub(super) fn of<'js>(ctx: &Ctx<'js>, parts: &Array<'js>) -> rquickjs::Result<Script> {
        let in_scope = Persistent::save(ctx, parts.get::<Function>(0)?);
        if parts.len() == 1 {
            return Ok(Script {
                in_scope,
                direct: None,
            });
        }
        let (names, is_own): (Vec<String>, Vec<bool>) = (parts.get(1)?, parts.get(2)?);
        let first: rquickjs::Result<Vec<_>> = (4..parts.len())
            .map(|at| Ok(Persistent::save(ctx, parts.get::<Value>(at)?)))
            .collect();
        Ok(Script {
            in_scope,
            direct: Some(Direct {
                names: names.into_iter().zip(is_own).collect(),
                first: first?,
                form: Persistent::save(ctx, parts.get::<Function>(3)?),
                forms: RefCell::default(),
            }),
        })
    }

    /// Returns the text of its value at the engine's current moment.
    pub(super) fn text(&self, ctx: &Ctx<'_>) -> rquickjs::Result<String> {
        self.in_scope.clone().restore(ctx)?.call(())
    }

    /// Returns the same script, limited to the scope object.
    #[cfg(test)]
    pub(super) fn in_scope_alone(self) -> Script {
        Script {
            direct: None,
            ..self
        }
    }

    /// Evaluates the condition at the engine's current moment.
    pub(super) fn ask(&self, ctx: &Ctx<'_>, engine: &Engine) -> rquickjs::Result<bool> {
        if let Some(direct) = &self.direct
            && let Some(answer) = direct.ask(ctx, engine)?
        {
            return Ok(answer);
        }
        self.in_scope.clone().restore(ctx)?.call(())
    }
}

impl Direct {
    /// `None`: use the scope object.
    fn ask<'js>(&self, ctx: &Ctx<'js>, engine: &Engine) -> rquickjs::Result<Option<bool>> {
        let mut found = 0;
        let mut values = Vec::with_capacity(self.names.len());
        for (index, (name, is_own)) in self.names.iter().enumerate() {
            match engine.name(name, *is_own) {
                Ok(None) => {}
                Err(_) | Ok(Some(Seen::Unknown(_))) => return Ok(None),
                Ok(Some(seen)) => {
                    found |= 1 << index;
                    values.push(engine.value(ctx, seen)?);
                }
            }
        }
        let Some(form) = self.form(ctx, found)? else {
            return Ok(None);
        };
        let mut args = Args::new(ctx.clone(), self.first.len() + values.len());
        for value in &self.first {
            args.push_arg(value.clone().restore(ctx)?)?;
        }
        for value in values {
            args.push_arg(value)?;
        }
        let is_false: bool = form.call_arg(args)?;
        Ok(Some(!is_false))
    }

    fn form<'js>(&self, ctx: &Ctx<'js>, found: u32) -> rquickjs::Result<Option<Function<'js>>> {
        if let Some(known) = self.forms.borrow().get(&found) {
            return known.clone().map(|form| form.restore(ctx)).transpose();
        }
        let make = self.form.clone().restore(ctx)?;
        let form: Option<Function> = make.call((found,))?;
        let saved = form.clone().map(|form| Persistent::save(ctx, form));
        self.forms.borrow_mut().insert(found, saved);
        Ok(form)
    }
}
