//! Translations for a function that is called at a moment of the past. It runs code that the program itself does not execute then, so it
//! has translations of its own; and it may write code, so pages that were translated are protected from it.

use rustc_hash::FxHashSet;

use super::Replay;
use crate::error::Result;
use crate::translate::{Aside, layout};

const PAGE: u64 = 4096;

/// The program's own translations, while a function runs.
pub(super) struct Own {
    translations: Aside,
    /// The table of indirect jumps, as it lies in memory.
    table: Vec<u8>,
}

impl Replay {
    /// From now on code is translated for a function that is called. The thread must go on by [`Self::enter`].
    pub(super) fn set_translations_aside(&mut self) -> Result<Own> {
        self.process.flush(&mut self.translator)?;
        let bytes = layout::TABLE_ENTRIES as usize * size_of::<u64>();
        let table = self.process.bytes(self.translator.low(), bytes);
        let translations = self.translator.set_aside();
        self.changes.guarded = Some(FxHashSet::default());
        self.process.flush(&mut self.translator)?;
        Ok(Own {
            translations,
            table,
        })
    }

    /// The call is over: the program goes on in its own translations.
    pub(super) fn take_translations_back(&mut self, own: Own) -> Result<()> {
        self.changes.guarded = None;
        self.translator.take_back(own.translations, own.table);
        self.process.flush(&mut self.translator)
    }

    /// Protects pages that were translated.
    pub(super) fn guard(&mut self, pages: &[u64]) -> Result<()> {
        for page in pages {
            let guarded = self.changes.guarded.as_mut();
            if guarded.is_some_and(|guarded| guarded.insert(*page)) {
                self.protect(*page, libc::PROT_READ)?;
            }
        }
        Ok(())
    }

    /// If the process has stopped because it writes to such a page, what was translated of it is forgotten, and it can go on.
    pub(super) fn writes_code(&mut self) -> Result<bool> {
        let Some(page) = self.fault_address()?.map(|at| at / PAGE) else {
            return Ok(false);
        };
        let guarded = self.changes.guarded.as_mut();
        if !guarded.is_some_and(|guarded| guarded.remove(&page)) {
            return Ok(false);
        }
        self.protect(page, libc::PROT_READ | libc::PROT_WRITE)?;
        let own = self.registers()?;
        let (start, end) = (page * PAGE, (page + 1) * PAGE);
        self.translator.forget_range(start, end);
        self.process.flush(&mut self.translator)?;
        self.enter(&own)?;
        Ok(true)
    }

    fn protect(&mut self, page: u64, protection: i32) -> Result<()> {
        let (pid, args) = (
            self.process.pid,
            [page * PAGE, PAGE, protection as u64, 0, 0, 0],
        );
        self.process.call(pid, libc::SYS_mprotect, args).map(drop)
    }
}

#[cfg(test)]
mod tests {
    //! Goal: a function that writes code and calls it gives, at a moment of the past, what it gives live; and the program goes on as
    //! it did. Method: a program writes a function, over the one that it has called, and calls it only after it has written it once more.

    use std::time::{Duration, Instant};

    use tempfile::TempDir;

    use super::*;
    use crate::replay::tested::recorded;
    use crate::replay::{Call, Called};

    const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
static unsigned char *page;
volatile struct { int result; int pad; long (*rewrite)(int); long (*plain)(void); } at;
__attribute__((noinline)) static void write_code(int number) {
  unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3}; // mov eax, number; ret
  memcpy(code + 1, &number, 4);
  memcpy(page, code, sizeof code);
}
__attribute__((noinline)) static long plain(void) { return ((int (*)(void))page)(); }
__attribute__((noinline)) static long rewrite(int number) {
  long sum = plain();
  for (int i = 0; i < 3; i++) { write_code(number + i); sum = sum * 1000 + plain(); }
  return sum;
}
int main(void) {
  page = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  at.rewrite = rewrite;
  at.plain = plain;
  printf("%p\n", (void *)&at);
  write_code(1);
  at.result = plain();
  write_code(2);
  at.result = -1;
  write_code(3);
  at.result = plain();
}
"#;

    fn word(replay: &Replay, at: u64) -> u64 {
        let mut bytes = [0; 8];
        assert_eq!(replay.read(at, &mut bytes), 8);
        u64::from_le_bytes(bytes)
    }

    fn called(replay: &mut Replay, function: u64, argument: u64) -> u64 {
        let call = Call {
            function,
            integers: vec![argument],
            floats: Vec::new(),
            texts: Vec::new(),
            until: Instant::now() + Duration::from_secs(60),
        };
        match replay.call(replay.thread(), &call).unwrap() {
            Called::Returned(returned) => returned.rax,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_function_that_writes_code_is_called_in_the_past() {
        let folder = TempDir::new().unwrap();
        let at = recorded(SOURCE, folder.path());
        let mut replay = Replay::open(folder.path()).unwrap();
        let end = replay.end();
        let writes = replay.writes(at, 4, end, usize::MAX).unwrap();
        let [_, between, last] = writes[..] else {
            panic!("{writes:?}")
        };
        // The program has called what it wrote last: the function must not be that.
        replay.goto(last + 1).unwrap();
        assert_eq!(word(&replay, at) as i32, 3);
        replay.goto(between + 1).unwrap();
        let (rewrite, plain) = (word(&replay, at + 8), word(&replay, at + 16));
        assert_eq!(called(&mut replay, plain, 0), 2);
        assert_eq!(called(&mut replay, rewrite, 7), 2_007_008_009);
        assert_eq!(called(&mut replay, plain, 0), 2);
        replay.goto(last + 1).unwrap();
        assert_eq!(word(&replay, at) as i32, 3);
    }
}
