//! Sets are written, read and named.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use super::*;
use crate::error::Error;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[test]
fn facts_become_processes() {
    let dir = tempfile::tempdir().unwrap();
    let log = ProcessLog::create(&dir.path().join("cc"), true).unwrap();
    assert!(log.dir().ends_with("cc.children"));
    let begin = |pid, parent, unix_ns| Fact::Begin {
        pid,
        parent,
        unix_ns,
        argv: words("cc a.c"),
    };
    let image = |pid, unix_ns, text| Fact::Image {
        pid,
        unix_ns,
        argv: words(text),
    };
    let facts = [
        begin(7, 1, 10),
        image(7, 11, "sh cc a.c"),
        image(7, 20, "cc a.c"),
        begin(8, 7, 30),
        begin(9, 7, 31),
        image(8, 32, "as a.s"),
        Fact::Recorded {
            pid: 8,
            recording: "as.hindsight".into(),
        },
        Fact::End {
            pid: 8,
            unix_ns: 40,
            code: Some(1),
            signal: None,
        },
        Fact::Unrecorded {
            pid: 7,
            why: "it is odd".into(),
        },
        // The number is used again.
        begin(8, 7, 50),
        Fact::Recorded {
            pid: 9,
            recording: "cc.hindsight".into(),
        },
    ];
    facts.iter().for_each(|fact| log.add(fact).unwrap());
    fs::create_dir(log.dir().join("cc.hindsight")).unwrap();
    log.prune(&processes(log.dir()).unwrap()[3]).unwrap();
    assert!(!log.dir().join("cc.hindsight").exists());
    fs::OpenOptions::new()
        .append(true)
        .open(log.dir().join(PROCESSES_FILE))
        .and_then(|mut file| file.write_all(b"{\"what\":\"end\",\"pi"))
        .unwrap();
    let found = processes(log.dir()).unwrap();
    let of = |row: &Process| (row.pid, row.parent, row.argv.join(" "), row.end_unix_ns);
    assert_eq!(
        found.iter().map(of).collect::<Vec<_>>(),
        [
            (7, Some(1), "sh cc a.c".to_owned(), Some(20)),
            (7, Some(1), "cc a.c".to_owned(), None),
            (8, Some(7), "as a.s".to_owned(), Some(40)),
            (9, Some(7), "cc a.c".to_owned(), None),
            (8, Some(7), "cc a.c".to_owned(), None),
        ]
    );
    assert_eq!(number(&found), 4);
    assert_eq!(
        (found[0].became_another, found[1].became_another),
        (true, false)
    );
    assert_eq!(found[1].notes, ["it is odd"]);
    assert_eq!(found[2].recording.as_deref(), Some("as.hindsight"));
    assert_eq!(found[2].exit_code, Some(1));
    assert_eq!(found[3].image_unix_ns, None);
    assert_eq!((&found[3].recording, found[3].is_pruned), (&None, true));
}

/// A recorder is done with a program after the process has executed the next one.
#[test]
fn a_warning_belongs_to_its_recording() {
    let dir = tempfile::tempdir().unwrap();
    let log = ProcessLog::create(&dir.path().join("sh"), true).unwrap();
    let image = |unix_ns, text| Fact::Image {
        pid: 7,
        unix_ns,
        argv: words(text),
    };
    let recorded = |name: &str| Fact::Recorded {
        pid: 7,
        recording: name.to_owned(),
    };
    let warning = |text: &str, recording: Option<&str>| Fact::Warning {
        pid: 7,
        text: text.to_owned(),
        recording: recording.map(str::to_owned),
    };
    let facts = [
        image(10, "sh a"),
        recorded("sh.hindsight"),
        image(20, "sh b"),
        warning("of the first", Some("sh.hindsight")),
        recorded("sh-2.hindsight"),
        warning("of the second", Some("sh-2.hindsight")),
        warning("of the last", None),
    ];
    facts.iter().for_each(|fact| log.add(fact).unwrap());
    // Older recorders did not say which recording they mean.
    let old = "{\"what\":\"warning\",\"pid\":7,\"text\":\"of an old recorder\"}\n";
    (&log.file).write_all(old.as_bytes()).unwrap();
    let found = processes(log.dir()).unwrap();
    let notes: Vec<_> = found.iter().map(|row| row.notes.clone()).collect();
    let second = ["of the second", "of the last", "of an old recorder"];
    assert_eq!(notes, [&["of the first"][..], &second]);
}

/// A process that is killed while its recording begins is seen by two, and one of them may not know how it ended.
#[test]
fn an_end_that_two_have_seen_is_known_from_both() {
    let dir = tempfile::tempdir().unwrap();
    let log = ProcessLog::create(&dir.path().join("sh"), true).unwrap();
    let end = |unix_ns, signal| Fact::End {
        pid: 7,
        unix_ns,
        code: None,
        signal,
    };
    let recorded = Fact::Recorded {
        pid: 7,
        recording: "sh.hindsight".to_owned(),
    };
    let unrecorded = Fact::Unrecorded {
        pid: 7,
        why: "it was killed".to_owned(),
    };
    for fact in [
        recorded,
        end(20, None),
        unrecorded,
        end(30, Some(9)),
        end(40, None),
    ] {
        log.add(&fact).unwrap();
    }
    let found = &processes(log.dir()).unwrap()[0];
    assert_eq!((found.end_unix_ns, found.exit_signal), (Some(20), Some(9)));
    assert_eq!(found.recording, None, "nothing is left of it");
    assert_eq!(found.notes, ["it was killed"]);
}

#[test]
fn a_list_that_could_not_be_written_says_so_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let log = ProcessLog::create(&dir.path().join("sh"), true).unwrap();
    let image = |pid| Fact::Image {
        pid,
        unix_ns: 10,
        argv: words("sh a"),
    };
    log.add(&image(7)).unwrap();
    assert_eq!(why_incomplete(log.dir()), None);
    let full = ProcessLog {
        dir: log.dir().to_owned(),
        file: OpenOptions::new().write(true).open("/dev/full").unwrap(),
    };
    full.add(&image(8)).unwrap_err();
    // The disk took a part of the line.
    (&log.file)
        .write_all("{\"what\":\"\u{fc}".as_bytes().split_last().unwrap().1)
        .unwrap();
    log.add(&image(9)).unwrap();
    assert!(why_incomplete(log.dir()).is_some());
    let pids: Vec<i32> = processes(log.dir())
        .unwrap()
        .iter()
        .map(|row| row.pid)
        .collect();
    assert_eq!(pids, [7, 9]);
    remove_list(log.dir()).unwrap();
    fs::remove_dir(log.dir()).unwrap();
}

#[test]
fn names_of_sets_are_numbered() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("a");
    let first = ProcessLog::create(&name, true).unwrap();
    let second = ProcessLog::create(&name, true).unwrap();
    assert!(first.dir().ends_with("a.children"));
    assert!(second.dir().ends_with("a-2.children"));
    assert!(matches!(
        ProcessLog::create(&name, false),
        Err(Error::Exists { .. })
    ));
    let begins = |set: &ProcessLog, program: &str, at: i64| {
        set.add(&Fact::Begin {
            pid: 1,
            parent: 0,
            unix_ns: at,
            argv: vec![program.to_owned()],
        })
        .unwrap();
    };
    begins(&first, "./a", 5);
    begins(&second, "/bin/a-2", 9);
    assert_eq!(resolve(&name), Some(dir.path().join("a.children")));
    let third = ProcessLog::create(&name, true).unwrap();
    begins(&third, "./a", 7);
    assert_eq!(resolve(&name), Some(dir.path().join("a-3.children")));
    let whole = dir.path().join("a.children");
    assert_eq!(resolve(&whole), Some(whole.clone()));
    assert_eq!(resolve(dir.path()), None);
}

#[test]
fn a_set_needs_a_name_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("taken")).unwrap();
    for name in ["", "/", ".", "..", ".children"] {
        let refused = may_be_created(Path::new(name));
        assert!(matches!(refused, Err(Error::BadName { .. })), "{refused:?}");
        let refused = ProcessLog::create(Path::new(name), true);
        assert!(matches!(refused, Err(Error::BadName { .. })), "{refused:?}");
    }
    // Without the slash, the set comes beside the folder.
    let refused = may_be_created(&at("taken/"));
    assert!(matches!(refused, Err(Error::BadName { .. })), "{refused:?}");
    assert_eq!(may_be_created(&at("taken")).unwrap(), at("taken.children"));
    assert_eq!(may_be_created(&at("new/")).unwrap(), at("new.children"));
    fs::create_dir(at("taken.children")).unwrap();
    for name in ["taken", "taken.children", "taken.children/"] {
        let refused = may_be_created(&at(name));
        assert!(matches!(refused, Err(Error::Exists { .. })), "{refused:?}");
    }
    let refused = may_be_created(&at("missing/new"));
    assert!(
        matches!(refused, Err(Error::NotCreated { .. })),
        "{refused:?}"
    );
}
