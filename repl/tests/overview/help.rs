//! The version, and the help of every command.

use expect_test::expect;

use super::check;
use super::common::Folder;

#[test]
fn the_version_is_one_line() {
    check(
        &Folder::empty(),
        &["--version"],
        expect![[r#"
        hindsight 0.1.0
    "#]],
    );
}

#[test]
fn each_command_explains_itself() {
    let folder = Folder::empty();
    check(
        &folder,
        &["--help"],
        expect![[r#"
            Records a program while it runs, then answers SQL over everything it did

            Usage: hindsight [OPTIONS] <COMMAND>

            Begin with these:
              record            Record a program while it runs
              overview          Summarise a recording: how it ended, what failed, where the time went
              report            Show where the time went: functions, callers, call tree, flame graph
              sql               Query one or more recordings in SQL
              repl              Step through a recording or a live program, forwards and backwards

            Ask and keep recordings:
              rerun             Run a recording's program again and record it
              compare           Show where two recordings of a program differ
              info              Show what a recording holds
              ls                List the recordings of a folder
              rm                Delete recordings
              runs              List, label and delete the runs of this machine
              export            Write recordings as plain Parquet
              check             Verify every checksum and rule of a recording
              pack              Copy a recording's modules, debug files and sources into it
              processes         List the processes that record --children followed
              symbols           Show which modules have debug information; fetch what is missing
              test              Run a test command and keep the recordings of failed processes

            Sessions: a live program, or a recording that is open:
              start             Start a program under control
              attach            Take a running process under control
              detach            Leave the program running and close its recording
              stop              Kill the program and close its recording; ending the last session ends the
                                daemon [also kill]
              output            Show what the program printed since the last time; in a recording, everything up
                                to here
              restart           Start the program again with the same arguments and breakpoints, in a new
                                recording
              status            Show the sessions
              await             Wait for the next stop; return at once if the program has stopped already
              close             Close an open recording; closing the last session ends the daemon
              open              Open a recording or a core file as a session: goto, step-back, print, history

            Run the program, or travel in time:
              continue          Continue until something stops the program; in a recording, go to the next stop
                                [also c]
              next              Go to the next line, over calls; in a recording, to the next event of this
                                thread [also n]
              step              Go to the next line, into calls; in a recording, to the next event [also s]
              finish            Run until the current function returns [also out]
              until             Run to a location, or to a later line, in the selected frame or an outer one
              advance           Run to a location, also in callees, or until the selected frame returns
              pause             Stop all threads
              full              Record every instruction of the stopped thread from here on
              goto              Go to a moment of the recording
              next-back         Go to this thread's previous event, over calls [also reverse-next, rn]
              reverse-continue  Go back to the last stop or breakpoint [also rc]
              reverse-finish    Go back to the entry of this call, or from there to its caller's entry [also rf]
              step-back         Go to the previous event [also reverse-step, rs]

            Look: at a stop, or at a moment of a recording:
              where             Show where the program stands: source and variables [also context]
              backtrace         Show the call stack [also bt]
              frame             Select a frame, or show the current one
              up                Select the caller's frame
              down              Select the callee's frame
              threads           Show all threads
              thread            Select a thread, or show the current one
              thread-apply      Run a verb that looks for several threads: thread apply all print x
              source            Show source lines; | marks those with code [also list, l]
              disassemble       Show machine code
              locals            Show the variables of the current frame
              args              Show the arguments of the current function
              print             Show the value of an expression [also p]
              memory            Show or write memory: memory read &x --count 32, memory write 0x7ffe1234 2a00
              registers         Show the registers of the current frame
              calls             Show the recorded calls around here, and those inside the innermost
              history           Show every recorded change of a value
              last-write        Show when a value was last written
              notes             Show all notes
              object            Show which call allocated the heap block at an address, and which freed it
              ptype             Show the type of an expression, or a type, with its members
              why               Show the chain of recorded events that led to a call or a value
              whatis            Show the type of an expression in one line
              x                 Show memory as numbers, texts or instructions: x/4xw &table
              printf            Print formatted values: printf "%d of %s\n", n, name
              echo              Write a text: echo total is:\n
              info-address      Show where a variable or a function lies
              info-breakpoints  List breakpoints, watches, catchpoints and logpoints [also info-watchpoints]
              info-frame        Show where a frame lies, what it returns to, and its saved registers
              info-functions    List the functions whose names match a regular expression
              info-line         Show which code a source line has, and which line an address has
              info-proc         Show the process: its id, command line, working directory and executable
              info-scope        List the variables that are visible at a place
              info-shared       List the program's modules with their addresses [also info-sharedlibrary,
                                info-dll]
              info-signals      Show how signals are handled: info signals, info signals SIGUSR1 [also
                                info-handle]
              info-source       Show the current source file, its folder, language, compiler and DWARF version
              info-symbol       Show which symbol an address belongs to
              info-types        List the types whose names match a regular expression
              info-variables    List the global variables whose names match a regular expression
              save-breakpoints  Save the commands that set all breakpoints to a new file: save breakpoints FILE
              gcore             Write a core file of the stopped program

            Set breakpoints, log messages, change values:
              note              Append a note to the recording
              break             Set, list, remove, enable or disable breakpoints [also breakpoint, b]
              logpoint          Log a message each time the program passes a place
              watch             Stop when a value is written or read; in a recording, where it changed
              catch             Stop at exceptions, panics, signals, system calls and new processes
              display           Show and record an expression at every stop; without one, list the displays
              undisplay         Remove a display: undisplay 2
              eval              Evaluate an expression with its side effects: x = 3, f(1) [also call]
              set               Write a value: set p->len 3
              trace             Start recording the calls of more functions
              commands          Set commands to run when a breakpoint stops the program
              condition         Change or remove a breakpoint's condition
              ignore            Skip a breakpoint's next hits: ignore 2 10
              rbreak            Set a breakpoint on each function whose name matches a regular expression
              handle            Set whether a signal stops the program: handle SIGUSR1 nostop noprint pass
              jump              Continue at another place in the function: jump 42, jump orders.c:42
              return            Leave the current function at once: return, return -1

            Hindsight itself:
              mcp               Serve language models over the Model Context Protocol
              setup             Install Frida, for machines that need it to record
              completions       Print the completion script of a shell
              man               Write the manual pages
              help              Show this page, or that of a command: hindsight help record

            Options:
                  --color <WHEN>  When to use colour: auto (on a terminal, unless NO_COLOR is set), always or
                                  never
              -h, --help          Print help
              -V, --version       Print version

            Examples:
              hindsight record ./app        run it and write app.hindsight
              hindsight overview app        how it ended, what failed, where the time went
              hindsight report app          what was slow: every function's own time, callers, a flame graph
              hindsight info app            what was recorded
              hindsight sql app             a prompt: SQL, Tab completes, \d lists the tables
              hindsight sql app "select * from calls order by dur_ns desc limit 10"
              hindsight sql app "select * from calls" -o calls.parquet
              hindsight repl app            go through it: goto, step back, print, backtrace
              hindsight start --break parse ./app   control it live: next, step, where, print
              hindsight sql 'runs/*' "select run, count(*) from calls group by run"   many at once
              hindsight compare good bad    where two recordings differ
              hindsight check app           verify every checksum and rule

            Exit codes:
              0  done
              1  the answer is "damaged" or "different", or the command failed
              2  wrong usage: command line, SQL or recording name
              3  check: the recording is incomplete (it was not closed cleanly)
                 compare: the recordings cannot be compared
              4  record, start, attach: the program could not be started or attached
            `record` otherwise exits with the recorded program's own status (128 + signal).
        "#]],
    );
    check(
        &folder,
        &["record", "--help"],
        expect![[r#"
            Record a program while it runs

            Runs a program, or attaches to one, and records every call of its functions: arguments, return
            values and times, from all threads, into the folder NAME.hindsight. You need not recompile the
            program, and it needs no debug information; with debug information, arguments have names and types.

            Usage: hindsight record [OPTIONS] [PROGRAM]...

            Arguments:
              [PROGRAM]...
                      The program and its arguments

            Options:
                  --color <WHEN>
                      When to use colour: auto (on a terminal, unless NO_COLOR is set), always or never

              -o, --output <NAME>
                      Where to write [default: the program's name with .hindsight, in this folder]

              -f, --function <PATTERN>
                      Record only functions that match: a name in the program (with * and ?), a whole name in
                      any library, LIBRARY:NAME (libc.so.6:*printf), file:GLOB or module:GLOB; may be repeated

              -x, --exclude <PATTERN>
                      Do not record functions that match; overrides --function; may be repeated

                  --on-full <POLICY>
                      What a thread does when the recorder cannot keep up [default: block]

                      Possible values:
                      - block: The thread waits: nothing is lost
                      - drop:  The thread goes on: a gap counts what is lost

                  --snapshot <WHEN>
                      When to copy the program's memory: start, every=TIME or every=N events (every=100ms,
                      every=5000events; only changed pages), or never [default: start]

                  --keep-log
                      Keep the raw log after it has been converted to columns

                  --regs
                      Keep all general registers at each enter and leave; in a session, also at logpoints

                  --stack <BYTES>
                      Keep this many bytes of the stack at each enter and leave, 8 to 16384

                  --strings
                      Keep the text of string arguments (char*, &str, String, std::string), up to 256 bytes of
                      each

                  --pointees
                      Keep what pointer and reference arguments point to, at each enter and leave, up to 256
                      bytes of each

                  --watch <EXPRESSION>
                      Keep the value of an expression at each enter and leave: one over global or thread-local
                      variables always, one over a function's variables (`push::q->len`, `main::total`) from its
                      entry until it returns; may be repeated

                  --syscalls
                      Also record system calls with their decoded arguments, results and times, for the tables
                      syscalls and files

                  --no-syscalls
                      Record no system calls (the default); cancels an earlier --syscalls

                  --memory
                      Also record calls that allocate and free memory, for the table allocations and report
                      --memory

                  --locks
                      Also record calls that acquire and release locks or wait, for the table locks and report
                      --locks

                  --log-writes <EXPRESSION|0xADDRESS[:LENGTH]>
                      Record every write to a variable, with the line that wrote, the old and the new value: a
                      global one, FUNCTION::VARIABLE in each call, or what a pointer leads to, such as p->x; up
                      to four places of 8 bytes; may be repeated

                  --logpoint <LOCATION> <MESSAGE>
                      Record a message each time the program passes a place (function, file:line or 0xADDRESS);
                      {EXPRESSION} in it is replaced by its value; may be repeated

                  --condition <EXPRESSION>
                      Log the preceding --logpoint only if this is true

                  --full[=<PART>]
                      Record every instruction: you know each register and each byte at every moment, and can
                      run the program backwards. The program takes 2 to 5 times as long, on one processor.
                      Finding many calls afterwards takes longer; -f selects fewer. --full=after:2s begins when
                      the program has run for 2 seconds. --full=NAME records the calls of functions with this
                      name or pattern (may be repeated). See docs/full.md

                  --pending
                      Let logpoints and logged variables wait for libraries that are loaded later

                  --no-aslr
                      Load the program and its libraries at the same addresses in each run

                  --label <KEY=VALUE>
                      Label this run, KEY=VALUE; may be repeated. ls, info and the table runs show labels

                  --max-size <SIZE>
                      End the recording when it takes this much disk space (2GB, 500MB); the program continues
                      unrecorded, at full speed

                  --portable
                      When the program has ended, copy its modules, debug files and sources into the recording,
                      as hindsight pack does

                  --attach <PID>
                      Attach to this running process instead of starting a program

                  --for <SECONDS>
                      With --attach: stop recording after this many seconds (or 500ms, 2m); the process keeps
                      running

                  --children
                      Also record all processes that the program starts, into a folder NAME.children with a
                      recording of each program

                  --copies
                      With --children: also record forked copies, from the fork on; each fork takes longer

                  --report
                      Print a report of the slowest functions at the end, as hindsight report does (on stderr:
                      stdout is the program's)

                  --json
                      Print the summary as JSON (on stderr: stdout is the program's)

              -h, --help
                      Print help (see a summary with '-h')

            Examples:
              hindsight record ./app --port 8080            what follows the program is its own
              hindsight record -o run1 -f 'parse*' ./app    only functions that match
              hindsight record -x 'std::*' -x '*alloc*' ./app
              hindsight record --log-writes total ./app     and every write to a variable, with its line
              hindsight record --memory --locks ./app       and who allocates, frees, locks and waits
              hindsight record --children -- make -j2       and every process that it starts
              hindsight record --full ./app                 every instruction: go to any of them, forwards and
              backwards
              hindsight record '--full=parse_*' ./app       the same for the calls of these functions alone
              hindsight record --attach 4711 --for 10       look at a running program
              hindsight sql app "select * from calls"       then ask

            Exits with the program's own status (128 + signal), or with 4 if it could not be started.
        "#]],
    );
    check(
        &folder,
        &["sql", "--help"],
        expect![[r#"
            Query one or more recordings in SQL

            Prints the answer to QUERY, which may be several statements with semicolons between them. Without
            QUERY, opens a prompt, or runs the statements on stdin if that is not a terminal. You can ask a
            recording while it is being written.

            With several recordings, a folder of them or a pattern, every table begins with the column run, and
            functions of a state take the run first: value(run, seq, 'x').

            Usage: hindsight sql [OPTIONS] <RECORDING>... [QUERY]

            Arguments:
              <RECORDING>...
                      Recordings, with or without .hindsight, folders of them or patterns; then the question, or
                      a command of the prompt like \d; - reads from stdin

            Options:
                  --color <WHEN>
                      When to use colour: auto (on a terminal, unless NO_COLOR is set), always or never

              -f, --format <FORMAT>
                      The output format [default: by the name of the output file, else table]

                      Possible values:
                      - table:   Aligned columns, for people
                      - csv:     Comma-separated values (RFC 4180) with a heading
                      - json:    One JSON array of objects
                      - jsonl:   One JSON object per line
                      - parquet: A Parquet file

                  --json
                      Print one JSON document; its result is the rows of one question

              -o, --output <FILE>
                      Write the answer to this new file

                  --rows <N>
                      Show at most this many rows of a table, 0 for all [default: 1000 on a terminal, else all]

                  --memory <SIZE>
                      Memory for sorts, groups and joins, such as 512MB or 8GB [default: a quarter of the
                      machine's memory]

                  --timing
                      Show how long each query took

                  --program <FILE>
                      With a core file: the program, if it is not where the core file says

              -h, --help
                      Print help (see a summary with '-h')

            Examples:
              hindsight sql app                             a prompt; Tab completes
              hindsight sql app '\d'                        the tables
              hindsight sql app "select * from calls order by dur_ns desc limit 10"
              hindsight sql app "select function, count(*) from calls group by function"
              hindsight sql app "select * from calls" -o calls.parquet
              hindsight sql app -f jsonl "select * from gaps" | jq .lost
              hindsight sql app < questions.sql             statements from stdin
              hindsight sql 'runs/*' "select run, count(*) from calls group by run"

            Tables: calls, events, report, functions, modules, threads, output, gaps,
            probes, pauses, logpoints, writes, exceptions, syscalls, files,
            processes, allocations, locks, instructions, lines, memory_writes,
            memory_reads, notes, runs.
            Times are nanoseconds since the recording began (ts_ns, dur_ns); seq numbers
            every event of the recording in one order.
        "#]],
    );
    check(
        &folder,
        &["info", "--help"],
        expect![[r#"
            Show what a recording holds

            Shows the program, when and where it ran, how it ended, how much was recorded and lost, the size on
            disk and the settings.

            Usage: hindsight info [OPTIONS] <RECORDING>

            Arguments:
              <RECORDING>
                      The recording, with or without .hindsight, a set of recordings, or a core file

            Options:
                  --color <WHEN>
                      When to use colour: auto (on a terminal, unless NO_COLOR is set), always or never

                  --program <FILE>
                      With a core file: the program, if it is not where the core file says

                  --json
                      Print as JSON

              -h, --help
                      Print help (see a summary with '-h')

            Examples:
              hindsight info app
              hindsight info make.children                what a set of record --children has as a whole
              hindsight info app --json | jq .result.rows.calls
              hindsight info app --json | jq -e '.result | .state == "closed" and .lost == 0'
        "#]],
    );
    check(
        &folder,
        &["check", "--help"],
        expect![[r#"
            Verify every checksum and rule of a recording

            Reads the whole recording. A note reports what is merely unusual; a report of damage names the file
            and the offset.

            Usage: hindsight check [OPTIONS] <RECORDING>

            Arguments:
              <RECORDING>
                      The recording, with or without .hindsight, a set of recordings, or a core file

            Options:
                  --color <WHEN>
                      When to use colour: auto (on a terminal, unless NO_COLOR is set), always or never

                  --program <FILE>
                      With a core file: the program, if it is not where the core file says

                  --replay
                      Run every instruction again, compare with what was recorded, and name the first
                      contradiction

                  --json
                      Print the result as JSON

              -h, --help
                      Print help (see a summary with '-h')

            Examples:
              hindsight check app
              hindsight check app --json | jq .result.findings
              hindsight check make.children               all recordings of a set
              hindsight check app --replay        made by record --full: runs it again, and compares
              hindsight check app && cp -r app.hindsight archive/

            Exits with 0 when everything holds, 1 when something is damaged, 3 when the recording was not
            closed, or when its core file was cut or is gone.
        "#]],
    );
    check(
        &folder,
        &["setup", "--help"],
        expect![[r#"
            Install Frida, for machines that need it to record

            Installs the official Frida wheel, pinned by version and digest, into the user's cache. Does nothing
            if it is already there. A processor of 2012 or later and Linux 5.9 need no Frida.

            Usage: hindsight setup [OPTIONS]

            Options:
                  --color <WHEN>
                      When to use colour: auto (on a terminal, unless NO_COLOR is set), always or never

                  --json
                      Print the result as JSON

              -h, --help
                      Print help (see a summary with '-h')

            Examples:
              hindsight setup          install Frida into the user's cache
              hindsight setup --json   the same, for scripts

            Needs python3 with pip. `record` does this by itself if it needs Frida.
        "#]],
    );
}
