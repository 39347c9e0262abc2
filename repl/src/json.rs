//! The one form of all JSON answers (docs/json.md): what a command found is the `result` of a response, as with verbs.

use std::path::Path;

use serde_json::Value;
use server::os_text::OsText;
use server::protocol::Response;

/// Returns a path as answers have it: a text, or a list of bytes if it is not UTF-8.
pub fn path(path: &Path) -> OsText {
    path.as_os_str().into()
}

/// Returns the response that has `facts` as its result.
pub fn answer(facts: Value) -> Value {
    serde_json::to_value(Response::of(1, Ok(facts))).expect("responses are JSON")
}
