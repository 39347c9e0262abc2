//! Goal: third-party clients run whole investigations with the tools of `hindsight mcp`, and bad input does no harm. Method:
//! the Python SDK of the protocol (`mcp/scenarios.py`), the inspector's command line from npm, and raw bytes.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use e2e::{
    Hindsight, Live, Program, Signal, compiled, fixture_artifact, fixture_source, install, kill,
    mcp_script, wait_until,
};
use serde_json::{Value, json};

/// The inspector's command line, installed on first use.
fn inspector() -> &'static Path {
    static INSPECTOR: OnceLock<PathBuf> = OnceLock::new();
    INSPECTOR.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-inspector");
        let program = folder.join("node_modules/.bin/mcp-inspector");
        if !program.exists() {
            std::fs::create_dir_all(&folder).expect("a folder for npm");
            install(
                Command::new("npm")
                    .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
                    .arg(&folder)
                    .arg("@modelcontextprotocol/inspector@2.12.0"),
            );
        }
        program
    })
}

fn tuner() -> (PathBuf, PathBuf) {
    let source = fixture_source("tuner").join("tuner.c");
    (fixture_artifact("tuner", "tuner"), source)
}

/// A finished recording of the tables of `tuner`, in the folder of the test.
fn recorded(live: &Live) -> String {
    let (program, _) = tuner();
    let program = Program::new(program, live.scratch.path()).args(["tables"]);
    let options = ["--watch", "table.limit"];
    let recording = Hindsight::recorded(&live.scratch, "rec", &options, &program);
    let path = recording.path().to_str().expect("paths of tests are text");
    path.to_owned()
}

/// Runs a scenario of `scenarios.py` and returns its result.
fn scenario(live: &Live, name: &str, args: &[&str]) -> String {
    mcp_script(live, "scenarios.py", &[&[name], args].concat())
}

#[test]
fn a_suspicious_value_is_investigated_live() {
    let live = Live::new("mcp-live");
    let (program, source) = tuner();
    let args = [program.to_str().unwrap(), source.to_str().unwrap()];
    let said = scenario(&live, "live", &args);
    assert!(said.starts_with("live: 16 calls"), "{said}");
}

#[test]
fn the_investigation_of_the_readme_is_what_is_answered() {
    let live = Live::new("mcp-page");
    let (_, source) = tuner();
    // The page's program has its source beside it.
    std::fs::copy(source, live.scratch.join("tuner.c")).expect("the test's folder is writable");
    let gcc = ["-g", "-O0", "-o", "tuner", "tuner.c"];
    let built = Program::new("gcc", live.scratch.path()).args(gcc).run();
    assert_eq!(built.status.as_shell_code(), 0, "{}", built.errors());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let page = page.to_str().expect("paths of tests are text");
    let said = mcp_script(&live, "page.py", &[page, "Language models"]);
    assert_eq!(said, "page: 5 calls\n");
}

#[test]
fn calls_go_on_with_the_program_that_a_launcher_executes() {
    let live = Live::new("mcp-executed");
    let (program, _) = tuner();
    scenario(&live, "executed", &[program.to_str().unwrap()]);
}

#[test]
fn a_negative_value_is_investigated_in_a_recording() {
    let live = Live::new("mcp-recorded");
    let recording = recorded(&live);
    let source = fixture_source("tuner").join("tuner.c");
    scenario(&live, "recorded", &[&recording, source.to_str().unwrap()]);
    // The server has closed all that it opened, and the daemon has nothing left to do.
    wait_until("the daemon to end", || {
        (!live.socket().exists()).then_some(())
    });
}

#[test]
fn who_wrote_a_byte_is_found_in_a_recording_of_every_instruction() {
    let live = Live::new("mcp-full");
    let program = fixture_artifact("planted", "planted");
    let program = Program::new(program, live.scratch.path());
    let (_, recording) = Hindsight::record(&live.scratch, &["--full"], &program);
    let recording = recording.path().to_str().unwrap().to_owned();
    let source = fixture_source("planted").join("planted.c");
    scenario(&live, "full", &[&recording, source.to_str().unwrap()]);
}

#[test]
fn every_instruction_of_a_program_is_recorded_by_a_tool() {
    let live = Live::new("mcp-launched");
    let program = fixture_artifact("planted", "planted");
    let source = fixture_source("planted").join("planted.c");
    let args = [program.to_str().unwrap(), source.to_str().unwrap()];
    scenario(&live, "launched", &args);
}

#[test]
fn every_filter_of_debug_query_means_what_sql_means() {
    let live = Live::new("mcp-filters");
    let program = compiled(&live.scratch, "two.c", TWO, &["-O1", "-g", "-pthread"]);
    let program = Program::new(program, live.scratch.path());
    Hindsight::recorded(&live.scratch, "threads", &[], &program);
    scenario(&live, "filters", &[&recorded(&live), "threads"]);
}

/// Two threads call the same function, three times and five times.
const TWO: &str = r#"#include <pthread.h>
volatile int sum;
__attribute__ ((noinline)) void work (int n) { sum += n; }
static void *five (void *unused) { for (int i = 0; i < 5; i++) work (i); return unused; }
int main (void) {
  pthread_t thread;
  for (int i = 0; i < 3; i++) work (i);
  pthread_create (&thread, 0, five, 0);
  pthread_join (thread, 0);
  return 0;
}
"#;

#[test]
fn results_keep_to_the_limit_and_what_they_leave_out_is_reached() {
    let live = Live::new("mcp-limited");
    scenario(&live, "limited", &[&recorded(&live)]);
}

#[test]
fn the_questions_of_an_overview_are_calls_that_answer() {
    let live = Live::new("mcp-overview");
    let (program, _) = tuner();
    live.start(&["--break", "tune"], &program, &["frequencies"]);
    live.ask(&["gcore", "made"]);
    live.ask(&["stop"]);
    scenario(&live, "overview", &[&recorded(&live), "made"]);
}

#[test]
fn two_clients_work_with_one_program() {
    let live = Live::new("mcp-shared");
    let (program, _) = tuner();
    scenario(&live, "shared", &[program.to_str().unwrap()]);
}

#[test]
fn mistakes_are_refused_with_a_code_and_a_next_step() {
    let live = Live::new("mcp-mistakes");
    let fib = fixture_artifact("fib", "fib");
    scenario(
        &live,
        "mistakes",
        &[&recorded(&live), fib.to_str().unwrap()],
    );
}

#[test]
fn long_calls_report_progress() {
    let live = Live::new("mcp-progress");
    let (program, _) = tuner();
    scenario(&live, "progress", &[program.to_str().unwrap()]);
}

#[test]
fn the_session_of_the_last_call_is_meant() {
    let live = Live::new("mcp-last");
    let fib = fixture_artifact("fib", "fib");
    scenario(&live, "last", &[&recorded(&live), fib.to_str().unwrap()]);
}

#[test]
fn messages_of_a_live_program_and_tables_on_request() {
    let live = Live::new("mcp-logged");
    let control = fixture_artifact("control", "control_O0");
    scenario(&live, "logged", &[control.to_str().unwrap()]);
}

#[test]
fn a_wait_ends_at_its_limit_and_restarts_nothing() {
    let live = Live::new("mcp-waiting");
    let (program, _) = tuner();
    scenario(&live, "waiting", &[program.to_str().unwrap()]);
}

#[test]
fn more_functions_are_recorded_while_a_program_stands() {
    let live = Live::new("mcp-traced");
    let program = fixture_artifact("fib", "fib");
    scenario(&live, "traced", &[program.to_str().unwrap()]);
}

/// A template whose full name is long.
const CACHED: &str = r#"
#include <cstdio>
#include <string>
#include <unordered_map>
int total;
template<class K, class V> struct Cache {
  std::unordered_map<K, V> map;
  V get (const K & key) { return map[key]; }
};
void add_one () { total += 1; }
void add_two () { total += 2; }
int main () {
  Cache<int, std::string> cache;
  for (int i = 0; i != 5; i++)
    cache.get (i % 3);
  add_one ();
  add_two ();
  std::puts ("done");
}
"#;

#[test]
fn short_names_mean_functions_and_a_call_sets_all_or_nothing() {
    let live = Live::new("mcp-named");
    let source = live.scratch.join("cached.cpp");
    std::fs::write(&source, CACHED).expect("the test's folder is writable");
    let words = ["-O0", "-g", "-o", "cached", "cached.cpp"];
    let built = Program::new("g++", live.scratch.path()).args(words).run();
    assert_eq!(built.status.as_shell_code(), 0, "{}", built.errors());
    let program = live.scratch.join("cached");
    let recording = Hindsight::recorded(
        &live.scratch,
        "rec",
        &[],
        &Program::new(&program, live.scratch.path()),
    );
    let names = [recording.path(), &program].map(|path| path.to_str().expect("text").to_owned());
    scenario(&live, "named", &[&names[0], &names[1]]);
}

const INLINED: &str = r#"#include <stdio.h>
static int total;
static inline __attribute__ ((always_inline)) void push (int n) {
  total += n; printf ("%d\n", total);
}
__attribute__ ((noinline)) void fill (int n) { for (int i = 0; i < n; i++) push (i); }
int main (void) { fill (3); push (7); return 0; }
"#;

#[test]
fn functions_that_are_inlined_and_writes_of_the_program_are_pointed_at() {
    let live = Live::new("mcp-inlined");
    let program = compiled(&live.scratch, "inlined.c", INLINED, &["-O1", "-g"]);
    let recording = Hindsight::recorded(
        &live.scratch,
        "rec",
        &["--log-writes", "total"],
        &Program::new(&program, live.scratch.path()),
    );
    let path = recording.path().to_str().expect("paths of tests are text");
    scenario(&live, "inlined", &[path]);
}

/// Builds `invoices` in a separate folder, changed or not, and records it under a name.
fn record_invoices(live: &Live, name: &str, change: Option<(&str, &str)>) {
    let source = fixture_source("hunts").join("invoices.c");
    let mut text = std::fs::read_to_string(source).expect("the fixture");
    if let Some((old, new)) = change {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text = text.replace(old, new);
    }
    let folder = live.scratch.join(&format!("{name}.build"));
    std::fs::create_dir_all(&folder).expect("the test's folder is writable");
    std::fs::write(folder.join("invoices.c"), text).expect("the test's folder is writable");
    let gcc = ["-O0", "-g", "-o", "invoices", "invoices.c"];
    let built = Program::new("gcc", &folder).args(gcc).run();
    assert_eq!(built.status.as_shell_code(), 0, "{}", built.errors());
    let program = Program::new(folder.join("invoices"), live.scratch.path());
    Hindsight::recorded(&live.scratch, name, &[], &program);
}

#[test]
fn two_recordings_are_compared_and_the_right_function_comes_first() {
    let live = Live::new("mcp-compared");
    let change = Some(("per_mille / 1000", "per_mille / 100"));
    record_invoices(&live, "good", None);
    record_invoices(&live, "bad", change);
    record_invoices(&live, "again", None);
    scenario(&live, "compared", &["good", "bad", "again"]);
}

#[test]
fn resources_and_prompts_are_offered() {
    let live = Live::new("mcp-offered");
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agents.md");
    let agents = agents.to_str().expect("paths of tests are text");
    scenario(&live, "offered", &[&recorded(&live), agents]);
}

/// Runs the inspector's command line.
fn inspected(live: &Live, words: &[&str]) -> Value {
    let server = Hindsight::path().to_str().expect("paths of tests are text");
    // The inspector hands on nothing but PATH, HOME and the like: the server would ask the user's own daemon.
    let runtime = format!("XDG_RUNTIME_DIR={}", live.runtime().display());
    let words = [&["--cli", "-e", &runtime, server, "mcp"], words].concat();
    let ended = live.program(inspector(), &words).run();
    assert_eq!(ended.status.as_shell_code(), 0, "{}", ended.errors());
    serde_json::from_slice(&ended.stdout).expect("the inspector prints JSON")
}

/// Calls a tool through the inspector's command line. Returns the result's text.
fn called(live: &Live, tool: &str, arguments: &[&str]) -> String {
    let named = ["--method", "tools/call", "--tool-name", tool];
    let arguments = arguments
        .iter()
        .flat_map(|argument| ["--tool-arg", *argument]);
    let words: Vec<&str> = named.into_iter().chain(arguments).collect();
    let result = inspected(live, &words);
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert_ne!(
        result["isError"],
        true,
        "{tool} {arguments:?}: {text}",
        arguments = words
    );
    text.to_owned()
}

fn object_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_inspector_investigates_a_recording() {
    let live = Live::new("mcp-inspector-recorded");
    let recording = format!("recording={}", recorded(&live));
    let first = called(
        &live,
        "debug_query",
        &[
            &recording,
            r#"function={"equals":"look_up"}"#,
            r#"returnValue={"lessThan":0}"#,
            "limit=1",
        ],
    );
    let seq = object_of(&first)["events"][0]["seq"]
        .as_u64()
        .expect("a number");
    let misspelt = [&recording, r#"function={"equals":"look_upp"}"#];
    let none = object_of(&called(&live, "debug_query", &misspelt));
    assert_eq!(none["events"].as_array().map(Vec::len), Some(0), "{none}");
    let hint = none["hint"].as_str().unwrap_or_default();
    assert!(hint.ends_with("near: look_up"), "{none}");
    let at = format!("at={seq}");
    let wrote = ["expression=table.limit", "lastWrite=true"];
    let wrote = called(
        &live,
        "debug_history",
        &[&[recording.as_str(), &at], &wrote[..]].concat(),
    );
    assert!(wrote.contains("shrink"), "{wrote}");
    let source = ["location=shrink", "wholeFunction=true"];
    let source = called(
        &live,
        "debug_source",
        &[&[recording.as_str()], &source[..]].concat(),
    );
    assert!(source.contains("/* shrink: bug */"), "{source}");
}

#[test]
fn the_inspector_investigates_a_live_program() {
    let live = Live::new("mcp-inspector-live");
    let (program, source) = tuner();
    let text = std::fs::read_to_string(source).expect("the fixture");
    let line = text
        .lines()
        .position(|line| line.contains("/* tune: set */"));
    let line = line.expect("the mark") + 1;
    let program = format!("program={}", program.display());
    let launched = [
        program.as_str(),
        r#"args=["frequencies"]"#,
        "stopOnEntry=true",
    ];
    assert_eq!(
        object_of(&called(&live, "debug_launch", &launched))["status"],
        "paused"
    );
    let place = format!(r#"add=[{{"file":"tuner.c","line":{line},"condition":"frequency < 0"}}]"#);
    let made = object_of(&called(&live, "debug_breakpoint", &[&place]));
    let stop = object_of(&called(&live, "debug_continue", &[]));
    assert_eq!(
        (&stop["function"], &stop["line"]),
        (&json!("tune"), &json!(line)),
        "{stop:#}"
    );
    let written = r#"targets=[{"variable":"sample_rate","value":44100}]"#;
    let written = object_of(&called(&live, "debug_write", &[written]));
    assert_eq!(
        written["results"][0]["previousValue"], "-44100",
        "{written:#}"
    );
    let removed = format!("remove=[{}]", made["breakpoints"][0]["id"]);
    called(&live, "debug_breakpoint", &[&removed]);
    let end = object_of(&called(&live, "debug_continue", &[]));
    assert_eq!(end["exitCode"], 0, "{end:#}");
}

#[test]
fn the_inspector_lists_and_calls_tools() {
    let live = Live::new("mcp-inspector");
    let recording = recorded(&live);
    let listed = inspected(&live, &["--method", "tools/list"]);
    let tools = listed["tools"].as_array().expect("tools");
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool:#}");
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        for (name, property) in properties {
            assert!(
                property["description"].is_string(),
                "{}.{name}",
                tool["name"]
            );
        }
    }
    let record = format!("recording={recording}");
    let asked = [
        "--method",
        "tools/call",
        "--tool-name",
        "debug_query",
        "--tool-arg",
        &record,
    ];
    let filter = r#"function={"equals":"look_up"}"#;
    let returned = r#"returnValue={"lessThan":0}"#;
    let more = [
        "--tool-arg",
        filter,
        "--tool-arg",
        returned,
        "--tool-arg",
        "limit=1",
    ];
    let result = inspected(&live, &[&asked[..], &more[..]].concat());
    let text = result["content"][0]["text"].as_str().expect("a text");
    let page: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(page["events"][0]["args"], "key=6", "{page:#}");
    assert_eq!(page["events"][0]["returnValue"], "-1", "{page:#}");
    assert_eq!(page["leftOut"], 14, "{page:#}");
}

/// A server that is driven by raw lines.
struct Raw {
    child: std::process::Child,
    /// What it has written so far, as far as it was waited for.
    said: String,
}

impl Raw {
    fn new(live: &Live) -> Raw {
        let mut command = Command::new(Hindsight::path());
        command
            .arg("mcp")
            .current_dir(live.scratch.path())
            .env("XDG_RUNTIME_DIR", live.runtime())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut raw = Raw {
            child: command.spawn().expect("the server starts"),
            said: String::new(),
        };
        raw.say(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "raw", "version": "0"}}}),
        );
        raw.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        raw
    }

    fn say(&mut self, message: &Value) {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{message}").expect("the server reads");
    }

    fn call(&mut self, id: u32, tool: &str, arguments: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}}));
    }

    /// Reads the server's lines until it has answered this call.
    fn await_answer(&mut self, id: u32) {
        let ours = format!("\"id\":{id},");
        if self.said.contains(&ours) {
            return;
        }
        let stdout = self.child.stdout.as_mut().expect("a pipe");
        let (mut line, mut byte) = (Vec::new(), [0]);
        // Byte by byte: what comes later stays in the pipe.
        while stdout.read(&mut byte).expect("it is there") == 1 {
            line.push(byte[0]);
            if byte[0] != b'\n' {
                continue;
            }
            let text = String::from_utf8_lossy(&line).into_owned();
            line.clear();
            self.said += &text;
            if text.contains(&ours) {
                return;
            }
        }
        panic!("no answer to {id}: {}", self.said);
    }

    /// Closes standard input and returns the server's output and its exit status.
    fn leave(mut self) -> (String, i32) {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().expect("it ends");
        let said = self.said + &String::from_utf8_lossy(&output.stdout);
        (said, output.status.code().unwrap_or(-1))
    }
}

#[test]
fn a_client_that_vanishes_while_it_waits_leaves_the_program_running() {
    let live = Live::new("mcp-vanishes");
    let (program, _) = tuner();
    live.start(&[], &program, &["spinning"]);
    let mut raw = Raw::new(&live);
    raw.call(1, "debug_wait", &json!({"timeoutMs": 600_000}));
    std::thread::sleep(std::time::Duration::from_millis(300));
    let (said, code) = raw.leave();
    assert_eq!(code, 0);
    // The wait has ended with the client, and not been given up later.
    assert!(said.contains(r#""id":1"#), "{said}");
    assert_eq!(live.session()["status"], "running");
    live.ask(&["set", "tempo", "1"]);
    let ended = live.ask(&["await"]);
    assert_eq!(ended["exit"]["code"], 0, "{ended:#}");
}

#[test]
fn a_program_of_which_every_instruction_is_recorded_ends_with_the_server() {
    let live = Live::new("mcp-full-vanishes");
    for (name, is_killed) in [("closed", false), ("killed", true)] {
        let mut raw = Raw::new(&live);
        let asked = json!({"program": "/bin/sleep", "args": ["1000"], "full": true,
            "recording": name, "timeoutMs": 600_000});
        raw.call(1, "debug_launch", &asked);
        let folder = live.scratch.join(&format!("{name}.hindsight"));
        let recorder = wait_until("the recorder to run sleep", || {
            let children = children_of(raw.child.id());
            let recorder = *children.first()?;
            (folder.is_dir() && !children_of(recorder).is_empty()).then_some(recorder)
        });
        match is_killed {
            true => {
                raw.child.kill().expect("it runs");
                raw.child.wait().expect("it ends");
            }
            false => assert_eq!(raw.leave().1, 0),
        }
        wait_until("the recorder to end", || {
            (!Path::new(&format!("/proc/{recorder}/maps")).exists()).then_some(())
        });
        let told = live.command(&["info", "--json", name]).run();
        assert_eq!(told.status.as_shell_code(), 0, "{}", told.errors());
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(
            told.contains("\"state\":\"complete\"") || told.contains("SIGTERM"),
            "{told}"
        );
    }
}

#[test]
fn a_program_that_ignores_signals_ends_with_the_server_if_every_instruction_is_recorded() {
    let live = Live::new("mcp-full-deaf");
    let mut raw = Raw::new(&live);
    let script = "trap '' INT TERM; mkfifo deaf; read x < deaf";
    let asked = json!({"program": "/bin/sh", "args": ["-c", script], "full": true,
        "recording": "ignoring", "timeoutMs": 600_000});
    raw.call(1, "debug_launch", &asked);
    let recorder = wait_until("the recorder to run a program that ignores signals", || {
        let recorder = *children_of(raw.child.id()).first()?;
        live.scratch.join("deaf").exists().then_some(recorder)
    });
    let program = *children_of(recorder).first().expect("it runs");
    assert_eq!(raw.leave().1, 0);
    for ended in [program, recorder] {
        wait_until("the end of the program and its recorder", || {
            (!Path::new(&format!("/proc/{ended}/maps")).exists()).then_some(())
        });
    }
}

/// The processes that a process has started.
fn children_of(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let children = tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<String> = children.collect();
    let numbers = children
        .iter()
        .flat_map(|children| children.split_whitespace());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn a_server_that_a_signal_ends_closes_the_recordings_that_it_opened() {
    let live = Live::new("mcp-signalled");
    let recording = recorded(&live);
    for signal in [Signal::TERM, Signal::INT] {
        let mut raw = Raw::new(&live);
        let last = json!({"recording": recording, "to": "last"});
        raw.call(1, "debug_goto", &last);
        raw.await_answer(1);
        assert_eq!(live.session()["status"], "recorded", "{signal:?}");
        kill(raw.child.id() as i32, signal);
        assert!(raw.child.wait().expect("it ends").success(), "{signal:?}");
        assert_eq!(
            live.refused(&["status"])["code"],
            "NO_SESSION",
            "{signal:?}"
        );
    }
}

#[test]
fn arguments_that_are_no_object_are_wrong_parameters() {
    let live = Live::new("mcp-arguments");
    let mut raw = Raw::new(&live);
    for (id, wrong) in [json!([1]), json!("x"), json!(7)].iter().enumerate() {
        raw.call(id as u32 + 1, "debug_sql", wrong);
    }
    let (said, code) = raw.leave();
    assert_eq!(code, 0);
    let refused = said.lines().filter(|line| {
        line.contains("-32602") && line.contains("the arguments of tools/call are not an object")
    });
    assert_eq!(refused.count(), 3, "{said}");
}

#[test]
fn a_query_that_takes_hours_ends_with_its_client() {
    let live = Live::new("mcp-query-vanishes");
    let recording = recorded(&live);
    let mut raw = Raw::new(&live);
    let many = (0..8).map(|n| format!("events e{n}")).collect::<Vec<_>>();
    let sql = format!(
        "select count(*) from {} where e0.seq + e7.ts_ns <> 1",
        many.join(", ")
    );
    raw.call(1, "debug_sql", &json!({"recording": recording, "sql": sql}));
    raw.call(
        2,
        "debug_sql",
        &json!({"recording": recording, "sql": "select 41 + 1 as n"}),
    );
    let (said, code) = raw.leave();
    assert_eq!(code, 0);
    // The short one is still answered; the long one is told to have ended, and not left alone: by the query itself, or for it.
    assert!(said.contains("42"), "{said}");
    let ended = said.lines().find(|line| line.contains("\"id\":1,"));
    let ended = ended.unwrap_or_else(|| panic!("{said}"));
    let whys = ["the client has left before the answer", "it was stopped"];
    assert!(whys.iter().any(|why| ended.contains(why)), "{ended}");
}

#[test]
fn a_client_that_vanishes_in_the_middle_of_a_continue_leaves_the_program_running() {
    let live = Live::new("mcp-vanishes-continuing");
    let (program, _) = tuner();
    live.start(&["--stop-on-entry"], &program, &["spinning"]);
    let mut raw = Raw::new(&live);
    raw.call(1, "debug_continue", &json!({"timeoutMs": 600_000}));
    wait_until("the program to run", || {
        (live.session()["status"] == "running").then_some(())
    });
    let (_, code) = raw.leave();
    assert_eq!(code, 0);
    assert_eq!(live.session()["status"], "running");
    live.ask(&["set", "tempo", "1"]);
    let ended = live.ask(&["await"]);
    assert_eq!(ended["exit"]["code"], 0, "{ended:#}");
}

#[test]
fn a_cancelled_call_ends_and_the_program_runs_on() {
    let live = Live::new("mcp-cancelled");
    let (program, _) = tuner();
    live.start(&[], &program, &["spinning"]);
    let mut raw = Raw::new(&live);
    raw.call(1, "debug_wait", &json!({"timeoutMs": 600_000}));
    std::thread::sleep(std::time::Duration::from_millis(300));
    raw.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    );
    raw.call(2, "debug_wait", &json!({"timeoutMs": 1}));
    raw.await_answer(2);
    let (said, code) = raw.leave();
    assert_eq!(code, 0);
    assert!(said.contains(r#"\"status\":\"running\""#), "{said}");
    assert!(said.contains(r#""id":2"#), "{said}");
    assert_eq!(live.session()["status"], "running");
    live.ask(&["set", "tempo", "1"]);
    let ended = live.ask(&["await"]);
    assert_eq!(ended["exit"]["code"], 0, "{ended:#}");
}

/// The processor time that a process has used, in ticks of the kernel.
fn ticks_of(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(')').expect("the name is in parentheses");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // utime and stime are the 14th and the 15th field; these begin with the third.
    let times = fields[11..13].iter().map(|time| time.parse::<u64>());
    times.sum::<Result<u64, _>>().expect("numbers")
}

/// Waits until a process computes nothing, and returns its processor time.
fn ticks_when_idle(pid: u32) -> u64 {
    wait_until("the server to compute nothing", || {
        let before = ticks_of(pid);
        std::thread::sleep(std::time::Duration::from_millis(300));
        let after = ticks_of(pid);
        (after - before <= 1).then_some(after)
    })
}

fn cancelled(raw: &mut Raw, id: u32) {
    raw.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": id}}),
    );
}

#[test]
fn a_query_that_is_cancelled_computes_nothing_more() {
    let live = Live::new("mcp-cancelled-query");
    let recording = recorded(&live);
    let mut raw = Raw::new(&live);
    let many = (0..8).map(|n| format!("events e{n}")).collect::<Vec<_>>();
    let sql = format!(
        "select count(*) from {} where e0.seq + e7.ts_ns <> 1",
        many.join(", ")
    );
    raw.call(1, "debug_sql", &json!({"recording": recording, "sql": sql}));
    wait_until("the server to compute", || {
        (ticks_of(raw.child.id()) > 100).then_some(())
    });
    cancelled(&mut raw, 1);
    ticks_when_idle(raw.child.id());
    assert_eq!(raw.leave().1, 0);
}

/// Calls a function as often as its argument says.
const MANY: &str = r#"#include <stdlib.h>
volatile long sum;
__attribute__ ((noinline)) void work (long i) { sum += i; }
int main (int argc, char **argv) {
  for (long i = 0; i < atol (argv[1]); i++) work (i);
  return 0;
}
"#;

#[test]
fn an_overview_that_is_cancelled_computes_nothing_more() {
    let live = Live::new("mcp-cancelled-overview");
    let program = compiled(&live.scratch, "many.c", MANY, &["-O1", "-g"]);
    let program = Program::new(program, live.scratch.path()).args(["3000000"]);
    Hindsight::recorded(&live.scratch, "many", &[], &program);
    Hindsight::recorded(&live.scratch, "more", &[], &program);
    let mut raw = Raw::new(&live);
    // The last overview is kept, so each asks about the other recording. The first two open the files, too.
    let asked = ["many", "more"].map(|name| json!({"recording": name}));
    let mut whole_of = |ids: std::ops::Range<u32>| {
        for (id, asked) in ids.zip(asked.iter().cycle()) {
            raw.call(id, "debug_overview", asked);
            raw.await_answer(id);
        }
        ticks_when_idle(raw.child.id())
    };
    let begun = whole_of(1..3);
    let whole = whole_of(10..14) - begun;
    let begun = ticks_when_idle(raw.child.id());
    for id in 20..24 {
        raw.call(id, "debug_overview", &asked[0]);
        cancelled(&mut raw, id);
    }
    let pid = raw.child.id();
    let cancelled = ticks_when_idle(pid) - begun;
    assert!(cancelled * 2 < whole, "{cancelled} of {whole} ticks");
    assert_eq!(raw.leave().1, 0);
}

#[test]
fn two_clients_ask_at_once_and_garbage_ends_neither() {
    let live = Live::new("mcp-two");
    let recording = recorded(&live);
    let (mut one, mut two) = (Raw::new(&live), Raw::new(&live));
    let stdin = one.child.stdin.as_mut().expect("a pipe");
    stdin
        .write_all(b"this is no JSON\n{\"jsonrpc\": 3}\n")
        .expect("the server reads");
    let ask = json!({"recording": recording, "sql": "select count(*) as n from calls"});
    for id in 1..=5 {
        one.call(id, "debug_sql", &ask);
        two.call(id, "debug_sql", &ask);
    }
    for (mut raw, name) in [(one, "one"), (two, "two")] {
        for id in 1..=5 {
            raw.await_answer(id);
        }
        let (said, code) = raw.leave();
        assert_eq!(code, 0, "{name}");
        let answers = said.matches(r#"\"n\":47"#).count();
        assert_eq!(answers, 5, "{name}: {said}");
    }
}

#[test]
fn http_takes_only_clients_with_the_token_at_a_local_address() {
    let live = Live::new("mcp-http");
    let refused = live.command(&["mcp", "--http", "0.0.0.0:0"]).run();
    assert_eq!(refused.status.as_shell_code(), 2);
    assert!(refused.errors().contains("ssh -L"), "{}", refused.errors());
    let (program, _) = tuner();
    let program = program.to_str().expect("paths of tests are text");
    let _ = mcp_script(&live, "over_http.py", &[&recorded(&live), program]);
}
