# Says where gdb puts breakpoints: on each line of the file LINES_OF up to LINES, and on each function in FUNCTIONS.
import os
import gdb

gdb.execute("set breakpoint pending off")


def show(kind, what, spec):
    try:
        breakpoint = gdb.Breakpoint(spec)
    except gdb.error:
        return
    places = []
    for location in breakpoint.locations:
        file, line = location.source or ("", 0)
        places.append(f"{location.address:x}:{line}")
    print(f"{kind}\t{what}\t{' '.join(places)}")
    breakpoint.delete()


file = os.environ["LINES_OF"]
for line in range(1, int(os.environ["LINES"]) + 1):
    show("LINE", line, f"{file}:{line}")
for function in os.environ["FUNCTIONS"].splitlines():
    if function.startswith("0x"):
        spec = f"*{function}"
    elif function.startswith("spec:"):
        spec = function.removeprefix("spec:")
    else:
        spec = f"-qualified -function {function}"
    show("FUNCTION", function, spec)
