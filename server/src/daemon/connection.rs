//! One client's connection. Requests are answered one at a time. A client that disconnects while a verb waits ends only
//! the wait; the session continues.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use recorder::live::GivenUp;
use serde::Serialize;

use super::serve::Daemon;
use crate::gone::Gone;
use crate::protocol::{
    Code, Failure, Greeting, MAX_LINE_BYTES, Notice, Pushed, Request, Response, VERSION,
};
use crate::push::Push;
use crate::verbs::{self, Asked, Call};

/// Maximum number of pushes queued for a client that does not read.
const QUEUE: usize = 1024;
/// A client that reads nothing for this long counts as gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tells a client why it is not served.
pub fn refuse(mut stream: &UnixStream, failure: Failure) {
    // The client may be gone already.
    let _ = write_line(&mut stream, &Response::of(0, Err(failure)));
}

/// Serves a client until it disconnects.
///
/// # Errors
/// The socket can be neither read nor written.
pub fn converse(stream: &UnixStream, daemon: &Arc<Daemon>) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let writer = Arc::new(Mutex::new(stream.try_clone()?));
    say(
        &writer,
        &Greeting {
            hindsight: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
        },
    )?;
    let gone = Arc::new(Gone::default());
    let (lines, requests) = sync_channel(1);
    let reader = stream.try_clone()?;
    std::thread::spawn({
        let gone = Arc::clone(&gone);
        move || {
            read_lines(reader, &lines);
            gone.set();
        }
    });
    let served = answer_all(&requests, &writer, &gone, daemon);
    // Unblocks the reading thread, which may be about to send a line that nothing will receive.
    drop(requests);
    let _ = stream.shutdown(std::net::Shutdown::Both);
    served
}

fn read_lines(from: UnixStream, lines: &SyncSender<Vec<u8>>) {
    let mut from = BufReader::new(from);
    loop {
        let mut line = Vec::new();
        let read = from
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line);
        // A line without its end was truncated, by the client's death or by the length limit.
        if read.is_err() || !line.ends_with(b"\n") || lines.send(line).is_err() {
            return;
        }
    }
}

fn answer_all(
    requests: &Receiver<Vec<u8>>,
    writer: &Arc<Mutex<UnixStream>>,
    gone: &Arc<Gone>,
    daemon: &Arc<Daemon>,
) -> io::Result<()> {
    let queue = OnceCell::new();
    let pushes = || Arc::downgrade(queue.get_or_init(|| Arc::new(push_to(writer))));
    for line in requests {
        let request: Request = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(error) => {
                let failure = Failure::bad_request(format!("this is not a request: {error}"));
                say(writer, &Response::of(id_of(&line), Err(failure)))?;
                continue;
            }
        };
        let id = request.id;
        let notify: Arc<dyn Fn(Notice) + Send + Sync> = Arc::new({
            let writer = Arc::clone(writer);
            move |notice| {
                // A client that is gone needs no notices.
                let _ = say(&writer, &Response::notice(id, notice));
            }
        });
        let asked = Asked {
            session: request.session,
            folder: request
                .folder
                .as_ref()
                .map(|folder| OsString::from(folder).into()),
        };
        let gone = Arc::clone(gone);
        let call = Call::new(&daemon.sessions, &daemon.config, asked, notify, gone);
        let call = call.pushing(&pushes);
        say(writer, &Response::of(id, guarded(&call, request)))?;
    }
    Ok(())
}

/// Writes the pushes of the returned queue to the client, until all senders are dropped or the client is gone.
fn push_to(writer: &Arc<Mutex<UnixStream>>) -> SyncSender<Push> {
    let (queue, pushes) = sync_channel(QUEUE);
    let writer = Arc::clone(writer);
    std::thread::spawn(move || {
        for push in pushes {
            if say(&writer, &Pushed { push }).is_err() {
                return;
            }
        }
    });
    queue
}

/// Answers a request. A panic in the verb becomes an error, since other sessions depend on this process.
fn guarded(call: &Call<'_>, request: Request) -> Result<serde_json::Value, Failure> {
    let command = request.command.clone();
    let answer = catch_unwind(AssertUnwindSafe(|| {
        verbs::serve(call, &request.command, request.args)
    }));
    answer.unwrap_or_else(|panic| {
        if let Some(given_up) = panic.downcast_ref::<GivenUp>() {
            return Err(Failure::of(Code::Timeout, given_up.diagnostic()));
        }
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        tracing::error!(command, what, "a verb panicked");
        let message = format!("internal error in {command}: {what}");
        Err(Failure::new(Code::Failed, message).hint("please report it; the session continues"))
    })
}

/// Finds the id in a malformed request, so that the client can match the answer.
fn id_of(line: &[u8]) -> u64 {
    serde_json::from_slice::<serde_json::Value>(line)
        .ok()
        .and_then(|value| value.get("id")?.as_u64())
        .unwrap_or(0)
}

fn say(writer: &Mutex<UnixStream>, what: &impl Serialize) -> io::Result<()> {
    let mut stream = writer.lock().unwrap_or_else(PoisonError::into_inner);
    write_line(&mut *stream, what)
}

/// Writes one document and the end of its line in one write.
pub fn write_line(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)
}
