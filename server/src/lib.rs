//! Live control as requests and responses: every verb once, as a typed request and its typed answer, and the daemon that
//! holds live sessions while the command line comes and goes.
//!
//! Layers: `protocol` are the words on the wire; `verbs` has one file per verb; `session` is one program under control;
//! `inspect` answers about a stopped moment and knows no process; `daemon` listens, `client` asks. The crate prints nothing.
#![deny(unsafe_code)]

pub mod client;
pub mod config;
pub mod daemon;
mod error;
pub mod gone;
pub mod inspect;
pub mod location;
pub mod os_text;
pub mod output;
pub mod past;
pub mod paths;
pub mod protocol;
pub mod push;
pub mod quantity;
pub mod session;
pub mod state;
pub mod transport;
pub mod verbs;

pub use error::{Error, Result};
