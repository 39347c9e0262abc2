//! SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"): what code hosts and editors show beside the source.

use serde_json::{Value, json};

use super::findings::{Finding, KINDS, Weight};

/// Writes the findings as a SARIF log with one run.
pub fn sarif(findings: &[Finding]) -> Value {
    let rules: Vec<Value> = KINDS
        .iter()
        .map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } }))
        .collect();
    let results: Vec<Value> = findings.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "hindsight",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "results": results,
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let level = match finding.weight {
        Weight::Error => "error",
        Weight::Warning => "warning",
        Weight::Note => "note",
    };
    // Code hosts refuse a file that has a result without a place.
    let place = finding.place.as_ref().or(finding.near.as_ref());
    let (file, line) = place.map_or(("unknown", 1), |(file, line)| (file, *line));
    json!({
        "ruleId": finding.kind,
        "level": level,
        "message": { "text": finding.message },
        "partialFingerprints": { "hindsight/v1": finding.fingerprint() },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri(&within(file)) },
            "region": { "startLine": line.max(1) },
        } }],
    })
}

/// The path from the working directory, if the file lies in it.
pub fn within(file: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    match std::path::Path::new(file).strip_prefix(&here) {
        Ok(inside) => inside.to_string_lossy().into_owned(),
        Err(_) => file.to_owned(),
    }
}

/// A path as a URI reference (RFC 3986): bytes that are not allowed in it are escaped.
fn uri(path: &str) -> String {
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let mut uri = scheme.to_owned();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(byte as char)
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_uris() {
        assert_eq!(uri("src/a b.c"), "src/a%20b.c");
        assert_eq!(uri("/usr/src/x.c"), "file:///usr/src/x.c");
    }
}
