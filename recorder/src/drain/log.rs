//! The log, with the tracer's events in their place.
//!
//! The merge puts no event before an earlier one of the log or before a watermark. A thread goes on once the tracer has sent its
//! event, and what it records next may be merged by its time. So before anything with a time goes into the log, the tracer's events
//! up to that time do. An event that is sent later belongs to a thread that stood still until then: its next records are later too.

use std::sync::Arc;

use crossbeam::channel::Receiver;
use store::{
    control::{Control, ExceptionPhase},
    log::{ClosedLog, LogWriter},
};

use crate::live::journal::Counts;

/// The log of a recording.
pub(crate) struct Log {
    writer: LogWriter,
    journal: Option<JournalEnd>,
    /// Events of the tracer were appended since the last question.
    has_news: bool,
    /// Warnings of the tracer that nobody was told yet.
    warnings: Vec<String>,
    /// The last signal that the tracer reported as ending the program.
    fatal: Option<i32>,
}

/// The recorder's end of the tracer's journal.
struct JournalEnd {
    events: Receiver<Control>,
    counts: Arc<Counts>,
    /// The next event, if it was too late for what was appended last.
    next: Option<Control>,
}

impl JournalEnd {
    /// Takes the next event, unless it is later than `until`, in ticks.
    fn take(&mut self, until: u64) -> Option<Control> {
        let next = self.next.take().or_else(|| self.events.try_recv().ok())?;
        if next.ticks().is_some_and(|ticks| ticks > until) {
            self.next = Some(next);
            return None;
        }
        Some(next)
    }
}

impl Log {
    pub fn new(writer: LogWriter) -> Self {
        Self {
            writer,
            journal: None,
            has_news: false,
            warnings: Vec::new(),
            fatal: None,
        }
    }

    /// Takes the tracer's events from now on.
    pub fn listen(&mut self, events: Receiver<Control>, counts: Arc<Counts>) {
        self.journal = Some(JournalEnd {
            events,
            counts,
            next: None,
        });
    }

    /// Appends all events that the tracer has sent so far.
    ///
    /// # Errors
    /// If the log takes no more.
    pub fn take_journal(&mut self) -> store::Result<()> {
        self.take_until(u64::MAX)
    }

    /// Appends all events that the tracer has sent so far, and drops later ones: nothing comes after the end of the program.
    ///
    /// # Errors
    /// If the log takes no more.
    pub fn end_journal(&mut self) -> store::Result<()> {
        self.take_journal()?;
        self.journal = None;
        Ok(())
    }

    /// Returns whether events of the tracer were appended since the last call.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Returns whether [`take_news`](Self::take_news) will.
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    /// Returns the tracer's warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Returns the last signal that the tracer reported as ending the program.
    pub fn fatal(&self) -> Option<i32> {
        self.fatal
    }

    /// Appends a control event, after the tracer's events up to its time.
    ///
    /// # Errors
    /// If the log takes no more.
    pub fn append_control(&mut self, control: &Control) -> store::Result<()> {
        if let Some(ticks) = control.ticks() {
            self.take_until(ticks)?;
        }
        self.writer.append_control(control)
    }

    /// Appends a watermark, after the tracer's events up to its time. All records up to its time must be in the log.
    ///
    /// # Errors
    /// If the log takes no more.
    pub fn append_watermark(&mut self, ticks: u64) -> store::Result<()> {
        self.take_until(ticks)?;
        self.writer.append_watermark(ticks)
    }

    /// Appends records of a thread, as [`LogWriter::append_block`].
    ///
    /// # Errors
    /// If the log takes no more.
    pub fn append_block(
        &mut self,
        ring: u32,
        tenancy: u32,
        parts: [&[u8]; 2],
    ) -> store::Result<()> {
        self.writer.append_block(ring, tenancy, parts)
    }

    /// Makes everything so far visible to readers, soon.
    pub fn flush(&self) {
        self.writer.flush();
    }

    /// Waits until readers can see everything so far.
    ///
    /// # Errors
    /// It could not be written.
    pub fn settle(&self) -> store::Result<()> {
        self.writer.settle()
    }

    /// Ends the log.
    ///
    /// # Errors
    /// If the log takes no more.
    pub fn close(self) -> store::Result<ClosedLog> {
        self.writer.close()
    }

    /// Appends the events that the tracer has sent, up to a time in ticks.
    fn take_until(&mut self, until: u64) -> store::Result<()> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        while let Some(event) = journal.take(until) {
            match &event {
                Control::Exception(told) if told.phase == ExceptionPhase::Unhandled => {
                    self.fatal = told.signal.or(self.fatal);
                }
                Control::Warning { message, .. } => self.warnings.push(message.clone()),
                _ => {}
            }
            self.writer.append_control(&event)?;
            journal.counts.written();
            self.has_news = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crossbeam::channel::unbounded;
    use store::{
        columns::{read_calls, read_events},
        control::Exception,
        recording::{Created, OnTaken, OpenRecording},
        seal::{Ending, SealOptions, Sealer},
        synth::{self, Synth, SynthFrame},
    };

    use super::*;

    /// A slot on the stack of the first synthetic thread.
    const SLOT: u64 = 0x7f00_0010_0000 - 8;

    fn note(ticks: u64) -> Control {
        let text = ticks.to_string();
        Control::Note { ticks, text }
    }

    fn warning(ticks: u64) -> Control {
        let message = "from the recorder".to_owned();
        Control::Warning { ticks, message }
    }

    fn killed(ticks: u64) -> Control {
        Control::Exception(Exception {
            ticks,
            tid: 1,
            signal: Some(9),
            type_name: None,
            phase: ExceptionPhase::Unhandled,
            addr: None,
            message: None,
        })
    }

    /// What one thread records: a call from 100 to 200.
    fn call() -> Vec<SynthFrame> {
        let mut synth = Synth::new();
        let f = synth.function("f");
        synth.thread(1).at(100).enter(f, SLOT).at(200).leave(SLOT);
        synth.frames()
    }

    /// Writes a log; the second argument of `write` sends an event of the tracer with a time. Returns the names of the events in
    /// order; those of the tracer also have that time and the recorded one.
    fn written(write: impl FnOnce(&mut Log, &dyn Fn(u64))) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r");
        let Created { open, log } =
            OpenRecording::create(&path, OnTaken::Refuse, synth::manifest()).unwrap();
        let mut log = Log::new(log);
        let (sender, events) = unbounded();
        log.listen(events, Arc::default());
        write(&mut log, &|ticks| sender.send(note(ticks)).unwrap());
        let recording = open.close(log.close().unwrap()).unwrap();
        let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
        let sealed = sealer.finish(Ending::Close, |_| {}).unwrap();
        let mut found = Vec::new();
        for part in &sealed.parts {
            for call in read_calls(&part.calls.path).unwrap() {
                found.push((call.start_seq, "enter".to_owned()));
                found.extend(call.end_seq.map(|seq| (seq, "leave".to_owned())));
            }
            for event in read_events(&part.events.path).unwrap() {
                let what = match event.text.filter(|_| event.kind == "note") {
                    Some(sent) => format!("note {sent} at {}", event.ts_ns),
                    None => event.kind,
                };
                found.push((event.seq, what));
            }
        }
        found.sort();
        found.into_iter().map(|(_, what)| what).collect()
    }

    fn append(log: &mut Log, frames: &[SynthFrame]) {
        for frame in frames {
            let appended = match frame {
                SynthFrame::Block {
                    ring,
                    tenancy,
                    bytes,
                } => log.append_block(*ring, *tenancy, [bytes, &[]]),
                SynthFrame::Control(control) => log.append_control(control),
                SynthFrame::Watermark(ticks) => log.append_watermark(*ticks),
            };
            appended.unwrap();
        }
    }

    /// The call, with an event of the tracer in it.
    const IN_THE_CALL: [&str; 4] = ["thread_start", "enter", "note 150 at 150", "leave"];

    #[test]
    fn an_event_sent_during_a_pass_is_before_what_its_thread_then_recorded() {
        let found = written(|log, send| {
            log.take_journal().unwrap();
            send(150);
            append(log, &call());
            log.append_watermark(300).unwrap();
        });
        assert_eq!(found, IN_THE_CALL);
    }

    #[test]
    fn an_event_sent_before_one_of_the_recorder_keeps_its_time() {
        let found = written(|log, send| {
            log.take_journal().unwrap();
            send(150);
            log.append_control(&warning(300)).unwrap();
            log.take_journal().unwrap();
            append(log, &call());
            log.append_watermark(400).unwrap();
        });
        let (last, before) = found.split_last().unwrap();
        assert_eq!(
            (before, last.as_str()),
            (&IN_THE_CALL.map(String::from)[..], "warning")
        );
    }

    #[test]
    fn a_later_event_does_not_delay_one_of_the_recorder() {
        let found = written(|log, send| {
            send(150);
            send(350);
            log.append_control(&warning(300)).unwrap();
            assert!(log.take_news() && !log.has_news());
            log.append_watermark(320).unwrap();
            assert!(!log.has_news(), "the next event is later");
            log.take_journal().unwrap();
            assert!(log.take_news());
        });
        let order = ["note 150 at 150", "warning", "note 350 at 350"];
        assert_eq!(found, order);
    }

    #[test]
    fn nothing_comes_after_the_end() {
        let found = written(|log, send| {
            send(150);
            log.end_journal().unwrap();
            log.append_control(&Control::Detached { ticks: 120 })
                .unwrap();
            log.append_watermark(300).unwrap();
        });
        assert_eq!(found, ["note 150 at 150", "detached"]);
    }

    #[test]
    fn warnings_and_fatal_signals_of_the_tracer_are_kept_until_they_are_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::new(LogWriter::create(dir.path(), synth::RECORDING_ID).unwrap());
        let (sender, events) = unbounded();
        log.listen(events, Arc::default());
        sender.send(warning(10)).unwrap();
        log.append_watermark(20).unwrap();
        assert_eq!(log.take_warnings(), ["from the recorder"]);
        assert!(log.take_warnings().is_empty());
        assert_eq!(log.fatal(), None);
        sender.send(killed(30)).unwrap();
        log.append_watermark(40).unwrap();
        assert_eq!(log.fatal(), Some(9));
    }
}
