# The supplementary file of altlink.s, made by hand because dwz may not be installed. Without relocations: it is read as
# the assembler leaves it.
    .section .note.gnu.build-id, "a", @note
    .long 4, 4, 3
    .asciz "GNU"
    .byte 0xde, 0xad, 0xbe, 0xef

    .section .debug_str, "", @progbits
    .byte 0
    .asciz "f"
    .asciz "first"
    .asciz "second"
    .asciz "long int"
    .asciz "short unsigned int"

    .section .debug_abbrev, "", @progbits
    .byte 1, 0x3c, 1                # partial unit
    .byte 0x13, 0x0b
    .byte 0, 0
    .byte 2, 0x24, 0                # base type: name, encoding, size
    .byte 0x03, 0x0e, 0x3e, 0x0b, 0x0b, 0x0b
    .byte 0, 0
    .byte 0

    .section .debug_info, "", @progbits
    .long 31
    .value 4
    .long 0
    .byte 8
    .uleb128 1                      # offset 11
    .byte 0x0c
    .uleb128 2                      # offset 13: never referred to
    .long 16
    .byte 7, 8
    .uleb128 2                      # offset 20: long
    .long 16
    .byte 5, 8
    .uleb128 2                      # offset 27: unsigned short
    .long 25
    .byte 7, 2
    .byte 0
