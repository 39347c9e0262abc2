//! The contents of the session: calls, output, threads and notes.

use expect_test::expect;

use super::check;

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
            Thread 28464 (orders) at event 11, thread_start: orders: location unknown
              main  12..68  0.29 s  (unwound)
            Thread 28464 (orders) at event 69, the program was killed by SIGKILL: location unknown
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
            Thread 28464 (orders) at event 69, the program was killed by SIGKILL: location unknown
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
            Thread 28464 (orders) at event 10, resume: continue: location unknown
                  ID | Name   | State   | Location
            ---------+--------+---------+------------------
             * 28464 | orders | running | location unknown
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

            No source: no line is known here
            (look at the code: hindsight disassemble)

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
            Thread 28464 (orders) at event 0, process_start: /home/ada/orders/./orders: location unknown
            Thread 28464 (orders) at event 34, price was left by an exception or longjmp: somewhere in settle
             seq | text
            -----+----------------------
              21 | the first is settled
              34 | refused
        "#]],
    );
}
