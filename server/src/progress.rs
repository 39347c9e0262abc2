//! Reports the progress of a run through a recording to the client that waits for it. Short runs report nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use replay::Overseer;

use crate::gone::Gone;
use crate::protocol::{Notice, NoticeKind};
use crate::quantity::grouped;

/// Runs shorter than this report nothing.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time between two notices.
const PAUSE: Duration = Duration::from_millis(250);

type Notify = Arc<dyn Fn(Notice) + Send + Sync>;

/// What is reported about a run, and to whom.
pub(crate) struct Told {
    /// What is counted.
    what: &'static str,
    /// The last one.
    end: u64,
    next: Mutex<Instant>,
    gone: Arc<Gone>,
    notify: Notify,
}

impl Told {
    /// `what`, of which `end` is the last, is what runs pass.
    pub fn new((what, end): (&'static str, u64), gone: Arc<Gone>, notify: Notify) -> Told {
        Told {
            what,
            end,
            next: Mutex::new(Instant::now() + PATIENCE),
            gone,
            notify,
        }
    }

    /// Oversees runs: they end when the client has gone or no longer wants an answer.
    pub fn overseer(self) -> Overseer {
        Arc::new(move |position| {
            self.tell(position);
            !self.gone.is_set()
        })
    }

    fn tell(&self, position: u64) {
        let now = Instant::now();
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if now < *next {
            return;
        }
        *next = now + PAUSE;
        let text = format!(
            "running: {} {} of {}",
            self.what,
            grouped(position),
            grouped(self.end)
        );
        (self.notify)(Notice::new(NoticeKind::Running, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told_after_a_while_and_ends_the_run() {
        let told: Arc<Mutex<Vec<Notice>>> = Arc::default();
        let heard = Arc::clone(&told);
        let gone: Arc<Gone> = Arc::default();
        let run = Told::new(
            ("instruction", 5_000_000),
            Arc::clone(&gone),
            Arc::new(move |notice| heard.lock().unwrap().push(notice)),
        );
        run.tell(1);
        assert!(told.lock().unwrap().is_empty(), "it has just begun");
        *run.next.lock().unwrap() = Instant::now();
        let overseer = run.overseer();
        assert!(overseer(1_234_567));
        assert!(overseer(1_234_568));
        let texts: Vec<String> = told
            .lock()
            .unwrap()
            .iter()
            .map(|n| n.text.clone())
            .collect();
        assert_eq!(texts, ["running: instruction 1,234,567 of 5,000,000"]);
        gone.set();
        assert!(!overseer(1_234_569));
    }
}
