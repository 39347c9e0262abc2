"""Runs a command on a pseudo terminal: terminal.py COLUMNS[xROWS] [--slowly] [--step WAIT SEND]... -- COMMAND...

Each step waits until the terminal has received WAIT since the step before, then types SEND. A step whose WAIT begins with
"until:" types SEND again and again until the rest of WAIT was received. A SEND that begins with "hex:" is bytes, and one that begins with
"run:" is a shell command that is run instead. With --slowly, the command
is stopped most of the time. What the terminal received goes to stdout, with the
exit code in a last line when it is not 0."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

GIVE_UP_S = 120
RUNS_S = 0.003
RESTS_S = 0.03


class Terminal:
    def __init__(self, columns, rows, command):
        self.received = b""
        self.seen = 0
        self.deadline = time.monotonic() + GIVE_UP_S
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvp(command[0], command)

    def read(self, timeout_s):
        """Reads what is there; False at the end."""
        if time.monotonic() > self.deadline:
            os.kill(self.pid, signal.SIGKILL)
            sys.exit(f"gave up after {GIVE_UP_S} s; received: {self.received!r}")
        if select.select([self.fd], [], [], timeout_s)[0]:
            try:
                block = os.read(self.fd, 65536)
            except OSError:
                return False
            self.received += block
            return bool(block)
        return True

    def has(self, text):
        at = self.received.find(text, self.seen)
        if at >= 0:
            self.seen = at + len(text)
        return at >= 0

    def step(self, wait, send):
        again = wait.startswith("until:")
        command = send.removeprefix("run:") if send.startswith("run:") else None
        is_hex = send.startswith("hex:")
        send = bytes.fromhex(send.removeprefix("hex:")) if is_hex else send.encode()
        text = wait.removeprefix("until:").encode()
        next_s = time.monotonic()
        while not self.has(text):
            # Not in a flood: each Ctrl-C also discards what the terminal has not passed on yet.
            if again and time.monotonic() >= next_s:
                os.write(self.fd, send)
                next_s = time.monotonic() + 1
            if not self.read(0.3):
                sys.exit(f"ended before {text!r}; received: {self.received!r}")
        if command is not None:
            subprocess.run(command, shell=True, check=True)
        elif not again:
            os.write(self.fd, send)


def slow_down(pid, is_over):
    """Lets a process run for a tenth of the time, as on a slow machine."""
    while not is_over.wait(RUNS_S):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(RESTS_S)
        os.kill(pid, signal.SIGCONT)


def main():
    split = sys.argv.index("--")
    columns, _, rows = sys.argv[1].partition("x")
    options, command = sys.argv[2:split], sys.argv[split + 1 :]
    terminal = Terminal(int(columns), int(rows or 40), command)
    is_over = threading.Event()
    slowing = threading.Thread(target=slow_down, args=(terminal.pid, is_over), daemon=True)
    if options[:1] == ["--slowly"]:
        options = options[1:]
        # Beside other work, it would be stopped too late.
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, -15)
        slowing.start()
    for i in range(0, len(options), 3):
        terminal.step(options[i + 1], options[i + 2])
    while terminal.read(0.3):
        pass
    is_over.set()
    if slowing.is_alive():
        slowing.join()
    code = os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1])
    sys.stdout.buffer.write(terminal.received)
    if code != 0:
        print(f"--- exit code {code}")


main()
