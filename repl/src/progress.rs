//! What `record` and `setup` show on stderr while they work. Bars only on a terminal, and only when it takes a while.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::render::{Paint, Terminal, escaped};

/// Sealing that takes less than this shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// The lines and the bar of one command.
pub struct Progress {
    terminal: Terminal,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    bar: Option<ProgressBar>,
    sealing_since: Option<Instant>,
}

impl Progress {
    /// Shows nothing yet.
    pub fn new(terminal: &Terminal) -> Progress {
        Progress {
            terminal: terminal.clone(),
            state: RefCell::default(),
        }
    }

    /// Removes the bar, if there is one.
    pub fn finish(&self) {
        if let Some(bar) = self.state.borrow_mut().bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Shows a step of the setup, which happens once.
    pub fn setup(&self, step: &str) {
        self.line(&format!("hindsight: {}", escaped(step)));
    }

    /// Shows what the user should know but that stops nothing.
    pub fn warning(&self, text: &str) {
        let word = self
            .terminal
            .stderr_colour
            .paint(Paint::Warning, "warning:");
        self.line(&format!("hindsight: {word} {}", escaped(text)));
    }

    /// Shows how far sealing is.
    pub fn sealing(&self, events: u64, done_bytes: u64, total_bytes: u64) {
        if !self.terminal.progress {
            return;
        }
        let mut state = self.state.borrow_mut();
        let since = *state.sealing_since.get_or_insert_with(Instant::now);
        if since.elapsed() < PATIENCE || total_bytes == 0 {
            return;
        }
        let bar = state.bar.get_or_insert_with(|| sealing_bar(total_bytes));
        bar.set_length(total_bytes);
        bar.set_position(done_bytes);
        bar.set_message(crate::render::count(events, "event"));
    }

    /// Writes a line above the bar.
    fn line(&self, text: &str) {
        match &self.state.borrow().bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }
}

fn sealing_bar(total_bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "hindsight: sealing [{bar:30}] {percent:>3}% {msg}, {eta} left",
    )
    .expect("the template is a constant that parses")
    .progress_chars("=> ");
    let bar =
        ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::stderr_with_hz(10));
    bar.set_style(style);
    bar
}

impl recorder::Observer for Progress {
    fn setup(&self, step: &str) {
        Progress::setup(self, step);
    }

    fn sealing(&self, done_events: u64, done_bytes: u64, total_bytes: u64) {
        Progress::sealing(self, done_events, done_bytes, total_bytes);
    }

    fn warning(&self, text: &str) {
        Progress::warning(self, text);
    }
}
