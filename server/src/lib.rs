//! Live control as requests and responses. Every verb exists once, as a typed request with a typed reply. The daemon
//! holds live sessions across invocations of the command line.
//!
//! Layers: `protocol` defines the messages on the wire; `verbs` has one file per verb; `session` is one program under
//! control; `inspect` answers about a stopped moment and knows no process; `daemon` listens; `client` sends requests.
//! The crate prints nothing.
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
pub(crate) mod progress;
mod project;
pub mod protocol;
pub mod push;
pub mod session;
pub mod state;
pub mod transport;
pub mod verbs;

pub use error::{Error, Result};
pub use project::{CompareRules, PROJECT_FILE, compare_rules};
pub use values::quantity;
