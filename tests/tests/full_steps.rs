//! Goal: many instructions are stepped as one by one, and at once. Method: a recording of every instruction of a program with two
//! threads; the same way step by step and in one move, forwards and backwards.

use std::time::{Duration, Instant};

use e2e::{Hindsight, Program, Recording, Scratch, Status, fixture_artifact};

fn recorded(name: &str) -> (Scratch, Recording) {
    let scratch = Scratch::new(name);
    let program = fixture_artifact("planted", "planted");
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &["--full"], &program);
    (scratch, recording)
}

/// Where these lines lead: the moment and the place.
fn led_to(recording: &Recording, lines: &[String]) -> String {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let ended = recording.prompt(&[&lines, &["print $pc"][..]].concat());
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let text = ended.text();
    let moved = text.lines().rfind(|line| line.starts_with("Thread "));
    let pc = text.lines().last().unwrap_or_default();
    format!("{} {pc}", moved.unwrap_or_default())
}

#[test]
fn many_steps_lead_where_single_ones_do() {
    let (_scratch, recording) = recorded("full-steps");
    for start in ["goto last", "goto 50%", "goto 20%"] {
        for verb in ["step-back -i", "step -i"] {
            let begin = match (start, verb) {
                ("goto last", "step -i") => vec![start.to_owned(), "step-back -i 60".to_owned()],
                _ => vec![start.to_owned()],
            };
            let single = std::iter::repeat_n(verb.to_owned(), 50);
            let single = begin.iter().cloned().chain(single).collect::<Vec<_>>();
            let at_once = begin.iter().cloned().chain([format!("{verb} 50")]);
            assert_eq!(
                led_to(&recording, &at_once.collect::<Vec<_>>()),
                led_to(&recording, &single),
                "{start}, {verb}"
            );
        }
    }
}

#[test]
fn a_breakpoint_on_the_way_ends_many_steps() {
    let (_scratch, recording) = recorded("full-steps-break");
    let lines = [
        "break deposit",
        "goto last",
        "step-back -i 1000000",
        "where",
    ];
    let ended = recording.prompt(&lines);
    let (text, errors) = (ended.text(), ended.errors());
    assert!(text.contains("at breakpoint 1"), "{text}{errors}");
}

/// One search takes no longer than a few; twenty thousand do.
#[test]
fn many_steps_take_one_search() {
    let (_scratch, recording) = recorded("full-steps-many");
    let begun = Instant::now();
    let lines = ["goto last", "step-back -i 20000", "step -i 20000"];
    let ended = recording.prompt(&lines);
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    let text = ended.text();
    assert!(
        text.lines()
            .filter(|line| line.starts_with("Thread "))
            .count()
            >= 3,
        "{text}"
    );
}
