"""How much does it cost to record every instruction, and to go to any of them? As measured by `tests/bench/run full`.

Five programs run natively, recorded, under Frida's Stalker without instrumentation, and under valgrind without instrumentation, in
turn; figures are wall times divided by the native time. lackey and gdb's `record full` are far too slow for the same work: they get a
small part of it, and their rate is measured.
"""

import os
import re
import shutil
import subprocess
import sys
import time

from harness import FRIDA, Failed, Row, cargo_built, folder_bytes, run

QSORT = """
#include <stdio.h>
#include <stdlib.h>
static int order(const void *a, const void *b) { return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b; }
int main(void) {
    int n = 1000000, *values = malloc(n * sizeof *values);
    unsigned x = 1;
    for (int i = 0; i < n; i++) values[i] = (x = x * 1103515245u + 12345u) >> 1;
    qsort(values, n, sizeof *values, order);
    printf("%d\\n", values[n / 2]);
    return 0;
}
"""
SQL = (
    "create table t(a int, b text); with recursive c(x) as (select 1 union all select x + 1 from c where x < 300000) "
    "insert into t select x, 'r' || (x * 7919 % 100003) from c; create index i on t(b); "
    "select count(*) from t x join t y on x.b = y.b where x.a < 20000;"
)
LUA = "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end print(fib(32))"
PYTHON = "s = 0\nfor i in range(6000000): s += i * i % 7\nprint(s)"
FOLLOW = """
const module = Process.mainModule, base = module.base;
const entry = base.add(base.add(24).readU64().toNumber());
let at = entry;
for (let i = 0; i < 20; i++) {
  const instruction = Instruction.parse(at);
  if (instruction.mnemonic === 'lea' && instruction.opStr.startsWith('rdi')) { at = instruction.next.add(at.add(3).readS32()); break; }
  at = instruction.next;
}
Interceptor.attach(at, { onEnter() { Stalker.follow(this.threadId, {}); Interceptor.detachAll(); } });
Interceptor.flush();
"""
STALK = """
import sys, threading, frida
device = frida.get_local_device()
pid = device.spawn(sys.argv[2:])
session = device.attach(pid)
ended = threading.Event()
session.on("detached", lambda *_: ended.set())
script = session.create_script(open(sys.argv[1]).read())
script.load()
device.resume(pid)
ended.wait(600)
"""
GOALS = {"gzip": 4, "qsort": 4, "sqlite": 8, "lua": 8, "python": 8}
ROWS = [
    row
    for name, goal in GOALS.items()
    for row in (
        Row(f"full.{name}", f"{name}, every instruction recorded", "x native", at_most=goal, needs=("cargo", "gcc")),
        Row(f"full.{name}-bytes", "the recording", "B/instruction", at_most=0.3 if name == "gzip" else 1, needs=("cargo", "gcc")),
        Row(f"full.{name}-stalker", "Stalker alone", "x native", needs=("cargo", "gcc", "frida")),
        Row(f"full.{name}-valgrind", "valgrind --tool=none", "x native", needs=("cargo", "gcc")),
    )
] + [
    Row("full.lackey", "valgrind --tool=lackey --trace-mem=yes, gzip of a small file", "x native", needs=("cargo",)),
    Row("full.gdb", "gdb's record full, gzip", "instructions/s", needs=("cargo",)),
    Row("full.goto", "to any position of the recording of gzip, 99 of 100", "ms", at_most=200, needs=("cargo",)),
    Row("full.back", "one instruction back, the middle one", "ms", at_most=5, needs=("cargo",)),
    Row("full.reverse", "back over 100 million instructions to a breakpoint that is not met", "ms", at_most=2000, needs=("cargo",)),
]


def programs(work):
    (work / "input").write_bytes(b"".join(bytes((i * i // 7 + j) % 251 for j in range(1 << 10)) for i in range(25_000)))
    (work / "small").write_bytes((work / "input").read_bytes()[:40_000])
    (work / "qsort.c").write_text(QSORT)
    (work / "query.sql").write_text(SQL)
    (work / "fib.lua").write_text(LUA)
    (work / "sum.py").write_text(PYTHON)
    run(["gcc", "-O2", "-o", "qsort", "qsort.c"], work)
    found = {
        "gzip": [shutil.which("gzip"), "-6", "-c", "input"],
        "qsort": [str(work / "qsort")],
        "sqlite": [shutil.which("sqlite3"), ":memory:", SQL],
        "lua": [shutil.which("lua5.4"), "fib.lua"],
        "python": [os.path.realpath(sys.executable), "sum.py"],
    }
    for name, command in found.items():
        if not command[0]:
            raise Failed(f"there is no {name}; run apt install gzip sqlite3 lua5.4")
    return found


def took(command, work, environment=None):
    start = time.monotonic()
    answer = subprocess.run(command, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, env=environment)
    if answer.returncode:
        raise Failed(f"{command}: {answer.returncode}\n{answer.stderr}")
    return time.monotonic() - start, answer.stderr


def measure(bench):
    work, exact = bench.work, cargo_built("example", "exact", "exact")
    (work / "follow.js").write_text(FOLLOW)
    (work / "stalk.py").write_text(STALK)
    stalk = os.environ | {"PYTHONPATH": str(FRIDA)}
    found = programs(work)
    for _ in range(bench.sizes.rounds):
        for name, command in found.items():
            native, _ = took(command, work)
            if bench.wants(f"full.{name}") or bench.wants(f"full.{name}-bytes"):
                shutil.rmtree(work / name / "log", ignore_errors=True)
                recorded, told = took([exact, "record", work / f"{name}.full", *command], work)
                instructions = int(re.search(r"instructions: (\d+)", told)[1])
                bench.add(f"full.{name}", recorded / native)
                bench.add(f"full.{name}-bytes", folder_bytes(work / f"{name}.full") / instructions)
                bench.note(f"full.{name}", f"{native:.2f} s native, {instructions / 1e9:.2f} G instructions")
            if bench.wants(f"full.{name}-stalker"):
                bench.add(f"full.{name}-stalker", took([sys.executable, "stalk.py", "follow.js", *command], work, stalk)[0] / native)
            if bench.wants(f"full.{name}-valgrind"):
                bench.add(f"full.{name}-valgrind", took(["valgrind", "--tool=none", "-q", *command], work)[0] / native)
    if bench.wants("full.lackey"):
        small = [found["gzip"][0], "-6", "-c", "small"]
        native = min(took(small, work)[0] for _ in range(5))
        bench.add("full.lackey", took(["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-file=lackey", *small], work)[0] / native)
    if bench.wants("full.gdb"):
        bench.add("full.gdb", gdb_rate(found["gzip"], work))
    if any(bench.wants(f"full.{row}") for row in ("goto", "back", "reverse")):
        took([exact, "record", work / "gzip.full", *found["gzip"]], work)
        goto, back = run([exact, "jump", work / "gzip.full", "200"], work).stdout.splitlines()
        bench.add("full.goto", float(goto.split()[2]))
        bench.add("full.back", float(back.split()[1]))
        bench.add("full.reverse", float(run([exact, "back", work / "gzip.full", "0x10", "100000000"], work).stdout.split()[1]))


def gdb_rate(command, work):
    """The number of instructions that gdb records per second: those that it has recorded when it is stopped."""
    seconds = 10
    script = ["set pagination off", "set record full insn-number-max unlimited", "starti", "record full"]
    script += [f"python import threading; threading.Timer({seconds}, lambda: gdb.interrupt()).start()", "continue", "info record", "kill"]
    words = [word for line in script for word in ("-ex", line)]
    answer = subprocess.run(["gdb", "-q", "-batch", *words, "--args", *command], cwd=work, capture_output=True, text=True, check=False)
    count = re.search(r"Log contains (\d+) instructions", answer.stdout)
    if not count:
        raise Failed(f"gdb recorded nothing:\n{answer.stdout[-2000:]}\n{answer.stderr[-2000:]}")
    return int(count[1]) / seconds
