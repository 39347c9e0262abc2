//! The targets of moves, and the forms of places in time.

use expect_test::expect;

use super::check;

#[test]
fn moves_say_where_they_lead() {
    check(
        &[
            "goto first",
            "step",
            "continue",
            "next",
            "continue",
            "step back",
            "reverse-continue",
            "finish",
            "reverse-finish",
            "goto 50%",
            "goto @why is order",
            "goto last",
        ],
        expect![[r#"
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
            Thread 4242 (synth-4242) at event 1, thread_start: synth-4242: location unknown
            Thread 4242 (synth-4242) at event 6, pause: breakpoint 1 in price at /src/shop.c:12: 0x555555555048
            Thread 4242 (synth-4242) at event 7, write: items: 0x555555555048
            Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
            Thread 4242 (synth-4242) at event 8, resume: next: somewhere in price
            Thread 4242 (synth-4242) at event 6, pause: breakpoint 1 in price at /src/shop.c:12: 0x555555555048
            Thread 4242 (synth-4242) at event 12, return from price: 0x401234
            Thread 4242 (synth-4242) at event 14, logpoint: order 1 of Ada: 2.5: 0x555555555048
            Thread 4242 (synth-4242) at event 2, note: why is order 3 free?: location unknown
            Thread 4242 (synth-4242) at event 27, the program was killed by SIGSEGV: location unknown
            --- stderr
            error: thread 4242 is in no recorded call here
              at --cmd 10: reverse-finish (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn runs_stop_at_logpoints_unless_something_is_watched() {
    check(
        &[
            "goto 9",
            "continue",
            "registers rip rsp",
            "backtrace",
            "continue",
            "reverse-continue",
            "reverse-continue",
            "watch $rbx",
            "continue",
            "step 0",
            "step back 0",
            "next 0",
            "next back 0",
        ],
        expect![[r#"
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
            Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
            Thread 4242 (synth-4242) at event 14, logpoint: order 1 of Ada: 2.5: 0x555555555048
             Register | Value                                  | Symbol
            ----------+----------------------------------------+--------
             rip      | 0x555555555048                         | 
             rsp      | 0x7f0000008008 <stale: as of event 12> | 
            *#0   0x555555555048 ()
              (the rest is not known: the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory (os error 2))
            Thread 4243 (synth-4243) at event 16, logpoint: order 2 of Archibal...: 5.0: 0x555555555048
            Thread 4242 (synth-4242) at event 14, logpoint: order 1 of Ada: 2.5: 0x555555555048
            Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
            Watch 1: $rbx (everywhere)
            --- stderr
            error: the recording shows no change of a watched expression after event 9
            help: look at what it shows: history EXPRESSION; or: goto last
              at --cmd 10: continue (exit code 2)
            error: zero steps lead nowhere
              at --cmd 11: step 0 (exit code 2)
            error: zero steps lead nowhere
              at --cmd 12: step back 0 (exit code 2)
            error: zero steps lead nowhere
              at --cmd 13: next 0 (exit code 2)
            error: zero steps lead nowhere
              at --cmd 14: next back 0 (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn places_in_time_have_many_forms() {
    check(
        &[
            "goto 0%",
            "goto 100%",
            "goto 25%",
            "goto 101%",
            "goto -1%",
            "goto 0s",
            "goto 1s",
            "goto 120ns",
            "goto 1.5",
            "goto output:0",
            "goto output:x",
            "goto @",
            "goto 1_0",
        ],
        expect![[r#"
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
            Thread 4243 (synth-4243) at event 27, the program was killed by SIGSEGV: location unknown
            Thread 4242 (synth-4242) at event 7, write: items: 0x555555555048
            Thread 4242 (synth-4242) at event 0, module_load: /home/ada/shop/shop: location unknown
            Thread 4242 (synth-4242) at event 27, the program was killed by SIGSEGV: location unknown
            Thread 4242 (synth-4242) at event 12, return from price: 0x401234
            Thread 4242 (synth-4242) at event 10, write: $xmm0: 0x555555555051
            --- stderr
            error: 101% is not between 0% and 100% of the recording
              at --cmd 5: goto 101% (exit code 2)
            error: unexpected argument '-1' found
            help: write: goto [OPTIONS] <PLACE>...
              at --cmd 6: goto -1% (exit code 2)
            error: "1.5" is not a place in time
            help: write an event's number, first, last, crash, 50%, 1.5s, @NOTE, output:LINE or EVENT+INSTRUCTIONS
              at --cmd 10: goto 1.5 (exit code 2)
            error: "output:0" is not a place in time
            help: write an event's number, first, last, crash, 50%, 1.5s, @NOTE, output:LINE or EVENT+INSTRUCTIONS
              at --cmd 11: goto output:0 (exit code 2)
            error: "output:x" is not a place in time
            help: write an event's number, first, last, crash, 50%, 1.5s, @NOTE, output:LINE or EVENT+INSTRUCTIONS
              at --cmd 12: goto output:x (exit code 2)
            error: "@" is not a place in time
            help: write an event's number, first, last, crash, 50%, 1.5s, @NOTE, output:LINE or EVENT+INSTRUCTIONS
              at --cmd 13: goto @ (exit code 2)
            --- exit code 2
        "#]],
    );
}
