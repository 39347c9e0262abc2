"""How long does a tool of `hindsight mcp` take to answer, not counting opening? As measured by `tests/bench/run mcp`.

Each figure is the median of several kinds of calls, from writing the request to reading the whole answer, over standard input and
output, as a client sees it. The recording has `--millions` million calls; the program is stopped at a breakpoint.
"""

import itertools
import json
import os
import shutil
import statistics
import subprocess
import time

from harness import HINDSIGHT, Failed, Row, record, run

NEEDS = ("hindsight", "gcc")
ROWS = [
    Row("mcp.recording", "a tool call on a recording of millions of calls", "ms", at_most=100, needs=NEEDS),
    Row("mcp.paused", "a tool call on a paused program", "ms", at_most=100, needs=NEEDS),
]
REPEATS = 10
SOURCE = r"""
#include <stdlib.h>
volatile long sum;
__attribute__((noinline)) void work(long i) { sum += i; }
__attribute__((noinline)) long odd(long i) { work(i); return i % 1000003 == 0 ? -1 : i; }
int main(int argc, char **argv) {
  for (long i = 1; i <= atol(argv[1]) / 2; i++) odd(i);
  return 0;
}
"""


class Server:
    """A server with a line-based protocol."""

    def __init__(self, cwd, environment):
        self.process = subprocess.Popen([HINDSIGHT, "mcp"], cwd=cwd, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ids = itertools.count()
        client = {"name": "bench", "version": "0"}
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def say(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def request(self, method, params):
        number = next(self.ids)
        self.say({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == number:
                return answer["result"]
        raise Failed("hindsight mcp ended before it answered")

    def call(self, tool, refused=None, **arguments):
        """Calls a tool, which must succeed or be refused with this code; returns its text and the milliseconds."""
        begun = time.monotonic()
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        took = (time.monotonic() - begun) * 1000
        if result.get("isError") and (not refused or f'"{refused}"' not in result["content"][0]["text"]):
            raise Failed(f"{tool} {arguments}: {result}")
        return result["content"][0]["text"], took

    def leave(self):
        self.process.stdin.close()
        self.process.wait(10)


def median_of(server, calls):
    """The median over all calls, each made several times; the first time opens files and does not count."""
    for tool, arguments in calls:
        server.call(tool, **arguments)
    times = [server.call(tool, **arguments)[1] for _ in range(REPEATS) for tool, arguments in calls]
    return statistics.median(times)


def measure(bench):
    if not (bench.wants("mcp.recording") or bench.wants("mcp.paused")):
        return
    folder = bench.work / "mcp-daemon"
    folder.mkdir(mode=0o700, exist_ok=True)
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
    (bench.work / "odd.c").write_text(SOURCE)
    run(["gcc", "-g", "-O1", "-o", "odd", "odd.c"], bench.work)
    calls = int(bench.sizes.call_millions * 1e6)
    record(bench.work, [], ["./odd", str(calls)])
    for _ in range(bench.sizes.rounds):
        server = Server(bench.work, environment)
        try:
            if bench.wants("mcp.recording"):
                bench.add("mcp.recording", on_recording(server, calls))
            if bench.wants("mcp.paused"):
                bench.add("mcp.paused", on_program(server))
                shutil.rmtree(bench.work / "paused.hindsight", ignore_errors=True)
        finally:
            server.leave()
    shutil.rmtree(bench.work / "rec.hindsight", ignore_errors=True)


def on_recording(server, calls):
    where = {"recording": "rec"}
    seqs = [calls // 7, calls, calls * 3 // 2]
    looks = [("debug_state", {**where, "at": seq}) for seq in seqs]
    return median_of(
        server,
        [
            *looks,
            ("debug_query", {**where, "function": {"equals": "odd"}, "returnValue": {"lessThan": 0}, "limit": 1}),
            ("debug_query", {**where, "seqFrom": calls, "seqTo": calls + 20}),
            ("debug_sql", {**where, "sql": f"select * from calls where start_seq between {calls} and {calls + 50} order by start_seq"}),
            ("debug_source", {**where, "location": "odd"}),
        ],
    )


def on_program(server):
    server.call("debug_launch", program="./odd", args=["2000"], breakAt=["work"], recording="paused")
    took = median_of(
        server,
        [
            ("debug_state", {}),
            ("debug_read", {"targets": [{"variable": "i"}, {"variable": "sum"}]}),
            ("debug_source", {}),
            ("debug_continue", {"action": "step-over"}),
            ("debug_continue", {}),
        ],
    )
    server.call("debug_session", action="stop")
    return took
