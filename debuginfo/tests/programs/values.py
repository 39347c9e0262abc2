# Stops in `stop`, writes a core file each time and says what gdb sees of every variable in the frames around it.
import gdb
import os

gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set width 0")
gdb.execute("set print repeats 10")
gdb.execute("set print elements 200")
gdb.execute("set debuginfod enabled off")
gdb.execute("set language auto")


def clean(text):
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def show(name, read):
    try:
        value = read()
        value_type = str(value.type)
        if value.type.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
            value = value.referenced_value()
        if value.is_optimized_out:
            text = "<optimized out>"
        else:
            text = value.format_string(raw=True, symbols=True, static_members=True)
    except (gdb.error, gdb.MemoryError) as error:
        value_type, text = "?", "<error: %s>" % error
    print("VAR\t%s\t%s\t%s" % (name, clean(value_type), clean(text)))


def variables(frame):
    seen = set()
    try:
        block = frame.block()
    except RuntimeError:
        return
    while block is not None:
        for symbol in block:
            if (symbol.is_variable or symbol.is_argument) and symbol.name not in seen:
                seen.add(symbol.name)
                show(symbol.name, lambda: frame.read_var(symbol, block))
        if block.function is not None:
            return
        block = block.superblock


gdb.execute("break stop")
gdb.execute("run", to_string=True)
count = 0
while gdb.selected_thread() is not None and gdb.selected_thread().is_valid():
    core = os.path.join(os.environ["CORES"], "%s.%d.core" % (os.environ["NAME"], count))
    gdb.execute("gcore " + core, to_string=True)
    print("STOP\t%s\t%d" % (core, gdb.selected_thread().ptid[1]))
    frame = gdb.newest_frame().older()
    for level in range(1, 4):
        if frame is None or frame.name() is None or frame.name() == "_start":
            break
        frame.select()
        print("FRAME\t%d\t%s" % (level, frame.name()))
        variables(frame)
        for name in os.environ["GLOBALS"].split():
            show("::" + name, lambda: gdb.parse_and_eval(name))
        if frame.name().endswith("main"):
            break
        frame = frame.older()
    count += 1
    gdb.execute("continue", to_string=True)
gdb.execute("quit")
