//! What `help` says: the verbs at a glance, and those that clap does not know.

/// What can be done with a recording, or in the past of a live session.
const PAST: &str = "\
Moves
  goto PLACE           an event's number, first, last, crash, 50%, 1.5s, @NOTE, output:LINE
  step [N], step back  to the next event of any thread, or the one before
  next [N], next back  to the next event of this thread, over calls
  finish, reverse-finish       to where this call ends, or begins
  continue, reverse-continue   to the next stop: one that was recorded, or a breakpoint
  continue where CONDITION     to the next call of which it is true: dur_ns > 1000000
  break NAME|FILE:LINE         stop where a function is entered; break lists, delete N
  watch EXPR                   stop where a value has changed; watch lists, unwatch N
Looks
  where, source, disassemble   where the thread stands
  backtrace, frame N, up, down the calls that led here
  locals, args, print EXPR     variables and expressions
  registers, memory ADDRESS    what they hold, as far as it is known
  threads, thread ID           all threads; look at another one
  calls                        the recorded calls around here and inside
  history EXPR, last-write EXPR   what the recording shows of a value over time
  output                       what the program wrote up to here
  note TEXT, notes             keep a bookmark at this event; list all: goto @TEXT
  SELECT ...                   SQL over the whole recording
";

/// What can be done with a live program.
const LIVE: &str = "\
Runs
  continue, pause              Ctrl-C stops a program that is waited for
  next [N], step [N], finish   over calls, into calls, out of the function
  until LOCATION, await        to a place; to the next stop
  break, logpoint, watch, catch   add one; list, remove N, enable N, disable N
  start, attach, restart       another session; the same program again
  stop, detach                 end the program; leave it running
Looks
  where, source, disassemble   where the thread stands
  backtrace, frame N, up, down the calls that led here
  locals, args, print EXPR     variables and expressions
  display EXPR, undisplay N    show and record a value at every stop; display lists
  registers, memory read ADDRESS
  threads, thread ID, status   all threads; look at another one; all sessions
  output                       what the program printed since the last time
Changes
  set TARGET VALUE, eval EXPR, memory write ADDRESS BYTES, note TEXT
The past, while the program stands still
  goto PLACE                   an event's number, first, last, crash, 50%, 1.5s, @NOTE, output:LINE
  step back, next back, finish back, continue back   from here backwards
  goto live                    back to the program as it is now
  calls, history EXPR, last-write EXPR, notes
  SELECT ...                   SQL over everything recorded so far
";

const OTHERS: &str = "\
Others
  help VERB, alias NAME = VERB ..., unalias NAME, quit
";

const UNKNOWN: &str = "\n\
What is not known prints as <unknown: ...>; what was seen earlier says at which event.
";

/// Returns all verbs at a glance.
pub fn all(live: bool, in_the_past_of_a_session: bool) -> String {
    match (live, in_the_past_of_a_session) {
        (true, _) => [LIVE, OTHERS].concat(),
        (false, true) => {
            let way_back = "  goto live                    back to the program as it is now\n";
            let (first, rest) = PAST.split_at("Moves\n".len());
            [first, way_back, rest, OTHERS, UNKNOWN].concat()
        }
        (false, false) => [PAST, OTHERS, UNKNOWN].concat(),
    }
}

/// Verbs of the prompt itself.
const OWN: [(&[&str], &str); 6] = [
    (
        &["alias", "unalias"],
        "Give a name to a verb with some of its words

  alias NAME = VERB ...   alias px = print --format hex
  alias, alias NAME       all aliases; one of them
  unalias NAME            forget it

What is made at a prompt is kept in ~/.config/hindsight/aliases; what a script makes
ends with it. What stands behind the name in a line is added to the meaning.
",
    ),
    (
        &["continue-where", "reverse-continue-where"],
        "Go to the next call of which a condition is true, or to the one before

  continue where CONDITION
  reverse-continue where CONDITION

The condition is one of SQL over the columns of calls, or of events:
  continue where dur_ns > 1000000
  continue where kind = 'stdout'
",
    ),
    (
        &["help", "?"],
        "Show all verbs, or what one of them takes: help VERB\n",
    ),
    (
        &["quit", "exit", "q"],
        "Leave. A program that was started here is ended and its recording closed;
one that was started elsewhere or attached to goes on under the daemon.

  quit --keep   let a program that was started here go on too
",
    ),
    (
        &["select", "with", "explain"],
        "SQL over everything recorded: SELECT * FROM calls ORDER BY dur_ns DESC LIMIT 10
The tables are those of: hindsight sql RECORDING, \\d
",
    ),
    (
        &["goto-live"],
        "Return from the past to the program as it is now\n",
    ),
];

/// Returns what a verb of the prompt itself does.
pub fn of(verb: &str) -> Option<&'static str> {
    let verb = verb.to_lowercase();
    let found = OWN.iter().find(|(names, _)| names.contains(&&*verb));
    found.map(|(_, text)| *text)
}

/// Says whether a verb is one of the prompt itself.
pub fn is_own(verb: &str) -> bool {
    verb != "goto-live" && of(verb).is_some()
}
