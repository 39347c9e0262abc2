//! Files, columns, the code of a step, and source text.

use std::path::Path;

use debuginfo::{LineError, SourceError, SourceText, backtrace};

use super::common::{Bench, program};
use super::{At, all, built, own_functions, space};

#[test]
fn unknown_files_are_refused_with_similar_names() {
    let built = built("gcc", "frames.c", &["-g", "-O0", "-pthread"]);
    let space = space(&built.path);
    let error = space
        .resolve_line("frame.c", 1, None)
        .expect_err("no such file");
    let LineError::UnknownFile { nearest, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(nearest.iter().any(|f| f.ends_with("/frames.c")), "{error}");
    assert!(
        space
            .source_files()
            .iter()
            .any(|f| f.ends_with("tests/programs/frames.c"))
    );
    for name in [
        "programs/frames.c",
        program("frames.c").to_str().expect("UTF-8"),
    ] {
        assert!(space.resolve_line(name, 18, None).is_ok(), "{name}");
    }
    assert!(space.resolve_line("other/frames.c", 18, None).is_err());
}

#[test]
fn columns_choose_statements() {
    let built = built("gcc", "frames.c", &["-g", "-O0", "-pthread"]);
    let known = space(&built.path);
    let text = std::fs::read_to_string(program("frames.c")).expect("the source");
    let at = text
        .lines()
        .position(|l| l.contains("sum += square"))
        .expect("there");
    let line = at as u32 + 1;
    let source = text.lines().nth(at).expect("there");
    let second = source.find("sum -= i").expect("two statements") as u32 + 1;
    let first = known.resolve_line("frames.c", line, None).expect("code");
    let behind = known
        .resolve_line("frames.c", line, Some(second + 6))
        .expect("code");
    assert_eq!(first.len(), 1);
    assert!(behind[0].address > first[0].address, "{first:?} {behind:?}");
    // Outside the statements, the nearest one is selected.
    let begin = source.find("sum += square").expect("the first statement") as u32 + 1;
    let end = source.len() as u32;
    for (column, nearest) in [(1, begin), (end + 2, end)] {
        let found = known.resolve_line("frames.c", line, Some(column));
        let nearest = known.resolve_line("frames.c", line, Some(nearest));
        assert_eq!(found, nearest, "column {column}");
        assert!(found.is_ok(), "{found:?}");
    }
    let options = ["-g", "-O0", "-pthread", "-gno-column-info"];
    let path = built
        .bench
        .compile("gcc", &program("frames.c"), "without", &options);
    let error = space(&path).resolve_line("frames.c", line, Some(second));
    let error = error.expect_err("no columns");
    assert!(matches!(error, LineError::NoColumns { .. }), "{error:?}");
    assert_eq!(error.hint(), Some("leave the column out"));
}

#[test]
fn the_code_of_a_step_belongs_to_one_line() {
    for built in all().iter() {
        let space = space(&built.path);
        for function in own_functions(built) {
            let (from, to) = (function.ranges[0].start.0, function.ranges[0].end.0);
            for address in from..to {
                let Some(line) = space.line_at(address) else {
                    continue;
                };
                let step = space.step_line(address).expect("it has a line");
                let what = &built.what;
                assert_eq!((step.line, &step.file), (line.line, &line.file), "{what}");
                assert!(step.range.contains(&address), "{address:#x} of {what}");
                let ends = [step.range.start, step.range.end - 1];
                for inside in ends.into_iter().filter_map(|at| space.line_at(at)) {
                    assert_eq!((inside.line, inside.file), (line.line, line.file.clone()));
                }
                let calls = space.calls_at(address);
                let trace = backtrace(&space, &At(address), 100);
                let inlined = trace.frames.iter().take_while(|f| f.inlined).count();
                assert_eq!(calls.len(), inlined + 1, "{address:#x} of {what}");
                assert!(space.calls_beginning(address) <= inlined);
            }
        }
    }
}

/// As in packages built by distributions, whose sources are elsewhere.
#[test]
fn a_directory_that_is_relative_stands_in_a_path_once() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let bench = Bench::new();
        bench.write("here.c", "int main(void) { return 0; }\n");
        let map = format!("-fdebug-prefix-map={}=./sub", bench.dir().display());
        let path = bench.compile("gcc", Path::new("here.c"), "here", &["-g", version, &map]);
        let space = space(&path);
        let at = space.function_places("main")[0].address;
        let line = space.line_at(at).expect("it has lines");
        assert_eq!(&*line.file, "./sub/here.c", "{version}");
    }
}

#[test]
fn source_text_is_read_with_its_context() {
    let path = program("frames.c");
    let name = path.to_str().expect("UTF-8");
    let text = SourceText::around(name, None, 2, 3).expect("readable");
    assert_eq!((text.first, text.lines.len()), (1, 5));
    assert_eq!(text.lines[1], "#define _GNU_SOURCE");
    let below = SourceText::around("frames.c", path.parent(), 1, 0).expect("readable");
    assert_eq!(below.lines.len(), 1);
    let total = text.total;
    let error = SourceText::around(name, None, total + 1, 3).expect_err("too far");
    assert!(matches!(error, SourceError::NoSuchLine { total: t, .. } if t == total));
    let error = SourceText::around("/nowhere/x.c", None, 1, 3).expect_err("missing");
    assert!(
        error.to_string().contains("/nowhere/x.c cannot be read"),
        "{error}"
    );
}
