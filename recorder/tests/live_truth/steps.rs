//! gdb and Hindsight step from the same places: they pass the same instructions, functions and lines, and see the same
//! returned values.

use std::fmt::Write;

use debuginfo::backtrace;
use debuginfo::scope::returned;
use debuginfo::value::Look;
use e2e::{Scratch, in_turn, share};
use recorder::live::*;
use values::RenderOptions;

use crate::{
    bench::{Controlled, Subject, gdb},
    moment::{is_same_place, plain, text_of, without_arguments},
    places,
    stops::{Stop, choose_among, place},
};

/// Minimum number of hits of a line to step from: there must be another one when its turn comes.
const HITS: u64 = 25;

/// The script's word for a program that ended during a step: gdb does not notice that longjmp leaves the function to
/// finish. The walks from the next place start over.
const LOST: &str = "LOST";
/// The script's word for a program that ended before the place of a walk.
const GONE: &str = "GONE";

/// A command and how often it is given.
type Walk = (Motion, &'static str, usize);

const WALKS: [Walk; 3] = [
    (Motion::Next, "next", 25),
    (Motion::Step, "step", 25),
    (Motion::Finish { frame: 0 }, "finish", 3),
];
/// gdb crashes on values that Rust functions return.
const WALKS_OF_RUST: [Walk; 2] = [(Motion::Next, "next", 25), (Motion::Step, "step", 25)];

/// Returns where a thread is: address, function, file name and line.
fn whereabouts(controlled: &Controlled) -> String {
    let machine = controlled
        .live
        .machine(controlled.tid)
        .expect("it is stopped");
    let frames = backtrace(&controlled.live.space(), &machine, 1).frames;
    let Some(frame) = frames.first() else {
        return "nowhere".to_owned();
    };
    let name = without_arguments(frame.function.as_deref().unwrap_or("?"));
    let source = frame.source.as_ref();
    let place = source.map_or_else(|| "?:0".to_owned(), |s| place(&s.file, s.line));
    outside(&format!("{:x} {name} {place}", frame.pc))
}

/// For places in libraries only the address counts: gdb is kept from reading their debug information.
fn outside(place: &str) -> String {
    match place.split_once(' ') {
        Some((address, _)) if address.starts_with("7ffff") => address.to_owned(),
        _ => place.to_owned(),
    }
}

/// Returns the entry of the function that `finish` will leave; `None` for an inlined one.
fn finished(controlled: &Controlled) -> Option<u64> {
    let machine = controlled.live.machine(controlled.tid).ok()?;
    let frames = backtrace(&controlled.live.space(), &machine, 1).frames;
    let frame = frames.first().filter(|frame| !frame.inlined)?;
    frame.function_entry
}

/// Returns a function's returned value as gdb writes it; `None` if there is none or it is unknown.
fn value(controlled: &Controlled, entry: u64) -> Option<String> {
    let machine = controlled.live.machine(controlled.tid).ok()?;
    let space = controlled.live.space();
    let value = returned(&space, &machine, entry).ok()??;
    let options = RenderOptions {
        raw: true,
        ..RenderOptions::default()
    };
    let look = Look {
        space: &space,
        machine: &machine,
    };
    Some(text_of(&value, &options, &look))
}

/// Goes to the place for each walk at its next hit, and steps from there. Up to `more` extra steps may be needed to get
/// where gdb gets with one. Also returns the places of the extra steps.
fn ours(
    subject: &Subject,
    scratch: &Scratch,
    from: &Stop,
    walks: &[Walk],
    theirs: &[String],
    more: usize,
) -> (Vec<String>, Vec<String>) {
    let mut controlled = Controlled::start(subject, scratch, "stepped");
    let mut found = Vec::new();
    let mut extra = Vec::new();
    for (motion, _, steps) in walks {
        let location = Location::Line {
            file: from.file.clone(),
            line: from.line,
            column: None,
        };
        controlled.break_at(location, 0, true);
        if controlled.go(Motion::Continue).is_none() {
            found.push(GONE.to_owned());
            break;
        }
        found.push(format!("STOP\t{}", whereabouts(&controlled)));
        for _ in 0..*steps {
            let left = match motion {
                Motion::Finish { .. } => finished(&controlled),
                _ => None,
            };
            let wanted = theirs.get(found.len());
            if wanted.is_some_and(|wanted| wanted == LOST) {
                found.push(LOST.to_owned());
                return (found, extra);
            }
            for left in (0..=more).rev() {
                if controlled.go(motion.clone()).is_none() {
                    found.push("ENDED".to_owned());
                    return (found, extra);
                }
                let here = whereabouts(&controlled);
                let at = format!("AT\t{here}");
                if left == 0 || wanted.is_some_and(|wanted| is_same_place(&at, wanted)) {
                    found.push(at);
                    break;
                }
                extra.push(here);
            }
            let value = left.and_then(|entry| value(&controlled, entry));
            found.extend(value.map(|value| format!("RETURNED\t{value}")));
        }
    }
    (found, extra)
}

/// Converts what gdb printed to our format.
fn theirs(output: &str) -> Vec<String> {
    let said = |line: &str| match line.split_once('\t').unwrap_or((line, "")) {
        (kind @ ("STOP" | "AT"), place) => {
            let place = outside(&without_arguments(place));
            Some(format!("{kind}\t{place}"))
        }
        (LOST | GONE, _) => Some(line.to_owned()),
        ("RETURNED", value) => Some(format!("RETURNED\t{}", plain(&value.replace("\\\\", "\\")))),
        _ => None,
    };
    output.lines().filter_map(said).collect()
}

/// Compares the walks from one place after the other.
/// `at_least`: steps from half of the places.
fn steps_are_the_same(artifact: &str, seed: u64, places: usize, at_least: usize) {
    let scratch = Scratch::new(artifact);
    let subject = Subject::new(artifact);
    let wanted = share(places);
    let chosen = choose_among(&subject, &scratch, seed, wanted, |line| line.hits >= HITS);
    let [mut steps, mut extra] = [0; 2];
    let mut differences = Vec::new();
    for stop in &chosen {
        let compared = compare(artifact, &subject, stop);
        steps += compared.same;
        extra += compared.extra;
        differences.extend(compared.differences);
    }
    eprintln!("{artifact}: {steps} steps compared, {extra} extra steps");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(extra <= steps / 5, "{extra} steps that gdb does not make");
    assert!(
        steps * places >= at_least * wanted,
        "the program ends before it has been stepped through"
    );
}

/// The result of the walks from one place.
struct Compared {
    /// Number of equal steps.
    same: usize,
    /// Number of steps that only we made.
    extra: usize,
    differences: Vec<String>,
}

/// Compares the results of all commands from one place.
fn compare(artifact: &str, subject: &Subject, stop: &Stop) -> Compared {
    let scratch = &Scratch::new(artifact);
    let walks = match artifact.starts_with("orders") {
        true => &WALKS_OF_RUST[..],
        false => &WALKS[..],
    };
    let mut plan = String::new();
    for (_, word, steps) in walks {
        writeln!(plan, "{}\t{steps}\t{word}", places::planned(stop)).unwrap();
    }
    let plan_file = scratch.join("plan");
    std::fs::write(&plan_file, plan).expect("the folder is writable");
    let output = gdb(subject, scratch, "steps.py", &plan_file);
    let theirs = theirs(&output);
    // gdb considers a line to extend to the next one of the same file (or of some others), and skips statements of
    // functions of other files that are inlined in between. Where we stop there, readelf has a statement, or an inlined
    // call begins. gdb also takes the first range of an inlined copy for its beginning even if DW_AT_entry_pc says
    // otherwise, and skips calls that begin there. (The standard library of Rust is always optimised.)
    let is_passed_by = artifact.starts_with("orders") || artifact == "lua_O2";
    let more = if is_passed_by { 8 } else { 0 };
    let (ours, extra) = ours(subject, scratch, stop, walks, &theirs, more);
    let both = ours.iter().zip(&theirs);
    let same = both.take_while(|(a, b)| is_same_place(a, b)).count();
    let from = same.saturating_sub(8);
    let shown = |all: &[String]| all[from.min(all.len())..(same + 4).min(all.len())].join("\n  ");
    let difference = || {
        let from = place(&stop.file, stop.line);
        let (of, ours, theirs) = (theirs.len(), shown(&ours), shown(&theirs));
        format!(
            "{artifact}, from {from}: step {same} of {of} differs\nhere:\n  {ours}\ngdb:\n  {theirs}"
        )
    };
    let mut differences = places::wrong(subject, &output);
    differences.extend((same < ours.len().max(theirs.len())).then(difference));
    let astray = places::without_statement(subject, &extra).into_iter();
    differences.extend(astray.map(|at| format!("{artifact}: no statement begins at {at}")));
    Compared {
        same,
        extra: extra.len(),
        differences,
    }
}

#[test]
fn steps_through_programs_are_those_of_gdb() {
    for (artifact, seed, places, at_least) in in_turn([
        ("sqlite_O0", 11, 5, 100),
        ("sqlite_O2", 29, 6, 87),
        ("lua_O0", 13, 5, 100),
        ("lua_O2", 17, 6, 87),
        ("orders_O0", 19, 6, 25),
        ("orders_O2", 23, 6, 100),
        ("shapes_O0", 31, 6, 100),
        ("shapes_O2", 37, 6, 87),
    ]) {
        steps_are_the_same(artifact, seed, places, at_least);
    }
}
