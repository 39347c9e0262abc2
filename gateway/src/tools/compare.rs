//! `debug_compare`: the differences between two recordings of a program.

use std::collections::BTreeSet;
use std::path::Path;

use query::compare::{Asked, RuleTexts, Rules, Stop};
use schemars::JsonSchema;
use serde::Deserialize;
use server::protocol::{Code, Failure};

use crate::answer::Answer;
use crate::context::{Context, folder, meant};
use crate::recordings;
use crate::tool::{About, Tool};

/// The tool.
pub struct Compare;

/// The parameters of `debug_compare`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// The first recording, A: the run that was right
    a: String,
    /// The second recording, B
    b: String,
    /// List all functions and the calls that differ, too
    #[serde(default)]
    full: bool,
    /// Rank functions by what they did alone, not by whether their code differs
    #[serde(default)]
    no_code: bool,
    /// What is not compared, besides what hindsight.toml in the server's folder names
    #[serde(default)]
    ignore: Ignore,
}

/// What is not compared.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Ignore {
    /// Patterns of functions whose calls are left out: log_*
    functions: Vec<String>,
    /// Patterns of functions whose results are left out
    results: Vec<String>,
    /// FUNCTION:ARGUMENT, or FUNCTION:*
    args: Vec<String>,
    /// Regular expressions: lines of output that are left out
    output: Vec<String>,
    /// output, exit, exceptions or events
    kinds: Vec<String>,
}

/// Most calls that are described, as in the command line's JSON.
const MOST_CALLS: usize = 1_000;

impl Tool for Compare {
    const NAME: &'static str = "debug_compare";
    const DOC: &'static str = "Compare two recordings of a program, of one build or of two: which functions most likely made the difference, where it first shows with the calls around it on both sides, then output, exit and functions that differ. Each claim has its seq in A or B. Addresses, ids, times and moved lines are no difference.";
    const READ_ONLY: bool = true;
    const ABOUT: About = About::Other;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let open = |name: &str| {
            let recordings = &context.gateway.recordings;
            recordings.open(&folder(Path::new(name))?)
        };
        let (a, b) = (open(&args.a)?, open(&args.b)?);
        let asked = Asked {
            rules: rules(args.ignore)?,
            accepted: BTreeSet::new(),
            most_calls: if args.full { MOST_CALLS } else { 0 },
            with_code: !args.no_code,
            stop: Stop::default(),
        };
        let text = context.gateway.recordings.compare(
            context.cancel(),
            (&a, &args.a),
            (&b, &args.b),
            (&asked, args.full),
        )?;
        let answer = Answer::Text(text.to_string());
        let meant = [&args.b, &args.a]
            .into_iter()
            .filter_map(|name| meant(Path::new(name)));
        Ok(meant.fold(answer, Answer::about))
    }
}

/// Reads the rules of the call and of the project.
fn rules(ignore: Ignore) -> Result<Rules, Failure> {
    let own = server::compare_rules(Path::new("."))
        .map_err(|error| Failure::new(Code::Failed, format!("cannot {error}")))?;
    let both = |own: Vec<String>, more: Vec<String>| [own, more].concat();
    let texts = RuleTexts {
        functions: both(own.functions, ignore.functions),
        inside: own.inside,
        results: both(own.results, ignore.results),
        args: both(own.args, ignore.args),
        output: both(own.output, ignore.output),
        kinds: both(own.kinds, ignore.kinds),
        place: format!("ignore or {}", server::PROJECT_FILE),
    };
    Rules::read(&texts).map_err(recordings::failure)
}
