//! The protocol over HTTP, for clients on this machine that hold the token.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{self, Body};
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::context::Gateway;
use crate::interrupted;
use crate::lines::LONGEST;
use crate::server::McpServer;

/// Serves until the process gets SIGINT or SIGTERM.
///
/// # Errors
/// The address is not of the loopback interface, or not free.
pub async fn serve(
    gateway: Arc<Gateway>,
    address: SocketAddr,
    token: String,
    ready: impl FnOnce(SocketAddr) + Send,
) -> io::Result<()> {
    if !address.ip().is_loopback() {
        let message = format!("{address} can be reached from other machines");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let listener = TcpListener::bind(address).await?;
    let ending = CancellationToken::new();
    let mut config = StreamableHttpServerConfig::default();
    config.cancellation_token = ending.child_token();
    let service = StreamableHttpService::new(
        move || Ok(McpServer::new(Arc::clone(&gateway))),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let router = Router::new()
        .nest_service("/mcp", service)
        .layer(middleware::from_fn(closed))
        .layer(middleware::from_fn(bounded))
        .layer(middleware::from_fn_with_state(
            Arc::<str>::from(token),
            authorized,
        ));
    ready(listener.local_addr()?);
    axum::serve(listener, router)
        .with_graceful_shutdown(async move {
            interrupted().await;
            ending.cancel();
        })
        .await
}

/// Refuses requests without the token.
async fn authorized(State(token): State<Arc<str>>, request: Request, next: Next) -> Response {
    let given = request.headers().get(AUTHORIZATION);
    let given = given.and_then(|value| value.to_str().ok());
    let given = given.and_then(bearer);
    match given.is_some_and(|given| is_same(given.as_bytes(), token.as_bytes())) {
        true => next.run(request).await,
        false => {
            let message =
                "send the token that `hindsight mcp` printed: Authorization: Bearer TOKEN\n";
            (StatusCode::UNAUTHORIZED, message).into_response()
        }
    }
}

/// Returns the token of an authorization. The name of the scheme is spelt as one likes (RFC 9110, 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then(|| token.trim_start())
}

/// Answers the end of a session, which has happened, by 204: a client of the protocol takes 202 for a failure.
async fn closed(request: Request, next: Next) -> Response {
    let is_end = request.method() == Method::DELETE;
    let mut response = next.run(request).await;
    if is_end && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

/// Refuses requests that are longer than a message may be.
async fn bounded(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    match body::to_bytes(body, LONGEST).await {
        Ok(body) => next.run(Request::from_parts(head, Body::from(body))).await,
        Err(_) => {
            let message =
                format!("a message has at most {LONGEST} bytes; a file may hold what is longer\n");
            (StatusCode::PAYLOAD_TOO_LARGE, message).into_response()
        }
    }
}

/// Compares two secrets in a time that does not depend on where they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differing = a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_of_a_token_is_spelt_as_one_likes() {
        for value in ["Bearer abc", "bearer abc", "BEARER  abc"] {
            assert_eq!(bearer(value), Some("abc"), "{value}");
        }
        for value in ["Basic abc", "Bearerabc", "abc", ""] {
            assert_eq!(bearer(value), None, "{value}");
        }
    }
}
