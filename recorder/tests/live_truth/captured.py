# Stops where functions are entered and says all that gdb sees there. A line of the plan is the address and the hit, or
# nothing and how many of all hits are wanted.
import os
import sys
import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import alive, begin, entered, plan
from describe import describe

STACK = 512


def stack():
    sp = int(gdb.newest_frame().read_register("rsp")) & (1 << 64) - 1
    print("STACK\t" + gdb.selected_inferior().read_memory(sp, STACK).tobytes().hex())


begin()
reached = []
gdb.events.stop.connect(lambda event: reached.extend(getattr(event, "breakpoints", [])))
left = {}
for address, hit, count in plan():
    breakpoint = gdb.Breakpoint("*0x" + address)
    breakpoint.ignore_count = int(hit) - 1
    breakpoint.silent = True
    left[breakpoint.number] = int(count)
while True:
    gdb.execute("continue", to_string=True)
    if not alive():
        break
    describe(entered())
    stack()
    for breakpoint in reached:
        left[breakpoint.number] -= 1
        if left[breakpoint.number] == 0:
            breakpoint.delete()
    reached.clear()
