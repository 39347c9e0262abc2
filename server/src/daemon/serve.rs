//! The daemon's life cycle: the lock that makes it the only one, the socket, and which clients are accepted.
//!
//! The lock, not the socket, shows whether a daemon runs, because the kernel releases it whenever the daemon ends. A
//! socket whose lock is free is a leftover.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{connection, peer};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::paths::{Paths, own_uid};
use crate::protocol::{Code, Failure};
use crate::session::Sessions;

/// How long a new daemon waits for one that is ending to release the lock.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the new daemon tries the lock.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What every connection needs.
pub struct Daemon {
    /// All sessions.
    pub sessions: Arc<Sessions>,
    /// The user's settings.
    pub config: Config,
}

/// Serves until the daemon is no longer needed. Returns at once if another daemon serves already.
///
/// # Errors
/// The folder is not to be trusted, the socket cannot be made, or a daemon that does not answer holds the lock.
pub fn serve(
    paths: &Paths,
    config: Config,
    guardian: Option<Vec<std::ffi::OsString>>,
) -> Result<()> {
    paths.prepare()?;
    // Ctrl-C and the closing of a terminal must not reach the daemon. `setsid` fails for a group leader, which needs no
    // new session.
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!(%error, "no session of our own");
    }
    let Some(_lock) = take_lock(paths)? else {
        return Ok(());
    };
    let listener = listen(&paths.socket())?;
    let idle = config.idle_timeout();
    let daemon = Arc::new(Daemon {
        sessions: Sessions::new(paths.state(), config.output, guardian),
        config,
    });
    tracing::debug!(socket = %paths.socket().display(), "serving");
    std::thread::spawn({
        let daemon = Arc::clone(&daemon);
        move || let_in(&listener, &daemon)
    });
    daemon.sessions.presence.wait_for_the_end(idle);
    // The order matters: removing the socket keeps new clients out, and the lock is released last, when the process
    // ends.
    for path in [paths.socket(), paths.state()] {
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %path.display(), "left behind");
        }
    }
    Ok(())
}

/// Takes the lock; `None` if another daemon serves.
fn take_lock(paths: &Paths) -> Result<Option<File>> {
    let path = paths.lock();
    let failed = |source| Error::io(format!("lock {}", path.display()))(source);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(&path).map_err(failed)?;
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        if UnixStream::connect(paths.socket()).is_ok() {
            return Ok(None);
        }
        if Instant::now() >= until {
            return Err(Error::NotServing {
                reason: "another one holds the lock and does not answer".to_owned(),
                log: paths.log(),
            });
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Listens on a new socket. An existing one is a leftover, since this process holds the lock.
fn listen(path: &Path) -> Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::io(format!("remove {}", path.display()))(error));
        }
        _ => {}
    }
    let failed = || Error::io(format!("listen on {}", path.display()));
    let listener = UnixListener::bind(path).map_err(failed())?;
    // Until here the mode of the folder protects the socket.
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed())?;
    Ok(listener)
}

fn let_in(listener: &UnixListener, daemon: &Arc<Daemon>) {
    for stream in listener.incoming() {
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                // Most likely the process is out of descriptors; other clients have to leave first.
                tracing::warn!(%error, "a client cannot be let in");
                std::thread::sleep(LOOK_EVERY);
                continue;
            }
        };
        let daemon = Arc::clone(daemon);
        std::thread::spawn(move || receive(&stream, &daemon));
    }
}

fn receive(stream: &UnixStream, daemon: &Arc<Daemon>) {
    match peer::uid(stream) {
        Ok(uid) if peer::may_ask(uid, own_uid()) => {}
        Ok(uid) => {
            tracing::warn!(uid, "refused a client of another user");
            let failure = Failure::new(Code::NotAllowed, "this daemon serves another user");
            connection::refuse(stream, failure);
            return;
        }
        Err(error) => {
            tracing::warn!(%error, "refused a client of whom nothing is known");
            return;
        }
    }
    // A client that is not greeted starts a daemon of its own.
    let Some(_place) = daemon.sessions.presence.enter() else {
        return;
    };
    if let Err(error) = connection::converse(stream, daemon) {
        tracing::debug!(%error, "a client went away");
    }
}
