//! Searches through a recording end when somebody wants them to, and leave what is looked at as it is.

use std::sync::atomic::Ordering;

use serde_json::json;
use server::past::Past;
use server::protocol::Code;
use store::seal::{Ending, SealOptions, Sealer};
use store::synth::debugged;

#[test]
fn an_interrupted_search_says_so_and_moves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let recording = debugged().record(&folder.path().join("debugged")).unwrap();
    let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
    sealer.finish(Ending::Close, |_| {}).unwrap();
    let past = Past::open(recording.dir(), folder.path()).unwrap();
    past.serve("goto", json!({"to": "9"})).unwrap();
    let here = past.position();
    past.serve("watch", json!({"expression": "$rbx"})).unwrap();
    past.interrupt().store(true, Ordering::Relaxed);
    for (verb, args) in [
        ("history", json!({"expression": "$rbx"})),
        ("last_write", json!({"expression": "$rbx"})),
        ("continue", json!({})),
        ("reverse_continue", json!({})),
    ] {
        let failure = past.serve(verb, args).unwrap_err();
        assert_eq!(failure.code, Code::Failed, "{verb}");
        assert_eq!(failure.message, "interrupted", "{verb}");
        assert_eq!(failure.hint.as_deref(), Some("nothing has moved"), "{verb}");
        assert_eq!(past.position(), here, "{verb}");
    }
    past.interrupt().store(false, Ordering::Relaxed);
    let changes = past.serve("history", json!({"expression": "$rbx"}));
    assert_eq!(changes.unwrap()["changes"][0]["seq"], 6);
}
