//! Goal: the daemon accepts only its user, answers several clients, and ends when it is no longer needed. Method: it
//! serves from a thread of the test in its own folder. The tests wait for its end and never sleep.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use server::client::{Client, Wait};
use server::config::Config;
use server::daemon::serve;
use server::paths::Paths;
use server::protocol::{Code, Failure};
use server::state::{Held, State};
use server::verbs::{Nothing, Pause, PauseArgs, Status};
use tempfile::TempDir;

/// A daemon that ends shortly after its last client.
struct Served {
    folder: TempDir,
    paths: Paths,
    thread: JoinHandle<server::Result<()>>,
}

fn config(idle_minutes: f64) -> Config {
    let mut config = Config::default();
    config.daemon.idle_timeout_minutes = idle_minutes;
    config
}

/// Starts a daemon and connects; attempts before it listens find none.
fn served(idle_minutes: f64) -> (Served, Client) {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::in_folder(folder.path().join("run"));
    let thread = std::thread::spawn({
        let paths = paths.clone();
        move || serve(&paths, config(idle_minutes), None)
    });
    let client = loop {
        match Client::connect(&paths) {
            Ok(client) => break client,
            Err(_) if !thread.is_finished() => std::thread::yield_now(),
            Err(error) => panic!("it does not serve: {error}"),
        }
    };
    (
        Served {
            folder,
            paths,
            thread,
        },
        client,
    )
}

impl Served {
    /// Waits until the daemon has ended by itself.
    fn end(self) -> (TempDir, Paths) {
        self.thread.join().unwrap().unwrap();
        (self.folder, self.paths)
    }
}

fn wait(notify: &mut dyn FnMut(server::protocol::Notice)) -> Wait<'_> {
    Wait {
        patience: Some(Duration::from_secs(60)),
        notify,
    }
}

fn failure(error: server::Error) -> Failure {
    match error {
        server::Error::Failed(failure) => *failure,
        other => panic!("another error: {other}"),
    }
}

#[test]
fn socket_and_folder_are_closed_to_others_and_gone_at_the_end() {
    let (served, client) = served(0.001);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(served.paths.folder()), 0o700);
    assert_eq!(mode(&served.paths.socket()), 0o600);
    assert_eq!(mode(&served.paths.lock()), 0o600);
    drop(client);
    let (_folder, paths) = served.end();
    assert!(!paths.socket().exists());
    assert!(!paths.state().exists());
}

#[test]
fn without_a_session_verbs_say_so_and_the_status_is_empty() {
    let (served, mut client) = served(0.001);
    let status = client
        .call::<Status>(&Nothing {}, None, wait(&mut |_| {}))
        .unwrap();
    assert!(status.sessions.is_empty());
    let refused = client.call::<Pause>(&PauseArgs::default(), None, wait(&mut |_| {}));
    assert_eq!(failure(refused.unwrap_err()).code, Code::NoSession);
    drop(client);
    served.end();
}

#[test]
fn what_is_no_request_is_answered_and_ends_nothing() {
    let (served, mut client) = served(0.001);
    let args = serde_json::json!({});
    let unknown = client.ask("brake", args, None, wait(&mut |_| {}));
    let unknown = failure(unknown.unwrap_err());
    assert_eq!(unknown.code, Code::BadRequest);
    assert_eq!(
        unknown.details.nearest.first().map(String::as_str),
        Some("break")
    );
    let raw = UnixStream::connect(served.paths.socket()).unwrap();
    let mut lines = BufReader::new(raw.try_clone().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("\"hindsight\":1"));
    for (line, id) in [
        ("nonsense", 0),
        ("{\"id\":7}", 7),
        ("[]", 0),
        ("{\"id\":8,\"command\":3}", 8),
    ] {
        (&raw).write_all(format!("{line}\n").as_bytes()).unwrap();
        let answer = lines.next().unwrap().unwrap();
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["id"], id, "{line}");
        assert_eq!(answer["error"]["code"], "BAD_REQUEST", "{line}");
    }
    drop((raw, lines));
    client
        .call::<Status>(&Nothing {}, None, wait(&mut |_| {}))
        .unwrap();
    drop(client);
    served.end();
}

#[test]
fn two_clients_are_served_and_the_last_one_keeps_the_daemon() {
    let (served, mut first) = served(0.001);
    let mut second = Client::connect(&served.paths).unwrap();
    for client in [&mut first, &mut second] {
        client
            .call::<Status>(&Nothing {}, None, wait(&mut |_| {}))
            .unwrap();
    }
    drop(first);
    second
        .call::<Status>(&Nothing {}, None, wait(&mut |_| {}))
        .unwrap();
    assert!(!served.thread.is_finished());
    drop(second);
    served.end();
}

#[test]
fn a_second_daemon_leaves_at_once() {
    let (served, client) = served(0.001);
    serve(&served.paths, config(30.0), None).unwrap();
    drop(client);
    served.end();
}

#[test]
fn a_socket_that_was_left_behind_is_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::in_folder(folder.path().join("run"));
    paths.prepare().unwrap();
    drop(UnixListener::bind(paths.socket()).unwrap());
    assert!(paths.socket().exists());
    let none = Client::connect(&paths).err().unwrap();
    assert_eq!(failure(none).code, Code::NoSession);
    // Without clients, it ends by itself and removes the socket.
    serve(&paths, config(0.001), None).unwrap();
    assert!(!paths.socket().exists());
}

#[test]
fn a_daemon_that_was_killed_is_told_of_with_its_programs() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::in_folder(folder.path().join("run"));
    paths.prepare().unwrap();
    let us = i32::try_from(std::process::id()).unwrap();
    let held = Held::new(1, "./app".to_owned(), us, "/tmp/app.hindsight".into());
    let state = State {
        daemon_pid: 1,
        sessions: vec![held],
    };
    state.write(&paths.state()).unwrap();
    let told = failure(Client::connect(&paths).err().unwrap());
    assert_eq!(told.code, Code::NoSession);
    let expected = format!("process {us}) is still running; its recording is /tmp/app.hindsight");
    assert!(told.message.contains(&expected), "{told}");
    assert_eq!(told.details.recording, Some("/tmp/app.hindsight".into()));
}

#[test]
fn a_folder_that_others_can_enter_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let open = folder.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    let paths = Paths::in_folder(open);
    assert!(matches!(
        serve(&paths, config(30.0), None),
        Err(server::Error::Folder { .. })
    ));
    assert!(matches!(
        Client::connect(&paths).err(),
        Some(server::Error::Folder { .. })
    ));
}
