//! Every verb of `hindsight repl` on a frozen recording of a live session, `orders.hindsight`, and on one of the same program
//! with captures, `captured.hindsight`: what a user sees at stops, entries, returns and lines of output, byte for byte.

mod common;

use common::Folder;
use expect_test::{Expect, expect};

fn check(lines: &[&str], expected: Expect) {
    let folder = Folder::with_frozen(&["orders"]);
    expected.assert_eq(&folder.repl("orders", lines));
}

fn check_captured(lines: &[&str], expected: Expect) {
    let folder = Folder::with_frozen(&["captured"]);
    expected.assert_eq(&folder.repl("captured", lines));
}

#[test]
fn a_stop_shows_where_the_thread_stands_and_its_variables() {
    check(
        &[
            "goto 19",
            "where",
            "where --context 1",
            "locals",
            "args",
            "args --format hex",
            "source",
            "source --context 0",
            "source price",
            "source --function say",
            "source orders.c:21 --context 1",
            "source 12 --context 0",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36

                  31 : // Not recorded: whoever goes back through it needs its frame pointer.
                  32 | double rounded(const struct order *order, int discount) { return (long)(price(order, discount) * 100) / 100.0; }
                  33 : 
                  34 | int settle(struct order *order) {
                  35 :   char line[64];
            ->    36 |   int discount = order->pieces > 3;
                  37 |   if (setjmp(refused)) {
                  38 |     say("an order without pieces\n");
                  39 |     return 0;
                  40 :   }
                  41 |   double sum = rounded(order, discount);

            Locals:
             Name     | Type           | Value
            ----------+----------------+------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------
             order    | struct order * | 0x55a5866573d0
             line     | char [64]      | "\000\000\000\000\000\000\000\000\331\363sx\245U\000\000\310\035tx\245U\000\000F\000tx\245U\000\000\000\000\000\000\000\000\364?\000\000\000\000\002\000\000\000\300\320sw\245U\000\000F\000tx\245U"
             discount | int            | 21925
             sum      | double         | 6.9015600572187e-310
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36

                  35 :   char line[64];
            ->    36 |   int discount = order->pieces > 3;
                  37 |   if (setjmp(refused)) {

            Locals:
             Name     | Type           | Value
            ----------+----------------+------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------
             order    | struct order * | 0x55a5866573d0
             line     | char [64]      | "\000\000\000\000\000\000\000\000\331\363sx\245U\000\000\310\035tx\245U\000\000F\000tx\245U\000\000\000\000\000\000\000\000\364?\000\000\000\000\002\000\000\000\300\320sw\245U\000\000F\000tx\245U"
             discount | int            | 21925
             sum      | double         | 6.9015600572187e-310
             Name     | Type           | Value
            ----------+----------------+------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------
             order    | struct order * | 0x55a5866573d0
             line     | char [64]      | "\000\000\000\000\000\000\000\000\331\363sx\245U\000\000\310\035tx\245U\000\000F\000tx\245U\000\000\000\000\000\000\000\000\364?\000\000\000\000\002\000\000\000\300\320sw\245U\000\000F\000tx\245U"
             discount | int            | 21925
             sum      | double         | 6.9015600572187e-310
             Name  | Type           | Value
            -------+----------------+----------------
             order | struct order * | 0x55a5866573d0
             Name  | Type           | Value
            -------+----------------+----------------
             order | struct order * | 0x55a5866573d0
                  31 : // Not recorded: whoever goes back through it needs its frame pointer.
                  32 | double rounded(const struct order *order, int discount) { return (long)(price(order, discount) * 100) / 100.0; }
                  33 : 
                  34 | int settle(struct order *order) {
                  35 :   char line[64];
            ->    36 |   int discount = order->pieces > 3;
                  37 |   if (setjmp(refused)) {
                  38 |     say("an order without pieces\n");
                  39 |     return 0;
                  40 :   }
                  41 |   double sum = rounded(order, discount);
            ->    36 |   int discount = order->pieces > 3;
                  21 : static __thread jmp_buf refused;
                  22 : 
                  23 | static void say(const char *text) { (void)!write(1, text, strlen(text)); }
                  24 : 
                  25 | double price(const struct order *order, int discount) {
            ->    26 |   double sum = order->pieces * order->each;
                  27 |   if (order->pieces == 0) longjmp(refused, order->id);
                  28 |   return sum - discount;
                  29 | }
                  30 : 
                  31 : // Not recorded: whoever goes back through it needs its frame pointer.
            ->    23 | static void say(const char *text) { (void)!write(1, text, strlen(text)); }
                  20 : const char shop[] = "Ada's";
            ->    21 : static __thread jmp_buf refused;
                  22 : 
            ->    12 :   int id;
        "#]],
    );
}

#[test]
fn expressions_are_shown_in_every_format() {
    check(
        &[
            "goto 19",
            "print order",
            "print *order",
            "print order->customer",
            "print --format hex order->pieces",
            "print --type order->each * 2",
            "print shop",
            "print sold + 1",
            "print $rip",
            "print order->customer[0] == 'A'",
            "p line[0..4]",
            "up",
            "print counts[1]",
            "print first->id + second->id",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            order = 0x55a5866573d0
            *order = {id = 1, pieces = 2, each = 4.5, customer = 0x55a578740042 "Ada"}
            order->customer = 0x55a578740042 "Ada"
            order->pieces = 0x2
            (double) order->each * 2 = 9
            shop = "Ada's"
            sold + 1 = 1
            $rip = 94169178829535
            order->customer[0] == 'A' = true
            line[0..4] = ""
            *#1   main at /home/ada/orders/orders.c:69
            ->    69 |   settle(first);
            counts[1] = 0
            first->id + second->id = 3
        "#]],
    );
}

#[test]
fn machine_code_is_that_of_the_copied_module() {
    check(
        &[
            "goto 19",
            "disassemble --count 3",
            "disassemble say",
            "disassemble --source --count 5",
            "disassemble &shop --count 1",
            "frame 1",
            "disassemble --count 1",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            -> 0x55a57873f2df <settle+12>  mov rax,[rbp-0x58]
               0x55a57873f2e3 <settle+16>  mov eax,[rax+0x4]
               0x55a57873f2e6 <settle+19>  cmp eax,0x3
               0x55a57873f1d9 <say+0>  push rbp
               0x55a57873f1da <say+1>  mov rbp,rsp
               0x55a57873f1dd <say+4>  sub rsp,0x10
               0x55a57873f1e1 <say+8>  mov [rbp-0x8],rdi
               0x55a57873f1e5 <say+12>  mov rax,[rbp-0x8]
               0x55a57873f1e9 <say+16>  mov rdi,rax
               0x55a57873f1ec <say+19>  call 0x55a57873f060  <strlen@plt>
               0x55a57873f1f1 <say+24>  mov rdx,rax
               0x55a57873f1f4 <say+27>  mov rax,[rbp-0x8]
               0x55a57873f1f8 <say+31>  mov rsi,rax
               0x55a57873f1fb <say+34>  mov edi,0x1
               0x55a57873f200 <say+39>  call 0x55a57873f050  <write@plt>
               0x55a57873f205 <say+44>  nop
               0x55a57873f206 <say+45>  leave
               0x55a57873f207 <say+46>  ret
                  36 |   int discount = order->pieces > 3;
            -> 0x55a57873f2df <settle+12>  mov rax,[rbp-0x58]
               0x55a57873f2e3 <settle+16>  mov eax,[rax+0x4]
               0x55a57873f2e6 <settle+19>  cmp eax,0x3
               0x55a57873f2e9 <settle+22>  setg al
               0x55a57873f2ec <settle+25>  movzx eax,al
               0x55a578740008  (bad)
            *#1   main at /home/ada/orders/orders.c:69
            ->    69 |   settle(first);
            -> 0x55a57873f519 <main+117>  mov rax,[rbp-0x10]
        "#]],
    );
}

#[test]
fn frames_are_looked_at_one_by_one() {
    check(
        &[
            "goto 19",
            "backtrace",
            "frame",
            "up",
            "frame",
            "locals",
            "where --context 0",
            "registers rip rsp rbp rax",
            "up",
            "locals",
            "down 2",
            "frame 1",
            "backtrace --locals --limit 2",
            "backtrace --limit 1",
            "goto 20",
            "frame",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            *#0   settle (order=0x55a5866573d0) at /home/ada/orders/orders.c:36
             #1   main () at /home/ada/orders/orders.c:69
             #2   0x7f0be8e8c24a ()
              (the rest is not known: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2))
            *#0   settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            *#1   main at /home/ada/orders/orders.c:69
            ->    69 |   settle(first);
            *#1   main at /home/ada/orders/orders.c:69
            ->    69 |   settle(first);
             Name   | Type           | Value
            --------+----------------+-----------------
             counts | int [3]        | {2, 0, 1}
             first  | struct order * | 0x55a5866573d0
             second | struct order * | 0x55a5866573f0
             thread | pthread_t      | 140733961199128
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            *#1   main at /home/ada/orders/orders.c:69

            ->    69 |   settle(first);

            Locals:
             Name   | Type           | Value
            --------+----------------+-----------------
             counts | int [3]        | {2, 0, 1}
             first  | struct order * | 0x55a5866573d0
             second | struct order * | 0x55a5866573f0
             thread | pthread_t      | 140733961199128
             Register | Value                                                | Symbol
            ----------+------------------------------------------------------+----------
             rip      | 0x55a57873f519                                       | main+117
             rsp      | 0x7fff2dc3dcd0                                       | 
             rbp      | 0x7fff2dc3dd00                                       | 
             rax      | <rax is not saved by the functions that were called> | 
            *#2   0x7f0be8e8c24a
            *#0   settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            *#1   main at /home/ada/orders/orders.c:69
            ->    69 |   settle(first);
             #0   settle (order=0x55a5866573d0) at /home/ada/orders/orders.c:36
                    line = "\000\000\000\000\000\000\000\000\331\363sx\245U\000\000\310\035tx\245U\000\000F\000tx\245U\000\000\000\000\000\000\000\000\364?\000\000\000\000\002\000\000\000\300\320sw\245U\000\000F\000tx\245U"
                    discount = 21925
                    sum = 6.9015600572187e-310
            *#1   main () at /home/ada/orders/orders.c:69
                    counts = {2, 0, 1}
                    first = 0x55a5866573d0
                    second = 0x55a5866573f0
                    thread = 140733961199128
              (more frames follow: --limit)
             #0   settle (order=0x55a5866573d0) at /home/ada/orders/orders.c:36
              (more frames follow: --limit)
            Thread 28464 (orders) at event 20, write: order->pieces: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            *#0   settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            --- stderr
            error: no variables are known here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 10: locals (exit code 1)
            --- exit code 1
        "#]],
    );
}

#[test]
fn calls_that_were_not_recorded_are_told_of() {
    check(
        &[
            "goto 23",
            "backtrace",
            "frame 1",
            "print order",
            "frame 2",
            "print discount",
            "goto 56",
            "backtrace",
            "backtrace --all",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 23, entry of price: price at /home/ada/orders/orders.c:25
            ->    25 | double price(const struct order *order, int discount) {
            *#0   price (order=0x55a5866573d0, discount=1) at /home/ada/orders/orders.c:25
             #1   rounded (order=<its frame could not be unwound>, discount=<its frame could not be unwound>) at /home/ada/orders/orders.c:32
                   (calls that were not recorded may lie between)
             #2   somewhere in settle in orders.hindsight/modules/000000/orders
             #3   main () at /home/ada/orders/orders.c:69
              (the rest is not known: it was last seen at event 19, and may have changed since)
            *#1   rounded at /home/ada/orders/orders.c:32
            ->    32 | double rounded(const struct order *order, int discount) { return (long)(price(order, discount) * 100) / 100.0; }
            order = <its frame could not be unwound>
            *#2   somewhere in settle in orders.hindsight/modules/000000/orders
            Thread 28553 (orders) at event 56, entry of price: price at /home/ada/orders/orders.c:25
            ->    25 | double price(const struct order *order, int discount) {
            *#0   price (order=0x7f0be40011a0, discount=1) at /home/ada/orders/orders.c:25
             #1   rounded (order=<its frame could not be unwound>, discount=<its frame could not be unwound>) at /home/ada/orders/orders.c:32
                   (calls that were not recorded may lie between)
             #2   somewhere in settle in orders.hindsight/modules/000000/orders
             #3   evening (last=0x55a5866573d0 <stale: as of event 54>) at /home/ada/orders/orders.c:57
             #4   0x7f0be8eee1f5 ()
              (the rest is not known: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2))
            Thread 28464
            *#0   somewhere in main in orders.hindsight/modules/000000/orders
             #1   0x7f0be8e8c24a ()
              (the rest is not known: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2))
            Thread 28553
            *#0   price (order=0x7f0be40011a0, discount=1) at /home/ada/orders/orders.c:25
             #1   rounded (order=<its frame could not be unwound>, discount=<its frame could not be unwound>) at /home/ada/orders/orders.c:32
                   (calls that were not recorded may lie between)
             #2   somewhere in settle in orders.hindsight/modules/000000/orders
             #3   evening (last=0x55a5866573d0 <stale: as of event 54>) at /home/ada/orders/orders.c:57
             #4   0x7f0be8eee1f5 ()
              (the rest is not known: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2))
            --- stderr
            error: no variable "discount" here
            help: where in settle the thread was at this event is not known, and so its variables are not: step, or step back
              at --cmd 6: print discount (exit code 1)
            --- exit code 1
        "#]],
    );
}

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
            Thread 28553 (orders) at event 63, thread_exit: not known where
             Register | Value                           | Symbol
            ----------+---------------------------------+--------
             rip      | <unknown: the thread has ended> | 
            Thread 28553 (orders) at event 69, process_exit: not known where
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
            Thread 28464 (orders) at event 3, module_load: /usr/lib/orders/ld-linux-x86-64.so.2: not known where
            Thread 28464 (orders) at event 5, snapshot: not known where
            0x000055a578742070  00 00 00 00                                      ....
            Thread 28464 (orders) at event 28, return from settle: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            0x000055a578742070  00 00 00 00 00 00 00 00                          ........
            (stale: as of event 18; it may have changed since)
            Thread 28464 (orders) at event 29, snapshot: somewhere in main
            0x000055a578742070  04 00 00 00 00 00 00 00                          ........
            Thread 28464 (orders) at event 30, pause: step in main at /home/ada/orders/orders.c:70: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            0x000055a578742070  04 00 00 00 00 00 00 00                          ........
            Thread 28464 (orders) at event 31, resume: next: somewhere in main
            0x000055a578742070  04 00 00 00 00 00 00 00                          ........
            (stale: as of event 29; it may have changed since)
            0x000055a578740008  41 64 61 27 73 00                                Ada's.
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
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
            Thread 28464 (orders) at event 3, module_load: /usr/lib/orders/ld-linux-x86-64.so.2: not known where
            sold = <unknown: not captured>
            Thread 28464 (orders) at event 5, snapshot: not known where
            sold = 0
            Thread 28464 (orders) at event 28, return from settle: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            sold = 0 <stale: as of event 18>
            Thread 28464 (orders) at event 29, snapshot: somewhere in main
            sold = 4
            Thread 28464 (orders) at event 31, resume: next: somewhere in main
            sold = 4 <stale: as of event 29>
            Thread 28464 (orders) at event 17, entry of settle: settle at /home/ada/orders/orders.c:34
            ->    34 | int settle(struct order *order) {
            order = 0x55a5866573d0
            *order = {id = 0, pieces = 0, each = 0, customer = 0x0} <stale: as of event 5>
            *(struct order *)&takings = {id = 0, pieces = 0, each = 0, customer = 0x0} <stale: as of event 5>
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
             Event | Thread | Value | Place
            -------+--------+-------+--------
                 4 |  28464 | 0     | 
                29 |  28464 | 17    | main
                65 |  28464 | 27.25 | settle
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
             Event | Thread | Value | Place
            -------+--------+-------+----------------------------------------
                19 |  28464 | 2     | settle at /home/ada/orders/orders.c:36
                20 |  28464 | 4     | settle at /home/ada/orders/orders.c:36
                66 |  28464 | 9     | settle at /home/ada/orders/orders.c:36
            order->pieces is 2 since it was first seen, at event 19 (settle at /home/ada/orders/orders.c:36).
            Thread 28464 (orders) at event 20, write: order->pieces: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            order->pieces became 4 between event 19 (settle at /home/ada/orders/orders.c:36) and event 20 (settle at /home/ada/orders/orders.c:36).
            Thread 28464 (orders) at event 44, pause: signal 2 in __pthread_kill_implementation at ./nptl/nptl/pthread_kill.c:44: 0x7f0be8eefeec
            sold became 4 between event 20 (settle at /home/ada/orders/orders.c:36) and event 29 (main).
            Thread 28464 (orders) at event 66, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            sold became 46 between event 44 and event 65 (settle).
            Thread 28464 (orders) at event 3, module_load: /usr/lib/orders/ld-linux-x86-64.so.2: not known where
            The recording shows no value of sold up to here.
            The recording shows no value of *(int *)16: it is known at no stop, at no copy of memory, at no capture, and at no entry of this function.
            The recording shows no value of *(int *)16 up to here.
        "#]],
    );
}

#[test]
fn moves_go_forwards_and_back() {
    check(
        &[
            "goto 12",
            "step",
            "step 2",
            "step back",
            "step back 2",
            "next",
            "next 3",
            "next back",
            "next back 2",
            "goto 17",
            "finish",
            "reverse-finish",
            "reverse-finish",
            "goto 32",
            "next",
            "goto 35",
            "finish",
            "finish back",
            "goto 22",
            "next",
            "back",
            "rn",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 12, entry of main: main at /home/ada/orders/orders.c:65
            ->    65 | int main(void) {
            Thread 28464 (orders) at event 13, entry of ordered: ordered at /home/ada/orders/orders.c:49
            ->    49 | struct order *ordered(int id, int pieces, double each, const char *customer) {
            Thread 28464 (orders) at event 15, entry of ordered: ordered at /home/ada/orders/orders.c:49
            ->    49 | struct order *ordered(int id, int pieces, double each, const char *customer) {
            Thread 28464 (orders) at event 14, return from ordered: main at /home/ada/orders/orders.c:67
            ->    67 |   struct order *first = ordered(1, counts[0], 4.5, "Ada");
            Thread 28464 (orders) at event 12, entry of main: main at /home/ada/orders/orders.c:65
            ->    65 | int main(void) {
            Thread 28464 (orders) at event 14, return from ordered: main at /home/ada/orders/orders.c:67
            ->    67 |   struct order *first = ordered(1, counts[0], 4.5, "Ada");
            Thread 28464 (orders) at event 30, pause: step in main at /home/ada/orders/orders.c:70: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            Thread 28464 (orders) at event 28, return from settle: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            Thread 28464 (orders) at event 14, return from ordered: main at /home/ada/orders/orders.c:67
            ->    67 |   struct order *first = ordered(1, counts[0], 4.5, "Ada");
            Thread 28464 (orders) at event 17, entry of settle: settle at /home/ada/orders/orders.c:34
            ->    34 | int settle(struct order *order) {
            Thread 28464 (orders) at event 28, return from settle: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            Thread 28464 (orders) at event 12, entry of main: main at /home/ada/orders/orders.c:65
            ->    65 | int main(void) {
            Thread 28464 (orders) at event 32, entry of settle: settle at /home/ada/orders/orders.c:34
            ->    34 | int settle(struct order *order) {
            Thread 28464 (orders) at event 34, price was left by an exception or longjmp: somewhere in settle
            Thread 28464 (orders) at event 35, entry of say: say at /home/ada/orders/orders.c:23
            ->    23 | static void say(const char *text) { (void)!write(1, text, strlen(text)); }
            Thread 28464 (orders) at event 37, return from say: settle at /home/ada/orders/orders.c:39
            ->    39 |     return 0;
            Thread 28464 (orders) at event 32, entry of settle: settle at /home/ada/orders/orders.c:34
            ->    34 | int settle(struct order *order) {
            Thread 28464 (orders) at event 22, resume: finish 0: somewhere in settle
            Thread 28464 (orders) at event 24, return from price: rounded at /home/ada/orders/orders.c:32
            ->    32 | double rounded(const struct order *order, int discount) { return (long)(price(order, discount) * 100) / 100.0; }
            Thread 28464 (orders) at event 23, entry of price: price at /home/ada/orders/orders.c:25
            ->    25 | double price(const struct order *order, int discount) {
            Thread 28464 (orders) at event 22, resume: finish 0: somewhere in settle
            --- stderr
            error: thread 28464 is in no recorded call here
              at --cmd 13: reverse-finish (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn runs_go_from_stop_to_stop() {
    check(
        &[
            "continue",
            "continue",
            "continue",
            "reverse-continue",
            "goto 48",
            "continue",
            "continue",
            "continue back",
            "break settle",
            "break orders.c:25",
            "break",
            "goto 60",
            "continue",
            "delete 2",
            "goto 31",
            "continue",
            "delete",
            "break",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 6, pause: entry in _start: _start
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 30, pause: step in main at /home/ada/orders/orders.c:70: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 48, return from closing: 0x7f0be8ea1050
            Thread 28553 (orders) at event 54, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 66, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28553 (orders) at event 54, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Breakpoint 1: settle (1 function)
            Breakpoint 2: orders.c:25 (1 function)
             ID | Location    | Functions
            ----+-------------+-----------
              1 | settle      |         1
              2 | orders.c:25 |         1
            Thread 28553 (orders) at event 60, return from say: settle at /home/ada/orders/orders.c:46
            ->    46 |   return order->pieces;
            Thread 28464 (orders) at event 64, entry of settle: settle at /home/ada/orders/orders.c:34
            ->    34 | int settle(struct order *order) {
            1 breakpoint removed
            Thread 28464 (orders) at event 31, resume: next: somewhere in main
            Thread 28464 (orders) at event 32, entry of settle: settle at /home/ada/orders/orders.c:34
            ->    34 | int settle(struct order *order) {
            1 breakpoint removed
            There are no breakpoints; runs through time stop where the recording did.
        "#]],
    );
}

#[test]
fn runs_go_to_calls_of_which_a_condition_is_true() {
    check(
        &[
            "continue where function = 'price'",
            "continue where function = 'price' AND unwound",
            "continue where dur_ns > 1e18",
            "reverse-continue where ret = 4",
            "continue back where nothing = 1",
            "goto 10",
            "continue where a0 = 2 and function = \"ordered\"",
            "continue where function = 'ordered' and a0 = 2",
            "continue where",
            "continue where ret = ",
            "reverse-continue where function = 'say'",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 23, entry of price: price at /home/ada/orders/orders.c:25
            ->    25 | double price(const struct order *order, int discount) {
            Thread 28464 (orders) at event 33, entry of price: price at /home/ada/orders/orders.c:25
            ->    25 | double price(const struct order *order, int discount) {
            Thread 28464 (orders) at event 17, entry of settle: settle at /home/ada/orders/orders.c:34
            ->    34 | int settle(struct order *order) {
            Thread 28464 (orders) at event 10, resume: continue: not known where
            Thread 28464 (orders) at event 15, entry of ordered: ordered at /home/ada/orders/orders.c:49
            ->    49 | struct order *ordered(int id, int pieces, double each, const char *customer) {
            --- stderr
            error: no call with start_seq > 33 fulfils: dur_ns > 1e18
            help: the condition is one over the columns of calls: \d calls in hindsight sql
              at --cmd 3: continue where dur_ns > 1e18 (exit code 2)
            error: there is no column "nothing"
              1 | SELECT max(start_seq) FROM calls WHERE (nothing = 1) AND start_seq < 17
                |                                         ^^^^^^^
              at --cmd 5: continue back where nothing = 1 (exit code 2)
            error: there is no column "ordered"
              1 | SELECT min(start_seq) FROM calls WHERE (a0 = 2 and function = "ordered") AND start_seq > 10
                |                                                               ^^^^^^^^^
            help: text is written in single quotes: 'ordered'
              at --cmd 7: continue where a0 = 2 and function = "ordered" (exit code 2)
            error: continue where takes a condition
            help: write: continue where dur_ns > 1000000
              at --cmd 9: continue where (exit code 2)
            error: expected an expression, found )
              1 | SELECT min(start_seq) FROM calls WHERE (ret =) AND start_seq > 15
                |                                              ^
              at --cmd 10: continue where ret = (exit code 2)
            error: no call with start_seq < 15 fulfils: function = 'say'
            help: the condition is one over the columns of calls: \d calls in hindsight sql
              at --cmd 11: reverse-continue where function = 'say' (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn places_in_time_are_found_in_every_form() {
    check(
        &[
            "goto 42",
            "goto first",
            "goto last",
            "goto 50%",
            "goto 0.2s",
            "goto 400ms",
            "goto @the first is settled",
            "goto @the",
            "goto output:2",
            "goto output:3",
            "goto output:4",
            "goto start",
            "goto end",
            "goto 0x10",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 42, exception: somewhere in main
            Thread 28464 (orders) at event 0, process_start: /home/ada/orders/./orders: not known where
            Thread 28464 (orders) at event 69, process_exit: not known where
            Thread 28464 (orders) at event 35, entry of say: say at /home/ada/orders/orders.c:23
            ->    23 | static void say(const char *text) { (void)!write(1, text, strlen(text)); }
            Thread 28464 (orders) at event 6, pause: entry in _start: _start
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 21, note: the first is settled: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 21, note: the first is settled: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 36, stdout "an order without pieces\n": somewhere in say
            Thread 28553 (orders) at event 59, stdout "order 3 for Zoe: 10.25\n": somewhere in say
            Thread 28553 (orders) at event 0, process_start: /home/ada/orders/./orders: not known where
            Thread 28553 (orders) at event 69, process_exit: not known where
            --- stderr
            error: there is no line 4 of output
            help: the program wrote 3
              at --cmd 11: goto output:4 (exit code 2)
            error: "0x10" is no place in time
            help: write an event's number, first, last, 50%, 1.5s, @NOTE or output:LINE
              at --cmd 14: goto 0x10 (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn calls_are_a_tree() {
    check(
        &[
            "goto 58",
            "calls",
            "goto 33",
            "calls",
            "goto 12",
            "calls",
            "calls --limit 2",
            "calls --limit 0",
            "goto 6",
            "calls",
            "goto 11",
            "calls",
            "goto 69",
            "calls",
        ],
        expect![[r#"
            Thread 28553 (orders) at event 58, entry of say: say at /home/ada/orders/orders.c:23
            ->    23 | static void say(const char *text) { (void)!write(1, text, strlen(text)); }
            * evening  50..62  19.4 ms
            *   settle  53..61  19.4 ms
            *     say  58..60  31.77 us
            Thread 28464 (orders) at event 33, entry of price: price at /home/ada/orders/orders.c:25
            ->    25 | double price(const struct order *order, int discount) {
            * main  12..68  0.29 s  (unwound)
            *   settle  32..38  95.18 us
            *     price  33..34  79.55 us  (unwound)
            Thread 28464 (orders) at event 12, entry of main: main at /home/ada/orders/orders.c:65
            ->    65 | int main(void) {
            * main  12..68  0.29 s  (unwound)
                ordered  13..14  3.75 us
                ordered  15..16  64 ns
                settle  17..28  0.18 s
                settle  32..38  95.18 us
                closing  46..48  20.80 us
                settle  64..67  21.7 ms  (unwound)
            * main  12..68  0.29 s  (unwound)
                ordered  13..14  3.75 us
                ordered  15..16  64 ns
              (more calls follow: --limit)
            * main  12..68  0.29 s  (unwound)
              (more calls follow: --limit)
            Thread 28464 (orders) at event 6, pause: entry in _start: _start
              main  12..68  0.29 s  (unwound)
            Thread 28464 (orders) at event 11, thread_start: orders: not known where
              main  12..68  0.29 s  (unwound)
            Thread 28464 (orders) at event 69, process_exit: not known where
              main  12..68  0.29 s  (unwound)
        "#]],
    );
}

#[test]
fn output_is_shown_up_to_here() {
    check(
        &[
            "goto 25",
            "output",
            "goto 36",
            "output",
            "goto last",
            "output",
            "output --tail 1",
            "output --tail 0",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 25, entry of say: say at /home/ada/orders/orders.c:23
            ->    23 | static void say(const char *text) { (void)!write(1, text, strlen(text)); }
            The program had written nothing up to here.
            Thread 28464 (orders) at event 36, stdout "an order without pieces\n": somewhere in say
             Line | Event | Stream | Text
            ------+-------+--------+-------------------------
                1 |    26 | stdout | order 1 for Ada: 17.00
                2 |    36 | stdout | an order without pieces
            Thread 28464 (orders) at event 69, process_exit: not known where
             Line | Event | Stream | Text
            ------+-------+--------+-------------------------
                1 |    26 | stdout | order 1 for Ada: 17.00
                2 |    36 | stdout | an order without pieces
                3 |    59 | stdout | order 3 for Zoe: 10.25
             Line | Event | Stream | Text
            ------+-------+--------+------------------------
                3 |    59 | stdout | order 3 for Zoe: 10.25
            (earlier lines are not shown: --tail N)
            (earlier lines are not shown: --tail N)
        "#]],
    );
}

#[test]
fn threads_are_shown_and_chosen() {
    check(
        &[
            "goto 10",
            "threads",
            "goto 58",
            "threads",
            "thread",
            "thread 28464",
            "backtrace",
            "where",
            "registers rip",
            "thread 28553",
            "where --context 0",
            "goto 64",
            "threads",
            "thread 28553",
            "backtrace",
            "registers rip",
            "locals",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 10, resume: continue: not known where
                  ID | Name   | State   | Location
            ---------+--------+---------+-----------------
             * 28464 | orders | running | not known where
            Thread 28553 (orders) at event 58, entry of say: say at /home/ada/orders/orders.c:23
            ->    23 | static void say(const char *text) { (void)!write(1, text, strlen(text)); }
                  ID | Name   | State   | Location
            ---------+--------+---------+-------------------------------------
               28464 | orders | running | somewhere in main
             * 28553 | orders | running | say at /home/ada/orders/orders.c:23
                  ID | Name   | State   | Location
            ---------+--------+---------+-------------------------------------
             * 28553 | orders | running | say at /home/ada/orders/orders.c:23
                  ID | Name   | State   | Location
            ---------+--------+---------+-------------------
             * 28464 | orders | running | somewhere in main
            *#0   somewhere in main in orders.hindsight/modules/000000/orders
             #1   0x7f0be8e8c24a ()
              (the rest is not known: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2))
            Thread 28464 (orders) at event 58, entry of say (of thread 28553): somewhere in main

            No source: no line is known here; look at the code: hindsight disassemble

            No variables: where in main the thread was at this event is not known
             Register | Value                                  | Symbol
            ----------+----------------------------------------+--------
             rip      | 0x7f0be8ea1050 <stale: as of event 48> | 
                  ID | Name   | State   | Location
            ---------+--------+---------+-------------------------------------
             * 28553 | orders | running | say at /home/ada/orders/orders.c:23
            Thread 28553 (orders) at event 58, entry of say: say at /home/ada/orders/orders.c:23

            ->    23 | static void say(const char *text) { (void)!write(1, text, strlen(text)); }

            Locals:
             Name | Type         | Value
            ------+--------------+------------------------------------------------------------------------------------------
             text | const char * | 0x7f0be8e4ed90 "\270\376\377\377\377\377\377\377\331\363sx\245U" <stale: as of event 54>
            Thread 28464 (orders) at event 64, entry of settle: settle at /home/ada/orders/orders.c:34
            ->    34 | int settle(struct order *order) {
                  ID | Name   | State   | Location
            ---------+--------+---------+----------------------------------------
             * 28464 | orders | running | settle at /home/ada/orders/orders.c:34
               28553 | orders | ended   | 
                  ID | Name   | State | Location
            ---------+--------+-------+----------
             * 28553 | orders | ended | 
              (the rest is not known: unknown: the thread has ended)
             Register | Value                           | Symbol
            ----------+---------------------------------+--------
             rip      | <unknown: the thread has ended> | 
            --- stderr
            error: no frame of thread 28553 is known at event 64: unknown: the thread has ended
            help: go to an event that shows one: next, or continue
              at --cmd 17: locals (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn notes_are_those_of_the_session_and_later_ones() {
    check(
        &[
            "notes",
            "goto 34",
            "note refused",
            "notes",
            "goto 0",
            "goto @ref",
            "SELECT seq, text FROM notes ORDER BY seq",
        ],
        expect![[r#"
             Event | Note
            -------+----------------------
                21 | the first is settled
            Thread 28464 (orders) at event 34, price was left by an exception or longjmp: somewhere in settle
            Note at event 34: refused
             Event | Note
            -------+----------------------
                21 | the first is settled
                34 | refused
            Thread 28464 (orders) at event 0, process_start: /home/ada/orders/./orders: not known where
            Thread 28464 (orders) at event 34, price was left by an exception or longjmp: somewhere in settle
             seq | text
            -----+----------------------
              21 | the first is settled
              34 | refused
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
            *order = {id = 0, pieces = 0, each = 0, customer = 0x0} <stale: as of event 4>
            sold = 0
            Thread 28574 (orders) at event 13, return from price: rounded at /home/ada/orders/orders.c:32
            ->    32 | double rounded(const struct order *order, int discount) { return (long)(price(order, discount) * 100) / 100.0; }
             Register | Value                            | Symbol
            ----------+----------------------------------+--------
             rax      | 0x4022000000000000               | 
             rbx      | 0x7ffee702be28                   | 
             xmm0     | 0000000000002240???????????????? | 
            sold = 0
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
            customer = 0x55801616e046 "Bob"
            Thread 28574 (orders) at event 26, return from closing: 0x7fb68d09c050
            sold = 21
             Event | Thread | Value | Place
            -------+--------+-------+-------------------------------------
                 4 |  28574 | 0     | 
                14 |  28574 | 2     | say at /home/ada/orders/orders.c:23
                26 |  28574 | 21    | 
                34 |  28649 | 26    | say at /home/ada/orders/orders.c:23
                43 |  28574 | 33    | say at /home/ada/orders/orders.c:23
            Thread 28574 (orders) at event 20, price was left by an exception or longjmp: somewhere in settle
             Register | Value                                  | Symbol
            ----------+----------------------------------------+--------
             rbx      | 0x7ffee702be28 <stale: as of event 19> | 
            Thread 28574 (orders) at event 20, price was left by an exception or longjmp: somewhere in settle

            No source: no line is known here; look at the code: hindsight disassemble

            No variables: where in settle the thread was at this event is not known
        "#]],
    );
}

#[test]
fn replies_have_json() {
    let folder = Folder::with_frozen(&["orders"]);
    let run = |lines: &[&str]| {
        let mut args = vec!["repl", "orders", "--json"];
        for line in lines {
            args.extend(["--cmd", line]);
        }
        folder.transcript(&args)
    };
    expect![[r#"
        {
          "id": 1,
          "result": {
            "recording": "orders.hindsight",
            "session": 0,
            "status": "stopped",
            "stop": {
              "address": "0x55a57873f519",
              "column": 3,
              "file": "/home/ada/orders/orders.c",
              "function": "main",
              "line": 70,
              "number": 28,
              "reason": "event",
              "seq": 28,
              "source_line": "  settle(second);",
              "thread": 28464,
              "thread_name": "orders",
              "what": "return from settle"
            },
            "timed_out": false
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "address": "0x55a578742070",
            "expression": "sold",
            "stale_since": 18,
            "type": "int",
            "value": "0 <stale: as of event 18>"
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "frame": 0,
            "registers": [
              {
                "name": "rax",
                "value": "0x4"
              },
              {
                "name": "rbx",
                "stale_since": 19,
                "value": "0x7fff2dc3de18"
              }
            ]
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "address": "0x55a578742070",
            "bytes": "00000000",
            "stale_since": 18
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "calls": [
              {
                "around": true,
                "depth": 0,
                "dur_ns": 288386274,
                "end_seq": 68,
                "function": "main",
                "start_seq": 12,
                "unwound": true
              },
              {
                "around": false,
                "depth": 1,
                "dur_ns": 3746,
                "end_seq": 14,
                "function": "ordered",
                "start_seq": 13,
                "unwound": false
              }
            ],
            "more": true,
            "seq": 28,
            "thread": 28464
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "changes": [
              {
                "seq": 4,
                "thread": 28464,
                "value": "0"
              },
              {
                "function": "main",
                "old": "0",
                "seq": 29,
                "thread": 28464,
                "value": "4"
              },
              {
                "function": "settle",
                "old": "4",
                "seq": 65,
                "thread": 28464,
                "value": "46"
              }
            ],
            "expression": "sold",
            "known_at": 14
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "after": {
              "seq": 4,
              "thread": 28464,
              "value": "0"
            },
            "expression": "sold"
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "lines": [
              {
                "line": 1,
                "seq": 26,
                "stream": "stdout",
                "text": "order 1 for Ada: 17.00"
              }
            ],
            "more": false
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "notes": [
              {
                "seq": 21,
                "text": "the first is settled"
              }
            ]
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "frame": 0,
            "function": "main",
            "variables": [
              {
                "address": "0x7fff2dc3dce4",
                "is_parameter": false,
                "line": 66,
                "name": "counts",
                "shadowed": false,
                "stale_since": 19,
                "type": "int [3]",
                "value": "{2, 0, 1} <stale: as of event 19>"
              },
              {
                "address": "0x7fff2dc3dcf8",
                "is_parameter": false,
                "line": 67,
                "name": "first",
                "shadowed": false,
                "stale_since": 19,
                "type": "struct order *",
                "value": "0x55a5866573d0 <stale: as of event 19>"
              },
              {
                "address": "0x7fff2dc3dcf0",
                "is_parameter": false,
                "line": 68,
                "name": "second",
                "shadowed": false,
                "stale_since": 19,
                "type": "struct order *",
                "value": "0x55a5866573f0 <stale: as of event 19>"
              },
              {
                "address": "0x7fff2dc3dcd8",
                "is_parameter": false,
                "line": 73,
                "name": "thread",
                "shadowed": false,
                "stale_since": 19,
                "type": "pthread_t",
                "value": "140733961199128 <stale: as of event 19>"
              }
            ]
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "threads": [
              {
                "end": "it was last seen at event 19, and may have changed since",
                "frames": [
                  {
                    "address": "0x55a57873f519",
                    "args": [],
                    "column": 3,
                    "file": "/home/ada/orders/orders.c",
                    "function": "main",
                    "index": 0,
                    "inlined": false,
                    "is_signal": false,
                    "is_tail_call": false,
                    "line": 70,
                    "module": "orders.hindsight/modules/000000/orders",
                    "offset": 117,
                    "selected": true
                  }
                ],
                "more": false,
                "thread": 28464
              }
            ]
          },
          "success": true
        }
    "#]]
    .assert_eq(&run(&[
        "goto 28",
        "print sold",
        "registers rax rbx",
        "memory read &sold --count 4",
        "calls --limit 1",
        "history sold",
        "last-write sold",
        "output --tail 1",
        "notes",
        "locals",
        "backtrace --limit 1",
    ]));
}
