//! The page docs/mcp.md, generated from the tools' own descriptions.

use std::fmt::Write;

use serde_json::Value;

use crate::{prompts, tools};

const HEAD: &str = include_str!("page.md");

/// Returns the page.
#[must_use]
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for tool in tools::ALL {
        // Writing to a String cannot fail.
        _ = write!(page, "\n### {}\n\n{}\n\n", tool.name, tool.doc);
        let schema = Value::Object((*tool.schema()).clone());
        page.push_str("| parameter | type | meaning |\n|---|---|---|\n");
        parameters(&mut page, "", &schema);
    }
    page.push_str("\n## Prompts\n\n| prompt | arguments | what it teaches |\n|---|---|---|\n");
    for prompt in prompts::list() {
        let arguments = prompt.arguments.unwrap_or_default();
        let names: Vec<String> = arguments
            .into_iter()
            .map(|a| format!("`{}`", a.name))
            .collect();
        let doc = prompt.description.unwrap_or_default();
        _ = writeln!(page, "| `{}` | {} | {doc} |", prompt.name, names.join(", "));
    }
    page
}

fn parameters(page: &mut String, prefix: &str, schema: &Value) {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, parameter) in schema["properties"].as_object().into_iter().flatten() {
        // The same for all tools, so stated once.
        if prefix.is_empty() && matches!(name.as_str(), "budget" | "cursor") {
            continue;
        }
        let doc = parameter["description"].as_str().unwrap_or_default();
        let must = if required.contains(&name.as_str()) {
            ", required"
        } else {
            ""
        };
        let doc = doc.replace('\n', " ");
        _ = writeln!(
            page,
            "| `{prefix}{name}` | {}{must} | {doc} |",
            type_of(parameter)
        );
        parameters(page, &format!("{prefix}{name}."), parameter);
        parameters(page, &format!("{prefix}{name}[]."), &parameter["items"]);
    }
}

fn type_of(parameter: &Value) -> String {
    let names = |value: &Value| match value {
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            names
                .filter(|name| *name != "null")
                .collect::<Vec<_>>()
                .join(" or ")
        }
        other => other.as_str().unwrap_or("any").to_owned(),
    };
    if let Some(words) = parameter["enum"].as_array() {
        let words = words.iter().filter_map(Value::as_str);
        return words
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    match parameter["type"].as_str() {
        Some("array") => format!("array of {}", type_of(&parameter["items"])),
        _ => names(&parameter["type"]),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_in_docs_is_this_one() {
        expect_test::expect_file!["../../docs/mcp.md"].assert_eq(&super::page());
    }
}
