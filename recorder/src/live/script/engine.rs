//! The JavaScript engine: created once per session, limited in time, memory and depth, and isolated from the outside.
//!
//! It is QuickJS-ng without its loaders, so there are no files, modules, processes or timers. Conditions share one
//! context whose built-in objects are frozen, so that no condition can change what another sees. Each has a `state` of
//! its own. A value of the program that is kept there beyond its moment is an error when it is used, never a stale
//! address.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::{Duration, Instant},
};

use rquickjs::{
    Array, CaughtError, Constructor, Context, Ctx, Function, IntoJs, Object, Persistent, Runtime,
    Value, context::EvalOptions,
};

use super::{
    condition::Script,
    program::{Answer, Handle, Program, Seen},
};
use crate::clock;

/// CPU time limit of one evaluation.
pub const TIME_LIMIT: Duration = Duration::from_millis(100);
/// Minimum interval between reads of the CPU clock, each of which is a system call.
const SHORTEST_WAIT: Duration = Duration::from_micros(500);
/// Number of questions about the program between two checks of the clock.
const LOOKS: u32 = 64;
/// Memory limit of all conditions of a session together, in bytes.
pub const MEMORY_LIMIT: usize = 32 << 20;
/// Stack limit of one evaluation, in bytes; a thread has two megabytes.
const STACK_LIMIT: usize = 512 << 10;
/// Number of list elements to read at once.
const PIECE: usize = 64;
/// Maximum number of values that one evaluation may hand out. The handle and the number of the evaluation share the
/// bits of a double.
const HANDLES: u64 = 1 << 20;
/// Doubles represent all integers up to this one.
const EXACT: i128 = 1 << 53;
/// The error for a condition that writes. The prelude has the same text.
const WRITTEN: &str = "a condition only looks: it cannot change the program; what it is to remember goes into state, as in state.count = 1";
const PRELUDE: &str = include_str!("prelude.js");

/// An error in a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Byte offset in the text, from 0.
    pub position: usize,
    /// Line and column, both from 1.
    pub place: (usize, usize),
    /// What is wrong.
    pub message: String,
    /// What to write instead, if there is anything.
    pub hint: Option<&'static str>,
}

pub struct Engine {
    /// The prelude's function that compiles conditions. It must be dropped before the runtime.
    compile: Persistent<Function<'static>>,
    /// The prelude's function that compiles parts of messages.
    compile_text: Persistent<Function<'static>>,
    /// The prelude's function that turns descriptions into values of the program.
    made: Persistent<Function<'static>>,
    shared: Rc<Shared>,
    context: Context,
    runtime: Runtime,
}

/// State of the functions that JavaScript calls.
struct Shared {
    /// The moment that is being evaluated, if any.
    program: RefCell<Option<Rc<dyn Program>>>,
    /// Number of the evaluation.
    turn: Cell<u64>,
    /// No timeout before this time.
    deadline: Cell<Instant>,
    /// The thread's CPU time at the first check. Reading it is a system call, and most evaluations end before that.
    begun: Cell<Option<Duration>>,
    is_late: Cell<bool>,
    /// Number of questions about the program.
    asked: Cell<u32>,
}

impl Engine {
    /// Creates an engine.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new() -> Answer<Engine> {
        Engine::made().map_err(|error| format!("JavaScript cannot be started: {error}"))
    }

    fn made() -> rquickjs::Result<Engine> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(MEMORY_LIMIT);
        runtime.set_max_stack_size(STACK_LIMIT);
        let context = Context::full(&runtime)?;
        let shared = Rc::new(Shared {
            program: RefCell::new(None),
            turn: Cell::new(0),
            deadline: Cell::new(Instant::now()),
            begun: Cell::new(None),
            is_late: Cell::new(false),
            asked: Cell::new(0),
        });
        let (compile, made, compile_text) = context.with(|ctx| {
            let native = natives(&ctx, &shared)?;
            let mut options = EvalOptions::default();
            options.filename = Some("prelude".to_owned());
            let prelude: Function = ctx.eval_with_options(PRELUDE, options)?;
            let made: Array = prelude.call((native,))?;
            let saved = |at| made.get::<Function>(at).map(|f| Persistent::save(&ctx, f));
            Ok::<_, rquickjs::Error>((saved(0)?, saved(1)?, saved(2)?))
        })?;
        let watch = Rc::clone(&shared);
        runtime.set_interrupt_handler(Some(Box::new(move || watch.is_over())));
        Ok(Engine {
            compile,
            compile_text,
            made,
            shared,
            context,
            runtime,
        })
    }

    /// Compiles a condition: one expression.
    ///
    /// # Errors
    /// The text is not an expression. The error says where this was noticed.
    pub fn compile(&self, text: &str) -> Result<Script, Mistake> {
        self.compile_by(&self.compile, text)
    }

    /// Compiles the text between the braces of a message: one expression.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub fn compile_text(&self, text: &str) -> Result<Script, Mistake> {
        self.compile_by(&self.compile_text, text)
    }

    fn compile_by(
        &self,
        compile: &Persistent<Function<'static>>,
        text: &str,
    ) -> Result<Script, Mistake> {
        self.shared.begin(None);
        self.context.with(|ctx| {
            let compile = compile.clone().restore(&ctx);
            let compiled = compile.and_then(|compile| compile.call::<_, Array>((text,)));
            let script = compiled.and_then(|parts| Script::of(&ctx, &parts));
            match CaughtError::catch(&ctx, script) {
                Ok(script) => Ok(script),
                Err(error) => Err(self.mistake(&error, text)),
            }
        })
    }

    /// Returns whether a condition is true at a moment.
    ///
    /// # Errors
    /// It threw, or exceeded a limit; a text for the user.
    pub fn holds(&self, script: &Script, program: Rc<dyn Program>) -> Answer<bool> {
        self.asked(program, |ctx| script.ask(ctx, self))
    }

    /// Returns the text of a part of a message at a moment.
    ///
    /// # Errors
    /// As [`Self::holds`].
    pub fn text(&self, script: &Script, program: Rc<dyn Program>) -> Answer<String> {
        self.asked(program, |ctx| script.text(ctx))
    }

    fn asked<T>(
        &self,
        program: Rc<dyn Program>,
        ask: impl FnOnce(&Ctx<'_>) -> rquickjs::Result<T>,
    ) -> Answer<T> {
        self.shared.begin(Some(program));
        let answer = self.context.with(|ctx| {
            let answer = ask(&ctx);
            CaughtError::catch(&ctx, answer).map_err(|error| self.told(&error))
        });
        *self.shared.program.borrow_mut() = None;
        answer
    }

    /// Looks up a name of a condition in the program. `is_own`: JavaScript has this name itself, which then hides
    /// globals.
    pub(super) fn name(&self, name: &str, is_own: bool) -> Answer<Option<Seen>> {
        let program = self.shared.program()?;
        match is_own {
            true => program.local(name),
            false => by_name(&*program, name),
        }
    }

    /// Converts a value of the program to JavaScript.
    pub(super) fn value<'js>(&self, ctx: &Ctx<'js>, seen: Seen) -> rquickjs::Result<Value<'js>> {
        let is_plain = matches!(
            seen,
            Seen::Null | Seen::Bool(_) | Seen::Float(_) | Seen::Text(_)
        );
        let described = self.shared.described(ctx, seen)?;
        if is_plain || described.is_number() {
            return Ok(described);
        }
        self.made.clone().restore(ctx)?.call((described,))
    }

    /// Explains a condition's error to the user.
    fn told(&self, error: &CaughtError<'_>) -> String {
        if self.shared.is_late.get() {
            return format!(
                "it was ended after {} ms; a condition must not run for longer",
                TIME_LIMIT.as_millis()
            );
        }
        match error {
            CaughtError::Exception(thrown) => {
                let name: Option<String> = thrown.as_object().get("name").ok();
                let message = thrown.message().unwrap_or_default();
                match name.as_deref() {
                    Some("ReferenceError") => match self.unknown_name(&message) {
                        Some(unknown) => format!("ReferenceError: {unknown}"),
                        None => format!("ReferenceError: {message}"),
                    },
                    Some("TypeError") if message.ends_with(" is read-only") => {
                        format!("TypeError: {WRITTEN}")
                    }
                    Some("InternalError") if message == "out of memory" => format!(
                        "it needs too much memory; all conditions of a session have {} MiB together",
                        MEMORY_LIMIT >> 20
                    ),
                    None | Some("Error") => message,
                    Some(name) => format!("{name}: {message}"),
                }
            }
            CaughtError::Value(thrown) => {
                let text = thrown.as_string().and_then(|text| text.to_string().ok());
                let number = || thrown.as_number().map(|number| number.to_string());
                let text = text.or_else(number);
                let text =
                    text.unwrap_or_else(|| format!("something of type {}", thrown.type_name()));
                format!("it threw {text}")
            }
            CaughtError::Error(error) => error.to_string(),
        }
    }

    /// Returns the program's message for a name that the engine does not know.
    fn unknown_name(&self, message: &str) -> Option<String> {
        let name = message.strip_suffix(" is not defined")?;
        let program = self.shared.program.borrow().clone()?;
        Some(program.unknown(name.trim_matches('\'')))
    }

    fn mistake(&self, error: &CaughtError<'_>, text: &str) -> Mistake {
        let stack = match error {
            CaughtError::Exception(thrown) => thrown.stack(),
            _ => None,
        };
        let place = stack.and_then(|stack| first_place(&stack));
        let (line, column) = place.unwrap_or((FIRST_LINE, 1));
        let line = line.saturating_sub(FIRST_LINE) + 1;
        let lines = text.split('\n').take(line.saturating_sub(1));
        let before: usize = lines.map(|line| line.len() + 1).sum();
        let mut position = (before + column.saturating_sub(1)).min(text.len());
        while !text.is_char_boundary(position) {
            position -= 1;
        }
        let message = self.told(error);
        let message = message.strip_prefix("SyntaxError: ").unwrap_or(&message);
        Mistake {
            position,
            place: line_and_column(text, position),
            message: message.to_owned(),
            hint: hint(text, position),
        }
    }
}

/// Returns the line and column of a byte of a text, both from 1, in characters.
fn line_and_column(text: &str, position: usize) -> (usize, usize) {
    let before = &text[..position];
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or_default();
    (line, last.chars().count() + 1)
}

/// Returns what to write instead of words that only the expression language has.
fn hint(text: &str, position: usize) -> Option<&'static str> {
    let near = |word: &str| {
        (0..2).any(|back| {
            let rest = position.checked_sub(back).and_then(|at| text.get(at..));
            rest.is_some_and(|rest| rest.starts_with(word))
        })
    };
    match (near("->"), near("::")) {
        (true, _) => Some("in JavaScript, p->x is p.x"),
        (_, true) => Some("in JavaScript, ns::x is $('ns::x')"),
        _ => None,
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The handler holds the state that the runtime's own functions share.
        self.runtime.set_interrupt_handler(None);
    }
}

/// The line of the compiled function on which a condition begins: after the two lines that the engine writes, and an
/// opening bracket.
const FIRST_LINE: usize = 4;

/// Returns the line and column of the first place in a stack trace: `at NAME:LINE:COLUMN`, with or without brackets.
fn first_place(stack: &str) -> Option<(usize, usize)> {
    let line = stack.lines().next()?.trim_end().trim_end_matches(')');
    let (rest, column) = line.rsplit_once(':')?;
    let (_, line) = rest.rsplit_once(':')?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

impl Shared {
    fn begin(&self, program: Option<Rc<dyn Program>>) {
        *self.program.borrow_mut() = program;
        self.turn.set(self.turn.get() + 1);
        self.deadline.set(Instant::now() + SHORTEST_WAIT);
        self.begun.set(None);
        self.is_late.set(false);
        self.asked.set(0);
    }

    /// Returns whether the time limit is used up. Only the thread's CPU time counts: on a busy machine other threads
    /// may have the processor for longer than the limit.
    fn is_over(&self) -> bool {
        let now = Instant::now();
        if now <= self.deadline.get() {
            return false;
        }
        let used = clock::thread_time();
        let begun = self.begun.get().unwrap_or(used);
        self.begun.set(Some(begun));
        let used = used.saturating_sub(begun);
        match TIME_LIMIT.checked_sub(used) {
            Some(left) => self.deadline.set(now + left.max(SHORTEST_WAIT)),
            None => self.is_late.set(true),
        }
        self.is_late.get()
    }

    /// Returns the program, unless time is up. Ends loops of built-in functions over values of the program.
    fn program(&self) -> Answer<Rc<dyn Program>> {
        self.asked.set(self.asked.get().wrapping_add(1));
        if self.asked.get().is_multiple_of(LOOKS) && self.is_over() {
            return Err("time is up".to_owned());
        }
        let program = self.program.borrow().clone();
        program.ok_or_else(|| "the program is not looked at now".to_owned())
    }

    fn outside(&self, handle: Handle) -> Answer<f64> {
        let handle = handle as u64;
        if handle >= HANDLES {
            return Err(format!("it looks at more than {HANDLES} values"));
        }
        Ok((self.turn.get() * HANDLES + handle) as f64)
    }

    fn handle(&self, id: f64) -> Answer<Handle> {
        let id = id as u64;
        if id / HANDLES != self.turn.get() {
            return Err("this value is of an earlier hit, and may have changed since; keep what is in it, such as a number or a text".to_owned());
        }
        Ok((id % HANDLES) as Handle)
    }

    /// Describes a value for the prelude.
    fn described<'js>(&self, ctx: &Ctx<'js>, seen: Seen) -> rquickjs::Result<Value<'js>> {
        let id = |handle| self.outside(handle).map_err(|why| thrown(ctx, &why));
        match seen {
            Seen::Null => Ok(Value::new_null(ctx.clone())),
            Seen::Bool(value) => Ok(Value::new_bool(ctx.clone(), value)),
            Seen::Float(value) => Ok(Value::new_number(ctx.clone(), value)),
            Seen::Integer(value) => integer(ctx, value),
            Seen::Text(text) => text.into_js(ctx),
            Seen::Object(handle) => tagged(ctx, "object", vec![id(handle)?.into_js(ctx)?]),
            Seen::Pointer(handle) => tagged(ctx, "pointer", vec![id(handle)?.into_js(ctx)?]),
            Seen::List(handle, len) => {
                let parts = vec![id(handle)?.into_js(ctx)?, (len as f64).into_js(ctx)?];
                tagged(ctx, "list", parts)
            }
            Seen::Map(pairs) => {
                let both = pairs.into_iter().flat_map(|(key, value)| [key, value]);
                let parts: rquickjs::Result<_> =
                    both.map(|seen| self.described(ctx, seen)).collect();
                tagged(ctx, "map", parts?)
            }
            Seen::Set(keys) => {
                let keys = keys.into_iter();
                let parts: rquickjs::Result<_> =
                    keys.map(|seen| self.described(ctx, seen)).collect();
                tagged(ctx, "set", parts?)
            }
            Seen::Enumerator { of, name, number } => {
                let key = format!("{of}:{number}");
                let name = match name {
                    Some(name) => name.into_js(ctx)?,
                    None => Value::new_null(ctx.clone()),
                };
                let number = plain(ctx, number);
                tagged(ctx, "enumerator", vec![key.into_js(ctx)?, name, number])
            }
            Seen::Unknown(why) => tagged(ctx, "unknown", vec![why.into_js(ctx)?]),
        }
    }
}

fn plain<'js>(ctx: &Ctx<'js>, number: i128) -> Value<'js> {
    match i32::try_from(number) {
        Ok(number) => Value::new_int(ctx.clone(), number),
        Err(_) => Value::new_number(ctx.clone(), number as f64),
    }
}

fn integer<'js>(ctx: &Ctx<'js>, number: i128) -> rquickjs::Result<Value<'js>> {
    match (-EXACT..=EXACT).contains(&number) {
        true => Ok(plain(ctx, number)),
        false => tagged(ctx, "big", vec![number.to_string().into_js(ctx)?]),
    }
}

fn tagged<'js>(ctx: &Ctx<'js>, kind: &str, parts: Vec<Value<'js>>) -> rquickjs::Result<Value<'js>> {
    let array = rquickjs::Array::new(ctx.clone())?;
    array.set(0, kind)?;
    for (at, part) in parts.into_iter().enumerate() {
        array.set(at + 1, part)?;
    }
    Ok(array.into_value())
}

/// Throws an `Error`. Its constructor makes it: the prototype is frozen, so its properties cannot be set one by one.
fn thrown(ctx: &Ctx<'_>, why: &str) -> rquickjs::Error {
    let constructor = ctx.globals().get::<_, Constructor>("Error");
    let made = constructor.and_then(|constructor| constructor.construct::<_, Value>((why,)));
    match made {
        Ok(error) => ctx.throw(error),
        Err(error) => error,
    }
}

/// Returns the functions that the prelude calls.
fn natives<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    native.set("piece", PIECE as u32)?;
    names(ctx, &native, shared)?;
    insides(ctx, &native, shared)?;
    Ok(native)
}

/// Queries the program and returns its answer, or `undefined` if there is none.
fn said<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    ask: impl FnOnce(&dyn Program) -> Answer<Option<Seen>>,
) -> rquickjs::Result<Value<'js>> {
    let found = shared.program().and_then(|program| ask(&*program));
    match found.map_err(|why| thrown(ctx, &why))? {
        Some(seen) => shared.described(ctx, seen),
        None => Ok(Value::new_undefined(ctx.clone())),
    }
}

fn by_name(program: &dyn Program, name: &str) -> Answer<Option<Seen>> {
    let local = program.local(name)?;
    Ok(local.or_else(|| program.global(name)))
}

fn names<'js>(ctx: &Ctx<'js>, native: &Object<'js>, shared: &Rc<Shared>) -> rquickjs::Result<()> {
    let own = Rc::clone(shared);
    let name =
        move |ctx: Ctx<'js>, name: String| said(&ctx, &own, |program| by_name(program, &name));
    native.set("name", Function::new(ctx.clone(), name)?)?;
    let own = Rc::clone(shared);
    let is_name = move |name: String| {
        let program = own.program();
        program.is_ok_and(|program| by_name(&*program, &name).is_ok_and(|found| found.is_some()))
    };
    native.set("isName", Function::new(ctx.clone(), is_name)?)?;
    let own = Rc::clone(shared);
    let is_local = move |name: String| {
        let program = own.program();
        program.is_ok_and(|program| !matches!(program.local(&name), Ok(None)))
    };
    native.set("isLocal", Function::new(ctx.clone(), is_local)?)?;
    let own = Rc::clone(shared);
    let unknown = move |name: String| match own.program() {
        Ok(program) => program.unknown(&name),
        Err(why) => why,
    };
    native.set("unknown", Function::new(ctx.clone(), unknown)?)?;
    let own = Rc::clone(shared);
    let argument = move |ctx: Ctx<'js>, number: f64| {
        said(&ctx, &own, |program| {
            program.argument(number as u32).map(Some)
        })
    };
    native.set("argument", Function::new(ctx.clone(), argument)?)?;
    let own = Rc::clone(shared);
    let parameter = move |ctx: Ctx<'js>, name: String| {
        said(&ctx, &own, |program| match program.local(&name)? {
            Some(seen) => Ok(Some(seen)),
            None => Err(program.unknown(&name)),
        })
    };
    native.set("parameter", Function::new(ctx.clone(), parameter)?)?;
    let own = Rc::clone(shared);
    let count = move || own.program().map_or(0, |program| program.argument_count());
    native.set("argumentCount", Function::new(ctx.clone(), count)?)?;
    let own = Rc::clone(shared);
    let expression = move |ctx: Ctx<'js>, text: String| {
        said(&ctx, &own, |program| program.expression(&text).map(Some))
    };
    native.set("expression", Function::new(ctx.clone(), expression)?)
}

fn insides<'js>(ctx: &Ctx<'js>, native: &Object<'js>, shared: &Rc<Shared>) -> rquickjs::Result<()> {
    let own = Rc::clone(shared);
    let member = move |ctx: Ctx<'js>, id: f64, name: String| {
        said(&ctx, &own, |program| program.member(own.handle(id)?, &name))
    };
    native.set("member", Function::new(ctx.clone(), member)?)?;
    let own = Rc::clone(shared);
    let members = move |ctx: Ctx<'js>, id: f64| {
        let asked = own
            .program()
            .and_then(|program| Ok(program.members(own.handle(id)?)));
        asked.map_err(|why| thrown(&ctx, &why))
    };
    native.set("members", Function::new(ctx.clone(), members)?)?;
    let own = Rc::clone(shared);
    let missing = move |id: f64, name: String| {
        let asked = own
            .program()
            .and_then(|program| Ok(program.missing(own.handle(id)?, &name)));
        asked.unwrap_or_else(|why| why)
    };
    native.set("missing", Function::new(ctx.clone(), missing)?)?;
    let own = Rc::clone(shared);
    let elements = move |ctx: Ctx<'js>, id: f64, from: f64| -> rquickjs::Result<Value<'js>> {
        let ask = || own.program()?.elements(own.handle(id)?, from as u64, PIECE);
        let found = ask().map_err(|why| thrown(&ctx, &why))?;
        let array = rquickjs::Array::new(ctx.clone())?;
        for (at, seen) in found.into_iter().enumerate() {
            array.set(at, own.described(&ctx, seen)?)?;
        }
        Ok(array.into_value())
    };
    native.set("elements", Function::new(ctx.clone(), elements)?)?;
    let own = Rc::clone(shared);
    let at = move |ctx: Ctx<'js>, id: f64, index: f64| {
        said(&ctx, &own, |program| {
            program.at(own.handle(id)?, index as i64).map(Some)
        })
    };
    native.set("at", Function::new(ctx.clone(), at)?)?;
    let own = Rc::clone(shared);
    let text = move |ctx: Ctx<'js>, id: f64| {
        let asked = own
            .program()
            .and_then(|program| Ok(program.text(own.handle(id)?)));
        asked.map_err(|why| thrown(&ctx, &why))
    };
    native.set("text", Function::new(ctx.clone(), text)?)
}
