# gdb's side of the comparison of functions: prints file, line, parameters and result of the function at each address in
# ASK (hexadecimal, as the file states them). Sizes are in bytes; - stands for none.
import os

import gdb


def outermost(address):
    """The function at `address` itself: neither what was inlined there nor the function that it is written in."""
    blocks = [gdb.block_for_pc(address)]
    while blocks[-1].superblock and not blocks[-1].superblock.is_static:
        blocks.append(blocks[-1].superblock)
    here = [block for block in blocks if block.function and block.start == address]
    return (here or blocks)[-1]


def size(type):
    type = type.strip_typedefs()
    return "-" if type.code == gdb.TYPE_CODE_VOID else str(type.sizeof)


gdb.execute("set pagination off")
for word in os.environ["ASK"].split():
    block = outermost(int(word, 16))
    function = block.function
    result = size(function.type.target()) if function.type.target() else "-"
    # The call operators of lambdas have a line in the line table only.
    line = function.line or gdb.find_pc_line(int(word, 16)).line
    fields = [word, function.symtab.fullname(), str(line), "%x" % (block.end - block.start), result]
    for symbol in block:
        if symbol.is_argument:
            fields.append("%s:%s" % (symbol.name, size(symbol.type)))
    print("FUNCTION\t" + "\t".join(fields))
