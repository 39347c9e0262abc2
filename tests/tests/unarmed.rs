//! Goal: every function is either traced or listed with the reason why it is not. Method: a fixture of functions that are hard
//! to patch, whose calls are known.

use e2e::{Comparison, Hindsight, Program, Scratch, Status, compiled, fixture_artifact};
use std::collections::BTreeMap;

const TOO_SHORT: &str = "before other code begins; a patch needs 5";
const JUMPED_INTO: &str = "inside the patched bytes";
const UNSEEN_JUMP: &str = "is only reached by a jump that cannot be seen";

/// The result for each function: the number of recorded calls, or a part of the reason.
const FUNCTIONS: [(&str, Result<i64, &str>); 21] = [
    ("expect", Ok(1900)),
    ("main", Ok(1)),
    ("t_call_first", Ok(100)),
    ("t_call_pop", Ok(100)),
    ("t_endbr", Ok(100)),
    ("t_four", Err(TOO_SHORT)),
    ("t_head_jcc", Ok(100)),
    ("t_jrcxz", Ok(200)),
    ("t_jump", Err(TOO_SHORT)),
    ("t_loop", Err(JUMPED_INTO)),
    ("t_loop_in_head", Err(JUMPED_INTO)),
    ("t_push_call", Ok(100)),
    ("t_ret", Err(TOO_SHORT)),
    ("t_rip", Ok(100)),
    // Called, and fallen into by t_two_entries.
    ("t_second_entry", Ok(200)),
    ("t_self_jump", Ok(100)),
    ("t_short_jump", Err(UNSEEN_JUMP)),
    ("t_table", Ok(100)),
    // Reached by a jump from t_jump.
    ("t_target", Ok(100)),
    ("t_two_entries", Err(TOO_SHORT)),
    ("t_zero", Err(TOO_SHORT)),
];

#[test]
fn every_function_is_armed_or_skipped_with_its_reason() {
    let both = Comparison::of("tiny_functions", "tiny_functions", &[]);
    let rows = both.recording.rows(
        "SELECT p.function, p.state, p.reason, p.kind, p.function_id, \
         (SELECT count(*) FROM calls c WHERE c.function = p.function) AS calls FROM probes p ORDER BY p.function",
    );
    let names: Vec<_> = rows.iter().filter_map(|r| r["function"].as_str()).collect();
    assert_eq!(
        names,
        FUNCTIONS.map(|(name, _)| name),
        "each is listed exactly once"
    );
    for (row, (name, wanted)) in rows.iter().zip(FUNCTIONS) {
        let reason = row["reason"].as_str();
        match wanted {
            Ok(calls) => {
                assert_eq!(
                    (row["state"].as_str(), reason),
                    (Some("armed"), None),
                    "{name}"
                );
                assert_eq!(row["calls"].as_i64(), Some(calls), "calls of {name}");
                assert!(row["function_id"].is_i64(), "{row:?}");
            }
            Err(part) => {
                assert_eq!(row["state"], "skipped", "{name}");
                assert!(reason.is_some_and(|all| all.contains(part)), "{row:?}");
                assert_eq!(row["calls"].as_i64(), Some(0), "{name} has no calls");
            }
        }
        assert_eq!(row["kind"], "trace");
    }
    let skipped = FUNCTIONS
        .iter()
        .filter(|(_, wanted)| wanted.is_err())
        .count();
    let told = format!(
        "{skipped} of {} functions not recorded (see the table probes)",
        FUNCTIONS.len()
    );
    assert!(
        both.own_lines.iter().any(|line| line.contains(&told)),
        "{:?}",
        both.own_lines
    );
}

/// The program's own functions, as its symbol table names them: each is in `probes` exactly once.
#[test]
fn probes_lists_all_that_the_symbol_table_does() {
    let scratch = Scratch::new("all_listed");
    let artifact = fixture_artifact("many_functions", "many_functions");
    let symbols = Program::new("/usr/bin/readelf", scratch.path())
        .args(["-sW".as_ref(), artifact.as_os_str()])
        .run();
    let mut wanted = BTreeMap::new();
    for line in symbols.text().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, _, size, "FUNC", _, _, section, name] = words[..]
            && section != "UND"
            && size != "0"
        {
            wanted.insert(name.to_owned(), 1);
        }
    }
    assert!(wanted.len() > 5000, "{} symbols", wanted.len());
    let program = Program::new(artifact, scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(ended.status, program.run().status, "{}", ended.errors());
    let rows = recording.rows(
        "SELECT function, count(*) AS n, count(*) FILTER (WHERE state IN ('armed', 'skipped')) AS said, \
         count(*) FILTER (WHERE (reason IS NULL) = (state = 'armed')) AS reasons FROM probes \
         WHERE module = 'many_functions' GROUP BY function",
    );
    let mut listed = BTreeMap::new();
    for row in &rows {
        let number = |name: &str| row[name].as_i64().expect("a number");
        let name = row["function"].as_str().expect("a name");
        assert_eq!(
            (number("said"), number("reasons")),
            (number("n"), number("n")),
            "{row:?}"
        );
        listed.insert(name.to_owned(), number("n"));
    }
    // Functions of the compiler's start files have no debug information, and so are not requested.
    for start in ["_start", "_init", "_fini"] {
        wanted.remove(start);
    }
    assert_eq!(listed, wanted);
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
}

/// Its symbols are stripped, and it calls its libraries through pointers.
#[test]
fn a_program_without_functions_to_record_is_told_what_can_be() {
    let scratch = Scratch::new("unarmed-bare");
    let source = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n";
    let bare = compiled(&scratch, "bare.c", source, &["-O1", "-fno-plt", "-s"]);
    let bare = Program::new(bare, scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &[], &bare);
    let errors = ended.errors();
    assert!(errors.contains("its symbols were stripped"), "{errors}");
    assert_eq!(recording.number("SELECT count(*) FROM calls"), 0);
    let ended = Hindsight::record_command(&scratch, "puts", &["-f", "puts"], &bare).run();
    let errors = ended.errors();
    assert!(errors.contains("1 call,"), "{errors}");
    assert!(!errors.contains("stripped"), "{errors}");
}

/// It has symbols. The first functions have no room for a patch, and the last one must not be recorded.
#[test]
fn a_program_whose_functions_are_all_refused_is_told_why() {
    let scratch = Scratch::new("unarmed-refused");
    let source = "__asm__(\".globl main\\n.type main, @function\\nmain: xor %eax, %eax\\nret\\n.size main, . - main\\n\"\n\
        \".globl after\\n.type after, @function\\nafter: ud2\\n.size after, . - after\\n\"\n\
        \".globl uw_init_context_1\\n.type uw_init_context_1, @function\\nuw_init_context_1: mov $1, %eax\\nret\\n\"\n\
        \".size uw_init_context_1, . - uw_init_context_1\\n\");\n";
    let bare = compiled(&scratch, "refused.c", source, &["-O1", "-no-pie"]);
    let bare = Program::new(bare, scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &[], &bare);
    let errors = ended.errors();
    for told in [
        "none of its 3 functions can be recorded",
        "2 functions: the function has only ... bytes to overwrite before other code begins; a patch needs 5",
        "1 function: ",
    ] {
        assert!(errors.contains(told), "{told}: {errors}");
    }
    assert!(!errors.contains("stripped"), "{errors}");
    assert_eq!(recording.number("SELECT count(*) FROM calls"), 0);
}
