//! The position of a thread: sources, variables, expressions, machine code and frames.

use expect_test::expect;

use super::check;

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
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36

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
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36

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
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            $1 = 0x55a5866573d0
            $2 = {id = 1, pieces = 2, each = 4.5, customer = 0x55a578740042 "Ada"}
            $3 = 0x55a578740042 "Ada"
            $4 = 0x2
            $5 = (double) 9
            $6 = "Ada's"
            $7 = 1
            $8 = 0x55a57873f2df <settle+12>
            $9 = true
            $10 = ""
            *#1   main at /home/ada/orders/orders.c:69
            ->    69 |   settle(first);
            $11 = 0
            $12 = 3
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
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
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
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
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
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
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
             #1   rounded (order=<unknown>, discount=<unknown>) at /home/ada/orders/orders.c:32
                   (calls that were not recorded may lie between)
             #2   somewhere in settle (order@entry=0x55a5866573d0) in orders.hindsight/modules/000000/orders
             #3   main () at /home/ada/orders/orders.c:69
             #4   0x7f0be8e8c24a ()
              (the rest is not known: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2))
            (why a value is unknown: frame 1, then args)
            *#1   rounded at /home/ada/orders/orders.c:32
            ->    32 | double rounded(const struct order *order, int discount) { return (long)(price(order, discount) * 100) / 100.0; }
            order = <its frame could not be unwound>
            *#2   somewhere in settle in orders.hindsight/modules/000000/orders
            Thread 28553 (orders) at event 56, entry of price: price at /home/ada/orders/orders.c:25
            ->    25 | double price(const struct order *order, int discount) {
            *#0   price (order=0x7f0be40011a0, discount=1) at /home/ada/orders/orders.c:25
             #1   rounded (order=<unknown>, discount=<unknown>) at /home/ada/orders/orders.c:32
                   (calls that were not recorded may lie between)
             #2   somewhere in settle (order@entry=0x7f0be40011a0) in orders.hindsight/modules/000000/orders
             #3   evening (last=0x55a5866573d0 <stale: as of event 54>) at /home/ada/orders/orders.c:57
             #4   0x7f0be8eee1f5 ()
              (the rest is not known: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2))
            (why a value is unknown: frame 1, then args)
            Thread 28464
            *#0   somewhere in main in orders.hindsight/modules/000000/orders
             #1   0x7f0be8e8c24a ()
              (the rest is not known: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2))
            Thread 28553
            *#0   price (order=0x7f0be40011a0, discount=1) at /home/ada/orders/orders.c:25
             #1   rounded (order=<unknown>, discount=<unknown>) at /home/ada/orders/orders.c:32
                   (calls that were not recorded may lie between)
             #2   somewhere in settle (order@entry=0x7f0be40011a0) in orders.hindsight/modules/000000/orders
             #3   evening (last=0x55a5866573d0 <stale: as of event 54>) at /home/ada/orders/orders.c:57
             #4   0x7f0be8eee1f5 ()
              (the rest is not known: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2))
            (why a value is unknown: frame 1, then args)
            --- stderr
            error: no variable "discount" here
            help: where in settle the thread was at this event is not known, and so its variables are not: step, or step back
              at --cmd 6: print discount (exit code 1)
            --- exit code 1
        "#]],
    );
}

#[test]
fn types_are_shown_with_their_members() {
    check(
        &[
            "goto 19",
            "ptype order",
            "ptype *order",
            "ptype struct order",
            "ptype sold + 1",
            "ptype line",
            "ptype nobody",
            "ptype",
            "help ptype",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            type = struct order {
                int id;
                int pieces;
                double each;
                const char *customer;
            } *
            type = struct order {
                int id;
                int pieces;
                double each;
                const char *customer;
            }
            type = struct order {
                int id;
                int pieces;
                double each;
                const char *customer;
            }
            type = int
            type = char [64]
            Show the type of an expression, or a type, with its members

            Usage: ptype [OPTIONS] <EXPRESSION|TYPE>...

            Arguments:
              <EXPRESSION|TYPE>...
                      An expression, as for print, or a type: struct order, std::string

            Options:
                  --offsets
                      With the offset and size of each member in bytes, and holes

                  --json
                      Print the reply as JSON

              -h, --help
                      Print help

            --- stderr
            error: no variable "nobody" here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 7: ptype nobody (exit code 1)
            error: the following required arguments were not provided: <EXPRESSION|TYPE>...
            help: write: ptype <EXPRESSION|TYPE>...
              at --cmd 8: ptype (exit code 2)
            --- exit code 2
        "#]],
    );
}
