//! The tools: one file each. A new tool is a file, and a line here.

mod attach;
mod breakpoint;
mod compare;
mod r#continue;
mod full;
mod goto;
mod history;
mod launch;
mod logpoint;
mod note;
mod object;
mod overview;
mod query;
mod read;
mod session;
mod source;
mod sql;
mod state;
mod target;
mod trace;
mod wait;
mod why;
mod write;

pub use history::Page;

use crate::tool::Described;

/// All tools.
pub const ALL: &[Described] = &[
    Described::of::<launch::Launch>(),
    Described::of::<attach::Attach>(),
    Described::of::<session::Session>(),
    Described::of::<overview::Overview>(),
    Described::of::<state::State>(),
    Described::of::<query::Query>(),
    Described::of::<sql::Sql>(),
    Described::of::<history::History>(),
    Described::of::<why::Why>(),
    Described::of::<object::Object>(),
    Described::of::<compare::Compare>(),
    Described::of::<goto::Goto>(),
    Described::of::<source::Source>(),
    Described::of::<read::Read>(),
    Described::of::<write::Write>(),
    Described::of::<breakpoint::Breakpoint>(),
    Described::of::<logpoint::Logpoint>(),
    Described::of::<r#continue::Continue>(),
    Described::of::<wait::Wait>(),
    Described::of::<full::Full>(),
    Described::of::<trace::Trace>(),
    Described::of::<note::Note>(),
];

/// Finds a tool by its name.
pub fn find(name: &str) -> Option<Described> {
    ALL.iter().find(|tool| tool.name == name).copied()
}
