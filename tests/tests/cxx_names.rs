//! Goal: a name of C++ means what it means in the source: members of base classes, static members, names that are imported from
//! namespaces; live, in messages and conditions, and in a recording of every instruction. What is ambiguous is refused. Method: a
//! program of two files that knows its values, by two compilers.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use std::path::{Path, PathBuf};

use e2e::{Hindsight, Live, Program, Scratch, Status, compiled, in_turn};

const APP: &str = "#include <cstdio>
template <typename T> struct Box {
  static int count;
  T held;
  int push(T now) {
    static int times = 0;
    times++;
    count += 2;
    held = now;
    return times;
  }
};
template <typename T> int Box<T>::count = 3;
int shared = -1, clash = -2;
struct Base { static int shared; int member = 1, hidden = 2; };
int Base::shared = 77;
struct Mid : Base { int mid = 3; };
struct Derived : Mid {
  int hidden = 20;
  int method() {
    int sum = hidden + Base::hidden;
    return sum + shared; // method
  }
  static int alone(int n) {
    return n + shared; // alone
  }
};
struct Left { int twin = 100; static int same; };
struct Right { int twin = 200; static int same; };
int Left::same = 8;
int Right::same = 9;
struct Both : Left, Right {
  int ask() {
    int sum = Left::twin + Right::twin;
    return sum; // ask
  }
};
struct Once : virtual Base {};
struct Again : virtual Base { int hidden = 6; };
struct Diamond : Once, Again {};
namespace very { namespace deep {
  int depth = 9, clash = 10;
  struct Part { int x = 4; static int all; };
  int Part::all = 6;
  enum Tone { LOW = 41 };
  Tone tone = LOW;
} }
namespace other { int depth = 1000, clash = 1001, apart = 5; struct Part { long x[4]; }; }
namespace alias = very::deep;
namespace outer { namespace inner = alias; inline namespace v1 { int current = 71; } }
namespace client {
  using namespace very::deep;
  int run() {
    int sum = depth;
    return sum; // client
  }
}
int block() {
  using very::deep::clash;
  namespace near = very::deep;
  int sum = clash + near::depth;
  return sum; // block
}
int foreign();
int main() {
  Box<int> box{4};
  Derived derived;
  Both both;
  Diamond diamond;
  int sum = box.push(5) + box.push(6) + derived.method() + Derived::alone(1) + both.ask() + client::run() + block();
  std::printf(\"%d %d\\n\", sum, foreign() + diamond.hidden + other::depth + other::apart + other::clash);
  return 0; // main
}
";

const OTHER: &str = "namespace { int secret = 65; }
static int own = 66;
int foreign() { return secret + own; }
";

/// Globals have the names of what is nearer: captured variables, members of a captured object, a local enumerator. `count` is
/// a static member of a class that has nothing to do with the function.
const NEARER: &str = "#include <cstdio>
int cap = -1, total = -4, e1 = -12;
struct Kid { static int count; };
int Kid::count = 55;
struct S {
  int total;
  auto copied() { return [*this](int a) mutable {
    total += a;
    return total;
  }; }
  auto shared() { return [this](int a) {
    total += a;
    return total + 1;
  }; }
};
int capture(int n) {
  enum { e1 = 8 };
  int cap = n + 10;
  auto f = [cap](int a) mutable {
    cap += a;
    return cap * 2;
  };
  return f(5) + e1;
}
int main() {
  S s{10};
  int r = capture(1) + s.copied()(7) + s.shared()(6);
  std::printf(\"%d %d\\n\", r, s.total + Kid::count);
  return 0;
}
";

/// At line 8, the object is in no register any more.
const LOST: &str = "#include <cstdio>
int total = 77;
struct Tally { int total, other; __attribute__((noinline)) int take(int n); };
int Tally::take(int n) {
  int taken = total + n;
  other = taken;
  std::puts(\"taken\");
  return taken;
}
int main(int argc, char **) {
  Tally tally{argc, 2};
  return tally.take(3) + total == 0;
}
";

fn line_of(mark: &str) -> String {
    let mark = format!("// {mark}");
    let at = APP.lines().position(|line| line.ends_with(&mark));
    format!("app.cc:{}", at.expect("a line of the program") + 1)
}

fn built(scratch: &Scratch, compiler: &str) -> PathBuf {
    for (file, source) in [("app.cc", APP), ("other.cc", OTHER)] {
        std::fs::write(scratch.join(file), source).expect("the test's folder is writable");
    }
    let arguments = ["-std=c++17", "-g", "-O0", "-o", "app", "app.cc", "other.cc"];
    let built = Program::new(compiler, scratch.path()).args(arguments).run();
    assert_eq!(built.status, Status::Code(0), "{}", built.errors());
    scratch.join("app")
}

fn each_compiler(name: &str, check: impl Fn(&Path)) {
    for compiler in in_turn(["/usr/bin/g++", "/usr/bin/clang++"]) {
        let short = compiler.rsplit('/').next().unwrap_or(compiler);
        let scratch = Scratch::new(&format!("{name}-{}", short.replace('+', "x")));
        check(&built(&scratch, compiler));
    }
}

/// Stops a program at a mark, and compares values there.
fn values_at(app: &Path, mark: &str, wanted: &[(&str, &str)]) -> Live {
    let live = Live::started(
        &format!("cxx-{mark}"),
        &["--break", &line_of(mark)],
        app,
        &[],
    );
    for (expression, value) in wanted {
        assert_eq!(live.print(expression), *value, "{mark}: {expression}");
    }
    live
}

/// What an error says, with its next step.
fn refusal(live: &Live, expression: &str) -> String {
    let refused = live.refused(&["print", expression]);
    let text = |key: &str| refused[key].as_str().unwrap_or_default().to_owned();
    format!("{} {}", text("message"), text("hint"))
}

#[test]
fn members_of_base_classes_are_named_with_their_class() {
    each_compiler("cxx-bases", |app| {
        let wanted = [
            ("hidden", "20"),
            ("Base::hidden", "2"),
            ("Mid::hidden", "2"),
            ("Mid::Base::hidden", "2"),
            ("Derived::hidden", "20"),
            ("this->Base::hidden", "2"),
            ("Base::member + Mid::mid", "4"),
        ];
        values_at(app, "method", &wanted);
        let wanted = [
            ("derived.Base::hidden", "2"),
            ("derived.Mid::Base::hidden", "2"),
            ("derived.Derived::hidden", "20"),
            ("(&derived)->Mid::hidden", "2"),
            ("diamond.member", "1"),
            // The one of the class that is derived from the virtual base.
            ("diamond.hidden", "6"),
            ("both.Right::twin", "200"),
        ];
        let live = values_at(app, "main", &wanted);
        assert!(refusal(&live, "Base::member").contains("only in an object"));
    });
}

#[test]
fn what_two_base_classes_have_is_refused() {
    each_compiler("cxx-both", |app| {
        let live = values_at(
            app,
            "ask",
            &[
                ("Left::twin", "100"),
                ("Right::twin", "200"),
                ("Right::same", "9"),
            ],
        );
        for name in ["twin", "this->twin", "same", "Both::same"] {
            let told = refusal(&live, name);
            let last = name.rsplit(['>', ':']).next().unwrap_or(name);
            let both = format!("{last} is ambiguous: Left::{last} or Right::{last}");
            assert!(told.contains(&both), "{name}: {told}");
        }
        let place = line_of("ask");
        let refused = live.refused(&["break", &place, "--condition", "twin == 100"]);
        assert!(refused.to_string().contains("ambiguous"), "{refused:#}");
    });
}

/// Of a global variable that has the name, too, nothing is shown.
#[test]
fn static_members_are_inherited() {
    each_compiler("cxx-static", |app| {
        let wanted = [
            ("shared", "77"),
            ("Derived::shared", "77"),
            ("::shared", "-1"),
        ];
        values_at(app, "method", &wanted);
        values_at(app, "alone", &wanted);
        let wanted = [
            ("shared", "-1"),
            ("Derived::shared", "77"),
            ("Mid::shared + Base::shared", "154"),
            ("derived.shared", "77"),
            ("Box<int>::count", "7"),
            ("Box< int >::count", "7"),
            ("sizeof(Box<int>)", "4"),
            ("((Box<int> *)&box)->held", "6"),
            ("Box<int>::push::times", "2"),
            ("sum < 3", "false"),
        ];
        let live = values_at(app, "main", &wanted);
        let refused = live.refused(&["print", "Box::count"]);
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(message.contains("Box"), "{refused}");
    });
}

#[test]
fn lists_have_the_names_with_their_namespaces() {
    each_compiler("cxx-lists", |app| {
        let live = values_at(app, "client", &[]);
        let named = |verb: &str, pattern: &str| -> Vec<String> {
            let reply = live.ask(&[verb, pattern]);
            let types = reply["types"].as_array().into_iter().flatten();
            let variables = reply["variables"].as_array().into_iter().flatten();
            let names = types.chain(variables.map(|line| &line["name"]));
            names
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect()
        };
        let types = ["very::deep::Part", "very::deep::Tone"];
        assert_eq!(named("info-types", "^very::deep::"), types);
        assert_eq!(named("info-types", "^Part$"), types[..1]);
        let part = ["very::deep::Part::all"];
        assert_eq!(named("info-variables", "Part::"), part);
        let rows = live
            .command(&["info", "variables", "^very::deep::depth"])
            .run();
        assert!(
            rows.text().contains("very::deep::depth | int"),
            "{}",
            rows.text()
        );
    });
}

#[test]
fn what_namespaces_import_has_their_names() {
    each_compiler("cxx-imports", |app| {
        let wanted = [
            ("alias::depth", "9"),
            ("alias::Part::all", "6"),
            ("sizeof(alias::Part)", "4"),
            ("alias::LOW + 1", "42"),
            ("outer::inner::depth", "9"),
            ("outer::current", "71"),
            ("client::depth", "9"),
            ("other::depth", "1000"),
            ("clash", "-2"),
        ];
        values_at(app, "main", &wanted);
        let wanted = [
            ("depth", "9"),
            ("sizeof(Part)", "4"),
            ("Part::all", "6"),
            ("clash", "-2"),
        ];
        values_at(app, "client", &wanted);
        let wanted = [
            ("clash", "10"),
            ("::clash", "-2"),
            ("near::depth", "9"),
            ("sizeof(near::Part)", "4"),
        ];
        values_at(app, "block", &wanted);
    });
}

#[test]
fn a_member_of_a_lost_object_is_no_global_variable() {
    let scratch = Scratch::new("cxx-lost");
    // Without call sites and entry values, nothing tells where the object was.
    let flags = ["-g", "-O2", "-gdwarf-3", "-gstrict-dwarf"];
    let app = compiled(&scratch, "lost.cc", LOST, &flags);
    let live = Live::started("cxx-lost-live", &["--break", "lost.cc:8"], &app, &[]);
    assert!(refusal(&live, "total").contains("optimized out"));
    assert_eq!(live.print("::total"), "77");
}

#[test]
fn what_is_nearer_hides_a_global_variable() {
    for compiler in in_turn(["/usr/bin/g++", "/usr/bin/clang++"]) {
        let scratch = Scratch::new("cxx-nearer");
        std::fs::write(scratch.join("near.cc"), NEARER).expect("the test's folder is writable");
        let arguments = ["-std=c++17", "-g", "-O0", "-o", "near", "near.cc"];
        let built = Program::new(compiler, scratch.path()).args(arguments).run();
        assert_eq!(built.status, Status::Code(0), "{}", built.errors());
        let wanted = [
            (9, "total + 0", "17"),
            (13, "total + 0", "16"),
            (21, "cap + 0", "16"),
            (23, "e1 + 0", "8"),
        ];
        for (line, expression, value) in wanted {
            let place = format!("near.cc:{line}");
            let app = scratch.join("near");
            let live = Live::started("cxx-nearer-live", &["--break", &place], &app, &[]);
            assert_eq!(live.print(expression), value, "{compiler}: {place}");
            assert!(refusal(&live, "count").contains("count"));
            assert_eq!(live.print("Kid::count"), "55");
        }
    }
}

#[test]
fn variables_of_other_files_are_told_so() {
    each_compiler("cxx-files", |app| {
        let live = values_at(
            app,
            "main",
            &[("'other.cc'::own", "66"), ("'other.cc'::secret", "65")],
        );
        for (name, value) in [("own", "66"), ("secret", "65")] {
            let found = live.ask(&["print", name]);
            assert_eq!(found["value"], value, "{name}");
            assert_eq!(found["note"], format!("{name} is private to other.cc"));
        }
        assert!(live.ask(&["print", "shared"])["note"].is_null());
    });
}

#[test]
fn messages_conditions_and_the_past_know_them() {
    let scratch = Scratch::new("cxx-past");
    let app = built(&scratch, "/usr/bin/g++");
    let program = Program::new(&app, scratch.path());
    let text = "{Base::hidden}/{shared}/{Derived::shared}/{alias::depth}/{Box<int>::count}";
    let condition =
        "Base::hidden == 2 && shared == 77 && alias::depth < 10 && Box<int>::count == 7";
    let place = line_of("method");
    let options = ["--logpoint", &place, text];
    let live = Hindsight::recorded(&scratch, "live", &options, &program);
    let rows = live.rows("SELECT text FROM events WHERE kind = 'logpoint' ORDER BY seq");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["text"], "2/77/77/9/7");
    let full = Hindsight::recorded(&scratch, "full", &["--full"], &program);
    let breakpoint = format!("break {place} if {condition}");
    let steps = [
        "goto first",
        &breakpoint,
        "continue",
        "print Base::hidden + shared + alias::depth",
    ];
    let found = full.prompt(&steps).text();
    assert!(found.contains("$1 = 88"), "{found}");
    let stopped = Live::new("cxx-condition");
    stopped.start(&["--stop-on-entry"], &app, &[]);
    stopped.ask(&["break", &place, "--condition", condition]);
    stopped.moved(&["continue"]);
    assert_eq!(stopped.print("sum"), "22");
}

const DIRECTIVES: &str = "namespace a { int x = 1, y = 7, z = 8; }
namespace b { int x = 2; }
namespace c {
  using namespace a;
  using namespace b;
  int y = 5;
  namespace d {
    using namespace a;
    int z = 6;
    int f(int n) {
      return n + y + z - 6; // here
    }
  }
}
int main() { return c::d::f(a::x + b::x - 8 + a::y - 7); }
";

/// What a directive gives is nearer than nothing: of two that give a name, neither is meant, and a name of a namespace between
/// hides it.
#[test]
fn what_two_namespaces_give_is_refused() {
    let scratch = Scratch::new("cxx-two");
    let app = compiled(&scratch, "app.cc", DIRECTIVES, &["-g", "-O0"]);
    let at = DIRECTIVES
        .lines()
        .position(|line| line.ends_with("// here"));
    let place = format!("app.cc:{}", at.expect("a line of the program") + 1);
    let live = Live::started("cxx-two-stop", &["--break", &place], &app, &[]);
    let told = refusal(&live, "x");
    assert!(told.contains("a::x or b::x"), "{told}");
    let wanted = [
        ("a::x", "1"),
        ("y", "5"),
        ("d::y", "7"),
        ("c::d::y", "7"),
        ("z", "6"),
        ("d::z", "6"),
    ];
    for (name, value) in wanted {
        assert_eq!(live.print(name), value, "{name}");
    }
}
