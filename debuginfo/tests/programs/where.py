# Says which line gdb finds for each of the addresses in the file ADDRESSES.
import os
import gdb

for text in open(os.environ["ADDRESSES"]).read().split():
    sal = gdb.find_pc_line(int(text, 16))
    name = os.path.basename(sal.symtab.filename) if sal.symtab and sal.line else "??"
    print(f"AT\t{text}\t{name}\t{sal.line if name != '??' else 0}")
