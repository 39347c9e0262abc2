//! The end of a prompt or script whose terminal goes away (SIGHUP), or that is terminated (SIGTERM): as `quit`, it ends
//! the program that was started here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use server::client::{Client, Wait};
use server::paths::Paths;
use server::verbs::{self, Nothing};

use crate::ask::{caught, is_ignored};
use crate::error::Error;
use crate::exit;

/// No session ends with the prompt.
const NONE: u32 = 0;

/// Waits for these signals as long as the process lives.
pub struct Hangup {
    session: Arc<AtomicU32>,
    has_come: Arc<AtomicBool>,
}

impl Hangup {
    /// Begins to wait.
    ///
    /// # Errors
    /// The signals cannot be caught.
    pub fn watch() -> Result<Hangup, Error> {
        let hears_hangup = !is_ignored(libc::SIGHUP);
        let failed = |source| Error::io("catch signals", source);
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().map_err(failed)?;
        let guard = runtime.enter();
        let mut hangup = caught(libc::SIGHUP).map_err(failed)?;
        let mut terminate = caught(libc::SIGTERM).map_err(failed)?;
        drop(guard);
        let session = Arc::new(AtomicU32::new(NONE));
        let of_prompt = Arc::clone(&session);
        let has_come = Arc::new(AtomicBool::new(false));
        let comes = Arc::clone(&has_come);
        std::thread::spawn(move || {
            let came = runtime.block_on(async {
                tokio::select! {
                    _ = hangup.recv(), if hears_hangup => libc::SIGHUP,
                    _ = terminate.recv() => libc::SIGTERM,
                }
            });
            comes.store(true, Ordering::Release);
            end(of_prompt.load(Ordering::Acquire));
            std::process::exit(exit::from_signal(came).into());
        });
        Ok(Hangup { session, has_come })
    }

    /// Sets the session that ends with the prompt. Once a signal has come, this waits for the end of the process instead.
    pub fn ends(&self, session: Option<u32>) {
        while self.has_come.load(Ordering::Acquire) {
            std::thread::park();
        }
        self.session
            .store(session.unwrap_or(NONE), Ordering::Release);
    }
}

/// Ends a session. There is nobody left to tell of a failure.
fn end(session: u32) {
    if session == NONE {
        return;
    }
    let wait = Wait {
        patience: None,
        notify: &mut |_| {},
    };
    let _ = Client::connect(&Paths::of_environment())
        .and_then(|mut client| client.call::<verbs::Stop>(&Nothing {}, Some(session), wait));
}
