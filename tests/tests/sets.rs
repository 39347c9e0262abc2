//! Goal: a set that `record --children` has made is one run: found by its name, listed, labelled, forgotten and deleted as
//! one, and its recordings have the names that SQL shows. Method: a shell that starts a program twice.

use std::fs;

use e2e::{Ended, Hindsight, Scratch, Status, compiled};

/// A folder with a data folder of its own, a program, and a script that starts it twice and ends with a code.
fn folder(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let source = "#include <stdio.h>\nint main(int count, char **words) { puts(words[count - 1]); return 0; }\n";
    compiled(&scratch, "hello.c", source, &["-g"]);
    scratch
}

fn hindsight(scratch: &Scratch, args: &[&str], code: i32) -> Ended {
    let command = Hindsight::command(scratch, args).env("XDG_DATA_HOME", scratch.join("data"));
    let ended = command.run();
    let told = format!("{args:?}: {}{}", ended.text(), ended.errors());
    assert_eq!(ended.status, Status::Code(code), "{told}");
    ended
}

fn record(scratch: &Scratch, code: i32) {
    let script = format!("./hello one; ./hello two; exit {code}");
    let args = ["record", "--children", "--", "sh", "-c", &script];
    hindsight(scratch, &args, code);
}

/// The lines of a table without its heading.
fn lines(ended: &Ended) -> Vec<String> {
    ended.text().lines().skip(2).map(str::to_owned).collect()
}

#[test]
fn a_set_is_found_by_its_name_and_its_recordings_by_theirs() {
    let scratch = folder("sets-names");
    record(&scratch, 0);
    // `info sh` could be gdb's `info sharedlibrary`.
    let info = hindsight(&scratch, &["info", "sh"], 0).text();
    assert!(info.contains("sh.children"), "{info}");
    let question =
        "select run, args from calls where function = 'main' and run like 'hello%' order by run";
    let runs = hindsight(&scratch, &["sql", "-f", "csv", "sh", question], 0).text();
    assert_eq!(runs.lines().count(), 3, "{runs}");
    let listed = hindsight(&scratch, &["processes", "sh", "--json"], 0).result();
    let of = |word: &str| {
        let rows = listed.as_array().expect("processes");
        let row = rows.iter().find(|row| row["argv"][1] == word);
        row.expect("it ran")["recording"].clone()
    };
    assert_eq!(
        (of("one"), of("two")),
        ("hello.hindsight".into(), "hello-2.hindsight".into())
    );
    for (name, word) in [
        ("hello", "one"),
        ("hello-2", "two"),
        ("hello.hindsight", "one"),
    ] {
        let name = format!("sh.children/{name}");
        let output = "select text from output";
        let text = hindsight(&scratch, &["sql", "-f", "csv", &name, output], 0).text();
        assert!(text.contains(word), "{name}: {text}");
    }
}

#[test]
fn a_set_is_one_run_of_the_catalog() {
    let scratch = folder("sets-catalog");
    record(&scratch, 0);
    let listed = lines(&hindsight(&scratch, &["runs"], 0));
    assert_eq!(listed.len(), 1, "{listed:#?}");
    assert!(listed[0].contains("sh.children "), "{listed:#?}");
    for name in ["sh.children", "sh"] {
        let shown = hindsight(&scratch, &["runs", "show", name], 0).result();
        assert_eq!(
            shown["recordings"].as_array().map(Vec::len),
            Some(3),
            "{shown:#}"
        );
    }
    let one = hindsight(&scratch, &["runs", "show", "sh.children/hello-2"], 0).result();
    assert_eq!(one["run"], "hello-2");

    hindsight(&scratch, &["runs", "label", "sh.children", "a=b"], 0);
    assert_eq!(
        lines(&hindsight(&scratch, &["runs", "--label", "a=b"], 0)).len(),
        1
    );
    let member = hindsight(&scratch, &["info", "sh.children/hello"], 0).text();
    assert!(member.contains("a=b"), "{member}");
    let refused = hindsight(
        &scratch,
        &["runs", "label", "sh.children", "--remove", "nosuch", "c=d"],
        2,
    );
    assert!(
        refused.errors().contains("has no label nosuch"),
        "{}",
        refused.errors()
    );
    assert!(refused.errors().contains("a=b"), "{}", refused.errors());
    let left = hindsight(&scratch, &["runs", "label", "sh", "--remove", "a"], 0).text();
    assert_eq!(left, "\n");
    assert_eq!(
        lines(&hindsight(&scratch, &["runs", "--label", "a=b"], 0)).len(),
        0
    );

    let forgot = hindsight(&scratch, &["runs", "forget", "sh.children"], 0).text();
    assert_eq!(forgot, "forgot 1 run\n");
    assert_eq!(lines(&hindsight(&scratch, &["runs"], 0)).len(), 0);
    hindsight(&scratch, &["runs", "scan", "."], 0);
    assert_eq!(lines(&hindsight(&scratch, &["runs"], 0)).len(), 1);
}

#[test]
fn a_set_is_pruned_whole_or_not_at_all() {
    let scratch = folder("sets-pruned");
    record(&scratch, 2);
    let dir = scratch.join("sh.children");
    let failed = ["runs", "prune", "--older", "1ms", "--keep-failed", "--yes"];
    let kept = hindsight(&scratch, &failed, 0).text();
    assert_eq!(kept, "forgot 0 runs\n", "its first program failed");
    for name in ["sh", "hello", "hello-2"] {
        assert!(
            dir.join(format!("{name}.hindsight/manifest")).is_file(),
            "{name}"
        );
    }
    assert_eq!(
        lines(&hindsight(&scratch, &["runs", "--failed"], 0)).len(),
        1
    );
    let young = hindsight(&scratch, &["runs", "prune", "--older", "1h", "--yes"], 0).text();
    assert_eq!(young, "forgot 0 runs\n");
    let would = hindsight(
        &scratch,
        &["runs", "prune", "--older", "1ms", "--dry-run"],
        0,
    )
    .text();
    assert!(
        would.ends_with("sh.children\n1 set would be deleted\n"),
        "{would}"
    );
    let gone = hindsight(&scratch, &["runs", "prune", "--older", "1ms", "--yes"], 0).text();
    assert!(
        gone.contains("sh.children (") && gone.ends_with("forgot 1 run\n"),
        "{gone}"
    );
    assert!(!dir.exists());
    assert_eq!(lines(&hindsight(&scratch, &["runs"], 0)).len(), 0);
    record(&scratch, 0);
    assert!(dir.is_dir(), "the name is free again");
    let passed = hindsight(&scratch, &failed, 0).text();
    assert!(passed.ends_with("forgot 1 run\n"), "{passed}");

    // A crash anywhere is a failure of the whole.
    let script = "sh -c 'kill -SEGV $$'; exit 0";
    hindsight(
        &scratch,
        &["record", "--children", "--", "sh", "-c", script],
        0,
    );
    assert_eq!(hindsight(&scratch, &failed, 0).text(), "forgot 0 runs\n");
    assert!(dir.is_dir());
}

#[test]
fn a_test_run_tells_what_was_recorded_and_what_is_left() {
    let scratch = folder("sets-tested");
    fs::write(
        scratch.join("all"),
        "#!/bin/sh\n./hello one; ./hello two; false\n",
    )
    .expect("the folder is ours");
    let run = |keep: &str| {
        let args = [
            "test",
            "--record-to",
            keep,
            "--keep",
            keep,
            "--",
            "sh",
            "all",
        ];
        hindsight(&scratch, &args, 1).errors()
    };
    for (keep, removed) in [
        ("failed", "removed 2 recordings of what passed"),
        ("none", "removed 3 recordings"),
    ] {
        let told = run(keep);
        assert!(
            told.contains(" 3 recordings, ") && !told.contains("not recorded"),
            "{told}"
        );
        assert!(told.contains(removed), "{told}");
        let listed = hindsight(&scratch, &["ls", keep], 0).text();
        assert!(
            listed.contains("result=failed test=sh all"),
            "{keep}: {listed}"
        );
    }
}
