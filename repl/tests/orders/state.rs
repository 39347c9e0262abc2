//! Registers, memory, values and captures: whether they are known, stale or unknown, and when they changed.

use expect_test::expect;

use super::{check, check_captured};

#[test]
fn registers_are_known_stale_or_unknown() {
    check(
        &[
            "goto 6",
            "registers rip rsp rdi",
            "goto 13",
            "registers",
            "registers xmm0 xmm1",
            "goto 14",
            "registers rax rdi xmm0",
            "goto 20",
            "registers rax rdi xmm0",
            "goto 50",
            "registers rdi rbx rflags",
            "goto 63",
            "registers rip",
            "goto 69",
            "registers rip",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 6, pause: entry in _start: _start
             Register | Value          | Symbol
            ----------+----------------+----------
             rip      | 0x55a57873f0f0 | _start+0
             rsp      | 0x7fff2dc3de10 | 
             rdi      | 0x7f0be90852e0 | 
            Thread 28464 (orders) at event 13, entry of ordered: ordered at /home/ada/orders/orders.c:49
            ->    49 | struct order *ordered(int id, int pieces, double each, const char *customer) {
             Register | Value                                 | Symbol
            ----------+---------------------------------------+-----------
             rax      | 0x38 <stale: as of event 6>           | 
             rbx      | 0x0 <stale: as of event 6>            | 
             rcx      | 0x4012000000000000                    | 
             rdx      | 0x55a578740042                        | 
             rsi      | 0x2                                   | 
             rdi      | 0x1                                   | 
             rbp      | 0x0 <stale: as of event 6>            | 
             rsp      | 0x7fff2dc3dcc8                        | 
             r8       | 0x0                                   | 
             r9       | 0x7f0be90556d0                        | 
             r10      | 0x7f0be90517d0 <stale: as of event 6> | 
             r11      | 0x7f0be9065060 <stale: as of event 6> | 
             r12      | 0x55a57873f0f0 <stale: as of event 6> | _start+0
             r13      | 0x7fff2dc3de10 <stale: as of event 6> | 
             r14      | 0x0 <stale: as of event 6>            | 
             r15      | 0x0 <stale: as of event 6>            | 
             rip      | 0x55a57873f3b8                        | ordered+0
             rflags   | 0x206 <stale: as of event 6>          | 
             fs_base  | 0x7f0be8e62800 <stale: as of event 6> | 
             gs_base  | 0x0 <stale: as of event 6>            | 
             Register | Value                            | Symbol
            ----------+----------------------------------+--------
             xmm0     | 0000000000001240???????????????? | 
             xmm1     | 0000000000000000???????????????? | 
            Thread 28464 (orders) at event 14, return from ordered: main at /home/ada/orders/orders.c:67
            ->    67 |   struct order *first = ordered(1, counts[0], 4.5, "Ada");
             Register | Value                            | Symbol
            ----------+----------------------------------+--------
             rax      | 0x55a5866573d0                   | 
             rdi      | 0x1 <stale: as of event 13>      | 
             xmm0     | 0000000000001240???????????????? | 
            Thread 28464 (orders) at event 20, write: order->pieces: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
             Register | Value                            | Symbol
            ----------+----------------------------------+--------
             rax      | 0x55a5866573d0                   | 
             rdi      | 0x55a5866573d0                   | 
             xmm0     | 000000000000f43f0000000000000000 | 
            Thread 28553 (orders) at event 50, entry of evening: evening at /home/ada/orders/orders.c:55
            ->    55 | void *evening(void *last) {
             Register | Value                   | Symbol
            ----------+-------------------------+--------
             rdi      | 0x55a5866573d0          | 
             rbx      | <unknown: not captured> | 
             rflags   | <unknown: not captured> | 
            Thread 28553 (orders) at event 63, thread_exit: location unknown
             Register | Value                           | Symbol
            ----------+---------------------------------+--------
             rip      | <unknown: the thread has ended> | 
            Thread 28553 (orders) at event 69, the program was killed by SIGKILL: location unknown
             Register | Value                            | Symbol
            ----------+----------------------------------+--------
             rip      | <unknown: the process has ended> | 
        "#]],
    );
}

#[test]
fn memory_is_known_stale_or_unknown() {
    check(
        &[
            "goto 3",
            "memory read &sold --count 4",
            "goto 5",
            "memory read &sold --count 4",
            "goto 28",
            "memory read &sold --count 8",
            "goto 29",
            "memory read &sold --count 8",
            "goto 30",
            "memory &sold --count 8",
            "goto 31",
            "memory read &sold --count 8",
            "memory read shop --count 6",
            "goto 19",
            "memory read order --count 24",
            "memory read &*order --count 4",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 3, module_load: /usr/lib/orders/ld-linux-x86-64.so.2: location unknown
            Thread 28464 (orders) at event 5, snapshot: location unknown
            0x000055a578742070  00 00 00 00                                      ....
            Thread 28464 (orders) at event 28, return from settle: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            0x000055a578742070  00 00 00 00 00 00 00 00                          ........
            (stale: as of event 18; it may have changed since)
            Thread 28464 (orders) at event 29, snapshot: somewhere in main
            0x000055a578742070  04 00 00 00 00 00 00 00                          ........
            Thread 28464 (orders) at event 30, pause: step: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            0x000055a578742070  04 00 00 00 00 00 00 00                          ........
            Thread 28464 (orders) at event 31, resume: next: somewhere in main
            0x000055a578742070  04 00 00 00 00 00 00 00                          ........
            (stale: as of event 29; it may have changed since)
            0x000055a578740008  41 64 61 27 73 00                                Ada's.
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            0x000055a5866573d0  01 00 00 00 02 00 00 00 00 00 00 00 00 00 12 40  ...............@
            0x000055a5866573e0  42 00 74 78 a5 55 00 00                          B.tx.U..
            0x000055a5866573d0  01 00 00 00                                      ....
            --- stderr
            error: memory at 0x55a578742070 cannot be read: unknown: not captured
              at --cmd 2: memory read &sold --count 4 (exit code 1)
            --- exit code 1
        "#]],
    );
}

#[test]
fn values_are_known_stale_or_unknown() {
    check(
        &[
            "goto 3",
            "print sold",
            "goto 5",
            "print sold",
            "goto 28",
            "print sold",
            "goto 29",
            "print sold",
            "goto 31",
            "print sold",
            "print first",
            "print *first",
            "goto 17",
            "print order",
            "print *order",
            "print *(struct order *)&takings",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 3, module_load: /usr/lib/orders/ld-linux-x86-64.so.2: location unknown
            sold = <unknown: not captured>
            Thread 28464 (orders) at event 5, snapshot: location unknown
            $1 = 0
            Thread 28464 (orders) at event 28, return from settle: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            $2 = 0 <stale: as of event 18>
            Thread 28464 (orders) at event 29, snapshot: somewhere in main
            $3 = 4
            Thread 28464 (orders) at event 31, resume: next: somewhere in main
            $4 = 4 <stale: as of event 29>
            Thread 28464 (orders) at event 17, entry of settle: settle at /home/ada/orders/orders.c:34
            ->    34 | int settle(struct order *order) {
            $5 = 0x55a5866573d0
            $6 = {id = 0, pieces = 0, each = 0, customer = 0x0} <stale: as of event 5>
            (no recorded call of malloc returned that block: an earlier object may have been at that address; -f 'module:libc.so*' records them)
            $7 = {id = 0, pieces = 0, each = 0, customer = 0x0} <stale: as of event 5>
            --- stderr
            error: no variable "first" here
            help: where in main the thread was at this event is not known, and so its variables are not: step, or step back
              at --cmd 11: print first (exit code 1)
            error: no variable "first" here
            help: where in main the thread was at this event is not known, and so its variables are not: step, or step back
              at --cmd 12: print *first (exit code 1)
            --- exit code 1
        "#]],
    );
}

#[test]
fn histories_tell_when_a_value_changed() {
    check(
        &[
            "history sold",
            "history takings",
            "goto 19",
            "history order->pieces",
            "last-write order->pieces",
            "goto 20",
            "last-write order->pieces",
            "goto 44",
            "last-write sold",
            "goto 66",
            "last-write sold",
            "goto 3",
            "last-write sold",
            "history *(int *)16",
            "last-write *(int *)16",
        ],
        expect![[r#"
             Event | Thread | Value | Place
            -------+--------+-------+--------
                 4 |  28464 | 0     | 
                29 |  28464 | 4     | main
                65 |  28464 | 46    | settle
            A second run tells which line writes it: hindsight record --full -o orders-full /home/ada/orders/./orders; hindsight last-write orders-full 'sold'
             Event | Thread | Value | Place
            -------+--------+-------+--------
                 4 |  28464 | 0     | 
                29 |  28464 | 17    | main
                65 |  28464 | 27.25 | settle
            A second run tells which line writes it: hindsight record --full -o orders-full /home/ada/orders/./orders; hindsight last-write orders-full 'takings'
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
             Event | Thread | Value | Place
            -------+--------+-------+----------------------------------------
                19 |  28464 | 2     | settle at /home/ada/orders/orders.c:36
                20 |  28464 | 4     | settle at /home/ada/orders/orders.c:36
                66 |  28464 | 9     | settle at /home/ada/orders/orders.c:36
            A second run tells which line writes it: hindsight record --full -o orders-full /home/ada/orders/./orders; hindsight last-write orders-full 'order->pieces'
            order->pieces is 2 since it was first seen, at event 19 (settle at /home/ada/orders/orders.c:36).
            A second run tells which line writes it: hindsight record --full -o orders-full /home/ada/orders/./orders; hindsight last-write orders-full 'order->pieces'
            Thread 28464 (orders) at event 20, write: order->pieces: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            order->pieces became 4 between event 19 (settle at /home/ada/orders/orders.c:36) and event 20 (settle at /home/ada/orders/orders.c:36).
            Thread 28464 (orders) at event 44, pause: SIGUSR1 in __pthread_kill_implementation at ./nptl/nptl/pthread_kill.c:44: 0x7f0be8eefeec
            sold became 4 between event 20 (settle at /home/ada/orders/orders.c:36) and event 29 (main).
            A second run tells which line writes it: hindsight record --log-writes 'sold' /home/ada/orders/./orders
            This is up to event 44; sold changes later; the last change that was seen is at event 65 (settle): goto last
            Thread 28464 (orders) at event 66, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            sold became 46 between event 44 and event 65 (settle).
            A second run tells which line writes it: hindsight record --log-writes 'sold' /home/ada/orders/./orders
            Thread 28464 (orders) at event 3, module_load: /usr/lib/orders/ld-linux-x86-64.so.2: location unknown
            The recording shows no value of sold up to here.
            A second run tells which line writes it: hindsight record --log-writes 'sold' /home/ada/orders/./orders
            This is up to event 3; sold changes later; the last change that was seen is at event 65 (settle): goto last
            The recording shows no value of *(int *)16: it is known at no stop, at no copy of memory, at no capture, and at no entry of this function.
            The recording shows no value of *(int *)16 up to here.
            A second run tells which line writes it: hindsight record --full -o orders-full /home/ada/orders/./orders; hindsight last-write orders-full '*(int *)16'
        "#]],
    );
}

#[test]
fn captures_are_known_where_they_were_taken() {
    check_captured(
        &[
            "goto 12",
            "registers",
            "backtrace",
            "args",
            "print *order",
            "print sold",
            "goto 13",
            "registers rax rbx xmm0",
            "print sold",
            "goto 14",
            "args",
            "up",
            "locals",
            "goto 9",
            "print customer",
            "goto 26",
            "print sold",
            "history sold",
            "goto 20",
            "registers rbx",
            "where",
        ],
        expect![[r#"
            Thread 28574 (orders) at event 12, entry of price: price at /home/ada/orders/orders.c:25
            ->    25 | double price(const struct order *order, int discount) {
             Register | Value                   | Symbol
            ----------+-------------------------+---------
             rax      | 0x5580476be3d0          | 
             rbx      | 0x7ffee702be28          | 
             rcx      | 0x7fb68d233c60          | 
             rdx      | 0x0                     | 
             rsi      | 0x0                     | 
             rdi      | 0x5580476be3d0          | 
             rbp      | 0x7ffee702bc60          | 
             rsp      | 0x7ffee702bc48          | 
             r8       | 0x7fb68d233c60          | 
             r9       | 0x7fb68d2506d0          | 
             r10      | 0x7fb68d06a3b8          | 
             r11      | 0x7fb68d09bd90          | 
             r12      | 0x0                     | 
             r13      | 0x7ffee702be38          | 
             r14      | 0x55801616fdc8          | 
             r15      | 0x7fb68d27f020          | 
             rip      | 0x55801616d208          | price+0
             rflags   | <unknown: not captured> | 
             fs_base  | <unknown: not captured> | 
             gs_base  | <unknown: not captured> | 
            *#0   price (order=0x5580476be3d0, discount=0) at /home/ada/orders/orders.c:25
             #1   rounded (order=0x5580476be3d0, discount=0) at /home/ada/orders/orders.c:32
             #2   settle (order=0x5580476be3d0) at /home/ada/orders/orders.c:41
             #3   main () at /home/ada/orders/orders.c:69
             #4   0x7fb68d08724a ()
              (the rest is not known: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2))
             Name     | Type                 | Value
            ----------+----------------------+----------------
             order    | const struct order * | 0x5580476be3d0
             discount | int                  | 0
            *order = <unknown: that part of the heap was seen only before the program ran; --watch or --snapshot every=N shows it later>
            $1 = 0
            Thread 28574 (orders) at event 13, return from price: rounded at /home/ada/orders/orders.c:32
            ->    32 | double rounded(const struct order *order, int discount) { return (long)(price(order, discount) * 100) / 100.0; }
             Register | Value                            | Symbol
            ----------+----------------------------------+--------
             rax      | 0x4022000000000000               | 
             rbx      | 0x7ffee702be28                   | 
             xmm0     | 0000000000002240???????????????? | 
            $2 = 0
            Thread 28574 (orders) at event 14, entry of say: say at /home/ada/orders/orders.c:23
            ->    23 | static void say(const char *text) { (void)!write(1, text, strlen(text)); }
             Name | Type         | Value
            ------+--------------+------------------------------------------
             text | const char * | 0x7ffee702bc80 "order 1 for Ada: 9.00\n"
            *#1   settle at /home/ada/orders/orders.c:45
            ->    45 |   say(line);
             Name     | Type           | Value
            ----------+----------------+----------------------------------------------------------------------------------------------------------------------------------------------------------------------
             order    | struct order * | 0x5580476be3d0
             line     | char [64]      | "order 1 for Ada: 9.00\n\000\000\320\006%\215\266\177\000\000`<#\215\266\177\000\000\030\000\000\000\000\000\000\000\300\260\026\025\200U\000\000F\340\026\026\200U"
             discount | int            | 0
             sum      | double         | 9
            Thread 28574 (orders) at event 9, entry of ordered: ordered at /home/ada/orders/orders.c:49
            ->    49 | struct order *ordered(int id, int pieces, double each, const char *customer) {
            $3 = 0x55801616e046 "Bob"
            Thread 28574 (orders) at event 26, return from closing: 0x7fb68d09c050
            $4 = 21
             Event | Thread | Value | Place
            -------+--------+-------+-------------------------------------
                 4 |  28574 | 0     | 
                14 |  28574 | 2     | say at /home/ada/orders/orders.c:23
                26 |  28574 | 21    | 
                34 |  28649 | 26    | say at /home/ada/orders/orders.c:23
                43 |  28574 | 33    | say at /home/ada/orders/orders.c:23
            A second run tells which line writes it: hindsight record --log-writes 'sold' ./orders
            Thread 28574 (orders) at event 20, price was left by an exception or longjmp: somewhere in settle
             Register | Value                                  | Symbol
            ----------+----------------------------------------+--------
             rbx      | 0x7ffee702be28 <stale: as of event 19> | 
            Thread 28574 (orders) at event 20, price was left by an exception or longjmp: somewhere in settle

            No source: no line is known here
            (look at the code: hindsight disassemble)

            No variables: where in settle the thread was at this event is not known
        "#]],
    );
}
