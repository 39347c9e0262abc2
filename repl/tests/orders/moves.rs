//! From one event to another: steps, runs, conditions and places in time.

use expect_test::expect;

use super::check;

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
            Thread 28464 (orders) at event 30, pause: step: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            Thread 28464 (orders) at event 28, return from settle: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            Thread 28464 (orders) at event 14, return from ordered: main at /home/ada/orders/orders.c:67
            ->    67 |   struct order *first = ordered(1, counts[0], 4.5, "Ada");
            Thread 28464 (orders) at event 17, entry of settle: settle at /home/ada/orders/orders.c:34
            ->    34 | int settle(struct order *order) {
            Thread 28464 (orders) at event 28, return from settle: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            settle returned (int) 4 ($1)
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
            "break list",
            "goto 60",
            "continue",
            "delete 2",
            "goto 31",
            "continue",
            "delete",
            "break list",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 6, pause: entry in _start: _start
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 30, pause: step: main at /home/ada/orders/orders.c:70
            ->    70 |   settle(second);
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 48, return from closing: 0x7f0be8ea1050
            Thread 28553 (orders) at event 54, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 66, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28553 (orders) at event 54, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Breakpoint 1: settle (1 function)
            Breakpoint 2: orders.c:25 (1 function)
             ID | Location    | Hits | Functions
            ----+-------------+------+-----------
              1 | settle      |    0 |         1
              2 | orders.c:25 |    0 |         1
            Thread 28553 (orders) at event 60, return from say: settle at /home/ada/orders/orders.c:46
            ->    46 |   return order->pieces;
            Thread 28464 (orders) at breakpoint 1, at event 64, entry of settle: settle at /home/ada/orders/orders.c:34
            ->    34 | int settle(struct order *order) {
            1 breakpoint removed
            Thread 28464 (orders) at event 31, resume: next: somewhere in main
            Thread 28464 (orders) at breakpoint 1, at event 32, entry of settle: settle at /home/ada/orders/orders.c:34
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
            "continue where kind = 'stdout'",
            "reverse-continue where kind = 'pause' and seq < 20",
            "continue where kind = 'fork'",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 23, entry of price: price at /home/ada/orders/orders.c:25
            ->    25 | double price(const struct order *order, int discount) {
            Thread 28464 (orders) at event 33, entry of price: price at /home/ada/orders/orders.c:25
            ->    25 | double price(const struct order *order, int discount) {
            Thread 28464 (orders) at event 17, entry of settle: settle at /home/ada/orders/orders.c:34
            ->    34 | int settle(struct order *order) {
            Thread 28464 (orders) at event 10, resume: continue: location unknown
            Thread 28464 (orders) at event 15, entry of ordered: ordered at /home/ada/orders/orders.c:49
            ->    49 | struct order *ordered(int id, int pieces, double each, const char *customer) {
            Thread 28464 (orders) at event 26, stdout "order 1 for Ada: 17.00\n": somewhere in say
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            --- stderr
            error: no call with start_seq > 33 fulfils: dur_ns > 1e18
            help: the condition is one over the columns of calls or of events: \d calls or \d events in hindsight sql
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
            help: the condition is one over the columns of calls or of events: \d calls or \d events in hindsight sql
              at --cmd 11: reverse-continue where function = 'say' (exit code 2)
            error: no event with seq > 19 fulfils: kind = 'fork'
            help: the condition is one over the columns of calls or of events: \d calls or \d events in hindsight sql
              at --cmd 14: continue where kind = 'fork' (exit code 2)
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
            Thread 28464 (orders) at event 0, process_start: /home/ada/orders/./orders: location unknown
            Thread 28464 (orders) at event 69, the program was killed by SIGKILL: location unknown
            Thread 28464 (orders) at event 35, entry of say: say at /home/ada/orders/orders.c:23
            ->    23 | static void say(const char *text) { (void)!write(1, text, strlen(text)); }
            Thread 28464 (orders) at event 6, pause: entry in _start: _start
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 21, note: the first is settled: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 21, note: the first is settled: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            Thread 28464 (orders) at event 36, stdout "an order without pieces\n": somewhere in say
            Thread 28553 (orders) at event 59, stdout "order 3 for Zoe: 10.25\n": somewhere in say
            Thread 28553 (orders) at event 0, process_start: /home/ada/orders/./orders: location unknown
            Thread 28553 (orders) at event 69, the program was killed by SIGKILL: location unknown
            --- stderr
            error: there is no line 4 of output
            help: the program wrote 3
              at --cmd 11: goto output:4 (exit code 2)
            error: "0x10" is not a place in time
            help: write an event's number, first, last, crash, 50%, 1.5s, @NOTE, output:LINE or EVENT+INSTRUCTIONS
              at --cmd 14: goto 0x10 (exit code 2)
            --- exit code 2
        "#]],
    );
}
