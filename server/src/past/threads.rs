//! The threads at a recorded moment, and which of them is selected.

use replay::ThreadInfo;

use super::{Looked, Past, Position, of_replay};
use crate::protocol::{Code, Failure};
use crate::session::{PlaceReport, StateWord};
use crate::verbs::ThreadReport;

impl Past {
    /// Returns the threads that had begun and not ended.
    pub(crate) fn alive(&self) -> Result<Vec<u32>, Failure> {
        let seq = self.position().seq;
        let alive = self
            .all_threads()?
            .into_iter()
            .filter(|thread| thread.first <= seq && thread.exit.is_none_or(|exit| exit > seq));
        Ok(alive.map(|thread| thread.tid).collect())
    }

    /// Refuses a thread that does not exist.
    pub(crate) fn known_thread(&self, tid: i32) -> Result<u32, Failure> {
        let threads = self.all_threads()?;
        if threads.iter().any(|thread| thread.tid == tid as u32) {
            return Ok(tid as u32);
        }
        let known: Vec<String> = threads.iter().map(|t| t.tid.to_string()).collect();
        Err(
            Failure::new(Code::NoThread, format!("there is no thread {tid}"))
                .hint(format!("threads: {}", known.join(", "))),
        )
    }

    /// Describes all threads that had begun, by number.
    pub(crate) fn threads(&self) -> Result<Vec<ThreadReport>, Failure> {
        let here = self.position();
        let mut begun = self.all_threads()?;
        begun.retain(|thread| thread.first <= here.seq);
        begun.sort_by_key(|thread| thread.tid);
        let is_over = self.is_over()?;
        let reports = begun
            .into_iter()
            .map(|thread| self.thread(thread, here, is_over));
        reports.collect()
    }

    /// Returns whether the program has ended at the selected event or before it.
    pub(crate) fn is_over(&self) -> Result<bool, Failure> {
        let end = self.timeline.end().map_err(|error| of_replay(&error))?;
        let here = self.position().seq;
        Ok(end.is_some_and(|(seq, event)| seq <= here && event.kind == "process_exit"))
    }

    /// Selects a thread, if one is given, and describes the selected one.
    pub(crate) fn select_thread(&self, tid: Option<i32>) -> Result<ThreadReport, Failure> {
        if let Some(tid) = tid {
            let tid = self.known_thread(tid)?;
            let mut position = self.lock();
            if position.tid != tid {
                position.tid = tid;
                position.frame = 0;
                position.calls_to_come = None;
            }
        }
        let here = self.position();
        let threads = self.all_threads()?;
        match threads.into_iter().find(|thread| thread.tid == here.tid) {
            Some(thread) => self.thread(thread, here, self.is_over()?),
            None => Err(Failure::new(Code::NoThread, "no thread is selected")),
        }
    }

    /// Returns the position in a thread: the current one if the thread is selected, else the thread's innermost frame.
    pub(crate) fn position_of(&self, tid: u32) -> Position {
        let here = self.position();
        match tid == here.tid {
            true => here,
            false => Position {
                tid,
                frame: 0,
                calls_to_come: None,
                ..here
            },
        }
    }

    fn all_threads(&self) -> Result<Vec<ThreadInfo>, Failure> {
        self.timeline.threads().map_err(|error| of_replay(&error))
    }

    /// `is_over`: the program has ended, and its threads with it.
    fn thread(
        &self,
        thread: ThreadInfo,
        here: Position,
        is_over: bool,
    ) -> Result<ThreadReport, Failure> {
        let has_ended = is_over || thread.exit.is_some_and(|exit| exit <= here.seq);
        let (place, reason): (Option<PlaceReport>, _) = match has_ended {
            true => (None, None),
            false => {
                let position = Position {
                    frame: 0,
                    ..self.position_of(thread.tid)
                };
                let look = |looked: &Looked<'_>| Ok((Some(looked.place()), looked.held_by()?));
                self.look_at(position, 1, look)?
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
}
