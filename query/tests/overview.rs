//! Goal: an overview keeps within its number of lines for any recording. Method: synthetic recordings with known contents, and one
//! without events.

mod common;

use common::{Asked, shop};
use query::output::{self, Format};
use query::overview::{Cancel, cancellable};
use query::{Overview, overview};
use store::synth::Synth;
use store::wire::{EnterFields, EnterForm};

fn of(asked: &Asked) -> Overview {
    overview(&asked.session, "test").unwrap()
}

#[track_caller]
fn keeps_to_its_lines(overview: &Overview) {
    for max_lines in 1..=40 {
        let lines = overview.text(max_lines).lines().count();
        assert!((1..=max_lines).contains(&lines), "{lines} of {max_lines}");
    }
}

#[test]
fn an_overview_can_be_cancelled() {
    let asked = Asked::new(|path| shop().record(path));
    let cancel = Cancel::default();
    assert!(cancellable(&asked.session, "test", &cancel).is_ok());
    cancel.cancel();
    let ended = cancellable(&asked.session, "test", &cancel);
    assert!(matches!(ended, Err(query::Error::Stopped)), "{ended:?}");
}

#[test]
fn questions_may_come_second() {
    let overview = of(&Asked::new(|path| shop().record(path)));
    let next = ["one", "two", "three"].map(str::to_owned);
    let text = overview.text_asking(&next, 40);
    let headings = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with(' '));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut usual = headings(&overview.text(40));
    assert_eq!(usual.last().map(String::as_str), Some("Ask next"));
    usual.rotate_right(1);
    usual.swap(0, 1);
    assert_eq!(headings(&text), usual, "{text}");
    assert!(text.contains("Ask next\n  one\n  two\n  three\n"), "{text}");
}

#[test]
fn what_a_shop_did_is_told() {
    let overview = of(&Asked::new(|path| shop().record(path)));
    keeps_to_its_lines(&overview);
    let text = overview.text(40);
    assert!(text.contains("exited with code 3 after"), "{text}");
    assert!(
        text.contains("lost: 7 events in 1 gap, the first at seq"),
        "{text}"
    );
    assert!(
        text.contains("parse returned -1: 1 of 3 calls, first seq"),
        "{text}"
    );
    assert_eq!(overview.threads.total, 2);
}

#[test]
fn a_recording_without_events_has_an_overview() {
    let overview = of(&Asked::new(|path| Synth::new().record(path)));
    keeps_to_its_lines(&overview);
    assert_eq!((overview.program.events, overview.program.calls), (0, 0));
    assert_eq!(overview.next.len(), 3);
}

/// A number from a seed, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Calls of random functions inside each other, in several threads; some are left without a return, all end.
fn random(seed: u64, steps: usize) -> Synth {
    let mut synth = Synth::new();
    let mut dice = Dice(seed);
    let functions = ["f", "g", "h", "i", "j"].map(|name| synth.function(name));
    let mut open: [Vec<u64>; 3] = Default::default();
    for step in 0..steps {
        let at = dice.below(3) as usize;
        synth.thread(31 + at as u32);
        let depth = open[at].len();
        let is_closing = step + 64 >= steps;
        if !is_closing && (depth == 0 || depth < 12 && dice.below(2) == 0) {
            let slot = 0x7f00_0000_0000 + ((at as u64 + 1) << 20) - 64 * (depth as u64 + 1);
            synth.enter_full(&EnterFields {
                form: EnterForm::Hooked,
                function_id: functions[dice.below(5) as usize],
                slot,
                return_addr: 0x5555_0000_1000,
                args: [dice.below(9), 0, 0, 0, 0, 0],
                xmm: &[],
            });
            open[at].push(slot);
        } else if depth > 0 {
            // Sometimes the call around it is left, too; at the end all are.
            let left = match is_closing {
                true => depth,
                false => 1 + usize::from(depth > 1 && dice.below(7) == 0),
            };
            let outer = open[at][depth - left];
            open[at].truncate(depth - left);
            let value = match dice.below(4) {
                0 => 0,
                1 => u64::from(-(dice.below(5000) as i32) as u32),
                _ => dice.below(1000),
            };
            synth.leave_value(outer, value);
        }
    }
    synth.watermark();
    synth
}

/// The numbers of the one row that answers a question.
fn numbers<const N: usize>(asked: &Asked, sql: &str) -> [Option<u64>; N] {
    let mut text = Vec::new();
    let mut answer = asked.session.sql(sql).unwrap();
    output::write(&mut answer, Format::Csv, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let row = text.lines().nth(1).unwrap().to_owned();
    let cells: Vec<Option<u64>> = row.split(',').map(|cell| cell.parse().ok()).collect();
    cells.try_into().unwrap()
}

#[test]
fn one_pass_counts_what_sql_counts() {
    // The last one has several row groups, which several threads read.
    for (seed, steps) in [(1, 400), (2, 5_000), (3, 5_000), (4, 1_300_000)] {
        let asked = Asked::new(|path| random(seed, steps).record(path));
        let found = of(&asked);
        assert!(!found.time.functions.is_empty());
        for function in &found.time.functions {
            let own = format!("from calls where function_id = {}", function.function_id);
            let sql = format!(
                "select count(*), sum(self_ns), max(self_ns), \
                 (select min(start_seq) {own} and self_ns = (select max(self_ns) {own})) {own}"
            );
            let told = [
                function.calls,
                function.self_ns,
                function.longest_ns,
                function.seq,
            ];
            assert_eq!(told.map(Some), numbers(&asked, &sql), "{seed} {function:?}");
        }
        for thread in &found.threads.told {
            let sql = format!(
                "select count(*), max(self_ns) from calls where tid = {}",
                thread.tid
            );
            let told = [thread.calls, thread.longest_ns];
            assert_eq!(told.map(Some), numbers(&asked, &sql), "{seed} {thread:?}");
        }
        for failures in &found.failures.told {
            let condition = match &*format!("{:?}", failures.kind) {
                "Negative" => "ret between -4095 and -1",
                "Unwound" => "unwound",
                _ => continue,
            };
            let sql = format!(
                "select count(*), min(start_seq) from calls where function = '{}' and {condition}",
                failures.function
            );
            let told = [failures.failed, failures.first.seq];
            assert_eq!(told.map(Some), numbers(&asked, &sql), "{seed} {failures:?}");
        }
    }
}
