//! Goal: a variable that is only declared, or that a library defines and the program has a copy of, is where the linker has put it.
//! Method: the program prints the addresses; the values shown there are those that the program assigned.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Live, fixture_artifact, in_turn};

const VALUES: [(&str, &str); 5] = [
    ("optind", "7"),
    ("second", "42"),
    ("table[1]", "2"),
    ("counter", "12"),
    ("per_thread", "9"),
];

#[test]
fn declared_variables_are_where_the_linker_has_put_them() {
    for artifact in in_turn(["linked_gcc", "linked_clang", "linked_bare"]) {
        let program = fixture_artifact("linked", artifact);
        let live = Live::started(artifact, &["--break", "told"], &program, &[]);
        live.ask(&["finish"]);
        let output = live.output();
        for line in output.lines() {
            let (name, address) = line.split_once(' ').expect("name and address");
            if artifact == "linked_bare" && name == "per_thread" {
                // Without debug information the location of each thread's copy is unknown.
                continue;
            }
            let shown = live.ask(&["print", &format!("&{name}")]);
            let shown = shown["value"]
                .as_str()
                .unwrap_or_else(|| panic!("{artifact}: {shown:#}"));
            assert!(
                shown.contains(address),
                "{artifact}: &{name} is {shown}, not {address}"
            );
        }
        for (expression, value) in VALUES {
            let (_, reply) = live.response(&["print", expression]);
            if artifact == "linked_bare" && expression == "per_thread" {
                let why = reply.to_string();
                assert!(why.contains("no loaded module defines it"), "{reply:#}");
                continue;
            }
            let shown = reply["result"]["value"].as_str();
            assert_eq!(shown, Some(value), "{artifact}: {expression}: {reply:#}");
        }
        assert_eq!(live.run_to_end(), 0);
    }
}
