//! Goal: with many clients, many sessions, other users, settings and a full disk, every client gets correct answers and
//! none disturbs another. Method: the binary and a daemon of each test's own.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use e2e::{
    Hindsight, Live, Program, Recording, Signal, Status, compiled, fixture_artifact, in_turn,
    is_alive, kill, marked_line, wait_until,
};
use serde_json::{Value, json};

fn line(mark: &str) -> u64 {
    marked_line("control", "control.c", mark)
}

fn started(name: &str, options: &[&str], args: &[&str]) -> Live {
    let program = fixture_artifact("control", name);
    Live::started(&format!("sessions-{name}"), options, &program, args)
}

fn number(value: &Value) -> i32 {
    value.as_i64().expect("a number") as i32
}

#[test]
fn clients_ask_at_once_while_another_one_waits() {
    let live = started("control_O0", &[], &["spinning"]);
    let waiting = live.command(&["await", "--json"]).start();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let live = &live;
                for _ in 0..5 {
                    for words in [&["print", "tempo", "--json"][..], &["threads"], &["status"]] {
                        let ended = live.command(words).run();
                        assert_eq!(
                            ended.status,
                            Status::Code(0),
                            "{words:?}: {}",
                            ended.errors()
                        );
                    }
                }
            });
        }
    });
    live.ask(&["set", "tempo", "90"]);
    let ended = waiting.finish();
    assert!(ended.text().contains("\"code\": 7"), "{}", ended.text());
}

#[test]
fn the_daemon_keeps_no_folder_busy() {
    let live = started("control_O0", &[], &["spinning"]);
    let daemon = live.daemon().expect("it serves");
    let folder = std::fs::read_link(format!("/proc/{daemon}/cwd")).expect("it runs");
    assert_eq!(folder, std::path::Path::new("/"));
}

#[test]
fn sessions_are_chosen_by_number_or_are_the_newest_that_runs() {
    let live = started("control_O0", &["--break", "bump"], &[]);
    let other = fixture_artifact("control", "control_O2");
    let second = live.start(&["--break", "middle"], &other, &[]);
    assert_eq!(second["session"], 2);
    assert_eq!(
        live.ask(&["status"])["sessions"].as_array().map(Vec::len),
        Some(2)
    );
    assert_eq!(live.print("x"), "41", "the newest");
    assert_eq!(live.ask(&["print", "--session", "1", "by"])["value"], "1");
    let only = live.ask(&["status", "--session", "1"]);
    assert_eq!(only["sessions"].as_array().map(Vec::len), Some(1));
    let refused = live.refused(&["where", "--session", "9"]);
    assert_eq!(refused["code"], "NO_SESSION");
    assert_eq!(refused["hint"], "sessions: 1, 2");
    assert_eq!(live.run_to_end(), 7);
    assert_eq!(live.print("by"), "1", "the one that still runs");
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 7);
    let printed = |session: &str| live.command(&["output", "--session", session]).run().text();
    assert_eq!(printed("1"), printed("2"));
    let ends: Vec<Value> = ["1", "2"]
        .iter()
        .map(|session| live.ask(&["stop", "--session", session])["exit"]["code"].take())
        .collect();
    assert_eq!(ends, [7, 7]);
}

#[test]
fn a_breakpoint_that_is_removed_leaves_its_thread_stopped() {
    let live = started("control_O0", &["--break", "bump"], &[]);
    let before = live.session()["stop"].clone();
    let removed = live.ask(&["break", "remove", "1"]);
    assert_eq!(removed["probes"][0]["id"], 1);
    assert_eq!(live.session()["stop"], before, "it stands where it stood");
    assert_eq!(live.print("by"), "1");
    assert_eq!(live.moved(&["next"])["line"], line("bump: return"));
    assert_eq!(live.run_to_end(), 7, "and is not hit again");
    assert!(live.output().starts_with("counter 55\n"));
}

#[test]
fn hits_are_there_when_the_program_has_ended() {
    let live = started("control_O0", &["--stop-on-entry"], &[]);
    live.ask(&["break", "bump", "--condition", "by == 99"]);
    live.ask(&["logpoint", "leaf", "x={x}"]);
    live.ask(&["break", "middle", "--hit-count", "5"]);
    assert_eq!(live.run_to_end(), 7);
    let hits = |verb: &str| {
        let list = live.ask(&[verb, "list"]);
        let probes = list["probes"].as_array().expect("a list").clone();
        probes
            .iter()
            .map(|probe| probe["hits"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        hits("break"),
        [0, 1],
        "its condition was never true; once, of five"
    );
    assert_eq!(hits("logpoint"), [2]);
    let shown = live.command(&["break", "list"]).run().text();
    assert!(shown.contains("by == 99"), "{shown}");
    // One that is set now is for the next run.
    let set = live.ask(&["break", "leaf"]);
    let probe = &set["probes"][0];
    assert_eq!(probe["verified"], false, "{set:#}");
    assert_eq!(probe["message"], "the program has ended: restart sets it");
}

/// Conditions, counts, watchpoints and addresses are set again, also when the program has ended by itself.
#[test]
fn a_restart_sets_all_probes_again() {
    let live = started("control_O0", &["--break", "middle"], &[]);
    let address = live.session()["stop"]["address"].clone();
    live.ask(&["watch", "counter", "--condition", "counter > 50"]);
    live.ask(&["logpoint", "leaf", "x={x}"]);
    live.ask(&["break", "sum_to"]);
    live.ask(&["break", "disable", "4"]);
    let leaf = live.ask(&["print", "&leaf"])["value"]
        .as_str()
        .expect("text")
        .to_owned();
    let leaf = leaf
        .split_whitespace()
        .find(|word| word.starts_with("0x"))
        .expect("an address");
    live.ask(&["break", leaf]);
    live.ask(&["break", "disable", "1"]);
    live.ask(&["break", "disable", "5"]);
    assert_eq!(live.run_to_end(), 7);
    let again = live.ask(&["restart"]);
    live.keep(&again);
    assert_eq!(again["session"], 1, "the number stays");
    let stop = &again["stop"];
    assert_eq!(stop["reason"], "watch", "{again:#}");
    assert_eq!(
        (&stop["old"], &stop["new"]),
        (&json!("45"), &json!("55")),
        "{again:#}"
    );
    let list = live.ask(&["break", "list"]);
    let enabled = |index: usize| list["probes"][index]["enabled"].clone();
    assert_eq!(list["probes"].as_array().map(Vec::len), Some(3), "{list:#}");
    assert_eq!(
        [enabled(0), enabled(1), enabled(2)],
        [false, false, false],
        "{list:#}"
    );
    let places = &list["probes"][2]["places"][0];
    assert_eq!(places["function"], "leaf", "where it is now: {list:#}");
    assert_ne!(places["address"], address);
    live.ask(&["break", "enable", "5"]);
    assert_eq!(live.moved(&["continue"])["function"], "leaf");
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 7);
    assert_eq!(live.recording().number("SELECT count(*) FROM logpoints"), 2);
}

#[test]
fn a_pause_stops_all_threads_and_says_when_they_were_stopped_before() {
    let live = started("control_O0", &["--break", "worker_step"], &["threads"]);
    wait_until("the second thread", || {
        (live.session()["stopped_threads"] == 2).then_some(())
    });
    let paused = live.ask(&["pause"]);
    assert_eq!(
        paused["stop"]["reason"], "user",
        "the first thread ran: {paused:#}"
    );
    assert_eq!(live.session()["stopped_threads"], 3);
    let again = live.ask(&["pause"]);
    assert_eq!(again["already"], true, "{again:#}");
    let shown = live.command(&["pause"]).run().text();
    assert!(
        shown.starts_with("All threads are stopped already.\n"),
        "{shown}"
    );
    // Only one of the two breakpoints was shown before.
    let other = live.moved(&["continue"]);
    assert_eq!(other["reason"], "breakpoint", "{other:#}");
    let ended = live.ask(&["continue"]);
    assert_eq!(ended["exit"]["code"], 0, "{ended:#}");
}

#[test]
fn a_stop_of_all_threads_stops_all_of_them() {
    let live = started("control_O0", &["--stop-on-entry"], &["threads"]);
    live.ask(&["break", "worker_step", "--all-threads"]);
    let stop = live.moved(&["continue"]);
    let threads = live.ask(&["threads"]);
    let threads = threads["threads"].as_array().expect("threads");
    assert!(threads.len() >= 2, "{threads:#?}");
    assert!(
        threads.iter().all(|thread| thread["state"] == "stopped"),
        "{threads:#?}"
    );
    let others = threads
        .iter()
        .filter(|t| t["reason"]["reason"] == "all_threads");
    assert_eq!(others.count(), threads.len() - 1, "{threads:#?}");
    // One alone goes on.
    live.ask(&["break", "disable", "--all"]);
    live.ask(&["thread", &stop["thread"].to_string()]);
    let reply = live.ask(&["continue", "--thread"]);
    assert_eq!(reply["thread_ended"], stop["thread"], "{reply:#}");
    assert_eq!(live.ask(&["continue"])["exit"]["code"], 0);
}

#[test]
fn a_process_that_runs_is_attached_to_stopped_and_left_alone_again() {
    let live = Live::new("attach");
    let program = Program::new(
        fixture_artifact("control", "control_O0"),
        live.scratch.path(),
    );
    let running = program.args(["spinning"]).start();
    wait_until("its own code", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", running.pid()));
        stat.ok().filter(|stat| stat.contains(") S "))
    });
    let session = live.ask(&["attach", &running.pid().to_string()]);
    assert_eq!(session["status"], "running", "{session:#}");
    let again = live.refused(&["attach", &running.pid().to_string()]);
    assert_eq!(again["code"], "NOT_ALLOWED", "{again:#}");
    let pid = running.pid().to_string();
    let recorder = Hindsight::command(&live.scratch, &["record", "--attach", &pid]).run();
    assert_eq!(recorder.status, Status::Code(4), "{}", recorder.errors());
    assert!(
        recorder.errors().contains("has one tracer"),
        "{}",
        recorder.errors()
    );
    live.ask(&["pause"]);
    live.ask(&["break", "bump"]);
    live.ask(&["break", "leaf"]);
    live.ask(&["set", "tempo", "90"]);
    assert_eq!(live.moved(&["continue"])["function"], "bump");
    let end = live.ask(&["detach"]);
    assert_eq!(end["exit"]["detached"], true, "{end:#}");
    let ended = running.finish();
    assert_eq!(ended.status, Status::Code(7), "{}", ended.errors());
    assert!(ended.text().ends_with("tempo 90\n"), "{}", ended.text());
    let refused = live.command(&["attach", "999999999"]).run();
    assert_eq!(refused.status, Status::Code(4), "{}", refused.errors());
}

#[test]
fn many_breakpoints_are_set_by_one_command_all_or_none() {
    let live = started("control_O0", &["--stop-on-entry"], &[]);
    let marks = [
        "bump: add",
        "leaf: first",
        "middle: call",
        "sum: zero",
        "factorial: test",
    ];
    let places = marks.map(|mark| format!("control.c:{}", line(mark)));
    let mut words = vec!["break"];
    words.extend(places.iter().map(String::as_str));
    let refused = live.refused(&[words.as_slice(), &["nobody"]].concat());
    assert_eq!(refused["code"], "INVALID_FUNCTION");
    assert_eq!(
        live.ask(&["break", "list"])["probes"],
        json!([]),
        "none was set"
    );
    let set = live.ask(&words);
    assert_eq!(set["probes"].as_array().map(Vec::len), Some(5), "{set:#}");
    let shown = live.command(&["break", "main", "worker"]).run().text();
    assert_eq!(shown.lines().count(), 2, "{shown}");
    live.moved(&["continue"]);
    assert_eq!(live.moved(&["continue"])["function"], "bump");
    live.ask(&["break", "remove", "--all"]);
    assert_eq!(live.run_to_end(), 7);
}

#[test]
fn slips_are_met_with_what_may_have_been_meant() {
    let live = started("control_O0", &["--break", "middle"], &[]);
    let refused = live.refused(&["break", "midle"]);
    assert_eq!(refused["hint"], "did you mean middle?", "{refused:#}");
    assert_eq!(refused["details"]["nearest"], json!(["middle"]));
    let refused = live.refused(&["break", "contrl.c:15"]);
    assert_eq!(refused["code"], "INVALID_FILE");
    assert!(refused.to_string().contains("control.c"), "{refused:#}");
    let refused = live.refused(&["print", "tmpo"]);
    assert!(
        refused["message"].as_str().expect("text").contains("tmpo"),
        "{refused:#}"
    );
    for (slip, meant) in [
        ("contineu", "continue"),
        ("brek", "break"),
        ("backtrce", "backtrace"),
    ] {
        let ended = live.command(&[slip]).run();
        assert_eq!(ended.status, Status::Code(2), "{slip}");
        assert!(ended.errors().contains(meant), "{slip}: {}", ended.errors());
    }
    let refused = live.command(&["break", "remove", "x"]).run();
    assert_eq!(refused.status, Status::Code(2), "{}", refused.errors());
}

#[test]
fn the_configuration_file_is_obeyed() {
    let live = Live::new("config");
    live.configure("[timeouts]\nawait_default_secs = 0.2\n[output]\nmax_events = 3\n");
    let program = fixture_artifact("control", "control_O0");
    live.start(&[], &program, &["spinning"]);
    let reply = live.ask(&["await"]);
    assert_eq!(reply["timed_out"], true, "{reply:#}");
    let shown = live.command(&["await", "--timeout", "0.01"]).run();
    assert!(
        shown.text().starts_with("No stop within the time"),
        "{}",
        shown.text()
    );
    live.ask(&["set", "tempo", "90"]);
    assert_eq!(live.ask(&["await", "--timeout", "60"])["exit"]["code"], 7);
    live.ask(&["stop"]);
    live.configure("[timeouts]\nawait_default_secs = \"soon\"\n");
    let ended = live.command(&["status"]).run();
    assert_eq!(ended.status, Status::Code(2), "{}", ended.errors());
    assert!(
        ended.errors().contains("config.toml:2:"),
        "{}",
        ended.errors()
    );
}

#[test]
fn a_daemon_without_sessions_ends_when_it_has_been_idle() {
    let live = Live::new("idle");
    live.configure("[daemon]\nidle_timeout_minutes = 0.05\n");
    let program = fixture_artifact("control", "control_O0");
    let report = live.start(&["--stop-on-entry"], &program, &[]);
    let daemon = live.daemon().expect("it serves");
    // As long as the program runs, the daemon stays; it ends by itself when the program has ended.
    kill(number(&report["pid"]), Signal::KILL);
    live.wait_for_end_of(daemon);
    assert!(!live.socket().exists(), "the socket is gone");
    let status = live.command(&["status"]).run();
    assert!(
        status.errors().contains("there is no live session"),
        "{}",
        status.errors()
    );
}

/// A session that was ended on purpose lets the daemon end with its last client, unless another program was started before: also one
/// that ends so quickly that it is never counted as running.
#[test]
fn a_program_that_ends_at_once_can_be_asked_about() {
    let live = Live::new("sessions-quick");
    let idle = fixture_artifact("control", "control_O0");
    let quick = Path::new("/bin/true");
    for _ in 0..5 {
        live.start(&[], &idle, &["spinning"]);
        let client = UnixStream::connect(live.socket()).expect("it serves");
        live.ask(&["kill"]);
        live.start(&[], quick, &[]);
        drop(client);
        let ended = wait_until("the program to end", || {
            let session = live.session();
            (session["status"] == "ended").then_some(session)
        });
        assert_eq!(ended["program"], "/bin/true", "{ended:#}");
    }
}

#[test]
fn output_is_kept_shown_once_and_bounded() {
    let live = started("control_O0", &["--stop-on-entry"], &[]);
    assert_eq!(live.run_to_end(), 7);
    let run = |words: &[&str]| live.command(words).run();
    assert_eq!(run(&["output", "--tail", "1"]).text(), "tempo 120\n");
    let followed = run(&["output", "--follow"]).text();
    assert_eq!(followed.lines().count(), 5, "{followed}");
    assert_eq!(run(&["output"]).text(), followed, "it was not forgotten");
    assert_eq!(run(&["output"]).text(), "", "now it was");
    let again = live.ask(&["restart"]);
    live.keep(&again);
    wait_until("its end", || {
        (live.session()["status"] == "ended").then_some(())
    });
    let cleared = live.ask(&["output", "--clear"]);
    assert!(cleared["cleared"].as_u64() > Some(0), "{cleared:#}");
    assert_eq!(run(&["output"]).text(), "");
    let bounded = Live::new("bounded");
    bounded.configure("[output]\nmax_bytes_mb = 0.0001\n");
    let program = fixture_artifact("stdio", "stdio");
    bounded.start(&[], &program, &["big"]);
    wait_until("its end", || {
        (bounded.session()["status"] == "ended").then_some(())
    });
    let shown = bounded.command(&["output"]).run();
    assert!(shown.stdout.len() <= 105, "{} bytes", shown.stdout.len());
    assert!(
        shown
            .errors()
            .contains("earlier pieces of output were dropped"),
        "{}",
        shown.errors()
    );
}

/// Another user cannot reach the socket; and even if the folder were open, the daemon asks the kernel for the
/// client's user.
#[test]
fn another_user_is_refused() {
    let live = started("control_O0", &["--stop-on-entry"], &[]);
    let socket = live.socket();
    let connect = "import socket, sys\n\
         s = socket.socket(socket.AF_UNIX)\n\
         s.connect(sys.argv[1])\n\
         print(s.makefile().read())\n";
    let as_another = || {
        let is_root = std::fs::metadata("/proc/self")
            .is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
        let sudo: &[&str] = if is_root { &[] } else { &["sudo", "-n"] };
        let other = [
            "setpriv",
            "--reuid=54321",
            "--regid=54321",
            "--clear-groups",
        ];
        let words = [sudo, &other, &["python3", "-c", connect]].concat();
        let mut command = Command::new(words[0]);
        let command = command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        let done = command.args(&words[1..]).arg(&socket).output();
        let done = done.expect("it can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        text(&done.stdout) + &text(&done.stderr)
    };
    let kept_out = as_another();
    assert!(kept_out.contains("PermissionError"), "{kept_out}");
    let folder = socket.parent().expect("a folder");
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    let runtime = folder.parent().expect("a folder");
    for path in [runtime, folder, &socket] {
        open(path, 0o777);
    }
    let refused = as_another();
    assert!(refused.contains("NOT_ALLOWED"), "{refused}");
    assert!(!refused.contains("recording"), "nothing is told: {refused}");
    for path in [runtime, folder] {
        open(path, 0o700);
    }
    assert_eq!(live.run_to_end(), 7, "we are still served");
}

/// Starts a program whose recording does not fit, and requests its status.
const ON_SMALL_DISK: &str = "mount -t tmpfs -o size=24m tmpfs small || exit 90; \
     \"$0\" start -o small/rec \"$1\" 3000000 || exit 91; \"$0\" await; \
     \"$0\" status; \"$0\" output; \"$0\" stop; cp -a small kept";

#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    let live = Live::new("full-disk");
    std::fs::create_dir(live.scratch.join("small")).expect("the test's folder is writable");
    let tight = fixture_artifact("tight", "tight");
    let native = Program::new(&tight, live.scratch.path())
        .args(["3000000"])
        .run();
    let path = tight.to_str().expect("a path");
    let done = live
        .command(&[path])
        .wrapped(
            "/usr/bin/unshare".as_ref(),
            ["-rm", "/bin/sh", "-c", ON_SMALL_DISK],
        )
        .run();
    let said = done.text() + &done.errors();
    assert!(said.contains(&native.text()), "its output is whole: {said}");
    assert!(said.to_lowercase().contains("no space left"), "{said}");
    let recording = Recording::new(live.scratch.join("kept/rec.hindsight"));
    let calls = recording.number("SELECT count(*) FROM calls WHERE function = 'work'");
    assert!(calls > 10_000 && calls < 3_000_000, "{calls} calls fit");
}

/// The daemon dies while the program is stopped: the program continues by itself, to its end, and the next command says
/// so.
#[test]
fn a_daemon_that_is_killed_lets_its_program_go_on() {
    for name in in_turn(["control_O0", "control_O2"]) {
        let live = Live::new("killed-daemon");
        let file = live.scratch.join("told");
        let program = fixture_artifact("control", name);
        let told = file.to_str().expect("text");
        live.start(&["--break", "bump"], &program, &["all", told]);
        live.ask(&["set", "tempo", "90"]);
        let session = live.session();
        let daemon = live.daemon().expect("it serves");
        kill(daemon, Signal::KILL);
        live.wait_for_end_of(daemon);
        let pid = number(&session["pid"]);
        wait_until("the program to end by itself", || {
            (!is_alive(pid)).then_some(())
        });
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|e| panic!("{name}: it has not come to its end: {e}"));
        assert_eq!(text, "counter 55 tempo 90\n", "{name}");
        let ended = live.command(&["where"]).run();
        assert_eq!(ended.status, Status::Code(1), "{}", ended.errors());
        let recording = session["recording"].as_str().expect("a path");
        let said = format!(
            "error: the daemon was killed: {} (process {pid}) has ended since; its recording is {recording}\n",
            program.display()
        );
        assert!(ended.errors().starts_with(&said), "{}", ended.errors());
        let recording = Recording::new(recording.into());
        let check = recording.command("check", &[]);
        assert_eq!(check.status, Status::Code(3), "{}", check.errors());
        assert!(
            check
                .text()
                .contains("incomplete: the recorder did not close it; what is there is whole"),
            "{}",
            check.text()
        );
        let last = recording.row("SELECT kind, text FROM events WHERE kind IN ('pause', 'write') ORDER BY seq DESC LIMIT 1");
        assert_eq!(last["text"], "tempo", "{name}: {last:?}");
        // A new one serves.
        let again = live.start(&["--break", "bump"], &program, &[]);
        assert_eq!(again["stop"]["function"], "bump", "{again:#}");
    }
}

const NAMED: &str = "
int main(int count, char **words)
{
  return count == 0 || !words[0];
}
";

#[test]
fn a_program_has_the_name_by_which_it_was_started() {
    let live = Live::new("sessions-named");
    compiled(&live.scratch, "named.c", NAMED, &["-g", "-O0"]);
    live.keep(&live.ask(&["start", "--break", "main", "./named"]));
    let value = live.ask(&["print", "words[0]"])["value"].clone();
    let name = value.as_str().unwrap_or_default();
    assert!(name.ends_with(" \"./named\""), "{name}");
}
