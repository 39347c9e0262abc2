"""How much memory do recorder, sealing and a query take on a long recording?

Usage: python3 tests/bench/memory.py [MILLION-CALLS]     (100 by default; needs gcc, and the binary that HINDSIGHT_BIN names or
       target/release/hindsight; 100 million calls need some 10 GB of disk below the folder for temporary files, TMPDIR)
A function of 1 ns (that of fixtures/tight) is called that many times. The peak is what the kernel says of the process (VmHWM), read
while the program runs (the recorder, with the sealing that goes on beside it) and after it has ended (the sealing of what is left).
RssAnon is memory of its own, RssShmem the rings that it shares with the program, both as seen every few milliseconds. What
was recorded is counted afterwards: nothing may be missing.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HINDSIGHT = pathlib.Path(os.environ.get("HINDSIGHT_BIN", ROOT / "target/release/hindsight"))
CALLS = int(float(sys.argv[1] if len(sys.argv) > 1 else "100") * 1e6)
QUESTION = "SELECT function, count(*), sum(dur_ns), sum(self_ns) FROM calls GROUP BY function ORDER BY 2 DESC"
POLL_S = 0.005


def memory_kib(pid):
    """VmHWM and what it consists of, in KiB; nothing once the process is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return {}
    found = re.findall(r"^(VmHWM|RssAnon|RssShmem):\s+(\d+) kB$", text, re.MULTILINE)
    return {name: int(value) for name, value in found}


def runs(parent, program):
    """Whether a child of `parent` runs the file `program`."""
    try:
        children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return any(os.path.realpath(f"/proc/{pid}/exe") == str(program) for pid in children)
    except OSError:
        return False


class Peak:
    """The largest of each figure seen in one phase."""

    def __init__(self):
        self.kib = {}
        self.seconds = 0.0

    def add(self, figures, seconds):
        for name, value in figures.items():
            self.kib[name] = max(value, self.kib.get(name, 0))
        self.seconds += seconds

    def row(self, name):
        mb = [f"{self.kib[key] / 1024:.0f}" if key in self.kib else "" for key in ("VmHWM", "RssAnon", "RssShmem")]
        return f"| {name} | {' | '.join(mb)} | {self.seconds:.1f} |"


def watch(command, cwd, program=None):
    """Runs a command. Returns the peaks while `program` runs below it, and of the rest, and what it printed."""
    phases = {True: Peak(), False: Peak()}
    with open(cwd / "out", "w+b") as out, open(cwd / "err", "w+b") as err:
        process = subprocess.Popen(command, cwd=cwd, stdout=out, stderr=err)
        begun, last = program is None, time.monotonic()
        while process.poll() is None:
            running = program is not None and runs(process.pid, program)
            begun = begun or running
            now = time.monotonic()
            # What comes before the program begins belongs to recording it.
            phases[running or not begun].add(memory_kib(process.pid), now - last)
            last = now
            time.sleep(POLL_S)
        text = (cwd / "out").read_text()
        if process.returncode:
            sys.exit(f"{command}: {process.returncode}\n{(cwd / 'err').read_text()}")
    return phases[True], phases[False], text


def number(cwd, sql):
    answer = subprocess.run(
        [HINDSIGHT, "sql", "rec", sql, "--format", "csv"], cwd=cwd, capture_output=True, text=True, check=True
    )
    return int(answer.stdout.split()[1])


def main():
    if not HINDSIGHT.exists():
        sys.exit(f"there is no {HINDSIGHT}; build it, or name it in HINDSIGHT_BIN")
    work = pathlib.Path(tempfile.mkdtemp(prefix="hindsight-memory-"))
    try:
        measure(work)
    finally:
        shutil.rmtree(work)


def measure(work):
    program = work.resolve() / "tight"
    source = ROOT / "fixtures/tight/tight.c"
    subprocess.run(["gcc", "-O2", "-g", "-o", program, source], check=True)
    command = [HINDSIGHT, "record", "-o", "rec", "-f", "work", "--", program, str(CALLS)]
    recording, sealing, _ = watch(command, work, program)
    calls = number(work, "SELECT count(*) FROM calls WHERE function = 'work' AND NOT unwound")
    gaps = number(work, "SELECT count(*) FROM gaps")
    if (calls, gaps) != (CALLS, 0):
        sys.exit(f"{calls:,} of {CALLS:,} calls are in the recording, with {gaps} gaps")
    _, query, answer = watch([HINDSIGHT, "sql", "rec", QUESTION], work)
    if f"{CALLS}" not in answer:
        sys.exit(f"not all calls were counted:\n{answer}")
    print(f"{CALLS:,} calls, all recorded\n")
    print("| what | peak MB (VmHWM) | own MB (RssAnon) | shared MB (RssShmem) | s |\n|---|---|---|---|---|")
    print(recording.row("recorder, while the program runs"))
    print(sealing.row("sealing, after it"))
    print(query.row("GROUP BY function with sums"))


main()
