//! Goal: each access of the requested kind to a watched place is reported, with both values and its line. Method: a function
//! in which each instruction that accesses the place is known.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Live, Program, Status, compiled, fixture_artifact, in_turn, marked_line};
use serde_json::Value;

/// For each stop until the program ends: the values before and after, and the line of the access.
fn accesses(live: &Live) -> Vec<(String, String, u64)> {
    let mut seen = Vec::new();
    loop {
        let reply = live.ask(&["continue"]);
        if reply["status"] == "ended" {
            assert_eq!(reply["exit"]["code"], 7, "{reply:#}");
            return seen;
        }
        let stop = &reply["stop"];
        assert_eq!(stop["reason"], "watch", "{stop:#}");
        let text = |name: &str| stop[name].as_str().expect("a value").to_owned();
        let line = stop["by"]["line"].as_u64();
        seen.push((text("old"), text("new"), line.expect("a line")));
    }
}

fn entered(program: &str) -> Live {
    let program = fixture_artifact("control", program);
    Live::started("watches", &["--stop-on-entry"], &program, &[])
}

/// `counter += by; return counter;` reads, writes and reads, ten times; then it is printed.
fn wanted(kinds: &[&str]) -> Vec<(String, String, u64)> {
    let line = |mark| marked_line("control", "control.c", mark);
    let mut all = Vec::new();
    let mut sum = 0;
    for by in 1..=10 {
        let before = sum;
        sum += by;
        for (kind, old, new, mark) in [
            ("read", before, before, "bump: add"),
            ("write", before, sum, "bump: add"),
            ("read", sum, sum, "bump: return"),
        ] {
            if kinds.contains(&kind) {
                all.push((old.to_string(), new.to_string(), line(mark)));
            }
        }
    }
    if kinds.contains(&"read") {
        all.push(("55".into(), "55".into(), line("main: counter")));
    }
    all
}

#[test]
fn reads_writes_and_both_are_told_apart() {
    for program in in_turn(["control_O0", "control_O0_fixed", "control_stripped"]) {
        for (option, shown, kinds) in [
            (None, "write", &["write"][..]),
            (Some("--read"), "read", &["read"]),
            (Some("--access"), "access", &["read", "write"]),
        ] {
            let live = entered(program);
            let words: Vec<&str> = ["watch", "counter"].into_iter().chain(option).collect();
            let set = live.ask(&words);
            let location = set["probes"][0]["location"].as_str().expect("text");
            assert!(
                location.starts_with(&format!("counter ({shown}")),
                "{program}: {location}"
            );
            assert_eq!(accesses(&live), wanted(kinds), "{program} {option:?}");
        }
    }
    let live = entered("control_O0");
    let ended = live
        .command(&["watch", "counter", "--read", "--access"])
        .run();
    assert_eq!(ended.status.as_shell_code(), 2, "{}", ended.errors());
}

/// An address with a type, as in an expression; half of a variable is a place too.
#[test]
fn an_address_is_watched() {
    let live = entered("control_O0");
    let address = live.ask(&["print", "&counter"])["value"].take();
    let address = address.as_str().expect("text");
    let mut words = address.split_whitespace();
    let address = words.rfind(|word| word.starts_with("0x"));
    let address = address.expect("an address");
    live.ask(&["watch", &format!("*(int*){address}")]);
    assert_eq!(accesses(&live), wanted(&["write"]));
    let live = entered("control_O0");
    let address = live.ask(&["print", "&counter"])["value"].take();
    let address = address.as_str().expect("text").to_owned();
    let mut words = address.split_whitespace();
    let address = words.rfind(|word| word.starts_with("0x"));
    let place = format!("*(short*){}", address.expect("an address"));
    let set = live.ask(&["watch", &place, "--condition", &format!("{place} > 40")]);
    assert_eq!(
        set["probes"][0]["location"],
        format!("{place} (write, 2 bytes)").as_str()
    );
    let values: Vec<String> = accesses(&live).into_iter().map(|(_, new, _)| new).collect();
    assert_eq!(values, ["45", "55"]);
    for (expression, code) in [
        ("nobody", "EVAL_FAILED"),
        ("counter + 1", "EVAL_FAILED"),
        ("*(int*)", "EVAL_FAILED"),
    ] {
        let live = entered("control_O0");
        let refused: Value = live.refused(&["watch", expression]);
        assert_eq!(refused["code"], code, "{expression}: {refused:#}");
    }
}

/// The storing instruction runs elsewhere if there is a breakpoint on it: the stop is reported at the program's place.
#[test]
fn a_store_under_a_breakpoint_is_told_of_in_its_function() {
    for program in in_turn(["stores_O0", "stores_O2", "stores_clang"]) {
        let path = fixture_artifact("stores", program);
        let live = Live::started("stores", &["--stop-on-entry"], &path, &[]);
        let second = marked_line("stores", "stores.c", "second");
        live.ask(&["break", &format!("stores.c:{second}")]);
        live.ask(&["continue"]);
        live.ask(&["watch", "place", "--condition", "n > 0 && place == 6"]);
        let stop = live.ask(&["continue"])["stop"].take();
        assert_eq!(stop["reason"], "watch", "{program}: {stop:#}");
        assert_eq!(stop["by"]["line"].as_u64(), Some(second), "{stop:#}");
        let frames = live.ask(&["backtrace"])["threads"][0]["frames"].take();
        assert_eq!(frames[0]["function"], "store", "{program}: {frames:#}");
        assert_eq!(live.print("n"), "7", "{program}");
        let recording = live.recording();
        while live.ask(&["continue"])["status"] != "ended" {}
        let unnamed = "SELECT count(*) FROM pauses WHERE function IS NULL";
        assert_eq!(recording.number(unnamed), 0, "{program}");
    }
}

const PLUGIN: &str =
    "int handled = 3; int filler[8]; int handle(int n) { filler[n & 7] = n; return handled += n; }";
const HOST: &str = r#"
#include <dlfcn.h>
int main(void) {
  int sum = 0;
  for (int round = 0; round < 3; round++) {
    void *library = dlopen("./plugin.so", RTLD_NOW);
    int (*handle)(int) = (int (*)(int))dlsym(library, "handle");
    sum += handle(round + 1);
    dlclose(library);
  }
  return sum;
}
"#;

#[test]
fn a_watchpoint_ends_with_its_library_and_a_waiting_breakpoint_says_that_it_waits_no_more() {
    let live = Live::new("watch-unloaded");
    std::fs::write(live.scratch.join("plugin.c"), PLUGIN).expect("writable");
    let built = Program::new("/usr/bin/gcc", live.scratch.path())
        .args(["-g", "-O0", "-shared", "-fPIC"])
        .args(["-o", "plugin.so", "plugin.c"])
        .run();
    assert_eq!(built.status, Status::Code(0), "{}", built.errors());
    let host = compiled(&live.scratch, "host.c", HOST, &["-g", "-O0", "-ldl"]);
    live.start(&["--pending", "--break", "handle"], &host, &[]);
    let listed = live.ask(&["break", "list"]);
    assert_eq!(listed["probes"][0]["message"], Value::Null, "{listed}");
    live.ask(&["watch", "handled"]);
    let wrote = live.moved(&["continue"]);
    assert_eq!(wrote["new"], "4", "{wrote}");
    let again = live.moved(&["continue"]);
    assert_eq!(again["reason"], "breakpoint", "{again}");
    let listed = live.ask(&["watch", "list"]);
    assert_eq!(listed["probes"][0]["enabled"], false, "{listed}");
    let told = listed["probes"][0]["message"].as_str().unwrap_or_default();
    assert!(told.contains("unloaded"), "{listed}");
    live.ask(&["watch", "handled"]);
    let wrote = live.moved(&["continue"]);
    assert_eq!(wrote["old"], "3", "{wrote}");
    assert_eq!(wrote["new"], "5", "{wrote}");
}

const LOCALS: &str = r#"
int first(int n) {
  int kept = n;
  kept += 1; /* first: add */
  return kept;
}
int sum(int a, int b) {
  int both = a + b; /* sum: add */
  return both;
}
int main(void) {
  int one = first(3);
  return sum(one, 5);
}
"#;

/// The recording of the calls between them uses the same stack, and is not the program's access.
#[test]
fn the_access_that_ends_the_watch_on_a_local_is_the_programs() {
    let live = Live::new("watch-local");
    let app = compiled(&live.scratch, "locals.c", LOCALS, &["-g", "-O0"]);
    let line = |mark: &str| {
        let at = LOCALS.lines().position(|line| line.contains(mark));
        at.expect("a line of the program") as u64 + 1
    };
    let start = format!("locals.c:{}", line("first: add"));
    live.start(&["--break", &start], &app, &[]);
    live.ask(&["watch", "kept"]);
    let wanted = [
        ("3", "4", "first", line("first: add"), false),
        ("4", "9", "sum", line("sum: add"), true),
    ];
    for (old, new, function, line, left) in wanted {
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["reason"], "watch", "{stop:#}");
        assert_eq!(stop["old"], old, "{stop:#}");
        assert_eq!(stop["new"], new, "{stop:#}");
        assert_eq!(stop["by"]["function"], function, "{stop:#}");
        assert_eq!(stop["by"]["line"], line, "{stop:#}");
        assert_eq!(stop["left"].as_bool().unwrap_or_default(), left, "{stop:#}");
    }
    assert_eq!(live.run_to_end(), 9);
}

const SEVENTH: &str = r#"__attribute__((noinline)) int seventh(int a, int b, int c, int d, int e, int f, int g) {
  g += a; /* change */
  return g + b + c + d + e + f;
}
int main(void) {
  int sum = seventh(1, 0, 0, 0, 0, 0, 6);
  sum += seventh(1, 0, 0, 0, 0, 0, 8); /* next call */
  return sum - 16;
}
"#;

/// An argument on the stack lies in its caller's memory, and is the call's own all the same.
#[test]
fn a_watch_of_an_argument_on_the_stack_ends_with_its_call() {
    let live = Live::new("watch-seventh");
    let app = compiled(&live.scratch, "seventh.c", SEVENTH, &["-g", "-O0"]);
    live.start(&["--break", "seventh.c:2"], &app, &[]);
    live.ask(&["break", "remove", "--all"]);
    live.ask(&["watch", "g"]);
    let changed = live.moved(&["continue"]);
    assert_eq!(changed["new"], "7", "{changed:#}");
    assert_eq!(changed["by"]["line"], 2, "{changed:#}");
    let ended = live.moved(&["continue"]);
    assert_eq!(ended["left"], true, "{ended:#}");
    assert_eq!(ended["by"]["function"], "main", "{ended:#}");
    assert_eq!(live.run_to_end(), 0);
}
