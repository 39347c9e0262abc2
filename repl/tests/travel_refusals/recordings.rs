//! Recordings without events or threads, damaged ones, and ones that are not sealed yet.

use expect_test::expect;
use store::control::Control;
use store::synth::Synth;

use super::common::Folder;
use super::made;

#[test]
fn a_recording_without_events_is_refused() {
    let folder = made(&Synth::new());
    expect![[r#"
        --- stderr
        error: the recording has no events
        help: record a program that does something
        --- exit code 1
    "#]]
    .assert_eq(&folder.repl("made", &["where"]));
}

#[test]
fn a_recording_without_threads_has_none_to_look_at() {
    let mut synth = Synth::new();
    synth.control(Control::ProcessStart {
        ticks: 1,
        pid: 4242,
        argv: vec!["shop".into()],
        exe: "/nowhere/shop".into(),
        cwd: "/".into(),
        attached: false,
    });
    let folder = made(&synth);
    expect![[r#"
         ID | Name | State | Location
        ----+------+-------+----------
          (the rest is not known: no recorded call is open, and registers are not known)
         Register | Value                   | Symbol
        ----------+-------------------------+--------
         rip      | <unknown: not captured> | 
        $1 = 1
        Thread 0 is in no recorded call at event 0.
        --- stderr
        error: no thread is selected
          at --cmd 1: thread (exit code 2)
        error: no frame of thread 0 is known at event 0: no recorded call is open, and registers are not known
        help: go to an event that shows one: next, or continue
          at --cmd 3: where (exit code 2)
        error: no variable "sold" here
          at --cmd 7: history sold (exit code 1)
        error: thread 0 has no later event
          at --cmd 9: next (exit code 2)
        error: thread 0 is in no recorded call here
          at --cmd 10: finish (exit code 2)
        error: cannot compute the answer: the expression "sold": nothing in the recording is called "sold"
          at --cmd 11: SELECT value(0, 'sold') (exit code 1)
        error: cannot compute the answer: there is no thread 0
        help: threads: none
          at --cmd 12: SELECT reg(0, 'rip') (exit code 1)
        --- exit code 1
    "#]].assert_eq(&folder.repl(
        "made",
        &[
            "thread",
            "threads",
            "where",
            "backtrace",
            "registers rip",
            "print 1",
            "history sold",
            "calls",
            "next",
            "finish",
            "SELECT value(0, 'sold')",
            "SELECT reg(0, 'rip')",
        ],
    ));
}

#[test]
fn damaged_files_are_named() {
    let damaged = |file: &str, offset: usize, lines: &[&str]| {
        let folder = Folder::with_frozen(&["orders"]);
        folder.damage(&format!("orders.hindsight/{file}"), offset);
        folder.repl("orders", lines)
    };
    // The state at a stop, in the middle of its file and where the file lists its stops.
    let lines = [
        "goto 19",
        "registers rip",
        "print sold",
        "locals",
        "backtrace",
        "goto 13",
        "args",
    ];
    expect![[r#"
        --- stderr
        error: orders.hindsight/columns/states-000000.parquet is damaged at offset 0: the file's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
        --- exit code 1
    "#]].assert_eq(&damaged("columns/states-000000.parquet", 3940, &lines));
    expect![[r#"
        --- stderr
        error: orders.hindsight/columns/states-000000.parquet is damaged at offset 0: the file's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
        --- exit code 1
    "#]].assert_eq(&damaged("columns/states-000000.parquet", 40, &lines));
    // A copied page of memory.
    let lines = [
        "goto 19",
        "print sold",
        "print *order",
        "memory read &sold --count 4",
        "history sold",
        "args",
    ];
    expect![[r#"
        Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
        ->    36 |   int discount = order->pieces > 3;
        sold = <orders.hindsight/memory/000002.mem is damaged at offset 64: the frame's checksum differs; run "hindsight check" for a full report and restore the file from a copy>
        $1 = {id = 1, pieces = 2, each = 4.5, customer = 0x55a578740042 "Ada"}
         Event | Thread | Value | Place
        -------+--------+-------+--------
             4 |  28464 | 0     | 
            29 |  28464 | 4     | main
            65 |  28464 | 46    | settle
        A second run tells which line writes it: hindsight record --log-writes 'sold' /home/ada/orders/./orders
         Name  | Type           | Value
        -------+----------------+----------------
         order | struct order * | 0x55a5866573d0
        --- stderr
        error: memory at 0x55a578742070 cannot be read: orders.hindsight/memory/000002.mem is damaged at offset 64: the frame's checksum differs; run "hindsight check" for a full report and restore the file from a copy
          at --cmd 4: memory read &sold --count 4 (exit code 1)
        --- exit code 1
    "#]].assert_eq(&damaged("memory/000002.mem", 142, &lines));
    // The copy of the program.
    let lines = ["goto 19", "print sold", "calls", "output"];
    expect![[r#"
        Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: 0x55a57873f2df
        * main  12..68  0.29 s  (unwound)
        *   settle  17..28  0.18 s
              price  23..24  570 ns
              say  25..27  15.61 us
        The program had written nothing up to here.
        --- stderr
        error: no variable "sold" here
        help: the module /home/ada/orders/orders cannot be read: open /home/ada/orders/orders: No such file or directory (os error 2); of its copy: orders.hindsight/modules/000000/orders: its checksum differs
          at --cmd 2: print sold (exit code 1)
        --- exit code 1
    "#]].assert_eq(&damaged("modules/000000/orders", 1, &lines));
}

#[test]
fn a_folder_for_what_is_not_sealed_is_needed() {
    let folder = Folder::with_frozen(&["shop"]);
    let mut command = folder.command(&["repl", "shop", "--cmd", "where"]);
    let output = command.env("TMPDIR", "/nowhere/at/all").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let (before, name) = told.split_once("hindsight-tail-").unwrap();
    // The name of the temporary folder is random.
    expect![[r#"
        error: cannot make a folder for what is not sealed yet: No such file or directory at path "/nowhere/at/all/hindsight-tail-NAME"
        help: set TMPDIR to a folder that can be written to
    "#]].assert_eq(&format!("{before}hindsight-tail-NAME{}", &name[6..]));
    assert_eq!(output.status.code(), Some(1));
}
