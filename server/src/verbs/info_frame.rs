//! `info_frame`: where a frame lies, where it returns to, and where the registers of its caller are saved.

use std::fmt::Write;
use std::path::Path;

use debuginfo::types::Language;
use debuginfo::{Certainty, Frame, Register, Unknown, at_frame, brief_name, scope};
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, FrameArgs, Needs, Text, Verb, Word, frame, show};
use crate::inspect::{self, FrameReport, Manner, View};
use crate::protocol::Failure;
use crate::session::{MAX_FRAMES, Session, hex};

/// The `info_frame` verb.
pub struct InfoFrame;

/// The reply of `info_frame`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InfoFrameReply {
    /// The frame, with its arguments if they are known.
    pub frame: FrameReport,
    /// Its address, in hexadecimal: the value of rsp before the call that made it (the CFA).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Why its address is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_address: Option<String>,
    /// The address that it returns to, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_rip: Option<String>,
    /// The event at which that address was last seen, if it may have changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<u64>,
    /// Why it is not known where the frame returns to, and where registers are saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_caller: Option<String>,
    /// It returns to no other frame.
    pub outermost: bool,
    /// The number of the frame that this inlined call is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inlined_into: Option<usize>,
    /// The frame that called this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_by: Option<NeighbourFrame>,
    /// The frame that this one called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_of: Option<NeighbourFrame>,
    /// The source language of its code, if the debug information names one of `c`, `c++`, `rust`, `fortran`, `ada`, `asm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The registers of the caller that this frame saved in memory.
    pub saved: Vec<SavedRegister>,
}

/// A frame beside the one that is described.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeighbourFrame {
    /// Its number.
    pub index: usize,
    /// Its address, in hexadecimal, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// A register in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRegister {
    /// Its name.
    pub name: String,
    /// Where it is saved, in hexadecimal.
    pub address: String,
}

/// The general registers by their DWARF numbers, in gdb's order.
const SAVED: [u16; 17] = [0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

impl Verb for InfoFrame {
    const NAME: &'static str = "info_frame";
    const DOC: &'static str = "Show where a frame lies, what it returns to, and its saved registers\n\n  info frame     info frame 2     info frame function main\n\nThe selected frame stays selected.";
    const NEEDS: Needs = Needs::Stop;
    const DOES: Does = Does::Look;
    type Args = FrameArgs;
    type Reply = InfoFrameReply;

    fn run(call: &Call<'_>, args: FrameArgs) -> Result<InfoFrameReply, Failure> {
        match call.target()? {
            Session::Live(session) => {
                let stop = match call.other_thread() {
                    Some(tid) => session.stopped_thread(tid)?,
                    None => session.stopped()?,
                };
                let moment = session.moment_of(stop, MAX_FRAMES)?;
                let stack = Stack {
                    view: moment.view(),
                    end: moment.backtrace.end.as_ref(),
                    gaps: &[],
                };
                stack.described(&args)
            }
            Session::Recorded(past) => {
                let position = match call.other_thread() {
                    Some(tid) => past.position_of(past.known_thread(tid)?),
                    None => past.position(),
                };
                past.look_at(position, MAX_FRAMES, |looked| {
                    let trace = &looked.moment.trace;
                    let stack = Stack {
                        view: looked.view(),
                        end: trace.backtrace.end.as_ref(),
                        gaps: &trace.gaps,
                    };
                    stack.described(&args)
                })
            }
        }
    }
}

impl Command for InfoFrame {
    const WORDS: &'static [Word] = frame::Frame::WORDS;

    fn text(reply: &InfoFrameReply, _: &FrameArgs) -> Text {
        let mut text = Text::line(reply.heading());
        text.push(reply.position());
        let neighbours = reply.neighbours();
        if !neighbours.is_empty() {
            text.push(format!(" {}", neighbours.join(", ")));
        }
        if let Some(language) = &reply.language {
            text.push(format!(" source language {language}."));
        }
        if let Some(args) = &reply.frame.args {
            let args = format!(" args: {}", show::arguments(args));
            text.push(args.trim_end());
        }
        if let Some(at) = &reply.at {
            text.push(format!(" Previous frame's sp is {at}"));
        }
        if !reply.saved.is_empty() {
            let saved = reply.saved.iter();
            let saved = saved.map(|register| format!("{} at {}", register.name, register.address));
            text.push(" Saved registers:");
            text.push(format!("  {}", saved.collect::<Vec<_>>().join(", ")));
        }
        text
    }
}

impl InfoFrameReply {
    fn heading(&self) -> String {
        let level = self.frame.index;
        match (&self.at, &self.no_address) {
            (Some(at), _) => format!("Stack level {level}, frame at {at}:"),
            (None, Some(why)) => {
                format!("Stack level {level}, frame at an unknown address ({why}):")
            }
            (None, None) => format!("Stack level {level}, frame at an unknown address:"),
        }
    }

    /// The line of the instruction and of the address that the frame returns to.
    fn position(&self) -> String {
        let frame = &self.frame;
        let name = frame.short_name.as_ref().or(frame.function.as_ref());
        let name = name.map(|name| brief_name(name));
        let mut text = match (frame.somewhere, &name) {
            (true, Some(name)) => format!(" rip is not known: somewhere in {name}"),
            (false, Some(name)) => format!(" rip = {} in {name}", frame.address),
            (_, None) => format!(" rip = {}", frame.address),
        };
        // Writing to a String cannot fail.
        if let (Some(file), Some(line)) = (&frame.file, frame.line) {
            _ = write!(text, " ({file}:{line})");
        }
        match (&self.saved_rip, self.stale_since, &self.no_caller) {
            (Some(rip), None, _) => _ = write!(text, "; saved rip = {rip}"),
            (Some(rip), Some(seq), _) => {
                _ = write!(text, "; saved rip = {rip} <stale: as of event {seq}>");
            }
            (None, _, Some(why)) => _ = write!(text, "; saved rip is not known: {why}"),
            (None, _, None) => {}
        }
        text
    }

    fn neighbours(&self) -> Vec<String> {
        let at = |frame: &NeighbourFrame| match &frame.at {
            Some(at) => format!("frame at {at}"),
            None => format!("frame {}, whose address is not known", frame.index),
        };
        let mut all = Vec::new();
        if self.frame.is_signal {
            all.push("signal handler frame".to_owned());
        }
        if self.frame.is_tail_call {
            all.push("tail call frame".to_owned());
        }
        if let Some(outer) = self.inlined_into {
            all.push(format!("inlined into frame {outer}"));
        }
        if let Some(by) = &self.called_by {
            all.push(format!("called by {}", at(by)));
        }
        if self.outermost {
            all.push("outermost frame".to_owned());
        }
        if let Some(of) = &self.caller_of {
            all.push(format!("caller of {}", at(of)));
        }
        all
    }
}

/// The frames of a thread, and what is known about those that are missing.
struct Stack<'a> {
    view: View<'a>,
    /// Why they end before the outermost frame.
    end: Option<&'a Unknown>,
    /// Frames before which others may be missing.
    gaps: &'a [usize],
}

impl Stack<'_> {
    fn described(&self, asked: &FrameArgs) -> Result<InfoFrameReply, Failure> {
        let view = &self.view;
        view.frame()?;
        let index = match &asked.function {
            Some(name) => frame::of_function(view, name)?,
            None => asked.index.unwrap_or(view.frame),
        };
        let frame = frame::frame_at(view, index)?;
        let language = self.language(index, frame);
        let mut report = FrameReport::of(view.space, frame, index, index == view.frame);
        let args = inspect::arguments(&view.at_frame(index), Manner::of_many(false)).ok();
        // The arguments of a function that nothing describes are not known to be none.
        report.args = args.filter(|args| !args.is_empty() || language.is_some());
        let mut reply = InfoFrameReply {
            frame: report,
            at: frame.cfa.map(hex),
            no_address: frame.cfa.is_none().then(|| why_no_address(frame)),
            saved_rip: None,
            stale_since: None,
            no_caller: None,
            outermost: false,
            inlined_into: None,
            called_by: None,
            caller_of: self.caller_of(index),
            language,
            saved: Vec::new(),
        };
        if frame.inlined && index + 1 < view.frames.len() {
            reply.inlined_into = Some(index + 1);
        }
        match self.returns_to(index) {
            Ok(Some(outer)) => self.add_caller(&mut reply, index, outer),
            Ok(None) => reply.outermost = !frame.inlined,
            Err(why) => reply.no_caller = Some(why),
        }
        Ok(reply)
    }

    /// Adds what the frame that frame `index` returns to tells about it.
    fn add_caller(&self, reply: &mut InfoFrameReply, index: usize, outer: usize) {
        let frames = self.view.frames;
        let own = self.physical(index);
        if reply.inlined_into.is_none() {
            reply.called_by = self.neighbour(own + 1);
        }
        let caller = &frames[outer];
        if !caller.pc_is_known {
            let why = "only the function of the next frame was recorded";
            reply.no_caller = Some(why.to_owned());
            return;
        }
        reply.saved_rip = Some(hex(caller.pc));
        if let Ok((_, Certainty::Stale { as_of })) = caller.registers.get(Register::RIP) {
            reply.stale_since = Some(as_of);
        }
        reply.saved = saved(&frames[own], caller);
    }

    /// The frame that frame `index` is a part of, if it is an inlined call.
    fn physical(&self, index: usize) -> usize {
        let frames = self.view.frames;
        let outer = (index..frames.len()).find(|at| !frames[*at].inlined);
        outer.unwrap_or(index)
    }

    /// The frame that frame `index` returns to, which passes over jumps to other functions; none if it is the outermost.
    ///
    /// # Errors
    /// Why it is not known.
    fn returns_to(&self, index: usize) -> Result<Option<usize>, String> {
        let frames = self.view.frames;
        let own = self.physical(index);
        let outer = (own + 1..frames.len()).find(|at| !frames[*at].is_tail_call);
        let reached = outer.unwrap_or(frames.len());
        let is_between = |gap: &usize| (index + 1..=reached).contains(gap);
        match (outer, self.end) {
            _ if self.gaps.iter().any(is_between) => {
                Err("calls that were not recorded may lie between".to_owned())
            }
            (None, Some(why)) => Err(why.to_string()),
            _ => Ok(outer),
        }
    }

    fn caller_of(&self, index: usize) -> Option<NeighbourFrame> {
        let inner = index.checked_sub(1)?;
        match self.gaps.contains(&index) {
            true => None,
            false => self.neighbour(inner),
        }
    }

    fn neighbour(&self, index: usize) -> Option<NeighbourFrame> {
        let frame = self.view.frames.get(index)?;
        Some(NeighbourFrame {
            index,
            at: frame.cfa.map(hex),
        })
    }

    /// The source language of the code of a frame, if its function is described.
    fn language(&self, index: usize, frame: &Frame) -> Option<String> {
        let View {
            space,
            machine,
            frames,
            ..
        } = self.view;
        let language = at_frame(space, machine, frames, index, scope::language_at)?;
        // The debug information of assembly counts as that of C.
        let source = frame.source.as_ref();
        let is_assembly = source.is_some_and(|source| {
            let extension = Path::new(&*source.file).extension();
            extension.is_some_and(|extension| extension == "S" || extension == "s")
        });
        let name = match language {
            Language::C if is_assembly => "asm",
            Language::C => "c",
            Language::Cpp => "c++",
            Language::Rust => "rust",
            Language::Fortran => "fortran",
            Language::Ada => "ada",
            Language::Other => return None,
        };
        Some(name.to_owned())
    }
}

/// The registers that `frame` saved for the frame that it returns to. Those that inner frames saved are theirs.
fn saved(frame: &Frame, caller: &Frame) -> Vec<SavedRegister> {
    let saved = |number: u16| {
        let register = Register(number);
        let address = caller.registers.saved_at(register)?;
        let is_own = frame.registers.saved_at(register) != Some(address);
        Some(SavedRegister {
            name: register.name().filter(|_| is_own)?,
            address: hex(address),
        })
    };
    SAVED.into_iter().filter_map(saved).collect()
}

fn why_no_address(frame: &Frame) -> String {
    match frame.registers.get(Register::RSP) {
        Err(why) => format!("rsp: {why}"),
        Ok(_) => "what it follows from is not known".to_owned(),
    }
}
