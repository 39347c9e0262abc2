# Stops at the hits of the plan and says what gdb sees there. A line of the plan is FILE:LINE, the hit, the addresses.
import os
import sys
import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import alive, begin, enter, plan
from describe import describe, vectors

begin()
enter()
vectors(gdb.newest_frame(), "AT_ENTRY")
for where, hit, addresses in plan():
    breakpoint = gdb.Breakpoint(where)
    breakpoint.ignore_count = int(hit) - 1
    breakpoint.silent = True
    theirs = sorted(set(location.address for location in breakpoint.locations))
    ours = sorted(int(address, 16) for address in addresses.split(","))
    if theirs != ours:
        print("PLACES\t%s: here %s, gdb: %s" % (where, [hex(a) for a in ours], [hex(a) for a in theirs]))

reached = []
gdb.events.stop.connect(lambda event: reached.extend(getattr(event, "breakpoints", [])))
while True:
    gdb.execute("continue", to_string=True)
    if not alive():
        break
    describe(gdb.newest_frame())
    for breakpoint in set(reached):
        breakpoint.delete()
    reached.clear()
