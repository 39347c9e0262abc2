//! The verbs. Each has its own file with its description, arguments, reply and implementation. The list below is
//! complete: a new verb is a new file and an entry there.
//!
//! A verb that only reads uses `inspect`; one that runs the program waits through `stepping`; those about probes share
//! `probes`.

mod advance;
mod args;
mod attach;
mod r#await;
mod backtrace;
mod r#break;
mod call;
mod calls;
mod catch;
mod close;
mod commands;
mod condition;
mod r#continue;
mod detach;
mod disassemble;
pub(crate) mod display;
mod down;
mod echo;
mod eval;
mod examine;
mod finish;
mod frame;
mod full;
mod gcore;
mod goto;
mod handle;
mod history;
mod ignore;
mod info_address;
mod info_breakpoints;
mod info_frame;
mod info_functions;
mod info_line;
mod info_proc;
mod info_scope;
mod info_shared;
mod info_signals;
mod info_source;
mod info_symbol;
mod info_types;
mod info_variables;
mod jump;
mod last_write;
mod locals;
mod logpoint;
mod memory;
mod names;
mod next;
mod next_back;
mod note;
mod notes;
mod object;
mod open;
mod output;
mod overloads;
mod page;
mod pattern;
mod pause;
mod position;
mod print;
mod printf;
mod probe_text;
mod probe_words;
mod probes;
mod ptype;
mod rbreak;
mod registers;
mod restart;
mod r#return;
mod reverse_continue;
mod reverse_finish;
mod save_breakpoints;
mod set;
mod settle;
mod show;
mod source;
mod start;
mod status;
mod step;
mod step_back;
mod stepping;
mod stop;
mod subscribe;
mod text;
mod thread;
mod thread_apply;
mod threads;
mod trace;
mod undisplay;
mod until;
mod up;
mod verb;
mod watch;
mod whatis;
mod r#where;
mod why;
mod write;

use serde_json::Value;

pub use call::{Asked, Call};
pub use history::lies_at;
pub use history::moment as moment_of_change;
pub use history::place as place_of_change;
pub(crate) use last_write::LEFT_OVER;
pub use page::PageArgs;
pub(crate) use probes::checked_location;
pub use probes::{Chosen, ProbeArgs, ProbeKind, ProbeReport, ProbesReply};
pub use show::session as session_text;
pub use stepping::{StepArgs, TimeoutArgs};
pub use text::{Column, Piece, Style, Text};
pub use verb::{Command, Does, Form, Needs, Takes, Verb, WaitsFor, Word};

use crate::protocol::Failure;

/// Arguments of a verb that takes none.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// An operation on a verb that is found by its name.
pub trait Visitor {
    /// The result.
    type Output;

    /// Runs the operation on verb `V`.
    fn visit<V: Verb>(self) -> Self::Output;
}

/// As [`Visitor`], for verbs that define their command line.
pub trait CommandVisitor {
    /// The result.
    type Output;

    /// Runs the operation on verb `V`.
    fn visit<V: Command>(self) -> Self::Output;
}

/// The description of a verb, without its types.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// [`Verb::NAME`].
    pub name: &'static str,
    /// [`Verb::DOC`].
    pub doc: &'static str,
    /// [`Verb::ALIASES`].
    pub aliases: &'static [&'static str],
    /// [`Verb::NEEDS`].
    pub needs: Needs,
    /// [`Verb::DOES`].
    pub does: Does,
    /// [`Verb::TAKES`].
    pub takes: Takes,
    /// [`Command::WORDS`], if the verb defines its command line.
    pub words: Option<&'static [Word]>,
}

const fn described<V: Verb>(words: Option<&'static [Word]>) -> Description {
    Description {
        name: V::NAME,
        doc: V::DOC,
        aliases: V::ALIASES,
        needs: V::NEEDS,
        does: V::DOES,
        takes: V::TAKES,
        words,
    }
}

macro_rules! verbs {
    (
        { $($module:ident { $verb:ident $(, $item:ident)* })* }
        commands { $($command_module:ident { $command:ident $(, $command_item:ident)* })* }
    ) => {
        $(pub use $module::{$verb $(, $item)*};)*
        $(pub use $command_module::{$command $(, $command_item)*};)*

        /// All verbs.
        pub const ALL: &[Description] = &[
            $(described::<$verb>(None),)*
            $(described::<$command>(Some(<$command as Command>::WORDS)),)*
        ];

        /// Passes the verb of this name to a visitor; `None` if there is none.
        pub fn visit<T: Visitor>(name: &str, visitor: T) -> Option<T::Output> {
            $(if name == <$verb as Verb>::NAME { return Some(visitor.visit::<$verb>()); })*
            $(if name == <$command as Verb>::NAME { return Some(visitor.visit::<$command>()); })*
            None
        }

        /// Passes the verb of this name to a visitor; `None` if there is none or it does not define its command line.
        pub fn visit_command<T: CommandVisitor>(name: &str, visitor: T) -> Option<T::Output> {
            $(if name == <$command as Verb>::NAME { return Some(visitor.visit::<$command>()); })*
            None
        }
    };
}

verbs! {
    {
        attach { Attach, AttachArgs }
        detach { Detach }
        names { Names, NamesArgs, NamesReply, NameKind }
        output { Output, OutputArgs, OutputPiece, OutputReply, OutputPieces }
        position { Position, PositionReply, When }
        settle { Settle }
        start { Start, StartArgs }
        stop { Stop, EndReply }
        subscribe { Subscribe, SubscribeArgs, SubscribeReply }
        write { Write, WriteArgs, WriteTarget }
    }
    commands {
        restart { Restart }
        status { Status, StatusReply }
        note { Note, NoteArgs, NoteReply }
        r#break { Break, BreakAdd, BreakReply }
        logpoint { Logpoint, LogpointAdd, LogpointReply }
        watch { Watch, WatchAccess, WatchAdd, WatchReply }
        catch { Catch, CatchAdd, Caught }
        r#continue { Continue, ContinueArgs }
        next { Next }
        step { Step }
        finish { Finish }
        until { Until, UntilArgs }
        advance { Advance, AdvanceArgs }
        pause { Pause, PauseArgs }
        r#await { Await, AwaitArgs }
        r#where { Where, WhereArgs, WhereReply }
        backtrace { Backtrace, BacktraceArgs, BacktraceReply }
        frame { Frame, FrameArgs, FrameReply }
        full { Full, FullArgs, FullReply, StepsReport }
        up { Up }
        down { Down, DownArgs }
        threads { Threads, ThreadReport, ThreadsReply }
        thread { Thread, ThreadArgs }
        thread_apply { ThreadApply, ThreadApplyArgs, ThreadApplyReply, OfThread }
        source { Source, SourceArgs }
        disassemble { Disassemble, DisassembleArgs }
        locals { Locals, LocalsArgs, VariablesReply }
        args { Args }
        print { Print, PrintArgs }
        display { Display, DisplayArgs, DisplaysReply }
        undisplay { Undisplay, UndisplayArgs }
        eval { Eval, EvalArgs }
        set { Set, SetArgs, SetReply, Written }
        memory { Memory, MemoryArgs, MemoryReply }
        registers { Registers, RegisterReport, RegistersArgs, RegistersReply }
        calls { Calls, CallsArgs, CallsReply }
        close { Close, CloseReply }
        goto { Goto, GotoArgs }
        history { History, HistoryArgs, HistoryReply }
        last_write { LastWrite, LastWriteArgs, LastWriteReply }
        next_back { NextBack }
        notes { Notes, NotesReply, NoteLine }
        object { Object, ObjectArgs }
        open { Open, OpenArgs }
        ptype { Ptype, PtypeArgs, PtypeReply }
        reverse_continue { ReverseContinue }
        reverse_finish { ReverseFinish }
        step_back { StepBack, CountArgs }
        trace { Trace, TraceArgs, TraceReply }
        why { Why, WhyArgs }
        whatis { Whatis, WhatisReply }
        examine { Examine, ExamineArgs, ExamineReply, ExamineRow }
        printf { Printf, PrintfArgs, PrintfReply }
        echo { Echo, EchoArgs, EchoReply }
        info_address { InfoAddress, InfoAddressArgs, InfoAddressReply }
        info_breakpoints { InfoBreakpoints, InfoBreakpointsReply }
        info_frame { InfoFrame, InfoFrameReply, NeighbourFrame, SavedRegister }
        info_functions { InfoFunctions, InfoFunctionsReply, FunctionLine, ListingArgs }
        info_line { InfoLine, InfoLineArgs, InfoLineReply, LineCode }
        info_proc { InfoProc, InfoProcReply }
        info_scope { InfoScope, InfoScopeArgs, InfoScopeReply, ScopeLine }
        info_shared { InfoShared, InfoSharedReply, ModuleLine }
        info_signals { InfoSignals, InfoSignalsArgs, InfoSignalsReply, SignalLine }
        info_source { InfoSource, InfoSourceReply }
        info_symbol { InfoSymbol, InfoSymbolArgs, InfoSymbolReply }
        info_types { InfoTypes, InfoTypesReply }
        info_variables { InfoVariables, InfoVariablesReply, VariableLine }
        commands { Commands, CommandsArgs, CommandsReply, LinesOf }
        condition { Condition, ConditionArgs }
        ignore { Ignore, IgnoreArgs }
        rbreak { Rbreak, RbreakArgs }
        save_breakpoints { SaveBreakpoints, SaveBreakpointsArgs, SaveBreakpointsReply }
        handle { Handle, HandleArgs, HandleReply }
        gcore { Gcore, GcoreArgs, GcoreReply }
        jump { Jump, JumpArgs }
        r#return { Return, ReturnArgs }
    }
}

/// Serves a request in JSON.
struct Served<'c, 'a> {
    call: &'c Call<'a>,
    args: Value,
}

impl Visitor for Served<'_, '_> {
    type Output = Result<Value, Failure>;

    fn visit<V: Verb>(self) -> Self::Output {
        let args = match self.args {
            Value::Null => Value::Object(serde_json::Map::new()),
            Value::Object(fields) => Value::Object(fields),
            // serde would accept a list as the fields in their order.
            _ => {
                let message = format!("the arguments of {} are not an object", V::NAME);
                return Err(Failure::bad_request(message).hint("write {\"name\": value}"));
            }
        };
        let args = serde_json::from_value(args).map_err(|error| {
            Failure::bad_request(format!(
                "{} does not take these arguments: {error}",
                V::NAME
            ))
        })?;
        let reply = self.call.run::<V>(args)?;
        Ok(serde_json::to_value(reply).expect("replies are JSON"))
    }
}

/// Returns the names of all verbs.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|verb| verb.name)
}

/// Returns the verb with this name or alias. Hyphens are accepted for underscores.
#[must_use]
pub fn find(name: &str) -> Option<&'static Description> {
    let name = name.replace('-', "_");
    let is_meant = |verb: &&Description| verb.name == name || verb.aliases.contains(&&*name);
    ALL.iter().find(is_meant)
}

/// Serves a request.
///
/// # Errors
/// The verb fails, or [`crate::protocol::Code::BadRequest`] for an unknown verb or wrong arguments.
pub fn serve(call: &Call<'_>, command: &str, args: Value) -> Result<Value, Failure> {
    let name = find(command).map_or(command, |verb| verb.name);
    visit(name, Served { call, args }).unwrap_or_else(|| Err(unknown(command)))
}

fn unknown(command: &str) -> Failure {
    let aliases = ALL.iter().flat_map(|verb| verb.aliases).copied();
    let mut near: Vec<(f64, &str)> = names()
        .chain(aliases)
        // Any word that begins with its letter would be similar to a name of one letter.
        .filter(|name| name.len() > 1)
        .map(|name| (strsim::jaro_winkler(command, name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut failure = Failure::bad_request(format!("there is no verb \"{command}\""));
    let nearest = near.iter().take(3).map(|(_, n)| (*n).to_owned());
    failure.details.nearest = nearest.collect();
    failure.hint = Some(match failure.details.nearest.as_slice() {
        [] => format!("verbs: {}", names().collect::<Vec<_>>().join(", ")),
        near => format!("did you mean {}?", near.join(" or ")),
    });
    failure
}

#[cfg(test)]
mod tests;
