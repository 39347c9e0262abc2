//! Turns our own panics into errors while a program is traced: the tracing thread is the only one that can remove its
//! traps.

use std::panic::{AssertUnwindSafe, catch_unwind};

use debuginfo::GivenUp;

use crate::live::error::{LiveError, LiveResult};

/// Runs `work`. A panic becomes [`LiveError::Mistake`]. The caller must ensure that half-done work does no harm.
pub(crate) fn guarded<R>(work: impl FnOnce() -> R) -> LiveResult<R> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        if let Some(given_up) = panic.downcast_ref::<GivenUp>() {
            return LiveError::Evaluate(given_up.diagnostic());
        }
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        LiveError::Mistake(what.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use debuginfo::Limit;
    use e2e::{Scratch, fixture_artifact};

    use super::*;
    use crate::{
        Exit, Observer, OnFull, RecordOptions, SnapshotTimes, Surroundings, Target,
        live::{
            Action, FirstProbes, Live, LiveOptions, Location, Motion, ProbeSpec, Stdio, Waited,
            commands::Command,
        },
    };

    struct Quiet;
    impl Observer for Quiet {}

    fn started(scratch: &Scratch) -> Live {
        let program = fixture_artifact("control", "control_O0");
        let record = RecordOptions {
            output: Some(scratch.join("rec.hindsight")),
            include: Vec::new(),
            exclude: Vec::new(),
            on_full: OnFull::Block,
            snapshots: SnapshotTimes::default(),
            keep_log: false,
            max_size: None,
            surroundings: Surroundings::default(),
            captures: crate::Captures::default(),
            guardian: None,
            labels: Default::default(),
            target: Target::Spawn {
                argv: vec![program.into_os_string()],
            },
        };
        let options = LiveOptions {
            record,
            stop_on_entry: true,
            stdio: Stdio::Piped {
                cwd: scratch.path().to_path_buf(),
                env: Vec::new(),
            },
            first: FirstProbes::default(),
        };
        Live::start(options, Arc::new(Quiet)).expect("the program can be started")
    }

    /// Panics while all threads are held: in a command whose sender waits, and in one whose sender does not.
    #[test]
    fn a_panic_while_the_program_is_held_leaves_it_and_the_session_as_they_were() {
        let scratch = Scratch::new("guard");
        let live = started(&scratch);
        let held = live.ask(|tracer| -> LiveResult<()> {
            tracer.hold()?;
            panic!("thread {} is held", tracer.tracee.pid)
        });
        let error = held.expect_err("it panics");
        let expected = format!("thread {} is held", live.pid());
        assert!(
            matches!(&error, LiveError::Mistake(text) if *text == expected),
            "{error}"
        );
        let command: Command = Box::new(|_| panic!("no one waits"));
        live.inner
            .commands
            .send(command)
            .expect("the tracer serves");
        let spec = ProbeSpec {
            location: Location::Function("leaf".to_owned()),
            action: Action::Break {
                all_threads: false,
                once: false,
            },
            condition: None,
            hit_count: 0,
        };
        live.add_probe(spec).expect("there is such a function");
        let mut stops = 0;
        let exit = loop {
            let resumed = live.resume(live.pid(), Motion::Continue, true);
            match live.wait(resumed.expect("it is stopped"), Duration::from_secs(60)) {
                Waited::Stopped(_) => stops += 1,
                Waited::Ended(exit) => break exit,
                other => panic!("{other:?}"),
            }
        };
        // The stop at the entry, which was not shown yet, and two stops at the breakpoint.
        assert_eq!((exit, stops), (Exit::Code(7), 3));
    }

    #[test]
    fn a_panic_becomes_an_error_with_its_text() {
        assert_eq!(guarded(|| 3).unwrap(), 3);
        let error = guarded(|| -> u8 { panic!("index {} out of bounds", 7) }).unwrap_err();
        assert_eq!(
            error.one_line(),
            "internal error: index 7 out of bounds; please report it"
        );
        let error = guarded(|| std::panic::panic_any(1)).unwrap_err();
        assert!(error.to_string().contains("no message"), "{error}");
    }

    #[test]
    fn a_question_that_minds_no_error_ends_all_the_same() {
        let limit = Limit::new(Duration::from_millis(20));
        assert!(limit.check().is_ok());
        let refused = std::cell::Cell::new(0_u64);
        let error = guarded(|| {
            loop {
                refused.set(refused.get() + u64::from(limit.check().is_err()));
            }
        });
        let error: LiveError = match error {
            Ok(never) => never,
            Err(error) => error,
        };
        assert!(refused.get() > 0);
        assert_eq!(
            error.one_line(),
            "the question took longer than 20ms and was given up; ask for a part of it"
        );
    }
}
