//! Completion by Tab at the prompt: verbs, functions, files, variables, tables.

use server::inspect::GENERAL_REGISTERS;
use server::verbs::{Takes, find};

use super::line::is_sql;
use crate::prompt::editor::Language;
use crate::spelling;

/// Returns the names of verbs, including aliases.
pub fn names(command: &clap::Command) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for verb in command.get_subcommands() {
        names.push(verb.get_name().to_owned());
        names.extend(verb.get_all_aliases().map(str::to_owned));
    }
    names
}

/// Returns the variables at the moment when Tab is pressed.
pub type Variables = Box<dyn Fn() -> Vec<String>>;

/// Returns the members of an expression at the moment when Tab is pressed.
pub type Members = Box<dyn Fn(&str) -> Vec<String>>;

/// All possible completions.
pub struct Words {
    verbs: Vec<String>,
    functions: Vec<String>,
    files: Vec<String>,
    /// What completes SQL.
    sql: crate::prompt::Words,
    /// Variables of the selected frame's function.
    locals: Variables,
    /// Variables of the program, offered once a part of the name is typed.
    globals: Variables,
    /// Texts of notes.
    notes: Variables,
    /// Numbers of breakpoints and of what else stops.
    breakpoints: Variables,
    /// Numbers of threads.
    threads: Variables,
    /// Members of what an expression stands for.
    members: Members,
}

/// What `catch` takes.
const CAUGHT: [&str; 14] = [
    "catch", "exec", "fork", "list", "load", "panic", "remove", "rethrow", "signal", "syscall",
    "throw", "vfork", "disable", "enable",
];
/// What `handle` takes after a signal.
const HANDLED: [&str; 5] = ["noprint", "nostop", "pass", "print", "stop"];

/// What may stand at a place of a line.
enum Expected {
    Words(&'static [&'static str]),
    Subjects,
    Breakpoint,
    Thread,
    Registers,
    /// An expression that may begin with a function.
    Called,
    Other(Takes),
}

/// Returns what may stand after these words of a line.
fn place(words: &[&str]) -> Expected {
    match words {
        [_, .., "struct" | "class" | "union" | "enum"] => Expected::Other(Takes::Others),
        [_, rest @ ..] if rest.contains(&"if") => Expected::Other(Takes::Expression),
        ["info" | "inf" | "i"] => Expected::Subjects,
        ["catch" | "tcatch"] => Expected::Words(&CAUGHT),
        ["catch" | "tcatch", "signal"] | ["handle"] => Expected::Words(&store::signals::NAMES),
        ["handle", ..] => Expected::Words(&HANDLED),
        ["condition" | "ignore" | "commands"] => Expected::Breakpoint,
        ["delete" | "del" | "d" | "enable" | "disable", ..] => Expected::Breakpoint,
        ["break" | "b" | "catch", "remove" | "enable" | "disable", ..] => Expected::Breakpoint,
        ["thread" | "t"] => Expected::Thread,
        [
            "tbreak" | "tb" | "hbreak" | "hb" | "thbreak" | "br" | "rbreak" | "trace" | "list"
            | "l",
            ..,
        ] => Expected::Other(Takes::Location),
        _ => place_of_verb(words),
    }
}

/// Returns what a verb takes, however it is spelled: `p/x`, `info line`, `thread apply all print`.
fn place_of_verb(words: &[&str]) -> Expected {
    let words = spelling::ours(all_of(words));
    let at = match words.first().map(String::as_str) {
        Some("thread-apply") => 1 + spelling::applied_at(&words[1..]),
        _ => 0,
    };
    let verb = words.get(at).map(String::as_str).unwrap_or_default();
    match verb {
        "registers" => Expected::Registers,
        "call" | "eval" | "info-address" | "info-symbol" => Expected::Called,
        verb => Expected::Other(find(verb).map_or(Takes::Others, |verb| verb.takes)),
    }
}

fn all_of(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Arguments of `goto` other than numbers.
const PLACES: [&str; 6] = ["first", "last", "crash", "live", "output:", "@"];
/// Words that the prompt knows in addition to verbs.
const WRITTEN: [&str; 15] = [
    "alias",
    "back",
    "compare",
    "continue where",
    "delete",
    "help",
    "next back",
    "next difference",
    "other",
    "previous difference",
    "quit",
    "save breakpoints",
    "step back",
    "unalias",
    "unwatch",
];

/// Returns all words that a line may begin with.
pub fn written(command: &clap::Command) -> Vec<String> {
    let mut verbs = names(command);
    verbs.extend(WRITTEN.map(str::to_owned));
    verbs.sort_unstable();
    verbs.dedup();
    verbs
}

impl Words {
    /// Makes the completions.
    pub fn of(
        mut verbs: Vec<String>,
        mut functions: Vec<String>,
        files: Vec<String>,
        [locals, globals, notes, breakpoints, threads]: [Variables; 5],
        members: Members,
    ) -> Words {
        let mut files: Vec<String> = files.iter().map(|name| format!("{name}:")).collect();
        for words in [&mut verbs, &mut functions, &mut files] {
            words.sort_unstable();
            words.dedup();
        }
        Words {
            verbs,
            sql: crate::prompt::Words::of_recording(functions.clone()),
            functions,
            files,
            locals,
            globals,
            notes,
            breakpoints,
            threads,
            members,
        }
    }

    fn complete(&self, line: &str, cursor: usize) -> (usize, Vec<String>) {
        let before = &line[..cursor];
        if is_sql(before) && before.trim_start().contains(char::is_whitespace) {
            let offer = self.sql.complete(line, cursor, &[]);
            return (offer.start, offer.words);
        }
        let first = before.split_whitespace().next().unwrap_or_default();
        let whole = before.rfind(char::is_whitespace).unwrap_or(0);
        let words: Vec<&str> = before[..whole].split_whitespace().collect();
        let place = place(&words);
        let takes = match place {
            Expected::Other(takes) => takes,
            Expected::Called => Takes::Expression,
            _ => Takes::Others,
        };
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let behind = |at: usize| at + before[at..].chars().next().map_or(0, char::len_utf8);
        let start = match before.len() > first.len() {
            true if takes == Takes::Expression => before.rfind(|c| !is_part(c)).map(behind),
            // Notes contain spaces.
            true if takes == Takes::Moment => before.find('@'),
            _ => None,
        };
        let start = start.or_else(|| before.rfind(char::is_whitespace).map(behind));
        let start = start.unwrap_or(0);
        let typed = &before[start..];
        let candidates: Vec<String> = if start == 0 || first == "help" {
            self.verbs.clone()
        } else if let Expected::Words(words) = place {
            all_of(words)
        } else if let Expected::Subjects = place {
            spelling::info_subjects().map(str::to_owned).collect()
        } else if let Expected::Breakpoint = place {
            (self.breakpoints)()
        } else if let Expected::Thread = place {
            (self.threads)()
        } else if matches!(place, Expected::Registers)
            || takes == Takes::Expression && before[..start].ends_with('$')
        {
            all_of(&GENERAL_REGISTERS)
        } else if takes == Takes::Location {
            [&self.functions[..], &self.files[..]].concat()
        } else if takes == Takes::Expression
            && ["->", "."].iter().any(|dot| before[..start].ends_with(dot))
        {
            object_before(&before[..start]).map_or_else(Vec::new, |object| (self.members)(object))
        } else if takes == Takes::Expression {
            let mut names = (self.locals)();
            if !typed.is_empty() {
                names.extend((self.globals)());
                if let Expected::Called = place {
                    names.extend(self.functions.iter().cloned());
                }
            }
            names
        } else if takes == Takes::Moment {
            let notes = (self.notes)().into_iter().map(|note| format!("@{note}"));
            PLACES.map(str::to_owned).into_iter().chain(notes).collect()
        } else {
            Vec::new()
        };
        let fitting = candidates.into_iter().filter(|c| c.starts_with(typed));
        let mut fitting: Vec<String> = fitting.collect();
        fitting.sort_unstable();
        fitting.dedup();
        if let (0, [only]) = (start, &mut fitting[..]) {
            only.push(' ');
        }
        (start, fitting)
    }
}

/// Returns the expression whose member is about to be named: `a[1].b` before `a[1].b->`.
fn object_before(text: &str) -> Option<&str> {
    let text = text.strip_suffix("->").or_else(|| text.strip_suffix('.'))?;
    let mut depth = 0usize;
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' | ']' => depth += 1,
            '(' | '[' if depth == 0 => break,
            '(' | '[' => depth -= 1,
            _ if depth > 0 => {}
            '>' if text[..at].ends_with('-') => {}
            '-' if text[at..].starts_with("->") => {}
            c if c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '$') => {}
            _ => break,
        }
        start = at;
    }
    let object = &text[start..];
    (!object.is_empty() && !object.starts_with(|c: char| c.is_ascii_digit())).then_some(object)
}

impl Language for Words {
    const HAS_STATEMENTS: bool = false;

    fn offers(&self, line: &str, cursor: usize) -> (usize, Vec<String>) {
        self.complete(line, cursor)
    }

    fn is_whole(_: &str) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tab_offers_what_fits_the_place() {
        let words = Words {
            verbs: vec!["goto".into(), "print".into(), "step".into()],
            functions: vec!["parse".into(), "print_all".into()],
            files: vec!["parse.c:".into()],
            sql: crate::prompt::Words::of_recording(vec!["parse".into()]),
            locals: Box::new(|| vec!["price".into(), "order".into()]),
            globals: Box::new(|| vec!["orders".into(), "price".into()]),
            notes: Box::new(|| vec!["before the crash".into(), "odd".into()]),
            breakpoints: Box::new(|| vec!["1".into(), "12".into()]),
            threads: Box::new(|| vec!["4711".into()]),
            members: Box::new(|of| match of {
                "order" | "list[n + 1].next" => vec!["price".into(), "total".into()],
                _ => Vec::new(),
            }),
        };
        let offered = |line: &str| words.complete(line, line.len()).1;
        assert_eq!(offered("pr"), ["print "]);
        assert_eq!(offered("print "), ["order", "price"]);
        assert_eq!(offered("print order."), ["price", "total"]);
        assert_eq!(offered("print 2 * order->to"), ["total"]);
        assert_eq!(offered("print f(list[n + 1].next->pr"), ["price"]);
        assert_eq!(offered("print 1."), Vec::<String>::new());
        assert_eq!(offered("help st"), ["step"]);
        assert_eq!(offered("break p"), ["parse", "parse.c:", "print_all"]);
        assert_eq!(offered("goto f"), ["first"]);
        assert_eq!(offered("goto li"), ["live"]);
        assert_eq!(offered("goto @"), ["@", "@before the crash", "@odd"]);
        assert_eq!(offered("goto @before the"), ["@before the crash"]);
        assert_eq!(offered("select * from ca"), ["calls "]);
        assert_eq!(offered("select * from calls where dur"), ["dur_ns"]);
        assert_eq!(
            offered("select * from calls where function = 'pa"),
            ["parse'"]
        );
        assert_eq!(offered("print p"), ["price"]);
        assert_eq!(offered("print 2*(o"), ["order", "orders"]);
        assert_eq!(offered("print 2×p"), ["price"]);
        assert!(offered("threads p").is_empty());
    }

    #[test]
    fn tab_knows_what_other_words_take() {
        let nothing = || -> Variables { Box::new(Vec::new) };
        let words = Words::of(
            vec!["info".into()],
            vec!["parse".into()],
            vec!["parse.c".into()],
            [
                Box::new(|| vec!["price".into()]),
                nothing(),
                nothing(),
                Box::new(|| vec!["1".into(), "12".into()]),
                Box::new(|| vec!["4711".into()]),
            ],
            Box::new(|_| Vec::new()),
        );
        let offered = |line: &str| words.complete(line, line.len()).1;
        for verb in [
            "tbreak", "rbreak", "trace", "list", "until", "advance", "tb",
        ] {
            assert_eq!(
                offered(&format!("{verb} p")),
                ["parse", "parse.c:"],
                "{verb}"
            );
        }
        for verb in ["ptype", "whatis"] {
            assert_eq!(offered(&format!("{verb} p")), ["price"], "{verb}");
        }
        assert_eq!(offered("info f"), ["files", "frame", "functions"]);
        assert_eq!(offered("handle SIGUSR1 no"), ["noprint", "nostop"]);
        assert_eq!(offered("handle SIGU"), ["SIGURG", "SIGUSR1", "SIGUSR2"]);
        assert_eq!(offered("catch s"), ["signal", "syscall"]);
        assert_eq!(offered("catch signal SIGF"), ["SIGFPE"]);
        for line in [
            "condition ",
            "ignore ",
            "delete ",
            "delete 1 ",
            "break remove ",
            "catch remove ",
        ] {
            assert_eq!(offered(line), ["1", "12"], "{line}");
        }
        assert_eq!(offered("condition 1 p"), ["price"]);
        for line in [
            "p/x p",
            "x/4xw p",
            "display/i p",
            "inspect p",
            "print --format x p",
            "break parse if p",
            "tbreak parse if 2 * p",
            "thread apply all p p",
            "thread apply 1 2 p/x p",
        ] {
            assert_eq!(offered(line), ["price"], "{line}");
        }
        for line in ["info line p", "info scope p"] {
            assert_eq!(offered(line), ["parse", "parse.c:"], "{line}");
        }
        for line in ["call p", "info symbol p", "info address p"] {
            assert_eq!(offered(line), ["parse", "price"], "{line}");
        }
        for line in ["p $ra", "x/4xw $ra", "info registers ra"] {
            assert_eq!(offered(line), ["rax"], "{line}");
        }
        assert!(offered("ptype struct p").is_empty());
        assert_eq!(offered("thread "), ["4711"]);
        assert_eq!(offered("in"), ["info "]);
    }
}
