//! What the standard says of a log, for the parts that ours have: objects with no other properties, the required ones there, and values
//! of the types and from the lists that it names. The numbers are those of its sections.

use super::*;
use crate::sim::Kind;
use serde::Deserialize;
use std::collections::BTreeMap;

/// An object with these properties and no others; those that are no `Option` are required.
macro_rules! objects { ($($(#[$section:meta])* $name:ident { $($field:ident: $ty:ty),* $(,)? })*) => { $(
    $(#[$section])*
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct $name { $($field: $ty),* }
)* } }

objects! {
    /// 3.14
    Run { tool: Tool, column_kind: ColumnKind, results: Vec<Result> }
    /// 3.18
    Tool { driver: ToolComponent }
    /// 3.19
    ToolComponent { name: String, semantic_version: String, rules: Vec<ReportingDescriptor> }
    /// 3.49
    ReportingDescriptor { id: String, short_description: Message }
    /// 3.11
    Message { text: String }
    /// 3.27
    Result {
        rule_id: String,
        rule_index: usize,
        level: ResultLevel,
        message: Message,
        locations: Vec<Location>,
        partial_fingerprints: BTreeMap<String, String>,
        related_locations: Option<Vec<Location>>,
    }
    /// 3.28
    Location { physical_location: PhysicalLocation }
    /// 3.29
    PhysicalLocation { artifact_location: ArtifactLocation, region: Region }
    /// 3.4
    ArtifactLocation { uri: String, uri_base_id: Option<String> }
    /// 3.30
    Region { start_line: u32, start_column: Option<u32> }
}

/// 3.13
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Log {
    #[serde(rename = "$schema")]
    schema: String,
    version: String,
    runs: Vec<Run>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ColumnKind {
    Utf16CodeUnits,
    UnicodeCodePoints,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum ResultLevel {
    None,
    Note,
    Warning,
    Error,
}

fn issue(rule: Rule, at: Option<Place>) -> Issue {
    Issue {
        level: Level::Error,
        rule,
        subject: "copy on 64x64".into(),
        name: Some("load src".into()),
        message: "32.00 sectors a request (budget 4.00)".into(),
        at,
        other: None,
        detail: vec!["Why.".into(), "→ What to do.".into()],
    }
}

fn place(file: &str, line: u32, column: Option<u32>) -> Option<Place> {
    Some(Place { file: file.into(), line, column })
}

/// The log of these issues, as the standard has it.
fn log(issues: &[Issue]) -> Log {
    let text = sarif(issues, &Repository::default()).expect("texts and numbers");
    let log: Log = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(log.version, "2.1.0");
    assert!(log.schema.starts_with("https://") && log.schema.ends_with("sarif-schema-2.1.0.json"));
    let [run] = &log.runs[..] else { panic!("{log:?}") };
    assert!(matches!(run.column_kind, ColumnKind::UnicodeCodePoints | ColumnKind::Utf16CodeUnits));
    for result in &run.results {
        // 3.27.6, 3.19.23: the index leads to the rule, and no two rules have one name.
        assert_eq!(run.tool.driver.rules[result.rule_index].id, result.rule_id);
        assert_ne!(result.level, ResultLevel::None);
        let locations = result.locations.iter().chain(result.related_locations.iter().flatten());
        for PhysicalLocation { artifact_location, region } in locations.map(|location| &location.physical_location) {
            // 3.30.5, 3.30.6: both from 1.
            assert!(region.start_line >= 1 && region.start_column.is_none_or(|column| column >= 1), "{region:?}");
            // 3.4.3: a URI reference; 3.4.4: relative to a base, or absolute without one.
            let uri = &artifact_location.uri;
            assert!(uri.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)), "{uri}");
            assert_eq!(uri.starts_with("file:///"), artifact_location.uri_base_id.is_none(), "{uri}");
        }
    }
    let ids: BTreeSet<_> = run.tool.driver.rules.iter().map(|rule| &rule.id).collect();
    assert_eq!(ids.len(), run.tool.driver.rules.len(), "a rule stands there once");
    assert!(run.tool.driver.rules.iter().all(|rule| rule.short_description.text.ends_with('.')));
    assert_eq!(
        (run.tool.driver.name.as_str(), run.tool.driver.semantic_version.as_str()),
        ("busload", env!("CARGO_PKG_VERSION"))
    );
    log
}

#[test]
fn a_log_is_what_the_standard_says() {
    let over = Rule::Budget("over-budget");
    let race = Issue {
        level: Level::Note,
        name: None,
        other: place("b.rs", 0, Some(0)),
        ..issue(Rule::Finding(Kind::Race), place("/opt/cuda/a b.h", 0, Some(0)))
    };
    let issues = [issue(over.clone(), place("src/ü%.rs", 38, Some(13))), race, issue(over, None)];
    let log = log(&issues);
    let results = &log.runs[0].results;
    let [first, second, third] = &results[..] else { panic!("{results:?}") };
    assert_eq!(log.runs[0].tool.driver.rules.len(), 2);
    assert_eq!(
        first.message.text,
        "copy on 64x64, load src: 32.00 sectors a request (budget 4.00)\nWhy.\n→ What to do."
    );
    assert_eq!((&first.level, &second.level), (&ResultLevel::Error, &ResultLevel::Note));
    let at = |result: &Result| {
        let PhysicalLocation { artifact_location, region } = &result.locations[0].physical_location;
        (artifact_location.uri.clone(), region.start_line, region.start_column)
    };
    assert_eq!(at(first), ("src/%C3%BC%25.rs".to_owned(), 38, Some(13)));
    assert_eq!(at(second), ("file:///opt/cuda/a%20b.h".to_owned(), 1, None));
    assert!(third.locations.is_empty() && second.related_locations.as_ref().is_some_and(|others| others.len() == 1));
    // Where it stands is no part of what it is.
    assert_eq!(first.partial_fingerprints, third.partial_fingerprints);
    assert_ne!(first.partial_fingerprints, second.partial_fingerprints);
}

#[test]
fn a_log_of_nothing_is_one_too() {
    let log = log(&[]);
    assert!(log.runs[0].results.is_empty() && log.runs[0].tool.driver.rules.is_empty());
}
