//! The verbs of a stopped program, asked about a recorded moment, by name.

use debuginfo::Machine;
use replay::Timeline;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Looked, MAX_FRAMES, Past, Position, of_replay};
use super::{history, moves, watch};
use crate::inspect::{self, View};
use crate::protocol::{Code, Failure};
use crate::session::{PlaceReport, StateWord};
use crate::verbs::backtrace::ThreadStack;
use crate::verbs::{
    self, BacktraceArgs, BacktraceReply, DisassembleArgs, DownArgs, FrameArgs, LocalsArgs,
    MemoryArgs, MemoryReply, PrintArgs, RegistersArgs, SourceArgs, ThreadArgs, ThreadReport,
    ThreadsReply, VariablesReply, WhereArgs,
};

/// Serves a verb. Those that are not here change a program, or need one that lives.
pub(super) fn serve(past: &Past, command: &str, args: Value) -> Result<Value, Failure> {
    match command {
        "args" => json(args, |args: LocalsArgs| {
            past.look(1, |looked| {
                let mut reply = variables(looked, &args)?;
                reply.variables.retain(|variable| variable.is_parameter);
                Ok(reply)
            })
        }),
        "backtrace" => json(args, |args| backtrace(past, &args)),
        "disassemble" => json(args, |args: DisassembleArgs| {
            past.look(1, |looked| {
                let view = match args.at {
                    None => looked.frame_view()?,
                    Some(_) => looked.view(),
                };
                verbs::disassemble::code(&view, &args)
            })
        }),
        "down" => json(args, |args: DownArgs| {
            let position = past.position();
            if position.frame == 0 {
                return Err(Failure::new(Code::NoFrame, "this is the innermost frame"));
            }
            frame(past, position.frame.saturating_sub(args.count.unwrap_or(1)))
        }),
        "frame" => json(args, |args: FrameArgs| {
            frame(past, args.index.unwrap_or(past.position().frame))
        }),
        "up" => json(args, |args: DownArgs| {
            let position = past.position();
            let last = past.look(MAX_FRAMES, |looked| Ok(looked.view().frames.len()))?;
            let wanted = position.frame.saturating_add(args.count.unwrap_or(1));
            match position.frame + 1 < last {
                true => frame(past, wanted.min(last - 1)),
                false => Err(Failure::new(Code::NoFrame, "this is the outermost frame")),
            }
        }),
        "locals" => json(args, |args: LocalsArgs| {
            past.look(1, |looked| variables(looked, &args))
        }),
        "memory" => json(args, |args| memory(past, &args)),
        "print" => json(args, |args: PrintArgs| {
            past.look(1, |looked| print(looked, &args))
        }),
        "registers" => json(args, |args| past.look(1, |looked| registers(looked, &args))),
        "source" => json(args, |args: SourceArgs| {
            past.look(1, |looked| {
                // A place that is named needs no frame.
                let view = match args.at {
                    Some(_) => looked.view(),
                    None => looked.frame_view()?,
                };
                let current = || {
                    let frame = looked.frame_view()?.frame()?;
                    let file = frame.source.as_ref().map(|s| s.file.to_string());
                    file.ok_or_else(|| {
                        Failure::new(Code::InvalidFile, "no source file is looked at")
                            .hint("write file:line")
                    })
                };
                verbs::source::described(&view, &args, &current)
            })
        }),
        "thread" => json(args, |args| thread(past, &args)),
        "threads" => json(args, |_: verbs::Nothing| threads(past)),
        "where" => json(args, |args: WhereArgs| {
            past.look(1, |looked| {
                let stop = looked.stop()?;
                verbs::r#where::described(&looked.frame_view()?, stop, &args)
            })
        }),
        _ => other(past, command, args).unwrap_or_else(|| Err(past.needs_the_program(command))),
    }
}

/// Serves a verb that only recordings have, or that means something else there.
fn other(past: &Past, command: &str, args: Value) -> Option<Result<Value, Failure>> {
    let serve: [fn(&Past, &str, Value) -> Option<Result<Value, Failure>>; 3] =
        [moves::serve, history::serve, watch::serve];
    serve
        .iter()
        .find_map(|serve| serve(past, command, args.clone()))
}

/// Reads arguments, does it, and writes the reply.
pub(super) fn json<A: DeserializeOwned, R: Serialize>(
    args: Value,
    work: impl FnOnce(A) -> Result<R, Failure>,
) -> Result<Value, Failure> {
    let args = match args {
        Value::Null => Value::Object(serde_json::Map::new()),
        other => other,
    };
    let reply = work(serde_json::from_value(args).expect("who asks has the verb's arguments"))?;
    Ok(serde_json::to_value(reply).expect("replies are JSON"))
}

/// Variables of the frame that is looked at; where its module's file is missing, that is said.
fn variables(looked: &Looked<'_>, args: &LocalsArgs) -> Result<VariablesReply, Failure> {
    let reply = verbs::locals::described(&looked.frame_view()?, args.format)?;
    match looked.absent().filter(|_| reply.variables.is_empty()) {
        Some(why) => Err(Failure::new(Code::EvalFailed, "no variables are known here").hint(why)),
        None => Ok(reply),
    }
}

/// What is said of a value in a call that has returned: assignments to its parameters are not known.
const OF_LEFT: &str = "in the call that has returned; its parameters have what was passed";

/// The value of an expression. Where the thread has just returned, what means nothing in the frame that it returned to is read as
/// the call that it returned from.
fn print(looked: &Looked<'_>, args: &PrintArgs) -> Result<inspect::ValueReport, Failure> {
    let view = looked.view();
    let print = |view: &View<'_>| {
        let mut found = inspect::evaluate(view, &args.expression, args.format, None)?;
        let is_doubtful = found.shown.stale_since.is_some() && view.machine.is_of_unknown_block();
        found.note = is_doubtful.then(|| replay::UNKNOWN_BLOCK.to_owned());
        Ok(found)
    };
    let found = print(&view);
    if view.frame > 0 || found.is_ok() || !inspect::is_meaningless(&view, &args.expression) {
        return found;
    }
    let of_left = looked.moment.in_left_call(|machine, frames| {
        print(&View {
            space: view.space,
            machine,
            frames,
            frame: 0,
        })
    });
    match of_left {
        Ok(Some(Ok(mut left))) => {
            let of_block = left.note.map(|note| format!("; {note}"));
            left.note = Some(format!("{OF_LEFT}{}", of_block.unwrap_or_default()));
            Ok(left)
        }
        Ok(_) => found,
        Err(error) => Err(of_replay(&error)),
    }
}

fn backtrace(past: &Past, args: &BacktraceArgs) -> Result<BacktraceReply, Failure> {
    let here = past.position();
    let tids = match (args.all, args.thread) {
        (true, _) => alive(past.timeline(), here.seq)?,
        (false, Some(tid)) => vec![known_thread(past, tid)?],
        (false, None) => vec![here.tid],
    };
    let stack = |tid: u32| {
        let position = match tid == here.tid {
            true => here,
            false => Position {
                tid,
                frame: 0,
                ..here
            },
        };
        past.look_at(position, args.frames() + 1, |looked| {
            let trace = &looked.moment.trace;
            let mut stack = verbs::backtrace::described(&looked.view(), &trace.backtrace, args);
            for frame in &mut stack.frames {
                frame.after_gap = trace.gaps.contains(&frame.index);
            }
            Ok(ThreadStack {
                thread: tid as i32,
                stack,
            })
        })
    };
    let threads = tids.into_iter().map(stack);
    Ok(BacktraceReply {
        threads: threads.collect::<Result<_, _>>()?,
    })
}

fn frame(past: &Past, index: usize) -> Result<verbs::FrameReply, Failure> {
    let reply = past.look(index + 1, |looked| {
        looked.frame_view()?;
        verbs::frame::described(&looked.view(), index)
    })?;
    past.lock().frame = index;
    Ok(reply)
}

fn memory(past: &Past, args: &MemoryArgs) -> Result<MemoryReply, Failure> {
    if args.write.is_some() && past.session.is_some() {
        return Err(past.needs_the_program("memory write"));
    }
    if args.write.is_some() {
        return Err(Failure::new(
            Code::NotAllowed,
            "memory of a recording cannot be written: what it recorded does not change",
        ));
    }
    past.look(1, |looked| {
        let view = looked.view();
        let address = verbs::memory::address(&view, &args.at)?;
        let count = args.count.unwrap_or(verbs::memory::COUNT);
        Ok(MemoryReply {
            memory: inspect::memory(view.machine, address, count)?,
            previous: None,
        })
    })
}

fn registers(looked: &Looked<'_>, args: &RegistersArgs) -> Result<verbs::RegistersReply, Failure> {
    let view: View<'_> = looked.view();
    if view.frame == 0 {
        // All that is known of the thread, whether or not a frame is.
        let machine: &dyn Machine = view.machine;
        return verbs::registers::described(&view, machine, args);
    }
    let machine = view.frame_machine()?;
    verbs::registers::described(&view, &machine, args)
}

/// Threads that had begun and not ended.
fn alive(timeline: &Timeline, seq: u64) -> Result<Vec<u32>, Failure> {
    let threads = timeline.threads().map_err(|error| of_replay(&error))?;
    let alive = threads
        .into_iter()
        .filter(|thread| thread.first <= seq && thread.exit.is_none_or(|exit| exit > seq));
    Ok(alive.map(|thread| thread.tid).collect())
}

fn known_thread(past: &Past, tid: i32) -> Result<u32, Failure> {
    let threads = past.timeline().threads().map_err(|e| of_replay(&e))?;
    if threads.iter().any(|thread| thread.tid == tid as u32) {
        return Ok(tid as u32);
    }
    let known: Vec<String> = threads.iter().map(|t| t.tid.to_string()).collect();
    Err(
        Failure::new(Code::NoThread, format!("there is no thread {tid}"))
            .hint(format!("threads: {}", known.join(", "))),
    )
}

fn threads(past: &Past) -> Result<ThreadsReply, Failure> {
    let here = past.position();
    let threads = past.timeline().threads().map_err(|e| of_replay(&e))?;
    let mut begun: Vec<_> = threads
        .into_iter()
        .filter(|t| t.first <= here.seq)
        .collect();
    begun.sort_by_key(|thread| thread.tid);
    let reports = begun.into_iter().map(|thread| report(past, thread, here));
    Ok(ThreadsReply {
        threads: reports.collect::<Result<_, _>>()?,
    })
}

fn report(
    past: &Past,
    thread: replay::ThreadInfo,
    here: Position,
) -> Result<ThreadReport, Failure> {
    let has_ended = thread.exit.is_some_and(|exit| exit <= here.seq);
    let (place, reason): (Option<PlaceReport>, _) = match has_ended {
        true => (None, None),
        false => {
            let position = Position {
                tid: thread.tid,
                frame: 0,
                ..here
            };
            let look = |looked: &Looked<'_>| Ok((Some(looked.place()), looked.held_by()?));
            past.look_at(position, 1, look)?
        }
    };
    Ok(ThreadReport {
        thread: thread.tid as i32,
        name: thread.name.unwrap_or_default(),
        state: match (has_ended, &reason) {
            (true, _) => StateWord::Ended,
            (false, Some(_)) => StateWord::Stopped,
            (false, None) => StateWord::Running,
        },
        reason,
        place,
        selected: thread.tid == here.tid,
    })
}

fn thread(past: &Past, args: &ThreadArgs) -> Result<ThreadReport, Failure> {
    if let Some(tid) = args.thread {
        let tid = known_thread(past, tid)?;
        let mut position = past.lock();
        if position.tid != tid {
            position.tid = tid;
            position.frame = 0;
        }
    }
    let here = past.position();
    let threads = past.timeline().threads().map_err(|e| of_replay(&e))?;
    match threads.into_iter().find(|thread| thread.tid == here.tid) {
        Some(thread) => report(past, thread, here),
        None => Err(Failure::new(Code::NoThread, "no thread is looked at")),
    }
}
