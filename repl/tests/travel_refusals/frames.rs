//! Frames, modules and sources of which nothing is known.

use expect_test::expect;

use super::check;

#[test]
fn frames_have_a_first_and_a_last() {
    check(
        "orders",
        &[
            "goto 19",
            "down",
            "frame 3",
            "up 2",
            "up",
            "frame x",
            "goto 6",
            "frame 1",
            "up",
            "goto 3",
            "frame",
            "up",
            "backtrace",
            "where",
            "source",
            "source 12",
            "locals",
            "args",
            "disassemble",
            "print $rip",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            *#2   0x7f0be8e8c24a
            Thread 28464 (orders) at event 6, pause: entry in _start: _start
            Thread 28464 (orders) at event 3, module_load: /usr/lib/orders/ld-linux-x86-64.so.2: location unknown
              (the rest is not known: no recorded call is open, and registers are not known)
            $rip = <unknown: not captured>
            --- stderr
            error: this is the innermost frame
              at --cmd 2: down (exit code 2)
            error: there is no frame 3
            help: frames are 0 to 2
              at --cmd 3: frame 3 (exit code 2)
            error: this is the outermost frame
              at --cmd 5: up (exit code 2)
            error: invalid value 'x' for '[N]': write a number
              at --cmd 6: frame x (exit code 2)
            error: there is no frame 1
            help: frame 0 is the only one
              at --cmd 8: frame 1 (exit code 2)
            error: this is the outermost frame
              at --cmd 9: up (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 11: frame (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 12: up (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 14: where (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 15: source (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 16: source 12 (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 17: locals (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 18: args (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 19: disassemble (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn frames_of_which_only_the_function_is_known_have_no_variables() {
    check(
        "orders",
        &[
            "goto 26",
            "locals",
            "args",
            "print text",
            "print sold",
            "print 1 +",
            "source 12",
            "registers rbp",
            "up",
            "locals",
            "goto 34",
            "locals",
            "print order",
            "set order 1",
            "history order",
            "watch order",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 26, stdout "order 1 for Ada: 17.00\n": somewhere in say
            $1 = 0 <stale: as of event 18>
             Register | Value                                  | Symbol
            ----------+----------------------------------------+--------
             rbp      | 0x7fff2dc3dcc0 <stale: as of event 19> | 
            *#1   settle at /home/ada/orders/orders.c:45
            ->    45 |   say(line);
             Name     | Type           | Value
            ----------+----------------+------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------
             order    | struct order * | 0x55a5866573d0 <stale: as of event 19>
             line     | char [64]      | "\000\000\000\000\000\000\000\000\331\363sx\245U\000\000\310\035tx\245U\000\000F\000tx\245U\000\000\000\000\000\000\000\000\364?\000\000\000\000\002\000\000\000\300\320sw\245U\000\000F\000tx\245U" <stale: as of event 19>
             discount | int            | 21925 <stale: as of event 19>
             sum      | double         | 6.9015600572187e-310 <stale: as of event 19>
            Thread 28464 (orders) at event 34, price was left by an exception or longjmp: somewhere in settle
            Watch 1: order (everywhere)
            --- stderr
            error: where in say the thread was at this event is not known
            help: go to the next event or the one before: step, or step back
              at --cmd 2: locals (exit code 1)
            error: where in say the thread was at this event is not known
            help: go to the next event or the one before: step, or step back
              at --cmd 3: args (exit code 1)
            error: no variable "text" here
            help: where in say the thread was at this event is not known, and so its variables are not: step, or step back
              at --cmd 4: print text (exit code 1)
            error: the expression "1 +": expected an expression at position 3
              at --cmd 6: print 1 + (exit code 1)
            error: the selected frame has no source file
            help: write the file too: file:line
              at --cmd 7: source 12 (exit code 2)
            error: where in settle the thread was at this event is not known
            help: go to the next event or the one before: step, or step back
              at --cmd 12: locals (exit code 1)
            error: order is a type
            help: to convert to it, write (order)(value)
              at --cmd 13: print order (exit code 1)
            error: set needs a program that runs, and this is a recording
            help: a variable of the session can be set: set $n 3
              at --cmd 14: set order 1 (exit code 1)
            error: order is a type
            help: to convert to it, write (order)(value)
              at --cmd 15: history order (exit code 1)
            --- exit code 1
        "#]],
    );
}

#[test]
fn what_a_missing_module_holds_is_told_with_its_name() {
    check(
        "orders",
        &[
            "goto 44",
            "where",
            "locals",
            "print sold",
            "print errno_of_nobody",
            "memory read $rip --count 4",
            "disassemble",
            "disassemble --count 1",
            "source",
            "backtrace",
            "memory read 0x7f0be8eefeec",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 44, pause: SIGUSR1 in __pthread_kill_implementation at ./nptl/nptl/pthread_kill.c:44: 0x7f0be8eefeec
            Thread 28464 (orders) at event 44, pause: SIGUSR1 in __pthread_kill_implementation at ./nptl/nptl/pthread_kill.c:44: 0x7f0be8eefeec

            No source: no line is known here
            (look at the code: hindsight disassemble)

            No variables are known here.
            $1 = 4
            *#0   0x7f0be8eefeec ()
                   (calls that were not recorded may lie between)
             #1   somewhere in main in orders.hindsight/modules/000000/orders
             #2   0x7f0be8e8c24a ()
              (the rest is not known: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2))
            --- stderr
            error: no variables are known here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 3: locals (exit code 1)
            error: no variable "errno_of_nobody" here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 5: print errno_of_nobody (exit code 1)
            error: memory at 0x7f0be8eefeec cannot be read: unknown: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory
              at --cmd 6: memory read $rip --count 4 (exit code 1)
            error: cannot disassemble at 0x7f0be8eefeec: no function is known at 0x7f0be8eefeec
            help: ask for a number of instructions from an address instead
              at --cmd 7: disassemble (exit code 1)
            error: cannot disassemble at 0x7f0be8eefeec: unknown: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory
              at --cmd 8: disassemble --count 1 (exit code 1)
            error: no line is known at 0x7f0be8eefeec
            help: look at its code: hindsight disassemble
              at --cmd 9: source (exit code 2)
            error: memory at 0x7f0be8eefeec cannot be read: unknown: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory
              at --cmd 11: memory read 0x7f0be8eefeec (exit code 1)
            --- exit code 1
        "#]],
    );
}

#[test]
fn sources_that_are_not_there_are_told() {
    check(
        "orders",
        &[
            "goto 19",
            "source nofile.c:1",
            "source orders.c:9999",
            "source nobody",
            "source --function nobody",
            "source 0x10",
            "break nobody",
            "break orders.c",
            "break nofile.c:3",
            "delete 4",
            "delete x",
            "thread 7",
            "thread x",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            --- stderr
            error: No source file nofile.c in any loaded module
            help: compile it with -g, or wait until its library is loaded; the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 2: source nofile.c:1 (exit code 2)
            error: /home/ada/orders/orders.c has no line 9999: it has 77 lines
            help: ask for a line from 1 to 77
              at --cmd 3: source orders.c:9999 (exit code 2)
            error: no loaded module has a function nobody
            help: write function, file:line or 0xADDRESS
              at --cmd 4: source nobody (exit code 2)
            error: no loaded module has a function nobody
            help: write function, file:line or 0xADDRESS
              at --cmd 5: source --function nobody (exit code 2)
            error: no line is known at 0x10
            help: look at its code: hindsight disassemble
              at --cmd 6: source 0x10 (exit code 2)
            error: no recorded function is called nobody
            help: write a function's name, in which * stands for any text, or file:line; SELECT name FROM functions lists them
              at --cmd 7: break nobody (exit code 2)
            error: no recorded function is called orders.c
            help: write a function's name, in which * stands for any text, or file:line; SELECT name FROM functions lists them
              at --cmd 8: break orders.c (exit code 2)
            error: no recorded function is called nofile.c:3
            help: write a function's name, in which * stands for any text, or file:line; SELECT name FROM functions lists them
              at --cmd 9: break nofile.c:3 (exit code 2)
            error: there is no breakpoint 4
            help: list them with: break list
              at --cmd 10: delete 4 (exit code 2)
            error: "x" is not a number
            help: write list in place of remove to see the numbers, or add remove for a function of that name
              at --cmd 11: delete x (exit code 2)
            error: there is no thread 7
            help: threads: 28464, 28553
              at --cmd 12: thread 7 (exit code 2)
            error: invalid value 'x' for '[ID]': write a number
              at --cmd 13: thread x (exit code 2)
            --- exit code 2
        "#]],
    );
}
