//! Goal: `record` warns when a launcher has executed another program, and only then. Method: record `env`, which
//! executes its arguments or fails to.

use e2e::{Ended, Hindsight, Program, Scratch, Status};

fn record_env(args: &[&str]) -> Ended {
    let scratch = Scratch::new("repl_record");
    let program = Program::new("/usr/bin/env", scratch.path()).args(args);
    Hindsight::record(&scratch, &[], &program).0
}

#[test]
fn a_launcher_names_the_program_it_became() {
    let ended = record_env(&["false"]);
    assert_eq!(ended.status, Status::Code(1), "{}", ended.errors());
    assert!(
        ended
            .errors()
            .contains("warning: the program became another one, /"),
        "{}",
        ended.errors()
    );
}

#[test]
fn a_launcher_that_finds_no_program_became_none() {
    let ended = record_env(&["no-such-program"]);
    assert_eq!(ended.status, Status::Code(127), "{}", ended.errors());
    assert!(!ended.errors().contains("became"), "{}", ended.errors());
}
