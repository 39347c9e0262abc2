"""Run by gdb: stops the program at stop_here, saves a core file with all memory, and, asked for it, prints every member
of *everything as libstdc++'s pretty printers see it. Environment: CORE, and MEMBERS for the printing.

Containers are flattened to {element, element}, maps to {key, value, key, value}, so that only contents are compared."""

import json
import os

import gdb

AS_WHOLE = {"max_elements": 0, "repeat_threshold": 0}


def flat(value):
    if isinstance(value, (int, float, str)):
        return str(value)
    printer = gdb.default_visualizer(value)
    if printer is not None:
        hint = printer.display_hint() if hasattr(printer, "display_hint") else None
        if hint == "string" or not hasattr(printer, "children"):
            return value.format_string(**AS_WHOLE)
        return "{" + ", ".join(flat(child) for _, child in printer.children()) + "}"
    kind = value.type.strip_typedefs()
    if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        fields = [f for f in kind.fields() if hasattr(f, "bitpos")]
        return "{" + ", ".join(flat(value[f]) for f in fields) + "}"
    if kind.code == gdb.TYPE_CODE_ARRAY:
        low, high = kind.range()
        return "{" + ", ".join(flat(value[i]) for i in range(low, high + 1)) + "}"
    if kind.code == gdb.TYPE_CODE_PTR:
        return hex(int(value))
    if kind.code == gdb.TYPE_CODE_INT:
        return str(int(value))
    return value.format_string(**AS_WHOLE)


gdb.execute("set pagination off")
gdb.execute("set breakpoint pending on")
gdb.execute("break stop_here")
gdb.execute("run > /dev/null" if "MEMBERS" in os.environ else "run > " + os.environ["OUTPUT"])
with open("/proc/%d/coredump_filter" % gdb.selected_inferior().pid, "w") as choice:
    choice.write("0x7f")
gdb.execute("gcore " + os.environ["CORE"])
if "MEMBERS" in os.environ:
    everything = gdb.parse_and_eval("*everything")
    for field in everything.type.fields():
        print("MEMBER\t%s\t%s" % (field.name, json.dumps(flat(everything[field.name]))))
gdb.execute("kill")
