//! The state of the program at a moment, as the verbs `print`, `locals` and `backtrace` show it.

use server::client::Wait;
use server::inspect::{FrameReport, Shown, VariableReport};
use server::past::Position;
use server::transport::Transport;
use server::verbs::{self, BacktraceArgs, FrameArgs, LocalsArgs, PrintArgs, ThreadArgs, Verb};

use crate::error::{Error, Result};
use crate::recording::Recording;

/// A thread of the program just after an event, and one of its frames. Questions about the moments of one recording are
/// answered one after the other.
///
/// ```no_run
/// # let recording = hindsight::Recording::open("ten")?;
/// let moment = recording.at(7)?;
/// for frame in moment.backtrace()?.frames {
///     println!("{}", frame.function.unwrap_or(frame.address));
/// }
/// # Ok::<(), hindsight::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Moment<'r> {
    recording: &'r Recording,
    position: Position,
}

/// How far a value is certain.
///
/// ```no_run
/// # let recording = hindsight::Recording::open("ten")?;
/// use hindsight::Certainty;
///
/// let value = recording.at(7)?.value("total")?;
/// match value.certainty {
///     Certainty::Stale { as_of } => println!("{} at event {as_of}", value.text),
///     Certainty::Unknown { why } => println!("not known: {why}"),
///     _ => println!("{}", value.text),
/// }
/// # Ok::<(), hindsight::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Certainty {
    /// It is the value at this moment.
    Known,
    /// Some members are known, others are not: the text says which.
    Partial,
    /// An event showed it, or a part of it, and it may have changed since.
    Stale {
        /// The event; the earliest of several.
        as_of: u64,
    },
    /// It is what a parameter was at the entry of its function: the present value is not known.
    AtEntry,
    /// No event up to here showed it.
    Unknown {
        /// The reason.
        why: String,
    },
}

/// A value as the program shows it.
///
/// ```no_run
/// # let recording = hindsight::Recording::open("ten")?;
/// let n = recording.at(7)?.value("n")?;
/// println!("({}) {}", n.type_name, n.text);
/// # Ok::<(), hindsight::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Value {
    /// The value; `<why>` if it is not known. A stale one says so too: `3 <stale: as of event 15>`.
    pub text: String,
    /// The name of its type.
    pub type_name: String,
    /// Whether it is known.
    pub certainty: Certainty,
    /// Its address in hexadecimal, if it is in memory.
    pub address: Option<String>,
    /// The expression of the first part that is too long for the text; [`Moment::value_in_full`] shows all.
    pub left_out: Option<String>,
    /// A remark, such as what a parameter was at the entry of its function when its present value is not known.
    pub note: Option<String>,
}

/// A variable of a frame.
///
/// ```no_run
/// # let recording = hindsight::Recording::open("ten")?;
/// for variable in recording.at(7)?.locals()? {
///     println!("{} = {}", variable.name, variable.value.text);
/// }
/// # Ok::<(), hindsight::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// It is a parameter.
    pub is_parameter: bool,
    /// A variable of the same name in an inner scope hides it.
    pub shadowed: bool,
    /// The line that declares it.
    pub line: Option<u32>,
}

/// The calls that led to a moment.
///
/// ```no_run
/// # let recording = hindsight::Recording::open("ten")?;
/// let trace = recording.at(7)?.backtrace()?;
/// println!("{} frames, {}", trace.frames.len(), trace.end.unwrap_or_default());
/// # Ok::<(), hindsight::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backtrace {
    /// The frames, innermost first.
    pub frames: Vec<Frame>,
    /// There are more frames.
    pub more: bool,
    /// Why the frames end before the outermost one, if they do.
    pub end: Option<String>,
}

/// A frame.
///
/// ```no_run
/// # let recording = hindsight::Recording::open("ten")?;
/// let frame = &recording.at(7)?.backtrace()?.frames[0];
/// if let (Some(file), Some(line)) = (&frame.file, frame.line) {
///     println!("{file}:{line}");
/// }
/// # Ok::<(), hindsight::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// Its number, counted from 0 for the innermost frame.
    pub index: usize,
    /// Its function.
    pub function: Option<String>,
    /// Its parameters.
    pub arguments: Vec<Variable>,
    /// Its source file.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The module's file.
    pub module: Option<String>,
    /// The address of the next instruction, in hexadecimal; of the function, if only that is known.
    pub address: String,
    /// Only the function is known, not the position in it.
    pub somewhere: bool,
    /// The frame is an inlined call.
    pub inlined: bool,
    /// Calls that were not recorded may lie between this frame and the one inside it.
    pub after_gap: bool,
}

impl<'r> Moment<'r> {
    pub(crate) fn new(recording: &'r Recording, position: Position) -> Self {
        Self {
            recording,
            position,
        }
    }

    /// Returns the event's number.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// assert_eq!(recording.at(7)?.seq(), 7);
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.position.seq
    }

    /// Returns the number of the thread.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// println!("thread {}", recording.at(7)?.tid());
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    #[must_use]
    pub fn tid(&self) -> u32 {
        self.position.tid
    }

    /// Returns the same moment of another thread, in its innermost frame.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// let other = recording.at(7)?.in_thread(4711)?;
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoMoment`]: there is no such thread.
    pub fn in_thread(self, tid: u32) -> Result<Moment<'r>> {
        let thread = Some(tid as i32);
        self.select::<verbs::Thread>(&ThreadArgs { thread })
    }

    /// Returns the same moment in another frame, counted from 0 for the innermost.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// let caller = recording.at(7)?.in_frame(1)?;
    /// println!("{}", caller.value("n")?.text);
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoMoment`]: there is no such frame.
    pub fn in_frame(self, index: usize) -> Result<Moment<'r>> {
        let index = Some(index);
        self.select::<verbs::Frame>(&FrameArgs {
            index,
            ..FrameArgs::default()
        })
    }

    /// Returns the value of an expression, such as `x`, `a.b`, `*p`, `v[5]` or `$rax`, in the frame.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// let pieces = recording.at(7)?.value("order->pieces")?;
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Expression`]. A value that is not known is no error.
    pub fn value(&self, expression: &str) -> Result<Value> {
        self.print(expression, false)
    }

    /// As [`Self::value`]; the text leaves nothing out, however long it is.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// assert_eq!(recording.at(7)?.value_in_full("table")?.left_out, None);
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Self::value`].
    pub fn value_in_full(&self, expression: &str) -> Result<Value> {
        self.print(expression, true)
    }

    fn print(&self, expression: &str, full: bool) -> Result<Value> {
        let report = self.ask::<verbs::Print>(&PrintArgs {
            expression: expression.to_owned(),
            format: Default::default(),
            with_type: false,
            full,
        })?;
        Ok(Value {
            note: report.note,
            ..Value::new(report.shown, report.type_name)
        })
    }

    /// Returns the variables in scope in the frame, innermost scope first, parameters included.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// let locals = recording.at(7)?.locals()?;
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoMoment`]: no frame is known, or where in it the thread was. [`Error::Expression`]: the module's file is
    /// missing.
    pub fn locals(&self) -> Result<Vec<Variable>> {
        let reply = self.ask::<verbs::Locals>(&LocalsArgs::default())?;
        Ok(reply.variables.into_iter().map(Variable::new).collect())
    }

    /// Returns the calls that led here, at most 100 frames.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// let frames = recording.goto("crash")?.backtrace()?.frames;
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// The recording cannot be read. A stack that is not known has no frames.
    pub fn backtrace(&self) -> Result<Backtrace> {
        self.trace(None)
    }

    /// As [`Self::backtrace`], with another limit of frames.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// let nearest = recording.goto("crash")?.backtrace_up_to(3)?;
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Self::backtrace`].
    pub fn backtrace_up_to(&self, limit: usize) -> Result<Backtrace> {
        self.trace(Some(limit))
    }

    fn trace(&self, limit: Option<usize>) -> Result<Backtrace> {
        let reply = self.ask::<verbs::Backtrace>(&BacktraceArgs {
            // One more is asked for, to know whether there are more.
            limit: limit.map(|limit| limit.min(usize::MAX - 1)),
            ..BacktraceArgs::default()
        })?;
        let stack = reply.threads.into_iter().next();
        let stack = stack.expect("one thread was asked for").stack;
        Ok(Backtrace {
            frames: stack.frames.into_iter().map(Frame::new).collect(),
            more: stack.more,
            end: stack.end,
        })
    }

    fn select<V: Verb>(self, args: &V::Args) -> Result<Moment<'r>> {
        self.recording.look(self.position, |states| {
            answer::<V>(states, args)?;
            Ok(Moment::new(self.recording, states.past().position()))
        })
    }

    fn ask<V: Verb>(&self, args: &V::Args) -> Result<V::Reply> {
        let work = |states: &mut _| answer::<V>(states, args);
        self.recording.look(self.position, work)
    }
}

/// Runs a verb; what it says before its answer is for people at a terminal.
fn answer<V: Verb>(states: &mut impl Transport, args: &V::Args) -> Result<V::Reply> {
    let wait = Wait {
        patience: None,
        notify: &mut |_| {},
    };
    states.call::<V>(args, None, wait).map_err(Error::of_server)
}

impl Value {
    fn new(shown: Shown, type_name: String) -> Self {
        Self {
            text: shown.text(),
            type_name,
            certainty: match (shown.value, shown.stale_since, shown.unknown) {
                (None, _, why) => Certainty::Unknown {
                    why: why.unwrap_or_else(|| "not known".to_owned()),
                },
                (Some(_), Some(as_of), _) => Certainty::Stale { as_of },
                (Some(_), None, _) if shown.is_partial => Certainty::Partial,
                (Some(_), None, _) => Certainty::Known,
            },
            address: shown.address,
            left_out: shown.left_out,
            note: None,
        }
    }
}

impl Variable {
    fn new(report: VariableReport) -> Self {
        let value = Value::new(report.shown, report.type_name);
        Self {
            name: report.name,
            value: match report.at_entry {
                true => Value {
                    certainty: Certainty::AtEntry,
                    ..value
                },
                false => value,
            },
            is_parameter: report.is_parameter,
            shadowed: report.shadowed,
            line: report.line,
        }
    }
}

impl Frame {
    fn new(report: FrameReport) -> Self {
        let arguments = report.args.unwrap_or_default().into_iter();
        Self {
            index: report.index,
            function: report.function,
            arguments: arguments.map(Variable::new).collect(),
            file: report.file,
            line: report.line,
            module: report.module,
            address: report.address,
            somewhere: report.somewhere,
            inlined: report.inlined,
            after_gap: report.after_gap,
        }
    }
}

impl std::fmt::Debug for Moment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Position { seq, tid, .. } = self.position;
        write!(f, "Moment(event {seq}, thread {tid})")
    }
}
