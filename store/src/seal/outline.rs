//! Keeps what a list of recordings shows of one: how the program ended, and which builds it consisted of.
//!
//! It is a part of `seal.state`, so that a list needs no columns or definitions.

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::control::Control;
use crate::signals::signal_name;

/// Most builds that are kept: a list of recordings shows the program and its libraries, not thousands of plugins.
const MOST_BUILDS: usize = 256;

/// How the program ended, and its builds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outline {
    /// When the program was started or attached to, in ns since the recording began; 0 in files of older releases.
    #[serde(default)]
    pub began_ns: i64,
    /// The end; `None` while it is not seen.
    pub end: Option<End>,
    /// The first 256 files with a build id, in the order in which they were mapped.
    pub builds: Vec<BuildId>,
}

/// How the program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// It exited with this code.
    Code(i32),
    /// A signal of this name ended it.
    Signal(String),
    /// It ended; how is unknown.
    Unseen,
    /// It continued when the recorder detached.
    Detached,
}

/// A mapped file and its build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildId {
    /// Path of the file.
    pub path: String,
    /// GNU build id in hex.
    pub build_id: String,
}

impl Outline {
    /// Takes the facts of a control event.
    pub(super) fn add(&mut self, control: &Control, clock: Clock) {
        match control {
            Control::ProcessStart { ticks, .. } => self.began_ns = clock.ns_from_ticks(*ticks),
            Control::ProcessExit {
                code: Some(code), ..
            } => self.end = Some(End::Code(*code)),
            Control::ProcessExit {
                signal: Some(signal),
                ..
            } => self.end = Some(End::Signal(signal_name(*signal))),
            Control::ProcessExit { .. } => self.end = Some(End::Unseen),
            Control::Detached { .. } => self.end = Some(End::Detached),
            Control::ModuleLoad {
                path,
                build_id: Some(build_id),
                ..
            } => {
                let build = BuildId {
                    path: path.clone(),
                    build_id: build_id.clone(),
                };
                if self.builds.len() < MOST_BUILDS && !self.builds.contains(&build) {
                    self.builds.push(build);
                }
            }
            _ => {}
        }
    }
}
