//! Logs what readers need before the first record of a function: the process, modules, functions.

use debuginfo::Diagnostic;
use store::control::Control;

use super::Session;
use crate::{
    Observer, Result,
    arm::{
        is_system_call,
        patch::{Plan, Prepared},
    },
    clock,
};

impl Session {
    /// Logs what is known before the first record: the process, its modules, its functions.
    pub(super) fn log_start(&mut self, prepared: Vec<Prepared>, plan: &Plan) -> Result<()> {
        let ticks = clock::ticks();
        let start = Control::ProcessStart {
            ticks,
            pid: self.target.pid as u32,
            argv: self.target.argv.clone(),
            exe: self.target.exe.to_string_lossy().into_owned(),
            cwd: self.target.cwd.clone(),
            attached: !self.target.spawned,
        };
        self.writing.log.append_control(&start)?;
        let numbers: Vec<u32> = self
            .arming
            .modules
            .loaded
            .iter()
            .map(|module| module.number)
            .collect();
        self.log_modules(&numbers)?;
        self.log_probes(
            prepared
                .into_iter()
                .flat_map(|prepared| prepared.skipped)
                .collect(),
            plan,
        )
    }

    pub(super) fn log_modules(&mut self, numbers: &[u32]) -> Result<()> {
        for number in numbers {
            let Some(module) = self.arming.modules.by_number(*number) else {
                continue;
            };
            let load = Control::ModuleLoad {
                ticks: clock::ticks(),
                module: module.number,
                path: module.file.path.to_string_lossy().into_owned(),
                build_id: module
                    .elf
                    .as_ref()
                    .and_then(|elf| elf.build_id())
                    .map(str::to_owned),
                addr: module.file.range.start,
                size: module.extent().end - module.file.range.start,
                system: module.is_system,
            };
            self.writing.log.append_control(&load)?;
            if let Some(problem) = &module.problem {
                let message = format!("{} is not traced: {problem}", module.file.path.display());
                self.note_warning(message)?;
            }
        }
        Ok(())
    }

    /// Shows a warning to the user, and writes it to the log.
    pub(super) fn warn(&mut self, warning: &Diagnostic, observer: &dyn Observer) -> Result<()> {
        observer.warning(warning);
        self.note_warning(warning.one_line())
    }

    pub(super) fn note_warning(&mut self, message: String) -> Result<()> {
        let ticks = clock::ticks();
        let warning = Control::Warning { ticks, message };
        Ok(self.writing.log.append_control(&warning)?)
    }

    pub(super) fn log_probes(&mut self, skipped: Vec<Control>, plan: &Plan) -> Result<()> {
        let functions = skipped.iter().filter(|skipped| !is_system_call(skipped));
        self.so_far.skipped += functions.count() as u64;
        self.so_far.armed += plan.functions.len() as u64;
        for control in &skipped {
            self.writing.log.append_control(control)?;
        }
        for message in &plan.warnings {
            self.note_warning(message.clone())?;
        }
        for function in &plan.functions {
            self.writing
                .log
                .append_control(&Control::Function(function.clone()))?;
        }
        Ok(())
    }

    pub(super) fn note_changed(&mut self, changed: Vec<u64>) -> Result<()> {
        if changed.is_empty() {
            return Ok(());
        }
        let message = match changed.len() {
            1 => "1 function is not recorded: its code in memory is not the file's".to_owned(),
            many => {
                format!("{many} functions are not recorded: their code in memory is not the file's")
            }
        };
        self.note_warning(message)
    }
}
