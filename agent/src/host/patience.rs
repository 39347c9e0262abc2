//! Waits for other processes. Time in which one of their threads could run but had no processor does not count: on a
//! busy machine a request takes longer, and is not stuck.

use std::{
    collections::HashMap,
    fs,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

/// How often is looked how the processes fare.
const SLICE: Duration = Duration::from_millis(100);

/// How many times as long a wait becomes at most. Of a program with many busy threads, one always waits.
const MOST_TIMES: u32 = 8;

/// A wait for an answer.
pub(super) struct Patience {
    /// How much longer to wait, if all threads have the processors they need.
    left: Duration,
    threads: Threads,
}

impl Patience {
    /// Begins to wait for what these processes do.
    pub fn new(left: Duration, processes: &[i32]) -> Patience {
        Patience {
            left,
            threads: Threads::of(processes),
        }
    }

    /// Returns the next answer; `Timeout` once the processes had enough time for it.
    pub fn wait<T>(&mut self, answers: &Receiver<T>) -> Result<T, RecvTimeoutError> {
        loop {
            let since = Instant::now();
            match answers.recv_timeout(self.left.min(SLICE)) {
                Err(RecvTimeoutError::Timeout) => {}
                answered => return answered,
            }
            if !self.goes_on(since.elapsed()) {
                return Err(RecvTimeoutError::Timeout);
            }
        }
    }

    /// Returns whether to wait on after `passed` more.
    pub fn goes_on(&mut self, passed: Duration) -> bool {
        let waited = self.threads.waited(passed);
        self.pass(passed, waited)
    }

    /// Takes `passed` off, of which a thread has `waited` for a processor.
    fn pass(&mut self, passed: Duration, waited: Duration) -> bool {
        let least = passed / MOST_TIMES;
        let counts = passed.saturating_sub(waited).max(least);
        self.left = self.left.saturating_sub(counts);
        !self.left.is_zero()
    }
}

/// What the scheduler has done with a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheduled {
    /// How long it has run.
    ran: Duration,
    /// How long it has waited for a processor.
    waited: Duration,
    /// It runs, or could run.
    is_ready: bool,
}

impl Scheduled {
    /// Reads it (proc(5), schedstat and stat); `None`: the thread has ended, or the kernel does not count.
    fn of(task: &std::path::Path) -> Option<Scheduled> {
        let counts = fs::read_to_string(task.join("schedstat")).ok()?;
        let stat = fs::read_to_string(task.join("stat")).ok()?;
        Scheduled::read(&counts, &stat)
    }

    fn read(counts: &str, stat: &str) -> Option<Scheduled> {
        let mut counts = counts.split_whitespace().map(str::parse);
        let (Some(Ok(ran)), Some(Ok(waited))) = (counts.next(), counts.next()) else {
            return None;
        };
        // The thread's name may contain anything.
        let (_, after_name) = stat.rsplit_once(')')?;
        Some(Scheduled {
            ran: Duration::from_nanos(ran),
            waited: Duration::from_nanos(waited),
            is_ready: after_name.trim_start().starts_with('R'),
        })
    }

    /// Returns how long it has waited for a processor in the last `passed`.
    fn since(&self, before: &Scheduled, passed: Duration) -> Duration {
        // The kernel adds a wait when it is over.
        if self.is_ready && self.ran == before.ran && self.waited == before.waited {
            return passed;
        }
        self.waited.saturating_sub(before.waited).min(passed)
    }
}

/// The threads of some processes.
struct Threads {
    processes: Vec<i32>,
    seen: HashMap<std::path::PathBuf, Scheduled>,
}

impl Threads {
    fn of(processes: &[i32]) -> Threads {
        let processes = processes.to_vec();
        let seen = scheduled(&processes);
        Threads { processes, seen }
    }

    /// Returns how long the thread that fared worst has waited for a processor in the last `passed`.
    fn waited(&mut self, passed: Duration) -> Duration {
        let now = scheduled(&self.processes);
        let waits = now.iter().filter_map(|(task, now)| {
            let before = self.seen.get(task)?;
            Some(now.since(before, passed))
        });
        let longest = waits.max().unwrap_or_default();
        self.seen = now;
        longest
    }
}

fn scheduled(processes: &[i32]) -> HashMap<std::path::PathBuf, Scheduled> {
    let folders = processes.iter().flat_map(|pid| {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"));
        tasks.into_iter().flatten().flatten()
    });
    let tasks = folders.map(|entry| entry.path());
    tasks
        .filter_map(|task| Some((task.clone(), Scheduled::of(&task)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn scheduled(ran: u64, waited: u64, state: &str) -> Scheduled {
        let counts = format!("{} {} 7\n", ran * 1_000_000, waited * 1_000_000);
        Scheduled::read(&counts, &format!("12 (a) b) {state} 1 12")).unwrap()
    }

    #[test]
    fn a_thread_waits_for_a_processor_while_it_could_run() {
        let before = scheduled(10, 50, "R");
        assert!(before.is_ready);
        assert_eq!(scheduled(10, 50, "R").since(&before, ms(100)), ms(100));
        assert_eq!(scheduled(10, 50, "S").since(&before, ms(100)), ms(0));
        assert_eq!(scheduled(40, 120, "R").since(&before, ms(100)), ms(70));
        assert_eq!(scheduled(40, 120, "S").since(&before, ms(100)), ms(70));
        // It had waited since before the last look.
        assert_eq!(scheduled(11, 950, "R").since(&before, ms(100)), ms(100));
        assert_eq!(scheduled(110, 50, "R").since(&before, ms(100)), ms(0));
    }

    #[test]
    fn patience_ends_with_processes_that_wait_for_nothing() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let mut patience = Patience::new(ms(250), &[child.id() as i32]);
        let (_send, answers) = mpsc::channel::<()>();
        let answer = patience.wait(&answers);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(answer, Err(RecvTimeoutError::Timeout));
    }

    #[test]
    fn time_without_a_processor_counts_an_eighth_at_most() {
        let rounds = |waited| {
            let mut patience = Patience::new(ms(100), &[]);
            let mut count = 1;
            while patience.pass(ms(10), waited) {
                count += 1;
            }
            count
        };
        assert_eq!(rounds(ms(0)), 10);
        assert_eq!(rounds(ms(5)), 20);
        assert_eq!(rounds(ms(10)), 80);
    }

    #[test]
    fn threads_of_a_process_are_read() {
        let own = std::process::id() as i32;
        let mut threads = Threads::of(&[own]);
        assert!(!threads.seen.is_empty());
        assert!(threads.waited(ms(10)) <= ms(10));
    }
}
