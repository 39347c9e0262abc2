# Stops at the hits of the plan and says what gdb sees there. A line of the plan is FILE:LINE, the addresses, the hit.
import os
import sys
import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import alive, begin, break_at, enter, plan
from describe import describe, vectors

begin()
enter()
vectors(gdb.newest_frame(), "AT_ENTRY")
groups = [break_at(where, addresses, int(hit)) for where, addresses, hit in plan()]
reached = []
gdb.events.stop.connect(lambda event: reached.extend(getattr(event, "breakpoints", [])))
while True:
    gdb.execute("continue", to_string=True)
    if not alive():
        break
    describe(gdb.newest_frame())
    for group in groups:
        if any(breakpoint in reached for breakpoint in group):
            for breakpoint in group:
                breakpoint.delete()
            group.clear()
    reached.clear()
