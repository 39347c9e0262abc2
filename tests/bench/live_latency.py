"""How long does live control take? Verbs, stops, breakpoints, conditions, logpoints and steps, as medians.

Usage: python3 tests/bench/live_latency.py [ROUNDS]     (needs gcc, gdb; HINDSIGHT_BIN, or target/release/hindsight)
Whatever is measured runs ROUNDS times, in turn with the others, so that a slow moment of the machine falls on all of them.
Requests go straight to the daemon's socket, except in the row that says otherwise. Calls are timed by the program's clock.
The daemon is one of our own, in a folder that is removed at the end.
"""

import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
ROOT = pathlib.Path(__file__).resolve().parents[2]
HINDSIGHT = os.environ.get("HINDSIGHT_BIN", str(ROOT / "target/release/hindsight"))
CALLS = 100_000
FEW_CALLS = 20_000
RECORDED = 1_000_000
MANY_CALLS = 20_000_000
PLAIN = "a call of about a nanosecond, nothing set"
FALSE = "the same with a false condition `i == -1`, compiled"
SCRIPT = "the same in JavaScript, `[-1, -2].includes(i) && Math.abs(i) > 5`, compiled"
LOGGED = "a call with a logpoint `i={i}`, compiled"
REPEATS = 50

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
volatile long sum, stamp;
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
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


def hindsight(env, *words):
    result = subprocess.run([HINDSIGHT, *words], cwd=env["WORK"], env=env, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"hindsight {' '.join(words)}: {result.returncode}\n{result.stderr}")
    return result.stdout


def begin(env, program, *arguments, options=()):
    """Starts a program and returns the daemon's ear, with the program at main."""
    output = str(pathlib.Path(env["WORK"]) / "rec")
    hindsight(env, "start", "-o", output, "--break", "main", *options, program, *arguments)
    return Daemon(env)


def end(env):
    hindsight(env, "stop")
    shutil.rmtree(pathlib.Path(env["WORK"]) / "rec.hindsight", ignore_errors=True)


def timed(action):
    begun = time.monotonic_ns()
    action()
    return (time.monotonic_ns() - begun) / 1e3


def printed(daemon):
    """Waits until the program has printed its one number."""
    text, piece = "", 0
    while "\n" not in text:
        reply = daemon.ask("output", follow=piece)
        piece = reply["next"]
        text += "".join(printed["text"] for printed in reply["pieces"])
    return float(text)


def verbs(env, figures):
    daemon = begin(env, "./program", "1")
    figures["`hindsight registers rip`, a whole process"].extend(
        timed(lambda: hindsight(env, "registers", "rip")) for _ in range(REPEATS)
    )
    figures["`hindsight --version`: what a process costs"].extend(
        timed(lambda: hindsight(env, "--version")) for _ in range(REPEATS)
    )
    figures["`registers rip`, through the socket"].extend(
        timed(lambda: daemon.ask("registers", names=["rip"])) for _ in range(REPEATS)
    )
    figures["`where`, with source and variables"].extend(timed(lambda: daemon.ask("where")) for _ in range(REPEATS))
    figures["`next`"].extend(timed(lambda: daemon.ask("next")) for _ in range(3))
    daemon.ask("break", action="add", at="stamped")
    daemon.ask("continue")
    figures["`next`"].extend(timed(lambda: daemon.ask("next")) for _ in range(REPEATS))
    figures["`step --instruction`"].extend(
        timed(lambda: daemon.ask("step", instruction=True)) for _ in range(REPEATS)
    )
    for _ in range(REPEATS):
        daemon.ask("continue")
        arrived = time.monotonic_ns()
        left = int(daemon.ask("print", expression="stamp")["value"])
        figures["from the call of a function to the answer that it was reached"].append((arrived - left) / 1e3)
    end(env)


def breakpoints(env, figures):
    daemon = begin(env, "./many")

    def set_all():
        for number in range(1000):
            daemon.ask("break", action="add", at=f"f{number}_")

    figures["1,000 breakpoints, one request each"].append(timed(set_all))
    daemon.ask("break", action="remove", all=True)
    end(env)
    daemon = begin(env, "./many")
    figures["1,000 breakpoints by one pattern"].append(timed(lambda: daemon.ask("break", action="add", at="f*_")))
    end(env)


def conditions(env, figures):
    false = ("break", {"condition": "i == -1"})
    script = ("break", {"condition": "[-1, -2].includes(i) && Math.abs(i) > 5"})
    engine = ("break", {"condition": "[-1, -2].some(n => n === i)"})
    logged = ("logpoint", {"message": "i={i}"})
    untraced = ("--exclude", "work")
    traced = {**env, "XDG_RUNTIME_DIR": env["XDG_RUNTIME_DIR"] + "-traced", "HINDSIGHT_TRACER_JUDGES": "1"}
    # How many calls, what is set, options, whose environment.
    rows = {
        PLAIN: (MANY_CALLS, None, untraced, env),
        FALSE: (MANY_CALLS, false, untraced, env),
        "a call, recorded, nothing set": (RECORDED, None, (), env),
        "the same with a false condition, compiled": (RECORDED, false, (), env),
        LOGGED: (RECORDED, logged, untraced, env),
        SCRIPT: (MANY_CALLS, script, untraced, env),
        "a call with a false condition, by the tracer": (CALLS, false, untraced, traced),
        "the same in JavaScript, `[-1, -2].some(n => n === i)`": (FEW_CALLS, engine, untraced, env),
        "a call with a logpoint, by the tracer": (FEW_CALLS, logged, untraced, traced),
    }
    for name, (calls, probe, options, whose) in rows.items():
        daemon = begin(whose, "./program", str(calls), options=options)
        if probe:
            daemon.ask(probe[0], action="add", at="work", **probe[1])
        daemon.ask("continue", no_wait=True)
        figures[name].append(printed(daemon) / 1e3)
        end(whose)
    script = ["-ex", "break work if i == -1", "-ex", "break stamped", "-ex", "run"]
    gdb = ["gdb", "-nx", "-batch", *script, "--args", "./program", str(CALLS)]
    result = subprocess.run(gdb, cwd=env["WORK"], capture_output=True, text=True, check=True)
    number = next(line for line in result.stdout.splitlines() if line.replace(".", "").isdigit())
    figures["gdb: a call with a false condition, `i == -1`"].append(float(number) / 1e3)
    script = ["-ex", 'dprintf work,"i=%ld\\n",i', "-ex", "break stamped", "-ex", "run"]
    gdb = ["gdb", "-nx", "-batch", *script, "--args", "./program", str(FEW_CALLS)]
    result = subprocess.run(gdb, cwd=env["WORK"], capture_output=True, text=True, check=True)
    number = next(line for line in result.stdout.splitlines() if line.replace(".", "").isdigit())
    figures["gdb: a call with a dprintf, `i=%ld`"].append(float(number) / 1e3)


class Figures(dict):
    def __missing__(self, name):
        self[name] = []
        return self[name]


def many():
    functions = "".join(f"__attribute__((noinline)) void f{i}_(void) {{ n += {i}; }}\n" for i in range(1000))
    calls = "".join(f"f{i}_();" for i in range(1000))
    return f"volatile long n;\n{functions}int main(void) {{ {calls} return 0; }}\n"


def main():
    work = pathlib.Path(tempfile.mkdtemp())
    runtime = work / "run"
    for folder in (runtime, work / "run-traced"):
        folder.mkdir(mode=0o700)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "WORK": str(work), "XDG_CONFIG_HOME": str(work)}
    for name, text in (("program", SOURCE), ("many", many())):
        (work / f"{name}.c").write_text(text)
        subprocess.run(["gcc", "-O1", "-g", "-o", name, f"{name}.c"], cwd=work, check=True)
    figures = Figures()
    try:
        for _ in range(ROUNDS):
            for measure in (verbs, breakpoints, conditions):
                measure(env, figures)
    finally:
        for folder in (runtime, work / "run-traced"):
            last = {**env, "XDG_RUNTIME_DIR": str(folder)}
            subprocess.run([HINDSIGHT, "stop"], cwd=work, env=last, capture_output=True, check=False)
        shutil.rmtree(work, ignore_errors=True)
    print(f"medians of {ROUNDS} rounds, microseconds\n")
    print("| what | median | min - max | of |\n|---|---|---|---|")
    for name, values in figures.items():
        middle = statistics.median(values)
        print(f"| {name} | {middle:,.4g} | {min(values):,.4g} - {max(values):,.4g} | {len(values)} |")
    logged = statistics.median(figures[LOGGED])
    print(f"\nlogpoints per second: {1e6 / logged:,.0f}")
    false = statistics.median(figures[FALSE]) - statistics.median(figures[PLAIN])
    print(f"a false condition: {false * 1e3:.1f} ns")
    script = statistics.median(figures[SCRIPT]) - statistics.median(figures[PLAIN])
    print(f"a false condition in JavaScript: {script * 1e3:.1f} ns")


main()
