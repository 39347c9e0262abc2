# Stops where functions are entered and says what gdb sees there. A line of the plan is the address and the hit.
import os
import sys
import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import alive, begin, entered, plan

REGISTERS = ["rdi", "rsi", "rdx", "rcx", "r8", "r9", "rsp", "rip"]


def describe():
    frame = entered()
    print("STOP\t%x" % frame.pc())
    for name in REGISTERS:
        print("REGISTER\t%s\t%x" % (name, int(frame.read_register(name)) & (1 << 64) - 1))
    stack = int(frame.read_register("rsp")) & (1 << 64) - 1
    word = gdb.selected_inferior().read_memory(stack, 8).tobytes()
    print("REGISTER\t[rsp]\t%x" % int.from_bytes(word, "little"))
    level = 0
    while frame is not None and level < 60:
        if frame.type() == gdb.TAILCALL_FRAME:
            # Not on the stack: the function has jumped away, and gdb tells where it was.
            frame = frame.older()
            continue
        kind = "inlined" if frame.type() == gdb.INLINE_FRAME else ""
        sal = frame.find_sal()
        file = os.path.basename(sal.symtab.filename) if sal.symtab else ""
        print("FRAME\t%s %s:%d %s %x" % (frame.name() or "?", file, sal.line, kind, frame.pc()))
        level += 1
        frame = frame.older()


begin()
reached = []
gdb.events.stop.connect(lambda event: reached.extend(getattr(event, "breakpoints", [])))
for address, hit in plan():
    breakpoint = gdb.Breakpoint("*0x" + address)
    breakpoint.ignore_count = int(hit) - 1
    breakpoint.silent = True
while True:
    gdb.execute("continue", to_string=True)
    if not alive():
        break
    describe()
    for breakpoint in reached:
        breakpoint.delete()
    reached.clear()
