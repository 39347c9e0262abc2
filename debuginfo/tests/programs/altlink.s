# A module as dwz leaves it: name and types of `f` are in the supplementary file (supplement.s).
    .text
    .globl f
    .type f, @function
f:  lea (%rdi,%rsi,2), %rax
    ret
f_end:
    .size f, f_end - f

    .section .debug_abbrev, "", @progbits
    .byte 1, 0x11, 1                # compile unit, with children
    .byte 0x13, 0x0b, 0x11, 0x01    # language: data1, low_pc: addr
    .byte 0, 0
    .byte 2, 0x2e, 1                # subprogram
    .byte 0x03; .uleb128 0x1f21     # name: strp in the supplement
    .byte 0x49; .uleb128 0x1f20     # type: entry in the supplement
    .byte 0x11, 0x01, 0x12, 0x06, 0x3f, 0x19
    .byte 0, 0
    .byte 3, 0x05, 0                # formal parameter
    .byte 0x03; .uleb128 0x1f21
    .byte 0x49; .uleb128 0x1f20
    .byte 0, 0
    .byte 0

    .section .debug_info, "", @progbits
    .long info_end - info
info:
    .value 4
    .long 0
    .byte 8
    .uleb128 1
    .byte 0x0c
    .quad f
    .uleb128 2
    .long 1, 20
    .quad f
    .long f_end - f
    .uleb128 3
    .long 3, 20
    .uleb128 3
    .long 9, 27
    .byte 0, 0
info_end:

    .section .gnu_debugaltlink, "", @progbits
    .asciz "fuzz.sup"
    .byte 0xde, 0xad, 0xbe, 0xef
