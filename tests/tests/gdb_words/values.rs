//! Values, registers, displays and types.

use e2e::{Hindsight, Live, Program, Scratch, compiled};

use super::{gdb, of_gdb, plain, program, prompt};

/// The bits of a number as a floating-point number of its size.
#[test]
fn numbers_are_read_as_floating_point_numbers_as_in_gdb() {
    let live = Live::started("gdb-floats", &["--break", "leaf"], &program(), &[]);
    let commands = [
        "p/f 1065353216",
        "p/f 4609434218613702656",
        "p/f -1069547520",
        "p/f (char)97",
        "p/f (short)7",
        "p/f 2.5",
        "p/f &*(char*)0",
    ];
    for (command, theirs) in commands.into_iter().zip(of_gdb(&live, commands)) {
        let ours = prompt(&live, &[command]);
        assert_eq!(plain(&ours), theirs, "{command}");
    }
}

/// Types do not depend on time: they are known before the program's modules are.
#[test]
fn types_are_known_at_the_first_event() {
    let scratch = Scratch::new("first-types");
    let source =
        "struct tag { int a; double d; } one = { 1, 2.5 };\nint main(void) { return one.a - 1; }\n";
    let program = compiled(&scratch, "tagged.c", source, &["-g"]);
    Hindsight::recorded(&scratch, "rec", &[], &Program::new(program, scratch.path()));
    let answer = |line: &str| {
        let words = ["repl", "rec", "--cmd", "goto 0", "--cmd", line];
        let ended = Hindsight::command(&scratch, &words).run();
        ended.text() + &ended.errors()
    };
    for line in ["ptype struct tag", "ptype one"] {
        let said = answer(line);
        let shown = "type = struct tag {\n    int a;\n    double d;\n}\n";
        assert!(said.contains(shown), "{line}: {said}");
    }
    assert!(answer("whatis int (*)(struct tag *)").contains("type = int (*)(struct tag *)"));
    let said = answer("ptype struct nosuch");
    assert!(
        said.contains("there is no type struct nosuch here"),
        "{said}"
    );
    assert!(
        said.contains("help: no module of the recording has it"),
        "{said}"
    );
    // Values do.
    let said = answer("print one");
    assert!(said.contains("no variable \"one\" here"), "{said}");
}

/// Values have the numbers that gdb gives them, and its variables. gdb runs all lines in one process.
#[test]
fn values_are_kept_as_in_gdb() {
    let live = Live::started("gdb-values", &["--break", "leaf"], &program(), &[]);
    let lines = [
        "print x",
        "print $ + 1",
        "print $$",
        "print $1 * 2 + $$2",
        "set $n = x + 3",
        "print $n",
        "print $n = $n + 1",
        "p/x $n",
        "x/2dw &tempo",
        "print *$_",
        "print $__",
        "x/2xb leaf",
        "x",
        "print $sp == $rsp && $pc == $rip",
    ];
    let mut words = vec!["break leaf", "run > /dev/null", "echo ~~~\\n"];
    words.extend(lines);
    let theirs = gdb(&live, &words);
    let (_, theirs) = theirs.split_once("~~~\n").expect("its own words end");
    let shown = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| {
            // The names of the contents of an address are written differently.
            let (name, value) = line.split_once(':').unwrap_or(("", line));
            let name = name.rsplit(" <").next().unwrap_or_default();
            let words: Vec<&str> = value.split_whitespace().collect();
            format!("{name} {}", words.join(" "))
        });
        let values = lines.filter(|line| !line.contains(" -> "));
        values.map(|line| line.replace("= true", "= 1")).collect()
    };
    let said = prompt(&live, &lines);
    assert!(said.contains("$n: not set -> 23\n"), "{said}");
    let said = said.replace("$n: not set -> 23\n", "");
    assert_eq!(shown(&said), shown(theirs), "{said}");
    // The same session in the shell, in its past, and again live.
    let text = |words: &[&str]| {
        let ended = live.command(words).run();
        ended.text() + &ended.errors()
    };
    assert_eq!(text(&["print", "$1"]), "$11 = 20\n");
    assert!(text(&["print", "--json", "$1"]).contains("\"number\": 12"));
    let said = prompt(
        &live,
        &[
            "goto last",
            "print $n",
            "set $m = $n + 1",
            "goto live",
            "print $m",
        ],
    );
    assert!(
        said.contains("$13 = 24\n") && said.ends_with("$14 = 25\n"),
        "{said}"
    );
    let said = prompt(&live, &["print $nothing", "break leaf if $nothing > 1"]);
    assert_eq!(
        said.matches("$nothing is no register, and has not been set")
            .count(),
        2,
        "{said}"
    );
    // A condition reads the value that is set when a thread reaches it.
    let said = prompt(
        &live,
        &[
            "delete",
            "set $least = 3",
            "break factorial if n < $least",
            "c",
            "print n",
            "set $least 2",
            "c",
            "print n",
        ],
    );
    assert!(
        said.contains("$15 = 2\n") && said.ends_with("$16 = 1\n"),
        "{said}"
    );
    assert_eq!(text(&["set", "$n", "$1 + 1"]), "$n: 24 -> 21\n");
    assert_eq!(text(&["eval", "tempo = $n"]), "tempo = 21\n");
    assert_eq!(text(&["call", "sum_to(4)"]), "$17 = 6\n");
    assert!(text(&["restart"]).contains("stopped"), "it stops again");
    assert_eq!(text(&["print", "$n"]), "$18 = 21\n");
}

#[test]
fn parts_of_registers_are_those_of_gdb() {
    let live = Live::started("gdb-parts", &["--break", "leaf"], &program(), &[]);
    let lines = [
        "set $rax = 0x1122334455667788",
        "print $eax",
        "print $ax",
        "print $al",
        "print $ah",
        "set $eax = 5",
        "print/x $rax",
        "set $ah = -2",
        "print/x $rax",
        "print $ah",
        "set $r9 = 0xffffffffffffffff",
        "print $r9d",
        "print $r9w",
        "print $r9l",
        "print $cs",
    ];
    let theirs = gdb(
        &live,
        &[&["break leaf", "run > /dev/null"], &lines[..]].concat(),
    );
    let numbered = |text: &str| {
        let has_number = |line: &&str| {
            let rest = line.strip_prefix('$');
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let lines = text.lines().filter(has_number).map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    let said = prompt(&live, &lines);
    assert_eq!(numbered(&theirs).len(), 11, "{theirs}");
    assert_eq!(numbered(&said), numbered(&theirs), "{said}");
    let said = prompt(
        &live,
        &["set $eip = 5", "set $ds = 5", "info registers ah cs"],
    );
    assert!(said.contains("$eip cannot be read"), "{said}");
    assert!(
        said.contains("error: there is no register ds that can be written"),
        "{said}"
    );
    assert!(said.contains(" ah       | 0xfe"), "{said}");
}

#[test]
fn displays_have_formats_and_finish_numbers_its_value() {
    let live = Live::started("gdb-display", &["--break", "leaf"], &program(), &[]);
    let said = prompt(
        &live,
        &[
            "print 100",
            "display/x twice",
            "display/i $pc",
            "display/q twice",
            "finish",
            "print $ == $2",
        ],
    );
    assert!(said.contains("1: /x twice = 0x"), "{said}");
    assert!(
        said.contains("2: /i $pc = 0x") && said.contains("<leaf+"),
        "{said}"
    );
    assert!(said.contains("display has no format /q"), "{said}");
    assert!(said.contains(" ($2)\n"), "{said}");
    assert!(said.contains("$3 = true"), "{said}");
}

/// The compiler holds the offsets true.
#[test]
fn declarations_have_offsets_sizes_and_holes() {
    let source = r#"
#include <stddef.h>
struct inner { short a; };
struct all {
  char c; struct inner in; double d;
  union { int i; float f; struct { char low, high; }; };
  struct { int x[3]; unsigned u : 5; unsigned v : 9; } named[2];
  unsigned flags : 3; unsigned more : 7; long last; char tail;
};
_Static_assert(offsetof(struct all, in) == 2 && offsetof(struct all, d) == 8, "");
_Static_assert(offsetof(struct all, i) == 16 && offsetof(struct all, high) == 17, "");
_Static_assert(offsetof(struct all, named) == 20 && offsetof(struct all, last) == 56, "");
_Static_assert(offsetof(struct all, tail) == 64 && sizeof(struct all) == 72, "");
struct odd { int (*(*fpp)(void))(int, int); int (*(*tab[2])(int))(void); char name[16]; const char *const text; int (*call)(int); } odd;
struct all whole;
int main(void) { return whole.c; }
"#;
    let scratch = Scratch::new("gdb-ptype");
    let program = compiled(&scratch, "app.c", source, &["-g"]);
    let program = Program::new(program, scratch.path());
    let recording = Hindsight::recorded(&scratch, "app", &[], &program);
    let said = |line: &str| {
        let text = recording.prompt(&["goto last", line]).text();
        text.split_once('\n')
            .map_or(text.clone(), |(_, said)| said.to_owned())
    };
    let shown = "\
/* offset | size */      struct all {
/*      0 |    1 */          char c;
                             /* 1-byte hole */
/*      2 |    2 */          struct inner in;
                             /* 4-byte hole */
/*      8 |    8 */          double d;
/*     16 |    4 */          union {
/*     16 |    4 */              int i;
/*     16 |    4 */              float f;
/*     16 |    2 */              struct {
/*     16 |    1 */                  char low;
/*     17 |    1 */                  char high;
                                 };
                             };
/*     20 |   32 */          struct {
/*     20 |   12 */              int x[3];
/*   32: 0 |  5 bits */          unsigned int u : 5;
/*   32: 5 |  9 bits */          unsigned int v : 9;
                                 /* 2-byte 2-bit padding */
                             } named[2];
/*   52: 0 |  3 bits */      unsigned int flags : 3;
/*   52: 3 |  7 bits */      unsigned int more : 7;
                             /* 2-byte 6-bit hole */
/*     56 |    8 */          long int last;
/*     64 |    1 */          char tail;
                             /* 7-byte padding */
                             /* total size: 72 bytes */
                         }
";
    assert_eq!(said("ptype/o struct all"), shown);
    assert_eq!(said("ptype --offsets whole"), shown);
    let unfolded = said("ptype &whole");
    assert!(
        unfolded.contains("    union {\n        int i;\n"),
        "{unfolded}"
    );
    assert!(unfolded.contains("\n    } named[2];\n"), "{unfolded}");
    assert!(unfolded.ends_with("\n} *\n"), "{unfolded}");
    let odd = "    int (*(*fpp)(void))(int, int);\n    int (*(*tab[2])(int))(void);\n    char name[16];\n    const char * const text;\n    int (*call)(int);\n";
    let said = said("ptype odd");
    assert!(said.contains(odd), "{said}");
}

/// gdb says the same.
#[test]
fn references_have_the_size_of_their_targets_and_classes_their_own_names() {
    let source = r#"
struct Big { int a[100]; Big() { a[0] = 1; } int sum(int n) const { return a[0] + n; } };
__attribute__((noinline)) int look(const Big &big, double &factor) { return big.sum((int)factor); }
int main() { Big big; double factor = 2; return look(big, factor) & 1; }
"#;
    let live = Live::new("gdb-references");
    let program = compiled(&live.scratch, "app.cc", source, &["-g", "-O0"]);
    live.start(&["--break", "look"], &program, &[]);
    assert_eq!(live.print("sizeof(big)"), "400");
    assert_eq!(live.print("sizeof factor"), "8");
    assert_eq!(live.print("sizeof(big.a)"), "400");
    live.ask(&["break", "Big::sum"]);
    live.moved(&["continue"]);
    let said = live.command(&["ptype", "Big"]).run().text();
    assert!(said.starts_with("type = struct Big {"), "{said}");
}

/// A name that was refused is not offered again.
#[test]
fn a_static_member_is_offered_with_its_class() {
    let source = "namespace n { struct K { static int kept; }; int K::kept = 5; }\n\
        int main() { return n::K::kept - 5; }\n";
    let live = Live::new("gdb-static-members");
    let program = compiled(&live.scratch, "kept.cc", source, &["-g", "-O0"]);
    live.start(&["--break", "main"], &program, &[]);
    let said = prompt(&live, &["print kept", "print n::K::kept"]);
    assert!(said.contains("did you mean \"n::K::kept\"?"), "{said}");
    assert!(!said.contains("did you mean \"kept\"?"), "{said}");
    assert!(said.contains("$1 = 5\n"), "{said}");
}

/// Units before an address. What follows begins where they do, one unit at a time.
#[test]
fn memory_before_an_address_is_shown_as_in_gdb() {
    let live = Live::started("gdb-backwards", &["--break", "leaf"], &program(), &[]);
    let commands = [
        "x/-2dw &progress[2]",
        "x/-xw &progress[1]",
        "x/-9xb leaf+9",
        "x/-2xg leaf+16",
    ];
    for (command, theirs) in commands.into_iter().zip(of_gdb(&live, commands)) {
        let ours = prompt(&live, &[command]);
        assert_eq!(plain(&ours), theirs, "{command}");
    }
    let lines = ["x/-2xh leaf+8", "x", "x", "x/-1xh"];
    let mut words = vec!["break leaf", "run > /dev/null", "echo ~~~\\n"];
    words.extend(lines);
    let theirs = gdb(&live, &words);
    let (_, theirs) = theirs.split_once("~~~\n").expect("its own words end");
    assert_eq!(plain(&prompt(&live, &lines)), plain(theirs));
    // The instructions before one are those that lead to it.
    let three = prompt(&live, &["x/3i leaf"]);
    let rows: Vec<&str> = three.lines().collect();
    let third = rows[2].trim_start_matches("=> ").split([' ', ':']).next();
    let before = format!("x/-2i {}", third.expect("an address"));
    assert_eq!(
        prompt(&live, &[&before]),
        rows[..2].join("\n") + "\n",
        "{three}"
    );
    let said = prompt(&live, &["x/-3i leaf+1"]);
    assert!(
        said.contains("(ends here: no code of the function lies before)"),
        "{said}"
    );
    let said = prompt(&live, &["x/-2s &tempo"]);
    assert!(
        said.contains("texts are not shown backwards: where one begins is not known"),
        "{said}"
    );
}

/// The contents of a unit are signed in every format. Texts of wide characters are written to their end.
#[test]
fn units_are_signed_and_wide_texts_are_whole() {
    let scratch = Scratch::new("gdb-wide-program");
    let source = "#include <uchar.h>\n#include <wchar.h>\n\
        int table[] = { 1, -2 };\nlong large = -3;\nshort small = -4;\nsigned char tiny = -5;\n\
        wchar_t wide[] = L\"h\\u00e9llo\";\nconst wchar_t *pointed = wide;\n\
        char16_t sixteen[] = u\"six\\u00e9\";\nchar32_t thirty[] = U\"thirty\";\n\
        int main(void) { return table[0] - 1; }\n";
    let program = compiled(&scratch, "wide.c", source, &["-g", "-O0"]);
    let live = Live::started("gdb-wide", &["--break", "main"], &program, &[]);
    let units = [
        ("x/uw &table[1]", "-2"),
        ("x/xg &large", "-3"),
        ("x/th &small", "-4"),
    ];
    for (examine, value) in units {
        let said = prompt(&live, &[examine, "print $__", "print *$_ * 2 / 2"]);
        let shown = said.matches(&format!(" = {value}\n")).count();
        assert_eq!(shown, 2, "{examine}: {said}");
    }
    let said = prompt(&live, &["x/xb &tiny", "print $__ - 1"]);
    assert!(said.ends_with(" = -6\n"), "{said}");
    for (expression, text) in [
        ("wide", "h\u{e9}llo"),
        ("pointed", "h\u{e9}llo"),
        ("sixteen", "six\u{e9}"),
        ("thirty", "thirty"),
    ] {
        for directive in ["%s", "%ls"] {
            let said = prompt(
                &live,
                &[&format!("printf \"{directive}|\\n\", {expression}")],
            );
            assert_eq!(said, format!("{text}|\n"), "{directive} {expression}");
        }
    }
    let said = prompt(
        &live,
        &["printf \"%.2ls|%6s|%c|\\n\", wide, pointed, wide[1]"],
    );
    assert_eq!(said, "h\u{e9}| h\u{e9}llo|\u{e9}|\n");
    let said = prompt(&live, &["print pointed", "print &sixteen[0]"]);
    assert!(
        said.contains(" L\"h\u{e9}llo\"\n") && said.ends_with(" u\"six\u{e9}\"\n"),
        "{said}"
    );
}
