//! What programs make of addresses, which are others in each run: numbers, the order in tables, and other calls.

use std::fs;

use e2e::{Ended, Program, Scratch, lua_source};
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

/// Records a program twice with random addresses and compares with rules.
fn with_rules(scratch: &Scratch, rules: &str, program: &Program) -> Ended {
    fs::write(scratch.join("hindsight.toml"), rules).expect("the test's folder is writable");
    for name in ["one", "two"] {
        record(scratch, name, &[], program);
    }
    compare(scratch, &["one", "two", "--full"])
}

/// The rules are those of the page: it hashes addresses to find methods, and frees what is left in the order of addresses.
#[test]
fn python_with_random_addresses_twice_is_the_same_but_for_what_it_hashes() {
    let scratch = Scratch::new("compare-python");
    let script =
        "import json\nprint(json.dumps({str(i): i for i in range(50)}, sort_keys=True)[:40])\n";
    // Python lists the script's folder, so the recordings must not be in it.
    fs::create_dir(scratch.join("script")).expect("the test's folder is writable");
    fs::write(scratch.join("script/script.py"), script).expect("the test's folder is writable");
    let program = Program::new("/usr/bin/python3", scratch.path())
        .args(["script/script.py"])
        .env("PYTHONHASHSEED", "0");
    let rules = "[compare.ignore]\nfunctions = [\"memcmp@plt\", \"_Py_Dealloc\", \"PyDict_Clear\", \"PyDict_DelItem\", \"PyObject_Free\", \"PyObject_GC_Del\"]\n";
    ends_with(&with_rules(&scratch, rules, &program), 0);
}

/// The rules are those of the page: Lua's tables and strings are hashed with a seed made of addresses and the time.
#[test]
fn lua_with_its_own_seed_twice_is_the_same_but_for_what_it_hashes() {
    let scratch = Scratch::new("compare-lua-seed");
    fs::write(scratch.join("main.c"), LUA).expect("the test's folder is writable");
    let source = lua_source();
    let source = source.display();
    let command = format!(
        "gcc -O0 -g -DLUA_USE_POSIX -I{source} -o app main.c $(ls {source}/l*.c | grep -v -e /lua.c -e /luac.c) -lm"
    );
    build(scratch.path(), &command);
    let program = Program::new(scratch.join("app"), scratch.path());
    let rules = "[compare.ignore]\nfunctions = [\"luai_makeseed\", \"randseed\", \"setseed\", \"nextrand\", \"rotl\"]\ninside = [\"luaS_*\", \"luaH_*\", \"luaC_*\", \"luaM_*\", \"l_alloc\"]\n";
    ends_with(&with_rules(&scratch, rules, &program), 0);
}
