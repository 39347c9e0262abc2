"""A cluster of Ballista on loopback addresses: one scheduler and two executors, each a process of its own, which end with it.

`Wheel` starts those of the wheel, `Binaries` those that cargo built of the published crates. What each did is read from its log.
"""

import collections
import ctypes
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

DEADLINE_S = 30
# The scheduler tells executors that it is at `localhost`.
SCHEDULER = "127.0.0.1"
LIBC = ctypes.CDLL(None)
HERE = pathlib.Path(__file__).parent


def free_port(host):
    """A port of `host` that nobody listens on."""
    with socket.create_server((host, 0)) as listener:
        return listener.getsockname()[1]


def tables(place):
    """Statements that make tables of what was exported to `place`."""
    make = "CREATE EXTERNAL TABLE {0} STORED AS PARQUET PARTITIONED BY (run) LOCATION '{1}/table={0}/'"
    return [make.format(table, place) for table in ("calls", "runs")]


def wait_for(what, ask):
    """Asks until the answer is true."""
    end = time.monotonic() + DEADLINE_S
    while not ask():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not after {DEADLINE_S} s")
        time.sleep(0.05)


def listens(host, port):
    """Whether a connection is taken."""
    try:
        socket.create_connection((host, port)).close()
    except OSError:
        return False
    return True


class Relay(threading.Thread):
    """Carries connections to the scheduler that then come from an address of one executor's own."""

    def __init__(self, host, port):
        super().__init__(daemon=True)
        self.to = (SCHEDULER, port)
        self.host = host
        self.listener = socket.create_server((host, 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(self.to, source_address=(self.host, 0))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=carry, args=pair, daemon=True).start()


def carry(source, sink):
    """Copies all bytes of one direction."""
    try:
        while piece := source.recv(1 << 16):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        # Either side ended.
        pass


class Cluster:
    """What both kinds share: processes with logs, and what the logs say."""

    def __init__(self, folder, env=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.env = {**os.environ, "TMPDIR": str(self.folder), **(env or {})}
        self.processes = []

    def __enter__(self):
        try:
            self.start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start_all(self):
        """Starts the scheduler, then the executors, and waits until it knows them."""
        self.port = free_port(SCHEDULER)
        # Three numbers of 127.0.0.0/8 that no other cluster of this machine is likely to have.
        net = f"127.{random.randrange(64, 255)}.{random.randrange(256)}"
        self.start("scheduler", self.scheduler())
        wait_for("the scheduler", lambda: listens(SCHEDULER, self.port))
        for index in (0, 1):
            self.start(f"executor-{index}", self.executor(f"{net}.{index + 2}"))
        for index in (0, 1):
            wait_for(f"executor {index}", lambda: "registration succeed" in self.log(f"executor-{index}"))

    def start(self, name, command):
        """Starts a process, which is killed when this one ends without a word."""
        with open(self.folder / f"{name}.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.env,
                preexec_fn=lambda: LIBC.prctl(1, signal.SIGKILL),
            )
        self.processes.append((name, process))

    def stop(self):
        """Ends all processes. What they leave is in the folder."""
        for _, process in self.processes:
            process.kill()
        for _, process in self.processes:
            process.wait()

    def ask(self, statements):
        """The rows of each statement, asked by a client in a process of its own."""
        said = subprocess.run(self.client(statements), check=True, stdout=subprocess.PIPE, text=True, env=self.env).stdout
        return [json.loads(line) for line in said.splitlines()]

    def log(self, name):
        """What a process has written."""
        for which, process in self.processes:
            if which == name and process.poll() is not None:
                raise RuntimeError(f"{name} has ended:\n{(self.folder / f'{name}.log').read_text()}")
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")

    def jobs(self):
        """Of each job, in the order of the questions: the runs whose files its plan names, and the tasks of each stage by executor."""
        parts = re.split(r"Job queued: \[(\w+)\]", self.log("scheduler"))
        jobs = {}
        for job, text in zip(parts[1::2], parts[2::2]):
            runs = sorted(set(re.findall(r"/run=([^/]+)/part", text)))
            jobs[job] = {"runs": runs, "stages": collections.defaultdict(lambda: [0, 0])}
        for index in (0, 1):
            done = re.findall(r"Finished task : \[TID (?:\d+ )?(\w+)/(\d+)", self.log(f"executor-{index}"))
            for job, stage in done:
                jobs[job]["stages"][stage][index] += 1
        return list(jobs.values())


class Wheel(Cluster):
    """The processes of the wheel. An executor's address is what the scheduler sees it come from, and its second port is always the
    same, so each has an address of its own, and a relay from there."""

    def scheduler(self):
        return [sys.executable, HERE / "node.py", "scheduler", SCHEDULER, str(self.port)]

    def executor(self, host):
        relay = Relay(host, self.port)
        return [sys.executable, HERE / "node.py", "executor", host, str(free_port(host)), host, str(relay.port)]

    def client(self, statements):
        return [sys.executable, HERE / "client.py", f"df://{SCHEDULER}:{self.port}", *statements]


class Binaries(Cluster):
    """The programs `ballista-scheduler`, `ballista-executor` and `ballista-client` of a folder, which read `s3://` too."""

    def __init__(self, folder, programs, env=None):
        super().__init__(folder, env)
        self.programs = pathlib.Path(programs)

    def scheduler(self):
        return [self.programs / "ballista-scheduler", "--bind-host", SCHEDULER, "--bind-port", str(self.port)]

    def executor(self, host):
        scheduler = ["--scheduler-host", SCHEDULER, "--scheduler-port", str(self.port)]
        ports = [f"--bind-{which}port={free_port(host)}" for which in ("", "grpc-", "health-")]
        own = ["--bind-host", host, "--external-host", host, "--vcores", "1"]
        return [self.programs / "ballista-executor", *scheduler, *own, *ports]


    def client(self, statements):
        return [self.programs / "ballista-client", f"df://{SCHEDULER}:{self.port}", *statements]
