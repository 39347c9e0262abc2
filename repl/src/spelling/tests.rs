//! What gdb's users type, and the same in our words.

use super::*;

fn of(line: &str) -> Vec<String> {
    ours(line.split(' ').map(str::to_owned).collect())
}

fn check(lines: &[(&str, &str)]) {
    for (theirs, here) in lines {
        assert_eq!(of(theirs).join(" "), *here, "{theirs}");
    }
}

#[test]
fn values_are_shown_in_formats() {
    check(&[
        ("x/4xw &a", "x --format 4xw &a"),
        ("x /2i $pc", "x --format 2i $pc"),
        ("x $sp", "x $sp"),
        ("p/x a + 1", "print --format x a + 1"),
        ("print /t a", "print --format t a"),
        ("p/s name", "print --format natural name"),
        ("output 10", "print 10"),
        ("output --tail 10", "output --tail 10"),
        ("output", "output"),
        ("p a / b", "p a / b"),
        ("call/x f(1)", "eval --format x f(1)"),
        ("p", "print $"),
        ("p/x", "print --format x $"),
        ("p -pretty -- *n", "p *n"),
        ("print -elements 4 -pretty on -- a", "print a"),
        ("p/x -array -- a", "print --format x a"),
        ("p -array", "p -array"),
        ("whatis/x a", "whatis a"),
        ("x --session 1 /4xw &a", "x --session 1 --format 4xw &a"),
        ("p --json", "print --json $"),
        ("watch -l p->n", "watch p->n"),
        ("awatch -location p->n", "watch p->n --access"),
        ("x/-2xw &a", "x --format=-2xw &a"),
        ("x /-3i $pc", "x --format=-3i $pc"),
        ("p /-2x a", "p /-2x a"),
        ("p/f x", "print --format f x"),
        ("p/z x", "print --format z x"),
        ("display/i $pc", "display /i $pc"),
        ("display /x n", "display /x n"),
        ("display n", "display n"),
        ("rwatch x", "watch x --read"),
    ]);
}

#[test]
fn subjects_of_info_are_verbs() {
    check(&[
        ("info locals", "locals"),
        ("i r rax", "registers rax"),
        ("info handle 14", "info-signals 14"),
        ("info watchpoints", "watch list"),
        ("info functions -q -n add", "info-functions add"),
        ("info locals -q", "locals"),
        ("i b", "info-breakpoints"),
        ("info address total", "info-address total"),
        ("info scope settle", "info-scope settle"),
        ("info proc", "info-proc"),
        ("info source", "info-source"),
        ("info sh", "info-shared"),
        ("info line 36", "info-line 36"),
        ("info fun ^parse", "info-functions ^parse"),
        ("info var", "info-variables"),
        ("info app", "info app"),
        ("info --session 1 locals", "locals --session 1"),
        ("info --json line 3", "info-line --json 3"),
        ("info --json app", "info --json app"),
        ("info --session", "info --session"),
        ("info signals", "info-signals"),
        ("i", "i"),
        ("info frame", "info-frame"),
        ("i f 2", "info-frame 2"),
        ("info frame level 1", "info-frame 1"),
        ("info frame function main", "info-frame --function main"),
    ]);
}

#[test]
fn a_backtrace_has_ends_and_frames_have_names() {
    check(&[
        ("up -1", "down 1"),
        ("down -2", "up 2"),
        ("up 2", "up 2"),
        (
            "frame --session 1 function main",
            "frame --session 1 --function main",
        ),
        ("bt 5", "bt --limit 5"),
        ("bt full 3", "bt --locals --limit 3"),
        ("bt -5", "bt --outermost 5"),
        ("bt full -1", "bt --locals --outermost 1"),
        ("bt --limit 5", "bt --limit 5"),
        ("bt --thread 5 3", "bt --thread 5 --limit 3"),
        ("f 2", "frame 2"),
        ("frame function main", "frame --function main"),
        ("f level 1", "frame 1"),
        ("where", "where"),
        ("where 3", "backtrace --limit 3"),
        ("where -2", "backtrace --outermost 2"),
        ("where full", "backtrace --locals"),
        ("where --full", "where --full"),
    ]);
}

#[test]
fn commands_are_applied_to_threads() {
    check(&[
        ("taas p x", "thread-apply all p x"),
        ("taas bt 2", "backtrace --all --limit 2"),
        ("taas", "backtrace --all"),
        (
            "thread --json --session 1 apply all bt",
            "backtrace --json --session 1 --all",
        ),
        ("thread apply all p x --type", "thread-apply all p x --type"),
        ("thread apply all bt 2", "backtrace --all --limit 2"),
        ("thread apply all p x", "thread-apply all p x"),
        (
            "thread apply 7 8 p/x n",
            "thread-apply 7 8 print --format x n",
        ),
        ("thread apply all info locals", "thread-apply all locals"),
        ("thread apply 7 where", "thread-apply 7 backtrace"),
        ("thread 5", "thread 5"),
    ]);
}

#[test]
fn breakpoints_have_numbers() {
    check(&[
        ("delete breakpoints 2-3", "break remove 2 3"),
        ("delete breakpoints", "break remove --all"),
        ("disable breakpoints 2", "break disable 2"),
        ("delete display 1-2", "undisplay 1 2"),
        ("delete display", "undisplay --all"),
        ("delete", "break remove --all"),
        (
            "save --session 1 breakpoints f",
            "save-breakpoints --session 1 f",
        ),
        ("delete --session 1 2-3", "break --session 1 remove 2 3"),
        ("delete --all", "break remove --all"),
        ("delete all", "break remove --all"),
        ("delete 2", "break remove 2"),
        ("delete 2-4 7", "break remove 2 3 4 7"),
        ("disable 1-2", "break disable 1 2"),
        ("undisplay 1-2", "undisplay 1 2"),
        ("delete 4-2", "break remove 4-2"),
        ("delete 1-4294967295", "break remove 1-4294967295"),
        ("tbreak main", "break --once main"),
        ("br f if i == 3", "break f if i == 3"),
        ("d 2", "break remove 2"),
        ("d", "break remove --all"),
        ("disable 2", "break disable 2"),
    ]);
}

#[test]
fn moves_go_back() {
    check(&[
        ("u", "until"),
        ("until 12", "until 12"),
        ("step --session 1 back", "step-back --session 1"),
        ("n --json back 2", "next-back --json 2"),
        ("continue --session 1 back", "reverse-continue --session 1"),
        ("finish back", "reverse-finish"),
        ("step back 3", "step-back 3"),
        ("si 3", "step --instruction 3"),
        ("ni", "next --instruction"),
        ("reverse-stepi 3", "step-back --instruction 3"),
        ("rsi", "step-back --instruction"),
        ("reverse-nexti", "next-back --instruction"),
        ("rni 2", "next-back --instruction 2"),
    ]);
}

#[test]
fn lines_are_one_range() {
    check(&[
        ("list 10, 12 --json", "source 10,12 --json"),
        ("list --json 10,12", "list --json 10,12"),
        ("list --session 1 10,12", "list --session 1 10,12"),
        ("list 10,12 --session 1", "list 10,12 --session 1"),
        ("list --context 2 10, 12", "source --context 2 10,12"),
        ("list 10, 12 --context=2", "source 10,12 --context=2"),
        ("list --json -", "source --json --previous"),
        ("list -", "source --previous"),
        ("list 10,20", "list 10,20"),
        ("list 10, 20", "source 10,20"),
        ("disas /s main", "disassemble --source main"),
        ("disas $pc, +32", "disassemble $pc,+32"),
    ]);
}

#[test]
fn set_assigns() {
    check(&[
        ("set --session 1 var x = 3", "eval --session 1 x = 3"),
        ("set var x = 3 --session 1", "eval x = 3 --session 1"),
        ("set print pretty on --json", "set print pretty on --json"),
        ("set $n = a + 1", "set $n a + 1"),
        ("set var $n = 1", "set $n 1"),
        ("set $rax = 1", "eval $rax = 1"),
        ("set var x += 1", "eval x += 1"),
        ("set x <<= 1", "eval x <<= 1"),
        ("set x-=1", "eval x-=1"),
        ("set var x++", "eval x++"),
        ("set x--", "eval x--"),
        ("set x a<=b", "set x a<=b"),
        ("set var 3", "set var 3"),
        ("set var x = 3", "eval x = 3"),
        ("set x = 3", "eval x = 3"),
        ("set $rax=5", "eval $rax=5"),
        ("set x 3", "set x 3"),
        ("set x a==b", "set x a==b"),
    ]);
}

#[test]
fn no_words_stay_no_words() {
    assert!(ours(Vec::new()).is_empty());
}

#[test]
fn what_follows_the_target_of_set_is_one_value() {
    assert_eq!(of("set print pretty on"), ["set", "print", "pretty on"]);
    assert_eq!(of("set x a + 1"), ["set", "x", "a + 1"]);
    assert_eq!(of("set x 3 --json"), ["set", "x", "3", "--json"]);
}

#[test]
fn help_is_about_the_verb_here() {
    for (theirs, here) in [
        ("tbreak", "break"),
        ("info locals", "locals"),
        ("delete", "break"),
        ("info", "info"),
        ("record", "record"),
    ] {
        let words = theirs.split(' ').map(str::to_owned).collect();
        assert_eq!(verb_of(words), [here]);
    }
}
