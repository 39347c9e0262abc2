"""How much memory do the recorder, sealing and a query take on a long recording? As measured by `tests/bench/run memory`.

A function of 1 ns (that of fixtures/tight) is called that many times; 100 million calls need some 10 GB of disk in the folder for
temporary files (TMPDIR). The peak is the kernel's figure for the process (VmHWM), read while the program runs (the recorder, with the
sealing in parallel) and after it has ended (the sealing of the rest). A note gives the process's own memory (RssAnon) and the rings
that it shares with the program (RssShmem), both sampled every few milliseconds. The recorded calls are counted afterwards: none may be
missing.
"""

import os
import pathlib
import re
import subprocess
import time

from harness import HINDSIGHT, ROOT, Failed, Row, check_nothing_was_lost, run

NEEDS = ("hindsight", "gcc")
ROWS = [
    Row("memory.recorder", "most memory of the recorder while the program runs", "MB", needs=NEEDS),
    Row("memory.sealing", "most memory of sealing what is left", "MB", needs=NEEDS),
    Row("memory.query", "most memory of GROUP BY function with sums over all calls", "MB", needs=NEEDS),
]
QUESTION = "SELECT function, count(*), sum(dur_ns), sum(self_ns) FROM calls GROUP BY function ORDER BY 2 DESC"
POLL_S = 0.005


def memory_kib(pid):
    """VmHWM and its parts, in KiB; empty once the process is gone."""
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
    """The maximum of each figure in one phase."""

    def __init__(self):
        self.kib = {}
        self.seconds = 0.0

    def add(self, figures, seconds):
        for name, value in figures.items():
            self.kib[name] = max(value, self.kib.get(name, 0))
        self.seconds += seconds

    def mb(self, name):
        """One of the peaks."""
        if name not in self.kib:
            raise Failed(f"a phase was over before its {name} was seen: ask for more calls")
        return self.kib[name] / 1024


def watch(command, cwd, program=None):
    """Runs a command. Returns the peaks while `program` is its child, the peaks of the rest, and its output."""
    phases = {True: Peak(), False: Peak()}
    with open(cwd / "out", "w+b") as out, open(cwd / "err", "w+b") as err:
        process = subprocess.Popen(command, cwd=cwd, stdout=out, stderr=err)
        begun, last = program is None, time.monotonic()
        while process.poll() is None:
            running = program is not None and runs(process.pid, program)
            begun = begun or running
            now = time.monotonic()
            # The time before the program starts belongs to the phase that records it.
            phases[running or not begun].add(memory_kib(process.pid), now - last)
            last = now
            time.sleep(POLL_S)
        text = (cwd / "out").read_text()
        if process.returncode:
            raise Failed(f"{command}: {process.returncode}\n{(cwd / 'err').read_text()}")
    return phases[True], phases[False], text


def measure(bench):
    work, calls = bench.work, int(bench.sizes.memory_millions * 1e6)
    program = work.resolve() / "tight"
    run(["gcc", "-O2", "-g", "-o", program, ROOT / "fixtures/tight/tight.c"], work)
    command = [HINDSIGHT, "record", "-o", "rec", "-f", "work", "--", program, str(calls)]
    recording, sealing, _ = watch(command, work, program)
    check_nothing_was_lost(work, calls)
    tell(bench, "memory.recorder", recording, calls)
    tell(bench, "memory.sealing", sealing, calls)
    if bench.wants("memory.query"):
        _, query, answer = watch([HINDSIGHT, "sql", "rec", QUESTION], work)
        if f"{calls}" not in answer:
            raise Failed(f"not all calls were counted:\n{answer}")
        tell(bench, "memory.query", query, calls)


def tell(bench, name, peak, calls):
    """Adds a phase's peak, with its parts."""
    bench.add(name, peak.mb("VmHWM"))
    parts = f"{peak.mb('RssAnon'):.0f} own, {peak.mb('RssShmem'):.0f} shared"
    bench.note(name, f"{calls:,} calls, {parts}, {peak.seconds:.1f} s")
