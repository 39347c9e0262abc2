"""How long do opening, goto, step back and next take on recordings with more than calls: captures, copies of memory, an unsealed log,
a program that is still running?

Usage: python3 tests/bench/goto.py [MILLION-EVENTS] [JUMPS] [ROW...]     (10 and 1000 by default; needs gcc, the binary that HINDSIGHT_BIN names or
       target/release/hindsight, and beside it examples/goto_bench: cargo build --release -p replay --example goto_bench)
tests/bench/queue.c is recorded with each list of options, then measured with replay's example goto_bench. For the last rows the
program waits at its end: the recording is measured while the recorder seals it, and again after the recorder was killed. ROW selects
rows by the beginning of their titles. With 10 million events the recordings take some 6 GB below the folder for temporary files,
TMPDIR; `goto.py 100 1000 registers` takes 25 GB.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HINDSIGHT = pathlib.Path(os.environ.get("HINDSIGHT_BIN", ROOT / "target/release/hindsight"))
BENCH = HINDSIGHT.parent / "examples/goto_bench"
EVENTS = int(float(sys.argv[1] if len(sys.argv) > 1 else "10") * 1e6)
JUMPS = sys.argv[2] if len(sys.argv) > 2 else "1000"
ROWS = tuple(sys.argv[3:]) or ("",)
NESTING = "30"
CAPTURES = ["--regs", "--stack", "256", "--strings"]
COPIES = ["--snapshot", f"every={max(EVENTS // 500, 1)}events"]
RECORDINGS = {
    "calls alone": [],
    "registers": ["--regs"],
    "captures": CAPTURES,
    "copies": COPIES,
    "captures and copies": [*CAPTURES, *COPIES],
}


def record(work, name, options, *arguments):
    command = [HINDSIGHT, "record", "-o", name, *options, "--", work / "queue", str(EVENTS // 2), NESTING, *arguments]
    return subprocess.Popen(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def program_of(recorder, work):
    """The child of `recorder` that runs the program."""
    for pid in map(int, pathlib.Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text().split()):
        if os.path.realpath(f"/proc/{pid}/exe") == str(work / "queue"):
            return pid
    sys.exit("the program has ended")


def unsealed(work, name):
    """The unsealed part of the log in megabytes."""
    return sum(path.stat().st_size for path in (work / f"{name}.hindsight/log").glob("*.seg")) >> 20


def measure(work, title, name):
    answer = subprocess.run([BENCH, work / f"{name}.hindsight", JUMPS, "queue.len"], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(work)})
    if answer.returncode:
        sys.exit(f"{title}: {answer.stderr}")
    found = re.findall(r"(?:events|open|median|99th percentile|most|VmHWM:) *([^,\n]+)", answer.stdout)
    print(f"| {title} | {' | '.join(found)} |", flush=True)


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="hindsight-goto-")).resolve()
    try:
        subprocess.run(["gcc", "-O0", "-g", "-o", work / "queue", ROOT / "tests/bench/queue.c"], check=True)
        print("| recording | events | open | goto median | 99 % | most | back median | 99 % | most | next median | 99 % | most | peak |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
        for title, options in RECORDINGS.items():
            if not title.startswith(ROWS):
                continue
            recorder = record(work, "run", options)
            recorder.communicate()
            if recorder.returncode:
                sys.exit(f"recording {title} failed")
            measure(work, title, "run")
            shutil.rmtree(work / "run.hindsight")
        for title in ("calls alone", "captures"):
            if not f"{title}, log".startswith(ROWS):
                continue
            recorder = record(work, "run", RECORDINGS[title], "wait")
            recorder.stdout.readline()
            program = program_of(recorder, work)
            measure(work, f"{title}, {unsealed(work, 'run')} MB of log not sealed yet", "run")
            recorder.kill()
            recorder.wait()
            os.kill(program, signal.SIGKILL)
            measure(work, f"{title}, the recorder killed with {unsealed(work, 'run')} MB not sealed", "run")
            shutil.rmtree(work / "run.hindsight")
    finally:
        shutil.rmtree(work)


main()
