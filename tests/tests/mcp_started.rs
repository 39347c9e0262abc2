//! Goal: the tools of `hindsight mcp` that start a program, attach to one, run it to a place, call its functions, record its instructions,
//! log its messages and tell a block's life do what their parameters say. Method: the Python SDK of the protocol (`mcp/started.py`) and
//! a program whose values are known.

use std::path::PathBuf;

use e2e::{Live, Program, mcp_script};

/// Adds 2 * n for n from 0 on, and gives a block away; with a second argument, until that file exists.
const STEPS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int total;

__attribute__((noinline)) static int twice(int n) { return 2 * n; }

__attribute__((noinline)) static void step(int n) {
  total += twice(n); /* step: add */
}

__attribute__((noinline, used)) static int shout(int n) {
  printf("%d!\n", n);
  fflush(stdout);
  return twice(n);
}

__attribute__((noinline)) static void given(char *block) { memset(block, 1, 100); }

int main(int argc, char **argv) {
  char folder[4096];
  const char *mode = getenv("MODE");
  char *block = malloc(100);
  given(block);
  free(block);
  for (int n = 0; n < atoi(argv[1]); n++) step(n); /* main: loop */
  if (argc > 2) { /* main: after */
    puts("waits");
    fflush(stdout);
    while (access(argv[2], F_OK) != 0) {
      step(7);
      usleep(1000);
    }
    return 0;
  }
  printf("%s %s %d\n", getcwd(folder, sizeof folder), mode ? mode : "slow", total); /* main: prints */
  return 0;
}
"#;

/// Builds the program in the test's folder.
fn built(live: &Live) -> [PathBuf; 2] {
    let source = live.scratch.join("steps.c");
    std::fs::write(&source, STEPS).expect("the test's folder is writable");
    let words = ["-O0", "-g", "-o", "steps", "steps.c"];
    let built = Program::new("gcc", live.scratch.path()).args(words).run();
    assert_eq!(built.status.as_shell_code(), 0, "{}", built.errors());
    [live.scratch.join("steps"), source]
}

fn scenario(live: &Live, name: &str, paths: &[PathBuf]) {
    let paths = paths.iter().map(|path| path.to_str().expect("text"));
    let words: Vec<&str> = std::iter::once(name).chain(paths).collect();
    // The script fails if an answer is another one.
    let _ = mcp_script(live, "started.py", &words);
}

#[test]
fn a_launch_has_its_folder_environment_watches_and_logpoints() {
    let live = Live::new("mcp-equipped");
    let [program, source] = built(&live);
    let folder = live.scratch.path().canonicalize().expect("it exists");
    scenario(&live, "equipped", &[program, source, folder]);
}

#[test]
fn a_logpoint_by_line_has_a_condition_and_is_removed() {
    let live = Live::new("mcp-pointed");
    scenario(&live, "pointed", &built(&live));
}

#[test]
fn a_running_process_is_attached_to_and_ends_unharmed() {
    let live = Live::new("mcp-attached");
    let [program, _] = built(&live);
    let folder = live.scratch.path().to_owned();
    scenario(&live, "attached", &[program, folder]);
}

#[test]
fn the_line_that_wrote_a_value_is_found_as_the_page_for_agents_says() {
    let live = Live::new("mcp-which-line");
    scenario(&live, "which_line", &built(&live));
}

#[test]
fn the_life_of_a_block_is_told() {
    let live = Live::new("mcp-blocks");
    let [program, _] = built(&live);
    scenario(&live, "blocks", &[program]);
}

#[test]
fn a_place_is_run_to_in_a_program_and_in_a_recording() {
    let live = Live::new("mcp-reached");
    scenario(&live, "reached", &built(&live));
}

#[test]
fn the_nth_arrival_and_a_condition_are_found_in_both_directions() {
    let live = Live::new("mcp-arrived");
    let [program, _] = built(&live);
    scenario(&live, "arrived", &[program]);
}

#[test]
fn a_running_program_is_neither_called_nor_stepped_and_its_recording_stays() {
    let live = Live::new("mcp-running");
    let [program, _] = built(&live);
    let folder = live.scratch.path().to_owned();
    scenario(&live, "running", &[program, folder]);
}

#[test]
fn breakpoints_of_a_recording_have_the_shape_of_those_of_a_program() {
    let live = Live::new("mcp-places");
    scenario(&live, "places", &built(&live));
}

#[test]
fn nothing_is_left_after_the_end_of_an_answer() {
    let live = Live::new("mcp-beyond");
    let [program, _] = built(&live);
    scenario(&live, "beyond", &[program]);
}

#[test]
fn functions_are_called_in_a_program_and_in_a_recording() {
    let live = Live::new("mcp-called");
    let [program, _] = built(&live);
    scenario(&live, "called", &[program]);
}

#[test]
fn a_name_means_its_newest_recording_and_results_say_which() {
    let live = Live::new("mcp-newest");
    let [program, _] = built(&live);
    scenario(&live, "newest", &[program]);
}

#[test]
fn instructions_are_recorded_up_to_a_stop_or_until_that_is_ended() {
    let live = Live::new("mcp-instructions");
    let [program, _] = built(&live);
    let folder = live.scratch.path().to_owned();
    scenario(&live, "instructions", &[program, folder]);
}
