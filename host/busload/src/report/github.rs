//! What a check has to say, as annotations of GitHub Actions: workflow commands, a line each, that the runner shows at the source.

use super::escape::terminal;
use crate::check::{Issue, Level};
use crate::repository::Repository;
use std::fmt::Write;

/// An annotation for each issue.
pub fn annotations(issues: &[Issue], repository: &Repository) -> String {
    issues.iter().fold(String::new(), |mut text, issue| {
        let level = if issue.level == Level::Error { "error" } else { "notice" };
        let mut properties = Vec::new();
        if let Some(at) = &issue.at {
            properties.push(("file", repository.path(&at.file)));
            // An instruction without a line stands in line 0.
            properties.push(("line", at.line.max(1).to_string()));
            properties.extend(at.column.filter(|column| *column > 0).map(|column| ("col", column.to_string())));
        }
        properties.push(("title", format!("busload: {}", issue.rule.id())));
        let properties: Vec<_> = properties.iter().map(|(name, value)| format!("{name}={}", property(value))).collect();
        let mut said = issue.sentence();
        if let Some(other) = &issue.other {
            let _ = write!(said, "\nThe other place is {}:{}.", repository.path(&other.file), other.line);
        }
        issue.detail.iter().for_each(|detail| said += &format!("\n{detail}"));
        let said = said.split('\n').map(terminal).collect::<Vec<_>>().join("\n");
        let _ = writeln!(text, "::{level} {}::{}", properties.join(","), data(&said));
        text
    })
}

/// The message of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property of one.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Place, Rule};
    use crate::sim::Kind;

    #[test]
    fn nothing_in_a_message_or_a_path_ends_the_command_or_a_property() {
        let issue = Issue {
            level: Level::Error,
            rule: Rule::Budget("over-budget"),
            subject: "copy on 64x64".into(),
            name: Some("load src".into()),
            message: "12.5 % used (budget 100 %)\r\n::warning::x".into(),
            at: Some(Place { file: "a,b:c%/d.rs".into(), line: 3, column: Some(7) }),
            other: None,
            detail: vec!["why: 1, 2".into()],
        };
        let race = Issue {
            level: Level::Note,
            rule: Rule::Finding(Kind::Race),
            name: None,
            message: "race".into(),
            at: None,
            other: Some(Place { file: "e.rs".into(), line: 9, column: None }),
            detail: Vec::new(),
            ..issue.clone()
        };
        let text = annotations(&[issue, race], &Repository::default());
        assert_eq!(
            text,
            "::error file=a%2Cb%3Ac%25/d.rs,line=3,col=7,title=busload%3A over-budget::copy on 64x64, load src: 12.5 %25 used \
             (budget 100 %25)\\u{d}%0A::warning::x%0Awhy: 1, 2\n\
             ::notice title=busload%3A race::copy on 64x64: race%0AThe other place is e.rs:9.\n"
        );
        assert_eq!((data("a\r\n%"), property("a:b,c")), ("a%0D%0A%25".to_owned(), "a%3Ab%2Cc".to_owned()));
    }
}
