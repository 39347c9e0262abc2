//! Progress and cancellation of long runs of a recording's instructions: an overseer learns how far a run is, and decides
//! whether it continues. Each thread sets the overseer of its own requests, and the time that their questions may take.

use std::cell::{Cell, RefCell};
use std::time::Duration;

pub use exact::Overseer;

thread_local! {
    static OVERSEER: RefCell<Option<Overseer>> = const { RefCell::new(None) };
    static TIME: Cell<Duration> = const { Cell::new(QUESTION_TIME) };
}

/// How long a question may read memory: as long as one about a live program, with the usual settings.
pub const QUESTION_TIME: Duration = Duration::from_secs(24);

/// Does `work`, in which each question about a moment may read memory for `time`. What it has not read then is unknown.
pub fn with_question_time<T>(time: Duration, work: impl FnOnce() -> T) -> T {
    struct Restored(Duration);
    impl Drop for Restored {
        fn drop(&mut self) {
            TIME.set(self.0);
        }
    }
    let _restored = Restored(TIME.replace(time));
    work()
}

/// That of this thread.
pub(crate) fn question_time() -> Duration {
    TIME.get()
}

/// Does `work`, in which `overseer` receives the position of each run of instructions, many times a second. Once it returns
/// false, the run ends with [`crate::Error::Interrupted`].
pub fn overseen<T>(overseer: Overseer, work: impl FnOnce() -> T) -> T {
    struct Restored(Option<Overseer>);
    impl Drop for Restored {
        fn drop(&mut self) {
            OVERSEER.set(self.0.take());
        }
    }
    let _restored = Restored(OVERSEER.replace(Some(overseer)));
    work()
}

/// Tells the overseer of this thread's request, if it has one, how far other work is. Returns whether to go on.
#[must_use]
pub fn goes_on(position: u64) -> bool {
    overseer().is_none_or(|overseer| overseer(position))
}

/// That of this thread.
pub(crate) fn overseer() -> Option<Overseer> {
    OVERSEER.with_borrow(Clone::clone)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn an_overseer_is_that_of_the_work_around() {
        let answer = |is: bool| Arc::new(move |_| is) as Overseer;
        let asked = || overseer().map(|overseer| overseer(7));
        assert!(goes_on(7), "a run without an overseer is never stopped");
        assert_eq!(asked(), None);
        overseen(answer(true), || {
            assert_eq!(asked(), Some(true));
            overseen(answer(false), || {
                assert_eq!(asked(), Some(false));
                assert!(!goes_on(7));
            });
            assert_eq!(asked(), Some(true));
        });
        assert_eq!(asked(), None);
    }
}
