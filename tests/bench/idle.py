"""How much processor time does Hindsight take while there is nothing to do? As measured by `tests/bench/run idle`.

The figure covers all processes of Hindsight that take part: user and system time, from /proc/PID/stat, over a minute that begins when
everything has settled. The program sleeps, or is stopped, and there are no requests during that minute.
"""

import os
import pathlib
import shutil
import subprocess
import time

from harness import HINDSIGHT, Failed, Row, run

ROWS = [
    Row("idle.stopped", "processor: a session whose program is stopped", "% of a core", at_most=0.1),
    Row("idle.left-alone", "processor: a session whose program sleeps", "% of a core", at_most=0.1),
    Row("idle.five-sessions", "processor: a daemon with five sessions, stopped and sleeping", "% of a core", at_most=0.1),
    Row("idle.recorder", "processor: `hindsight record sleep`", "% of a core", at_most=0.1),
]
SETTLING_S = 4
SLEEP = ["sleep", "100000"]
MARK = "HINDSIGHT_IDLE_BENCH"


def measure(bench):
    for _ in range(bench.sizes.rounds):
        for name, prepare in {
            "idle.stopped": lambda env: start(env, bench.work, "--stop-on-entry"),
            "idle.left-alone": lambda env: start(env, bench.work),
            "idle.five-sessions": lambda env: several(env, bench.work),
            "idle.recorder": lambda env: recorder(env, bench.work),
        }.items():
            if bench.wants(name):
                bench.add(name, share(bench, prepare))


def share(bench, prepare):
    """Starts something, and returns its processor time in percent of a core."""
    folder = bench.work / "idle-runtime"
    folder.mkdir(mode=0o700)
    env = os.environ | {"XDG_RUNTIME_DIR": str(folder), "XDG_CONFIG_HOME": str(folder), MARK: str(folder)}
    end = prepare(env)
    try:
        time.sleep(SETTLING_S)
        begun, before = time.monotonic(), processor_ticks(folder)
        time.sleep(bench.sizes.idle_s)
        seconds, after = time.monotonic() - begun, processor_ticks(folder)
    finally:
        end()
        shutil.rmtree(folder)
    if not before or before.keys() != after.keys():
        raise Failed(f"processes came or went: {before}, then {after}")
    ticks = sum(after.values()) - sum(before.values())
    return 100 * ticks / os.sysconf("SC_CLK_TCK") / seconds


def processor_ticks(folder):
    """The processor time of each of Hindsight's processes, by its id."""
    mark = f"{MARK}={folder}".encode()
    ticks = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            is_ours = (process / "exe").resolve() == HINDSIGHT.resolve()
            if is_ours and mark in (process / "environ").read_bytes().split(b"\0"):
                fields = (process / "stat").read_text().rsplit(") ", 1)[1].split()
                ticks[process.name] = int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return ticks


def start(env, work, *options):
    """Starts a session; returns the function that ends it."""
    run([HINDSIGHT, "start", "-o", work / "idle", *options, "--", *SLEEP], work, env=env)

    def end():
        run([HINDSIGHT, "stop"], work, env=env)
        shutil.rmtree(work / "idle.hindsight")

    return end


def several(env, work):
    """Starts five sessions; returns the function that ends them."""
    for number in range(5):
        options = ["--stop-on-entry"] if number % 2 else []
        run([HINDSIGHT, "start", "-o", work / f"idle-{number}", *options, "--", *SLEEP], work, env=env)

    def end():
        for number in range(5):
            run([HINDSIGHT, "stop", "--session", str(number + 1)], work, env=env)
            shutil.rmtree(work / f"idle-{number}.hindsight")

    return end


def recorder(env, work):
    """Starts a recording; returns the function that ends it."""
    command = [HINDSIGHT, "record", "-o", "idle", "--", *SLEEP]
    process = subprocess.Popen(command, cwd=work, env=env, stderr=subprocess.DEVNULL)

    def end():
        process.terminate()
        process.wait()
        shutil.rmtree(work / "idle.hindsight")

    return end
