//! Ctrl-C at a prompt during a request to the daemon. If the request waits for a stop, the first Ctrl-C stops the
//! program and the second ends the wait. The prompt stays in any case. A search through a recording in this process
//! ends by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use server::client::{Client, Cutter, Wait};
use server::paths::Paths;
use server::protocol::Code;
use server::verbs::{self, PauseArgs};

use super::Link;
use crate::ask::Interrupts;
use crate::error::Error;
use crate::exit;

/// Stopping threads takes milliseconds, unless the kernel holds one of them.
const PAUSE_PATIENCE: Duration = Duration::from_secs(30);

/// The effect of Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInterrupt {
    /// Stops the program of that session, which ends the wait. The second Ctrl-C abandons the wait.
    Pause(Option<u32>),
    /// Abandons the wait.
    Leave,
}

/// Makes a call that Ctrl-C may end.
///
/// # Errors
/// Those of the call; [`Error::Left`] or [`Error::Interrupted`] if Ctrl-C ended it.
pub fn call<T>(
    client: &mut Client,
    paths: &Paths,
    on_interrupt: OnInterrupt,
    link: &Link,
    work: impl FnOnce(&mut Client) -> Result<T, server::Error>,
) -> Result<T, Error> {
    let came = AtomicBool::new(false);
    let left = Arc::new(AtomicBool::new(false));
    let watch = Watch {
        interrupts: Interrupts::catch()?,
        cutter: Arc::new(client.cutter()?),
        on_interrupt,
        paths,
    };
    let (done, ended) = tokio::sync::oneshot::channel();
    let answered = std::thread::scope(|scope| {
        scope.spawn(|| watch.until(ended, &came, &left));
        let answered = work(client);
        // The watcher may have left.
        let _ = done.send(());
        answered
    });
    if came.into_inner() {
        link.interrupted();
    }
    match (answered, left.load(Ordering::Acquire), on_interrupt) {
        (Err(_), true, OnInterrupt::Pause(_)) => Err(Error::Left),
        (Err(_), true, OnInterrupt::Leave) => Err(Error::Interrupted),
        (answered, _, _) => Ok(answered?),
    }
}

/// Watches for Ctrl-C during a call.
struct Watch<'a> {
    interrupts: Interrupts,
    cutter: Arc<Cutter>,
    on_interrupt: OnInterrupt,
    paths: &'a Paths,
}

impl Watch<'_> {
    fn until(
        mut self,
        mut ended: tokio::sync::oneshot::Receiver<()>,
        came: &AtomicBool,
        left: &Arc<AtomicBool>,
    ) {
        if self.interrupts.wait(&mut ended).is_ok() {
            return;
        }
        came.store(true, Ordering::Release);
        if let OnInterrupt::Pause(session) = self.on_interrupt {
            eprintln!("\nhindsight: stopping the program; Ctrl-C again stops waiting");
            let (cutter, left) = (Arc::clone(&self.cutter), Arc::clone(left));
            pause(self.paths.clone(), session, move || {
                left.store(true, Ordering::Release);
                cutter.cut();
            });
            if self.interrupts.wait(&mut ended).is_ok() {
                return;
            }
        }
        left.store(true, Ordering::Release);
        self.cutter.cut();
    }
}

/// Runs `work` on recordings. The first Ctrl-C calls `interrupt`, which is to end it; the second ends the prompt.
///
/// # Errors
/// Ctrl-C cannot be caught.
pub fn watched<T>(interrupt: impl FnOnce() + Send, work: impl FnOnce() -> T) -> Result<T, Error> {
    let mut interrupts = Interrupts::catch()?;
    let (done, mut ended) = tokio::sync::oneshot::channel::<()>();
    Ok(std::thread::scope(|scope| {
        scope.spawn(move || {
            if interrupts.wait(&mut ended).is_ok() {
                return;
            }
            interrupt();
            eprintln!("\nhindsight: ending the search; Ctrl-C again leaves the prompt");
            if interrupts.wait(&mut ended).is_err() {
                std::process::exit(exit::from_signal(libc::SIGINT).into());
            }
        });
        let result = work();
        // The watcher may be about to leave.
        let _ = done.send(());
        result
    }))
}

/// Stops the program from a new thread, so that the next Ctrl-C need not wait for it. For a recording, `leave` ends
/// the wait: the daemon then ends the run through it.
fn pause(paths: Paths, session: Option<u32>, leave: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        let wait = Wait {
            patience: Some(PAUSE_PATIENCE),
            notify: &mut |_| {},
        };
        let args = PauseArgs {
            what_is_waited_for: true,
        };
        let paused = Client::connect(&paths)
            .and_then(|mut client| client.call::<verbs::Pause>(&args, session, wait));
        match paused {
            Ok(_) => {}
            // The program is ending; the waiting request reports it.
            Err(server::Error::Failed(failure))
                if matches!(failure.code, Code::NotRunning | Code::NoSession) => {}
            Err(server::Error::Failed(failure)) if failure.code == Code::NotAllowed => leave(),
            Err(error) => eprintln!("hindsight: the program does not stop: {error}"),
        }
    });
}
