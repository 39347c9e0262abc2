//! Two prompts: how to investigate a crash, and a wrong value.

use rmcp::model::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

const RULES: &str = "\
Rules: state nothing about what the program did without the seq of the event that shows it. \
`stale` means that a value was seen at an earlier event and may have changed since; `unknown` means that nothing shows it. \
Do not guess either. When the recording does not reach far enough, record again with the option that the answer names.";

const CRASH: &str = "\
Investigate why {what} crashed.
1. debug_overview: how it ended, the thread's last calls, what it printed.
2. debug_goto {\"to\": \"crash\"}, then debug_state: the faulting line, its variables, the backtrace.
3. Name the value that made the instruction fail. debug_why and debug_history with that expression: when did it become wrong? \
Read the code around that place with debug_source.
4. Follow the value back: who wrote it, from which value. If the answer is between two events, debug_launch again with logWrites, \
or with full: then debug_history with lastWrite names the instruction that wrote.
5. Report: the faulty line, the chain of events from it to the crash (each with its seq), and how you would check the fix.";

const VALUE: &str = "\
Investigate why {what} is wrong.
1. debug_overview, then debug_query with the function or the output that shows the wrong value: note its seq.
2. debug_goto to that seq, debug_state: confirm the wrong value there.
3. debug_why with the expression or the seq of the call: what led to it. debug_history with the expression: the first event at which it is wrong, and the last at which it was right.
4. Read the code between these two events with debug_source. If both lie in one call, debug_launch again with \
logWrites or full: each write then has its line.
5. Check by a second look that the cause explains the value: recompute it from the values at that seq.
6. Report: the faulty line, the chain of events (each with its seq), and how you would check the fix.";

/// Lists them.
pub fn list() -> Vec<Prompt> {
    let argument = |name, doc| {
        PromptArgument::new(name)
            .with_description(doc)
            .with_required(true)
    };
    vec![
        Prompt::new(
            "investigate_crash",
            Some("Find out why a program crashed"),
            Some(vec![argument(
                "recording",
                "The recording, or the program and its arguments",
            )]),
        ),
        Prompt::new(
            "investigate_wrong_value",
            Some("Find out where a wrong value comes from"),
            Some(vec![
                argument(
                    "recording",
                    "The recording, or the program and its arguments",
                ),
                argument("symptom", "What is wrong, as the user sees it"),
            ]),
        ),
    ]
}

/// Returns one, filled in.
///
/// # Errors
/// There is none of that name, or an argument is missing.
pub fn get(name: &str, args: &Map<String, Value>) -> Result<GetPromptResult, String> {
    let argument = |name: &str| {
        let value = args.get(name).and_then(Value::as_str);
        value.ok_or_else(|| format!("the prompt needs \"{name}\""))
    };
    let text = match name {
        "investigate_crash" => CRASH.replace("{what}", argument("recording")?),
        "investigate_wrong_value" => {
            let what = format!(
                "this in {}: {}",
                argument("recording")?,
                argument("symptom")?
            );
            VALUE.replace("why {what} is wrong", &what)
        }
        _ => return Err(format!("there is no prompt \"{name}\"")),
    };
    let message = PromptMessage::new_text(Role::User, format!("{text}\n\n{RULES}"));
    Ok(GetPromptResult::new(vec![message]))
}
