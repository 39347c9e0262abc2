//! Requests to an object store, one at a time: a request is retried after a temporary failure, and Ctrl-C, SIGTERM or SIGHUP
//! abandons it at once. Addresses are signed by the caller, and are never shown: they carry the signature.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusty_s3::Method;
use tokio::sync::oneshot;
use ureq::http::Request as HttpRequest;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, SendBody};

use crate::ask::Interrupts;
use crate::error::Error;

/// How often a request is sent.
const TRIES: u32 = 6;
/// The wait before the second attempt, and the longest wait; each is twice the previous one.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The longest text of an answer that is read.
const MOST_TEXT: u64 = 1 << 20;
/// Bytes of a body between two checks whether it is still wanted.
const PIECE: usize = 64 << 10;
/// How long an abandoned request may take to end.
const FAREWELL: Duration = Duration::from_secs(3);

/// A connection to a store.
pub struct Channel {
    agent: Agent,
    interrupts: Interrupts,
}

/// What a store answered.
#[derive(Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub etag: Option<String>,
    /// Where the bucket is, if the store names it.
    pub region: Option<String>,
    pub text: String,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// The last error of the connection.
    Unreachable(String),
    Other(Error),
}

impl Reply {
    /// Returns whether the same request may succeed later.
    fn may_pass(&self) -> bool {
        matches!(self.status, 429 | 500..=599)
            || matches!(self.code(), Some("RequestTimeout" | "SlowDown"))
            // When a store completes an object, it begins its answer before it knows the outcome.
            || self.status == 200 && self.code() == Some("InternalError")
    }

    /// Returns the code of an error.
    pub fn code(&self) -> Option<&str> {
        self.text.contains("<Error>").then(|| self.field("Code"))?
    }

    /// Returns the text in an element of an error.
    pub fn field(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.text.split_once(&format!("<{name}>"))?;
        let (inside, _) = rest.split_once(&format!("</{name}>"))?;
        Some(inside.trim())
    }
}

impl Channel {
    /// Makes a channel that trusts the certificates in the file `roots`, or those of Mozilla's list. Takes over Ctrl-C, SIGTERM and
    /// SIGHUP.
    ///
    /// # Errors
    /// When the file cannot be read, or a system call fails.
    pub fn open(roots: Option<&str>) -> Result<Channel, Error> {
        let roots = match roots {
            Some(file) => certificates(file)?,
            None => RootCerts::WebPki,
        };
        let seconds = |number| Some(Duration::from_secs(number));
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("hindsight/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(seconds(10))
            .timeout_connect(seconds(10))
            .timeout_send_body(seconds(600))
            .timeout_recv_response(seconds(60))
            .timeout_recv_body(seconds(60))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build();
        Ok(Channel {
            agent: config.new_agent(),
            interrupts: Interrupts::catch_ends()?,
        })
    }

    /// Sends a request, if necessary several times; `sign` makes its address each time.
    ///
    /// # Errors
    /// When there is no answer, or a signal comes.
    pub fn send(
        &mut self,
        method: Method,
        body: &Arc<Vec<u8>>,
        sign: impl Fn() -> String,
    ) -> Result<Reply, Failure> {
        self.tried(TRIES, method, body, sign)
    }

    /// Sends a request that cleans up, also after a signal. Only another one stops it, and its success is not reported.
    pub fn clean(&mut self, sign: impl Fn() -> String) {
        self.interrupts.forget();
        let _ = self.tried(2, Method::Delete, &Arc::default(), sign);
    }

    fn tried(
        &mut self,
        tries: u32,
        method: Method,
        body: &Arc<Vec<u8>>,
        sign: impl Fn() -> String,
    ) -> Result<Reply, Failure> {
        let mut wait = FIRST_WAIT;
        for left in (0..tries).rev() {
            let answer = self.once(method, body, sign())?;
            match answer {
                Ok(reply) if left == 0 || !reply.may_pass() => return Ok(reply),
                Err(error) if left == 0 => return Err(Failure::Unreachable(error.to_string())),
                Ok(_) | Err(_) => {}
            }
            // Clients that were refused together should not return together.
            let jitter = wait.mul_f64(f64::from(std::process::id() % 64) / 128.0);
            let pause = async move { tokio::time::sleep(wait + jitter).await };
            let waited = self.interrupts.wait(pause);
            waited.map_err(Failure::Other)?;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        unreachable!("the last try returns")
    }

    fn once(
        &mut self,
        method: Method,
        body: &Arc<Vec<u8>>,
        url: String,
    ) -> Result<Result<Reply, ureq::Error>, Failure> {
        let (done, mut finished) = oneshot::channel();
        let unwanted = Arc::new(AtomicBool::new(false));
        let body = Body {
            bytes: Arc::clone(body),
            at: 0,
            unwanted: Arc::clone(&unwanted),
        };
        let agent = self.agent.clone();
        // A thread, because this one must see Ctrl-C while the request waits.
        let thread = std::thread::Builder::new().name("request".to_owned());
        let spawned = thread.spawn(move || {
            // A signal ends the wait.
            let _ = done.send(perform(&agent, method, &url, body));
        });
        spawned.map_err(|source| Failure::Other(Error::io("start a thread", source)))?;
        match self.interrupts.wait(&mut finished) {
            Ok(answer) => Ok(answer.expect("the thread sends before it ends")),
            Err(ended) => {
                // A partial body makes no object. A complete one may: the clean-up after this must find it.
                unwanted.store(true, Ordering::Relaxed);
                let end = tokio::time::timeout;
                let _ = self
                    .interrupts
                    .wait(async { end(FAREWELL, finished).await });
                Err(Failure::Other(ended))
            }
        }
    }
}

/// A body that ends with an error when it is no longer needed.
struct Body {
    bytes: Arc<Vec<u8>>,
    at: usize,
    unwanted: Arc<AtomicBool>,
}

impl Read for Body {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.unwanted.load(Ordering::Relaxed) {
            return Err(io::Error::other("interrupted"));
        }
        let rest = &self.bytes[self.at..];
        let len = rest.len().min(into.len()).min(PIECE);
        into[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

fn perform(agent: &Agent, method: Method, url: &str, mut body: Body) -> Result<Reply, ureq::Error> {
    let request = HttpRequest::builder().method(method.to_str()).uri(url);
    let mut response = match method {
        Method::Put | Method::Post => {
            let request = request.header("content-length", body.bytes.len());
            agent.run(request.body(SendBody::from_reader(&mut body))?)?
        }
        Method::Get | Method::Head | Method::Delete => agent.run(request.body(())?)?,
    };
    let header = |name: &str| {
        let value = response.headers().get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let mut reply = Reply {
        status: response.status().as_u16(),
        etag: header("etag"),
        region: header("x-amz-bucket-region"),
        text: String::new(),
    };
    let text = response.body_mut().with_config().limit(MOST_TEXT);
    reply.text = text.lossy_utf8(true).read_to_string()?;
    Ok(reply)
}

fn certificates(file: &str) -> Result<RootCerts, Error> {
    let read = |source| Error::io(format!("read the certificates in {file}"), source);
    let text = std::fs::read(file).map_err(read)?;
    let mut found = Vec::new();
    for item in parse_pem(&text) {
        let item = item.map_err(|error| read(error.into_io()))?;
        if let PemItem::Certificate(certificate) = item {
            found.push(certificate);
        }
    }
    match found.is_empty() {
        true => Err(read(io::Error::other("it has none"))),
        false => Ok(RootCerts::new_with_certs(&found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, text: &str) -> Reply {
        Reply {
            status,
            text: text.to_owned(),
            ..Reply::default()
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let error = |code: &str| format!("<Error>\n <Code>{code}</Code></Error>");
        for (status, code) in [
            (500, "InternalError"),
            (503, "SlowDown"),
            (429, ""),
            (400, "RequestTimeout"),
            (200, "InternalError"),
        ] {
            assert!(reply(status, &error(code)).may_pass(), "{status} {code}");
        }
        for (status, code) in [(403, "AccessDenied"), (404, "NoSuchBucket"), (307, "x")] {
            assert!(!reply(status, &error(code)).may_pass(), "{status} {code}");
        }
        assert!(!reply(200, "<Code>InternalError</Code>").may_pass());
    }

    #[test]
    fn a_body_that_nobody_wants_ends_early() {
        let unwanted = Arc::new(AtomicBool::new(false));
        let mut body = Body {
            bytes: Arc::new(vec![7; PIECE + 1]),
            at: 0,
            unwanted: Arc::clone(&unwanted),
        };
        let mut into = vec![0; 2 * PIECE];
        assert_eq!(body.read(&mut into).unwrap(), PIECE);
        unwanted.store(true, Ordering::Relaxed);
        assert!(body.read(&mut into).is_err());
        unwanted.store(false, Ordering::Relaxed);
        assert_eq!(body.read(&mut into).unwrap(), 1);
        assert_eq!(body.read(&mut into).unwrap(), 0);
    }

    #[test]
    fn certificates_are_read_from_a_file_that_has_some() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let none = certificates(path).unwrap_err().to_string();
        assert!(none.ends_with(&format!("{path}: it has none")), "{none}");
        assert!(certificates("/no/such/file").is_err());
    }
}
