//! Which calls `diff_calls` pairs, where a program makes the same calls again and again.

use std::fs;

use e2e::{Hindsight, Program, Scratch};
use serde_json::{Value, json};

use crate::{build, record};

const PUMP: &str = r#"#include <stdio.h>
#define APART __attribute__((noinline))
static int level, round;
APART void open_valve(void) { level += 1; }
APART void close_valve(void) { level += 2; }
APART void note(int n) { level ^= n; }
APART void cycle(void) { open_valve(); round++; if (SKIP) note(4); close_valve(); }
APART void settle(int n) { for (int i = 0; i < n; i++) { note(i); MORE } }
int main(void) {
  for (int i = 0; i < 100; i++) cycle();
  settle(8);
  printf("%d\n", level & 1);
  return 0;
}
"#;

/// The calls that differ: in which way, the function, and its arguments on both sides.
fn differing(scratch: &Scratch, name: &str, skip: &str, more: &str) -> Vec<[Value; 4]> {
    let text = PUMP.replace("SKIP", skip).replace("MORE", more);
    fs::write(scratch.join("pump.c"), text).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O1 -g -o pump pump.c");
    let pump = Program::new(scratch.join("pump"), scratch.path());
    record(scratch, name, &[], &pump);
    if name == "good" {
        return Vec::new();
    }
    let sql = format!(
        "SELECT difference, function, args_a, args_b FROM diff_calls('good', '{name}') ORDER BY coalesce(seq_a, seq_b), seq_b"
    );
    let asked = Hindsight::command(scratch, &["sql", "good", &sql, "--json"]).run();
    let rows = asked.result();
    let rows = rows.as_array().expect("rows").iter();
    let columns = ["difference", "function", "args_a", "args_b"];
    rows.map(|row| columns.map(|column| row[column].clone()))
        .collect()
}

#[test]
fn calls_keep_their_partners_where_one_is_made_more_or_less() {
    let scratch = Scratch::new("compare-pairs");
    differing(&scratch, "good", "1", "");
    let fewer = differing(&scratch, "fewer", "round != 30", "");
    let told: Vec<_> = fewer.iter().map(|row| (&row[0], &row[1])).collect();
    let (inside, only) = (json!("inside"), json!("only_a"));
    let (cycle, note) = (json!("cycle"), json!("note"));
    assert_eq!(told, [(&inside, &cycle), (&only, &note)]);
    let more = differing(&scratch, "more", "1", "note(i);");
    let only: Vec<_> = more.iter().filter(|row| row[0] == "only_b").collect();
    assert_eq!(only.len(), 8, "{more:?}");
    let others: Vec<_> = more.iter().filter(|row| row[0] != "only_b").collect();
    let [settle] = others.as_slice() else {
        panic!("{more:?}");
    };
    assert_eq!((&settle[0], &settle[1]), (&inside, &json!("settle")));
}
