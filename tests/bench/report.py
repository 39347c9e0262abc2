"""How long does `hindsight report` take? As measured by `tests/bench/run report`: the whole command, on a sealed recording of a doubly
recursive function, per 4 million calls; and its peak memory.
"""

import os
import time

from harness import HINDSIGHT, ROOT, Failed, Row, record, run

NEEDS = ("hindsight", "gcc")
ROWS = [
    Row("report.time", "report of 4 million calls", "s", at_most=1, needs=NEEDS),
    Row("report.memory", "most memory of report", "MB", at_most=512, needs=NEEDS),
]
CALLS = 4_000_000


def number_for(calls):
    """The smallest argument for which fib makes at least this many calls."""
    number, this, before = 1, 1, 1
    while this < calls:
        number, this, before = number + 1, this + before + 1, this
    return number


def measure(bench):
    program = bench.work / "fib"
    run(["gcc", "-O1", "-g", "-o", program, ROOT / "fixtures/fib/fib.c"], bench.work)
    _, summary = record(bench.work, [], [program, str(number_for(bench.sizes.call_millions * 1e6))])
    calls = summary["calls"]
    for _ in range(bench.sizes.rounds):
        began = time.monotonic()
        pid = os.posix_spawn(
            HINDSIGHT,
            [HINDSIGHT, "report", str(bench.work / "rec"), "--json"],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
        )
        _, status, usage = os.wait4(pid, 0)
        seconds = time.monotonic() - began
        if status:
            raise Failed(f"hindsight report: status {status}")
        bench.add("report.time", seconds * CALLS / calls)
        bench.note("report.time", f"{seconds:.2f} s for {calls:,} calls in the last run")
        bench.add("report.memory", usage.ru_maxrss * 1024 / 1e6)
