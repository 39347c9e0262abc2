//! Gets debug information from debuginfod servers into the cache that elfutils' clients use.
//!
//! A file appears in the cache whole or not at all: it is written in the same folder under a temporary name, its build
//! id is compared, and then it is renamed. Nothing is retried.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use ureq::Agent;

use crate::error::Error;
use crate::json::path as as_text;
use crate::progress::Progress;
use crate::render::bytes;

const URLS: &str = "DEBUGINFOD_URLS";
const TIMEOUT: &str = "DEBUGINFOD_TIMEOUT";
/// How long a server may keep silent, unless `DEBUGINFOD_TIMEOUT` says otherwise: elfutils' own default.
const USUAL_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const NOT_FOUND: u16 = 404;
const OK: u16 = 200;

/// The servers, and where files are kept.
pub struct Server {
    urls: Vec<String>,
    cache: PathBuf,
    agent: Agent,
}

/// The outcome of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The file is in the cache: its path and size.
    Stored(PathBuf, u64),
    /// No server has it.
    NotThere(String),
    /// It could not be fetched; the text says why.
    Failed(String),
}

impl Server {
    /// Reads the environment.
    ///
    /// # Errors
    /// When no server is named, or there is no place for a cache.
    pub fn of_environment() -> Result<Server, Error> {
        let urls = std::env::var(URLS).unwrap_or_default();
        let urls: Vec<String> = urls.split_whitespace().map(str::to_owned).collect();
        if urls.is_empty() {
            let help = "name one: export DEBUGINFOD_URLS=https://debuginfod.debian.net (your distribution's; several with spaces)";
            return Err(Error::usage(
                format!("{URLS} is not set: there is no server to ask"),
                Some(help.to_owned()),
            ));
        }
        let cache = debuginfo::debuginfod_cache().ok_or_else(|| {
            let help = "set DEBUGINFOD_CACHE_PATH to a folder";
            Error::usage(
                "there is no place for debug information",
                Some(help.to_owned()),
            )
        })?;
        let seconds = std::env::var(TIMEOUT)
            .ok()
            .and_then(|text| text.parse().ok());
        let silence = seconds
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs);
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .user_agent(concat!("hindsight/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(silence.unwrap_or(USUAL_TIMEOUT)))
            .build();
        Ok(Server {
            urls,
            cache,
            agent: config.new_agent(),
        })
    }

    /// Gets the debug information of a build id from the first server that has it.
    pub fn fetch(&self, build_id: &str, progress: &Progress) -> Fetched {
        let mut failed = None;
        for url in &self.urls {
            match self.fetch_from(url, build_id, progress) {
                Ok(Some((path, len))) => return Fetched::Stored(path, len),
                Ok(None) => {}
                Err(why) => failed = failed.or(Some(format!("{url}: {why}"))),
            }
        }
        match failed {
            Some(why) => Fetched::Failed(why),
            None => Fetched::NotThere(build_id.to_owned()),
        }
    }

    /// Gets it from one server; `None` if the server does not have it.
    fn fetch_from(
        &self,
        url: &str,
        build_id: &str,
        progress: &Progress,
    ) -> Result<Option<(PathBuf, u64)>, String> {
        let address = format!("{}/buildid/{build_id}/debuginfo", url.trim_end_matches('/'));
        let answer = self.agent.get(&address).call();
        let mut answer = answer.map_err(|error| error.to_string())?;
        match answer.status().as_u16() {
            OK => {}
            NOT_FOUND => return Ok(None),
            status => return Err(format!("it answers with status {status}")),
        }
        let length = answer.headers().get("content-length");
        let total = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let folder = self.cache.join(build_id);
        let failed = |error: io::Error| error.to_string();
        fs::create_dir_all(&folder).map_err(failed)?;
        let part = folder.join(format!("debuginfo.{}", std::process::id()));
        let body = answer.body_mut().as_reader();
        let stored = store_in(&part, body, total, progress)
            .map_err(failed)
            .and_then(|len| {
                is_of(&part, build_id)?;
                let path = folder.join("debuginfo");
                fs::rename(&part, &path).map_err(failed)?;
                Ok((path, len))
            });
        if stored.is_err() {
            // Nothing that is not whole stays.
            let _ = fs::remove_file(&part);
            let _ = fs::remove_dir(&folder);
        }
        stored.map(Some)
    }
}

/// Writes what a server sends. A body that ends early is an error.
fn store_in(
    path: &Path,
    mut body: impl Read,
    total: Option<u64>,
    progress: &Progress,
) -> io::Result<u64> {
    let mut file = File::create(path)?;
    let mut buffer = vec![0; 1 << 16];
    let mut done = 0;
    loop {
        let read = body.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        file.write_all(&buffer[..read])?;
        done += read as u64;
        progress.fetching(done, total.unwrap_or(0));
    }
    match total {
        Some(total) if total != done => Err(io::Error::other(format!(
            "{} of {} arrived",
            bytes(done),
            bytes(total)
        ))),
        _ => Ok(done),
    }
}

/// Checks that a file has the requested build id.
fn is_of(path: &Path, build_id: &str) -> Result<(), String> {
    match debuginfo::build_id_of(path) {
        Some(found) if found == build_id => Ok(()),
        Some(found) => Err(format!(
            "what it sent has the build id {found}, not {build_id}"
        )),
        None => Err("what it sent is no debug information".to_owned()),
    }
}

impl Fetched {
    /// Describes the outcome.
    pub fn words(&self) -> String {
        match self {
            Fetched::Stored(path, len) => format!("fetched, {}: {}", bytes(*len), path.display()),
            Fetched::NotThere(id) => format!("no server has it (build id {id})"),
            Fetched::Failed(why) => why.clone(),
        }
    }

    /// Returns the outcome for a module.
    pub fn as_json(&self, module: &Path) -> Value {
        match self {
            Fetched::Stored(path, len) => {
                json!({"module": as_text(module), "status": "fetched", "file": as_text(path), "len_bytes": len})
            }
            Fetched::NotThere(id) => {
                json!({"module": as_text(module), "status": "not_there", "build_id": id})
            }
            Fetched::Failed(why) => {
                json!({"module": as_text(module), "status": "failed", "message": why})
            }
        }
    }
}
