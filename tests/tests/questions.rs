//! Goal: each question of `docs/questions.md` is answered by its one command.
//! Method: the commands are taken from the page and run by a shell, as a reader would paste them, on recordings of fixtures.

use std::process::Command;

use e2e::{Hindsight, Recording, Scratch, fixture_artifact, workspace_dir};

/// Texts that the answer to each question of the page contains, in the page's order.
const ANSWERS: [(&str, &[&str]); 19] = [
    ("What was slow by itself?", &["wait_for_orders"]),
    (
        "Where did the time go, with all that was called?",
        &["  load_all", "    load", "      wait_for_orders"],
    ),
    (
        "Who called this function, and what did it call?",
        &["count", "7 calls", "main", "no callees were recorded"],
    ),
    (
        "What did this one request call?",
        &[
            " load(",
            "   make_order(",
            "   wait_for_orders(",
            "     check_price(",
            "times are as measured",
        ],
    ),
    (
        "Who called it with this argument?",
        &["parse_order", "price=-1"],
    ),
    ("Which files did it open?", &["/etc/passwd"]),
    ("What did it wait for?", &["nanosleep"]),
    (
        "Which system calls failed?",
        &["openat", "/nothing", "ENOENT"],
    ),
    (
        "What changed this variable?",
        &["5000", "105000", "load at"],
    ),
    (
        "Why did it exit with an error?",
        &[
            "exited with code 3",
            "order 7: Invalid argument  by load_all",
            "Results that look like failures",
            " -22 ",
            ": 1 of 7 calls, first seq",
        ],
    ),
    (
        "Why did it crash?",
        &["SIGSEGV at address 0x18", "#0   count", "#1   main"],
    ),
    ("Where does this value come from?", &["total became 105000"]),
    ("A picture of all of it?", &[]),
    ("What do two runs have different?", &["SIGSEGV"]),
    (
        "Who printed this line?",
        &["order 7: Invalid argument", "load_all"],
    ),
    (
        "Which processes did it start?",
        &["sh -c", "  true", "true-2.hindsight"],
    ),
    ("What leaks?", &["left at the end", "malloc in keep_order"]),
    (
        "Who holds which lock, and who waits for it?",
        &["deadlock: 2 threads"],
    ),
    ("When was it busy?", &["ten_ms | calls"]),
];

/// Questions about arguments and variables: without debug information, they have no names.
const NEED_DEBUG_INFORMATION: [&str; 3] = [
    "Who called it with this argument?",
    "What changed this variable?",
    "Where does this value come from?",
];

/// Makes the recordings of the page. `path` is where a program of a fixture lies.
fn record_all(scratch: &Scratch, of_app: &[&str], path: impl Fn(&str, &str) -> String) {
    let record = |options: &[&str], name: &str, program: &[&str]| {
        let words = [&["record"], options, &["-o", name, "--"], program].concat();
        let mut command = Command::new(Hindsight::path());
        let ended = command.args(words).current_dir(scratch.path()).output();
        let ended = ended.expect("hindsight runs");
        let folder = scratch.path().join(format!("{name}.hindsight"));
        assert!(
            folder.exists() || scratch.path().join(format!("{name}.children")).exists(),
            "{ended:?}"
        );
    };
    record(of_app, "app", &[&path("failing", "failing"), "crash"]);
    record(&["--syscalls"], "cat", &["cat", "/etc/passwd", "/nothing"]);
    record(&["--memory"], "orders", &[&path("leaks", "leaks_c")]);
    record(
        &["--locks"],
        "stuck",
        &[&path("locked", "locked_c"), "deadlock"],
    );
    record(&[], "good", &[&path("failing", "failing")]);
    record(&[], "bad", &[&path("failing", "failing"), "crash"]);
    record(
        &["--children"],
        "build",
        &["sh", "-c", "/bin/true; /bin/true"],
    );
}

/// The page's number of an event stands for this: the fifth order is the one that is waited for.
fn asked(command: &str, scratch: &Scratch) -> String {
    let recording = Recording::new(scratch.path().join("app.hindsight"));
    let fifth =
        "SELECT start_seq FROM calls WHERE function = 'load' ORDER BY start_seq LIMIT 1 OFFSET 4";
    let seq = recording.number(fifth).to_string();
    command.replace("--call 1208", &format!("--call {seq}"))
}

/// Each call is in one of the rows, and what follows the wait of 30 ms is not in the row of what came before it.
fn has_all_calls(scratch: &Scratch, text: &str) {
    let recording = Recording::new(scratch.path().join("app.hindsight"));
    let rows: Vec<(i64, i64)> = text
        .lines()
        .filter_map(|line| {
            let (ten_ms, calls) = line.split_once(" | ")?;
            Some((ten_ms.trim().parse().ok()?, calls.trim().parse().ok()?))
        })
        .collect();
    let sum: i64 = rows.iter().map(|(_, calls)| calls).sum();
    assert_eq!(sum, recording.number("SELECT count(*) FROM calls"));
    let waits = rows.windows(2).any(|two| two[1].0 - two[0].0 >= 3);
    assert!(waits, "{text}");
}

/// Runs the commands of the page, except those of some questions.
fn ask_all(scratch: &Scratch, except: &[&str]) {
    let page = std::fs::read_to_string(workspace_dir().join("docs/questions.md"))
        .expect("the page is there");
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| {
            let (question, command) = line.strip_prefix("| ")?.split_once(" | `")?;
            Some((question, command.strip_suffix("` |")?))
        })
        .collect();
    let questions: Vec<&str> = rows.iter().map(|(question, _)| *question).collect();
    assert_eq!(questions, ANSWERS.map(|(question, _)| question));
    assert!(except.iter().all(|question| questions.contains(question)));
    let bin = Hindsight::path()
        .parent()
        .expect("the program is in a folder");
    let search = format!(
        "{}:{}",
        bin.display(),
        std::env::var("PATH").expect("there is a PATH")
    );
    for ((question, command), (_, answers)) in rows.iter().zip(ANSWERS) {
        if except.contains(question) {
            continue;
        }
        let mut shell = Command::new("sh");
        let command = asked(command, scratch);
        shell
            .args(["-c", &command])
            .current_dir(scratch.path())
            .env("PATH", &search);
        let ended = shell.output().expect("sh runs");
        let text = String::from_utf8_lossy(&ended.stdout);
        let errors = String::from_utf8_lossy(&ended.stderr);
        // compare exits with 1 for "different".
        let is_well =
            ended.status.success() || command.contains("compare") && ended.status.code() == Some(1);
        assert!(
            is_well && answers.iter().all(|answer| text.contains(answer)),
            "{question}\n{command}\n{text}{errors}"
        );
        if *question == "When was it busy?" {
            has_all_calls(scratch, &text);
        }
    }
    let picture =
        std::fs::read_to_string(scratch.path().join("app.svg")).expect("the picture was written");
    assert!(picture.contains("wait_for_orders"));
}

fn artifact(fixture: &str, artifact: &str) -> String {
    let path = fixture_artifact(fixture, artifact);
    path.to_str().expect("paths of tests are text").to_owned()
}

#[test]
fn each_question_has_one_command() {
    let scratch = Scratch::new("questions");
    record_all(&scratch, &["--syscalls", "--watch", "total"], artifact);
    ask_all(&scratch, &[]);
}

#[test]
fn programs_without_debug_information_answer_them_too() {
    let scratch = Scratch::new("questions_stripped");
    let stripped = |fixture: &str, name: &str| {
        let path = scratch.join(name);
        let path = path.to_str().expect("paths of tests are text").to_owned();
        let mut strip = Command::new("strip");
        let ended = strip.args(["-g", "-o", &path, &artifact(fixture, name)]);
        assert!(ended.status().expect("strip runs").success());
        path
    };
    record_all(&scratch, &["--syscalls"], stripped);
    ask_all(&scratch, &NEED_DEBUG_INFORMATION);
}
