"""How long does live control take? Verbs, stops, breakpoints, conditions, logpoints and steps, as medians.

Usage: python3 tests/bench/live_latency.py [--rounds ROUNDS] [GROUP ...]
Needs gcc and gdb, `large` g++ and cargo too; HINDSIGHT_BIN, or target/release/hindsight.

Groups (default: all):
  verbs        what a request costs, from a stop to its report
  breakpoints  a thousand breakpoints, by names, lines and one pattern
  unhit        a function's time with breakpoints that are not hit, memory, and what starting takes
  conditions   a call with a condition or logpoint, beside gdb
  large        verbs and stops in SQLite, in a C++ program with much debug information and in Hindsight itself

Each measurement runs ROUNDS times, in turn with the others, so that a slow moment of the machine affects all of them; each figure is
printed as it is measured, and all of them in a table at the end. Requests go directly to the daemon's socket, unless a row says
otherwise. Calls are timed by the program's clock, those of `unhit` by its processor time. The benchmark starts its own daemon, in a
folder that is removed at the end.
"""

import argparse
import json
import os
import pathlib
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HINDSIGHT = os.environ.get("HINDSIGHT_BIN", str(ROOT / "target/release/hindsight"))
CALLS = 20_000
ENGINE_CALLS = 100_000
FEW_CALLS = 5_000
RECORDED = 1_000_000
MANY_CALLS = 20_000_000
PLAIN = "a call of about a nanosecond, nothing set"
FALSE = "the same with a false condition `i == -1`, compiled"
# False conditions that the engine evaluates: an assignment, a list, a closure, an object, a string.
BY_ENGINE = ("state.n = i, false", "[-1, -2].includes(i)", "[-1, -2].some(n => n === i)", "new Set([1]).has(-i)", "/^b/.test(String(i))")
LOGGED = "a call with a logpoint `i={i}`, compiled"
REPEATS = 50
# For breakpoints that are not hit: the number of calls timed in one batch, and the number of batches per setting.
BATCH = 10_000_000
RECORDED_BATCH = 300_000
BATCHES = 3
TURNS = 6

NOW = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
volatile long sum, stamp;
static long by(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static long now(void) { return by(CLOCK_MONOTONIC); }
"""

SOURCE = NOW + r"""
__attribute__((noinline)) void work(long i) { sum += i; }
__attribute__((noinline)) void stamped(void) { sum++; }
int main(int argc, char **argv) {
  long calls = atol(argv[1]), begun = now();
  for (long i = 0; i < calls; i++) work(i);
  printf("%.1f\n", (double)(now() - begun) / calls);
  fflush(stdout);
  for (;;) {
    stamp = now();
    stamped();
  }
}
"""

UNHIT = NOW + r"""
FUNCTIONS
__attribute__((noinline)) void never(void) { sum++; }
__attribute__((noinline)) void work(long i) {
  if (i < 0)
    never();
  sum += i;
}
int main(int argc, char **argv) {
  long calls = atol(argv[1]);
  for (long batch = 1; !stamp; batch++) {
    long begun = by(CLOCK_THREAD_CPUTIME_ID);
    for (long i = 0; i < calls; i++) work(i);
    printf("%ld %.4f\n", batch, (double)(by(CLOCK_THREAD_CPUTIME_ID) - begun) / calls);
    fflush(stdout);
  }
  CALLED
}
"""

DATABASE = NOW + r"""
#include "sqlite3.h"
__attribute__((noinline)) void stamped(long row) { sum += row; }
static void stamps(sqlite3_context *context, int count, sqlite3_value **values) {
  long row = sqlite3_value_int64(values[0]);
  stamp = now();
  stamped(row);
  sqlite3_result_int64(context, row + count);
}
int main(void) {
  sqlite3 *db;
  if (sqlite3_open(":memory:", &db)) return 1;
  sqlite3_create_function(db, "stamps", 1, SQLITE_UTF8, NULL, stamps, NULL, NULL);
  return sqlite3_exec(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT stamps(i) FROM n", NULL, NULL, NULL);
}
"""

# Each part has its own types, so that the library's templates are instantiated again.
PIECES = 60
PIECE = r"""
struct Piece%(n)d { int id; std::string name; bool operator<(const Piece%(n)d &other) const { return id < other.id; } };
struct Shelf%(n)d {
  std::map<Piece%(n)d, std::vector<Piece%(n)d>> rows;
  std::unordered_map<std::string, std::shared_ptr<Piece%(n)d>> byName;
  std::function<long(const Piece%(n)d &)> price;
};
long stock%(n)d(Shelf%(n)d &shelf, int row) {
  Piece%(n)d piece{row %% 7, "piece"};
  shelf.rows[piece].push_back(piece);
  shelf.byName[piece.name] = std::make_shared<Piece%(n)d>(piece);
  shelf.price = [row](const Piece%(n)d &p) { return long(p.id) * row; };
  std::sort(shelf.rows[piece].begin(), shelf.rows[piece].end());
  return shelf.price(piece);
}
"""
CXX = r"""
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
""" + NOW + r"""
PIECES
__attribute__((noinline)) void stamped(long row) { sum += row; }
int main() {
  for (int row = 0;; row++) {
    Shelf0 shelf;
    long price = stock0(shelf, row);
    if (row < 0) { CALLED }
    stamp = now();
    stamped(price);
  }
}
"""


class Daemon:
    """A conversation with the daemon."""

    def __init__(self, env):
        path = pathlib.Path(env["XDG_RUNTIME_DIR"]) / "hindsight/daemon.sock"
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("rw")
        self.lines.readline()
        self.id = 0

    def ask(self, command, **args):
        self.id += 1
        self.lines.write(json.dumps({"id": self.id, "command": command, "args": args}) + "\n")
        self.lines.flush()
        while True:
            response = json.loads(self.lines.readline())
            if "success" not in response:
                continue
            if not response["success"]:
                sys.exit(f"{command} {args}: {response['error']}")
            return response["result"]

    def pid(self):
        """The process that created the socket."""
        told = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", told)[0]


class Figures:
    """The measured figures by name; each figure is printed as it is measured."""

    def __init__(self):
        self.rows = {}
        self.begun = time.monotonic()

    def add(self, name, values, unit="us"):
        values = list(values)
        self.rows.setdefault(name, (unit, []))[1].extend(values)
        passed = time.monotonic() - self.begun
        print(f"{passed:6.1f} s  {name}: {statistics.median(values):,.4g} {unit}", flush=True)

    def median(self, name):
        return statistics.median(self.rows[name][1]) if name in self.rows else None

    def table(self):
        print("\n| what | median | min - max | of | unit |\n|---|---|---|---|---|")
        for name, (unit, values) in self.rows.items():
            middle = statistics.median(values)
            print(f"| {name} | {middle:,.4g} | {min(values):,.4g} - {max(values):,.4g} | {len(values)} | {unit} |")


def hindsight(env, *words):
    result = subprocess.run([HINDSIGHT, *words], cwd=env["WORK"], env=env, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"hindsight {' '.join(words)}: {result.returncode}\n{result.stderr}")
    return result.stdout


def begin(env, program, *arguments, options=("--break", "main")):
    """Starts a program and returns the connection to the daemon, with the program at main."""
    output = str(pathlib.Path(env["WORK"]) / "rec")
    hindsight(env, "start", "-o", output, *options, program, *arguments)
    return Daemon(env)


def end(env):
    hindsight(env, "stop")
    shutil.rmtree(pathlib.Path(env["WORK"]) / "rec.hindsight", ignore_errors=True)


def timed(action):
    begun = time.monotonic_ns()
    action()
    return (time.monotonic_ns() - begun) / 1e3


def repeated(action, times=REPEATS):
    return [timed(action) for _ in range(times)]


class Printed:
    """The lines that the program prints."""

    def __init__(self, daemon):
        self.daemon, self.piece, self.text = daemon, 0, ""

    def line(self):
        while "\n" not in self.text:
            reply = self.daemon.ask("output", follow=self.piece)
            self.piece = reply["next"]
            self.text += "".join(printed["text"] for printed in reply["pieces"])
        line, self.text = self.text.split("\n", 1)
        return line

    def newest(self):
        """The newest line so far; waits for a first one."""
        reply = self.daemon.ask("output", follow=self.piece, at_once=True)
        self.piece = reply["next"]
        self.text += "".join(printed["text"] for printed in reply["pieces"])
        line = self.line()
        while "\n" in self.text:
            line = self.line()
        return line


def compiled(env, name, text, *command):
    """Compiles a program, once."""
    work = pathlib.Path(env["WORK"])
    if not (work / name.split(".")[0]).exists():
        (work / name).write_text(text)
        subprocess.run([*command, "-w", "-g", "-o", name.split(".")[0], name], cwd=work, check=True)
    return "./" + name.split(".")[0]


def program(env):
    return compiled(env, "program.c", SOURCE, "gcc", "-O1")


def processor_time(daemon):
    """The processor time of the daemon so far, in ms: unlike wall time, it depends little on the machine's other load."""
    fields = pathlib.Path(f"/proc/{daemon.pid()}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1e3 / os.sysconf("SC_CLK_TCK")


def answered(daemon, figures, name, action):
    """The time of an answer, and the daemon's processor time for it."""
    worked = processor_time(daemon)
    figures.add(name, repeated(action))
    figures.add(name + ": the daemon's work", [(processor_time(daemon) - worked) * 1e3 / REPEATS])


def stops(daemon, figures, where=""):
    """Repeated stops at `stamped`, and the requests there."""
    answered(daemon, figures, "`next`" + where, lambda: daemon.ask("next"))
    answered(daemon, figures, "`step --instruction`" + where, lambda: daemon.ask("step", instruction=True))
    reports = []
    for _ in range(REPEATS):
        daemon.ask("continue")
        arrived = time.monotonic_ns()
        left = int(daemon.ask("print", expression="stamp")["value"])
        reports.append((arrived - left) / 1e3)
    figures.add("from the call of a function to the answer that it was reached" + where, reports)
    looks(daemon, figures, where)
    answered(daemon, figures, "`print stamp`" + where, lambda: daemon.ask("print", expression="stamp"))


def looks(daemon, figures, where=""):
    answered(daemon, figures, "`registers rip`" + where, lambda: daemon.ask("registers", names=["rip"]))
    answered(daemon, figures, "`where`, with source and variables" + where, lambda: daemon.ask("where"))
    answered(daemon, figures, "`backtrace`" + where, lambda: daemon.ask("backtrace"))


def verbs(env, figures):
    daemon = begin(env, program(env), "1")
    figures.add("`hindsight registers rip`, a whole process", repeated(lambda: hindsight(env, "registers", "rip")))
    figures.add("`hindsight --version`: what a process costs", repeated(lambda: hindsight(env, "--version")))
    daemon.ask("break", action="add", at="stamped")
    daemon.ask("continue")
    stops(daemon, figures)
    end(env)


def functions(count):
    return "".join(f"__attribute__((noinline)) void f{i}_(void) {{ sum += {i}; }}\n" for i in range(count))


def many(env):
    calls = "".join(f"f{i}_();" for i in range(1000))
    text = f"volatile long sum;\n{functions(1000)}int main(void) {{ {calls} return 0; }}\n"
    return compiled(env, "many.c", text, "gcc", "-O1")


def breakpoints(env, figures):
    daemon = begin(env, many(env))

    def set_all(at):
        for number in range(1000):
            daemon.ask("break", action="add", at=at(number))

    def measure(name, action):
        worked = processor_time(daemon)
        figures.add("1,000 breakpoints " + name, [timed(action) / 1e3], "ms")
        worked = processor_time(daemon) - worked
        figures.add("1,000 breakpoints " + name + ", processor time of the daemon", [worked], "ms")
        removal = timed(lambda: daemon.ask("break", action="remove", all=True))
        figures.add("1,000 breakpoints " + name + ", removed by one request", [removal / 1e3], "ms")

    measure("by name, one request each", lambda: set_all(lambda number: f"f{number}_"))
    # The first line declares the variable.
    measure("by line, one request each", lambda: set_all(lambda number: f"many.c:{number + 2}"))
    measure("by one pattern", lambda: daemon.ask("break", action="add", at="f*_"))
    end(env)


def private(pid):
    """The private memory of the process, in MB."""
    total = 0
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_"):
            total += int(line.split()[1])
    return total / 1024


def unhit(env, figures):
    calls = "".join(f"f{i}_();" for i in range(1000))
    text = UNHIT.replace("FUNCTIONS", functions(1000)).replace("CALLED", calls)
    line = text[: text.index("    never();")].count("\n") + 1
    path = compiled(env, "unhit.c", text, "gcc", "-O1")
    # What is set, and whether it is disabled.
    states = {
        "nothing set": (None, False),
        "a breakpoint on another function": ("never", False),
        "a breakpoint on a line of it that is not reached": (f"unhit.c:{line}", False),
        "1,000 breakpoints on other functions": ("f*_", False),
        "a breakpoint on it that is disabled": ("work", True),
        "nothing set, once more": (None, False),
    }
    for kind, options, batch in (("not recorded", ("--exclude", "work"), BATCH), ("recorded", (), RECORDED_BATCH)):
        daemon = begin(env, path, str(batch), options=("--break", "main", *options))
        daemon.ask("break", action="remove", all=True)
        daemon.ask("continue", no_wait=True)
        printed = Printed(daemon)
        found = {name: [] for name in states}
        for _ in range(TURNS):
            for name, state in states.items():
                found[name].extend(batches(daemon, printed, *state))
        plain = statistics.median(found["nothing set"])
        for name, values in found.items():
            figures.add(f"a call, {kind}, {name}", [value / 1e3 for value in values])
        for name in list(states)[1:]:
            ratio = statistics.median(found[name]) / plain
            figures.add(f"ratio to nothing set, {kind}: {name}", [ratio], "")
        end(env)
    memory(env, figures, path)


def batches(daemon, printed, at, disabled):
    """Times some batches of calls of a running program while something is set in it."""
    if disabled:
        # It would be hit before it is disabled.
        daemon.ask("pause")
    if at:
        ids = [probe["id"] for probe in daemon.ask("break", action="add", at=at)["probes"]]
    if disabled:
        daemon.ask("break", action="disable", ids=ids)
        daemon.ask("continue", no_wait=True)
    # The batch after the newest may have begun earlier.
    first = int(printed.newest().split()[0]) + 2
    values = []
    while len(values) < BATCHES:
        number, nanoseconds = printed.line().split()
        if int(number) >= first:
            values.append(float(nanoseconds))
    if at:
        daemon.ask("break", action="remove", ids=ids)
    return values


def memory(env, figures, path):
    """The memory that breakpoints that are not hit take, and that starting takes."""
    alone = subprocess.Popen([path, "100000000"], cwd=env["WORK"], stdout=subprocess.PIPE)
    alone.stdout.readline()
    figures.add("memory of the program alone", [private(alone.pid)], "MB")
    alone.kill()
    alone.communicate()
    output = str(pathlib.Path(env["WORK"]) / "rec")
    for name, options in {
        "stopped at its entry, nothing set": ("--stop-on-entry",),
        "stopped at its entry, a breakpoint set": ("--stop-on-entry", "--break", "never"),
        "stopped at its entry, 1,000 breakpoints set": ("--stop-on-entry", "--break", "f*_"),
    }.items():
        start = ("start", "-o", output, *options, path, "1")
        figures.add(f"`hindsight start`, {name}", [timed(lambda: hindsight(env, *start)) / 1e3], "ms")
        daemon = Daemon(env)
        pid = daemon.ask("status")["sessions"][0]["pid"]
        figures.add(f"memory of the program, {name}", [private(pid)], "MB")
        figures.add(f"memory of the daemon, {name}", [private(daemon.pid())], "MB")
        end(env)


def conditions(env, figures):
    path = program(env)
    false = ("break", {"condition": "i == -1"})
    logged = ("logpoint", {"message": "i={i}"})
    untraced = ("--exclude", "work")
    traced = {**env, "XDG_RUNTIME_DIR": env["XDG_RUNTIME_DIR"] + "-traced", "HINDSIGHT_TRACER_JUDGES": "1"}
    # The number of calls, what is set, options, environment.
    rows = {
        PLAIN: (MANY_CALLS, None, untraced, env),
        FALSE: (MANY_CALLS, false, untraced, env),
        "a call, recorded, nothing set": (RECORDED, None, (), env),
        "the same with a false condition, compiled": (RECORDED, false, (), env),
        LOGGED: (RECORDED, logged, untraced, env),
        "a call with a false condition, by the tracer": (CALLS, false, untraced, traced),
        **{
            f"the same in JavaScript, `{text}`, by the engine": (ENGINE_CALLS, ("break", {"condition": text}), untraced, env)
            for text in BY_ENGINE
        },
        "a call with a logpoint, by the tracer": (CALLS, logged, untraced, traced),
    }
    for name, (calls, probe, options, whose) in rows.items():
        daemon = begin(whose, path, str(calls), options=("--break", "main", *options))
        if probe:
            daemon.ask(probe[0], action="add", at="work", **probe[1])
        daemon.ask("continue", no_wait=True)
        figures.add(name, [float(Printed(daemon).line()) / 1e3])
        end(whose)
    for name, command in {
        "gdb: a call with a false condition, `i == -1`": "break work if i == -1",
        "gdb: a call with a dprintf, `i=%ld`": 'dprintf work,"i=%ld\\n",i',
    }.items():
        script = ["-ex", command, "-ex", "break stamped", "-ex", "run"]
        gdb = ["gdb", "-nx", "-batch", *script, "--args", path, str(FEW_CALLS)]
        result = subprocess.run(gdb, cwd=env["WORK"], capture_output=True, text=True, check=True)
        number = next(line for line in result.stdout.splitlines() if line.replace(".", "").isdigit())
        figures.add(name, [float(number) / 1e3])


def sqlite_source():
    """The folder with the source of SQLite, in a crate that is a dependency of the tests."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--manifest-path", str(ROOT / "Cargo.toml")]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    package = next(package for package in told["packages"] if package["name"] == "libsqlite3-sys")
    return pathlib.Path(package["manifest_path"]).parent / "sqlite3"


def large(env, figures):
    source = sqlite_source()
    options = ["gcc", "-O1", "-DSQLITE_OMIT_LOAD_EXTENSION", f"-I{source}", str(source / "sqlite3.c"), "-lpthread", "-lm"]
    database = compiled(env, "database.c", DATABASE, *options)
    pieces = "".join(PIECE % {"n": n} for n in range(PIECES))
    called = "".join(f"Shelf{n} s{n}; sum += stock{n}(s{n}, row);" for n in range(PIECES))
    text = CXX.replace("PIECES", pieces).replace("CALLED", called)
    shelves = compiled(env, "shelves.cc", text, "g++", "-std=c++20", "-O0")
    for name, path, other in (
        ("SQLite", database, "sqlite3VdbeExec"),
        ("a C++ program", shelves, "stock7"),
    ):
        size = (pathlib.Path(env["WORK"]) / path).stat().st_size / 1e6
        where = f", in {name} of {size:.0f} MB"
        begun = time.monotonic_ns()
        daemon = begin(env, path, options=("--break", "stamped"))
        figures.add("`hindsight start`, to the first stop" + where, [(time.monotonic_ns() - begun) / 1e6], "ms")
        first = lambda: daemon.ask("break", action="add", at=other)
        figures.add("a breakpoint by name" + where, [timed(first)])
        daemon.ask("break", action="remove", ids=[2])
        stops(daemon, figures, where)
        end(env)
    itself(env, figures)


def itself(env, figures):
    """Hindsight's own binary, a Rust program with the line tables of hundreds of crates."""
    size = pathlib.Path(HINDSIGHT).stat().st_size / 1e6
    where = f", in Hindsight itself of {size:.0f} MB, not recorded"
    begun = time.monotonic_ns()
    daemon = begin(env, HINDSIGHT, "--", "--version", options=("--break", "hindsight::main", "--exclude", "*"))
    figures.add("`hindsight start`, to the first stop" + where, [(time.monotonic_ns() - begun) / 1e6], "ms")
    answered(daemon, figures, "`step --instruction`" + where, lambda: daemon.ask("step", instruction=True))
    looks(daemon, figures, where)
    end(env)


GROUPS = {group.__name__: group for group in (verbs, breakpoints, unhit, conditions, large)}


def conclusions(figures):
    logged, false, plain = (figures.median(name) for name in (LOGGED, FALSE, PLAIN))
    if logged:
        print(f"\nlogpoints per second: {1e6 / logged:,.0f}")
        print(f"a false condition: {(false - plain) * 1e3:.1f} ns")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", choices=[[], *GROUPS], metavar="GROUP")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp())
    runtime = work / "run"
    for folder in (runtime, work / "run-traced"):
        folder.mkdir(mode=0o700)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "WORK": str(work), "XDG_CONFIG_HOME": str(work)}
    figures = Figures()
    try:
        for _ in range(chosen.rounds):
            for name in chosen.groups or GROUPS:
                GROUPS[name](env, figures)
    except KeyboardInterrupt:
        print("stopped; so far:")
    finally:
        for folder in (runtime, work / "run-traced"):
            last = {**env, "XDG_RUNTIME_DIR": str(folder)}
            subprocess.run([HINDSIGHT, "stop"], cwd=work, env=last, capture_output=True, check=False)
        shutil.rmtree(work, ignore_errors=True)
    figures.table()
    conclusions(figures)


if __name__ == "__main__":
    main()
