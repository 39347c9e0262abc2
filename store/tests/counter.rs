//! Goal: the counter assigns the same numbers as sealing. Method: a synthetic debugging session, counted and sealed.

use store::seal::{Counter, Ending, SealOptions, Sealer};
use store::synth::debugged;

#[test]
fn the_numbers_are_those_of_sealing() {
    let folder = tempfile::tempdir().unwrap();
    let mut synth = debugged();
    synth.watermark();
    let recording = synth
        .record_interrupted(&folder.path().join("a.hindsight"))
        .unwrap();
    let mut counter = Counter::open(&recording).unwrap();
    assert_eq!(counter.events(), 0);
    counter.advance().unwrap();
    let aside = tempfile::tempdir().unwrap();
    let sealer = Sealer::aside(&recording, aside.path(), SealOptions::default()).unwrap();
    let sealed = sealer.finish(Ending::LiveTail, |_| {}).unwrap();
    assert_eq!(counter.events(), sealed.events);
    assert!(counter.events() > 20, "{}", counter.events());
    assert_eq!(counter.last_stop(4242), Some(9));
    assert_eq!(counter.last_stop(4243), Some(25));
    assert_eq!(counter.last_stop(1), None);
    counter.advance().unwrap();
    assert_eq!(counter.events(), sealed.events, "nothing came");

    let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
    sealer.finish(Ending::Close, |_| {}).unwrap();
    let mut late = Counter::open(&recording).unwrap();
    late.advance().unwrap();
    assert!(late.events() >= sealed.events);
    assert_eq!(late.last_stop(4242), None, "it was sealed before");
}
