//! Goal: `hindsight symbols` says where debug information is, and gets it from a server whole or not at all. Method: a
//! program whose debug information was removed, and a server on this machine that has it, or a wrong file.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use e2e::{Ended, Hindsight, Program, Recording, Scratch};
use serde_json::Value;

const SERVER: &str = "\
import functools, http.server, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
print(server.server_address[1], flush=True)
server.serve_forever()
";

/// A server of the files in a folder; it ends when this value is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn of(folder: &Path) -> Server {
        let mut child = Command::new("python3")
            .args(["-c", SERVER])
            .arg(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python starts");
        let mut port = String::new();
        let out = child.stdout.take().expect("stdout is a pipe");
        BufReader::new(out)
            .read_line(&mut port)
            .expect("the server says its port");
        let url = format!("http://127.0.0.1:{}", port.trim());
        Server { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(dir: &Path, line: &str) -> String {
    let ended = Program::new("/bin/sh", dir).args(["-ec", line]).run();
    ended.text()
}

/// A program without debug information, its build id, and the file that has it.
struct Made {
    scratch: Scratch,
    id: String,
    debug: PathBuf,
}

impl Made {
    fn new(name: &str) -> Made {
        let scratch = Scratch::new(name);
        let source = "int twice (int x) { return 2 * x; }\nint main (void) { return twice (0); }\n";
        fs::write(scratch.join("p.c"), source).expect("the folder is writable");
        let dir = scratch.path();
        run(
            dir,
            "gcc -g -O0 -Wl,--build-id -o p p.c; objcopy --only-keep-debug p p.debug; strip -g p; mkdir -p served/buildid",
        );
        let notes = run(dir, "readelf -n p");
        let (_, id) = notes.split_once("Build ID: ").expect("a build id");
        let id = id.split_whitespace().next().expect("digits").to_owned();
        let debug = scratch.join("p.debug");
        Made { scratch, id, debug }
    }

    fn served(&self) -> PathBuf {
        self.scratch.join("served")
    }

    /// Makes the server send `file` for the program.
    fn serve(&self, file: &Path) {
        let folder = self.served().join("buildid").join(&self.id);
        fs::create_dir_all(&folder).expect("the folder is writable");
        fs::copy(file, folder.join("debuginfo")).expect("it can be copied");
    }

    fn cache(&self) -> PathBuf {
        self.scratch.join("cache")
    }

    fn symbols(&self, words: &[&str], urls: &str) -> Ended {
        let words = [&["symbols"], words].concat();
        Hindsight::command(&self.scratch, &words)
            .env("DEBUGINFOD_CACHE_PATH", self.cache())
            .env("DEBUGINFOD_URLS", urls)
            .run()
    }

    /// The output about the program itself.
    fn own(&self, words: &[&str], urls: &str) -> (i32, Value, Value) {
        let ended = self.symbols(&[words, &["--json"]].concat(), urls);
        let answer = ended.result();
        let is_own = |row: &&Value, key: &str| {
            row[key]
                .as_str()
                .is_some_and(|path| path.ends_with("/p") || path == "p")
        };
        let find = |list: &Value, key: &str| {
            let mut rows = list.as_array().expect("a list").iter();
            rows.find(|row| is_own(row, key))
                .cloned()
                .unwrap_or_default()
        };
        let code = ended.status.as_shell_code();
        (
            code,
            find(&answer["modules"], "path"),
            find(&answer["fetched"], "module"),
        )
    }
}

#[test]
fn what_is_missing_is_fetched_and_found() {
    let made = Made::new("symbols_fetch");
    made.serve(&made.debug);
    let server = Server::of(&made.served());
    let (code, own, _) = made.own(&["list", "./p"], "");
    assert_eq!(
        (code, own["debug"].as_str()),
        (0, Some("missing")),
        "{own:#}"
    );
    assert_eq!(own["build_id"], made.id.as_str());
    let (_, own, fetched) = made.own(&["fetch", "./p"], &format!("{}/", server.url));
    assert_eq!(fetched["status"], "fetched", "{fetched:#}");
    assert_eq!(own["debug"], "debuginfod", "{own:#}");
    let stored = made.cache().join(&made.id).join("debuginfo");
    assert_eq!(own["file"], stored.to_str().expect("text"));
    assert_eq!(
        fs::read(&stored).expect("it is there"),
        fs::read(&made.debug).expect("it is there")
    );
    let text = made.symbols(&["list", "./p"], "").text();
    assert!(text.contains("debuginfod's cache"), "{text}");
    // A recording finds it too: types and lines are known.
    let scratch = &made.scratch;
    let recorded = Hindsight::command(scratch, &["record", "-f", "twice", "./p"])
        .env("DEBUGINFOD_CACHE_PATH", made.cache())
        .run();
    assert_eq!(recorded.status.as_shell_code(), 0, "{}", recorded.errors());
    let sql = "SELECT file, line, args FROM calls WHERE function = 'twice'";
    let asked = Hindsight::command(scratch, &["sql", "p", sql])
        .env("DEBUGINFOD_CACHE_PATH", made.cache())
        .run();
    assert!(asked.text().contains("p.c"), "{}", asked.text());
    let (_, own, _) = made.own(&["list", "p"], "");
    assert_eq!(own["debug"], "debuginfod", "the recording's: {own:#}");
    assert!(Recording::new(scratch.join("p.hindsight")).path().is_dir());
}

#[test]
fn what_a_server_does_not_have_or_sends_wrong_is_not_kept() {
    let made = Made::new("symbols_wrong");
    let server = Server::of(&made.served());
    let (code, own, fetched) = made.own(&["fetch", "./p"], &server.url);
    assert_eq!(code, 1, "it is not there");
    assert_eq!(fetched["status"], "not_there", "{fetched:#}");
    assert_eq!(own["debug"], "missing");
    // Debug information of another program, and a file that is none.
    let other = made.scratch.join("other");
    let source = "int main (void) { return 1; }\n";
    fs::write(made.scratch.join("other.c"), source).expect("the folder is writable");
    run(
        made.scratch.path(),
        "gcc -g -Wl,--build-id -o other other.c",
    );
    made.serve(&other);
    let (code, _, fetched) = made.own(&["fetch", "./p"], &server.url);
    assert_eq!(
        (code, fetched["status"].as_str()),
        (1, Some("failed")),
        "{fetched:#}"
    );
    let why = fetched["message"].as_str().expect("text");
    assert!(why.contains("has the build id"), "{why}");
    made.serve(&made.scratch.join("p.c"));
    let (_, _, fetched) = made.own(&["fetch", "./p"], &server.url);
    let why = fetched["message"].as_str().expect("text");
    assert!(why.contains("no debug information"), "{why}");
    assert!(
        !made.cache().join(&made.id).exists(),
        "nothing of it is kept"
    );
    // The next server is asked.
    let both = format!("http://127.0.0.1:1 {}", server.url);
    made.serve(&made.debug);
    let (_, own, fetched) = made.own(&["fetch", "./p"], &both);
    assert_eq!(fetched["status"], "fetched", "{fetched:#}");
    assert_eq!(own["debug"], "debuginfod");
}

#[test]
fn without_a_server_it_is_said_how_to_name_one() {
    let made = Made::new("symbols_none");
    let ended = made.symbols(&["fetch", "./p"], "");
    assert_eq!(ended.status.as_shell_code(), 2);
    assert!(
        ended.errors().contains("DEBUGINFOD_URLS is not set")
            && ended.errors().contains("export DEBUGINFOD_URLS=https://"),
        "{}",
        ended.errors()
    );
    let (_, _, fetched) = made.own(&["fetch", "./p"], "http://127.0.0.1:1");
    assert_eq!(fetched["status"], "failed", "{fetched:#}");
    // For other clients, an empty file in the cache means that no server had the file; here it is not a file.
    let folder = made.cache().join(&made.id);
    fs::create_dir_all(&folder).expect("the folder is writable");
    fs::write(folder.join("debuginfo"), "").expect("the folder is writable");
    let (_, own, _) = made.own(&["list", "./p"], "");
    assert_eq!(
        (own["debug"].as_str(), own["note"].as_str()),
        (Some("missing"), None),
        "{own:#}"
    );
    let own = made.symbols(&["list", "nothing"], "");
    assert_eq!(own.status.as_shell_code(), 2, "{}", own.errors());
}
