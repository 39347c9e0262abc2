//! Records a program and prints the outcome: `record PROGRAM ARGS`.
use recorder::{Observer, OnFull, RecordOptions, SnapshotTimes, Surroundings, Target};
struct Print;
impl Observer for Print {
    fn setup(&self, message: &str) {
        eprintln!("setup: {message}");
    }
    fn warning(&self, message: &debuginfo::Diagnostic) {
        eprintln!("warning: {message}");
    }
}
fn main() {
    let argv: Vec<_> = std::env::args_os().skip(1).collect();
    let target = match std::env::var("ATTACH") {
        Ok(pid) => Target::Attach {
            pid: pid.parse().expect("ATTACH holds a process id"),
            duration: Some(std::time::Duration::from_secs(2)),
        },
        Err(_) => Target::Spawn { argv },
    };
    let options = RecordOptions {
        output: None,
        include: vec![],
        exclude: vec![],
        on_full: OnFull::Block,
        snapshots: SnapshotTimes::default(),
        keep_log: true,
        max_size: None,
        surroundings: Surroundings::default(),
        captures: recorder::Captures::default(),
        guardian: None,
        labels: Default::default(),
        target,
    };
    match recorder::record(options, &Print) {
        Ok(outcome) => eprintln!("{outcome:?}"),
        Err(error) => {
            eprintln!("error: {error:?}");
            std::process::exit(4)
        }
    }
}
