//! `info_proc`: the process: its id, command line, working directory and executable.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Needs, Nothing, Text, Verb};
use crate::past::Past;
use crate::protocol::Failure;
use crate::session::{LiveSession, Session};

/// The `info_proc` verb.
pub struct InfoProc;

/// The reply of `info_proc`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoProcReply {
    /// Its id; absent if the recording does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Its command line, with a space between arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cmdline: Option<String>,
    /// Its working directory; in a recording, that at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Its executable file; absent in a recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exe: Option<String>,
}

impl Verb for InfoProc {
    const NAME: &'static str = "info_proc";
    const DOC: &'static str = "Show the process: its id, command line, working directory and executable\n\nOf a recording, its id, its command line and the directory in which it was started.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = Nothing;
    type Reply = InfoProcReply;

    fn run(call: &Call<'_>, _: Nothing) -> Result<InfoProcReply, Failure> {
        match call.target()? {
            Session::Live(session) => live(&session),
            Session::Recorded(past) => Ok(recorded(&past)),
        }
    }
}

impl Command for InfoProc {
    fn text(reply: &InfoProcReply, _: &Nothing) -> Text {
        let process = match reply.pid {
            Some(pid) => format!("process {pid}"),
            None => "a process whose id is not recorded".to_owned(),
        };
        let facts = [
            ("cmdline", &reply.cmdline),
            ("cwd", &reply.cwd),
            ("exe", &reply.exe),
        ];
        let facts = facts.into_iter().filter_map(|(name, fact)| {
            let fact = fact.as_ref()?;
            Some(format!("{name} = '{fact}'"))
        });
        Text::lines([process].into_iter().chain(facts))
    }
}

/// What the kernel says.
fn live(session: &LiveSession) -> Result<InfoProcReply, Failure> {
    session.must_run()?;
    let pid = session.live.pid();
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let link = |name: &str| {
        let target = std::fs::read_link(folder.join(name)).ok()?;
        Some(target.to_string_lossy().into_owned())
    };
    let words = std::fs::read(folder.join("cmdline")).ok();
    Ok(InfoProcReply {
        pid: Some(pid),
        cmdline: words.map(|words| {
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            words.trim_end().to_owned()
        }),
        cwd: link("cwd"),
        exe: link("exe"),
    })
}

/// What the recording says.
fn recorded(past: &Past) -> InfoProcReply {
    let manifest = past.timeline().recording().manifest();
    let is_known = |text: &String| !text.is_empty();
    InfoProcReply {
        pid: manifest.lineage.as_ref().map(|lineage| lineage.pid),
        cmdline: Some(manifest.argv.join(" ")).filter(is_known),
        cwd: Some(manifest.cwd.clone()).filter(is_known),
        exe: None,
    }
}
