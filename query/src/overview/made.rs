//! Calls that a debugger had a stopped thread make: they say nothing of the program, and the thread stands where it stood.

/// What a resumption says if the thread makes a call for the debugger.
const CALL: &str = "call ";
/// A query excludes at most so many stretches of calls.
const MOST: usize = 256;

/// A stretch of events in which a thread makes such calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    tid: u32,
    from: u64,
    /// The event at which the thread goes on by itself.
    until: u64,
}

/// All of them, in the order of their beginnings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    all: Vec<Stretch>,
}

/// Returns whether a thread was let go to make a call for the debugger.
pub fn is_made(action: Option<&str>) -> bool {
    action.is_some_and(|action| action.starts_with(CALL))
}

impl Made {
    /// A thread makes a call from an event on.
    pub fn begin(&mut self, tid: u32, seq: u64) {
        if !self.has(tid, seq) {
            self.all.push(Stretch {
                tid,
                from: seq,
                until: u64::MAX,
            });
        }
    }

    /// A thread goes on by itself.
    pub fn end(&mut self, tid: u32, seq: u64) {
        let mut last = self.all.iter_mut().rev();
        if let Some(stretch) = last.find(|stretch| stretch.tid == tid) {
            stretch.until = stretch.until.min(seq);
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns whether the call of a thread that began with an event is one of them.
    pub fn has(&self, tid: u32, seq: u64) -> bool {
        let begun = self.all.partition_point(|stretch| stretch.from <= seq);
        let mut last = self.all[..begun].iter().rev();
        let own = last.find(|stretch| stretch.tid == tid);
        own.is_some_and(|stretch| seq < stretch.until)
    }

    /// Returns the condition that a row of `calls` is none of them.
    pub fn excluded(&self) -> String {
        let stretches = self.all.iter().take(MOST).map(|stretch| {
            let Stretch { tid, from, until } = stretch;
            let until = i64::try_from(*until).unwrap_or(i64::MAX);
            format!(" and not (tid = {tid} and start_seq between {from} and {until})")
        });
        format!("true{}", stretches.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_the_debuggers_until_the_thread_goes_on() {
        let mut made = Made::default();
        assert!(made.is_empty() && !made.has(1, 5));
        assert_eq!(made.excluded(), "true");
        made.begin(1, 10);
        made.begin(2, 12);
        made.begin(1, 14);
        made.end(1, 20);
        made.end(3, 21);
        made.begin(1, 30);
        for (tid, seq, expected) in [
            (1, 9, false),
            (1, 11, true),
            (1, 19, true),
            (1, 20, false),
            (1, 31, true),
            (2, 11, false),
            (2, 40, true),
            (3, 15, false),
        ] {
            assert_eq!(made.has(tid, seq), expected, "{tid} {seq}");
        }
        assert_eq!(
            made.excluded(),
            "true and not (tid = 1 and start_seq between 10 and 20) \
             and not (tid = 2 and start_seq between 12 and 9223372036854775807) \
             and not (tid = 1 and start_seq between 30 and 9223372036854775807)"
        );
    }

    #[test]
    fn only_calls_are_made_for_the_debugger() {
        assert!(is_made(Some("call 0x401136")));
        assert!(!is_made(Some("continue")) && !is_made(None));
    }
}
