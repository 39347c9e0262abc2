# Runs the program under gdb; at each stop in stop_here writes a core file and says what gdb sees of the stack.
import os
import gdb

KEPT = ["rbx", "rbp", "rsp", "r12", "r13", "r14", "r15"]
folder = os.environ["CORES"]
for setting in ["pagination off", "confirm off", "backtrace past-main on", "backtrace past-entry on", "print thread-events off"]:
    gdb.execute("set " + setting)
for signal in ["SIGUSR1", "SIGILL"]:
    gdb.execute(f"handle {signal} nostop noprint pass", to_string=True)
gdb.execute("break stop_here", to_string=True)
gdb.execute("run", to_string=True)
stop = 0
while gdb.selected_inferior().pid:
    core = f"{folder}/core.{stop}"
    gdb.execute(f"gcore {core}", to_string=True)
    print(f"STOP\t{core}\t{gdb.selected_thread().ptid[1]}")
    frame = gdb.newest_frame()
    while frame is not None:
        sal = frame.find_sal()
        file = sal.symtab.fullname() if sal.symtab else ""
        kinds = {gdb.NORMAL_FRAME: "normal", gdb.INLINE_FRAME: "inline", gdb.SIGTRAMP_FRAME: "signal", gdb.TAILCALL_FRAME: "tail"}
        kind = kinds.get(frame.type(), "other")
        registers = []
        for name in KEPT:
            try:
                registers.append(f"{name}={int(frame.read_register(name)) & (1 << 64) - 1:x}")
            except gdb.error:
                pass
        described = frame.function() is not None
        print(f"FRAME\t{frame.pc():x}\t{frame.name() or ''}\t{file}\t{sal.line}\t{kind}\t{described}\t{' '.join(registers)}")
        try:
            frame = frame.older()
        except gdb.error as error:
            print(f"END\t{error}")
            frame = None
    stop += 1
    gdb.execute("continue", to_string=True)
