"""How often does `hindsight compare --baseline ... --candidate ...` report the same build as slower? As measured by `tests/bench/run
slower`: 20 pairs of five and five recordings of one small program (tree.c), made in turn, at the default level.
"""

import subprocess

from harness import HINDSIGHT, ROOT, Failed, Row, run

NEEDS = ("hindsight", "gcc")
ROWS = [Row("slower.false_alarms", "pairs of one build that are called slower, of 20", "pairs", at_most=1, needs=NEEDS)]
PAIRS = 20
RUNS = 5
NODES = 5_000


def measure(bench):
    program = bench.work / "tree"
    run(["gcc", "-O1", "-g", "-o", program, ROOT / "tests/bench/tree.c"], bench.work)
    alarms, told = 0, []
    for pair in range(PAIRS):
        names = [f"{side}{number}" for number in range(RUNS) for side in "ab"]
        for name in names:
            run([HINDSIGHT, "record", "-o", name, "--", program, str(NODES), "2", "7"], bench.work)
        own, other = names[0::2], names[1::2]
        command = [HINDSIGHT, "compare", "--baseline", *own, "--candidate", *other]
        found = subprocess.run(command, cwd=bench.work, capture_output=True, text=True, check=False)
        if found.returncode not in (0, 1):
            raise Failed(f"hindsight compare: {found.returncode}\n{found.stderr}")
        if found.returncode == 1:
            alarms += 1
            told.append(f"pair {pair + 1}")
        for name in names:
            run(["rm", "-r", f"{name}.hindsight"], bench.work)
    bench.add("slower.false_alarms", alarms)
    bench.note("slower.false_alarms", f"{RUNS} and {RUNS} recordings in each{''.join(', ' + pair for pair in told)}")
