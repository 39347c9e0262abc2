//! Registers, memory and expressions of which nothing is known, and empty answers.

use expect_test::expect;

use super::check;
use super::common::Folder;

#[test]
fn registers_and_memory_have_bounds() {
    check(
        "orders",
        &[
            "goto 19",
            "registers rxx",
            "registers eax",
            "registers",
            "memory read &sold --count 0",
            "memory read &sold --count 5000000",
            "memory read sold",
            "memory read nobody",
            "memory read 0",
            "memory read 0xfffffffffffffffc --count 8",
            "memory read",
            "disassemble --count 0",
            "disassemble --count 100001",
            "disassemble 0x10",
            "disassemble 0x10 --count 1",
            "disassemble nobody",
            "disassemble &sold --count 1",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
             Register | Value      | Symbol
            ----------+------------+--------
             eax      | 0x866573d0 | 
             Register | Value          | Symbol
            ----------+----------------+-----------
             rax      | 0x55a5866573d0 | 
             rbx      | 0x7fff2dc3de18 | 
             rcx      | 0x7f0be9038c60 | 
             rdx      | 0x55a578740046 | 
             rsi      | 0x18           | 
             rdi      | 0x55a5866573d0 | 
             rbp      | 0x7fff2dc3dcc0 | 
             rsp      | 0x7fff2dc3dc60 | 
             r8       | 0x7f0be9038c60 | 
             r9       | 0x7f0be90556d0 | 
             r10      | 0x7f0be8e77dd0 | 
             r11      | 0x20           | 
             r12      | 0x0            | 
             r13      | 0x7fff2dc3de28 | 
             r14      | 0x55a578741dc8 | 
             r15      | 0x7f0be9084020 | 
             rip      | 0x55a57873f2df | settle+12
             rflags   | 0x206          | 
             fs_base  | 0x7f0be8e62800 | 
             gs_base  | 0x0            | 
               0x55a578742070  add [rax],al
            --- stderr
            error: there is no register rxx
            help: registers are rax to r15 and their parts (eax, ax, al, ah), rip, rflags, cs to gs, fs_base, gs_base, xmm0 to xmm15, ymm0 to ymm31, zmm0 to zmm31, k0 to k7, st0 to st7, mxcsr, fctrl, fstat, ftag, fop
              at --cmd 2: registers rxx (exit code 2)
            error: 0 bytes cannot be read at once: ask for 1 to 4194304
              at --cmd 5: memory read &sold --count 0 (exit code 2)
            error: 5000000 bytes cannot be read at once: ask for 1 to 4194304
              at --cmd 6: memory read &sold --count 5000000 (exit code 2)
            error: sold is not an address: int is not a pointer
            help: for its address, write &sold
              at --cmd 7: memory read sold (exit code 1)
            error: no variable "nobody" here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 8: memory read nobody (exit code 1)
            error: memory at 0x0 cannot be read: unknown: not captured
              at --cmd 9: memory read 0 (exit code 1)
            error: memory at 0xfffffffffffffffc cannot be read: unknown: not captured
              at --cmd 10: memory read 0xfffffffffffffffc --count 8 (exit code 1)
            error: that is not a place in memory
            help: hindsight memory read ADDRESS, or memory write ADDRESS BYTES
              at --cmd 11: memory read (exit code 2)
            error: ask for 1 to 100000 instructions, not 0
              at --cmd 12: disassemble --count 0 (exit code 2)
            error: ask for 1 to 100000 instructions, not 100001
              at --cmd 13: disassemble --count 100001 (exit code 2)
            error: cannot disassemble at 0x10: no function is known at 0x10
            help: ask for a number of instructions from an address instead
              at --cmd 14: disassemble 0x10 (exit code 1)
            error: cannot disassemble at 0x10: unknown: not captured
              at --cmd 15: disassemble 0x10 --count 1 (exit code 1)
            error: no variable "nobody" here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 16: disassemble nobody (exit code 1)
            --- exit code 1
        "#]],
    );
}

#[test]
fn low_halves_are_no_whole_registers() {
    check(
        "orders",
        &[
            "goto 13",
            "print $xmm0",
            "print $xmm2",
            "print $nothing",
            "print $rbx",
            "print $rflags",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 13, entry of ordered: ordered at /home/ada/orders/orders.c:49
            ->    49 | struct order *ordered(int id, int pieces, double each, const char *customer) {
            $xmm0 = <unknown: only its low half was captured>
            $1 = 8388608 <stale: as of event 6>
            $2 = 0 <stale: as of event 6>
            $3 = 518 <stale: as of event 6>
            --- stderr
            error: $nothing is no register, and has not been set
            help: set it: set $nothing = 1
              at --cmd 4: print $nothing (exit code 1)
            --- exit code 1
        "#]],
    );
}

#[test]
fn expressions_that_mean_nothing_are_told() {
    check(
        "orders",
        &[
            "goto 19",
            "print",
            "print 1 +",
            "print sold +",
            "print order->nobody",
            "print order.id.x",
            "print nobody",
            "print solt",
            "print counts",
            "print settle(order)",
            "print sold = 3",
            "print *sold",
            "print shop[9]",
            "print --format frob sold",
            "history",
            "history 1 +",
            "history nobody",
            "last-write",
            "last-write nobody",
            "watch nobody",
            "unwatch 3",
            "history $nothing",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            $1 = 111 'o'
            --- stderr
            error: no value has been shown yet
            help: print shows values and numbers them
              at --cmd 2: print (exit code 1)
            error: the expression "1 +": expected an expression at position 3
              at --cmd 3: print 1 + (exit code 1)
            error: the expression "sold +": expected an expression at position 6
              at --cmd 4: print sold + (exit code 1)
            error: struct order has no member nobody
            help: it has id, pieces, each, customer
              at --cmd 5: print order->nobody (exit code 1)
            error: int has no members
              at --cmd 6: print order.id.x (exit code 1)
            error: no variable "nobody" here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 7: print nobody (exit code 1)
            error: no variable "solt" here
            help: did you mean "sold"?
              at --cmd 8: print solt (exit code 1)
            error: no variable "counts" here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 9: print counts (exit code 1)
            error: settle cannot be called here
            help: eval calls functions; everything else only looks at memory
              at --cmd 10: print settle(order) (exit code 1)
            error: the expression "sold = 3": "=" assigns and is not allowed here at position 5
            help: to compare, write "=="; to change a value: set x = 3
              at --cmd 11: print sold = 3 (exit code 1)
            error: int is not a pointer
            help: to look at that address, convert it: *(char*)...
              at --cmd 12: print *sold (exit code 1)
            error: invalid value 'frob' for '--format <FORMAT>'
              at --cmd 14: print --format frob sold (exit code 2)
            error: the following required arguments were not provided: <EXPRESSION>...
            help: write: history <EXPRESSION>...
              at --cmd 15: history (exit code 2)
            error: the expression "1 +": expected an expression at position 3
              at --cmd 16: history 1 + (exit code 1)
            error: no variable "nobody" here (the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory)
              at --cmd 17: history nobody (exit code 1)
            error: the following required arguments were not provided: <EXPRESSION>...
            help: write: last-write <EXPRESSION>...
              at --cmd 18: last-write (exit code 2)
            error: no variable "nobody" here (the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory)
              at --cmd 19: last-write nobody (exit code 1)
            error: no variable "nobody" here (the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory)
              at --cmd 20: watch nobody (exit code 1)
            error: there is no watch 3
            help: list them with: watch
              at --cmd 21: unwatch 3 (exit code 2)
            error: no register "nothing"
            help: known are rax to r15, rip, rflags, xmm0 to xmm15, ymm, zmm, k0 to k7, st0 to st7, mxcsr, fctrl, fs_base and gs_base
              at --cmd 22: history $nothing (exit code 1)
            --- exit code 1
        "#]],
    );
}

#[test]
fn answers_may_be_empty() {
    check(
        "shop",
        &[
            "notes",
            "break list",
            "watch",
            "output",
            "unwatch",
            "delete",
            "history $xmm5",
            "last-write $xmm5",
            "alias",
            "threads",
            "calls",
        ],
        expect![[r#"
            The recording has no notes.
            There are no breakpoints; runs through time stop where the recording did.
            Nothing is watched.
            The program had written nothing up to here.
            Nothing was watched.
            0 breakpoints removed
            The recording shows no value of $xmm5: it is known at no stop, at no copy of memory, at no capture, and at no entry of this function.
            The recording shows no value of $xmm5 up to here.
             ID | Name | State | Location
            ----+------+-------+----------
              main  8..151  167.45 us
        "#]],
    );
    let folder = Folder::with_debugged();
    expect![[r#"
        Thread 4243 (synth-4243) at event 27, the program was killed by SIGSEGV: location unknown
             ID | Name       | State | Location
        --------+------------+-------+----------
         * 4243 | synth-4243 | ended | 
        Thread 4243 is in no recorded call at event 27.
        The program had written nothing up to here.
        --- stderr
        error: no frame of thread 4243 is known at event 27: unknown: the process has ended
        help: go to an event that shows one: next, or continue
          at --cmd 4: args (exit code 2)
        --- exit code 2
    "#]]
    .assert_eq(&folder.repl(
        "debugged",
        &["goto last", "thread 4243", "calls", "args", "output"],
    ));
}
