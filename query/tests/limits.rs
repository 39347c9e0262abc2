//! Goal: answers stay within their memory limit, stop when their reader is gone, and say when they were cut. Method:
//! a hundred thousand calls and a session with a small memory.

mod common;

use common::{Asked, SLOT};
use query::{Error, Options};
use store::synth::Synth;

const CALLS: u64 = 100_000;

fn many_calls() -> Synth {
    let mut synth = Synth::new();
    let ids: Vec<u32> = (0..10).map(|n| synth.function(&format!("f{n}"))).collect();
    synth.thread(1);
    for n in 0..CALLS {
        synth
            .enter(ids[(n % 10) as usize], SLOT)
            .leave_value(SLOT, n.wrapping_mul(0x9e37_79b9) % 1_000_003);
        if n % 1000 == 999 {
            synth.watermark();
        }
    }
    synth
}

fn asked(memory_bytes: usize) -> Asked {
    let options = Options {
        memory_bytes,
        ..Default::default()
    };
    Asked::with(|path| many_calls().record(path), options)
}

#[test]
fn a_sort_larger_than_memory_spills() {
    let asked = asked(24 << 20); // the rows take about 30 MiB
    let mut spilled_bytes = 0;
    let mut last = i64::MIN;
    let mut rows = 0;
    for batch in asked
        .session
        .sql("SELECT ret AS r, * FROM calls ORDER BY r, start_seq")
        .unwrap()
    {
        let batch = batch.unwrap();
        let values = batch
            .column(0)
            .as_any()
            .downcast_ref::<arrow::array::Int64Array>()
            .unwrap();
        for &value in values.values() {
            assert!(value >= last, "sorted");
            last = value;
        }
        rows += batch.num_rows() as u64;
        spilled_bytes = spilled_bytes.max(asked.session.spilled_bytes());
    }
    assert_eq!(rows, CALLS);
    assert!(spilled_bytes > 0, "nothing was spilled");
}

#[test]
fn what_cannot_fit_fails_and_says_so() {
    let asked = asked(1 << 20);
    let sql = "SELECT array_agg(args || function || start_seq) FROM calls";
    let mut answer = asked.session.sql(sql).unwrap();
    let error = answer.next().unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            Error::Memory {
                limit_bytes: 0x10_0000,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(
        asked.ask("SELECT count(*) FROM calls"),
        format!("{CALLS}\n"),
        "the session goes on"
    );
}

#[test]
fn a_limit_keeps_the_first_rows_and_tells_of_more() {
    let asked = asked(1 << 30);
    let sql = "SELECT start_seq FROM calls ORDER BY start_seq";
    for (limit, rows, cut) in [
        (10, 10, true),
        (0, 0, true),
        (1 << 20, CALLS as usize, false),
    ] {
        let mut answer = asked.session.sql_up_to(sql, limit).unwrap();
        let found: usize = answer.by_ref().map(|b| b.unwrap().num_rows()).sum();
        assert_eq!((found, answer.was_cut()), (rows, cut), "limit {limit}");
    }
    let exact = asked.session.sql_up_to("VALUES (1), (2)", 2);
    let mut exact = exact.unwrap();
    assert_eq!(
        exact.by_ref().map(|b| b.unwrap().num_rows()).sum::<usize>(),
        2
    );
    assert!(!exact.was_cut(), "there were exactly two");
    let explained = asked
        .session
        .sql_up_to("EXPLAIN SELECT * FROM calls", 1)
        .unwrap();
    assert_eq!(explained.map(|b| b.unwrap().num_rows()).sum::<usize>(), 1);
}

/// Without a stop this would compute for hours.
#[test]
fn dropping_an_answer_stops_its_computation() {
    let asked = asked(1 << 30);
    for sql in [
        "SELECT count(*) FROM calls a, calls b, calls c WHERE a.ret + b.ret = c.ret",
        // Their rows come from rows in memory, so they never wait for anything.
        "SELECT sum(a.seq * b.seq * c.seq) FROM events a CROSS JOIN events b CROSS JOIN events c WHERE (a.seq + b.seq + c.seq) % 7 = 1",
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 100000000000) SELECT max(n) FROM t",
        "SELECT max(value) FROM generate_series(1, 100000000000)",
    ] {
        let answer = asked.session.sql(sql).unwrap();
        assert!(asked.session.running_tasks() > 0);
        drop(answer);
        while asked.session.running_tasks() > 0 {
            std::thread::yield_now();
        }
    }
    assert_eq!(
        asked.ask("SELECT count(*) FROM calls"),
        format!("{CALLS}\n"),
        "the session goes on"
    );
}

#[test]
fn an_answer_outlives_its_session() {
    let asked = asked(1 << 30);
    let mut answer = asked.session.sql("SELECT count(*) FROM calls").unwrap();
    let first = answer.next().unwrap().unwrap();
    drop(asked);
    assert_eq!(first.num_rows(), 1);
    assert!(answer.next().is_none());
}

#[test]
fn a_join_larger_than_memory_spills() {
    let sql = "SELECT count(*), sum(b.ret) FROM calls a JOIN calls b ON a.start_seq = b.start_seq AND a.ret = b.ret";
    let roomy = asked(1 << 30).ask(sql);
    assert_eq!(asked(16 << 20).ask(sql), roomy);
}

/// Planning walks the tree of a question, which is as high as its rows of operators are long.
#[test]
fn a_long_row_of_operators_is_answered_or_refused() {
    let asked = asked(1 << 30);
    let chain = |count: usize| {
        let terms: Vec<String> = (0..count).map(|seq| format!("start_seq = {seq}")).collect();
        format!(
            "SELECT count(*) > 0 FROM calls WHERE {}",
            terms.join(" OR ")
        )
    };
    assert_eq!(asked.ask(&chain(500)), "true\n");
    for sql in [chain(100_000), format!("SELECT 1{}", " + 1".repeat(5000))] {
        match asked.session.sql(&sql) {
            Err(Error::Sql(error)) => {
                assert_eq!(error.message, "the question is nested too deeply");
            }
            other => panic!("{:?}", other.map(drop)),
        }
    }
}

#[test]
fn columns_are_computed_for_the_rows_that_a_limit_leaves() {
    let asked = asked(64 << 20);
    let sql = "SELECT function, args, ret_text FROM calls ORDER BY start_seq LIMIT 2 OFFSET 3";
    let plan = asked.ask(&format!("EXPLAIN {sql}"));
    let (logical, _) = plan.split_once("physical_plan").unwrap();
    let (above, below) = logical.split_once("Sort:").unwrap();
    assert!(above.contains("arguments("), "{plan}");
    assert!(!below.contains("arguments("), "{plan}");
    assert!(!below.contains("return_text("), "{plan}");
    // Also where the sort's key is shown, so that the answer has fewer columns than what is sorted.
    let plan = asked
        .ask("EXPLAIN SELECT start_seq, function, args FROM calls ORDER BY ret, start_seq LIMIT 2");
    let (_, physical) = plan.split_once("physical_plan").unwrap();
    let (above, below) = physical.split_once("SortExec:").unwrap();
    assert!(above.contains("arguments("), "{plan}");
    assert!(!below.contains("arguments("), "{plan}");
    let all = asked.ask("SELECT function, args, ret_text FROM calls ORDER BY start_seq");
    let rows: Vec<&str> = all.lines().skip(3).take(2).collect();
    assert_eq!(asked.ask(sql).lines().collect::<Vec<_>>(), rows);
}
