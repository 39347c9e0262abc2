//! The place where a signal ended the program is that of the thread that got it, if that was seen.

use replay::{Target, Timeline};
use store::control::{Control, Exception, ExceptionPhase, PauseReason};
use store::synth::{Synth, pause};

const THREAD: u32 = 100;

fn exception(ticks: u64, tid: u32, phase: ExceptionPhase) -> Control {
    Control::Exception(Exception {
        ticks,
        tid,
        signal: Some(11),
        type_name: None,
        phase,
        addr: Some(16),
        message: None,
    })
}

/// Ends the program; returns the event of the crash, and what `goto crash` says if there is none.
fn crash(mut synth: Synth, signal: Option<i32>) -> Result<u64, String> {
    synth.live(|ticks| Control::ProcessExit {
        ticks,
        code: signal.is_none().then_some(0),
        signal,
    });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    synth.record(&path).unwrap();
    let timeline = Timeline::open(&path, dir.path()).unwrap();
    let target = Target::parse("crash").unwrap();
    let found = timeline.find(&target).map_err(|error| error.to_string());
    assert_eq!(timeline.crash().unwrap(), found.clone().ok());
    found
}

fn begun() -> Synth {
    let mut synth = Synth::new();
    synth.thread(THREAD);
    synth
}

fn stop(synth: &mut Synth, tid: u32) {
    synth.live(|ticks| Control::Pause(Box::new(pause(ticks, tid, PauseReason::Signal))));
}

#[test]
fn it_is_the_stop_of_the_thread_that_died() {
    let mut synth = begun();
    stop(&mut synth, THREAD);
    synth.live(|ticks| exception(ticks, THREAD, ExceptionPhase::Unhandled));
    stop(&mut synth, THREAD + 1);
    stop(&mut synth, THREAD);
    assert_eq!(crash(synth, Some(11)), Ok(4));
}

/// Older recordings report a crash under live control twice.
#[test]
fn an_exception_without_a_thread_hides_no_stop() {
    let mut synth = begun();
    synth.live(|ticks| exception(ticks, THREAD, ExceptionPhase::Unhandled));
    stop(&mut synth, THREAD);
    synth.live(|ticks| exception(ticks, 0, ExceptionPhase::Unhandled));
    assert_eq!(crash(synth, Some(11)), Ok(2));
}

#[test]
fn without_a_stop_it_is_the_event_of_the_signal() {
    let mut synth = begun();
    synth.live(|ticks| exception(ticks, 0, ExceptionPhase::Unhandled));
    assert_eq!(crash(synth, Some(11)), Ok(1));
}

#[test]
fn a_program_that_went_on_has_none() {
    let mut handled = begun();
    handled.live(|ticks| exception(ticks, THREAD, ExceptionPhase::FirstChance));
    let mut other = begun();
    other.live(|ticks| exception(ticks, THREAD, ExceptionPhase::Unhandled));
    for (synth, signal) in [(begun(), None), (handled, Some(11)), (other, Some(9))] {
        let said = crash(synth, signal).unwrap_err();
        assert!(said.contains("no signal ended the program"), "{said}");
    }
}
