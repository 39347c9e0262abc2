//! Goal: an overview keeps to the lines that it is given, whatever the recording holds. Method: made-up recordings, of which everything
//! is known, and one without events.

mod common;

use common::{Asked, shop};
use query::{Overview, overview};
use store::synth::Synth;

fn of(asked: &Asked) -> Overview {
    overview(&asked.session, "test").unwrap()
}

#[track_caller]
fn keeps_to_its_lines(overview: &Overview) {
    for max_lines in 1..=40 {
        let lines = overview.text(max_lines).lines().count();
        assert!((1..=max_lines).contains(&lines), "{lines} of {max_lines}");
    }
}

#[test]
fn what_a_shop_did_is_told() {
    let overview = of(&Asked::new(|path| shop().record(path)));
    keeps_to_its_lines(&overview);
    let text = overview.text(40);
    assert!(text.contains("exited with code 3 after"), "{text}");
    assert!(
        text.contains("lost: 7 events in 1 gap, the first at seq"),
        "{text}"
    );
    assert!(
        text.contains("parse returned -1: 1 of 3 calls, first seq"),
        "{text}"
    );
    assert_eq!(overview.threads.total, 2);
}

#[test]
fn a_recording_without_events_has_an_overview() {
    let overview = of(&Asked::new(|path| Synth::new().record(path)));
    keeps_to_its_lines(&overview);
    assert_eq!((overview.program.events, overview.program.calls), (0, 0));
    assert_eq!(overview.next.len(), 3);
}
