"""Runs scripts of this folder, each in a process of its own that need not import the protocol's SDK, which takes a second. Each line of
standard input is JSON: `script`, `arguments`, `folder`, `environment`, and `told`, the folder for the files `output`, `errors`, `pid` of
the process group and, at the end, `status`.
"""

import json
import os
import runpy
import signal
import sys
import traceback

import harness  # noqa: F401 (the scripts import it)


def tell(job, name, number):
    """Writes a number to a file that is complete once it is there."""
    path = os.path.join(job["told"], name)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(str(number))
    os.rename(path + ".new", path)


def redirect(job):
    """Gives the process the script's folder, environment and files."""
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor, name in ((1, "output"), (2, "errors")):
        path = os.path.join(job["told"], name)
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)


def run(job):
    """Runs the script in this process, and returns its status."""
    redirect(job)
    sys.argv = [job["script"], *job["arguments"]]
    try:
        runpy.run_path(job["script"], run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # as the interpreter does at the top
        traceback.print_exc()
        return 1
    return 0


def watch(job):
    """Runs the script in another process of a group of its own, and tells how it ended."""
    os.setpgid(0, 0)
    tell(job, "pid", os.getpid())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    script = os.fork()
    if script == 0:
        status = run(job)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    _, status = os.waitpid(script, 0)
    tell(job, "status", os.waitstatus_to_exitcode(status))
    os._exit(0)


def main():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in iter(sys.stdin.readline, ""):
        if os.fork() == 0:
            watch(json.loads(line))


if __name__ == "__main__":
    main()
