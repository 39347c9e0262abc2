//! Reports the progress of a run through a recording to the client that waits for it. Short runs report nothing.

use std::sync::mpsc::{self, RecvTimeoutError};
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

pub(crate) type Notify = Arc<dyn Fn(Notice) + Send + Sync>;

/// Does `work` in a thread; whoever waits learns that `what` goes on, and for how long it has.
pub(crate) fn told<T: Send>(what: &str, notify: &Notify, work: impl FnOnce() -> T + Send) -> T {
    let (done, result) = mpsc::sync_channel(1);
    let since = Instant::now();
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let _ = done.send(work());
        });
        let mut patience = PATIENCE;
        loop {
            match result.recv_timeout(patience) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) => {
                    let text = format!("{what}: {} s", since.elapsed().as_secs());
                    notify(Notice::new(NoticeKind::Running, text));
                    patience = PAUSE;
                }
                Err(RecvTimeoutError::Disconnected) => match worker.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(()) => unreachable!("it has sent its result"),
                },
            }
        }
    })
}

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
        (self.notify)(Notice {
            may_leave: true,
            ..Notice::new(NoticeKind::Running, text)
        });
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;

    use super::*;

    #[test]
    fn who_waits_for_long_work_is_told_that_it_goes_on() {
        let (heard, hear) = mpsc::channel();
        let notify: Notify = Arc::new(move |notice| heard.send(notice.text).unwrap());
        // The work ends once there were two notices.
        let texts = told("closing the recording", &notify, move || {
            [hear.recv().unwrap(), hear.recv().unwrap()]
        });
        for text in texts {
            let rest = text
                .strip_prefix("closing the recording: ")
                .and_then(|rest| rest.strip_suffix(" s"));
            assert!(
                rest.is_some_and(|count| count.parse::<u64>().is_ok()),
                "{text}"
            );
        }
    }

    #[test]
    fn short_work_says_nothing_and_panics_pass() {
        let notify: Notify = Arc::new(|notice| panic!("{notice:?}"));
        assert_eq!(told("nothing", &notify, || 7), 7);
        let failed = std::panic::catch_unwind(AssertUnwindSafe(|| {
            told("a panic", &notify, || panic!("this one"));
        }));
        assert!(failed.is_err());
    }

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
