//! Goal: the last of very many writes is found, wherever they cluster. Method: a program writes a number often, then for a long time only
//! what lies beside it, then often again; all writes that are found forwards tell which one is the last before a position.

mod recorded;

use exact::Replay;
use tempfile::TempDir;

use recorded::recorded;

const SOURCE: &str = r#"
#include <stdio.h>
volatile struct { int hot, beside; } at;
int main(void) {
  for (int i = 0; i < 20000; i++) at.hot += i;
  for (int i = 0; i < 300000; i++) at.beside += i;
  for (int i = 0; i < 5000; i++) { at.hot += i; at.beside += i; at.beside += i; }
  for (int i = 0; i < 20000; i++) at.beside += i;
  printf("%p\n", (void *)&at.hot);
}
"#;

#[test]
fn the_last_of_many_writes_is_found() {
    let folder = TempDir::new().expect("a folder");
    let [hot] = recorded(SOURCE, folder.path());
    let mut replay = Replay::open(folder.path()).expect("the recording can be opened");
    let end = replay.end();
    let all = replay.writes(hot, 4, end, usize::MAX).expect("a search");
    assert_eq!(all.len(), 25_000, "writes forwards");
    let chosen = [0, 1, 2_047, 2_048, 19_999, 20_000, 24_999];
    let beside = chosen
        .iter()
        .flat_map(|index| [all[*index], all[*index] + 1, all[*index] + 9]);
    for before in beside.chain([all[20_000] - 1_000, all[20_000] - 500_000, end]) {
        let wanted = all.iter().rev().find(|at| **at < before).copied();
        let found = replay.last_write(hot, 4, before).expect("a search");
        assert_eq!(found, wanted, "before {before} of {end}");
        assert_eq!(replay.position(), before);
    }
}
