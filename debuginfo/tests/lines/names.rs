//! Functions by names of which something is left out.

use std::collections::BTreeSet;
use std::process::Command;

use super::common::share::{in_turn, share};
use super::common::{Bench, open, run};
use super::places::gdb_places;
use super::{built, own_functions, space};

/// Returns ways to name a function: its name with the types of its parameters, then with more and more omitted.
fn ways_to_name(function: &debuginfo::Function, demangled: &str, source: &str) -> Vec<String> {
    let bare = |name: &str| {
        let (mut depth, mut bare) = (0, String::new());
        for c in name.chars() {
            depth += i32::from(c == '<');
            if depth == 0 {
                bare.push(c);
            }
            depth -= i32::from(c == '>');
        }
        bare
    };
    let name = &function.name;
    // gdb cannot parse the names of lambdas.
    if name.contains("{lambda") {
        return Vec::new();
    }
    let mut ways = vec![name.clone(), format!("{source}:{name}")];
    // The names of operators, lambdas and conversions contain brackets themselves.
    if !name.contains(['{', '(']) && !name.contains("operator") {
        let bare = bare(name);
        let parts: Vec<&str> = bare.rsplit("::").collect();
        // The name of a class alone does not select its constructors.
        if parts.get(1).is_none_or(|class| !parts[0].ends_with(class)) {
            ways.push(parts[0].to_owned());
        }
        if let Some(at) = demangled.find('(') {
            ways.push(format!("{bare}{}", &demangled[at..]));
        }
        ways.push(bare);
    }
    ways
}

#[test]
fn whatever_is_left_out_of_a_name_gdb_finds_the_same_functions() {
    let mut compared = 0;
    for (compiler, level) in in_turn([("g++", "-O0"), ("clang++", "-O0"), ("g++", "-O1")]) {
        let built = built(compiler, "overloads.cpp", &["-g", level]);
        let space = space(&built.path);
        let mut ways = BTreeSet::new();
        for function in own_functions(&built) {
            let demangled = run(Command::new("c++filt").arg(&function.linkage));
            ways.extend(ways_to_name(&function, demangled.trim(), built.source));
        }
        ways.extend(
            [
                "show(char const *,unsigned long)",
                "show(const std::string &)",
            ]
            .map(str::to_owned),
        );
        ways.extend(["Stack<int>::push", "show(short)", "Queue::push"].map(str::to_owned));
        let ways: Vec<String> = ways.into_iter().collect();
        let (_, exact) = gdb_places(&built, 0, &as_specs("-qualified ", &ways));
        let (_, wild) = gdb_places(&built, 0, &as_specs("", &ways));
        for way in &ways {
            let ours: BTreeSet<u64> = space
                .function_places(way)
                .iter()
                .map(|p| p.address)
                .collect();
            let found = exact.get(&format!("spec:-qualified {way}"));
            let found = found.filter(|all| !all.is_empty());
            let found = found.or_else(|| wild.get(&format!("spec:{way}")));
            // gdb takes stubs of imported functions for these functions.
            let is_stub = |at: &u64| {
                let symbol = space.symbol_at(*at);
                symbol.is_some_and(|(name, _)| name.ends_with("@plt"))
            };
            let theirs = found.into_iter().flatten().map(|(a, _)| *a);
            let theirs: BTreeSet<u64> = theirs.filter(|at| !is_stub(at)).collect();
            assert_eq!(ours, theirs, "{way} of {}", built.what);
            compared += usize::from(!ours.is_empty());
        }
    }
    assert!(compared > share(100), "{compared} names");
}

/// Returns locations in gdb's syntax, preceded by options.
fn as_specs(options: &str, ways: &[String]) -> Vec<String> {
    ways.iter()
        .map(|way| format!("spec:{options}{way}"))
        .collect()
}

/// gcc states linker names only of some functions of classes that functions declare.
const DECLARED_INSIDE: &str = "volatile int s;
#define NI __attribute__((noinline))
NI void tick(int t) { s = s + t; }
template <class F> NI void each(F f) { for (int i = 0; i < 2; i++) { f(i); s = s + 1; } }
namespace app {
struct Shop {
  int sold = s;
  NI void sell() { each([&](int i) { tick(i + sold); }); }
};
NI void run(int k) {
  each([&](int i) { int t = i + k; tick(t); });
  struct Local { int by; void operator()(int i) { tick(i * by); } };
  each(Local{k});
}
}
namespace { struct Hidden { int by; void operator()(int i) { tick(i - by); } }; }
int main() {
  int k = s + 5;
  each([&](int i) { int t = i + k; tick(t); });
  each([&](auto i) { tick(i); });
  each(Hidden{k});
  app::run(k);
  app::Shop().sell();
}
";

#[test]
fn inlined_functions_of_unnamed_classes_are_named_after_the_function_that_declares_them() {
    let bench = Bench::new();
    let source = bench.write("app.cpp", DECLARED_INSIDE);
    let path = bench.compile("g++", &source, "app", &["-g", "-O2"]);
    let (space, module) = (space(&path), open(&path));
    let mut found = BTreeSet::new();
    for function in &module.functions().list {
        let code = function.svma.0..function.svma.0 + function.size;
        let calls = code.flat_map(|address| space.calls_at(address));
        let names = calls.filter_map(|call| Some(call.name?.to_string()));
        found.extend(names.filter(|name| name.contains("operator()")));
    }
    let expected = [
        "(anonymous namespace)::Hidden::operator()",
        "app::Shop::sell()::{lambda(int)#1}::operator()",
        "app::run(int)::Local::operator()",
        "app::run(int)::{lambda}::operator()",
        "main::{lambda}::operator()",
        "main::{lambda}::operator()<int>",
    ];
    assert_eq!(found, expected.map(str::to_owned).into());
}
