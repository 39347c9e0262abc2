//! What programs make of addresses, which are others in each run: numbers, the order in tables, and other calls.

use std::fs;

use e2e::{Program, Scratch, lua_source};
use serde_json::Value;

use crate::{build, compare, ends_with, record};

/// Hashes of addresses: shifted, mixed with others, and as positions in a table.
const MADE: &str = r#"#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define APART __attribute__((noinline))
struct pair { const char *first, *second; };
static struct pair pairs[3];
static char places[4096];
APART size_t hash_of(const void *p) { return (uintptr_t)p >> 4; }
APART unsigned slot_of(size_t hash, unsigned count) { return hash % count; }
APART size_t mixed(const struct pair *of) { return hash_of(of->first) * 0x9E3779B97F4A7C15u ^ hash_of(of->second); }
APART int use(size_t hash, int n) { return n + (hash != 0); }
int main(void) {
  int sum = 0, first = atoi(getenv("FIRST"));
  for (int i = 0; i < 3; i++) {
    pairs[i] = (struct pair){places + 160 * i, places + 320};
    slot_of(hash_of(pairs[i].first), 1009);
    sum += use(mixed(&pairs[i]), i + first);
  }
  printf("%d\n", sum > 0);
  return 0;
}
"#;

/// A table whose keys are addresses: which of them collide is chance.
const TABLE: &str = r#"#include <cstdio>
#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <vector>
struct Node { int id; };
static int visit(std::unordered_map<const Node *, int> &depth, const Node *node, int d) { return depth[node] = d; }
int main() {
  std::vector<std::unique_ptr<Node>> all;
  std::unordered_map<const Node *, int> depth;
  int sum = 0, first = std::atoi(std::getenv("FIRST"));
  for (int i = 0; i < 60; i++) all.push_back(std::make_unique<Node>(Node{i}));
  for (auto &node : all) sum += visit(depth, node.get(), node->id + first);
  for (auto &node : all) sum += depth.count(node.get()) + depth.at(node.get());
  std::printf("%d\n", sum > 0);
}
"#;

/// A hash of which nothing tells that it is one.
const HASHED: &str = r#"#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
static uint32_t hash_pointer(const void *p) { return (uint64_t)(uintptr_t)p * 0x9E3779B97F4A7C15ull >> 32; }
int main(void) {
  uint32_t sum = 0;
  for (int i = 0; i < 20; i++) sum ^= hash_pointer(malloc(24));
  printf("%d\n", sum >= 0);
  return 0;
}
"#;

const LUA: &str = r#"#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
int main(void) {
  lua_State *state = luaL_newstate();
  luaL_openlibs(state);
  int failed = luaL_dostring(state,
    "local t, sum = {}, 0\n"
    "for i = 1, 200 do t['k' .. i] = i end\n"
    "for i = 1, 200 do sum = sum + t['k' .. i] end\n"
    "print(sum, #table.concat({'a', 'b'}, ','))\n");
  lua_close(state);
  return failed;
}
"#;

fn built(scratch: &Scratch, file: &str, source: &str, compiler: &str) -> Program {
    fs::write(scratch.join(file), source).expect("the test's folder is writable");
    build(scratch.path(), &format!("{compiler} -O0 -g -o app {file}"));
    Program::new(scratch.join("app"), scratch.path())
}

/// Records a program twice, and once with another number, which must be found.
fn only_the_number_differs(name: &str, program: impl Fn(&Scratch) -> Program, note: &str) {
    let scratch = Scratch::new(name);
    for (run, first) in [("one", "1"), ("two", "1"), ("other", "2")] {
        record(&scratch, run, &[], &program(&scratch).env("FIRST", first));
    }
    let ended = compare(&scratch, &["one", "two"]);
    assert!(ended.text().contains(note), "{}", ended.text());
    ends_with(&ended, 0);
    let found = compare(&scratch, &["one", "other", "--json"]).result();
    let parting = &found["threads"][0]["parting"];
    assert_eq!(parting["function"], "main", "{parting:#}");
    assert_eq!(parting["how"], "arguments", "{parting:#}");
    let values = parting["values"].as_array().expect("values");
    let is_number = |value: &Value| value["a"] == "1" && value["b"] == "2";
    assert!(values.iter().any(is_number), "{parting:#}");
}

#[test]
fn numbers_made_of_addresses_are_no_difference() {
    let note = "numbers made of addresses were not compared in 18 calls of hash_of, mixed, slot_of and 1 more";
    let program = |scratch: &Scratch| built(scratch, "made.c", MADE, "gcc");
    only_the_number_differs("compare-made", program, note);
}

#[test]
fn how_a_table_of_addresses_is_searched_is_no_difference() {
    let note = "hash tables keyed by addresses differ in each run";
    let program = |scratch: &Scratch| built(scratch, "table.cc", TABLE, "g++ -std=c++17");
    only_the_number_differs("compare-table", program, note);
}

#[test]
fn an_address_that_may_make_the_difference_is_named() {
    let scratch = Scratch::new("compare-hashed");
    let program = built(&scratch, "hashed.c", HASHED, "gcc");
    let runs: [(&str, &[&str]); 4] = [
        ("one", &[]),
        ("two", &[]),
        ("fixed", &["--no-aslr"]),
        ("fixed2", &["--no-aslr"]),
    ];
    for (name, options) in runs {
        record(&scratch, name, options, &program);
    }
    let ended = compare(&scratch, &["one", "two"]);
    let text = ended.text();
    assert!(
        text.contains("  hash_pointer got the address p: 0x"),
        "{text}"
    );
    assert!(
        text.contains("if it hashes or sorts addresses, record it with --no-aslr"),
        "{text}"
    );
    ends_with(&ended, 1);
    ends_with(&compare(&scratch, &["fixed", "fixed2"]), 0);
}

/// Records a program twice with random addresses, without rules, and once another one, which must be found.
fn is_same_but_for_what_it_hashes(
    scratch: &Scratch,
    program: &Program,
    other: &Program,
    note: &str,
) {
    for name in ["one", "two"] {
        record(scratch, name, &[], program);
    }
    record(scratch, "other", &[], other);
    let ended = compare(scratch, &["one", "two", "--full"]);
    assert!(ended.text().contains(note), "{}", ended.text());
    ends_with(&ended, 0);
    ends_with(&compare(scratch, &["one", "other"]), 1);
    let found = compare(scratch, &["one", "other", "--json"]).result();
    assert_ne!(found["differing"], 0, "the calls tell, too");
}

/// Its cache of methods goes by addresses, and so does the order in which it frees what is left.
#[test]
fn python_with_random_addresses_twice_is_the_same_but_for_what_it_hashes() {
    let scratch = Scratch::new("compare-python");
    let script = |count: u32| {
        format!(
            "import json, argparse, dataclasses, enum, functools\n\
             class Kind(enum.Enum):\n    A = 1\n    B = 2\n\
             @dataclasses.dataclass(order=True)\nclass Point:\n    x: int\n    name: str = 'p'\n\
             @functools.lru_cache\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n\
             print(fib({count}), Kind.A, sorted(Point(i % 7) for i in range(20))[:2])\n\
             print(json.dumps({{str(i): i for i in range({count})}}, sort_keys=True)[:40])\n"
        )
    };
    // Python lists the script's folder, so the recordings must not be in it.
    fs::create_dir(scratch.join("script")).expect("the test's folder is writable");
    let program = |name: &str, count: u32| {
        let file = format!("script/{name}.py");
        fs::write(scratch.join(&file), script(count)).expect("the test's folder is writable");
        Program::new("/usr/bin/python3", scratch.path())
            .args([file])
            .env("PYTHONHASHSEED", "0")
    };
    let (program, other) = (program("one", 30), program("two", 31));
    let note = "CPython hashes addresses: ";
    is_same_but_for_what_it_hashes(&scratch, &program, &other, note);
}

const SCRIPT: &str = "local t, sum = {}, 0\n\
    for i = 1, 300 do t['k' .. i] = i end\n\
    for i = 1, COUNT do sum = sum + t['k' .. i] end\n\
    local names = {}\n\
    for i = 1, 50 do names[i] = string.format('%03d', i * 7 % 50) end\n\
    table.sort(names)\n\
    print(sum, table.concat(names, ','), ('x'):rep(60):gsub('x', 'y'), pcall(error, 'no'))\n";

/// A distribution's Lua has no debug information.
#[test]
fn a_distributions_lua_twice_is_the_same_but_for_what_it_hashes() {
    let scratch = Scratch::new("compare-lua-stripped");
    let lua = Program::new("/usr/bin/lua5.4", scratch.path());
    let lua = |count: &str| lua.clone().args(["-e", &SCRIPT.replace("COUNT", count)]);
    let note = "its calls of memcmp and strcmp were not compared";
    is_same_but_for_what_it_hashes(&scratch, &lua("300"), &lua("299"), note);
}

/// Lua's tables and strings are hashed with a seed made of addresses and the time.
#[test]
fn lua_with_its_own_seed_twice_is_the_same_but_for_what_it_hashes() {
    for options in ["-O0 -g", "-O2 -g", "-O2"] {
        let scratch = Scratch::new("compare-lua-seed");
        let build_of = |name: &str, count: &str| {
            let main = LUA.replace("i = 1, 200 do sum", &format!("i = 1, {count} do sum"));
            fs::write(scratch.join("main.c"), main).expect("the test's folder is writable");
            build_lua(&scratch, name, options);
            Program::new(scratch.join(name), scratch.path())
        };
        let (program, other) = (build_of("app", "200"), build_of("other", "199"));
        let note = "how it searches tables and strings and frees them was not compared";
        is_same_but_for_what_it_hashes(&scratch, &program, &other, note);
    }
}

/// With a fixed seed, all but the random numbers is compared.
#[test]
fn lua_with_a_fixed_seed_is_compared_as_a_whole() {
    let scratch = Scratch::new("compare-lua-fixed");
    fs::write(scratch.join("main.c"), LUA).expect("the test's folder is writable");
    build_lua(&scratch, "app", "-O1 -g '-Dluai_makeseed(L)=0x5eed'");
    let app = Program::new(scratch.join("app"), scratch.path());
    for name in ["one", "two"] {
        record(&scratch, name, &["--no-aslr"], &app);
    }
    let told = compare(&scratch, &["one", "two"]).text();
    assert!(told.contains("calls compared in 1 thread"), "{told}");
    assert!(
        told.contains("Lua's random numbers begin with the clock"),
        "{told}"
    );
    assert!(!told.contains("another seed"), "{told}");
}

/// Builds `main.c` with Lua.
fn build_lua(scratch: &Scratch, name: &str, options: &str) {
    let source = lua_source();
    let source = source.display();
    let command = format!(
        "gcc {options} -DLUA_USE_POSIX -I{source} -o {name} main.c $(ls {source}/l*.c | grep -v -e /lua.c -e /luac.c) -lm"
    );
    build(scratch.path(), &command);
}
