# Prints expressions whenever a function is entered, in a program that is started without address space randomisation.
# $ASKED is a file: the function, then lines of what an expression is and the expression. A `number`; a `text` with a NUL behind
# it; or `bytes`, an address and, behind a tab, how many. Each entry makes a line of JSON; null is what cannot be read.
import json
import os
import gdb

SETTINGS = [
    "pagination off", "confirm off", "width 0", "debuginfod enabled off", "disable-randomization on",
    "print inferior-events off", "print thread-events off", "charset UTF-8", "may-call-functions off",
]


def told(kind, expression, length=None):
    try:
        value = gdb.parse_and_eval(expression)
        if kind == "number":
            return str(int(value))
        if kind == "text":
            return value.string()
        count = int(gdb.parse_and_eval(length))
        return gdb.selected_inferior().read_memory(int(value), count).tobytes().decode() if count else ""
    except gdb.error:
        return None


for setting in SETTINGS:
    gdb.execute("set " + setting)
with open(os.environ["ASKED"]) as lines:
    function, language, *asked = [line.rstrip("\n") for line in lines]
gdb.execute("set language " + language)
gdb.execute("starti", to_string=True)
gdb.Breakpoint("*" + function).silent = True
while True:
    gdb.execute("continue", to_string=True)
    if gdb.selected_inferior().pid == 0:
        break
    print("ENTERED\t" + json.dumps([told(*one.split("\t")) for one in asked]))
