//! Breakpoints and watches of a recording, in the shape of those of a program. The daemon knows them by numbers of functions, or by
//! addresses if every instruction was recorded.

use serde_json::{Map, Value, json};
use server::inspect::short_name;
use server::location::{AddressTarget, Target};
use server::past::{Break, WatchLine};
use server::protocol::Failure;
use server::verbs::{InfoLine, InfoLineArgs, InfoSymbol, InfoSymbolArgs, Nothing, Position};

use crate::answer::object;
use crate::context::Context;
use crate::recordings;
use crate::shape::{put_places, unless_nothing};

/// So many places of a breakpoint are shown. The name of a common function may have hundreds.
const MOST_PLACES: usize = 5;
/// The lines of more breakpoints are not looked up.
const MOST_LOOKED_UP: usize = 20;

/// Describes breakpoints.
///
/// # Errors
/// The daemon cannot be reached, or the recording cannot be read.
pub fn breaks(
    context: &Context,
    session: Option<u32>,
    breaks: &[Break],
) -> Result<Vec<Value>, Failure> {
    let are_many = breaks.len() > MOST_LOOKED_UP;
    let place = |address: String| match are_many {
        true => bare(&address),
        false => at_address(context, session, address),
    };
    let mut all = Vec::new();
    for at in breaks {
        let places = match at.addresses.is_empty() {
            true => of_functions(context, session, at)?,
            false => addresses(at).map(place).collect(),
        };
        all.push(described(at, places));
    }
    Ok(all)
}

/// Describes a watch.
pub fn watch(watch: &WatchLine) -> Value {
    Value::Object(object([
        ("id", json!(watch.id.to_string())),
        ("location", json!(watch.expression)),
        ("function", json!(watch.function)),
        ("hits", unless_nothing(watch.hits)),
    ]))
}

fn described(at: &Break, places: Vec<Map<String, Value>>) -> Value {
    let all = at.addresses.len().max(at.functions.len());
    let mut fields = object([
        ("id", json!(at.id.to_string())),
        ("location", json!(short_name(&at.location))),
        ("condition", json!(at.condition)),
        ("caught", json!(at.caught)),
        ("hits", unless_nothing(at.hits)),
        ("hitCount", unless_nothing(at.hit_count)),
        ("ignored", unless_nothing(at.ignored)),
        ("once", json!(at.once.then_some(true))),
        ("enabled", json!(at.disabled.then_some(false))),
        ("placesLeftOut", unless_nothing(all - places.len().min(all))),
    ]);
    put_places(&mut fields, places);
    Value::Object(fields)
}

/// The first addresses of a breakpoint, in hexadecimal.
fn addresses(at: &Break) -> impl Iterator<Item = String> {
    let first = at.addresses.iter().take(MOST_PLACES);
    first.map(|address| format!("{address:#x}"))
}

fn bare(address: &str) -> Map<String, Value> {
    object([("address", json!(address))])
}

/// Describes an address; a function or a line that is not known is left out.
fn at_address(context: &Context, session: Option<u32>, address: String) -> Map<String, Value> {
    let mut fields = bare(&address);
    let symbol = InfoSymbolArgs {
        at: address.clone(),
    };
    if let Ok(found) = context.ask::<InfoSymbol>(session, &symbol) {
        fields.insert("function".to_owned(), json!(short_name(&found.symbol)));
    }
    let line = InfoLineArgs {
        at: Some(Target::Address(AddressTarget { address })),
    };
    let lines = context.ask::<InfoLine>(session, &line);
    if let Some(found) = lines.ok().and_then(|lines| lines.places.into_iter().next()) {
        fields.insert("file".to_owned(), json!(found.file));
        fields.insert("line".to_owned(), json!(found.line));
    }
    fields
}

/// Describes the first functions of a breakpoint.
fn of_functions(
    context: &Context,
    session: Option<u32>,
    at: &Break,
) -> Result<Vec<Map<String, Value>>, Failure> {
    let ids = at.functions.iter().take(MOST_PLACES);
    let ids: Vec<String> = ids.map(u32::to_string).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let folder = context.ask::<Position>(session, &Nothing {})?.recording;
    let recording = context.gateway.recordings.open(&folder)?;
    let sql = format!(
        "select addr, short_name as function, file, line from functions where function_id in ({}) order by function_id",
        ids.join(", ")
    );
    let found = recordings::rows(&recording, context.cancel(), &sql, MOST_PLACES)?;
    Ok(found.rows.into_iter().map(of_row).collect())
}

/// Makes a place of a row of the table `functions`.
fn of_row(mut row: Map<String, Value>) -> Map<String, Value> {
    let address = row.remove("addr").and_then(|address| address.as_u64());
    row.retain(|_, value| !value.is_null());
    row.extend(object([(
        "address",
        json!(address.map(|address| format!("{address:#x}"))),
    )]));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakpoint_with_many_places_counts_those_that_it_does_not_show() {
        let at = json!({"id": 7, "location": "push", "functions": [], "addresses": [16, 32, 48, 64, 80, 96, 112]});
        let at: Break = serde_json::from_value(at).expect("a breakpoint");
        let places = addresses(&at).map(|text| bare(&text)).collect();
        let expected = json!({
            "id": "7",
            "location": "push",
            "places": [{"address": "0x10"}, {"address": "0x20"}, {"address": "0x30"}, {"address": "0x40"}, {"address": "0x50"}],
            "placesLeftOut": 2,
        });
        assert_eq!(described(&at, places), expected);
    }

    #[test]
    fn the_only_place_of_a_breakpoint_is_its_own() {
        let at =
            json!({"id": 1, "location": "main", "functions": [3], "hits": 2, "disabled": true});
        let at: Break = serde_json::from_value(at).expect("a breakpoint");
        let row = json!({"addr": 4_096, "function": "main", "file": null, "line": 5});
        let row = row.as_object().expect("a row").clone();
        let expected = json!({
            "id": "1", "location": "main", "hits": 2, "enabled": false,
            "address": "0x1000", "function": "main", "line": 5,
        });
        assert_eq!(described(&at, vec![of_row(row)]), expected);
    }
}
