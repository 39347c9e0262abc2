//! The daemon: one process per user that holds live sessions and serves any number of clients.
//!
//! `serve` begins and ends it, `presence` knows when it may end, `connection` speaks with one client, `peer` says who that
//! is. Only what `presence` counts keeps it alive.

pub(crate) mod connection;
mod peer;
mod presence;
mod serve;

pub use presence::Presence;
pub use serve::serve;
