//! A recording that grows while a prompt has it open: moves and SQL see the state at its opening.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use store::recording::{Created, OnTaken, OpenRecording};
use store::synth::{self, Synth};

use super::common::Folder;

const SLOT: u64 = 0x7f00_0000_0100;

#[test]
fn moves_and_sql_see_the_same_moment_of_a_growing_recording() {
    let folder = Folder::empty();
    let path = folder.path("growing.hindsight");
    let created = OpenRecording::create(&path, OnTaken::Refuse, synth::manifest());
    let Created { open, mut log } = created.unwrap();
    let mut synth = Synth::new();
    let f = synth.function("f");
    synth.thread(1).enter(f, SLOT).leave(SLOT).watermark();
    synth.append_to(&mut log).unwrap();
    log.settle().unwrap();
    let done = AtomicBool::new(false);
    let text = thread::scope(|scope| {
        scope.spawn(|| {
            let mut ticks = 1000;
            while !done.load(Ordering::Relaxed) {
                let mut calls = Synth::new();
                calls.at(ticks).thread(1).enter(f, SLOT).leave(SLOT);
                calls.watermark();
                ticks = calls.ticks() + 1000;
                for frame in &calls.frames() {
                    synth::append_frame(&mut log, frame).unwrap();
                }
                log.settle().unwrap();
            }
            log.close().unwrap()
        });
        let sql = "select 'at event ' || max(seq) as last from events";
        let args = ["repl", "growing", "--cmd", "goto last", "--cmd", sql];
        let text = folder.transcript(&args);
        done.store(true, Ordering::Relaxed);
        text
    });
    let lasts = text.split("at event ").skip(1);
    let lasts = lasts.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    let lasts: Vec<_> = lasts.flatten().collect();
    let [.., moved, asked] = lasts.as_slice() else {
        panic!("{text}");
    };
    assert_eq!(moved, asked, "{text}");
    drop(open);
}
