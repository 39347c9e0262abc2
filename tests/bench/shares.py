"""Do the corrected times of `hindsight report` say the same as a profiler? `python3 tests/bench/shares.py PROGRAM [ARGUMENT...]`
runs a program under `perf record` (software clock) until there are enough samples, and recorded with Hindsight several times, and
prints the share of each function's own time from both, for the functions that perf gives at least 2 %.

A sample is its innermost recorded function's, as Hindsight counts calls of functions that are not recorded as their caller's own
time. So perf keeps stacks, and the program must have frame information; it need not have frame pointers. The goal is a ratio
of 0.75 to 1.25.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HINDSIGHT = os.environ.get("HINDSIGHT_BIN", "hindsight")
LEAST_SHARE = 0.02
FREQUENCY = "4000"


def samples(command, folder, wanted):
    """Stacks of the program, the innermost function first, until there are so many."""
    stacks = []
    while len(stacks) < wanted:
        data = folder / "perf.data"
        record = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", FREQUENCY, "--call-graph", "dwarf,4096", "-o", data, "--", *command]
        subprocess.run(record, cwd=folder, stdout=subprocess.DEVNULL, check=True)
        script = ["perf", "script", "-i", data, "--no-inline", "-F", "ip,sym"]
        text = subprocess.run(script, capture_output=True, text=True, check=True).stdout
        before = len(stacks)
        for block in text.split("\n\n"):
            names = [line.split(None, 1)[1] for line in block.splitlines() if len(line.split(None, 1)) == 2]
            if names:
                stacks.append([re.sub(r"\+0x[0-9a-f]+$", "", name) for name in names])
        if len(stacks) == before:
            sys.exit("error: perf took no sample; run something that takes longer")
    return stacks


def recorded(command, folder, runs):
    """Of each recorded function: its share, corrected and as measured, in each of several recordings."""
    shares, names = collections.defaultdict(list), set()
    for _ in range(runs):
        subprocess.run([HINDSIGHT, "record", "-o", "rec", "--", *command], cwd=folder, stdout=subprocess.DEVNULL, check=True)
        rows = sql(folder, "select function, calls, self_ns, raw_self_ns from report")
        names |= {row["function"] for row in sql(folder, "select name as function from functions")}
        own, raw = (sum(row[column] for row in rows) or 1 for column in ("self_ns", "raw_self_ns"))
        for row in rows:
            shares[row["function"]].append((row["self_ns"] / own, row["raw_self_ns"] / raw, row["calls"]))
        subprocess.run([HINDSIGHT, "rm", "--yes", "rec"], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return shares, names


def sql(folder, question):
    answer = subprocess.run([HINDSIGHT, "sql", "rec", question, "--format", "jsonl"], cwd=folder, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in answer.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=5000, help="of perf, at least")
    parser.add_argument("--runs", type=int, default=3, help="recordings")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    command = [str(pathlib.Path(asked.command[0]).resolve()), *asked.command[1:]]
    with tempfile.TemporaryDirectory(prefix="hindsight-shares-") as name:
        folder = pathlib.Path(name)
        shares, names = recorded(command, folder, asked.runs)
        counts = collections.Counter()
        for stack in samples(command, folder, asked.samples):
            counts[next((function for function in stack if function in names), None)] += 1
    outside = counts.pop(None, 0)
    total = sum(counts.values())
    print(f"{total:,} samples in recorded functions, {outside:,} outside; load {os.getloadavg()[0]:.1f}\n")
    print("| function | calls | perf | corrected | ratio | as measured |\n|---|---|---|---|---|---|")
    missed = 0
    for function, count in counts.most_common():
        share = count / total
        if share < LEAST_SHARE:
            break
        told = shares.get(function, [(0, 0, 0)])
        own, raw = (statistics.median(run[at] for run in told) for at in (0, 1))
        missed += not 0.75 <= own / share <= 1.25
        print(f"| `{function}` | {told[-1][2]:,} | {share:.1%} | {own:.1%} | {own / share:.2f} | {raw:.1%} |")
    print(f"\n{missed} outside 0.75 to 1.25")


main()
