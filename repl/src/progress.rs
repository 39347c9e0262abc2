//! Progress of commands on stderr. A bar appears only on a terminal, and only if the work takes some time.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use debuginfo::Diagnostic;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use server::quantity::{count, grouped};

use crate::render::{Paint, Terminal, bytes, escaped};

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);
/// What Ctrl-C does to a search.
const ENDS: &str = "; Ctrl-C stops it";

/// The progress display of one command.
pub struct Progress {
    terminal: Terminal,
    state: Mutex<State>,
    /// The process that is recorded until Ctrl-C.
    attached: Option<i32>,
}

#[derive(Default)]
struct State {
    bar: Option<ProgressBar>,
    since: Option<Instant>,
    /// The warnings so far.
    said: Vec<String>,
    /// The work itself says how far it is.
    tells: bool,
}

impl Progress {
    /// Makes a display that is still empty.
    pub fn new(terminal: &Terminal) -> Progress {
        Progress {
            terminal: terminal.clone(),
            state: Mutex::default(),
            attached: None,
        }
    }

    /// Makes the display of the recording of a running process, `pid`, that goes on until Ctrl-C: says so when it begins.
    pub fn of_attached(terminal: &Terminal, pid: i32) -> Progress {
        Progress {
            attached: Some(pid),
            ..Progress::new(terminal)
        }
    }

    /// Removes the bar, if there is one.
    pub fn finish(&self) {
        let mut state = self.state();
        state.tells = false;
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Shows a step of the one-time setup.
    pub fn setup(&self, step: &str) {
        self.line(&format!("hindsight: {}", escaped(step)));
    }

    /// Shows a warning.
    pub fn warning(&self, text: &str) {
        self.state().said.push(text.to_owned());
        let word = self
            .terminal
            .stderr_colour
            .paint(Paint::Warning, "warning:");
        self.line(&format!("hindsight: {word} {}", escaped(text)));
    }

    /// Returns whether there was a warning with this text.
    pub fn has_said(&self, text: &str) -> bool {
        self.state().said.iter().any(|said| said == text)
    }

    /// Shows the progress of sealing.
    pub fn sealing(&self, events: u64, done_bytes: u64, total_bytes: u64) {
        self.advance("sealing", done_bytes, total_bytes, || {
            count(events, "event")
        });
    }

    /// Shows the progress of reading a recording.
    pub fn reading(&self, done_bytes: u64, total_bytes: u64) {
        self.advance("reading", done_bytes, total_bytes, || bytes(done_bytes));
    }

    /// Shows how many instructions of a recording have been run again.
    pub fn running_again(&self, done: u64, total: u64) {
        self.advance("running", done, total, || {
            format!("{} instructions", grouped(done))
        });
    }

    /// Shows the progress of the run that finds the calls of a program.
    pub fn finding_calls(&self, done: u64, total: u64) {
        self.advance("finding calls", done, total, || {
            format!("{} instructions", grouped(done))
        });
    }

    /// Shows the progress of a download.
    pub fn fetching(&self, done_bytes: u64, total_bytes: u64) {
        self.advance("fetching", done_bytes, total_bytes, || bytes(done_bytes));
    }

    /// Shows that a query is running: for how long, and how much has been read, or which instruction the program has reached.
    pub fn asking(&self, since: Instant, read_bytes: u64, instructions: u64) {
        if !self.terminal.progress || since.elapsed() < PATIENCE {
            return;
        }
        let mut state = self.state();
        let bar = state.bar.get_or_insert_with(new_counter);
        let done = match instructions {
            0 => format!("{} read", bytes(read_bytes)),
            reached => format!("at instruction {}", grouped(reached)),
        };
        let seconds = since.elapsed().as_secs();
        bar.set_message(format!("{done}, {seconds} s{ENDS}"));
    }

    /// Shows the progress of something that reports it only after a delay of its own. `may_leave`: Ctrl-C ends it.
    pub fn running(&self, text: &str, may_leave: bool) {
        if !self.terminal.progress {
            return;
        }
        let mut state = self.state();
        state.tells = true;
        let bar = state.bar.get_or_insert_with(new_counter);
        // Ctrl-C leaves what else takes long, and the daemon completes it.
        let ends = if may_leave { ENDS } else { "" };
        bar.set_message(format!("{}{ends}", escaped(text)));
    }

    /// Does work that may not say how far it is: after a moment a counter shows that it goes on. `what` is a verb: comparing.
    pub fn alive<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        if !self.terminal.progress {
            return work();
        }
        let (done, is_done) = mpsc::channel::<()>();
        std::thread::scope(|threads| {
            threads.spawn(move || self.count_seconds(what, &is_done));
            let result = work();
            drop(done);
            result
        })
    }

    /// Shows a counter until `is_done` is closed, if the work does not show anything.
    fn count_seconds(&self, what: &str, is_done: &mpsc::Receiver<()>) {
        let since = Instant::now();
        while is_done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let mut state = self.state();
            if state.tells {
                return;
            }
            let bar = state.bar.get_or_insert_with(new_counter);
            bar.set_message(format!("{what}, {} s", since.elapsed().as_secs()));
            bar.tick();
        }
        let mut state = self.state();
        if !state.tells
            && let Some(bar) = state.bar.take()
        {
            bar.finish_and_clear();
        }
    }

    /// Shows the progress of a pass over all calls.
    pub fn adding_up(&self, done_calls: u64, all_calls: u64) {
        self.advance("adding up", done_calls, all_calls, || {
            count(done_calls, "call")
        });
    }

    fn advance(&self, verb: &'static str, done: u64, total: u64, text: impl FnOnce() -> String) {
        if !self.terminal.progress {
            return;
        }
        let mut state = self.state();
        let since = *state.since.get_or_insert_with(Instant::now);
        let elapsed = since.elapsed();
        if elapsed < PATIENCE || total == 0 {
            return;
        }
        let bar = state.bar.get_or_insert_with(|| new_bar(verb));
        bar.set_prefix(verb);
        bar.set_length(total.max(done));
        bar.set_position(done);
        bar.set_message(text() + &left(elapsed, done, total));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while drawing cannot damage the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line above the bar.
    fn line(&self, text: &str) {
        match &self.state().bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }
}

/// `recording process 4711 into app.hindsight; Ctrl-C ends that, and the process keeps running`.
fn attached_line(pid: i32, recording: &Path) -> String {
    let recording = recording.display();
    format!(
        "recording process {pid} into {recording}; Ctrl-C ends that, and the process keeps running"
    )
}

/// Says how long work will go on that has done so much; nothing before its first part is done.
fn left(elapsed: Duration, done: u64, total: u64) -> String {
    if done == 0 || done >= total {
        return String::new();
    }
    let seconds = elapsed.as_secs_f64() * (total - done) as f64 / done as f64;
    format!(", {} s left", seconds.ceil())
}

fn new_bar(verb: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("hindsight: {prefix} [{bar:30}] {percent:>3}% {msg}")
        .expect("the template is a constant that parses")
        .progress_chars("=> ");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    bar.set_style(style);
    bar.set_prefix(verb);
    bar
}

/// Makes the display of work with an unknown end.
fn new_counter() -> ProgressBar {
    let style = ProgressStyle::with_template("hindsight: {spinner} {msg}")
        .expect("the template is a constant that parses");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    bar.set_style(style);
    bar
}

impl recorder::Observer for Progress {
    fn setup(&self, step: &str) {
        Progress::setup(self, step);
    }

    fn created(&self, recording: &Path) {
        if let Err(error) = store::catalog::tell(recording) {
            tracing::debug!(%error, "the catalog of runs does not know the recording");
        }
        if let Some(pid) = self.attached {
            Progress::setup(self, &attached_line(pid, recording));
        }
    }

    fn finding_calls(&self, done: u64, total: u64) {
        Progress::finding_calls(self, done, total);
    }

    fn sealing(&self, done_events: u64, done_bytes: u64, total_bytes: u64) {
        Progress::sealing(self, done_events, done_bytes, total_bytes);
    }

    fn warning(&self, warning: &Diagnostic) {
        Progress::warning(self, &warning.one_line());
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, PATIENCE, Progress, left};
    use crate::render::{Colour, Terminal};

    fn on_terminal(progress: bool) -> Progress {
        Progress::new(&Terminal {
            interactive: progress,
            stdout: progress,
            progress,
            stdout_colour: Colour::Off,
            stderr_colour: Colour::Off,
        })
    }

    /// Pretends that the work has run for longer than the delay of the bar.
    fn run_out_of_patience(progress: &Progress) {
        let long_ago = Instant::now().checked_sub(PATIENCE);
        progress.state().since = Some(long_ago.expect("the machine has run for a while"));
    }

    #[test]
    fn a_bar_appears_only_when_sealing_takes_a_while() {
        let progress = on_terminal(true);
        progress.sealing(1_000, 10, 100);
        assert!(progress.state().bar.is_none(), "it has only just begun");
        run_out_of_patience(&progress);
        for (events, done, total) in [(2_500, 25, 100), (12_000, 130, 120)] {
            progress.sealing(events, done, total);
            let bar = progress.state().bar.clone().expect("it takes a while");
            assert_eq!(bar.position(), done);
            assert_eq!(bar.length(), Some(total.max(done)), "never beyond its end");
            assert_eq!(bar.prefix(), "sealing");
        }
        let bar = progress.state().bar.clone().expect("it is not done yet");
        assert_eq!(bar.message(), "12,000 events");
        progress.finish();
        assert!(bar.is_finished() && progress.state().bar.is_none());
    }

    #[test]
    fn work_that_says_nothing_has_a_counter() {
        let progress = on_terminal(true);
        let message = progress.alive("comparing", || {
            loop {
                if let Some(bar) = &progress.state().bar {
                    return bar.message();
                }
                std::thread::yield_now();
            }
        });
        assert_eq!(message, "comparing, 0 s");
        assert!(progress.state().bar.is_none(), "it is done");
        assert_eq!(on_terminal(false).alive("comparing", || 7), 7);
    }

    #[test]
    fn only_what_ctrl_c_ends_says_so() {
        let progress = on_terminal(true);
        let shown = |text, may_leave| {
            progress.running(text, may_leave);
            progress.state().bar.as_ref().map(|bar| bar.message())
        };
        assert_eq!(
            shown("running: event 5 of 9", true).as_deref(),
            Some("running: event 5 of 9; Ctrl-C stops it")
        );
        assert_eq!(
            shown("running: to the end", false).as_deref(),
            Some("running: to the end")
        );
    }

    #[test]
    fn the_time_that_is_left_follows_from_what_is_done() {
        let after = |done| left(Duration::from_secs(2), done, 100);
        assert_eq!(after(0), "");
        assert_eq!(after(1), ", 198 s left");
        assert_eq!(after(99), ", 1 s left");
        assert_eq!(after(100), "");
    }

    #[test]
    fn what_goes_on_until_ctrl_c_says_so() {
        assert_eq!(
            super::attached_line(4711, std::path::Path::new("app.hindsight")),
            "recording process 4711 into app.hindsight; Ctrl-C ends that, and the process keeps running"
        );
    }

    #[test]
    fn there_is_no_bar_without_a_terminal_or_a_known_length() {
        let piped = on_terminal(false);
        run_out_of_patience(&piped);
        piped.sealing(1_000, 10, 100);
        assert!(piped.state().bar.is_none());
        let unknown = on_terminal(true);
        run_out_of_patience(&unknown);
        unknown.reading(0, 0);
        assert!(unknown.state().bar.is_none());
        unknown.reading(5, 10);
        assert_eq!(
            unknown.state().bar.as_ref().map(|bar| bar.position()),
            Some(5)
        );
    }
}
