"""How long does `hindsight report` take, and how long a question that groups by `args`? As measured by `tests/bench/run report`: the
whole commands, on a sealed recording of a doubly recursive function, per 4 and per 100 million calls; and the peak memory of the report.
`tests/bench/run --millions 100 --rounds 1 report` takes them of 100 million calls, which need 1.5 GB on the disk.
"""

import os
import time

from harness import HINDSIGHT, ROOT, Failed, Row, record, run

NEEDS = ("hindsight", "gcc")
ROWS = [
    Row("report.time", "report of 4 million calls", "s", at_most=1, needs=NEEDS),
    Row("report.memory", "most memory of report", "MB", at_most=512, needs=NEEDS),
    Row("report.args", "GROUP BY args, for 100 million calls", "s", at_most=5, needs=NEEDS),
]
CALLS = 4_000_000
GROUPED_CALLS = 100_000_000
BY_ARGS = "SELECT args, count(*), sum(self_ns) FROM calls GROUP BY args"


def number_for(calls):
    """The smallest argument for which fib makes at least this many calls."""
    number, this, before = 1, 1, 1
    while this < calls:
        number, this, before = number + 1, this + before + 1, this
    return number


def timed(words):
    """Runs `hindsight WORDS`; returns its seconds and its peak memory in MB."""
    began = time.monotonic()
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(HINDSIGHT, [HINDSIGHT, *words], os.environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise Failed(f"hindsight {words[0]}: status {status}")
    return time.monotonic() - began, usage.ru_maxrss * 1024 / 1e6


def measure(bench):
    program = bench.work / "fib"
    run(["gcc", "-O1", "-g", "-o", program, ROOT / "fixtures/fib/fib.c"], bench.work)
    _, summary = record(bench.work, [], [program, str(number_for(bench.sizes.call_millions * 1e6))])
    calls = summary["calls"]
    recording = str(bench.work / "rec")
    for _ in range(bench.sizes.rounds):
        seconds, megabytes = timed(["report", recording, "--json"])
        bench.add("report.time", seconds * CALLS / calls)
        bench.note("report.time", f"{seconds:.2f} s for {calls:,} calls in the last run")
        bench.add("report.memory", megabytes)
        seconds, _ = timed(["sql", recording, BY_ARGS])
        bench.add("report.args", seconds * GROUPED_CALLS / calls)
        bench.note("report.args", f"{seconds:.2f} s for {calls:,} calls in the last run")
