//! Goal: Go, and the C that it calls, stop where gdb stops, with the same arguments and callers. Method: gdb and a live session run
//! the same program, with breakpoints at a function of each language.

use e2e::{Live, Program, fixture_artifact};
use serde_json::Value;

/// The innermost callers that are compared. Behind the call of C, gdb takes what lies on the stack for frames.
const CALLERS: usize = 4;

/// Prints a line at each stop: functions with their lines, arguments, and the address. gdb ends a backtrace at `main.main`.
const TELL: &str = r#"
import gdb

def tell(event):
    if not isinstance(event, gdb.BreakpointEvent):
        return
    inner = frame = gdb.selected_frame()
    told = []
    while frame is not None and len(told) < 4:
        told.append(f"{frame.name()}:{frame.find_sal().line}")
        frame = frame.older()
    names = ("n", "number", "price")
    arguments = [symbol for symbol in inner.block() if symbol.is_argument and symbol.name in names]
    told += [f"{symbol.name}={symbol.value(inner)}" for symbol in arguments]
    print("at", *told, hex(inner.pc()))

gdb.events.stop.connect(tell)
"#;

fn stops_of_gdb(live: &Live, program: &str) -> Vec<String> {
    std::fs::write(live.scratch.join("tell.py"), TELL).expect("the test's folder is writable");
    let words = ["-q", "-batch", "-nx", "-x", "tell.py"];
    let commands = [
        "set debuginfod enabled off",
        "break twice",
        "break main.ask",
        "run > /dev/null",
    ];
    // More than there are stops.
    let commands = commands.into_iter().chain(["continue"; 8]);
    let ended = Program::new("/usr/bin/gdb", live.scratch.path())
        .args(words)
        .args(commands.flat_map(|command| ["-ex", command]))
        .args([program])
        .run();
    let text = ended.text();
    let stops = text.lines().filter_map(|line| line.strip_prefix("at "));
    stops.map(str::to_owned).collect()
}

/// Where the session stands, as [`TELL`] prints it.
fn told(live: &Live) -> String {
    let reply = live.ask(&["backtrace"]);
    let frames = reply["threads"][0]["frames"].as_array().expect("frames");
    let name = |frame: &Value| frame["function"].as_str().unwrap_or("?").to_owned();
    let outermost = frames.iter().position(|frame| name(frame) == "main.main");
    let count = outermost.map_or(CALLERS, |at| at + 1).min(CALLERS);
    let shown = frames.iter().take(count);
    let mut told: Vec<String> = shown
        .map(|frame| format!("{}:{}", name(frame), frame["line"]))
        .collect();
    let arguments: &[&str] = match name(&frames[0]).as_str() {
        "twice" => &["n"],
        _ => &["number", "price"],
    };
    told.extend(
        arguments
            .iter()
            .map(|of| format!("{of}={}", live.print(of))),
    );
    let pc = live.print("$pc");
    told.extend(pc.split(' ').next().map(str::to_owned));
    told.join(" ")
}

#[test]
fn go_and_the_c_that_it_calls_stop_as_in_gdb() {
    let program = fixture_artifact("go_cgo", "go_cgo_calls");
    let live = Live::started("cgo-stops", &["--stop-on-entry"], &program, &[]);
    let theirs = stops_of_gdb(&live, program.to_str().expect("paths of tests are text"));
    live.ask(&["break", "twice"]);
    live.ask(&["break", "main.ask"]);
    let mut ours = Vec::new();
    loop {
        let reply = live.ask(&["continue"]);
        if reply["status"] != "stopped" {
            assert_eq!(reply["exit"]["code"], 0, "{reply:#}");
            break;
        }
        ours.push(told(&live));
        assert!(ours.len() <= 6, "a call is met twice: {ours:#?}");
    }
    assert_eq!(ours, theirs);
    // Of each of the three numbers, Go's function and C's.
    let functions: Vec<&str> = ours
        .iter()
        .filter_map(|stop| stop.split(':').next())
        .collect();
    assert_eq!(functions, ["main.ask", "twice"].repeat(3), "{ours:#?}");
    assert!(ours[5].contains(" n=4 "), "{ours:#?}");
    assert_eq!(live.output(), "total 381\n");
}
