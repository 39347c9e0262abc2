//! Goal: `-f` and `-x` choose what is traced. Method: count calls by function and module.

use e2e::{
    Comparison, Hindsight, Nesting, Program, Recording, Row, Scratch, compiled, fixture_artifact,
};

fn traced(recording: &Recording) -> Vec<String> {
    recording
        .rows("SELECT DISTINCT function FROM calls ORDER BY function")
        .iter()
        .map(|r| r["function"].as_str().expect("a name").to_owned())
        .collect()
}

fn record(artifact: (&str, &str), options: &[&str]) -> (Scratch, Recording) {
    let scratch = Scratch::new(artifact.1);
    let program = Program::new(fixture_artifact(artifact.0, artifact.1), scratch.path());
    let both = Comparison::of_program(scratch, &program, options, Nesting::Proper);
    (both.scratch, both.recording)
}

/// `Comparison` expects all counted functions; fixtures used here with filters print no counts, or only of what is traced.
fn record_alone(artifact: (&str, &str), options: &[&str]) -> (Scratch, Recording) {
    let scratch = Scratch::new(artifact.1);
    let program = Program::new(fixture_artifact(artifact.0, artifact.1), scratch.path());
    let native = program.run();
    let (recorded, recording) = Hindsight::record(&scratch, options, &program);
    assert_eq!(native.text(), recorded.text());
    (scratch, recording)
}

#[test]
fn a_name_selects_one_function() {
    let (_scratch, recording) = record(("fib", "fib"), &["-f", "fib"]);
    assert_eq!(traced(&recording), ["fib"]);
}

#[test]
fn globs_select_by_demangled_name() {
    let (_scratch, recording) = record(
        ("typed_args", "typed_args_O0"),
        &["-f", "shop::*", "-f", "twice*"],
    );
    assert_eq!(
        traced(&recording),
        [
            "shop::Order::add",
            "shop::Order::valid",
            "twice<double>",
            "twice<int>"
        ]
    );
}

/// A recording of calls: every command takes the names that people write in programs.
#[test]
fn names_may_lack_template_arguments_and_outer_scopes() {
    let source = r#"
namespace app {
template <class K, class V> struct Cache {
    V value{};
    __attribute__((noinline)) V get(K key) { return value += static_cast<V>(key); }
};
__attribute__((noinline)) int get(int n) { return n + 1; }
}
template <class T> __attribute__((noinline)) T twice(T x) { return x + x; }
int main() {
    app::Cache<int, long> one;
    app::Cache<long, double> other;
    return one.get(1) + other.get(2) + twice(1) + twice(0.5) + app::get(1) == 8 ? 0 : 1;
}
"#;
    let scratch = Scratch::new("short-names");
    let program = compiled(&scratch, "short.cc", source, &["-g", "-O0"]);
    let program = Program::new(program, scratch.path());
    let options = ["-f", "Cache::get", "-f", "twice"];
    let (_, recording) = Hindsight::record(&scratch, &options, &program);
    let named = [
        "app::Cache<int, long>::get",
        "app::Cache<long, double>::get",
        "twice<double>",
        "twice<int>",
    ];
    assert_eq!(traced(&recording), named);
    let report = Hindsight::command(&scratch, &["report", "rec", "Cache::get"]).run();
    for of in &named[..2] {
        assert!(report.text().contains(&format!("{of} (")), "{report:?}");
    }
    let past = recording.prompt(&[
        "break Cache::get",
        "continue",
        "delete",
        "break twice",
        "continue",
    ]);
    let past = past.text();
    assert!(
        past.contains("Breakpoint 1: Cache::get (2 functions)"),
        "{past}"
    );
    assert!(
        past.contains("entry of app::Cache<int, long>::get"),
        "{past}"
    );
    assert!(past.contains(": twice (2 functions)"), "{past}");
    let slip = Hindsight::command(&scratch, &["report", "rec", "twise<int>"]).run();
    assert!(
        slip.errors().contains("did you mean twice<int>?"),
        "{slip:?}"
    );
}

#[test]
fn exclusions_win() {
    let (_scratch, recording) = record_alone(
        ("shared_library", "shared_library"),
        &["-x", "helper", "-x", "main"],
    );
    assert_eq!(traced(&recording), ["area", "each", "unit", "visit"]);
}

#[test]
fn modules_and_files_can_be_selected() {
    let (_scratch, library) = record_alone(
        ("shared_library", "shared_library"),
        &["-f", "module:libshape.so"],
    );
    assert_eq!(traced(&library), ["area", "each", "helper"]);
    assert_eq!(
        library.calls_of("helper"),
        500,
        "the program has a helper of its own"
    );
    let (_scratch, file) = record_alone(
        ("shared_library", "shared_library"),
        &["-f", "file:*main.c"],
    );
    assert_eq!(traced(&file), ["helper", "main", "unit", "visit"]);
}

#[test]
fn a_filter_that_matches_nothing_is_pointed_out() {
    let scratch = Scratch::new("nothing");
    let program = Program::new(fixture_artifact("fib", "fib"), scratch.path());
    let ended =
        Hindsight::record_command(&scratch, "rec", &["-f", "no_such_function"], &program).run();
    assert!(
        ended.errors().contains("matches no function"),
        "{}",
        ended.errors()
    );
}

/// Functions of a plugin count, although it is loaded while the program runs.
#[test]
fn a_filter_that_only_a_plugin_matches_is_not() {
    let scratch = Scratch::new("plugin_filter");
    let program = Program::new(fixture_artifact("plugin", "plugin_host"), scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &["-f", "file:*plugin.c"], &program);
    assert_eq!(recording.calls_of("red_work"), 200);
    assert!(
        !ended.errors().contains("matches no function"),
        "{}",
        ended.errors()
    );
}

#[test]
fn names_reach_the_c_library() {
    let names = ["close", "free", "malloc", "open", "pthread_mutex_lock"];
    let patterns = ["-f", "main", "-f", "malloc", "-f", "pthread_mutex_*"];
    let more = ["-f", "open", "-f", "free", "-f", "close"];
    let options = [&patterns[..], &more].concat();
    let (_scratch, recording) = record_alone(("library_calls", "library_calls"), &options);
    let rows = recording.rows(
        "SELECT c.function, count(*) AS calls FROM calls c JOIN calls p ON c.parent = p.start_seq
         WHERE p.function = 'main' AND c.function <> 'pthread_mutex_unlock' GROUP BY c.function ORDER BY c.function",
    );
    let found: Vec<(&str, i64)> = rows
        .iter()
        .map(|row| {
            let function = row["function"].as_str().expect("a name");
            (function, row["calls"].as_i64().expect("a number"))
        })
        .collect();
    assert_eq!(found, names.map(|name| (name, 7)));
}

/// A pattern with an asterisk for what the program calls of a library, and another name of the function that it calls.
#[test]
fn patterns_and_other_names_reach_the_c_library() {
    for (pattern, function) in [("pthread_*", "pthread_mutex_lock"), ("open64", "open")] {
        let options = ["-f", "main", "-f", pattern];
        let (_scratch, recording) = record_alone(("library_calls", "library_calls"), &options);
        let calls = recording.number(&format!(
            "SELECT count(*) FROM calls c JOIN calls p ON c.parent = p.start_seq \
             WHERE p.function = 'main' AND c.function = '{function}'"
        ));
        assert_eq!(calls, 7, "{pattern}");
        let begins = function.split('_').next().expect("a word");
        let is_named = |name: &String| name == "main" || name.starts_with(begins);
        let names = traced(&recording);
        assert!(names.iter().all(is_named), "{pattern}: {names:?}");
    }
}

/// With `_FORTIFY_SOURCE`, headers put other functions in the place of those that the source names.
const HARDENED: &str = r#"
#include <fcntl.h>
#include <stdio.h>

int main(int count, char **names) {
  int number;
  if (sscanf("42 things", "%d", &number) != 1) return 1;
  open(names[0], count == 1 ? O_RDONLY | O_CLOEXEC : O_WRONLY);
  printf("%d\n", number);
  return 0;
}
"#;

#[test]
fn names_of_sources_reach_what_headers_put_in_their_place() {
    let scratch = Scratch::new("hardened");
    let flags = ["-w", "-O2", "-D_FORTIFY_SOURCE=2"];
    let program = compiled(&scratch, "hardened.c", HARDENED, &flags);
    let program = Program::new(program, scratch.path());
    let options = ["-f", "printf", "-f", "sscanf", "-f", "open"];
    let (ended, recording) = Hindsight::record(&scratch, &options, &program);
    assert_eq!(ended.text(), "42\n");
    let rows = recording.rows("SELECT function, args FROM calls ORDER BY start_seq");
    let text = |row: &Row, column: &str| row[column].as_str().map(str::to_owned);
    let called = rows.iter().filter_map(|row| text(row, "function"));
    let called: Vec<String> = called.collect();
    assert_eq!(called, ["__isoc99_sscanf", "open", "__printf_chk"]);
    let args: Vec<_> = rows.iter().filter_map(|row| text(row, "args")).collect();
    assert!(args[0].ends_with(", format=\"%d\""), "{args:?}");
    assert!(args[1].ends_with(", flags=O_RDONLY|O_CLOEXEC"), "{args:?}");
    assert_eq!(args[2], "flag=1, format=\"%d\\n\", arg2=42");
}

#[test]
fn each_pattern_that_matches_nothing_is_named() {
    let scratch = Scratch::new("unmatched");
    let artifact = fixture_artifact("library_calls", "library_calls");
    let program = Program::new(artifact, scratch.path());
    let options = [
        "-f",
        "mian",
        "-f",
        "main",
        "-f",
        "strlen",
        "-f",
        "module:libq*",
    ];
    let (ended, _recording) = Hindsight::record(&scratch, &options, &program);
    let errors = ended.errors();
    assert!(
        errors.contains("'mian' matches no function; did you mean 'main'?"),
        "{errors}"
    );
    assert!(
        errors.contains(
            "'strlen' matches no function: its implementation is chosen when the program starts"
        ),
        "{errors}"
    );
    assert!(
        errors.contains("'module:libq*' matches no function"),
        "{errors}"
    );
    assert!(!errors.contains("'main' matches"), "{errors}");
}

/// Calls a function of a system library that it loads itself, and one of the C library, each seven times.
const LOADS: &str = r#"
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  void *library = dlopen("libgcc_s.so.1", RTLD_NOW);
  double (*power)(double, int) = (double (*)(double, int))dlsym(library, "__powidf2");
  double sum = 0;
  char text[64];
  for (int i = 0; i < 7; i++) {
    sum += power(2, i);
    snprintf(text, sizeof text, "%.0f", sum);
  }
  puts(text);
  return 0;
}
"#;

#[test]
fn whole_names_and_libraries_with_patterns_reach_any_library() {
    let scratch = Scratch::new("loaded_later");
    let program = compiled(&scratch, "loads.c", LOADS, &["-g", "-O1", "-ldl"]);
    let program = Program::new(program, scratch.path());
    for (number, (pattern, function)) in [
        ("__powidf2", "__powidf2"),
        ("libgcc_s*:__powid*", "__powidf2"),
        ("libc.so*:*nprintf", "snprintf"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("rec{number}");
        let ended = Hindsight::record_command(&scratch, &name, &["-f", pattern], &program).run();
        assert!(!ended.errors().contains("warning"), "{}", ended.errors());
        let recording = Recording::new(scratch.join(&format!("{name}.hindsight")));
        assert_eq!(traced(&recording), [function], "{pattern}");
        assert_eq!(recording.calls_of(function), 7, "{pattern}");
    }
    let ended = Hindsight::record_command(&scratch, "none", &["-f", "*nprintf"], &program).run();
    assert!(
        ended.errors().contains(
            "-f '*nprintf' matches no function of the program; those of a library: 'libc.so.6:*nprintf'"
        ),
        "{}",
        ended.errors()
    );
}
