//! The one form of all JSON answers (docs/json.md): what a command found is the `result` of a response, as with verbs.

use serde_json::Value;
use server::protocol::Response;

/// Returns the response that has `facts` as its result.
pub fn answer(facts: Value) -> Value {
    serde_json::to_value(Response::of(1, Ok(facts))).expect("responses are JSON")
}
