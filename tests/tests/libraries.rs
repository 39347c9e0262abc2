//! Goal: a library that a program loads itself is seen, also one that the way into the program needs too, and `catch load` stops
//! before its code runs. Method: `dlopen` of a library that the test builds, and that needs the mathematical one.

use e2e::{Hindsight, Live, Program, Recording, Scratch, Status, compiled};

const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **names) {
  for (int i = 1; i < count; i++) {
    void *library = dlopen(names[i], RTLD_NOW);
    int (*answer)(int) = library ? (int (*)(int))dlsym(library, "answer") : 0;
    if (answer) printf("%d\n", answer(41));
  }
  return 0;
}
"#;
const LIBRARY: &str = r#"
#include <math.h>
static volatile int offset;
__attribute__((constructor)) static void begin(void) { offset = 1; }
int answer(int n) { return n + offset + (int)cos(offset - 1) - 1; }
"#;

fn make(scratch: &Scratch) {
    compiled(scratch, "app.c", PROGRAM, &["-g"]);
    std::fs::write(scratch.join("plugin.c"), LIBRARY).expect("writable");
    let built = Program::new("/usr/bin/gcc", scratch.path())
        .args(["-g", "-shared", "-fPIC", "-o", "libplugin.so"])
        .args(["plugin.c", "-lm"])
        .run();
    assert_eq!(built.status, Status::Code(0), "{}", built.errors());
}

const LIBRARIES: [&str; 2] = ["libz.so.1", "./libplugin.so"];

#[test]
fn libraries_that_are_loaded_later_are_recorded() {
    let scratch = Scratch::new("libraries-recorded");
    make(&scratch);
    let program = Program::new(scratch.join("app"), scratch.path()).args(LIBRARIES);
    let ended =
        Hindsight::record_command(&scratch, "app", &["-f", "main", "-f", "answer"], &program).run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    assert_eq!(ended.text(), "42\n");
    assert!(
        !ended.errors().contains("matches no function"),
        "{}",
        ended.errors()
    );
    let recording = Recording::new(scratch.join("app.hindsight"));
    for function in ["main", "answer"] {
        assert_eq!(recording.calls_of(function), 1, "{function}");
    }
    let names = recording.rows("select name from modules order by module_id");
    let names: Vec<&str> = names
        .iter()
        .filter_map(|row| row["name"].as_str())
        .collect();
    for library in ["libm.so.6", "libz.so.1", "libplugin.so"] {
        let count = names
            .iter()
            .filter(|name| name.starts_with(library))
            .count();
        assert_eq!(count, 1, "{library} of {names:?}");
    }
    let said = |lines: &[&str]| {
        let ended = recording.prompt(lines);
        ended.text() + &ended.errors()
    };
    let stops = said(&["catch load", "continue", "continue", "continue", "continue"]);
    assert_eq!(stops.matches("at breakpoint 1").count(), 3, "{stops}");
    let stops = said(&["catch load libpl", "continue", "continue"]);
    assert_eq!(stops.matches("at breakpoint 1").count(), 1, "{stops}");
    let none = said(&["catch load libnothing*"]);
    assert!(none.contains("loaded no such library"), "{none}");
}

#[test]
fn a_program_stops_where_it_has_loaded_a_library() {
    let live = Live::new("libraries-caught");
    make(&live.scratch);
    let program = live.scratch.join("app");
    live.start(&["--stop-on-entry"], &program, &LIBRARIES);
    live.ask(&["catch", "load", "libplugin*"]);
    let stop = live.moved(&["continue"]);
    let what = stop["what"].as_str().expect("what happened");
    assert!(
        what.starts_with("load: ") && what.ends_with("/libplugin.so"),
        "{stop:#}"
    );
    // It is stopped before the constructor of the library.
    live.ask(&["break", "answer"]);
    live.moved(&["continue"]);
    assert_eq!(live.print("offset"), "1");
    assert_eq!(live.run_to_end(), 0);
}
