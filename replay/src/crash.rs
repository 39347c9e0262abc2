//! The place where a signal ended the program: the recorded stop at it, or at least the event of the signal.

use crate::error::Result;
use crate::event::Kind;
use crate::marks::Mark;
use crate::timeline::Timeline;

impl Timeline {
    /// Returns the event at which the thread was stopped by the signal that ended the program; without such a stop, the
    /// event of the signal. `None`: no signal ended the program.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn crash(&self) -> Result<Option<u64>> {
        let Some(told) = self.fatal_signal()? else {
            return Ok(None);
        };
        let stops = self.marks.between(Kind::Pause, told.seq, self.last());
        let stop = stops.iter().find(|stop| stop.tid == told.tid);
        Ok(Some(stop.map_or(told.seq, |stop| stop.seq)))
    }

    /// Returns when the program ended, in ns since the recording began: at the signal that ended it, or with the last event.
    /// Later events of such a signal are the recorder's work.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn ended_ns(&self) -> Result<i64> {
        match self.fatal_signal()? {
            Some(signal) => self.ts_ns(signal.seq),
            None if self.events() == 0 => Ok(0),
            None => self.ts_ns(self.last()),
        }
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
