//! Goal: a stop is named alike where the program stops, in `pauses` and in the recording's past, also where inlined calls begin, and
//! each step ends at a line. Method: optimised programs are stepped through; what was told at each stop is compared with what
//! the recording says of it.

use e2e::{Live, fixture_artifact};
use serde_json::Value;

/// Function and line of a stop.
type Named = (String, u64);

fn named(of: &Value) -> Named {
    let function = of["function"].as_str().unwrap_or("nowhere").to_owned();
    (function, of["line"].as_u64().unwrap_or(0))
}

const STEPS: usize = 30;

#[test]
fn a_stop_is_named_alike_live_in_pauses_and_in_the_past() {
    let mut inlined = 0;
    for (artifact, begin) in [
        ("control_O2", "main"),
        ("control_cxx_O2", "main"),
        ("control_rust_O2", "control::main"),
        ("panics_O2", "panics::main"),
    ] {
        let program = fixture_artifact("control", artifact);
        let name = format!("named-{artifact}");
        let live = Live::started(&name, &["--break", begin], &program, &[]);
        let mut told = vec![named(&live.session()["stop"])];
        for _ in 0..STEPS {
            let reply = live.ask(&["step"]);
            if reply["status"] != "stopped" {
                break;
            }
            let stop = &reply["stop"];
            assert!(stop["line"].as_u64() > Some(0), "{artifact}: {stop:#}");
            let frames = live.ask(&["backtrace"]);
            inlined += usize::from(frames["threads"][0]["frames"][0]["inlined"] == true);
            told.push(named(stop));
        }
        let recording = live.recording();
        live.ask(&["stop"]);
        let sql = "SELECT seq, function, line FROM pauses WHERE reason <> 'entry' ORDER BY seq";
        let pauses: Vec<Value> = recording.rows(sql).into_iter().map(Value::Object).collect();
        let kept: Vec<Named> = pauses.iter().map(named).collect();
        assert_eq!(kept, told, "{artifact}");
        let past = pauses.iter().map(|pause| {
            let sql = format!(
                "SELECT function, line FROM backtrace({}) WHERE frame = 0",
                pause["seq"]
            );
            named(&Value::Object(recording.row(&sql)))
        });
        let past: Vec<Named> = past.collect();
        assert_eq!(past, told, "{artifact}");
    }
    assert!(inlined > 5, "{inlined} stops in inlined calls");
}
