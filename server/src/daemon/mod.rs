//! The daemon: one process per user that holds live sessions and serves any number of clients.
//!
//! `serve` starts and ends it, `presence` decides when it may end, `connection` talks to one client, `peer` identifies
//! the client's user. Only clients and sessions counted by `presence` keep the daemon alive.

pub(crate) mod connection;
mod peer;
mod presence;
mod serve;

pub use presence::Presence;
pub use serve::serve;
