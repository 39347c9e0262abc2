"""Runs a program in gdb as the plan says, one instruction after the other, and writes what it sees.

The plan is a JSON file; its path is in the variable `plan`. It names the program, its arguments and environment, what the recording
has for chance, and the positions to look at, counted from the first time at `main`.
"""

import json
import struct

import gdb

GENERAL = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip eflags fs_base".split()
TRAP = 0x100
MASK = (1 << 64) - 1
PREFIXES = {0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3}
STRINGS = {0xA4, 0xA5, 0xA6, 0xA7, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF}
# With 0f before them: jumps, sets and moves by condition, moves with extension, bits, multiplication, and no operation.
PLAIN = {*range(0x40, 0x50), *range(0x80, 0xA0), 0xA3, 0xAB, 0xAF, 0xB3, *range(0xB6, 0xC0), 0x1E, 0x1F}
AT_IGNORE, AT_RANDOM, AT_SYSINFO_EHDR = 1, 25, 33
GETRANDOM, SIGRETURN, TGKILL, TIME = 318, 15, 234, 201

# In the frame of a signal: behind the return address, a ucontext_t up to its mcontext_t, and 17 registers.
STEP, BREAKPOINT = 1, 3
FRAME_FLAGS = 8 + 40 + 17 * 8


def quietly(command):
    return gdb.execute(command, to_string=True)


def memory():
    return gdb.selected_inferior()


def read(address, length):
    return memory().read_memory(address, length).tobytes()


def word(address):
    return struct.unpack("<Q", read(address, 8))[0]


def register(name):
    return int(gdb.selected_frame().read_register(name)) & MASK


class Signals:
    """Whether the last stop was a signal."""

    def __init__(self):
        self.seen = False
        gdb.events.stop.connect(self.stopped)

    def stopped(self, event):
        self.seen = isinstance(event, gdb.SignalEvent)


def misplaces_avx512():
    """Before version 14, gdb looks for AVX-512's registers where Intel's processors save them; AMD's save them elsewhere."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return "AuthenticAMD" in file.read() and int(gdb.VERSION.split(".")[0].split()[-1]) < 14


class Vectors:
    """The widest registers that the processor has, and that gdb can read, as numbers of 64 bits."""

    def __init__(self):
        frame = gdb.selected_frame()
        for name, count, words, field in (("zmm", 32, 8, "v8_int64"), ("ymm", 16, 4, "v4_int64"), ("xmm", 16, 2, "v2_int64")):
            if name == "zmm" and misplaces_avx512():
                continue
            try:
                frame.read_register(f"{name}0")
            except ValueError:
                continue
            self.names = [f"{name}{number}" for number in range(count)]
            self.masks = [f"k{number}" for number in range(8)] if name == "zmm" else []
            self.words, self.field = words, field
            return

    def bytes(self):
        frame = gdb.selected_frame()
        found = bytearray(struct.pack("<III", int(frame.read_register("mxcsr")), len(self.names), self.words))
        for name in self.names:
            value = frame.read_register(name)[self.field]
            found += struct.pack(f"<{self.words}Q", *(int(value[index]) & MASK for index in range(self.words)))
        found += struct.pack("<I", len(self.masks))
        for name in self.masks:
            found += struct.pack("<Q", int(frame.read_register(name)) & MASK)
        return bytes(found)


def x87():
    frame = gdb.selected_frame()
    found = bytearray()
    for name in ("fctrl", "fstat", "ftag", "fop"):
        found += struct.pack("<H", int(frame.read_register(name)) & 0xFFFF)
    for name in ("fioff", "fiseg", "fooff", "foseg"):
        found += struct.pack("<I", int(frame.read_register(name)) & 0xFFFFFFFF)
    for line in quietly("info registers st0 st1 st2 st3 st4 st5 st6 st7").splitlines():
        raw = line[line.index("(raw 0x") + 7 : line.rindex(")")]
        found += int(raw, 16).to_bytes(10, "little")
    return bytes(found)


def opcode(code):
    """The first byte of an instruction behind its prefixes, the byte behind that, and whether it repeats."""
    at = 0
    repeats = False
    while code[at] in PREFIXES:
        repeats |= code[at] in (0xF2, 0xF3)
        at += 1
    if code[at] & 0xF0 == 0x40:
        at += 1
    return code[at], code[at + 1], repeats


class Run:
    def __init__(self, plan):
        self.plan = plan
        self.random = [bytes.fromhex(text) for text in plan["random"]]
        # Where the program is after it has read the processor's clock before main, and what it has got in rax and rdx.
        self.clocks = plan["clocks"]
        self.times = plan["times"]
        self.signals = Signals()
        self.out = open(plan["out"], "wb")
        self.pages = {}
        self.position = 0
        self.vectors = True
        self.x87 = True

    def start(self):
        plan = self.plan
        for setting in ("startup-with-shell off", "disable-randomization on", "pagination off", "confirm off", "auto-solib-add off"):
            quietly(f"set {setting}")
        # gdb 13 executes an instruction under a breakpoint at another address, and there takes those with a VEX prefix for ones
        # that are not relative to rip: their operands come from elsewhere.
        quietly("set displaced-stepping off")
        # Symbols and tables of frames take time at each step.
        quietly("maint set dwarf unwinders off")
        quietly("set debug-file-directory /nonexistent")
        quietly("set libthread-db-search-path /nonexistent")
        quietly(f"file {plan['program']}")
        quietly("unset environment")
        for name, value in plan["environment"]:
            quietly(f"set environment {name}={value}")
        quietly("set args " + " ".join(plan["arguments"]))
        quietly("starti")
        quietly("handle all nostop noprint pass")
        quietly("handle SIGUSR1 SIGTRAP stop print")
        quietly("handle SIGTRAP nopass")
        self.patch()
        for address in sorted({address for address, _, _ in self.clocks}):
            quietly(f"break *{address}")
        self.run_to(plan["main"], 1)
        assert not self.clocks
        self.kinds = Vectors()

    def patch(self):
        """The kernel's own functions are hidden, as the recorder hides them; random bytes are those of the recording."""
        at = register("rsp") + 8
        for _ in range(2):
            while word(at):
                at += 8
            at += 8
        while word(at):
            if word(at) == AT_SYSINFO_EHDR:
                memory().write_memory(at, struct.pack("<Q", AT_IGNORE))
            elif word(at) == AT_RANDOM:
                memory().write_memory(word(at + 8), bytes.fromhex(self.plan["at_random"]))
            at += 16

    def run_to(self, address, times):
        """Runs to an address, until the program has come there so many times."""
        quietly("handle SIGUSR1 nostop")
        quietly("catch syscall getrandom time")
        quietly(f"break *{address}")
        if times > 1:
            quietly(f"ignore $bpnum {times - 1}")
        while True:
            quietly("continue")
            here = register("rip")
            if here == address:
                break
            if self.clocks and here == self.clocks[0][0]:
                self.clock()
                continue
            number, buffer = register("orig_rax"), register("rdi")
            assert number in (GETRANDOM, TIME), f"stopped at {here:#x}"
            quietly("continue")
            self.chance(number, buffer)
        quietly("delete")
        quietly("handle SIGUSR1 stop")
        self.vectors = self.x87 = True

    def clock(self):
        """The program has read the processor's clock."""
        _, low, high = self.clocks.pop(0)
        quietly(f"set $rax = {low}")
        quietly(f"set $rdx = {high}")

    def one(self):
        """One instruction as the recording counts them."""
        at = register("rip")
        code = read(at, 16)
        first, second, repeats = opcode(code)
        self.x87 |= 0xD8 <= first <= 0xDF or first == 0x9B
        wide = first in (0xC4, 0xC5, 0x62) or (first == 0x0F and second not in PLAIN)
        self.vectors |= wide
        # Some of these instructions load all registers.
        self.x87 |= first == 0x0F and second in (0x05, 0xAE, 0xC7, 0x77)
        if (first, second) == (0x0F, 0x05):
            self.system_call()
        else:
            self.step()
            # A string instruction that repeats stops after each time.
            while repeats and first in STRINGS and register("rip") == at:
                self.step()
            if first == 0x9C:
                # The flag by which gdb steps is in what was pushed.
                stack = register("rsp")
                memory().write_memory(stack, struct.pack("<H", struct.unpack("<H", read(stack, 2))[0] & ~TRAP))
        self.position += 1

    def step(self, count=1):
        quietly(f"stepi {count}")
        # Once popf has been stepped, the kernel takes the flag for one that the program has set.
        flags = register("eflags")
        if flags & TRAP:
            quietly(f"set $eflags = {flags & ~TRAP}")

    def system_call(self):
        number, buffer = register("rax"), register("rdi")
        self.step()
        self.chance(number, buffer)
        if number != SIGRETURN:
            # The processor keeps the flags in r11, with the one by which gdb steps.
            quietly(f"set $r11 = {register('r11') & ~TRAP}")
        if number == TGKILL:
            # The signal comes with the next step, and the handler with one more.
            self.step()
            assert self.signals.seen
            self.step()
            # The frame may have the flag by which gdb steps, and has the number of the last exception: a step here, a breakpoint
            # of the recorder's there. Without either it would be that of a page fault or interrupt.
            flags = register("rsp") + FRAME_FLAGS
            memory().write_memory(flags, struct.pack("<Q", word(flags) & ~TRAP))
            last = flags + 3 * 8
            assert word(last) == STEP
            memory().write_memory(last, struct.pack("<Q", BREAKPOINT))

    def chance(self, number, buffer):
        """After a system call: what another run would not see again."""
        if number == GETRANDOM:
            memory().write_memory(buffer, self.random.pop(0))
        elif number == TIME:
            quietly(f"set $rax = {self.times.pop(0)}")

    def note(self, whole):
        frame = gdb.selected_frame()
        general = [int(frame.read_register(name)) & MASK for name in GENERAL]
        self.put(b"R", struct.pack("<Q19Q", self.position, *general))
        if self.vectors:
            self.put(b"V", self.kinds.bytes())
        if self.x87:
            self.put(b"X", x87())
        self.vectors = self.x87 = False
        if whole:
            self.note_memory()

    def put(self, kind, content):
        self.out.write(kind + struct.pack("<I", len(content)) + content)

    def note_memory(self):
        """All memory that the program can write; pages that have not changed are left out."""
        pid = memory().pid
        ranges = []
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as content:
            for line in maps:
                span, mode = line.split()[:2]
                if not mode.startswith("rw"):
                    continue
                start, end = (int(part, 16) for part in span.split("-"))
                ranges.append((start, end))
                content.seek(start)
                whole = content.read(end - start)
                assert len(whole) == end - start
                for offset in range(0, len(whole), 4096):
                    page = whole[offset : offset + 4096]
                    if self.pages.get(start + offset) != page:
                        self.pages[start + offset] = page
                        self.put(b"P", struct.pack("<Q", start + offset) + page)
        self.put(b"M", b"".join(struct.pack("<QQ", *span) for span in ranges))

    def run(self):
        self.start()
        self.put(b"I", struct.pack("<Q", memory().pid))
        for kind, number, *more in self.plan["orders"]:
            if kind == "go":
                # To where the recording is at this position; it tells how often it comes by that address.
                self.position = number
                self.run_to(*more)
            elif kind == "steps":
                # None of these repeats, pushes flags or is a system call.
                self.step(number)
                self.position += number
                self.vectors = self.x87 = True
            elif kind == "one":
                for _ in range(number):
                    self.one()
            else:
                self.note(whole=kind == "all")
        self.out.close()
        quietly("kill")


with open(plan) as file:
    Run(json.load(file)).run()
