//! A frame is described as in gdb. Addresses of the stack are compared by their distances from the frame.

use e2e::{Hindsight, Live, Program, Scratch, compiled};

use super::{gdb, program, prompt};

/// The words that describe a frame, without what gdb derives from the first instructions of the function.
fn described(text: &str) -> Vec<String> {
    let (_, at) = text
        .split_once("frame at ")
        .unwrap_or_else(|| panic!("{text}"));
    let base = address(at.split_whitespace().next().expect("an address")).expect("an address");
    let mut words = text.split_whitespace();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "Arglist" | "Locals" => _ = words.nth(1),
            word => kept.push(relative(word, base)),
        }
    }
    kept
}

fn address(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches([',', ':', ';']).strip_prefix("0x")?;
    u64::from_str_radix(digits, 16).ok()
}

/// An address of the stack as a distance, and a file without its folders.
fn relative(word: &str, base: u64) -> String {
    match (address(word), word.rsplit_once('/')) {
        (Some(address), _) if address >> 40 != 0 => {
            let digits = word.trim_end_matches([',', ':', ';']).len();
            format!("{:+}{}", address.wrapping_sub(base) as i64, &word[digits..])
        }
        (None, Some((_, name))) if word.starts_with('(') => format!("({name}"),
        _ => word.to_owned(),
    }
}

/// What gdb says about a frame that `select` selects, where the commands `there` lead.
fn of_gdb(live: &Live, there: &[&str], select: &str) -> Vec<String> {
    let asks = [select, "echo ~~~\\n", "info frame"];
    let said = gdb(live, &[there, &asks].concat());
    let (_, said) = said.split_once("~~~\n").unwrap_or_else(|| panic!("{said}"));
    described(said)
}

#[test]
fn a_frame_is_described_as_in_gdb() {
    let live = Live::started("gdb-frame", &["--break", "middle"], &program(), &[]);
    live.ask(&["break", "leaf"]);
    live.moved(&["continue"]);
    let there = ["break middle", "run > /dev/null", "break leaf", "continue"];
    for (command, select) in [
        ("info frame", "frame 0"),
        ("info frame level 1", "frame 1"),
        ("info frame function middle", "frame 1"),
        ("i f 1", "frame 1"),
    ] {
        let ours = prompt(&live, &[command]);
        assert_eq!(
            described(&ours),
            of_gdb(&live, &there, select),
            "{command}: {ours}"
        );
    }
    // It selects nothing.
    assert_eq!(live.ask(&["frame"])["frame"]["index"], 0);
    let said = prompt(&live, &["up", "info frame"]);
    assert!(said.contains("Stack level 1, frame at 0x"), "{said}");
    prompt(&live, &["frame 0"]);
    // What it says about memory is there.
    let told = live.ask(&["info", "frame"]);
    let mut saved = told["saved"].as_array().expect("a list").iter();
    let rip = saved.find(|register| register["name"] == "rip");
    let at = rip.expect("the return address")["address"].as_str();
    let line = format!("p/x *(unsigned long *){}", at.expect("text"));
    let value = prompt(&live, &[&line]);
    let saved_rip = told["saved_rip"].as_str().expect("text");
    assert!(value.ends_with(&format!(" = {saved_rip}\n")), "{value}");
    let said = prompt(&live, &["info frame 1000", "info frame function nobody"]);
    assert!(said.contains("there is no frame 1000"), "{said}");
    assert!(
        said.contains("no frame of this thread is one of nobody"),
        "{said}"
    );
}

#[test]
fn an_inlined_call_names_the_frame_that_it_is_part_of() {
    let source = "int kept = 3;\n\
        __attribute__((noinline)) static int leaf(int x) { kept += x; return kept; }\n\
        static inline __attribute__((always_inline)) int inner(int q) { return leaf(q + 1) + q; }\n\
        __attribute__((noinline)) static int outer(int n) { return inner(n) * n; }\n\
        int main(void) { return outer(2) - 12; }\n";
    let live = Live::new("gdb-frame-inlined");
    let program = compiled(&live.scratch, "inlined.c", source, &["-g", "-O0"]);
    live.start(&["--break", "leaf"], &program, &[]);
    let [inner, outer] = ["1", "2"].map(|frame| live.ask(&["info", "frame", frame]));
    assert_eq!(inner["inlined_into"], 2, "{inner:#}");
    assert_eq!(inner["caller_of"]["index"], 0, "{inner:#}");
    assert_eq!(inner["called_by"], serde_json::Value::Null, "{inner:#}");
    assert_eq!(outer["called_by"]["index"], 3, "{outer:#}");
    for field in ["at", "saved_rip", "saved", "language"] {
        assert_eq!(inner[field], outer[field], "{field}");
    }
    assert_eq!(inner["language"], "c");
    let said = prompt(&live, &["info frame 1"]);
    let line = " inlined into frame 2, caller of frame at 0x";
    assert!(said.contains(line), "{said}");
}

#[test]
fn a_frame_of_the_past_is_described_as_far_as_it_is_known() {
    let scratch = Scratch::new("gdb-frame-past");
    let run = Program::new(program(), scratch.path());
    let (_, exact) = Hindsight::record(&scratch, &["--full"], &run);
    let live = Live::new("gdb-frame-past-gdb");
    let lines = ["break leaf", "continue", "info frame"];
    let said = exact.prompt(&lines).text();
    let (_, ours) = said
        .split_once("Stack ")
        .unwrap_or_else(|| panic!("{said}"));
    let ours = described(&format!("Stack {ours}"));
    let there = ["break leaf", "run > /dev/null"];
    assert_eq!(ours, of_gdb(&live, &there, "frame 0"), "{said}");

    let other = Scratch::new("gdb-frame-calls");
    let run = Program::new(program(), other.path());
    let (_, calls) = Hindsight::record(&other, &[], &run);
    let said = calls.prompt(&["break leaf", "continue", "bt"]).text();
    let frames = said.lines().filter(|line| line.starts_with([' ', '*']));
    let frames = frames.filter(|line| line[1..].starts_with('#')).count();
    let (_, why) = said
        .split_once("(the rest is not known: ")
        .unwrap_or_else(|| panic!("{said}"));
    let (why, _) = why.split_once(")\n").expect("a reason");
    let last = format!("info frame {}", frames - 1);
    let told = calls.prompt(&["break leaf", "continue", "info frame", &last]);
    let told = told.text();
    assert!(told.contains("; saved rip = 0x"), "{told}");
    let unknown = format!("; saved rip is not known: {why}\n");
    assert_eq!(told.matches(&unknown).count(), 1, "{told}");
    let gone = calls.prompt(&["goto last", "info frame"]).errors();
    assert!(gone.contains("error: no frame of thread"), "{gone}");
}
