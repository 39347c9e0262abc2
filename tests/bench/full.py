"""How much does it cost to record every instruction, and to go to any of them? As measured by `tests/bench/run full`.

Five programs run natively, under `hindsight record --full`, under Frida's Stalker without instrumentation, and under valgrind without
instrumentation, in turn; figures are wall times divided by the native time. Of the recorder there are two: until the program has ended,
and until the command has, which then has found its calls. lackey and gdb's `record full` are far too slow for the same work: they get a
small part of it, and their rate is measured.

Moves are those of `hindsight mcp` on a recording of gzip, from writing the request to reading the whole answer; who wrote some bytes is
`hindsight sql` from its start to its end: once for bytes that are written early, and once for bytes that are written just before the end.
Jumps are measured when the recording was run to its end once, which makes the copies that they start from; the first jump of a new
process is a row of its own. Memory is the kernel's figure for the process that records, and for the one that answers (VmHWM); the
program, and the copies of it that are run again, are other processes.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

from harness import FRIDA, HINDSIGHT, Failed, Row, folder_bytes, run
from mcp import Server
from memory import POLL_S, memory_kib

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
NEEDS = ("hindsight", "gcc")
ROWS = [
    row
    for name, goal in GOALS.items()
    for row in (
        Row(f"full.{name}", f"{name}, every instruction recorded, until it has ended", "x native", at_most=goal, needs=NEEDS),
        Row(f"full.{name}-whole", "until its calls are found too", "x native", at_most=goal, needs=NEEDS),
        Row(f"full.{name}-bytes", "the recording", "B/instruction", at_most=0.3 if name == "gzip" else 1, needs=NEEDS),
        Row(f"full.{name}-stalker", "Stalker alone", "x native", needs=("gcc", "frida")),
        Row(f"full.{name}-valgrind", "valgrind --tool=none", "x native", needs=("gcc",)),
    )
] + [
    Row("full.lackey", "valgrind --tool=lackey --trace-mem=yes, gzip of a small file", "x native", needs=("gcc",)),
    Row("full.gdb", "gdb's record full, gzip", "instructions/s", needs=("gcc",)),
    Row("full.goto", "to any instruction of the recording of gzip, 99 of 100", "ms", at_most=200, needs=NEEDS),
    Row("full.back", "one instruction back, the middle one", "ms", at_most=5, needs=NEEDS),
    Row("full.reverse", "back over 100 million instructions to a breakpoint that is not met", "ms", at_most=2000, needs=NEEDS),
    Row("full.first", "the first move of a new process, to the middle", "ms", needs=NEEDS),
    Row("full.who", "who wrote these 8 bytes? over the whole recording", "ms", at_most=1000, needs=NEEDS),
    Row("full.who-late", "the same of bytes that are written just before the end", "ms", at_most=1000, needs=NEEDS),
    Row("full.memory", "memory of the recorder, the most at once", "MB", needs=NEEDS),
    Row("full.memory-question", "memory of the first question: who wrote these 8 bytes?", "MB", needs=NEEDS),
]
OF_MOVES = ("full.goto", "full.back", "full.reverse")
OF_WRITES = ("full.who", "full.who-late", "full.memory-question")
MOVES = (*OF_MOVES, "full.first", *OF_WRITES, "full.memory")
JUMPS = 200


def programs(work):
    (work / "input").write_bytes(b"".join(bytes((i * i // 7 + j) % 251 for j in range(1 << 10)) for i in range(25_000)))
    (work / "quarter").write_bytes((work / "input").read_bytes()[: 25_000 << 8])
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


def recorded(name, command, work):
    """Records every instruction of a command as NAME; returns the seconds of all of it, and the summary."""
    shutil.rmtree(work / f"{name}.hindsight", ignore_errors=True)
    whole, told = took([HINDSIGHT, "record", "--full", "--json", "-o", name, "--", *command], work)
    return whole, json.loads(told.splitlines()[-1])["result"]


def measure(bench):
    work = bench.work
    (work / "follow.js").write_text(FOLLOW)
    (work / "stalk.py").write_text(STALK)
    stalk = os.environ | {"PYTHONPATH": str(FRIDA)}
    found = programs(work)
    for _ in range(bench.sizes.rounds):
        for name, command in found.items():
            native, _ = took(command, work)
            if any(bench.wants(f"full.{name}{part}") for part in ("", "-whole", "-bytes")):
                whole, summary = recorded(name, command, work)
                instructions = summary["instructions"]
                bench.add(f"full.{name}", summary["duration_ns"] / 1e9 / native)
                bench.add(f"full.{name}-whole", whole / native)
                bench.add(f"full.{name}-bytes", folder_bytes(work / f"{name}.hindsight") / instructions)
                bench.note(f"full.{name}", f"{native:.2f} s native, {instructions / 1e9:.2f} G instructions")
                bench.note(f"full.{name}-whole", f"{summary['calls']:,} calls")
                shutil.rmtree(work / f"{name}.hindsight")
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
    if any(bench.wants(row) for row in MOVES):
        command = [found["gzip"][0], "-6", "-c", "quarter"]
        _, summary = recorded("moves", command, work)
        instructions = summary["instructions"]
        for row in MOVES:
            bench.note(row, f"{instructions / 1e9:.2f} G instructions")
        if any(bench.wants(row) for row in OF_MOVES):
            moves(bench, instructions)
        for turn in range(bench.sizes.rounds):
            if bench.wants("full.first"):
                bench.add("full.first", first_move(work, turn, instructions))
            if any(bench.wants(row) for row in OF_WRITES):
                questions(bench, instructions)
            if bench.wants("full.memory"):
                bench.add("full.memory", peak_mb([HINDSIGHT, "record", "--full", "-o", "peak", "--", *command], work))
                shutil.rmtree(work / "peak.hindsight")
        shutil.rmtree(work / "moves.hindsight")


def server_in(work, name):
    """A new server with a folder of its own: no other one has opened the recording."""
    folder = work / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return Server(work, {**os.environ, "XDG_RUNTIME_DIR": str(folder)})


def first_move(work, turn, instructions):
    """The milliseconds of the first move that a new process makes: it opens the recording, too."""
    server = server_in(work, f"full-first-{turn}")
    try:
        return server.call("debug_goto", recording="moves", to=f"{instructions // 2}ns")[1]
    finally:
        server.leave()


def moves(bench, instructions):
    """Goes to random instructions, and one back from each; then back from one to the start."""
    server = server_in(bench.work, "full-daemon")
    try:
        at = {"recording": "moves"}
        # A duration is a number of instructions.
        server.call("debug_goto", **at, to=f"{instructions - 1}ns")
        positions = random.Random(1).sample(range(1000, instructions), JUMPS)
        goto, back = [], []
        for position in positions:
            goto.append(server.call("debug_goto", **at, to=f"{position}ns")[1])
            back.append(server.call("debug_goto", **at, back="step", granularity="instruction")[1])
        bench.add("full.goto", sorted(goto)[JUMPS * 99 // 100])
        bench.add("full.back", sorted(back)[JUMPS // 2])
        server.call("debug_breakpoint", **at, add=[{"function": "abort"}])
        for _ in range(bench.sizes.rounds):
            server.call("debug_goto", **at, to="100000000ns")
            bench.add("full.reverse", server.call("debug_goto", refused="NO_EVENT", **at, back="continue")[1])
    finally:
        server.leave()


def questions(bench, instructions):
    """Asks who wrote eight bytes of the dynamic linker's, which are written early, and others that are written just before the end."""
    early = who(bench.work, 1000, 3000)
    late = who(bench.work, instructions - 3000, instructions - 1000)
    for row, question in (("full.who", early), ("full.who-late", late)):
        if bench.wants(row):
            bench.add(row, took(question, bench.work)[0] * 1000)
    if bench.wants("full.memory-question"):
        bench.add("full.memory-question", peak_mb(early, bench.work))


def who(work, begin, end):
    """The command that asks who wrote eight bytes which are written between two positions."""
    ask = [HINDSIGHT, "sql", "moves", "--format", "csv"]
    written = f"SELECT min(addr) FROM memory_writes WHERE position BETWEEN {begin} AND {end} AND size = 8"
    found = run([*ask, written], work).stdout.split()[1:]
    if not found:
        raise Failed(f"nothing writes eight bytes between {begin} and {end}")
    address = int(found[0])
    return [*ask, f"SELECT position, function, old, new FROM memory_writes WHERE addr < {address + 8} AND addr + size > {address}"]


def peak_mb(command, work):
    """The memory that a process had at most, by its last figure before it ended."""
    process = subprocess.Popen(command, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = memory_kib(process.pid).get("VmHWM", peak)
        time.sleep(POLL_S)
    if process.returncode or not peak:
        raise Failed(f"{command}: {process.returncode}, {peak} kB")
    return peak / 1024


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
