//! Understands questions before they are planned, and explains what is wrong with them.

mod diagnose;
mod place;
mod read_only;
mod suggest;

pub use diagnose::{Names, diagnose, message_of, second_question};
pub use read_only::check;
