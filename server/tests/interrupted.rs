//! Interrupted searches through a recording end, and leave the current position unchanged.

use std::sync::Arc;

use serde_json::{Value, json};
use server::config::Config;
use server::gone::Gone;
use server::past::Past;
use server::protocol::{Code, Failure};
use server::session::Sessions;
use server::verbs::{Asked, Call, serve};
use store::seal::{Ending, SealOptions, Sealer};
use store::synth::debugged;

#[test]
fn an_interrupted_search_says_so_and_moves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let recording = debugged().record(&folder.path().join("debugged")).unwrap();
    let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
    sealer.finish(Ending::Close, |_| {}).unwrap();
    let sessions = Sessions::of_recording(Past::open(recording.dir(), folder.path()).unwrap());
    let past = sessions.alone().unwrap();
    let interrupt = Arc::new(Gone::default());
    let ask = |verb: &str, args: Value| -> Result<Value, Failure> {
        let config = Config::default();
        let asked = Asked::default();
        let notify = Arc::new(|_| {});
        let call = Call::new(&sessions, &config, asked, notify, Arc::clone(&interrupt));
        serve(&call, verb, args)
    };
    ask("goto", json!({"to": "9"})).unwrap();
    let here = past.position();
    let watch = json!({"action": "add", "expression": "$rbx"});
    ask("watch", watch).unwrap();
    interrupt.set();
    for (verb, args) in [
        ("history", json!({"expression": "$rbx"})),
        ("last_write", json!({"expression": "$rbx"})),
        ("continue", json!({})),
        ("reverse_continue", json!({})),
    ] {
        let failure = ask(verb, args).unwrap_err();
        assert_eq!(failure.code, Code::Failed, "{verb}");
        assert_eq!(failure.message, "interrupted", "{verb}");
        assert_eq!(failure.hint.as_deref(), Some("nothing has moved"), "{verb}");
        assert_eq!(past.position(), here, "{verb}");
    }
    interrupt.clear();
    let changes = ask("history", json!({"expression": "$rbx"}));
    assert_eq!(changes.unwrap()["changes"][0]["seq"], 6);
}
