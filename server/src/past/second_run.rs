//! Commands that would tell more of a value in a second run of a recording's program.

use recorder::live::MAX_LOGGED_LEN;
use replay::CallHead;
use replay::history::HistoryScope;
use store::shell::{quoted, word};

use super::{Past, Position};

impl Past {
    /// Returns the command that tells which instructions write a value; `None` if no program can be run again.
    ///
    /// A global variable that the processor's watchpoints can hold needs no more than they do, nor does what global pointers lead to,
    /// or a local variable that has a place in memory in each call. Anything else needs every instruction.
    pub(super) fn how_to_log(&self, expression: &str, here: Position) -> Option<String> {
        let can_be_logged =
            self.can_be_watched(expression, here) || self.can_be_followed(expression, here);
        let logged = match can_be_logged {
            true => Some(expression.to_owned()),
            false => self.in_each_call(expression, here),
        };
        let logged = logged.filter(|logged| !self.was_logged(logged));
        match logged {
            Some(logged) => {
                let option = format!("--log-writes {}", quoted(&logged));
                Some(self.again_with(&option))
            }
            None => self.again_in_full(expression),
        }
    }

    /// Returns the name of a local variable under which each call logs it; `None` if none does.
    pub(super) fn in_each_call(&self, expression: &str, here: Position) -> Option<String> {
        let tracked = self.tracked_at(expression, here).ok()?;
        let HistoryScope::Within(functions) = tracked.scope() else {
            return None;
        };
        let name = match expr::path_of(expression) {
            Some(_) => expression.to_owned(),
            None => format!(
                "{}::{expression}",
                debuginfo::short_name(functions.name.trim_start_matches("*::"))
            ),
        };
        let space = self.timeline.modules().space(here.seq);
        recorder::live::tells_writes_in_calls(&name, &space).then_some(name)
    }

    /// Returns whether the recording was made with this place as one whose writes are logged.
    pub(super) fn was_logged(&self, place: &str) -> bool {
        let settings = &self.timeline.recording().manifest().settings;
        settings.log_writes.iter().any(|logged| logged == place)
    }

    /// Returns whether the recording was made with this expression as one whose value is captured.
    pub(super) fn was_watched(&self, expression: &str) -> bool {
        let settings = &self.timeline.recording().manifest().settings;
        let mut captures = settings.captures.iter();
        captures.any(|capture| capture.strip_prefix("watch ") == Some(expression))
    }

    /// Returns the commands that record every instruction and ask that recording.
    pub(super) fn again_in_full(&self, expression: &str) -> Option<String> {
        let can_run = !self.timeline.is_core() && !self.timeline.has_every_instruction();
        // Only writes to memory can be found.
        let is_register = expression.trim_start().starts_with('$');
        (can_run && !is_register).then(|| {
            let path = self.path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = word(&format!("{stem}-full"));
            // The program may fail, so the second command does not depend on the first.
            format!(
                "{}; hindsight last-write {name} {}",
                self.again_with(&format!("--full -o {name}")),
                quoted(expression)
            )
        })
    }

    /// Returns how every line of a call can be seen: in a second run, or here if every instruction is recorded; `None` for a core
    /// file.
    pub(super) fn each_line_of(&self, call: &CallHead) -> Option<String> {
        let function = self.timeline.short_name(call);
        if self.timeline.is_core() {
            return None;
        }
        if self.timeline.has_every_instruction() {
            let name = self.name_for_shell();
            return Some(format!(
                "hindsight repl {name}, then: goto {}, and next through the lines of {function}",
                call.start
            ));
        }
        Some(format!(
            "{}, then in that recording: next through the lines of {function}",
            self.again_with("--full")
        ))
    }

    /// Returns the command that runs the program again with an option.
    fn again_with(&self, option: &str) -> String {
        let manifest = self.timeline.recording().manifest();
        if manifest.launch.is_none() {
            let argv: Vec<String> = manifest.argv.iter().map(|part| word(part)).collect();
            return format!("hindsight record {option} {}", argv.join(" "));
        }
        format!("hindsight rerun {} {option}", self.name_for_shell())
    }

    /// Returns the recording's name for a command line.
    fn name_for_shell(&self) -> String {
        let name = self.path();
        let name = name
            .strip_prefix(&self.folder)
            .unwrap_or(&name)
            .with_extension("");
        word(&name.to_string_lossy())
    }

    /// Whether global pointers lead to an expression, and watchpoints have room for them and for what they lead to.
    fn can_be_followed(&self, expression: &str, here: Position) -> bool {
        let tracked = self.tracked_at(expression, here);
        let is_global = tracked.is_ok_and(|tracked| tracked.scope() == &HistoryScope::Everywhere);
        let follows = self.look_at(here, 1, |looked| {
            let view = looked.view();
            Ok(recorder::live::follows(
                expression,
                view.space,
                view.machine,
            ))
        });
        is_global && follows.unwrap_or(false)
    }

    /// Whether an expression is a global variable that watchpoints have room for.
    fn can_be_watched(&self, expression: &str, here: Position) -> bool {
        let tracked = self.tracked_at(expression, here);
        let is_global = tracked.is_ok_and(|tracked| tracked.scope() == &HistoryScope::Everywhere);
        is_global
            && self.global_place(expression, here).is_some_and(|place| {
                // Watchpoints are aligned words.
                let watched = place.address % 8 + place.len;
                let has_room = place.len > 0 && watched <= MAX_LOGGED_LEN;
                has_room && self.timeline.modules().covers(place.address, here.seq)
            })
    }
}
