//! Goal: many instructions are stepped as one by one, and at once. Method: a recording of every instruction of a program with two
//! threads; the same way step by step and in one move, forwards and backwards.

use std::time::{Duration, Instant};

use e2e::{Hindsight, Live, Program, Recording, Scratch, Status, compiled, fixture_artifact};

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

const SHORT: &str = r#"int main(void) {
  int sum = 2;
  return sum - 2; /* return */
} /* end */
"#;

/// The C library has called main, and may have lines: neither the program nor its recording stops there.
#[test]
fn the_end_of_main_is_followed_by_the_end_of_the_program() {
    let live = Live::new("steps-end-live");
    let app = compiled(&live.scratch, "short.c", SHORT, &["-g", "-O0"]);
    live.start(&["--break", "short.c:3"], &app, &[]);
    assert_eq!(live.moved(&["next"])["line"], 4);
    let ended = live.ask(&["next"]);
    assert_eq!(ended["status"], "ended", "{ended:#}");
    assert_eq!(ended["exit"]["code"], 0, "{ended:#}");
    let scratch = Scratch::new("steps-end-full");
    let program = Program::new(&app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "recorded", &["--full"], &program);
    let lines = ["break short.c:3", "continue", "next", "next"];
    let ended = recording.prompt(&lines);
    let text = ended.text();
    let moves: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("Thread "))
        .collect();
    assert_eq!(moves.len(), 3, "{text}{}", ended.errors());
    assert!(moves[1].ends_with("short.c:4"), "{text}");
    let end = "the program has ended with exit code 0";
    assert!(moves[2].contains(end), "{text}");
}

#[test]
fn a_frame_without_a_caller_is_not_left() {
    let scratch = Scratch::new("steps-outermost");
    let app = compiled(&scratch, "short.c", SHORT, &["-g", "-O0"]);
    let program = Program::new(app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "recorded", &["--full"], &program);
    for verb in ["finish", "reverse-finish"] {
        let ended = recording.prompt(&["break _start", "continue", "print $pc", verb, "print $pc"]);
        let (text, errors) = (ended.text(), ended.errors());
        let refusal = "this is the outermost frame: it has no caller to return to";
        assert!(errors.contains(refusal), "{verb}: {text}{errors}");
        let places: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix('$')?.split_once(" = "))
            .map(|(_, place)| place)
            .collect();
        assert_eq!(places.len(), 2, "{verb}: {text}{errors}");
        assert_eq!(places[0], places[1], "{verb}: nothing has moved");
    }
}
