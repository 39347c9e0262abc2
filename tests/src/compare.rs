//! The central test: a program behaves the same with and without a recorder, and its recording is sound.

use crate::fixture::fixture_artifact;
use crate::hindsight::{Hindsight, split_own_lines};
use crate::process::{Ended, Program, Status};
use crate::recording::{Recording, is_function};
use crate::scratch::Scratch;
use serde_json::Value;
use std::fmt::Write as _;

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

/// The two runs of one program, compared and equal.
pub struct Comparison {
    pub native: Ended,
    pub recording: Recording,
    pub own_lines: Vec<String>,
    pub scratch: Scratch,
}

impl Comparison {
    /// Runs `artifact` of a fixture both ways and checks everything that must hold for any program.
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
        Self::of_program(scratch, &program, &[], nesting)
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
        comparison.assert_counts();
        comparison
    }

    /// Checks the recording's own guarantees: it passes `check`, has no gaps, every enter has its leave, order is
    /// dense, calls nest.
    fn assert_sound(&self, nesting: Nesting) {
        let check = self.recording.command("check", &[]);
        assert_eq!(
            check.status.as_shell_code(),
            0,
            "check: {}{}",
            check.text(),
            check.errors()
        );
        let facts = self.recording.row(
            "SELECT (SELECT count(*) FROM events WHERE kind = 'enter') AS enters, \
             (SELECT count(*) FROM events WHERE kind = 'leave') AS leaves, \
             (SELECT count(*) FROM calls) AS calls, \
             (SELECT count(*) FROM gaps) AS gaps, \
             (SELECT coalesce(sum(lost), 0) FROM gaps) AS lost, \
             (SELECT count(*) FROM gaps WHERE tid IS NULL OR lost IS NULL OR reason <> 'ring full') AS other_gaps, \
             (SELECT count(*) - max(seq) - 1 + min(seq) FROM events) AS not_dense, \
             (SELECT count(*) FROM calls WHERE end_seq IS NULL OR dur_ns < 0 OR end_seq <= start_seq) AS unfinished, \
             (SELECT count(*) FROM events WHERE kind = 'process_start') AS starts, \
             (SELECT count(*) FROM events WHERE kind = 'process_exit') AS exits",
        );
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
    }

    fn assert_nested(&self) {
        let bad = self.recording.number(
            "SELECT count(*) FROM calls c JOIN calls p ON c.parent = p.start_seq \
             WHERE c.tid <> p.tid OR c.start_seq <= p.start_seq OR c.end_seq >= p.end_seq OR c.depth <> p.depth + 1",
        );
        assert_eq!(bad, 0, "calls that do not lie in their parents");
        let orphans = self
            .recording
            .number("SELECT count(*) FROM calls WHERE (parent IS NULL) <> (depth = 0)");
        assert_eq!(orphans, 0, "calls whose depth and parent disagree");
    }

    /// Compares with the counts the program printed itself.
    fn assert_counts(&self) {
        let (mut wanted, mut columns) = (Vec::new(), String::new());
        for line in self.native.text().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [what @ ("calls" | "unwound"), name, count] = words[..] else {
                continue;
            };
            let unwound = if what == "unwound" {
                "unwound AND "
            } else {
                ""
            };
            let comma = if wanted.is_empty() { "" } else { ", " };
            let condition = is_function(name);
            write!(
                columns,
                "{comma}(SELECT count(*) FROM calls WHERE {unwound}{condition}) AS c{}",
                wanted.len()
            )
            .expect("writing to a string");
            wanted.push((line.to_owned(), count.parse::<i64>().expect("a count")));
        }
        if wanted.is_empty() {
            return;
        }
        let row = self.recording.row(&format!("SELECT {columns}"));
        for (i, (line, count)) in wanted.iter().enumerate() {
            assert_eq!(
                row[&format!("c{i}")],
                Value::from(*count),
                "the program says: {line}"
            );
        }
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
