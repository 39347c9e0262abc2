# Stops in the function $BREAK, writes a core file, and says what gdb sees of the variables of the frames around it, and of
# the expressions in $ASK in the last of them, in the language of each frame.
import gdb
import os

for setting in ["pagination off", "confirm off", "width 0", "print repeats 10", "print elements 200", "max-value-size unlimited", "print null-stop on",
                "debuginfod enabled off", "language auto", "print symbol off"]:
    gdb.execute("set " + setting)


def say(kind, name, text):
    print("%s\t%s\t%s" % (kind, name, text.strip().replace("\n", "\\n")))


def printed(expression):
    try:
        return gdb.execute("output " + expression, to_string=True)
    except gdb.error as error:
        return "<error: %s>" % error


gdb.execute("break " + os.environ["BREAK"])
gdb.execute("run", to_string=True)
core = os.path.join(os.environ["CORES"], os.environ["NAME"] + ".core")
gdb.execute("gcore " + core, to_string=True)
print("STOP\t%s\t%d" % (core, gdb.selected_thread().ptid[1]))
frame = gdb.newest_frame().older()
for level in range(1, int(os.environ["FRAMES"]) + 1):
    frame.select()
    say("FRAME", str(level), frame.name())
    block, seen = frame.block(), set()
    while block is not None:
        for symbol in block:
            is_own = symbol.name[:1].isalpha()  # and not made by the compiler
            if (symbol.is_variable or symbol.is_argument) and is_own and symbol.name not in seen:
                seen.add(symbol.name)
                say("VAR", symbol.name, printed(symbol.name))
        if block.function is not None:
            break
        block = block.superblock
    last = level == int(os.environ["FRAMES"])
    for expression in os.environ["ASK"].split(";") if last else []:
        say("VAR", expression, printed(expression))
    frame = frame.older()
gdb.execute("kill")
gdb.execute("quit")
