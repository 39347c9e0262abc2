# gdb's side of the argument tests: prints the registers and the stack at the first instruction of each function named
# by its address in WATCH, and those after it returned; the program's output goes to WATCH_OUTPUT. Addresses count from symbol "main", whose address is WATCH_MAIN.
import os

import gdb

INTS = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"]


def register(name):
    return int(gdb.selected_frame().read_register(name)) & (1 << 64) - 1


def xmm(index):
    halves = gdb.selected_frame().read_register("xmm%d" % index)["v2_int64"]
    low, high = (int(halves[i]) & (1 << 64) - 1 for i in range(2))
    return "%016x%016x" % (high, low)


def memory(address, size):
    try:
        return gdb.selected_inferior().read_memory(address, size).tobytes().hex()
    except gdb.MemoryError:
        return "-"


def enter(svma):
    rsp = register("rsp")
    ints = [register(name) for name in INTS]
    fields = ["%x" % value for value in ints] + [xmm(i) for i in range(8)]
    fields += [memory(rsp, 256)] + [memory(value, 64) for value in ints]
    print("ENTER %x %s" % (svma, " ".join(fields)))
    return int.from_bytes(gdb.selected_inferior().read_memory(rsp, 8).tobytes(), "little")


def leave(svma):
    raw = gdb.execute("info registers st0", to_string=True).split("raw 0x")[1].split(")")[0]
    fields = ["%x" % register("rax"), "%x" % register("rdx"), xmm(0), xmm(1), raw, memory(register("rax"), 64)]
    print("LEAVE %x %s" % (svma, " ".join(fields)))


gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set language c")
gdb.execute("starti > %s" % os.environ["WATCH_OUTPUT"], to_string=True)
main = int(gdb.parse_and_eval("(unsigned long) &main"))
bias = main - int(os.environ["WATCH_MAIN"], 16)
entries = {}
for word in os.environ["WATCH"].split():
    svma = int(word, 16)
    entries[svma + bias] = svma
    gdb.Breakpoint("*%d" % (svma + bias))
returns = {}
while True:
    gdb.execute("continue", to_string=True)
    if gdb.selected_inferior().pid == 0:
        break
    pc = register("rip")
    if pc in returns:
        leave(returns.pop(pc))
    if pc in entries:
        back = enter(entries[pc])
        returns[back] = entries[pc]
        gdb.Breakpoint("*%d" % back, temporary=True)
