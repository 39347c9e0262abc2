"""How fast are events sealed? As measured by `tests/bench/run seal`, with `store`'s example `seal_bench`: one thread, processor time."""

import re
import shutil

from harness import Failed, Row, cargo_built, run

WORKLOADS = {"tight": "a loop", "fib": "recursion", "pointers": "eight random pointers a call"}
ROWS = [Row(f"seal.{name}", f"sealing, {what}", "M events per processor second", at_least=5, needs=("cargo",)) for name, what in WORKLOADS.items()]


def measure(bench):
    example = cargo_built("example", "store", "seal_bench")
    millions = str(bench.sizes.seal_millions)
    for _ in range(bench.sizes.rounds):
        for name in filter(lambda name: bench.wants(f"seal.{name}"), WORKLOADS):
            line = run([example, name, millions, bench.work], bench.work).stdout
            rate = re.search(r"\(([\d.]+) per cpu second\)", line)
            if rate is None:
                raise Failed(f"seal_bench says no rate: {line}")
            bench.add(f"seal.{name}", float(rate[1]))
            for recording in bench.work.glob("seal-bench-*"):
                shutil.rmtree(recording)
