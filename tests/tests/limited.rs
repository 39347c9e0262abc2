//! Goal: small limits and closed descriptors of the shell that starts Hindsight do not stop it, and the program finds them as it would
//! unrecorded. Method: a shell sets soft limits, or closes descriptors, and becomes the program, natively and recorded.

use e2e::{Ended, Hindsight, Program, Recording, Scratch, Status, compiled};

/// Runs `command` in a shell after `before`; recorded with `options` unless there are none.
fn run(scratch: &Scratch, before: &str, options: Option<&[&str]>, command: &str) -> Ended {
    let recorded = options.map(|options| {
        let hindsight = Hindsight::path().display();
        format!("{hindsight} record -o rec {} --", options.join(" "))
    });
    let script = format!("{before} exec {} {command}", recorded.unwrap_or_default());
    Program::new("/bin/sh", scratch.path())
        .args(["-c", &script])
        .run()
}

#[test]
fn a_program_has_the_limits_of_the_shell() {
    let scratch = Scratch::new("limits");
    let limits = "ulimit -S -f 2000; ulimit -S -n 12; ulimit -S -s 100;";
    let shows = "/bin/sh -c 'ulimit -f; ulimit -n; ulimit -s; ulimit -v; ulimit -d'";
    let native = run(&scratch, limits, None, shows);
    assert_eq!(
        native.text().lines().take(3).collect::<Vec<_>>(),
        ["2000", "12", "100"]
    );
    for options in [&["-f", "'*'"][..], &["--children"], &["--syscalls"]] {
        let recorded = run(&scratch, limits, Some(options), shows);
        assert_eq!(recorded.status, Status::Code(0), "{}", recorded.errors());
        assert_eq!(recorded.text(), native.text(), "{options:?}");
        for name in ["rec.hindsight", "rec.children"] {
            let _ = std::fs::remove_dir_all(scratch.join(name));
        }
    }
}

const DESCRIPTORS: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
    char text[64];
    int open_ones[3];
    for (int fd = 0; fd < 3; fd++)
        open_ones[fd] = fcntl(fd, F_GETFD) != -1;
    int first = open("/dev/null", O_RDONLY);
    int file = open(words[count - 1], O_CREAT | O_WRONLY | O_TRUNC, 0600);
    int length = snprintf(text, sizeof text, "%d %d %d, first %d\n", open_ones[0], open_ones[1], open_ones[2], first);
    return write(file, text, length) != length;
}
"#;

#[test]
fn closed_standard_descriptors_stay_closed() {
    let scratch = Scratch::new("closed");
    let program = compiled(&scratch, "app.c", DESCRIPTORS, &["-g", "-O0"]);
    let found = |closed: &str, options: Option<&[&str]>| {
        let command = format!("{} told {closed}", program.display());
        let ended = run(&scratch, "", options, &command);
        assert_eq!(
            ended.status,
            Status::Code(0),
            "{options:?} {}",
            ended.errors()
        );
        for name in ["rec.hindsight", "rec.children"] {
            let _ = std::fs::remove_dir_all(scratch.join(name));
        }
        std::fs::read_to_string(scratch.join("told")).expect("the program wrote it")
    };
    for (closed, expected) in [
        ("<&-", "0 1 1, first 0\n"),
        (">&-", "1 0 1, first 1\n"),
        ("<&- >&- 2>&-", "0 0 0, first 0\n"),
        ("", "1 1 1, first 3\n"),
    ] {
        assert_eq!(found(closed, None), expected);
        for options in [&[][..], &["--children"], &["--full"]] {
            assert_eq!(
                found(closed, Some(options)),
                expected,
                "{closed} {options:?}"
            );
        }
    }
}

/// The recording is whole, too.
#[test]
fn few_descriptors_are_enough() {
    let scratch = Scratch::new("few");
    let ended = run(&scratch, "ulimit -S -n 10;", Some(&[]), "/bin/true");
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let recording = Recording::new(scratch.join("rec.hindsight"));
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
}
