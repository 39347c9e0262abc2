# Runs the program until it stops in stop_here the given number of times, evaluates expressions in the caller and writes a
# core file. Prints "VALUE index number", or "ERROR index text", and "STOP core tid".
import os
import gdb

gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set print address off")
gdb.execute("break stop_here")
gdb.execute("run", to_string=True)
gdb.execute("up", to_string=True)
with open(os.environ["EXPRESSIONS"]) as lines:
    for index, line in enumerate(lines.read().splitlines()):
        try:
            value = gdb.parse_and_eval(line)
            kind = value.type.strip_typedefs().code
            if kind in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
                value = value.referenced_value()
                kind = value.type.strip_typedefs().code
            if kind == gdb.TYPE_CODE_FLT:
                print(f"VALUE\t{index}\t{float(value)!r}", flush=True)
            elif kind == gdb.TYPE_CODE_ARRAY or kind == gdb.TYPE_CODE_FUNC:
                print(f"VALUE\t{index}\t{int(value.address)}", flush=True)
            else:
                print(f"VALUE\t{index}\t{int(value)}", flush=True)
        except Exception as error:
            print(f"ERROR\t{index}\t{error}", flush=True)
core = os.environ["CORE"]
gdb.execute(f"generate-core-file {core}", to_string=True)
print(f"STOP\t{core}\t{gdb.selected_thread().ptid[1]}", flush=True)
gdb.execute("kill", to_string=True)
