# Goes from one call or return to the next and says what gdb sees there. A line of the plan says where to go: an address, which of
# its hits from here on (0: stay), and what rsp is at the hit that is meant, where others do not count; then what is asked there,
# and which memory is to be read, as ADDRESS+BYTES.
import os
import sys
import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import alive, begin, plan
from describe import describe_shortly, registers
from fields import fields
from lasting import lasting

VECTORS = 8


class WithStack(gdb.Breakpoint):
    """Counts where rsp has a value."""

    def stop(self):
        return self.sp is None or int(gdb.newest_frame().read_register("rsp")) & (1 << 64) - 1 == self.sp


def go(address, hit, sp):
    breakpoint = WithStack("*0x" + address, internal=True)
    breakpoint.silent = True
    breakpoint.sp = None
    if sp:
        try:
            breakpoint.condition = "(unsigned long) $rsp == 0x" + sp
        except gdb.error:
            # Conditions are in the language of the place, and Rust has no such one.
            breakpoint.sp = int(sp, 16)
    breakpoint.ignore_count = int(hit) - 1
    gdb.execute("continue", to_string=True)
    breakpoint.delete()
    if not alive():
        raise gdb.GdbError("the program ends before %s is reached for the %s. time" % (address, hit))


def vectors():
    frame = gdb.newest_frame()
    for number in range(VECTORS):
        low = int(frame.read_register("xmm%d" % number)["v2_int64"][0]) & (1 << 64) - 1
        print("VECTOR\t%d\t%x" % (number, low))


def memory(start, length):
    try:
        return gdb.selected_inferior().read_memory(start, length).tobytes().hex()
    except gdb.MemoryError:
        return ""


def give_seed(value):
    # Lua takes the time of day for its random numbers: this run gets that of the other.
    gdb.execute("set var $rdx = 0x" + value)
    gdb.newest_frame().older().select()
    gdb.execute("set var seed1 = 0x" + value)
    gdb.newest_frame().select()


def parse(texts):
    pairs = (text.split("+") for text in texts.split(",") if text)
    return [(int(start, 16), int(length)) for start, length in pairs]


begin()
print("PID\t%d" % gdb.selected_inferior().pid)
dumped = open(os.environ["PLAN"] + ".dump", "wb")
dumps = []
is_optimised = False
for number, (address, hit, sp, asked, ranges) in enumerate(plan()):
    if hit != "0":
        go(address, hit, sp)
    ranges = parse(ranges)
    print("AT\t%d" % number)
    if asked.startswith("seed "):
        give_seed(asked.split()[1])
    elif asked == "kept":
        dumps = ranges
    elif asked == "dump":
        for start, length in dumps:
            dumped.write(gdb.selected_inferior().read_memory(start, length).tobytes())
        print("DUMPED")
    elif asked == "optimised":
        is_optimised = True
    elif asked == "fields":
        fields()
    elif asked == "look":
        if is_optimised:
            registers(gdb.newest_frame())
        else:
            describe_shortly(gdb.newest_frame())
        vectors()
    if asked in ("look", "read"):
        for start, length in ranges:
            print("MEMORY\t%x\t%s" % (start, memory(start, length)))
        for kept in lasting(ranges, not is_optimised):
            print("LASTING\t%x\t%d\t%s" % kept)
dumped.close()
gdb.execute("kill")
