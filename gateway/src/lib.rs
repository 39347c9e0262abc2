//! The Model Context Protocol: language models use the same verbs and the same SQL as people.
//!
//! This crate is an adapter and computes nothing. `tools/` has one file per tool: it reads parameters, calls a verb of the
//! daemon or queries `query`, and returns the answer. `budget` makes every answer fit a window. `server` speaks the protocol,
//! over standard input and output or over HTTP.
#![forbid(unsafe_code)]

mod answer;
mod budget;
mod context;
mod current;
mod full;
mod group;
mod http;
mod lines;
mod names;
mod page;
mod parts;
mod prompts;
mod recorded;
mod recordings;
mod resources;
mod server;
mod shape;
mod text;
mod tool;
mod tools;
mod words;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;

pub use context::Gateway;
pub use page::page;

use crate::lines::Lines;
use crate::server::McpServer;

/// How long calls may go on when the client has closed its end.
const LAST_CALLS: Duration = Duration::from_secs(1);
/// How long the last answers may take to be written.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Serves one client over standard input and output, until the client closes them or the process gets SIGINT or SIGTERM.
///
/// `executable` is started with the argument `daemon` when no daemon runs.
///
/// # Errors
/// The client does not speak the protocol, or threads cannot be made.
pub fn serve_stdio(executable: PathBuf) -> io::Result<()> {
    let gateway = Arc::new(Gateway::new(executable));
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        tokio::select! {
            served = stdio(McpServer::new(Arc::clone(&gateway))) => served,
            // Clients end servers by a signal, too.
            () = interrupted() => Ok(()),
        }
    });
    gateway.leave();
    // A thread that still waits for the daemon has lost its conversation; a read of standard input cannot be ended.
    runtime.shutdown_background();
    served
}

async fn stdio(server: McpServer) -> io::Result<()> {
    let Lines {
        requests,
        answers,
        written,
        ended,
    } = lines::checked();
    let gateway = server.gateway();
    tokio::spawn(async move {
        // It is dropped, never sent.
        _ = ended.await;
        gateway.end_waits();
        tokio::time::sleep(LAST_CALLS).await;
        gateway.end_calls();
    });
    let service = match server.serve((requests, answers)).await {
        Ok(service) => service,
        // A client that closes standard input before its first message wants nothing.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(io::Error::other(error)),
    };
    let ended = service.waiting().await;
    // A client that reads nothing more is not waited for.
    _ = tokio::time::timeout(LAST_ANSWERS, written).await;
    ended.map(drop).map_err(io::Error::other)
}

/// Serves clients over HTTP at `address`, which must be one of the loopback interface, until the process is interrupted.
/// Calls `ready` with the address when clients can connect. Requests must carry `token` as a bearer token.
///
/// # Errors
/// The address is not local or not free.
pub fn serve_http(
    executable: PathBuf,
    address: SocketAddr,
    token: String,
    ready: impl FnOnce(SocketAddr) + Send,
) -> io::Result<()> {
    let gateway = Arc::new(Gateway::new(executable));
    let runtime = runtime()?;
    let served = runtime.block_on(http::serve(Arc::clone(&gateway), address, token, ready));
    gateway.leave();
    runtime.shutdown_background();
    served
}

/// Returns when the process gets SIGINT or SIGTERM.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let (interrupt, terminate) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    );
    match (interrupt, terminate) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        // Without handlers the signals would end the process directly.
        _ => std::future::pending().await,
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
}
