"""How long does `hindsight compare` take? As `tests/bench/run compare` measures it: the whole command, on sealed recordings of a
program that fills and searches a binary tree (tree.c), and the most memory that it took. Two recordings of one run's input are
equal; with another seed nearly all calls differ. Two with `--memory` also have the blocks that each pointer leads to. With ten times as
many events, the memory should be the same.

The goals are for 10 million events in each recording; another number is converted.
"""

import os
import time

from harness import HINDSIGHT, ROOT, Failed, Row, run

NEEDS = ("hindsight", "gcc")
ROWS = [
    Row("compare.same", "two equal recordings, per 10 million events", "s", at_most=3, needs=NEEDS),
    Row("compare.same_memory", "most memory of that", "MB", at_most=2048, needs=NEEDS),
    Row("compare.blocks", "two equal recordings with --memory, per 10 million events", "s", at_most=3, needs=NEEDS),
    Row("compare.blocks_memory", "most memory of that", "MB", at_most=2048, needs=NEEDS),
    Row("compare.other", "nearly all calls differ, per 10 million events", "s", at_most=10, needs=NEEDS),
    Row("compare.other_memory", "most memory of that", "MB", at_most=2048, needs=NEEDS),
    Row("compare.long_same", "ten times as many events, equal, per 10 million", "s", needs=NEEDS),
    Row("compare.long_same_memory", "most memory of that", "MB", at_most=2048, needs=NEEDS),
    Row("compare.long_other", "ten times as many events, nearly all differ, per 10 million", "s", needs=NEEDS),
    Row("compare.long_other_memory", "most memory of that", "MB", at_most=2048, needs=NEEDS),
]
GOAL_EVENTS = 10_000_000
# The approximate number of calls for each inserted or searched node.
DEPTH = 20


def measure(bench):
    program = bench.work / "tree"
    run(["gcc", "-O1", "-g", "-o", program, ROOT / "tests/bench/tree.c"], bench.work)
    # Each call has two events. One round inserts the nodes, the others search for them.
    nodes = int(bench.sizes.call_millions * 1e6 / 2 / DEPTH / 2)
    for name, rounds in (("compare.", 1), ("compare.long_", 19)):
        wanted = [row for row in bench.rows if row.startswith(name) and ("long" in name or "long" not in row)]
        if not wanted:
            continue
        all_of = {"a": (1, []), "b": (1, []), "c": (2, []), "d": (1, ["--memory"]), "e": (1, ["--memory"])}
        pairs = [("same", "a", "b", 0), ("other", "a", "c", 1), ("blocks", "d", "e", 0)]
        pairs = [pair for pair in pairs if any(row.startswith(f"{name}{pair[0]}") for row in wanted)]
        needed = sorted({recording for pair in pairs for recording in pair[1:3]})
        for recording in needed:
            seed, options = all_of[recording]
            command = [HINDSIGHT, "record", *options, "-o", recording, "--", program, str(nodes), str(rounds), str(seed)]
            run(command, bench.work)
        for _ in range(bench.sizes.rounds):
            for row, one, other, expected in pairs:
                compare(bench, f"{name}{row}", (one, other), expected)
        for recording in needed:
            run(["rm", "-r", f"{recording}.hindsight"], bench.work)


def compare(bench, name, pair, expected):
    """Compares two recordings and keeps time and memory of a row."""
    if not (bench.wants(name) or bench.wants(f"{name}_memory")):
        return
    recordings = [str(bench.work / recording) for recording in pair]
    answer = bench.work / "answer"
    began = time.monotonic()
    pid = os.posix_spawn(
        HINDSIGHT,
        [HINDSIGHT, "compare", *recordings],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, answer, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)],
    )
    _, status, usage = os.wait4(pid, 0)
    seconds = time.monotonic() - began
    if os.waitstatus_to_exitcode(status) != expected:
        raise Failed(f"hindsight compare: status {status}\n{answer.read_text()}")
    events = int(run([HINDSIGHT, "sql", pair[0], "SELECT 2 * count(*) FROM calls", "--format", "csv"], bench.work).stdout.split()[-1])
    bench.add(name, seconds * GOAL_EVENTS / events)
    processor = usage.ru_utime + usage.ru_stime
    bench.note(name, f"{seconds:.2f} s for {events:,} events in the last run, {processor:.2f} s of processor time")
    bench.add(f"{name}_memory", usage.ru_maxrss * 1024 / 1e6)
