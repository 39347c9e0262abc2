//! What keeps the daemon alive: connected clients and sessions whose program runs. Once both have been absent for the
//! idle time, the daemon decides to end and accepts no more clients.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Counts clients and sessions.
#[derive(Debug, Default)]
pub struct Presence {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    clients: usize,
    sessions: usize,
    /// The daemon accepts no more clients.
    ending: bool,
    /// End as soon as the last client has gone. Set when the last session was ended on purpose.
    end_soon: bool,
}

/// A counted client, no longer counted when dropped.
#[derive(Debug)]
pub struct Client<'a>(&'a Presence);

impl Presence {
    /// Counts a client, unless the daemon is about to end.
    pub fn enter(&self) -> Option<Client<'_>> {
        let mut state = self.state();
        if state.ending {
            return None;
        }
        state.clients += 1;
        self.changed.notify_all();
        Some(Client(self))
    }

    /// Sets the number of sessions whose program runs.
    pub fn set_sessions(&self, sessions: usize) {
        let mut state = self.state();
        state.sessions = sessions;
        self.changed.notify_all();
    }

    /// Requests the end as soon as no client is connected, provided there is no session.
    pub fn end_soon(&self) {
        let mut state = self.state();
        state.end_soon = state.sessions == 0;
        self.changed.notify_all();
    }

    /// Cancels [`Presence::end_soon`]: there is something to ask about again.
    pub fn stay(&self) {
        self.state().end_soon = false;
    }

    /// Waits until there has been no client and no session for `idle`. Accepts no client afterwards.
    pub fn wait_for_the_end(&self, idle: Duration) {
        let mut state = self.state();
        let mut since = Instant::now();
        loop {
            let empty = state.clients == 0 && state.sessions == 0;
            if !empty {
                state = self.wait(state);
                since = Instant::now();
                continue;
            }
            let left = idle.saturating_sub(since.elapsed());
            if state.end_soon || left.is_zero() {
                state.ending = true;
                return;
            }
            let before = (state.clients, state.sessions);
            let (next, _) = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner);
            state = next;
            if (state.clients, state.sessions) != before {
                since = Instant::now();
            }
        }
    }

    fn leave(&self) {
        self.state().clients -= 1;
        self.changed.notify_all();
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state holds only plain values and is consistent at all times.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn nobody_is_let_in_after_the_end() {
        let presence = Presence::default();
        presence.wait_for_the_end(Duration::ZERO);
        assert!(presence.enter().is_none());
    }

    #[test]
    fn the_end_waits_for_the_last_client() {
        let presence = Presence::default();
        std::thread::scope(|scope| {
            let client = presence.enter().unwrap();
            let end = scope.spawn(|| presence.wait_for_the_end(Duration::ZERO));
            assert!(!end.is_finished());
            drop(client);
            end.join().unwrap();
        });
    }

    #[test]
    fn a_session_ended_on_purpose_ends_the_daemon_without_waiting() {
        let presence = Presence::default();
        std::thread::scope(|scope| {
            let client = presence.enter().unwrap();
            presence.set_sessions(1);
            presence.end_soon();
            presence.set_sessions(0);
            presence.end_soon();
            let end = scope.spawn(|| presence.wait_for_the_end(LONG));
            drop(client);
            end.join().unwrap();
        });
    }

    #[test]
    fn a_recording_that_is_opened_after_the_last_session_keeps_the_daemon() {
        let presence = Presence::default();
        std::thread::scope(|scope| {
            let client = presence.enter().unwrap();
            presence.end_soon();
            presence.stay();
            let end = scope.spawn(|| presence.wait_for_the_end(LONG));
            drop(client);
            assert!(presence.enter().is_some());
            presence.end_soon();
            end.join().unwrap();
        });
    }

    #[test]
    fn a_session_keeps_the_daemon() {
        let presence = Presence::default();
        std::thread::scope(|scope| {
            presence.set_sessions(1);
            let end = scope.spawn(|| presence.wait_for_the_end(Duration::ZERO));
            assert!(presence.enter().is_some());
            presence.set_sessions(0);
            end.join().unwrap();
        });
    }
}
