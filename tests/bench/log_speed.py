"""How many bytes does a call take, how fast do records move from the rings to the log, and does the program wait for space?

As measured by `tests/bench/run bytes log`. The program is the one of call_cost.py, which writes as fast as a thread can; each of its
calls is 104 bytes of records in its ring. The recorder has to keep up with one call in the time of the goal of `call.hindsight`: a
program with a call every 45 ns takes no longer than that, though it is late now and then. `--on-full drop` shows how often threads
find no space: a call is then lost exactly where the thread would have waited, and nothing else differs before the first lost call.
"""

import re
import shutil

from call_cost import build, ns_per_call
from harness import ROOT, Row, cargo_built, check_nothing_was_lost, info, record, run

NEEDS = ("hindsight", "gcc")
# One core should keep up with gigabytes per second, so that programs need not wait.
ROWS = [
    Row("bytes.log", "a call in the log, packed (of 104 in the ring)", "B", needs=NEEDS),
    Row("bytes.sealed", "the same call sealed: two of its numbers are random, 16 B", "B", at_most=12, needs=NEEDS),
    Row("bytes.sealed-fib", "a call of fib(25), sealed", "B", at_most=12, needs=NEEDS),
    Row("log.rings", "records taken from a ring (104 B a call), the program's own time", "GB/s", at_least=2, needs=NEEDS),
    Row("log.packed", "the same by the bytes that reach the log", "GB/s", needs=NEEDS),
    Row("log.keeps-up", "a call of a program that makes one every 45 ns, all recorded", "ns", at_most=45.5, needs=NEEDS),
    Row("log.waits", "calls of that program that found the ring full", "%", needs=NEEDS),
    Row("log.waits-unpaced", "the same of a program that calls as fast as it can", "%", needs=NEEDS),
    Row("log.append", "blocks appended to a log by one thread, checksums included", "GB/s", needs=("cargo",)),
    Row("log.append-processor", "the same by the thread's processor time", "GB/s", needs=("cargo",)),
    Row("log.read", "the same log read and checked", "GB/s", needs=("cargo",)),
]
# An enter record with six arguments and a leave record with two results (docs/wire.md).
RING_BYTES = 104
PACE_NS = "45"


def measure(bench):
    if any(map(bench.wants, ("bytes.log", "bytes.sealed", "log.rings", "log.packed", "log.keeps-up", "log.waits", "log.waits-unpaced"))):
        tight(bench)
    if bench.wants("bytes.sealed-fib"):
        fib(bench)
    if any(map(bench.wants, ("log.append", "log.append-processor", "log.read"))):
        append(bench)


def tight(bench):
    """Records the loop and keeps its log, then records it again with loss instead of waiting."""
    work, calls = bench.work, int(bench.sizes.call_millions * 1e6)
    build(work)
    program = ["./plain", str(calls)]
    for _ in range(bench.sizes.rounds):
        output, _ = record(work, ["-f", "work", "--keep-log"], program)
        check_nothing_was_lost(work, calls)
        size = info(work)["bytes_on_disk"]
        bench.add("bytes.log", size["log"] / calls)
        bench.add("bytes.sealed", (size["total"] - size["log"]) / calls)
        bench.add("log.rings", RING_BYTES / ns_per_call(output))
        bench.add("log.packed", size["log"] / calls / ns_per_call(output))
        if bench.wants("log.keeps-up"):
            output, _ = record(work, ["-f", "work"], program + [PACE_NS])
            check_nothing_was_lost(work, calls)
            bench.add("log.keeps-up", ns_per_call(output))
        for row, pace in (("log.waits", [PACE_NS]), ("log.waits-unpaced", [])):
            if bench.wants(row):
                _, summary = record(work, ["-f", "work", "--on-full", "drop"], program + pace)
                bench.add(row, summary["lost"] / (summary["lost"] + summary["calls"]) * 100)
    shutil.rmtree(work / "rec.hindsight")


def fib(bench):
    """The recursion of fixtures/fib, 242,786 calls."""
    run(["gcc", "-g", "-O1", "-o", "fib", ROOT / "fixtures/fib/fib.c"], bench.work)
    _, summary = record(bench.work, [], ["./fib", "25"])
    bench.add("bytes.sealed-fib", summary["bytes_on_disk"] / summary["calls"])
    shutil.rmtree(bench.work / "rec.hindsight")


def append(bench):
    """Runs the example `append_speed` of `store`, which prints one line per round."""
    example = cargo_built("example", "store", "append_speed")
    rounds = run([example, bench.work, str(bench.sizes.log_mib), "1024", str(bench.sizes.rounds)], bench.work).stdout
    line = r"^round: append ([\d.]+), of CPU time ([\d.]+), read ([\d.]+) GB/s$"
    for rates in re.findall(line, rounds, re.MULTILINE):
        for name, rate in zip(("log.append", "log.append-processor", "log.read"), rates, strict=True):
            bench.add(name, float(rate))
