//! Goal: files and threads whose names are not UTF-8 do not disturb a recording. Method: a program maps such a file, names its thread
//! so and loads a library; recorded with its calls and with every instruction, it does what it does by itself.

use e2e::{Hindsight, Program, Scratch, Status, compiled};

const NAMED: &str = r#"#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
__attribute__((noinline)) static int twice(int n) { return 2 * n; }
int main(void) {
  int file = open("caf\xe9.dat", O_RDWR | O_CREAT, 0600), sum = 0;
  if (ftruncate(file, 4096)) return 2;
  char *mapped = mmap(0, 4096, PROT_READ, MAP_PRIVATE, file, 0);
  prctl(PR_SET_NAME, "th\xe9");
  void *library = dlopen("libz.so.1", RTLD_NOW);
  for (int i = 0; i < 100; i++) sum += twice(i + mapped[i]);
  printf("%d %d\n", sum, library != 0);
  return 0;
}
"#;

#[test]
fn a_mapped_file_and_a_thread_have_names_that_are_not_utf8() {
    let scratch = Scratch::new("names-as-bytes");
    let path = compiled(&scratch, "named.c", NAMED, &["-O0", "-g", "-ldl"]);
    let program = Program::new(path, scratch.path());
    let native = program.run();
    assert_eq!(native.status, Status::Code(0), "{}", native.errors());
    assert!(native.text().starts_with("9900 "), "{}", native.text());
    for (name, options) in [("calls", [].as_slice()), ("full", ["--full"].as_slice())] {
        let ended = Hindsight::record_command(&scratch, name, options, &program).run();
        assert_eq!(ended.status, Status::Code(0), "{name}: {}", ended.errors());
        assert_eq!(ended.text(), native.text(), "{name}");
        let check = Hindsight::command(&scratch, &["check", name]).run();
        assert_eq!(check.status, Status::Code(0), "{name}: {}", check.text());
        let question = "SELECT count(*) FROM calls WHERE function = 'twice'";
        let asked = Hindsight::command(&scratch, &["sql", "-f", "csv", name, question]).run();
        assert!(
            asked.text().ends_with("\n100\n"),
            "{name}: {}",
            asked.text()
        );
    }
}
