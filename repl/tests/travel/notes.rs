//! Additions to a recording: notes, and copies of modules.

use expect_test::expect;

use super::common::Folder;

#[test]
fn notes_are_kept_beside_the_recording() {
    let folder = Folder::with_debugged();
    let run = |lines: &[&str]| {
        let mut args = vec!["repl", "debugged", "--cmd", "goto first"];
        for line in lines {
            args.extend(["--cmd", line]);
        }
        folder.transcript(&args)
    };
    expect![[r#"
        Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
        Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
        Note at event 9: the price is wrong
         Event | Note
        -------+----------------------
             2 | why is order 3 free?
             9 | the price is wrong
        --- stderr
        error: the following required arguments were not provided: <TEXT>...
        help: write: note <TEXT>...
          at --cmd 5: note (exit code 2)
        --- exit code 2
    "#]]
    .assert_eq(&run(&[
        "goto 9",
        "note the price is wrong",
        "notes",
        "note",
    ]));
    expect![[r#"
        Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
        Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
        Thread 4242 (synth-4242) at event 5, entry of price: somewhere in price
        Note at event 5: before it
         Event | Note
        -------+----------------------
             2 | why is order 3 free?
             5 | before it
             9 | the price is wrong
         seq | text                 | later
        -----+----------------------+-------
           2 | why is order 3 free? | NULL
           5 | before it            | true
           9 | the price is wrong   | true
         count(*)
        ----------
                1
    "#]]
    .assert_eq(&run(&[
        "goto @the price",
        "goto 5",
        "note before it",
        "notes",
        "select seq, text, added_unix_ns > 0 as later from notes order by seq",
        "select count(*) from events where kind = 'note'",
    ]));
    assert!(folder.transcript(&["check", "debugged"]).contains("whole"));
}

#[test]
fn notes_are_refused_where_they_cannot_be_kept() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with_debugged();
    let note = ["repl", "debugged", "--cmd", "note more", "--cmd", "notes"];
    folder.transcript(&["repl", "debugged", "--cmd", "goto 3", "--cmd", "note kept"]);
    let dir = folder.path("debugged.hindsight");
    let mode = |mode| std::fs::set_permissions(&dir, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o500);
    expect![[r#"
         Event | Note
        -------+----------------------
             2 | why is order 3 free?
             3 | kept
        --- stderr
        error: nothing was added to the recording: debugged.hindsight is read-only
        help: copy the recording and open the copy, or make it writable with: chmod u+w
          at --cmd 1: note more (exit code 1)
        --- exit code 1
    "#]]
    .assert_eq(&folder.transcript(&note));
    mode(0o700);
    let long = format!("note {}", "x".repeat(5000));
    expect![[r#"
        --- stderr
        error: nothing was added to the recording: its 5000 bytes are too many for a note
        help: write at most 4096
          at --cmd 1: note xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx (exit code 1)
        --- exit code 1
    "#]].assert_eq(&folder.transcript(&["repl", "debugged", "--cmd", &long]));
    let name = "debugged.hindsight/notes";
    let before = std::fs::read(folder.path(name)).unwrap();
    folder.damage(name, before.len() - 1);
    let damaged = std::fs::read(folder.path(name)).unwrap();
    expect![[r#"
        --- stderr
        error: debugged.hindsight/notes is damaged at offset 64: the frame's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
          at --cmd 1: note more (exit code 1)
        error: debugged.hindsight/notes is damaged at offset 64: the frame's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
          at --cmd 2: notes (exit code 1)
        --- exit code 1
    "#]]
    .assert_eq(&folder.transcript(&note));
    assert_eq!(std::fs::read(folder.path(name)).unwrap(), damaged);
    expect![[r#"
        debugged.hindsight: damaged
          read     7 files, 25.7 kB
          columns  1 part, 1 call (0 without an end), 26 other events, 1 function
          damage: notes at offset 64: the frame's checksum differs
        --- exit code 1
    "#]]
    .assert_eq(&folder.transcript(&["check", "debugged"]));
    let sql = |question: &str| folder.transcript(&["sql", "debugged", question]);
    expect![[r#"
        --- stderr
        error: debugged.hindsight/notes is damaged at offset 64: the frame's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
        --- exit code 2
    "#]]
    .assert_eq(&sql("select * from notes"));
    assert!(sql("select count(*) from events").contains("28"));
}

#[test]
fn packing_says_what_is_missing() {
    let folder = Folder::with_debugged();
    expect![[r#"
        debugged.hindsight: 0 modules and 0 source files packed, 0 B
        not packed: the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory (os error 2)
        --- exit code 1
    "#]].assert_eq(&folder.transcript(&["pack", "debugged"]));
    expect![[r#"
        {
          "id": 1,
          "result": {
            "bytes": 0,
            "debug_files": 0,
            "missing": [
              {
                "path": "/home/ada/shop/shop",
                "why": "the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory (os error 2)"
              }
            ],
            "modules": 0,
            "recording": "debugged.hindsight",
            "sources": 0
          },
          "success": true
        }
        --- exit code 1
    "#]].assert_eq(&folder.transcript(&["pack", "debugged", "--json"]));
    expect![[r#"
        --- stderr
        error: there is no recording nothing
        help: did you mean debugged.hindsight?
        --- exit code 2
    "#]]
    .assert_eq(&folder.transcript(&["pack", "nothing"]));
    folder.damage("debugged.hindsight/modules/index", 70);
    expect![[r#"
        --- stderr
        error: debugged.hindsight/modules/index is damaged at offset 64: the frame's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
        --- exit code 1
    "#]].assert_eq(&folder.transcript(&["pack", "debugged"]));
    expect![[r#"
        --- stderr
        error: nothing after event 25 stops here
        help: set a breakpoint: break FUNCTION; or: goto last
          at --cmd 1: continue (exit code 2)
        error: no variable "sold" here
        help: the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory (os error 2); of its copy: debugged.hindsight/modules/index is damaged at offset 64: the frame's checksum differs; run "hindsight check" for a full report and restore the file from a copy
          at --cmd 2: print sold (exit code 1)
        --- exit code 1
    "#]].assert_eq(&folder.transcript(&[
        "repl",
        "debugged",
        "--cmd",
        "continue",
        "--cmd",
        "print sold",
    ]));
}
