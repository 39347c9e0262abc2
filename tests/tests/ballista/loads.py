"""Lets Ballista's wheel load where the C library is older than the one that it was linked with.

The wheel of PyPI asks for glibc 2.39, and pip offers it nowhere else. Two functions alone are of that version, and both are weak: their caller
tests whether they are there. So the version can be weak too, which is one bit in the table of needed versions. Argument: the library.
"""

import os
import struct
import subprocess
import sys

NEWER = (2, 39)
VERNEED = 0x6FFFFFFE
WEAK = 2


def sections(file):
    """Type, offset, size and link of each section of a 64-bit file."""
    file.seek(0)
    head = file.read(64)
    (at,) = struct.unpack_from("<Q", head, 40)
    size, count = struct.unpack_from("<HH", head, 58)
    for index in range(count):
        file.seek(at + index * size)
        _, kind, _, _, offset, length, link = struct.unpack("<IIQQQQI", file.read(44))
        yield kind, offset, length, link


def weaken(path, name):
    """Marks the version `name` as weak wherever it is needed; returns how often."""
    marked = 0
    with open(path, "r+b") as file:
        every = list(sections(file))
        for _, offset, length, link in (one for one in every if one[0] == VERNEED):
            file.seek(every[link][1])
            names = file.read(every[link][2])
            file.seek(offset)
            table = bytearray(file.read(length))
            library, more = 0, True
            while more:
                _, count, _, first, more = struct.unpack_from("<HHIII", table, library)
                at = library + first
                for _ in range(count):
                    _, flags, _, text, then = struct.unpack_from("<IHHII", table, at)
                    if names[text : names.index(b"\0", text)] == name:
                        struct.pack_into("<H", table, at + 4, flags | WEAK)
                        marked += 1
                    at += then
                library += more
            file.seek(offset)
            file.write(table)
    return marked


def main():
    path = sys.argv[1]
    have = os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")
    if tuple(map(int, have)) >= NEWER:
        return
    name = f"GLIBC_{NEWER[0]}.{NEWER[1]}"
    listed = subprocess.run(["readelf", "-W", "--dyn-syms", path], check=True, capture_output=True, text=True).stdout
    of_it = [line for line in listed.splitlines() if f"@{name}" in line]
    if not of_it or not all(" WEAK " in line for line in of_it):
        sys.exit(f"{path} needs {name}:\n" + "\n".join(of_it))
    if not weaken(path, name.encode()):
        sys.exit(f"{path} has no {name} in its table of needed versions")


main()
