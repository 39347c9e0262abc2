//! Lists of source lines and of code.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Live, Scratch, compiled, in_turn};

use super::{gdb, program, prompt};

/// A range is around no line of its own: the arrow is at the current one.
#[test]
fn the_arrow_in_a_range_is_at_the_current_line() {
    let live = Live::started("gdb-range", &["--break", "leaf"], &program(), &[]);
    let place = live.ask(&["where"])["frame"]["line"].clone();
    let line = place.as_u64().expect("a line");
    let marked = |range: &str| -> Vec<String> {
        let said = live.command(&["list", range]).run().text();
        let marked = said.lines().filter_map(|line| line.strip_prefix("->"));
        marked
            .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
            .collect()
    };
    let around = format!("{},{}", line - 2, line + 2);
    assert_eq!(marked(&around), [line.to_string()]);
    let after = format!("{},{}", line + 1, line + 3);
    assert!(marked(&after).is_empty());
}

/// The line of each place that `said` names with `before` it.
fn lines_named(said: &str, before: &str) -> Vec<u32> {
    let digits = |text: &str| -> String { text.chars().take_while(char::is_ascii_digit).collect() };
    let found = said.split(before).skip(1);
    found.filter_map(|rest| digits(rest).parse().ok()).collect()
}

#[test]
fn offsets_count_from_the_current_line() {
    let live = Live::started("gdb-offsets", &["--break", "leaf"], &program(), &[]);
    let places = ["tbreak +1", "tbreak -2", "tbreak 22"];
    let script = [&["break leaf", "run > /dev/null"][..], &places].concat();
    let theirs = lines_named(&gdb(&live, &script), ", line ");
    let said = prompt(&live, &places);
    let ours = lines_named(&said, "control.c:");
    assert_eq!(theirs.len(), 4, "{theirs:?}");
    assert_eq!(ours, theirs[1..], "{said}");
    let said = prompt(&live, &["break -1000"]);
    assert!(said.contains("lines are counted from 1"), "{said}");
}

#[test]
fn facts_of_a_source_file_are_those_of_gdb() {
    let live = Live::started("gdb-info-source", &["--break", "leaf"], &program(), &[]);
    let theirs = gdb(&live, &["break leaf", "run > /dev/null", "info source"]);
    let fact = |before: &str| -> &str {
        let found = theirs.lines().find_map(|line| line.strip_prefix(before));
        let found = found.unwrap_or_else(|| panic!("{before}: {theirs}"));
        found.trim_end_matches('.')
    };
    assert_eq!(fact("Source language is "), "c");
    let format = fact("Compiled with ").strip_suffix(" debugging format");
    let expected = format!(
        "Source file: {}, {}\nCompiled in: {}\nLanguage: C\nCompiler: {}\nDebug information: {}\n",
        fact("Located in "),
        fact("Contains "),
        fact("Compilation directory is "),
        fact("Producer is "),
        format.expect("a version")
    );
    assert_eq!(live.command(&["info", "source"]).run().text(), expected);
    assert_eq!(prompt(&live, &["info source"]), expected);
}

const REORDERED: &str = "__attribute__((noinline)) int total(const int *v, int n)
{
  int sum = 0;
  for (int i = 0; i <= n; i++)
    sum += v[i];
  return sum;
}
int main(void) { int v[4] = {1, 2, 3, 4}; return total(v, 3) != 10; }
";

/// The last line of a function need not be that of its last instruction.
#[test]
fn the_whole_function_is_shown_in_optimised_code() {
    for level in in_turn(["-O1", "-O2", "-O3"]) {
        let scratch = Scratch::new("whole-function");
        let path = compiled(&scratch, "app.c", REORDERED, &["-g", level]);
        let live = Live::started("whole-function-live", &["--break", "total"], &path, &[]);
        let shown = live.command(&["source", "--function"]).run().text();
        assert!(shown.contains("return sum"), "{level}: {shown}");
    }
}
