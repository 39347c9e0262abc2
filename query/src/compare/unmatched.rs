//! Rules that excluded nothing: most likely they are misspelled, or the program has changed.

use std::collections::BTreeSet;

use debuginfo::{Glob, short_name};
use store::control::FunctionDef;

use super::rules::{Rules, argument};
use crate::question::suggest;
use crate::session::Session;

/// Most parameters that are named.
const MOST: usize = 8;

/// Says of each rule that matches nothing in either recording what there is near it. `used` are the rules for output that
/// left out a line.
pub fn unmatched(
    rules: &Rules,
    (a, b): (&Session, &Session),
    used: &BTreeSet<usize>,
) -> Vec<String> {
    let functions: Vec<&FunctionDef> = [a, b]
        .into_iter()
        .flat_map(|session| session.definitions().functions())
        .collect();
    let texts = &rules.texts;
    let place = match texts.place.as_str() {
        "" => String::new(),
        place => format!(" in {place}"),
    };
    let note = |list: &str, rule: &str, near: Option<String>| {
        let near = near.map(|near| format!("; {near}")).unwrap_or_default();
        format!("the rule {rule:?} of {list}{place} matched nothing{near}")
    };
    let mut notes = Vec::new();
    for (list, rules) in [
        ("functions", &texts.functions),
        ("inside", &texts.inside),
        ("results", &texts.results),
    ] {
        let rules = rules.iter().filter(|rule| !matches(rule, &functions));
        notes.extend(rules.map(|rule| note(list, rule, near(rule, &functions))));
    }
    for rule in &texts.args {
        let Some((function, arg)) = argument(rule) else {
            continue;
        };
        let glob = Glob::new(function);
        let own = functions
            .iter()
            .filter(|one| glob.matches_function(&one.name));
        let own: Vec<&FunctionDef> = own.copied().collect();
        let params = own.iter().flat_map(|one| &one.params);
        let params: BTreeSet<&str> = params.map(|param| param.name.as_str()).collect();
        if own.is_empty() {
            notes.push(note("args", rule, near(function, &functions)));
        } else if arg != "*" && !params.contains(arg) {
            let has = match params.is_empty() {
                true => format!("{function} has no parameters that are known"),
                false => {
                    let params: Vec<&str> = params.into_iter().take(MOST).collect();
                    format!("parameters of {function}: {}", params.join(", "))
                }
            };
            notes.push(note("args", rule, Some(has)));
        }
    }
    if !rules.ignores_output() {
        let output = texts.output.iter().enumerate();
        let output = output.filter(|(number, _)| !used.contains(number));
        notes.extend(output.map(|(_, rule)| note("output", rule, None)));
    }
    notes
}

fn matches(rule: &str, functions: &[&FunctionDef]) -> bool {
    let glob = Glob::new(rule);
    functions.iter().any(|one| glob.matches_function(&one.name))
}

/// Names functions that are spelled nearly so.
fn near(rule: &str, functions: &[&FunctionDef]) -> Option<String> {
    let names = functions.iter().map(|one| short_name(&one.name));
    let names: BTreeSet<String> = names.collect();
    let near = suggest(rule.trim_matches('*'), names.iter().map(String::as_str));
    (!near.is_empty()).then(|| format!("functions near it: {}", near.join(", ")))
}
