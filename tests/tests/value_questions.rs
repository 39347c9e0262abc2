//! Goal: questions about a value use all that the recording has, and no answer recommends what the recording was made with. Method:
//! small programs, each with one value whose writers are known.

use e2e::{Ended, Hindsight, Program, Recording, Scratch, Status, compiled};

struct Recorded {
    scratch: Scratch,
    recording: Recording,
}

impl Recorded {
    fn of(name: &str, source: &str, options: &[&str]) -> Recorded {
        let scratch = Scratch::new(name);
        let path = compiled(&scratch, "app.c", source, &["-g", "-O0"]);
        let program = Program::new(path, scratch.path());
        let (_, recording) = Hindsight::record(&scratch, options, &program);
        Recorded { scratch, recording }
    }

    fn why(&self, words: &[&str]) -> String {
        let ended = Hindsight::command(&self.scratch, &[&["why", "rec"], words].concat()).run();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        ended.text()
    }

    /// Asks at an event.
    fn at(&self, seq: i64, lines: &[&str]) -> Ended {
        let goto = format!("goto {seq}");
        let lines = [&[goto.as_str()], lines].concat();
        self.recording.prompt(&lines)
    }

    fn entry_of(&self, function: &str) -> i64 {
        self.recording.number(&format!(
            "select min(start_seq) from calls where function = '{function}'"
        ))
    }
}

#[test]
fn a_variable_of_a_far_caller_is_read() {
    let source = "
#include <stdlib.h>
static int deep(int n) { if (n == 0) abort(); return deep(n - 1) + 1; }
int main(void) {
  int ok = 77;
  int *block = malloc(24);
  *block = ok;
  return deep(24) + *block;
}
";
    let recorded = Recorded::of("far-caller", source, &["--full", "--memory"]);
    let stop = "select max(seq) from events where kind = 'pause'";
    let stop = recorded.recording.number(stop);
    let told = recorded.at(stop, &["print main::ok", "object main::block"]);
    let text = told.text();
    assert!(text.contains("= 77"), "{text}{}", told.errors());
    assert!(
        text.contains("a block of 24 bytes"),
        "{text}{}",
        told.errors()
    );
}

/// The page has the same address in each run.
const PAGE: &str = "
#include <sys/mman.h>
struct footer { long magic, pages; };
static __attribute__((noinline)) void fill(struct footer *f) { f->magic = 5; f->magic = 6; }
static __attribute__((noinline)) long check(const struct footer *f) { return f->pages; }
static __attribute__((noinline)) long gone(const struct footer *f) { return f == 0; }
int main(void) {
  void *page = mmap((void *)0x100000000, 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  fill(page);
  long bad = check(page);
  munmap(page, 4096);
  return bad + gone(page);
}
";

#[test]
fn logged_writes_to_an_address_answer_for_what_lies_there() {
    let options = ["--no-aslr", "--log-writes", "0x100000000:8"];
    let recorded = Recorded::of("by-address", PAGE, &options);
    let check = recorded.entry_of("check");
    let why = recorded.why(&["f->magic", "--at", &check.to_string()]);
    let lies = "f->magic is at 0x100000000";
    for wanted in [lies, "f->magic became 6, after 5, by fill at "] {
        assert!(why.contains(wanted), "{wanted}: {why}");
    }
    assert!(!why.contains("--log-writes"), "{why}");
    let told = recorded.at(check, &["last-write f->magic", "history f->magic"]);
    let text = told.text();
    for wanted in [
        lies,
        "became 6, after 5 at event ",
        "| 5 ",
        "| 6 ",
        "fill at ",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}{}", told.errors());
    }
    assert!(!text.contains("--log-writes"), "{text}");
}

#[test]
fn with_every_instruction_nothing_is_left_open_where_the_memory_is_gone() {
    let recorded = Recorded::of("full-gone", PAGE, &["--full"]);
    let gone = recorded.entry_of("gone");
    let text = recorded.why(&["f->magic", "--at", &gone.to_string()]);
    assert!(text.contains("by fill at "), "{text}");
    assert!(!text.contains("whether it changed"), "{text}");
}

#[test]
fn a_watched_value_is_known_up_to_where_it_was_recorded_last() {
    let source = "
#include <stdlib.h>
static __attribute__((noinline)) void bump(int *live) { *live += 3; }
static __attribute__((noinline)) void quiet(void) {}
int main(void) {
  int live = 1;
  bump(&live);
  quiet();
  quiet();
  abort();
}
";
    let recorded = Recorded::of("watched-why", source, &["--watch", "main::live"]);
    let text = recorded.why(&["main::live"]);
    assert!(text.contains("main::live became 4 "), "{text}");
    assert!(!text.contains("--watch 'main::live'"), "{text}");
    let quiet = "select max(start_seq) from calls where function = 'quiet'";
    let quiet = recorded.recording.number(quiet);
    if let Some((_, rest)) = text.split_once("whether it changed between event ") {
        let seen = rest.split(|c: char| !c.is_ascii_digit()).next();
        let seen: i64 = seen.and_then(|seen| seen.parse().ok()).expect("a number");
        assert!(seen >= quiet, "{quiet}: {text}");
    }
}

#[test]
fn the_name_that_can_be_logged_is_recommended_whole() {
    let source = "
struct scene { long room[12]; int live; };
int main(void) { struct scene scene = {{0}, 0}; scene.live = 3; return scene.live - 3; }
";
    let scratch = Scratch::new("whole-name");
    let path = compiled(&scratch, "app.c", source, &["-g", "-O0"]);
    let program = Program::new(path, scratch.path());
    let refused = |place: &str| {
        let options = ["--log-writes", place];
        let ended = Hindsight::record_command(&scratch, "refused", &options, &program).run();
        assert_eq!(ended.status, Status::Code(2), "{}", ended.errors());
        ended.errors()
    };
    let told = refused("scene.live");
    assert!(told.contains("--log-writes main::scene.live;"), "{told}");
    // It has more bytes than the processor watches.
    let told = refused("scene");
    assert!(!told.contains("--log-writes main::scene"), "{told}");
    let options = ["--log-writes", "main::scene.live"];
    Hindsight::recorded(&scratch, "logged", &options, &program);
}

const PARTS: &str = "
struct padded { char tag; int value; } padded;
struct flags { unsigned low : 3, high : 5; } flags;
static void set_padded(void) { padded.value = 7; }
static void set_padding(void) { ((volatile char *)&padded)[2] = 9; }
static void set_low(void) { flags.low = 5; }
static void set_high(void) { flags.high = 9; }
int main(void) {
  set_padded();
  set_padding();
  set_low();
  set_high();
  return 0;
}
";

#[test]
fn a_write_that_the_shown_value_does_not_show_is_told_as_one() {
    let recorded = Recorded::of("padding", PARTS, &["--full"]);
    let text = recorded.why(&["padded"]);
    let wanted = "as it is shown here, but 1 byte at offset 2 changed, by set_padding at ";
    assert!(text.contains(wanted), "{text}");
    assert!(!text.contains("padded became"), "{text}");
}

#[test]
fn writes_to_a_bit_field_are_those_that_change_it() {
    let recorded = Recorded::of("bit-field", PARTS, &["--full"]);
    let text = recorded.why(&["flags.low"]);
    let wanted = "flags.low last changed to 5, from 0, by set_low at ";
    assert!(text.contains(wanted), "{text}");
    let told = recorded
        .recording
        .prompt(&["history flags.low", "last-write flags.high"]);
    let text = told.text();
    let (history, last) = text
        .split_once("flags.high last changed to 9, from 0 at event ")
        .unwrap_or_else(|| panic!("{text}{}", told.errors()));
    assert!(history.contains("set_low at "), "{text}");
    assert!(!history.contains("set_high"), "{text}");
    assert!(last.contains("set_high at "), "{text}");
}
