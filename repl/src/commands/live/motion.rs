//! `continue`, `next`, `step`, `finish`, `until`, `pause` and `await`: each returns when something stops, or says that
//! nothing did in the time given.

use server::location::Target;
use server::session::MotionReport;
use server::verbs::{
    self, AwaitArgs, ContinueArgs, Nothing, StepArgs, TimeoutArgs, UntilArgs, Verb,
};

use super::Link;
use super::ask::{Common, Patience, ask};
use super::show;
use crate::duration;
use crate::error::Error;

/// What all of them take.
#[derive(Debug, clap::Args)]
struct Waiting {
    #[command(flatten)]
    common: Common,
    /// How long to wait for a stop [default: await_default_secs of the configuration, 300]
    #[arg(long, value_name = "SECONDS", value_parser = duration::seconds)]
    timeout: Option<f64>,
}

impl Waiting {
    fn run<V: Verb<Reply = MotionReport>>(&self, link: &Link, args: &V::Args) -> Result<u8, Error> {
        let terminal = link.terminal();
        ask::<V>(
            &self.common,
            link,
            args,
            Patience::Stop(self.timeout),
            |reply| show::motion(reply, terminal.stdout_colour),
        )
    }
}

#[derive(Debug, clap::Args)]
pub struct Continue {
    #[command(flatten)]
    waiting: Waiting,
    /// Also the threads whose stops were not shown yet
    #[arg(long, conflicts_with = "thread")]
    all: bool,
    /// Only the current thread; the others stay stopped
    #[arg(long)]
    thread: bool,
    /// Return at once
    #[arg(long)]
    no_wait: bool,
}

impl Continue {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let args = ContinueArgs {
            thread_only: self.thread,
            all: self.all,
            no_wait: self.no_wait,
            timeout_secs: self.waiting.timeout,
        };
        self.waiting.run::<verbs::Continue>(link, &args)
    }
}

/// What steps take.
#[derive(Debug, clap::Args)]
struct Steps {
    #[command(flatten)]
    waiting: Waiting,
    /// How many steps
    #[arg(value_name = "COUNT")]
    count: Option<u32>,
    /// Machine instructions instead of lines
    #[arg(short, long)]
    instruction: bool,
}

impl Steps {
    fn args(&self) -> StepArgs {
        StepArgs {
            count: self.count,
            instruction: self.instruction,
            timeout_secs: self.waiting.timeout,
        }
    }
}

#[derive(Debug, clap::Args)]
pub struct Next {
    #[command(flatten)]
    steps: Steps,
}

impl Next {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        self.steps
            .waiting
            .run::<verbs::Next>(link, &self.steps.args())
    }
}

#[derive(Debug, clap::Args)]
pub struct Step {
    #[command(flatten)]
    steps: Steps,
}

impl Step {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        self.steps
            .waiting
            .run::<verbs::Step>(link, &self.steps.args())
    }
}

#[derive(Debug, clap::Args)]
pub struct Finish {
    #[command(flatten)]
    waiting: Waiting,
}

impl Finish {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let args = TimeoutArgs {
            timeout_secs: self.waiting.timeout,
        };
        self.waiting.run::<verbs::Finish>(link, &args)
    }
}

#[derive(Debug, clap::Args)]
pub struct Until {
    #[command(flatten)]
    waiting: Waiting,
    /// function, file:line or 0xADDRESS
    #[arg(value_name = "LOCATION")]
    at: String,
}

impl Until {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let args = UntilArgs {
            at: Target::Text(self.at.clone()),
            timeout_secs: self.waiting.timeout,
        };
        self.waiting.run::<verbs::Until>(link, &args)
    }
}

#[derive(Debug, clap::Args)]
pub struct Pause {
    #[command(flatten)]
    common: Common,
}

impl Pause {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        ask::<verbs::Pause>(&self.common, link, &Nothing {}, Patience::Answer, |reply| {
            show::motion(reply, terminal.stdout_colour)
        })
    }
}

#[derive(Debug, clap::Args)]
pub struct Await {
    #[command(flatten)]
    waiting: Waiting,
    /// Only a stop with a greater number counts
    #[arg(long, value_name = "STOP")]
    after: Option<u64>,
}

impl Await {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let args = AwaitArgs {
            after: self.after,
            timeout_secs: self.waiting.timeout,
        };
        self.waiting.run::<verbs::Await>(link, &args)
    }
}
