//! The end of a recording: that of the program, or what lets the program go on without us.

use std::ffi::OsStr;
use std::io;

use super::{Ended, Next, Recorder, Summary};
use crate::error::Result;
use crate::log::Entry;

impl Recorder {
    /// Whether the log takes no more, and the program can be left: no thread runs in translated code.
    pub(super) fn is_full(&self) -> bool {
        let stands = |tid: i32| self.threads[tid].is_ready();
        self.log.refused().is_some() && self.turns.current.is_some_and(stands)
    }

    /// Notes how it ended. A program that has not ended goes on unrecorded, and is waited for.
    pub(super) fn finish(mut self, ended: Result<Ended>) -> Result<Summary> {
        let mut next = None;
        let (code, signal, lost) = match ended {
            Ok(Ended::Executed(tid)) => {
                next = Some(self.became(tid)?);
                (None, None, None)
            }
            Ok(Ended::Exited(code)) => (Some(code), None, None),
            Ok(Ended::Killed(signal)) => (None, Some(signal), None),
            Ok(Ended::Lost(why)) => (None, None, Some(self.let_go(why))),
            Ok(Ended::Full) => {
                let why = self.log.refused().map(full);
                let why = why.unwrap_or_else(|| String::from("the log took no more"));
                let why = self.let_go(why);
                self.log.add(&Entry::Gap { at: self.count })?;
                (None, None, Some(why))
            }
            Ok(Ended::Enough) => unreachable!("that is not the end of the program"),
            Err(error) => match self.was_ended(&error) {
                Some(Ended::Exited(code)) => (Some(code), None, None),
                Some(Ended::Killed(signal)) => (None, Some(signal), None),
                _ => (None, None, Some(error.to_string())),
            },
        };
        let at = self.count;
        let (blocks, code_bytes) = self.translator.size();
        let mut summary = Summary {
            instructions: at,
            code,
            signal,
            fatal: self
                .signals
                .fatal
                .filter(|fatal| Some(fatal.signal) == signal),
            lost,
            doubt: self.space.others.doubt(),
            is_full: false,
            next: None,
            blocks,
            code_bytes,
        };
        if let Some(why) = summary.lost.clone() {
            self.log.add(&Entry::Lost { at, why })?;
            (summary.code, summary.signal) = self.release();
        }
        // What begins in the middle of a run is a part of it, and has ended.
        if let Some(next) = next.take_if(|_| self.part.is_taken) {
            (summary.code, summary.signal) = next.release();
        }
        if summary.code.is_some() || summary.signal.is_some() {
            self.log.add(&Entry::Exit {
                at,
                code: summary.code.unwrap_or(0),
                signal: summary.signal.unwrap_or(0),
                fatal: summary.fatal,
            })?;
        }
        let refused = self.log.refused().map(full);
        summary.is_full = refused.is_some();
        let is_whole = self.log.finish()?;
        summary.next = next;
        summary.lost = summary.lost.or(refused.filter(|_| !is_whole));
        Ok(summary)
    }

    /// Notes that the program is another one now.
    fn became(&mut self, tid: i32) -> Result<Next> {
        let next = Next::of(self.process.pid);
        let text = |text: &OsStr| text.to_string_lossy().into_owned();
        self.log.add(&Entry::Executed {
            at: self.count,
            tid,
            program: text(next.program.as_os_str()),
            arguments: next.arguments.iter().map(|word| text(word)).collect(),
        })?;
        Ok(next)
    }

    /// The program leaves translated code, and goes on by itself as soon as its threads are resumed. Returns why, and where.
    fn let_go(&mut self, why: String) -> String {
        let left = self.leave(true);
        let at = self.count;
        match left {
            Ok(_) => format!("{why} at instruction {at}, and the program went on unrecorded"),
            Err(error) => format!("{why} at instruction {at} ({error})"),
        }
    }
}

/// What a disk has said, in words.
fn full(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => String::from("the disk was full"),
        io::ErrorKind::QuotaExceeded => String::from("the quota of disk space was used up"),
        _ => format!("the log could not be written: {error}"),
    }
}
