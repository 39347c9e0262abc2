# What variables point to: numbers in the structures behind pointers, and behind the pointers in those.
import gdb

from lasting import everything, variables

FRAMES = 4
# Of each structure, so many pointers are followed.
FOLLOWED = 4
# Without address space randomisation, libraries end here, and the stack lies above.
STACKS = 0x7ffff8000000
NUMBERS = [gdb.TYPE_CODE_INT, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_PTR]


def structure(kind):
    """The structure that a pointer's type points to."""
    kind = kind.strip_typedefs()
    if kind.code != gdb.TYPE_CODE_PTR:
        return None
    target = kind.target().strip_typedefs()
    # What libc keeps of open files depends on what else is in the process.
    is_known = target.code == gdb.TYPE_CODE_STRUCT and target.fields() and target.name != "_IO_FILE"
    return target if is_known else None


def tell(level, text, pointer, depth, stack):
    target = structure(pointer.type)
    if target is None or pointer.is_optimized_out or int(pointer) == 0:
        return
    address = int(pointer)
    # Pointers to variables of calls that have returned point into whatever is there now.
    if address >= STACKS and not any(start <= address < start + length for start, length, _ in stack):
        return
    followed = 0
    whole = pointer.dereference()
    for field in target.fields():
        if field.name is None or not hasattr(field, "bitpos"):
            continue
        kind = field.type.strip_typedefs()
        if kind.code not in NUMBERS:
            continue
        name = "%s->%s" % (text, field.name)
        try:
            value = whole[field]
            print("FIELD\t%d\t%s\t%x" % (level, name, int(value) & (1 << 64) - 1))
        except gdb.MemoryError:
            return
        if depth > 1 and followed < FOLLOWED and structure(kind) is not None:
            followed += 1
            tell(level, name, value, depth - 1, stack)


def fields():
    stack = list(everything())
    frame = gdb.newest_frame().older()
    level = 1
    while frame is not None and level < FRAMES:
        frame.select()
        for symbol in variables(frame):
            value = symbol.value(frame)
            if structure(value.type) is not None:
                tell(level, symbol.name, value, 2, stack)
        frame = frame.older()
        level += 1
    gdb.newest_frame().select()
