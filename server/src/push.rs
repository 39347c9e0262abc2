//! Messages that the daemon sends on its own to subscribed clients: stops, output and ends.
//!
//! The thread that notices an event sends it: the one that waits for a session's stops, or one that reads its output.
//! No such thread waits for a client. A client that reads too slowly loses what does not fit its queue, and learns how
//! much it lost.

use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use serde::{Deserialize, Serialize};

use crate::os_text::OsText;
use crate::output::Stream;
use crate::session::{ExitReport, StopReport};

/// Something that has happened in a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Push {
    /// The session.
    pub session: u32,
    /// What has happened.
    #[serde(flatten)]
    pub what: Happened,
    /// How many pushes before this one were lost because the client read too slowly.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Happened {
    /// A thread has stopped. A very short stop may not be reported.
    Stopped {
        /// The stop.
        stop: Box<StopReport>,
    },
    /// The program has printed something.
    Output {
        /// The number of the piece, as `output` counts them.
        piece: u64,
        /// Its stream.
        stream: Stream,
        /// The output: text if UTF-8, else bytes.
        text: OsText,
    },
    /// The program has ended or was detached from.
    Ended {
        /// How it ended.
        exit: ExitReport,
        /// The recording's folder.
        #[serde(with = "store::os_path")]
        recording: PathBuf,
    },
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// All subscribers.
#[derive(Default)]
pub struct Subscribers {
    known: Mutex<Vec<Subscriber>>,
}

struct Subscriber {
    /// The session to report; `None` for all.
    session: Option<u32>,
    /// The queue of the client; gone once the client is.
    queue: Weak<SyncSender<Push>>,
    lost: u64,
}

impl Subscribers {
    /// Adds a subscriber for as long as its queue exists.
    pub fn add(&self, session: Option<u32>, queue: Weak<SyncSender<Push>>) {
        let mut known = self.known();
        known.retain(Subscriber::is_there);
        known.push(Subscriber {
            session,
            queue,
            lost: 0,
        });
    }

    /// Returns whether there is a subscriber for a session.
    #[must_use]
    pub fn want(&self, session: u32) -> bool {
        let known = self.known();
        known.iter().any(|one| one.wants(session) && one.is_there())
    }

    /// Sends a push to all subscribers of the session.
    pub fn tell(&self, session: u32, what: &Happened) {
        self.known().retain_mut(|one| {
            let Some(queue) = one.queue.upgrade() else {
                return false;
            };
            if !one.wants(session) {
                return true;
            }
            let push = Push {
                session,
                what: what.clone(),
                lost: one.lost,
            };
            match queue.try_send(push) {
                Ok(()) => one.lost = 0,
                Err(TrySendError::Full(_)) => one.lost += 1,
                Err(TrySendError::Disconnected(_)) => return false,
            }
            true
        });
    }

    fn known(&self) -> MutexGuard<'_, Vec<Subscriber>> {
        // The entries are independent of each other.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber {
    fn is_there(&self) -> bool {
        self.queue.strong_count() > 0
    }

    fn wants(&self, session: u32) -> bool {
        self.session.is_none_or(|wanted| wanted == session)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn output(piece: u64) -> Happened {
        Happened::Output {
            piece,
            stream: Stream::Stdout,
            text: OsText::Text("x".to_owned()),
        }
    }

    #[test]
    fn everybody_hears_of_the_sessions_that_they_want_and_how_much_they_lost() {
        let subscribers = Subscribers::default();
        let (all, all_pushes) = sync_channel(8);
        let (second, second_pushes) = sync_channel(1);
        let (all, second) = (Arc::new(all), Arc::new(second));
        subscribers.add(None, Arc::downgrade(&all));
        subscribers.add(Some(2), Arc::downgrade(&second));
        assert!(subscribers.want(7) && subscribers.want(2));
        subscribers.tell(1, &output(0));
        for piece in 0..3 {
            subscribers.tell(2, &output(piece));
        }
        assert_eq!(all_pushes.try_iter().count(), 4);
        assert_eq!(second_pushes.try_iter().count(), 1);
        subscribers.tell(2, &output(3));
        assert_eq!(
            second_pushes.try_iter().next().map(|push| push.lost),
            Some(2)
        );
        drop((all, second));
        assert!(!subscribers.want(2));
        drop(all_pushes);
    }
}
