//! Conditions and messages, evaluated in a stopped thread.

use std::time::Duration;

use debuginfo::{
    RenderOptions, backtrace,
    expr::{self, Context, ParseError, Part, Template},
};

use super::{
    error::{LiveError, LiveResult},
    limit::Limit,
    machine::LiveMachine,
    model::{Action, ProbeSpec, Tid},
    script::Script,
    tracer::Tracer,
};

/// Frames that an expression may need: its own, and the caller's for values that only that one still knows.
const FRAMES: usize = 2;
/// How long a condition, a message or a displayed value may take.
const JUDGE_TIME: Duration = Duration::from_secs(1);

impl Tracer {
    /// Refuses conditions and templates that cannot be understood. Returns the condition if it is JavaScript.
    pub fn check_expressions(&mut self, spec: &ProbeSpec) -> LiveResult<Option<Script>> {
        if let Action::Log { template } = &spec.action {
            Template::parse(template).map_err(misunderstood("Message"))?;
        }
        let Some(condition) = &spec.condition else {
            return Ok(None);
        };
        let understood = self.scripts.understand(condition);
        understood.map_err(misunderstood("Condition expression"))
    }

    /// Tells whether a condition is true in a thread.
    pub fn evaluate_condition(&self, tid: Tid, condition: &str) -> Result<bool, String> {
        // Most need no caller, and finding it takes as long as all the rest.
        let alone = self.evaluate_with(tid, condition, 1);
        alone.or_else(|_| self.evaluate_with(tid, condition, FRAMES))
    }

    fn evaluate_with(&self, tid: Tid, condition: &str, frames: usize) -> Result<bool, String> {
        self.in_frames(tid, frames, |context| {
            let is_type = |name: &str| expr::is_type(name, context);
            let parsed =
                expr::parse_with(condition, &is_type).map_err(|error| error.to_string())?;
            let holds = expr::evaluate_condition(&parsed, context);
            holds
                .map(|(holds, _)| holds)
                .map_err(|error| error.to_string())
        })?
    }

    /// As [`evaluate_condition`](Self::evaluate_condition), for a watched place: whoever wrote there need not know the names
    /// that the condition uses, so that the frames around it are asked too.
    pub fn evaluate_outwards(&self, tid: Tid, condition: &str) -> Result<bool, String> {
        const MOST_FRAMES: usize = 32;
        let machine = self.judged_machine(tid)?;
        let space = self.space_now();
        let frames = backtrace(&space, &machine, MOST_FRAMES).frames;
        let mut first = None;
        for index in 0..frames.len() {
            let context = Context {
                space: &space,
                machine: &machine,
                frames: &frames,
                index,
                calls: None,
            };
            let is_type = |name: &str| expr::is_type(name, &context);
            let parsed =
                expr::parse_with(condition, &is_type).map_err(|error| error.to_string())?;
            match expr::evaluate_condition(&parsed, &context) {
                Ok((holds, _)) => return Ok(holds),
                Err(error) => first = first.or(Some(error.to_string())),
            }
        }
        Err(first.unwrap_or_else(|| "the thread has no frame".to_owned()))
    }

    /// Puts values into a message. A part that has none says why.
    pub fn fill_in(&self, tid: Tid, template: &str) -> (String, Vec<(String, String)>) {
        let filled = self.in_context(tid, |context| {
            let is_type = |name: &str| expr::is_type(name, context);
            let parsed = Template::parse_with(template, &is_type)?;
            let options = RenderOptions::default();
            let message = parsed.render(context, &options);
            let values = parsed.parts.iter().filter_map(|part| match part {
                Part::Text(_) => None,
                Part::Value { source, .. } => {
                    let alone = Template {
                        parts: vec![part.clone()],
                    };
                    Some((source.clone(), alone.render(context, &options)))
                }
            });
            Ok::<_, ParseError>((message, values.collect()))
        });
        match filled {
            Ok(Ok(filled)) => filled,
            Ok(Err(error)) => (format!("<error: {error}>"), Vec::new()),
            Err(error) => (format!("<error: {error}>"), Vec::new()),
        }
    }

    pub(super) fn in_context<R>(
        &self,
        tid: Tid,
        work: impl FnOnce(&Context<'_>) -> R,
    ) -> Result<R, String> {
        self.in_frames(tid, FRAMES, work)
    }

    /// Returns a thread whose memory is read for a while only: nobody is served meanwhile.
    fn judged_machine(&self, tid: Tid) -> Result<LiveMachine, String> {
        let machine = self.machine(tid).map_err(|error| error.to_string())?;
        Ok(machine.limited(Limit::new(JUDGE_TIME)))
    }

    fn in_frames<R>(
        &self,
        tid: Tid,
        most: usize,
        work: impl FnOnce(&Context<'_>) -> R,
    ) -> Result<R, String> {
        let machine = self.judged_machine(tid)?;
        let space = self.space_now();
        let frames = backtrace(&space, &machine, most).frames;
        Ok(work(&Context {
            space: &space,
            machine: &machine,
            frames: &frames,
            index: 0,
            calls: None,
        }))
    }
}

pub(super) fn misunderstood(what: &'static str) -> impl Fn(ParseError) -> LiveError {
    move |error| LiveError::Expression {
        position: error.position,
        message: format!("{what} has syntax error: {}", error.message),
    }
}
