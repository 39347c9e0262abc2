//! What a recording's user should know of its probes: conditions and messages that failed.

use server::quantity::count;

use crate::ask::Asker;
use crate::render::escaped;

/// Probes that failed, each with its number of failures and the first one.
const FAILED: &str = "select kind, condition, count(*), min(seq), first_value(why order by seq) from \
    (select seq, kind, probe, case kind when 'logpoint' then null else aux end as condition, \
    case kind when 'logpoint' then aux else text end as why from events \
    where kind = 'condition_error' or kind = 'logpoint' and aux is not null) \
    group by kind, probe, condition order by min(seq)";

/// Returns a sentence for each condition or message that failed.
pub fn sentences(asker: &mut Asker) -> Vec<String> {
    let rows = asker.texts(FAILED).unwrap_or_default();
    rows.into_iter().filter_map(sentence).collect()
}

fn sentence(row: Vec<Option<String>>) -> Option<String> {
    let [kind, condition, times, first, why] = <[Option<String>; 5]>::try_from(row).ok()?;
    let times = count(times?.parse().ok()?, "time");
    let (first, why) = (first?, escaped(&why?).into_owned());
    Some(match (kind?.as_str(), condition) {
        ("condition_error", Some(condition)) => format!(
            "the condition {} failed {times}, first at event {first}: {why}",
            escaped(&condition)
        ),
        ("condition_error", None) => {
            format!("a condition failed {times}, first at event {first}: {why}")
        }
        _ => format!("a logpoint's message failed {times}, first at event {first}: {why}"),
    })
}
