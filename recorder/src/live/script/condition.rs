//! A compiled condition, or what stands in a message, and how it is asked.
//!
//! JavaScript that finds its names in an object of ours asks that object at each of them, which takes longer than all the rest.
//! So the names that a condition may use are taken from its text, all that the program has are looked up before it begins, and it
//! is called with them. Where one of them has no value, or the text may look for names in another way, it is asked in the scope:
//! then it is told what it misses.

use std::{cell::RefCell, collections::HashMap};

use rquickjs::{Array, Ctx, Function, Persistent, Value, function::Args};

use super::{engine::Engine, program::Seen};

/// A condition with its `state`.
pub struct Script {
    /// Finds its names in the scope.
    in_scope: Persistent<Function<'static>>,
    direct: Option<Direct>,
}

/// How it is called with its names.
struct Direct {
    /// The names, and whether JavaScript has them itself.
    names: Vec<(String, bool)>,
    /// `state`, `args` and `$`.
    first: Vec<Persistent<Value<'static>>>,
    /// Makes the function for the names that are found, as bits.
    form: Persistent<Function<'static>>,
    /// Those made so far; `None`: it is to be asked in the scope.
    forms: RefCell<HashMap<u32, Option<Persistent<Function<'static>>>>>,
}

impl Script {
    /// Takes what the prelude has made of a condition.
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

    /// The text that it stands for at the moment that the engine looks at.
    pub(super) fn text(&self, ctx: &Ctx<'_>) -> rquickjs::Result<String> {
        self.in_scope.clone().restore(ctx)?.call(())
    }

    /// The same, asked in the scope only.
    #[cfg(test)]
    pub(super) fn in_scope_alone(self) -> Script {
        Script {
            direct: None,
            ..self
        }
    }

    /// StoplessQueries it about the moment that the engine looks at.
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
    /// `None`: it is to be asked in the scope.
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
