//! Programs and processes that cannot be recorded, and recordings that are kept.

use expect_test::expect;

use super::check_args;
use super::common::Folder;

#[test]
fn a_program_that_cannot_be_recorded_is_told_with_the_reason() {
    let folder = Folder::empty();
    std::fs::create_dir(folder.path("folder")).unwrap();
    std::fs::write(folder.path("notes.txt"), "text").unwrap();
    check_args(
        &folder,
        &["record", "./missing"],
        expect![[r#"
            --- stderr
            error: cannot start ./missing: No such file or directory
            help: name a program by its path, or one in PATH by its name
            --- exit code 4
        "#]],
    );
    // A file name is not one of Hindsight's messages, so nothing is cut from it.
    check_args(
        &folder,
        &["record", "--", "./a; b"],
        expect![[r#"
            --- stderr
            error: cannot start ./a; b: No such file or directory
            help: name a program by its path, or one in PATH by its name
            --- exit code 4
        "#]],
    );
    check_args(
        &folder,
        &["record", "./note.txt"],
        expect![[r#"
            --- stderr
            error: cannot start ./note.txt: No such file or directory
            help: did you mean ./notes.txt?
            --- exit code 4
        "#]],
    );
    check_args(
        &folder,
        &["record", "./notes.txt 5"],
        expect![[r#"
            --- stderr
            error: cannot start ./notes.txt 5: No such file or directory
            help: leave the quotes out, if these are arguments: ./notes.txt 5
            --- exit code 4
        "#]],
    );
    check_args(
        &folder,
        &["record", "."],
        expect![[r#"
            --- stderr
            error: cannot start .: No such file or directory
            help: it is a folder: name a program in it
            --- exit code 4
        "#]],
    );
    check_args(
        &folder,
        &["record", "--full", "total", "--", "./orders"],
        expect![[r#"
            --- stderr
            error: there is no program total
            help: for the calls of total: hindsight record --full=total -- ./orders
            --- exit code 2
        "#]],
    );
    check_args(
        &folder,
        &["record", "no-such-command"],
        expect![[r#"
        --- stderr
        error: cannot start no-such-command: No such file or directory
        help: it is not in PATH
        --- exit code 4
    "#]],
    );
    check_args(
        &folder,
        &["record", "notes.txt"],
        expect![[r#"
        --- stderr
        error: cannot start notes.txt: No such file or directory
        help: it is not in PATH; for the one in this folder write ./notes.txt
        --- exit code 4
    "#]],
    );
    check_args(
        &folder,
        &["record", "./notes.txt"],
        expect![[r#"
        --- stderr
        error: cannot start ./notes.txt: Permission denied
        help: make it executable: chmod +x ./notes.txt
        --- exit code 4
    "#]],
    );
    check_args(
        &folder,
        &["record", "./folder"],
        expect![[r#"
        --- stderr
        error: cannot start ./folder: Permission denied
        help: it is a folder
        --- exit code 4
    "#]],
    );
    check_args(
        &folder,
        &["record", ""],
        expect![[r#"
        --- stderr
        error: the name of the program is empty
        --- exit code 2
    "#]],
    );
    check_args(
        &folder,
        &["record"],
        expect![[r#"
        --- stderr
        error: the following required arguments were not provided:
          <PROGRAM>...

        Usage: hindsight record <PROGRAM>...

        For more information, try '--help'.
        --- exit code 2
    "#]],
    );
    assert_eq!(
        std::fs::read_dir(folder.path(".")).unwrap().count(),
        2,
        "no recording is left behind"
    );
}

#[test]
fn a_recording_is_never_overwritten() {
    check_args(
        &Folder::with_shop(),
        &["record", "-o", "shop", "true"],
        expect![[r#"
            --- stderr
            error: cannot record: shop.hindsight exists already
            help: choose another name or remove it
            --- exit code 2
        "#]],
    );
}

#[test]
fn a_process_that_cannot_be_attached_to_is_told_with_the_reason() {
    let folder = Folder::empty();
    check_args(
        &folder,
        &["record", "--attach", "2147483647"],
        expect![[r#"
            --- stderr
            error: cannot attach to process 2147483647: there is no such process
            --- exit code 4
        "#]],
    );
    check_args(
        &folder,
        &["record", "--attach", "web"],
        expect![[r#"
        --- stderr
        error: invalid value 'web' for '--attach <PID>': write the number of a process, as ps shows it

        For more information, try '--help'.
        --- exit code 2
    "#]],
    );
    check_args(
        &folder,
        &["record", "--attach", "1", "--for", "bogus"],
        expect![[r#"
            --- stderr
            error: invalid value 'bogus' for '--for <SECONDS>': "bogus" is not a unit; use ms, s, m, h or d

            For more information, try '--help'.
            --- exit code 2
        "#]],
    );
    check_args(
        &folder,
        &["record", "--for", "10", "true"],
        expect![[r#"
        --- stderr
        error: --for needs --attach
        help: name a running process: hindsight record --attach PID --for 10
        --- exit code 2
    "#]],
    );
    let itself = "exec \"$0\" record --attach $$ 2>&1";
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", itself]).arg(crate::common::binary());
    folder.at_home(&mut shell);
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = said.replace(|c: char| c.is_ascii_digit(), "");
    expect![[r#"
        error: cannot attach to process : it is Hindsight itself
    "#]]
    .assert_eq(&said);
}
