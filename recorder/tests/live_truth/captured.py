# Stops where functions are entered and says all that gdb sees there. The first line of the plan says whether variables have their
# values as soon as they are declared, or may be idle. The others are the address, the hit, and how many hits from that
# one on are wanted.
import os
import sys
import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import alive, begin, entered, plan
from describe import describe
from lasting import lasting

STACK = 512


def stack(with_variables):
    sp = int(gdb.newest_frame().read_register("rsp")) & (1 << 64) - 1
    print("STACK\t" + gdb.selected_inferior().read_memory(sp, STACK).tobytes().hex())
    for kept in lasting([(sp, STACK)], with_variables):
        print("LASTING\t%x\t%d\t%s" % kept)


begin()
(kind,), *lines = plan()
reached = []
gdb.events.stop.connect(lambda event: reached.extend(getattr(event, "breakpoints", [])))
left = {}
for address, hit, count in lines:
    breakpoint = gdb.Breakpoint("*0x" + address)
    breakpoint.ignore_count = int(hit) - 1
    breakpoint.silent = True
    left[breakpoint.number] = int(count)
while True:
    gdb.execute("continue", to_string=True)
    if not alive():
        break
    describe(entered())
    stack(kind == "plain")
    for breakpoint in reached:
        left[breakpoint.number] -= 1
        if left[breakpoint.number] == 0:
            breakpoint.delete()
    reached.clear()
