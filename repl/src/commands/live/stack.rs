//! `where`, `backtrace`, `frame`, `up`, `down`, `threads`, `thread`, `source` and `disassemble`: where the program stands.

use std::fmt::Write;

use server::inspect::CodeReport;
use server::location::Target;
use server::verbs::{
    self, BacktraceArgs, BacktraceReply, DisassembleArgs, DownArgs, FrameArgs, FrameReply, Nothing,
    SourceArgs, ThreadArgs, ThreadReport, WhereArgs, WhereReply,
};

use super::Link;
use super::ask::{Common, Patience, ask};
use super::show;
use crate::error::Error;
use crate::render::{Align, Paint, Terminal, escaped};

#[derive(Debug, clap::Args)]
pub struct Where {
    #[command(flatten)]
    common: Common,
    /// Lines before and after [default: 5]
    #[arg(long, value_name = "LINES")]
    context: Option<u32>,
}

impl Where {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        let args = WhereArgs {
            context: self.context,
        };
        ask::<verbs::Where>(&self.common, link, &args, Patience::Answer, |reply| {
            shown_where(reply, terminal)
        })
    }
}

fn shown_where(reply: &WhereReply, terminal: &Terminal) -> String {
    let colour = terminal.stdout_colour;
    let mut text = show::heading(&reply.stop, colour);
    if reply.frame.index > 0 {
        _ = writeln!(text, "{}", show::frame(&reply.frame));
    }
    text.push('\n');
    match (&reply.source, &reply.no_source) {
        (Some(source), _) => text += &show::source(source, colour),
        (None, Some(reason)) => _ = writeln!(text, "No source: {}", escaped(reason)),
        (None, None) => {}
    }
    text.push('\n');
    match (&reply.no_locals, reply.locals.is_empty()) {
        (Some(reason), _) => _ = writeln!(text, "No variables: {}", escaped(reason)),
        (None, true) => text += "No variables are known here.\n",
        (None, false) => {
            text += "Locals:\n";
            text += &show::variables(&reply.locals, terminal);
        }
    }
    if !reply.stop.displays.is_empty() {
        text.push('\n');
        text += &show::displays(&reply.stop.displays);
    }
    text
}

#[derive(Debug, clap::Args)]
pub struct Backtrace {
    #[command(flatten)]
    common: Common,
    /// All variables of each frame
    #[arg(long)]
    locals: bool,
    /// At most so many frames [default: 100]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Of this thread
    #[arg(long, value_name = "THREAD")]
    thread: Option<i32>,
    /// Of all stopped threads
    #[arg(long)]
    all: bool,
}

impl Backtrace {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        let args = BacktraceArgs {
            limit: self.limit,
            locals: self.locals,
            thread: self.thread,
            all: self.all,
        };
        let patience = Patience::Answer;
        ask::<verbs::Backtrace>(&self.common, link, &args, patience, |reply| {
            stacks(reply, terminal)
        })
    }
}

fn stacks(reply: &BacktraceReply, terminal: &Terminal) -> String {
    let mut text = String::new();
    for thread in &reply.threads {
        if reply.threads.len() > 1 {
            let heading = format!("Thread {}", thread.thread);
            _ = writeln!(
                text,
                "{}",
                terminal.stdout_colour.paint(Paint::Heading, heading)
            );
        }
        for frame in &thread.stack.frames {
            if frame.after_gap {
                text += "       (calls that were not recorded may lie between)\n";
            }
            _ = writeln!(text, "{}", show::frame(frame));
            for local in frame.locals.iter().flatten() {
                let line = format!("{} = {}", local.name, show::shown(&local.shown));
                _ = writeln!(text, "        {}", escaped(&line));
            }
        }
        if thread.stack.more {
            text += "  (more frames follow: --limit)\n";
        }
        if let Some(end) = &thread.stack.end {
            _ = writeln!(text, "  (the rest is not known: {})", escaped(end));
        }
    }
    text
}

fn shown_frame(reply: &FrameReply, terminal: &Terminal) -> String {
    let mut text = show::frame(&reply.frame) + "\n";
    if let (Some(source), Some(line)) = (&reply.source_line, reply.frame.line) {
        let arrow = terminal.stdout_colour.paint(Paint::Prompt, "->");
        _ = writeln!(text, "{arrow} {line:>5} | {}", show::code(source));
    }
    text
}

#[derive(Debug, clap::Args)]
pub struct Frame {
    #[command(flatten)]
    common: Common,
    /// Its number; 0 is the innermost
    #[arg(value_name = "N")]
    index: Option<usize>,
}

impl Frame {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        let args = FrameArgs { index: self.index };
        ask::<verbs::Frame>(&self.common, link, &args, Patience::Answer, |reply| {
            shown_frame(reply, terminal)
        })
    }
}

#[derive(Debug, clap::Args)]
pub struct Up {
    #[command(flatten)]
    common: Common,
    /// How many frames
    count: Option<usize>,
}

impl Up {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        let args = DownArgs { count: self.count };
        ask::<verbs::Up>(&self.common, link, &args, Patience::Answer, |reply| {
            shown_frame(reply, terminal)
        })
    }
}

#[derive(Debug, clap::Args)]
pub struct Down {
    #[command(flatten)]
    common: Common,
    /// How many frames
    count: Option<usize>,
}

impl Down {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        let args = DownArgs { count: self.count };
        ask::<verbs::Down>(&self.common, link, &args, Patience::Answer, |reply| {
            shown_frame(reply, terminal)
        })
    }
}

#[derive(Debug, clap::Args)]
pub struct Threads {
    #[command(flatten)]
    common: Common,
}

impl Threads {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        let patience = Patience::Answer;
        ask::<verbs::Threads>(&self.common, link, &Nothing {}, patience, |reply| {
            threads(&reply.threads, terminal)
        })
    }
}

fn threads(threads: &[ThreadReport], terminal: &Terminal) -> String {
    let row = |thread: &ThreadReport| {
        let mark = if thread.selected { "* " } else { "" };
        let place = thread.place.as_ref().map(show::place);
        vec![
            Some(format!("{mark}{}", thread.thread)),
            Some(thread.name.clone()),
            Some(format!("{:?}", thread.state).to_lowercase()),
            Some(place.unwrap_or_default()),
        ]
    };
    let headings = [
        ("ID", Align::Right),
        ("Name", Align::Left),
        ("State", Align::Left),
        ("Location", Align::Left),
    ];
    show::table(&headings, threads.iter().map(row).collect(), terminal)
}

#[derive(Debug, clap::Args)]
pub struct Thread {
    #[command(flatten)]
    common: Common,
    /// Its number
    #[arg(value_name = "ID")]
    thread: Option<i32>,
}

impl Thread {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        let args = ThreadArgs {
            thread: self.thread,
        };
        ask::<verbs::Thread>(&self.common, link, &args, Patience::Answer, |reply| {
            threads(std::slice::from_ref(reply), terminal)
        })
    }
}

#[derive(Debug, clap::Args)]
pub struct Source {
    #[command(flatten)]
    common: Common,
    /// file:line or a function [default: where the frame stands]
    #[arg(value_name = "LOCATION")]
    at: Option<String>,
    /// Lines before and after [default: 5]
    #[arg(long, value_name = "LINES")]
    context: Option<u32>,
    /// The whole function
    #[arg(long)]
    function: bool,
}

impl Source {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        let args = SourceArgs {
            at: self.at.clone().map(Target::Text),
            context: self.context,
            function: self.function,
        };
        ask::<verbs::Source>(&self.common, link, &args, Patience::Answer, |reply| {
            show::source(reply, terminal.stdout_colour)
        })
    }
}

#[derive(Debug, clap::Args)]
pub struct Disassemble {
    #[command(flatten)]
    common: Common,
    /// A function or an address [default: where the frame stands]
    #[arg(value_name = "LOCATION")]
    at: Option<String>,
    /// So many instructions [default: the whole function]
    #[arg(long, value_name = "N")]
    count: Option<usize>,
    /// With the source lines between
    #[arg(long)]
    source: bool,
}

impl Disassemble {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        let args = DisassembleArgs {
            at: self.at.clone(),
            count: self.count,
            source: self.source,
        };
        let patience = Patience::Answer;
        ask::<verbs::Disassemble>(&self.common, link, &args, patience, |reply| {
            instructions(reply, terminal)
        })
    }
}

fn instructions(report: &CodeReport, terminal: &Terminal) -> String {
    let mut text = String::new();
    for instruction in &report.instructions {
        if let (Some(source), Some(line)) = (&instruction.source, instruction.line) {
            let line = format!("   {line:>5} | {}", show::code(source));
            _ = writeln!(text, "{}", terminal.stdout_colour.paint(Paint::Dim, line));
        }
        let arrow = if instruction.is_current { "->" } else { "  " };
        let arrow = terminal.stdout_colour.paint(Paint::Prompt, arrow);
        let symbol = instruction.symbol.as_ref();
        let symbol = symbol.map(|name| format!(" <{}>", escaped(name)));
        let target = instruction.target.as_ref();
        let target = target.map(|name| format!("  <{name}>")).unwrap_or_default();
        _ = writeln!(
            text,
            "{arrow} {}{}  {}{}",
            instruction.address,
            symbol.unwrap_or_default(),
            escaped(&instruction.text),
            escaped(&target)
        );
    }
    text
}
