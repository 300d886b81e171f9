//! What a check has to say, in SARIF 2.1.0, for whatever shows findings at the source: code scanning, editors.

use crate::check::{Issue, Level, Place, Rule};
use crate::repository::Repository;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The schema of the format.
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// A log with one run, and a result for each issue.
///
/// # Errors
/// Never: what it is made of are texts and whole numbers.
pub fn sarif(issues: &[Issue], repository: &Repository) -> serde_json::Result<String> {
    let rules: BTreeSet<&Rule> = issues.iter().map(|issue| &issue.rule).collect();
    let rules: Vec<_> = rules.into_iter().collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "busload",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|rule| json!({
                    "id": rule.id(),
                    "shortDescription": { "text": rule.description() },
                })).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": issues.iter().map(|issue| result(issue, &rules, repository)).collect::<Vec<_>>(),
        }],
    });
    Ok(serde_json::to_string_pretty(&log)? + "\n")
}

fn result(issue: &Issue, rules: &[&Rule], repository: &Repository) -> Value {
    let text = [issue.sentence()].into_iter().chain(issue.detail.iter().cloned()).collect::<Vec<_>>().join("\n");
    let level = if issue.level == Level::Error { "error" } else { "note" };
    let location = |place: &Place| location(place, repository);
    let mut result = json!({
        "ruleId": issue.rule.id(),
        "ruleIndex": rules.iter().position(|rule| **rule == issue.rule),
        "level": level,
        "message": { "text": text },
        "locations": issue.at.iter().map(location).collect::<Vec<_>>(),
        // What it is about, wherever that stands: so that it stays the same issue when lines move.
        "partialFingerprints": {
            "busload/v1": format!("{}/{}/{}", issue.rule.id(), issue.subject, issue.name.as_deref().unwrap_or_default()),
        },
    });
    if let Some(other) = &issue.other {
        result["relatedLocations"] = json!([location(other)]);
    }
    result
}

fn location(place: &Place, repository: &Repository) -> Value {
    let path = repository.path(&place.file);
    let artifact = match Path::new(&path).is_absolute() {
        true => json!({ "uri": format!("file://{}", uri(&path)) }),
        false => json!({ "uri": uri(&path), "uriBaseId": "%SRCROOT%" }),
    };
    // An instruction without a line stands in line 0, which is none.
    let mut region = json!({ "startLine": place.line.max(1) });
    if let Some(column) = place.column.filter(|column| *column > 0) {
        region["startColumn"] = column.into();
    }
    json!({ "physicalLocation": { "artifactLocation": artifact, "region": region } })
}

/// A path as a URI reference: what a URI may not hold stands there by its bytes.
fn uri(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte);
    path.bytes().fold(String::new(), |text, byte| match is_plain(byte) {
        true => text + char::from(byte).encode_utf8(&mut [0; 4]),
        false => format!("{text}%{byte:02X}"),
    })
}

#[cfg(test)]
mod tests;
