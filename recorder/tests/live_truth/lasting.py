# Which bytes of the stack the program has given a value and may still use: those of variables that are declared by now, of saved
# registers and of return addresses. What lies between is padding, or was left there by calls that have returned. Optimised code
# gives variables their values, and their places to others, when it likes.
import re
import gdb

SAVED = re.compile(r"(\w+) at (0x[0-9a-f]+)")
# Longer arrays of structures count as a whole.
MOST_ELEMENTS = 64
# Declared in a switch before its first case: the way to all cases jumps over what would give it a value.
JUMPED_OVER = ["yylhsminor"]
layouts = {}


def parts(kind):
    """Offset and length of what a type is made of, without padding."""
    kind = kind.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_STRUCT:
        found = []
        for field in kind.fields():
            # What setjmp keeps is mixed with a secret of the process.
            if not hasattr(field, "bitpos") or (field.type.name or "").endswith("jmp_buf"):
                continue
            if field.bitsize:
                # Other bits of the byte may belong to nobody.
                continue
            found.extend((field.bitpos // 8 + offset, length) for offset, length in parts(field.type))
        return found
    if kind.code == gdb.TYPE_CODE_ARRAY:
        if (kind.target().name or "").startswith("__jmp_buf"):
            return []
        inner = kind.target()
        first, last = kind.range()
        is_plain = inner.strip_typedefs().code not in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_ARRAY)
        if is_plain or last - first >= MOST_ELEMENTS:
            return [(0, kind.sizeof)]
        every = parts(inner)
        return [(at * inner.sizeof + offset, length) for at in range(last - first + 1) for offset, length in every]
    if kind.code == gdb.TYPE_CODE_FLT and kind.sizeof == 16:
        return [(0, 10)]
    return [(0, kind.sizeof)]


def variables(frame):
    try:
        block = frame.block()
    except RuntimeError:
        return
    if frame.function() is None:
        return
    line = frame.find_sal().line
    first = gdb.find_pc_line(frame.function().value().address).line
    while block is not None:
        for symbol in block:
            # gdb keeps 16 bits of the line; no function is that long.
            declared = first + (symbol.line - first) % 65536
            is_there = symbol.is_argument or symbol.is_variable and declared < line
            is_there = is_there and symbol.name not in JUMPED_OVER
            if is_there and symbol.addr_class == gdb.SYMBOL_LOC_COMPUTED:
                yield symbol
        if block.function is not None:
            return
        block = block.superblock


def of_frame(frame, with_variables):
    frame.select()
    saved = gdb.execute("info frame", to_string=True).partition("Saved registers:")[2]
    for register, address in SAVED.findall(saved):
        yield int(address, 16), 8, register
    for symbol in variables(frame) if with_variables else []:
        try:
            value = symbol.value(frame)
        except (gdb.error, gdb.MemoryError):
            continue
        # A reference is not where the value is that it stands for.
        if value.address is None or value.type.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
            continue
        key = (symbol.symtab.filename, symbol.line, symbol.name)
        if key not in layouts:
            layouts[key] = parts(symbol.type)
        start = int(value.address)
        yield from ((start + offset, length, symbol.name) for offset, length in layouts[key])


def everything(with_variables=True, end=1 << 64):
    """What lasts in the frames up to an address."""
    frame = gdb.newest_frame()
    while frame is not None and int(frame.read_register("rsp")) & (1 << 64) - 1 < end:
        if frame.type() == gdb.NORMAL_FRAME:
            for start, length, what in of_frame(frame, with_variables):
                yield start, length, "%s of %s" % (what, frame.name())
        frame = frame.older()
    gdb.newest_frame().select()


def lasting(ranges, with_variables):
    """What lasts of some memory, above rsp."""
    stack = int(gdb.newest_frame().read_register("rsp")) & (1 << 64) - 1
    # The program's data lies below the stack.
    ranges = [(start, start + length) for start, length in ranges if start + length > stack]
    if not ranges:
        return
    for start, length, what in everything(with_variables, max(end for _, end in ranges)):
        if start >= stack and any(start < end and first < start + length for first, end in ranges):
            yield start, length, what
