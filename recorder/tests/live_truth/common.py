# What the scripts for gdb share: the program as the test starts it, and places as text.
import os
import re
import gdb

for setting in [
    "pagination off", "confirm off", "width 0", "debuginfod enabled off", "print thread-events off",
    "backtrace past-main on", "backtrace past-entry on", "print repeats 10", "print elements 200",
    "exec-wrapper env -i", "disable-randomization on", "print inferior-events off",
    # With UTF-8, gdb leaves out characters between bytes that begin a character and do not end it.
    "charset ASCII",
    # To show some values of Rust it would run code of the program.
    "may-call-functions off",
]:
    gdb.execute("set " + setting)


def plan():
    with open(os.environ["PLAN"]) as lines:
        return [line.rstrip("\n").split("\t") for line in lines]


def place(frame):
    sal = frame.find_sal()
    if sal.symtab is None:
        return "?:0"
    return "%s:%d" % (os.path.basename(sal.symtab.filename), sal.line)


def name_of(frame):
    # For functions of Rust, gdb makes up names from the debug information; those of the linker are everybody's.
    function = frame.function()
    if function is not None and function.linkage_name.startswith("_") and frame.language() == "rust":
        name = gdb.execute("demangle " + function.linkage_name, to_string=True).strip()
    else:
        name = frame.name() or "?"
    if frame.language() == "c++" and not name.endswith("operator()"):
        # Names with a tag in them come with the parentheses.
        name = re.sub(r"\(\)( const)?$", "", name)
    # Without the hashes that tell crates and copies of a crate apart.
    return re.sub(r"\[[0-9a-f]+\]|::h[0-9a-f]{16}$", "", name)


def begin():
    # The entry point, so that breakpoints get the addresses that the program will have.
    gdb.execute("set args " + os.environ["ARGS"] + " > /dev/null")
    gdb.execute("starti", to_string=True)


def enter():
    # Goes on to the entry point of the program.
    entry = re.search(r"Entry point: (0x[0-9a-f]+)", gdb.execute("info files", to_string=True)).group(1)
    breakpoint = gdb.Breakpoint("*" + entry, internal=True)
    breakpoint.silent = True
    gdb.execute("continue", to_string=True)
    breakpoint.delete()


def alive():
    return gdb.selected_inferior().pid != 0


def entered():
    # The frame of the function at whose first instruction the program stands. Calls that were inlined there are not made yet.
    frame = gdb.newest_frame()
    while frame.type() == gdb.INLINE_FRAME:
        frame = frame.older()
    return frame


class Place(gdb.Breakpoint):
    # One of the places of a line: the hits of all of them are counted together.
    def __init__(self, address, hits_left):
        super().__init__("*0x%x" % address)
        self.silent = True
        self.hits_left = hits_left

    def stop(self):
        self.hits_left[0] -= 1
        return self.hits_left[0] <= 0


def break_at(where, addresses, hit=1):
    # Stops at a hit of a line, at the places that Hindsight has for it. Where gdb has others it says so; the test judges that.
    breakpoint = gdb.Breakpoint(where)
    breakpoint.ignore_count = hit - 1
    breakpoint.silent = True
    theirs = sorted(set(location.address for location in breakpoint.locations))
    ours = sorted(int(address, 16) for address in addresses.split(","))
    if theirs == ours:
        return [breakpoint]
    breakpoint.delete()
    listed = lambda all: ",".join("%x" % address for address in all)
    print("PLACES\t%s\t%s\t%s" % (os.path.basename(where), listed(ours), listed(theirs)))
    hits_left = [hit]
    return [Place(address, hits_left) for address in ours]
