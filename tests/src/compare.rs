//! The central test: a program behaves the same with and without a recorder, and its recording is sound.

use crate::fixture::fixture_artifact;
use crate::hindsight::{Hindsight, split_own_lines};
use crate::process::{Ended, Program, Status};
use crate::recording::{Recording, is_function};
use crate::scratch::Scratch;
use serde_json::Value;

/// How the calls of one thread nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// A call ends before its parent does.
    Proper,
    /// The thread runs on several stacks in turn, so calls overlap.
    Coroutines,
    /// As `Proper`, and signal handlers jump out of the code that they interrupt.
    Jumps,
}

/// Fixtures and artifacts whose programs print no counts of calls, or not in all ways in which they are run.
const WITHOUT_COUNTS: [&str; 8] = [
    "lua",
    "memory_limits",
    "pointees",
    "signal_jumps",
    "signals",
    "sqlite",
    "stdio",
    "typed_args",
];

/// The two runs of one program, compared and equal.
pub struct Comparison {
    pub native: Ended,
    pub recording: Recording,
    pub own_lines: Vec<String>,
    pub scratch: Scratch,
}

impl Comparison {
    /// Runs `artifact` of a fixture both ways and checks everything that must hold for any program. It prints how often some of its
    /// functions are called.
    ///
    /// # Panics
    /// With the difference, if there is one.
    #[must_use]
    pub fn of(fixture: &str, artifact: &str, args: &[&str]) -> Self {
        Self::of_with(fixture, artifact, args, Nesting::Proper, |p| p)
    }

    /// The same for a program that needs input, environment, or several stacks.
    ///
    /// # Panics
    /// With the difference, if there is one.
    #[must_use]
    pub fn of_with(
        fixture: &str,
        artifact: &str,
        args: &[&str],
        nesting: Nesting,
        prepare: impl FnOnce(Program) -> Program,
    ) -> Self {
        let scratch = Scratch::new(
            &format!("{artifact}{}", args.first().map_or("", |a| a)).replace('/', "_"),
        );
        let program =
            prepare(Program::new(fixture_artifact(fixture, artifact), scratch.path()).args(args));
        let comparison = Self::of_program(scratch, &program, &[], nesting);
        let mut names = [fixture, artifact].into_iter();
        assert!(
            names.any(|name| WITHOUT_COUNTS.contains(&name))
                || !comparison.told_counts().is_empty(),
            "{fixture}/{artifact} prints no counts of calls, or belongs to WITHOUT_COUNTS"
        );
        comparison
    }

    /// The same for any program and options of `record`.
    ///
    /// # Panics
    /// With the difference, if there is one.
    #[must_use]
    pub fn of_program(
        scratch: Scratch,
        program: &Program,
        options: &[&str],
        nesting: Nesting,
    ) -> Self {
        let native = program.run();
        assert_eq!(
            native.status,
            Status::Code(program.code),
            "the program itself failed: {}{}",
            native.text(),
            native.errors()
        );
        let (recorded, recording) = Hindsight::record(&scratch, options, program);
        let (their_errors, own_lines) = split_own_lines(&recorded.stderr);
        let seen = Ended {
            stderr: their_errors,
            ..recorded
        };
        assert_same(&native, &seen, &own_lines);
        let comparison = Self {
            native,
            recording,
            own_lines,
            scratch,
        };
        comparison.assert_sound(nesting);
        comparison
    }

    /// Checks the recording's own guarantees: it passes `check`, has no gaps, every enter has its leave, order is
    /// dense, calls nest. And compares it with the counts that the program printed itself.
    fn assert_sound(&self, nesting: Nesting) {
        let check = self.recording.command("check", &[]);
        assert_eq!(
            check.status.as_shell_code(),
            0,
            "check: {}{}",
            check.text(),
            check.errors()
        );
        let told = self.told_counts();
        let counts: String = told.iter().zip(0..).map(ToldCount::column).collect();
        let facts = self.recording.row(&format!(
            "SELECT (SELECT count(*) FROM events WHERE kind = 'enter') AS enters, \
             (SELECT count(*) FROM events WHERE kind = 'leave') AS leaves, \
             (SELECT count(*) FROM calls) AS calls, \
             (SELECT count(*) FROM gaps) AS gaps, \
             (SELECT coalesce(sum(lost), 0) FROM gaps) AS lost, \
             (SELECT count(*) FROM gaps WHERE tid IS NULL OR lost IS NULL OR reason <> 'ring full') AS other_gaps, \
             (SELECT count(*) - max(seq) - 1 + min(seq) FROM events) AS not_dense, \
             (SELECT count(*) FROM calls WHERE end_seq IS NULL OR dur_ns < 0 OR end_seq <= start_seq) AS unfinished, \
             (SELECT count(*) FROM events WHERE kind = 'process_start') AS starts, \
             (SELECT count(*) FROM events WHERE kind = 'process_exit') AS exits{counts}",
        ));
        let number = |name: &str| facts[name].as_i64();
        // Records are lost if a handler jumps out of a write that interrupted another write.
        let tolerated = if nesting == Nesting::Jumps { 30 } else { 0 };
        assert!(number("gaps") <= Some(tolerated), "{facts:?}");
        assert!(number("lost") <= Some(tolerated), "{facts:?}");
        assert_eq!(number("other_gaps"), Some(0), "{facts:?}");
        assert_eq!(number("enters"), number("leaves"), "{facts:?}");
        assert_eq!(number("enters"), number("calls"), "{facts:?}");
        assert!(number("calls") > Some(0), "nothing was recorded: {facts:?}");
        assert_eq!(number("not_dense"), Some(0), "{facts:?}");
        assert_eq!(number("unfinished"), Some(0), "{facts:?}");
        assert_eq!(
            (number("starts"), number("exits")),
            (Some(1), Some(1)),
            "{facts:?}"
        );
        if nesting != Nesting::Coroutines {
            self.assert_nested();
        }
        for (at, told) in told.iter().enumerate() {
            let found = &facts[&format!("c{at}")];
            let line = &told.line;
            assert_eq!(*found, Value::from(told.count), "the program says: {line}");
        }
    }

    fn assert_nested(&self) {
        let found = self.recording.row(
            "SELECT (SELECT count(*) FROM calls c JOIN calls p ON c.parent = p.start_seq \
             WHERE c.tid <> p.tid OR c.start_seq <= p.start_seq OR c.end_seq >= p.end_seq OR c.depth <> p.depth + 1) AS bad, \
             (SELECT count(*) FROM calls WHERE (parent IS NULL) <> (depth = 0)) AS orphans",
        );
        assert_eq!(found["bad"], 0, "calls that do not lie in their parents");
        assert_eq!(found["orphans"], 0, "calls whose depth and parent disagree");
    }

    fn told_counts(&self) -> Vec<ToldCount> {
        let text = self.native.text();
        text.lines().filter_map(ToldCount::read).collect()
    }
}

/// How often a function was called, or left without returning, by the program's own count.
struct ToldCount {
    line: String,
    /// Chooses these calls in SQL.
    condition: String,
    count: i64,
}

impl ToldCount {
    /// The same count in the recording, as another column of a query.
    fn column((told, at): (&ToldCount, usize)) -> String {
        let condition = &told.condition;
        format!(", (SELECT count(*) FROM calls WHERE {condition}) AS c{at}")
    }

    /// Reads a line such as `calls fib 177`.
    fn read(line: &str) -> Option<ToldCount> {
        let words: Vec<&str> = line.split(' ').collect();
        let [what @ ("calls" | "unwound"), name, count] = words[..] else {
            return None;
        };
        let unwound = match what {
            "unwound" => "unwound AND ",
            _ => "",
        };
        Some(ToldCount {
            line: line.to_owned(),
            condition: format!("{unwound}{}", is_function(name)),
            count: count.parse().expect("a count"),
        })
    }
}

fn assert_same(native: &Ended, recorded: &Ended, own_lines: &[String]) {
    let context = || {
        format!(
            "hindsight said {own_lines:#?}, the program {}",
            recorded.errors()
        )
    };
    assert_eq!(
        native.text(),
        recorded.text(),
        "standard output differs; {}",
        context()
    );
    assert!(
        native.stdout == recorded.stdout,
        "standard output differs in bytes that are not text"
    );
    assert_eq!(
        native.errors(),
        recorded.errors(),
        "standard error differs; {}",
        context()
    );
    assert_eq!(
        native.status.as_shell_code(),
        recorded.status.as_shell_code(),
        "status differs; {}",
        context()
    );
}
