# Says what gdb sees where the program stands.
import os
import re
import sys
import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import name_of, place

REGISTERS = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
    "rip", "fs_base", "gs_base",
]
VECTORS = 16
# Whether structures of C and C++ are looked into.
looks_inside = True
FRAMES_WITH_VARIABLES = 5
SIMPLE = [gdb.TYPE_CODE_INT, gdb.TYPE_CODE_FLT, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_PTR]
# Parts of these may be there where others are optimised out.
WHOLE = [gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION, gdb.TYPE_CODE_ARRAY]
# Of structures: how deep they are looked into, and how many elements of an array are compared.
DEEPEST = 4
ELEMENTS = 4


def clean(text):
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def tell(level, name, text):
    print("VARIABLE\t%d\t%s\t%s" % (level, name, clean(text)))


def show(level, name, read, declared):
    try:
        value = read()
        if value.type.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
            value = value.referenced_value()
        if gdb.selected_frame().language() == "rust" and value.type.strip_typedefs().code not in SIMPLE:
            if value.address is not None:
                print("PLACE\t%d\t%s\t%x\t%d" % (level, name, int(value.address), value.type.sizeof))
            parts(level, name, value, declared, 0)
            return
        # Parts of structures are parts of the variable.
        variable, *part = re.split(r"[.\[]", name, maxsplit=1)
        if is_guess(variable):
            text = "<guessed>"
        elif value.is_optimized_out and value.type.strip_typedefs().code not in WHOLE:
            text = "<no target>" if not part and lacks_target(variable) else "<optimized out>"
        else:
            text = value.format_string(raw=True, symbols=True, static_members=True)
            if not part and value.address is not None:
                print("PLACE\t%d\t%s\t%x\t%d" % (level, name, int(value.address), value.type.sizeof))
    except (gdb.error, gdb.MemoryError) as error:
        text = "<error: %s>" % error
    tell(level, name, text)
    if looks_inside and text.startswith("{") and gdb.selected_frame().language() in ("c", "c++"):
        members(level, name, value, 0)


def members(level, name, value, depth):
    # Of structures and arrays of C and C++, the numbers and pointers in them. What setjmp keeps is mixed with a secret of the process.
    kind = value.type.strip_typedefs()
    if depth == DEEPEST or "jmp_buf" in (value.type.name or "") or "jmp_buf" in (kind.name or ""):
        return
    if kind.code == gdb.TYPE_CODE_ARRAY:
        first, last = kind.range()
        inner = [("%s[%d]" % (name, at), value[at]) for at in range(first, min(last + 1, first + ELEMENTS))]
    else:
        # Static members lie elsewhere.
        named = [field for field in kind.fields() if field.name and hasattr(field, "bitpos")]
        part = lambda field: "<%s>" % field.name if field.is_base_class else field.name
        inner = [("%s.%s" % (name, part(field)), value[field]) for field in named]
    for name, part in inner:
        if part.type.strip_typedefs().code in WHOLE:
            members(level, name, part, depth + 1)
        else:
            show(level, name, lambda: part, part.type)


def at_entry(name):
    # Whether the place of a variable is told by what it was when the function was entered.
    frame = gdb.selected_frame()
    pc = frame.pc() if frame.newer() is None or frame.newer().type() == gdb.SIGTRAMP_FRAME else frame.pc() - 1
    told = gdb.execute("info address " + name, to_string=True)
    for part in re.split(r"\n(?=.*Range 0x)", told):
        found = re.search(r"Range 0x([0-9a-f]+)-0x([0-9a-f]+)", part)
        covers = found is None or int(found.group(1), 16) <= pc < int(found.group(2), 16)
        if covers and "DW_OP_entry_value" in part:
            return True
    return False


def is_guess(name):
    # In a frame of an inlined call, gdb looks for such a value at the wrong call: the frame of the function around it,
    # which has the same registers, shows another one.
    return gdb.selected_frame().type() == gdb.INLINE_FRAME and at_entry(name)


def lacks_target(name):
    # gdb refuses the caller's word where it cannot tell what was called: the call names the function that was inlined
    # elsewhere instead of its copy of its own.
    if not at_entry(name):
        return False
    gdb.execute("set debug entry-values 1")
    told = gdb.execute("output " + name, to_string=True)
    gdb.execute("set debug entry-values 0")
    return "DW_AT_call_target is not specified" in told


def parts(level, name, value, declared, depth):
    # Rust's structures are written by gdb in a style of its own: they are compared by where they are and by their parts.
    kind = value.type.strip_typedefs()
    # Of a type with variants, which are fields without names, gdb dies while the value is not initialised yet.
    is_record = kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION)
    has_variants = is_record and any(field.name is None for field in kind.fields())
    place = "" if value.address is None else " at %x" % int(value.address)
    # Where gdb has chosen a variant, it counts the bytes up to the last field instead of those that are stated.
    tell(level, name, "%d bytes%s" % (declared.sizeof, place))
    if has_variants or depth == DEEPEST:
        return
    if kind.code == gdb.TYPE_CODE_STRUCT:
        for field in kind.fields():
            if hasattr(field, "bitpos"):
                # The fields of tuples have numbers, which debug information writes as __0.
                part = field.name[2:] if field.name.startswith("__") else field.name
                inside(level, "%s.%s" % (name, part), value[field], field.type, depth + 1)
    elif kind.code == gdb.TYPE_CODE_ARRAY:
        first, last = kind.range()
        for at in range(first, min(last + 1, first + ELEMENTS)):
            inside(level, "%s[%d]" % (name, at), value[at], kind.target(), depth + 1)


def inside(level, name, value, declared, depth):
    if value.type.strip_typedefs().code in SIMPLE:
        show(level, name, lambda: value, declared)
    else:
        parts(level, name, value, declared, depth)


def variables(level, frame):
    frame.select()
    try:
        block = frame.block()
    except RuntimeError:
        return
    while block is not None:
        for symbol in block:
            # Labels whose code is gone count as variables.
            is_label = symbol.type is not None and symbol.type.name == "__CORE_ADDR"
            # Variables that always have one value count as constants, as enumerators do.
            is_constant = symbol.is_constant and symbol.type.strip_typedefs().code != gdb.TYPE_CODE_ENUM
            if (symbol.is_variable or symbol.is_argument or is_constant) and not is_label:
                show(level, symbol.name, lambda: symbol.value(frame), symbol.type)
        if block.function is not None:
            return
        block = block.superblock


def registers(frame):
    print("STOP\t" + place(frame))
    for name in REGISTERS:
        print("REGISTER\t%s\t%x" % (name, int(frame.read_register(name)) & (1 << 64) - 1))


def vectors(frame, word="WHOLE"):
    for number in range(VECTORS):
        halves = frame.read_register("xmm%d" % number)["v2_int64"]
        low, high = (int(halves[at]) & (1 << 64) - 1 for at in range(2))
        print("%s\t%d\t%x" % (word, number, high << 64 | low))


def describe_shortly(frame):
    # Three frames, and structures of C and C++ as a whole.
    global looks_inside
    looks_inside = False
    describe(frame, 3)


def describe(frame, frames=FRAMES_WITH_VARIABLES):
    registers(frame)
    print("REGISTER\teflags\t%x" % int(frame.read_register("eflags")))
    vectors(frame)
    level = 0
    while frame is not None and level < 60:
        kind = "inlined" if frame.type() == gdb.INLINE_FRAME else ""
        sal = frame.find_sal()
        file = os.path.basename(sal.symtab.filename) if sal.symtab else ""
        print("FRAME\t%s %s:%d %s %x" % (name_of(frame), file, sal.line, kind, frame.pc()))
        if level < frames:
            variables(level, frame)
        level += 1
        frame = frame.older()
