//! Goal: what a program writes has its place among its calls. Method: two threads write between two calls each, inside a third;
//! the order is checked while the program runs, and again when it has ended.

use e2e::{Hindsight, Program, Recording, Scratch, Status, fixture_artifact, wait_until};

const TURNS: i64 = 200;

/// The number of outputs between `before` and `after`, inside `say`, all of one thread, with the text that was passed to
/// their call.
const IN_PLACE: &str = "SELECT count(*) FROM calls s \
    JOIN calls b ON b.parent = s.start_seq AND b.function = 'before' AND b.tid = s.tid \
    JOIN calls a ON a.parent = s.start_seq AND a.function = 'after' AND a.tid = s.tid \
    JOIN output o ON o.tid = s.tid AND o.seq BETWEEN s.start_seq AND s.end_seq \
    WHERE s.function = 'say' AND b.a0 = s.a1 AND a.a0 = s.a1 \
    AND s.start_seq < b.start_seq AND b.end_seq < o.seq AND o.seq < a.start_seq AND a.end_seq < s.end_seq \
    AND o.fd = s.a0 AND o.text = concat('fd ', s.a0, ' turn ', s.a1, chr(10))";

fn assert_in_order(recording: &Recording) {
    assert_eq!(recording.number(IN_PLACE), 2 * TURNS);
    let rows = recording.rows(
        "SELECT stream, fd, count(*) AS n, count(DISTINCT tid) AS threads FROM output WHERE text LIKE 'fd %' \
         GROUP BY stream, fd ORDER BY fd",
    );
    let streams: Vec<_> = rows
        .iter()
        .map(|r| {
            (
                r["stream"].as_str(),
                r["fd"].as_i64(),
                r["n"].as_i64(),
                r["threads"].as_i64(),
            )
        })
        .collect();
    let stream = |name, fd| (Some(name), Some(fd), Some(TURNS), Some(1));
    assert_eq!(streams, [stream("stdout", 1), stream("stderr", 2)]);
    // In a thread they alternate: a call of `before`, an output, a call of `after`, and again.
    let wrong = recording.number(
        "SELECT count(*) FROM (SELECT what, lag(what) OVER (PARTITION BY tid ORDER BY seq) AS last FROM \
         (SELECT tid, start_seq AS seq, function AS what FROM calls WHERE function IN ('before', 'after') \
          UNION ALL SELECT tid, seq, 'output' FROM output WHERE text LIKE 'fd %')) \
         WHERE last IS NOT NULL AND (last, what) NOT IN (('before', 'output'), ('output', 'after'), ('after', 'before'))",
    );
    assert_eq!(wrong, 0, "out of turn");
}

#[test]
fn each_output_lies_in_the_call_that_wrote_it_while_recording_and_after() {
    let scratch = Scratch::new("turns");
    let end = scratch.join("end");
    let program = Program::new(fixture_artifact("stdio", "stdio"), scratch.path())
        .args(["turns".as_ref(), end.as_os_str()]);
    let (running, recording) = Hindsight::start_recording(&scratch, &[], &program);
    wait_until("all turns to be in the growing recording", || {
        let sql = "SELECT count(*) AS n FROM calls WHERE function = 'say' AND end_seq IS NOT NULL";
        let rows = recording.try_rows(sql).ok()?;
        (rows.first()?["n"].as_i64()? == 2 * TURNS).then_some(())
    });
    assert!(
        recording.path().join("incomplete").exists(),
        "it still grows"
    );
    assert_in_order(&recording);
    std::fs::write(&end, "").expect("the test's folder is writable");
    let ended = running.finish();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    assert_in_order(&recording);
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
    for stream in ["stdout", "stderr"] {
        let written = if stream == "stdout" {
            &ended.stdout
        } else {
            &ended.stderr
        };
        let recorded = recording.output(stream);
        assert!(written.starts_with(&recorded), "{stream}, byte for byte");
        assert!(recorded.len() > 2000, "{stream}");
    }
}
