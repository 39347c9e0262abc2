"""How much does it cost to record the calls that allocate memory, or that take a lock? As measured by `tests/bench/run library`.

The program of fixtures/leaks, or fixtures/locked, makes the same number of pairs of calls natively and recorded with only these calls
and main, in turn; its own clock gives ns per call.
"""

import shutil

from harness import HINDSIGHT, ROOT, Row, folder_bytes, run

ROWS = [
    Row("library.malloc-native", "malloc or free, not recorded", "ns", needs=("gcc",)),
    Row("library.malloc", "the same with record --memory", "ns", at_most=100, needs=("hindsight", "gcc")),
    Row("library.lock-native", "pthread_mutex_lock or _unlock, not recorded", "ns", needs=("gcc",)),
    Row("library.lock", "the same with record --locks", "ns", at_most=100, needs=("hindsight", "gcc")),
]
PROGRAMS = (("malloc", "leaks/many_blocks.c", "--memory"), ("lock", "locked/many_locks.c", "--locks"))


def measure(bench):
    work, pairs = bench.work, int(bench.sizes.call_millions * 1e6 / 2)
    for name, source, _ in PROGRAMS:
        run(["gcc", "-O1", "-g", "-fno-builtin", "-pthread", "-o", name, ROOT / "fixtures" / source], work)
    for _ in range(bench.sizes.rounds):
        for name, _, option in PROGRAMS:
            program = [f"./{name}", str(pairs), "timed"]
            recorded = [HINDSIGHT, "record", "-o", "rec", "-f", "main", option, "--", *program]
            for row, command in ((f"library.{name}-native", program), (f"library.{name}", recorded)):
                if bench.wants(row):
                    bench.add(row, float(run(command, work).stdout.split()[0]))
            if (work / "rec.hindsight").exists():
                size = folder_bytes(work / "rec.hindsight") / (2 * pairs)
                bench.note(f"library.{name}", f"{size:.1f} B a call on disk")
                shutil.rmtree(work / "rec.hindsight")
