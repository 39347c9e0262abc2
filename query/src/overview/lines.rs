//! The lines of an overview's sections, one function for each kind of fact. `text.rs` chooses which of them are shown.

use values::one_line::{escaped, fitted, width};
use values::quantity::{count, duration, grouped};

use super::ending::{Crash, FrameSummary, Seen};
use super::errors::ErrorLine;
use super::failures::{FailedSyscall, FailureKind, Failures, Value};
use super::freed::{FreedBlock, Step};
use super::source::CallLine;
use super::syscalls::{About, SyscallFailures};
use super::text::{COLUMNS, joined, named, short, source, thread_name, with_args};
use super::threads::{Thread, ThreadEnd};
use super::time::FunctionTime;
use super::unusual::Unusual;
use crate::callers::Frame;
use crate::locks::Waiter;

pub fn frame(place: &FrameSummary) -> String {
    let mut source = source(place.file.as_deref(), place.line);
    if let (true, Some(module)) = (source.is_empty(), &place.module) {
        source = format!(" in {module}");
    }
    match (place.seq, &place.args) {
        (Some(seq), args) => {
            let args = args.as_deref().unwrap_or_default();
            joined(
                &format!("  {}(", short(&place.function)),
                args,
                &format!("){source}, seq {seq}"),
            )
        }
        (None, _) => format!("  {}{source}, not recorded", short(&place.function)),
    }
}

/// What the thread had done before, the last call first.
pub fn before(crash: &Crash) -> impl Iterator<Item = String> {
    let ended = crash.ended.iter();
    ended.map(|last| call_after("  before that: ", last))
}

/// A freed block that a crashed thread still used: who freed it, and who had allocated it.
pub fn freed(block: &FreedBlock) -> Vec<String> {
    let what = match &block.argument {
        Some((name, function)) => format!("{name} of {}", short(function)),
        None => "the address of the fault".to_owned(),
    };
    let size = match block.size {
        Some(size) => format!(" of {}", count(size, "byte")),
        None => String::new(),
    };
    let within = match block.offset {
        0 => String::new(),
        offset => format!("byte {offset} of "),
    };
    let step = |step: &Step| {
        let place = step
            .place
            .as_deref()
            .map(|place| format!(", called in {place}"));
        format!(
            "{} (seq {}){}",
            step.function,
            step.seq,
            place.unwrap_or_default()
        )
    };
    let address = &block.address;
    let mut lines = vec![
        format!("  {what} ({address}) is {within}a freed block{size}"),
        format!("    freed by {}", step(&block.freed)),
    ];
    lines.extend(
        block
            .made
            .as_ref()
            .map(|made| format!("    made by {}", step(made))),
    );
    lines
}

/// A thread that waited for another one's lock.
pub fn waiter(waiter: &Waiter) -> String {
    let lock = waiter.name.as_ref().unwrap_or(&waiter.lock);
    let own = |frames: &[Frame]| {
        let frame = Frame::from_own_code(frames).first();
        frame
            .map(|frame| format!(" in {}", frame.short_text()))
            .unwrap_or_default()
    };
    let owner = waiter
        .who
        .owner
        .map(|owner| format!("; {owner} took it{}", own(&waiter.owner_frames)));
    format!(
        "  {} waits for {lock}{}, seq {}{}",
        thread_name(waiter.who.tid, waiter.who.thread.as_deref()),
        own(&waiter.who.frames),
        waiter.who.seq,
        owner.unwrap_or_default()
    )
}

/// A call, and where it was made or, if that has no line, where its function is.
pub fn call(call: &CallLine) -> String {
    call_after("  ", call)
}

fn call_after(before: &str, call: &CallLine) -> String {
    let result = match (&call.result, call.end_seq) {
        (_, None) if call.only_entered => ", its end is not recorded".to_owned(),
        (_, None) => " had not ended".to_owned(),
        (_, Some(_)) if call.open_at_end => " had not returned".to_owned(),
        (_, Some(_)) if call.unwound => " was left by an exception or longjmp".to_owned(),
        (Some(result), Some(_)) => format!(" returned {}", fitted(&escaped(result), 40)),
        (None, Some(_)) => " returned".to_owned(),
    };
    let place = match &call.made_at {
        Some(site) => (", called", source(Some(&site.file), Some(site.line))),
        None => (", defined", source(call.file.as_deref(), call.line)),
    };
    let place = match place {
        (_, at) if at.is_empty() => at,
        (what, at) => format!("{what}{at}"),
    };
    joined(
        &format!("{before}{}(", short(&call.function)),
        &call.args,
        &format!("){result}{place}, seq {}", call.seq),
    )
}

pub fn exception(seen: &Seen) -> String {
    let message = seen.message.as_ref().map(|text| format!(": {text}"));
    let unhandled = if seen.unhandled { ", unhandled" } else { "" };
    let tid = seen.tid.map(|tid| format!(" in thread {tid}"));
    joined(
        &format!("  {}", short(&seen.what)),
        &message.unwrap_or_default(),
        &format!("{unhandled}{}, seq {}", tid.unwrap_or_default(), seen.seq),
    )
}

/// A line of standard error and who printed it. A long text is not shortened for that: it gets its own line.
pub fn error_line(line: &ErrorLine) -> Vec<String> {
    let by = match &line.by {
        Some(by) => format!(
            "  by {} (seq {}), seq {}",
            short(&by.function),
            by.seq,
            line.seq
        ),
        None => format!("  outside recorded calls, seq {}", line.seq),
    };
    match width(&escaped(&line.text)) + width(&escaped(&by)) + 2 <= COLUMNS {
        true => vec![joined("  ", &line.text, &by)],
        false => vec![joined("  ", &line.text, ""), format!("  {}", escaped(&by))],
    }
}

pub fn failure(failure: &Failures) -> String {
    let Failures {
        function,
        failed,
        calls,
        first,
        ..
    } = failure;
    let value = |value: &Value| match (value.errno, &value.failed_syscall) {
        (Some(name), _) if failure.kind == FailureKind::Negative => {
            format!("{} (as errno: {name})", value.value)
        }
        (None, Some(inside)) => {
            let which = if value.count > 1 { "at first: " } else { "" };
            let FailedSyscall { name, errno, .. } = inside;
            format!("{} ({which}{name} failed with {errno})", value.value)
        }
        _ => value.value.to_string(),
    };
    let values: Vec<String> = failure.values.iter().map(value).collect();
    let what = match failure.kind {
        FailureKind::Negative if failure.guessed => {
            format!("left {} in rax (its type is not known)", values.join(", "))
        }
        FailureKind::Negative => format!("returned {}", values.join(", ")),
        FailureKind::NonZero => format!("returned {} and otherwise 0", values.join(", ")),
        FailureKind::Null => "returned null".to_owned(),
        FailureKind::Err => format!("returned {}", error_of(failure)),
        FailureKind::Unwound => "was left by an exception or longjmp".to_owned(),
    };
    let of = match (failed, calls) {
        (1, 1) => "its only call".to_owned(),
        (failed, calls) if failed == calls => format!("all {} calls", grouped(*calls)),
        (failed, calls) => format!("{} of {}", grouped(*failed), count(*calls, "call")),
    };
    let line = named(
        "  ",
        function,
        &format!(" {what}: {of}, first seq {}", first.seq),
    );
    with_args(line, &first.args)
}

/// System calls that failed alike. Of those with several paths or addresses, the first and the last one are told.
pub fn syscalls(failed: &SyscallFailures) -> Vec<String> {
    let SyscallFailures {
        name,
        errno,
        paths,
        first,
        last,
        ..
    } = failed;
    let least = if failed.is_least { "at least " } else { "" };
    let calls = format!("{least}{}", count(failed.calls, "call"));
    let which = if failed.calls == 1 {
        "seq"
    } else {
        "first seq"
    };
    let seq = format!("{which} {}", first.seq);
    let with_path = |line: String, about: &About| {
        let path = about.path.as_deref().unwrap_or_default();
        with_args(line, path)
    };
    match (&first.path, paths) {
        (Some(path), 1) => vec![joined(
            &format!("  {name}("),
            path,
            &format!(") failed with {errno}: {calls}, {seq}"),
        )],
        (_, 0 | 1) => vec![format!("  {name} failed with {errno}: {calls}, {seq}")],
        _ => {
            let targets = count(*paths, "target");
            let line = format!("  {name} failed with {errno}: {calls} with {targets}, {seq}");
            let last = last.iter();
            let last = last.map(|last| with_path(format!("    last seq {}", last.seq), last));
            std::iter::once(with_path(line, first))
                .chain(last)
                .collect()
        }
    }
}

/// The error that the first of these calls returned.
fn error_of(failure: &Failures) -> String {
    let text = failure.first.result.as_deref().unwrap_or_default();
    match text.is_empty() || text.contains("<unknown") {
        true => "Err".to_owned(),
        false => fitted(&escaped(text), 40).into_owned(),
    }
}

pub fn thread(thread: &Thread) -> String {
    let end = match &thread.end {
        ThreadEnd::Died { end_seq } => format!("died at seq {end_seq}"),
        ThreadEnd::Ended { end_seq } => format!("ended at seq {end_seq}"),
        ThreadEnd::In {
            function,
            in_seq,
            for_ns,
            last_seq,
        } => format!(
            "in {} (seq {in_seq}) at the end, for {} after its last event, seq {last_seq}",
            short(function),
            duration(*for_ns)
        ),
        ThreadEnd::Outside { last_seq } => {
            format!("in no recorded call at the end, last event seq {last_seq}")
        }
    };
    format!(
        "  {}: {} from seq {}, {end}",
        thread_name(thread.tid, thread.name.as_deref()),
        count(thread.calls, "call"),
        thread.first_seq
    )
}

pub fn function_time(time: &FunctionTime) -> String {
    let longest = match (time.calls, time.longest_ns) {
        (1, _) if time.is_open => format!("not ended, seq {}", time.seq),
        (1, _) => format!("seq {}", time.seq),
        (_, ns) if time.is_open => {
            format!("longest {}, not ended, seq {}", duration(ns), time.seq)
        }
        (_, ns) => format!("longest {}, seq {}", duration(ns), time.seq),
    };
    named(
        &format!(
            "  {:>5.1} % {:>11}  ",
            time.share * 100.0,
            duration(time.self_ns)
        ),
        &time.function,
        &format!(", {}, {longest}", count(time.calls, "call")),
    )
}

pub fn unusual(unusual: &Unusual) -> String {
    match unusual {
        Unusual::SlowCall {
            seq,
            function,
            self_ns,
            others_ns,
            calls,
            ..
        } => named(
            "  a call of ",
            function,
            &format!(
                " took {}; the other {} took {} each on average; seq {seq}",
                duration(*self_ns),
                grouped(calls - 1),
                duration(*others_ns)
            ),
        ),
        Unusual::OnceLate { seq, function } => named(
            "  ",
            function,
            &format!(" was called once, and late, seq {seq}"),
        ),
        Unusual::LongStay {
            seq,
            tid,
            function,
            self_ns,
        } => {
            let how = format!(
                "  thread {tid} waited or computed for {} in one call of ",
                duration(*self_ns)
            );
            named(&how, function, &format!(", seq {seq}"))
        }
        Unusual::StillAllocated {
            seq,
            blocks,
            bytes,
            place,
            is_only_place,
            is_unsure,
        } => {
            let part = if *is_only_place { "all" } else { "most" };
            let unsure = match is_unsure {
                true => ", or freed in what is missing",
                false => "",
            };
            let (blocks, bytes) = (count(*blocks, "block"), count(*bytes, "byte"));
            joined(
                &format!("  {blocks}, {bytes}, still allocated at exit{unsure}; {part} from "),
                place,
                &format!(", seq {seq}"),
            )
        }
    }
}
