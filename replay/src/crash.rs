//! The place where a signal ended the program: the recorded stop at it, or at least the event of the signal.

use crate::error::Result;
use crate::event::{Event, Kind};
use crate::marks::Mark;
use crate::timeline::Timeline;

/// Most events that the end of a program makes, and that are passed.
const MOST_CLOSED: usize = 1 << 16;

impl Timeline {
    /// Returns the event at which the thread was stopped by the signal that ended the program; without such a stop, the
    /// event of the signal. While a live session holds the program at a signal that will end it, that stop. `None`: no signal
    /// ended the program.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn crash(&self) -> Result<Option<u64>> {
        let Some(told) = self.fatal_signal()? else {
            return self.standing();
        };
        let stops = self.marks.between(Kind::Pause, told.seq, self.last());
        let stop = stops.iter().find(|stop| stop.tid == told.tid);
        Ok(Some(stop.map_or(told.seq, |stop| stop.seq)))
    }

    /// Returns when the program ended, in ns since the recording began: at the signal that ended it, when it called `exit`, or
    /// with the last event. Later events of such a signal are the recorder's work, and what follows the last event inside `exit`
    /// is the kernel's.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn ended_ns(&self) -> Result<i64> {
        if let Some(signal) = self.fatal_signal()? {
            return self.ts_ns(signal.seq);
        }
        if self.events() == 0 {
            return Ok(0);
        }
        let last = self.last_own()?;
        let exits = match self.thread_at(last) {
            Ok(tid) => self.calls_around(tid, last, 1)?,
            Err(_) => Vec::new(),
        };
        let exits = exits.first().and_then(|call| self.function(call.function));
        match exits.is_some_and(|function| is_exit(&function.name)) {
            true => self.ts_ns(last),
            false => self.ts_ns(self.last()),
        }
    }

    /// Returns the last event before those that the end of the program made: calls that were still open are open there.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn last_own(&self) -> Result<u64> {
        let Some(end) = self.marks.all(Kind::End).last() else {
            return Ok(self.last());
        };
        let mut closed_ns = vec![self.ts_ns(end.seq)?];
        let mut at = end.seq;
        for _ in 0..MOST_CLOSED {
            let Some(before) = at.checked_sub(1) else {
                break;
            };
            match self.event(before)? {
                Event::Leave(call)
                    if !call.returned() && closed_ns.contains(&self.ts_ns(before)?) => {}
                Event::Other(event) if event.kind == "thread_exit" => closed_ns.push(event.ts_ns),
                _ => return Ok(before),
            }
            at = before;
        }
        Ok(end.seq.saturating_sub(1))
    }

    /// Finds the stop of a thread at a signal that will end the program, which has not gone on since.
    fn standing(&self) -> Result<Option<u64>> {
        let last = self.events().checked_sub(1);
        let (Some(last), None) = (last, self.marks.all(Kind::End).last()) else {
            return Ok(None);
        };
        let Some(mark) = self.marks.all(Kind::Exception).last() else {
            return Ok(None);
        };
        let event = self.others.event(mark.seq)?;
        let is_fatal = event.is_some_and(|event| event.detail.as_deref() == Some("unhandled"));
        let of_thread = |kind| {
            let mut marks = self.marks.between(kind, mark.seq, last).iter();
            marks
                .find(|other| other.tid == mark.tid)
                .map(|other| other.seq)
        };
        let stop = of_thread(Kind::Pause).filter(|_| is_fatal);
        Ok(stop.filter(|_| of_thread(Kind::Resume).is_none()))
    }

    /// Finds the event of the signal that ended the program.
    fn fatal_signal(&self) -> Result<Option<Mark>> {
        let Some(end) = self.marks.all(Kind::End).last() else {
            return Ok(None);
        };
        let ended_by = self.others.event(end.seq)?.and_then(|event| event.aux);
        if ended_by.is_none() {
            return Ok(None);
        }
        let exceptions = self.marks.between(Kind::Exception, 0, end.seq);
        // Older recordings report a crash under live control twice, the second time without a thread.
        let last = exceptions.iter().rev().take(2);
        let mut told = None;
        for mark in last {
            let event = self.others.event(mark.seq)?;
            let is_it = event.is_some_and(|event| {
                event.detail.as_deref() == Some("unhandled") && event.aux == ended_by
            });
            if !is_it {
                break;
            }
            told = Some(mark);
            if mark.tid.is_some() {
                break;
            }
        }
        Ok(told.copied())
    }

    /// Returns whether a thread was stopped at this event.
    #[must_use]
    pub fn is_stop(&self, seq: u64) -> bool {
        !self.marks.between(Kind::Pause, seq, seq).is_empty()
    }
}

/// Returns whether a function ends the program and never returns.
fn is_exit(name: &str) -> bool {
    let name = name.strip_suffix("@plt").unwrap_or(name);
    let is_of_rust = name.ends_with("std::process::exit");
    is_of_rust
        || matches!(
            name,
            "exit" | "_exit" | "_Exit" | "quick_exit" | "exit_group"
        )
}
