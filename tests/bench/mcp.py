"""How long does a tool of `hindsight mcp` take to answer, not counting opening? As measured by `tests/bench/run mcp`.

Each figure is a median, from writing the request to reading the whole answer, over standard input and output, as a client sees it.
`mcp.recording` and `mcp.paused` are those of several kinds of calls, the others those of one kind each, which may read all calls. The
recording has `--millions` million calls; that of `mcp.object` has as many calls of malloc and free. The program is stopped at a breakpoint.
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
    Row("mcp.overview", "debug_overview of a recording of millions of calls", "ms", at_most=100, needs=NEEDS),
    Row("mcp.why", "debug_why of a call in the middle of it", "ms", at_most=100, needs=NEEDS),
    Row("mcp.history", "debug_history of a global variable", "ms", at_most=100, needs=NEEDS),
    Row("mcp.object", "debug_object of a recording of millions of allocations", "ms", at_most=100, needs=NEEDS),
    Row("mcp.sums", "debug_sql with calls and their time by function", "ms", at_most=100, needs=NEEDS),
]
REPEATS = 10
# These may take seconds.
REPEATS_OF_ONE = 3
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
BLOCKS = r"""
#include <stdlib.h>
char *volatile kept[1000];
int main(int argc, char **argv) {
  for (long i = 0; i < atol(argv[1]) / 2; i++) {
    free(kept[i % 1000]);
    kept[i % 1000] = malloc(40);
  }
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


def median_of(server, calls, repeats=REPEATS):
    """The median over all calls, each made several times; the first time opens files and does not count."""
    for tool, arguments in calls:
        server.call(tool, **arguments)
    times = [server.call(tool, **arguments)[1] for _ in range(repeats) for tool, arguments in calls]
    return statistics.median(times)


def measure(bench):
    if not any(bench.wants(row.name) for row in ROWS):
        return
    folder = bench.work / "mcp-daemon"
    folder.mkdir(mode=0o700, exist_ok=True)
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
    (bench.work / "odd.c").write_text(SOURCE)
    run(["gcc", "-g", "-O1", "-o", "odd", "odd.c"], bench.work)
    calls = int(bench.sizes.call_millions * 1e6)
    if bench.wants("mcp.object"):
        (bench.work / "blocks.c").write_text(BLOCKS)
        run(["gcc", "-g", "-O1", "-o", "blocks", "blocks.c"], bench.work)
        record(bench.work, ["--memory"], ["./blocks", str(calls)])
        shutil.rmtree(bench.work / "blocks.hindsight", ignore_errors=True)
        (bench.work / "rec.hindsight").rename(bench.work / "blocks.hindsight")
    record(bench.work, [], ["./odd", str(calls)])
    for _ in range(bench.sizes.rounds):
        server = Server(bench.work, environment)
        try:
            if bench.wants("mcp.recording"):
                bench.add("mcp.recording", on_recording(server, calls))
            if bench.wants("mcp.paused"):
                bench.add("mcp.paused", on_program(server))
                shutil.rmtree(bench.work / "paused.hindsight", ignore_errors=True)
            for name, tool, arguments in of_one_kind(server, bench, calls):
                bench.add(name, median_of(server, [(tool, arguments)], REPEATS_OF_ONE))
        finally:
            server.leave()
    for name in ("rec.hindsight", "blocks.hindsight"):
        shutil.rmtree(bench.work / name, ignore_errors=True)


def of_one_kind(server, bench, calls):
    """The wanted rows of one kind of call each: the name, the tool and its arguments."""
    where = {"recording": "rec"}
    sums = "select function, count(*) as n, sum(self_ns) as ns from calls group by 1 order by 3 desc"
    kinds = [
        ("mcp.overview", "debug_overview", where),
        ("mcp.history", "debug_history", {**where, "expression": "sum"}),
        ("mcp.sums", "debug_sql", {**where, "sql": sums}),
    ]
    if bench.wants("mcp.why"):
        sql = f"select start_seq from calls where start_seq >= {calls} order by start_seq limit 1"
        kinds.append(("mcp.why", "debug_why", {**where, "of": first(server, "rec", sql)}))
    if bench.wants("mcp.object"):
        address = first(server, "blocks", "select addr from allocations where size = 40 limit 1")
        kinds.append(("mcp.object", "debug_object", {"recording": "blocks", "address": hex(address)}))
    return [kind for kind in kinds if bench.wants(kind[0])]


def first(server, recording, sql):
    """The only cell of the only row of an answer."""
    (row,) = json.loads(server.call("debug_sql", recording=recording, sql=sql)[0])["rows"]
    (cell,) = row.values()
    return cell


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
