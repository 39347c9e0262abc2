# Steps from a place in the ways of the plan, one after the other, and says where each step leads. A line of the plan is
# FILE:LINE, its addresses, how many steps, and the command.
import os
import re
import sys
import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import alive, begin, break_at, name_of, place, plan


def tell(kind):
    frame = gdb.newest_frame()
    print("%s\t%x %s %s" % (kind, frame.pc(), name_of(frame), place(frame)))


def go_on(command):
    # A step out of a function ends in code without lines, and a step over a line in a function that the line jumps to instead
    # of calling it: ours goes on.
    if command == "finish":
        return False
    if place(gdb.newest_frame()) == "?:0":
        try:
            gdb.execute("next", to_string=True)
        except gdb.error:
            # Of a function that it knows no bounds of. What is left of the line of the call belongs to the step.
            gdb.execute("finish", to_string=True)
            if alive() and not is_statement(gdb.newest_frame()):
                gdb.execute("next", to_string=True)
        return True
    is_entry = " + " not in gdb.execute("info symbol $pc", to_string=True)
    if command == "step" or not is_entry:
        return False
    gdb.execute("finish", to_string=True)
    returned(silently=True)
    if alive() and not is_statement(gdb.newest_frame()):
        gdb.execute("next", to_string=True)
    return True


def whereabouts():
    frame = gdb.newest_frame()
    sal = frame.find_sal()
    return name_of(frame), sal.symtab and sal.symtab.filename, sal.line


def still_there(command, before):
    # gdb keeps the line of an inlined call in 16 bits. Beyond that it takes the call for another line than the one that it is
    # on, and stops: that step goes on.
    if command == "finish":
        return False
    (*function, line), (*other, before_line) = whereabouts(), before
    is_cut = line != before_line and line & 0xffff == before_line & 0xffff and min(line, before_line) <= 0xffff
    if function != other or not is_cut:
        return False
    gdb.execute(command, to_string=True)
    return True


def is_piece():
    # Of the pieces that gcc makes of functions, which may have lost their result, gdb tells what rax holds; we tell nothing.
    return re.search(r"\.(part|isra)\.\d", gdb.execute("info symbol $pc", to_string=True)) is not None


def is_statement(frame):
    sal = frame.find_sal()
    entries = sal.symtab.linetable().line(sal.line) if sal.symtab else None
    return any(entry.pc == frame.pc() for entry in entries or ())


values = 0


def returned(silently=False):
    # Each value that was returned becomes part of the history.
    global values
    try:
        value = gdb.history(values + 1)
    except gdb.error:
        return
    values += 1
    if not silently:
        text = value.format_string(raw=True, symbols=True, static_members=True)
        print("RETURNED\t" + text.replace("\\", "\\\\").replace("\n", "\\n"))


# Without line tables of the C library it is not stepped into.
gdb.execute("set debug-file-directory /nowhere")
begin()
for where, addresses, steps, command in plan():
    breakpoints = break_at(where, addresses)
    gdb.execute("continue", to_string=True)
    if not alive():
        print("GONE")
        break
    for breakpoint in breakpoints:
        breakpoint.delete()
    tell("STOP")
    for _ in range(int(steps)):
        before, silently = whereabouts(), is_piece()
        gdb.execute(command, to_string=True)
        while alive() and (go_on(command) or still_there(command, before)):
            pass
        if not alive():
            print("LOST")
            break
        tell("AT")
        returned(silently)
    if not alive():
        break
