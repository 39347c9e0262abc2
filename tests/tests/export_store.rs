//! Goal: an export to an object store is complete or absent, for any behaviour of the store, and its errors name the next
//! step. Method: a small store that fails as each test requires; `export_s3.rs` uses a real one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use e2e::{Hindsight, Program, Scratch, Signal, fixture_artifact, wait_until};
use rustix::fs::OFlags;

/// A faulty answer of the store that a test requests.
enum Fault {
    /// A status and a text.
    Answer(u16, String),
    /// No answer, for as long as the client waits.
    Silence,
    /// The end of the connection.
    End,
    /// The same, after the request was carried out.
    Lost,
}

/// Returns whether a request fails, given its method, its address and the number of earlier requests like it.
type Faults = dyn Fn(&str, &str, usize) -> Option<Fault> + Send + Sync;

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    parts: BTreeMap<String, Vec<u8>>,
    /// Method and address of each request, without its signature.
    asked: Vec<String>,
}

/// An object store on its own port.
struct Store {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl Store {
    fn start(faults: impl Fn(&str, &str, usize) -> Option<Fault> + Send + Sync + 'static) -> Store {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let (known, faults): (_, Arc<Faults>) = (Arc::clone(&state), Arc::new(faults));
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (known, faults) = (Arc::clone(&known), Arc::clone(&faults));
                let connection = connection.unwrap();
                std::thread::spawn(move || serve(connection, &known, &*faults));
            }
        });
        Store { port, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn names(&self) -> Vec<String> {
        self.state().objects.keys().cloned().collect()
    }

    /// How many requests began so.
    fn asked(&self, beginning: &str) -> usize {
        let state = self.state();
        let like = state
            .asked
            .iter()
            .filter(|asked| asked.starts_with(beginning));
        like.count()
    }

    fn command(&self, scratch: &Scratch, args: &[&str]) -> Program {
        Hindsight::command(scratch, &[&["export"], args].concat())
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "very secret")
            .env("AWS_ENDPOINT_URL", self.endpoint())
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Runs an export and returns its exit code and output.
    fn export(&self, scratch: &Scratch, args: &[&str]) -> (i32, String) {
        run(&self.command(scratch, args))
    }
}

fn run(program: &Program) -> (i32, String) {
    let ended = program.run();
    let text = ended.text() + &ended.errors();
    for secret in ["very secret", "X-Amz-Signature"] {
        assert!(!text.contains(secret), "{text}");
    }
    (ended.status.as_shell_code(), text)
}

/// Answers the requests of a connection.
fn serve(connection: TcpStream, state: &Mutex<State>, faults: &Faults) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut connection = connection;
    while let Some((method, address, body)) = request(&mut reader) {
        let plain = address.split("&X-Amz-Signature").next().unwrap().to_owned();
        assert_ne!(plain, address, "each request is signed");
        let (path, query) = plain.split_once('?').unwrap();
        let name = path.strip_prefix("/lake").unwrap().trim_start_matches('/');
        let name = name.replace("%3D", "=").replace("%25", "%");
        let words: Vec<&str> = query
            .split('&')
            .filter(|word| !word.starts_with("X-Amz"))
            .collect();
        let asked = format!("{method} {name}?{}", words.join("&"));
        let fault = {
            let mut state = state.lock().unwrap();
            let like = state.asked.iter().filter(|known| **known == asked).count();
            state.asked.push(asked.clone());
            faults(&method, &asked, like)
        };
        let (status, tag, text) = match fault {
            Some(Fault::End) => return,
            Some(Fault::Lost) => {
                answer(&mut state.lock().unwrap(), &method, (&name, &words), body);
                return;
            }
            Some(Fault::Silence) => {
                // The client hangs up.
                let _ = reader.read(&mut [0]);
                return;
            }
            Some(Fault::Answer(status, text)) => (status, String::new(), text),
            None => {
                let mut state = state.lock().unwrap();
                answer(&mut state, &method, (&name, &words), body)
            }
        };
        let len = text.len();
        let head =
            format!("HTTP/1.1 {status} x\r\ncontent-length: {len}\r\netag: \"{tag}\"\r\n\r\n");
        if connection.write_all((head + &text).as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads a request: method, address, body. `None` at the end, also in the middle of one.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, String, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, address) = (words.next()?, words.next()?);
    let mut len = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            len = value.trim().parse().unwrap();
        }
        if header.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; len];
    reader.read_exact(&mut body).ok()?;
    Some((method, address, body))
}

/// Acts as a store: the tag of a part is its number.
fn answer(
    state: &mut State,
    method: &str,
    (name, words): (&str, &[&str]),
    body: Vec<u8>,
) -> (u16, String, String) {
    let word = |key: &str| {
        let word = words.iter().find_map(|word| word.strip_prefix(key));
        word.map(|value| {
            value
                .replace("%2F", "/")
                .replace("%3D", "=")
                .replace("%25", "%")
        })
    };
    let done = |text: String| (200, String::new(), text);
    let ns = "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";
    match (method, word("uploadId="), word("partNumber=")) {
        ("GET", ..) if word("prefix=").is_none() => match state.objects.get(name) {
            Some(object) => done(String::from_utf8_lossy(object).into_owned()),
            None => (404, String::new(), error("NoSuchKey")),
        },
        ("GET", ..) => {
            let prefix = word("prefix=").unwrap();
            let mut found = state.objects.keys().filter(|key| key.starts_with(&prefix));
            let content = found.next().map_or(String::new(), |key| {
                let key = key.replace('%', "%25");
                format!(
                    "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00Z</LastModified><ETag>1</ETag>\
                     <Size>1</Size></Contents>"
                )
            });
            done(format!(
                "<ListBucketResult {ns}>{content}<MaxKeys>1</MaxKeys></ListBucketResult>"
            ))
        }
        ("POST", None, _) => done(format!(
            "<InitiateMultipartUploadResult {ns}><UploadId>up</UploadId></InitiateMultipartUploadResult>"
        )),
        ("PUT", Some(_), Some(number)) => {
            let number = format!("{:0>5}", number);
            state.parts.insert(number.clone(), body);
            (200, number, String::new())
        }
        ("POST", Some(_), _) if state.parts.is_empty() => {
            (404, String::new(), error("NoSuchUpload"))
        }
        ("POST", Some(_), _) => {
            let text = String::from_utf8(body).unwrap();
            let whole: Vec<u8> = state.parts.values().flatten().copied().collect();
            assert_eq!(text.matches("<Part>").count(), state.parts.len(), "{text}");
            state.parts.clear();
            state.objects.insert(name.to_owned(), whole);
            done(String::new())
        }
        ("DELETE", Some(_), _) => {
            state.parts.clear();
            done(String::new())
        }
        ("DELETE", None, _) => {
            state.objects.remove(name);
            done(String::new())
        }
        ("PUT", None, _) => {
            state.objects.insert(name.to_owned(), body);
            done(String::new())
        }
        other => panic!("{other:?}"),
    }
}

/// A folder with a recording whose output fills several parts of an upload: no compression makes it smaller.
fn with_much_output(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let program =
        Program::new("/usr/bin/head", scratch.path()).args(["-c", "10000000", "/dev/urandom"]);
    Hindsight::recorded(&scratch, "app", &[], &program);
    scratch
}

fn with_small(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let fib = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["9"]);
    Hindsight::recorded(&scratch, "app", &[], &fib);
    scratch
}

/// An error as stores write it.
fn error(code: &str) -> String {
    format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>No.</Message></Error>")
}

fn files_below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { files_below(&path) } else { 1 })
        .sum()
}

fn is_same_as_in_folder(scratch: &Scratch, store: &Store, prefix: &str) {
    let ended = Hindsight::command(scratch, &["export", "*", "--to", "lake"]).run();
    assert_eq!(ended.status.as_shell_code(), 0, "{}", ended.errors());
    let state = store.state();
    assert!(!state.objects.is_empty());
    for (name, bytes) in &state.objects {
        let name = name.strip_prefix(prefix).unwrap();
        let file = fs::read(scratch.join("lake").join(name)).unwrap();
        let is_whole = bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1");
        let is_as_long = file.len().abs_diff(bytes.len()) <= file.len() / 50 + 512;
        // Several threads read a table, so the order of rows may differ; `export_s3.rs` compares them.
        assert!(file == *bytes || is_whole && is_as_long, "{name}");
    }
}

#[test]
fn objects_have_the_names_and_bytes_of_files() {
    let scratch = with_small("store-names");
    let fib = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["3"]);
    Hindsight::recorded(&scratch, "a=b", &[], &fib);
    let store = Store::start(|_, _, _| None);
    let (code, told) = store.export(&scratch, &["*", "--to", "s3://lake/a/b/"]);
    assert_eq!(code, 0, "{told}");
    let names = store.names();
    let of_each = names.len() / 2;
    assert!(of_each > 10 && names.len() == 2 * of_each, "{names:?}");
    let said = format!("s3://lake/a/b/: 2 recordings, {} files, ", names.len());
    assert!(told.starts_with(&said), "{told}");
    let calls = "a/b/table=calls/run=a%3Db/part-0.parquet";
    assert!(names.iter().any(|name| name == calls), "{names:?}");
    is_same_as_in_folder(&scratch, &store, "a/b/");
    assert_eq!(files_below(&scratch.join("lake")), names.len());
    let (code, told) = store.export(&scratch, &["app", "--to", "s3://lake/a/b"]);
    assert_eq!(code, 2, "{told}");
    assert!(
        told.contains("run=app/part-0.parquet exists already"),
        "{told}"
    );
    let tables = [
        "app",
        "--to",
        "s3://lake",
        "--table",
        "runs",
        "--table",
        "calls",
    ];
    let (code, told) = store.export(&scratch, &tables);
    assert_eq!(code, 0, "{told}");
    assert_eq!(store.names().len(), names.len() + 2);
    let state = store.state();
    let written = state
        .asked
        .iter()
        .filter(|asked| asked.starts_with("PUT table="));
    let written: Vec<&String> = written.collect();
    assert!(
        written[1].starts_with("PUT table=runs/"),
        "runs is the last: {written:?}"
    );
}

#[test]
fn a_large_table_goes_in_parts_and_comes_whole() {
    let scratch = with_much_output("store-large");
    let store = Store::start(|_, _, _| None);
    let args = ["app", "--to", "s3://lake", "--table", "output"];
    let (code, told) = store.export(&scratch, &args);
    assert_eq!(code, 0, "{told}");
    let parts = store.asked("PUT table=output/run=app/part-0.parquet?partNumber=");
    assert!(parts >= 2, "{:?}", store.state().asked);
    is_same_as_in_folder(&scratch, &store, "");
}

#[test]
fn failures_that_pass_are_waited_for() {
    let scratch = with_much_output("store-passing");
    let store = Store::start(|_, _, before| match before {
        0 => Some(Fault::Answer(503, error("SlowDown"))),
        1 => Some(Fault::End),
        _ => None,
    });
    let args = ["app", "--to", "s3://lake", "--table", "output"];
    let (code, told) = store.export(&scratch, &args);
    assert_eq!(code, 0, "{told}");
    is_same_as_in_folder(&scratch, &store, "");
    // Whether there is a mark, and whether there is the table.
    let lists = store.asked("GET ");
    assert_eq!(lists, 6, "{:?}", store.state().asked);
}

#[test]
fn an_upload_that_completed_without_an_answer_is_complete() {
    let scratch = with_much_output("store-lost");
    let store = Store::start(|method, asked, before| {
        let is_end = method == "POST" && asked.contains("uploadId=");
        (is_end && before == 0).then_some(Fault::Lost)
    });
    let args = ["app", "--to", "s3://lake", "--table", "output"];
    let (code, told) = store.export(&scratch, &args);
    assert_eq!(code, 0, "{told}");
    assert_eq!(
        store.asked("POST table=output/run=app/part-0.parquet?uploadId"),
        2
    );
    is_same_as_in_folder(&scratch, &store, "");
}

#[test]
fn what_does_not_pass_leaves_nothing() {
    let scratch = with_much_output("store-whole");
    let store = Store::start(|method, asked, _| {
        let is_second = method == "PUT" && asked.contains("partNumber=2");
        is_second.then(|| Fault::Answer(500, error("InternalError")))
    });
    let args = [
        "app",
        "--to",
        "s3://lake",
        "--table",
        "calls",
        "--table",
        "output",
    ];
    let (code, told) = store.export(&scratch, &args);
    assert_eq!(code, 1, "{told}");
    let message = "error: s3://lake/table=output/run=app/part-0.parquet cannot be used: the store answered 500 \
                   (InternalError: No.)";
    assert!(told.starts_with(message), "{told}");
    assert_eq!(store.names(), [""; 0], "nothing of half a recording");
    assert!(store.state().parts.is_empty(), "the upload is aborted");
    let tries = store.asked("PUT table=output/run=app/part-0.parquet?partNumber=2");
    assert_eq!(tries, 6);
}

#[test]
fn a_signal_leaves_nothing() {
    for (silent, signal, code, told) in [
        ("partNumber=2", Signal::INT, 130, "interrupted"),
        ("list-type", Signal::INT, 130, "interrupted"),
        ("uploads", Signal::TERM, 143, "ended by SIGTERM"),
    ] {
        let scratch = with_much_output(&format!("store-{silent}"));
        let store =
            Store::start(move |_, asked, _| asked.contains(silent).then_some(Fault::Silence));
        let args = [
            "app",
            "--to",
            "s3://lake",
            "--table",
            "calls",
            "--table",
            "output",
        ];
        let running = store.command(&scratch, &args).start();
        wait_until("the silent request", || {
            let state = store.state();
            let mut asked = state.asked.iter();
            asked.any(|asked| asked.contains(silent)).then_some(())
        });
        running.signal(signal);
        let ended = running.finish();
        let errors = ended.errors();
        assert_eq!(ended.status.as_shell_code(), code, "{silent}: {errors}");
        assert_eq!(errors.trim_start(), format!("error: {told}\n"), "{silent}");
        assert_eq!(store.names(), [""; 0], "{silent}");
        assert!(store.state().parts.is_empty(), "{silent}");
    }
}

/// `runs` is the last table, so the others are there.
const TABLES: [&str; 4] = ["--table", "calls", "--table", "runs"];

#[test]
fn what_a_killed_export_has_left_in_a_bucket_is_replaced() {
    let scratch = with_small("store-killed");
    let store = Store::start(|_, asked, before| {
        let is_last = asked.starts_with("PUT table=runs/");
        (is_last && before == 0).then_some(Fault::Silence)
    });
    let args = [&["app", "--to", "s3://lake"], &TABLES[..]].concat();
    let running = store.command(&scratch, &args).start();
    wait_until("the silent request", || {
        (store.asked("PUT table=runs/") > 0).then_some(())
    });
    let (code, told) = store.export(&scratch, &args);
    assert_eq!(code, 2, "{told}");
    assert!(
        told.contains(" exports this run, or did so: s3://lake/unfinished-app"),
        "{told}"
    );
    running.signal(Signal::KILL);
    drop(running.finish());
    let calls = "table=calls/run=app/part-0.parquet";
    assert_eq!(store.names(), [calls, "unfinished-app"]);
    let (code, told) = store.export(&scratch, &args);
    assert_eq!(code, 0, "{told}");
    assert_eq!(store.names(), [calls, "table=runs/run=app/part-0.parquet"]);
    let (code, told) = store.export(&scratch, &args);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("exists already"), "{told}");
}

/// Some stores refuse to remove what is not there.
#[test]
fn what_a_killed_export_has_not_written_need_not_be_removed() {
    let scratch = with_small("store-picky");
    let store = Store::start(|method, asked, before| {
        let is_last = asked.starts_with("PUT table=runs/") && before == 0;
        let is_missing = method == "DELETE" && asked.starts_with("DELETE table=runs/");
        match (is_last, is_missing) {
            (true, _) => Some(Fault::Silence),
            (_, true) => Some(Fault::Answer(404, error("NoSuchKey"))),
            _ => None,
        }
    });
    let args = [&["app", "--to", "s3://lake"], &TABLES[..]].concat();
    let running = store.command(&scratch, &args).start();
    wait_until("the silent request", || {
        (store.asked("PUT table=runs/") > 0).then_some(())
    });
    running.signal(Signal::KILL);
    drop(running.finish());
    let (code, told) = store.export(&scratch, &args);
    assert_eq!(code, 0, "{told}");
    assert!(store.asked("DELETE table=runs/") > 0);
}

/// Puts a pipe where an export writes a table, which so stands still there.
fn with_pipe(scratch: &Scratch, table: &str) -> PathBuf {
    let folder = scratch.join(&format!("lake/table={table}/run=app"));
    fs::create_dir_all(&folder).unwrap();
    let pipe = folder.join(".part-0.parquet.draft");
    let made = Program::new("/usr/bin/mkfifo", scratch.path()).args([&pipe]);
    assert_eq!(made.run().status.as_shell_code(), 0);
    pipe
}

#[test]
fn what_a_killed_export_has_left_in_a_folder_is_replaced() {
    let scratch = with_small("folder-killed");
    with_pipe(&scratch, "runs");
    let args = [&["export", "app", "--to", "lake"], &TABLES[..]].concat();
    let export = Hindsight::command(&scratch, &args);
    let running = export.start();
    let calls = scratch.join("lake/table=calls/run=app/part-0.parquet");
    wait_until("its first table is there", || calls.exists().then_some(()));
    let (code, told) = run(&export);
    assert_eq!(code, 2, "{told}");
    assert!(
        told.contains("another export of this run is under way"),
        "{told}"
    );
    running.signal(Signal::KILL);
    drop(running.finish());
    assert!(calls.exists());
    let (code, told) = run(&export);
    assert_eq!(code, 0, "{told}");
    assert_eq!(files_below(&scratch.join("lake")), 2, "{told}");
    let (code, told) = run(&export);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("exists already"), "{told}");
}

#[test]
fn an_export_to_a_folder_that_is_terminated_leaves_nothing() {
    for (name, signal, code) in [("TERM", Signal::TERM, 143), ("HUP", Signal::HUP, 129)] {
        let scratch = with_small(&format!("folder-{name}"));
        let pipe = with_pipe(&scratch, "calls");
        let hindsight = Hindsight::path().to_string_lossy().into_owned();
        let words = [
            "--default-signal",
            &hindsight,
            "export",
            "app",
            "--to",
            "lake",
        ];
        let running = Program::new("/usr/bin/env", scratch.path())
            .args(words)
            .args(TABLES)
            .env("XDG_DATA_HOME", scratch.join("data"))
            .start();
        let mark = scratch.join("lake/unfinished-app");
        wait_until("the export to begin", || mark.exists().then_some(()));
        running.signal(signal);
        // Until now, the export cannot have written more than the mark: it waits for a reader.
        let mut options = fs::File::options();
        let reader = options
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&pipe);
        let ended = running.finish();
        let told = ended.errors();
        assert_eq!(ended.status.as_shell_code(), code, "{told}");
        assert_eq!(told, format!("error: ended by SIG{name}\n"));
        drop(reader);
        // An export that ended before it came to the pipe has left it.
        let _ = fs::remove_file(&pipe);
        assert_eq!(files_below(&scratch.join("lake")), 0);
    }
}

#[test]
fn refusals_say_what_to_do() {
    let scratch = with_small("store-refusals");
    let to = ["app", "--to", "s3://lake"];
    for (status, code, why, help) in [
        (
            404,
            "NoSuchBucket",
            "there is no bucket lake",
            "make it first",
        ),
        (
            403,
            "AccessDenied",
            "access denied",
            "the key needs s3:ListBucket",
        ),
        (403, "ExpiredToken", "AWS_SESSION_TOKEN", "aws configure"),
    ] {
        let store = Store::start(move |_, _, _| Some(Fault::Answer(status, error(code))));
        let (exit, told) = store.export(&scratch, &to);
        assert_eq!(exit, 1, "{told}");
        assert!(told.contains(why) && told.contains(help), "{told}");
        assert_eq!(store.state().asked.len(), 1, "it is not tried again");
    }
    let store = Store::start(|_, _, _| Some(Fault::Answer(200, "<html></html>".to_owned())));
    let (_, told) = store.export(&scratch, &to);
    assert!(
        told.contains("does not answer as an object store"),
        "{told}"
    );
    let no_keys = Hindsight::command(&scratch, &["export", "app", "--to", "s3://lake"]);
    let (code, told) = run(&no_keys);
    assert_eq!(code, 2);
    assert!(told.contains("AWS_ACCESS_KEY_ID is not set"), "{told}");
    // A port that was free a moment ago, without a listener.
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let nobody = store
        .command(&scratch, &to)
        .env("AWS_ENDPOINT_URL", format!("http://{free}"));
    let (code, told) = run(&nobody);
    assert_eq!(code, 1);
    assert!(
        told.starts_with(&format!("error: no answer from http://{free}: ")),
        "{told}"
    );
    assert!(told.contains("help: check AWS_ENDPOINT_URL"), "{told}");
}

#[test]
fn nothing_is_written_into_a_recording() {
    let scratch = with_small("store-within");
    let recording = scratch.join("app.hindsight");
    std::os::unix::fs::symlink(&recording, scratch.join("link")).unwrap();
    let before = files_below(&recording);
    for to in ["app.hindsight", "app.hindsight/new/lake", "link/lake"] {
        let export = Hindsight::command(&scratch, &["export", "app", "--to", to]);
        let test = ["test", "--record-to", to, "--", "/bin/true"];
        for refused in [export, Hindsight::command(&scratch, &test)] {
            let (code, told) = run(&refused);
            assert_eq!(code, 2, "{told}");
            let says = format!("error: {to} lies in the recording {}", recording.display());
            assert!(told.starts_with(&says), "{told}");
            assert!(told.contains("help: choose a folder outside it"), "{told}");
        }
    }
    let record = ["record", "-o", "app.hindsight/sub", "/bin/true"];
    let (code, told) = run(&Hindsight::command(&scratch, &record));
    assert_eq!(code, 2, "{told}");
    let says = "error: app.hindsight/sub lies in the recording ";
    assert!(told.starts_with(says), "{told}");
    assert_eq!(files_below(&recording), before);
    assert!(!recording.join("new").exists());
    let beside = Hindsight::command(
        &scratch,
        &["export", "app", "--to", "app.hindsight/../lake"],
    );
    let (code, told) = run(&beside);
    assert_eq!(code, 0, "{told}");
    assert!(files_below(&scratch.join("lake")) > 0);
}

#[test]
fn what_is_still_recorded_is_left_out() {
    let scratch = Scratch::new("export-live");
    let program = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["5"]);
    Hindsight::recorded(&scratch, "done", &[], &program);
    let waiting = Program::new("/bin/sleep", scratch.path()).args(["60"]);
    let options = ["-f", "clock_nanosleep"];
    let (running, recording) = Hindsight::start_recording(&scratch, &options, &waiting);
    wait_until("the second one begins", || {
        let manifest = recording.path().join("manifest");
        manifest.exists().then_some(())
    });
    let ended = Hindsight::command(&scratch, &["export", "done", "rec", "--to", "out"]).run();
    running.signal_group(Signal::KILL);
    drop(running.finish());
    let errors = ended.errors();
    assert!(
        errors.contains("rec is left out: it is still being recorded"),
        "{errors}"
    );
    assert_eq!(ended.status.as_shell_code(), 1, "{errors}");
    let text = ended.text();
    assert!(text.contains("1 recording,"), "{text}");
}
