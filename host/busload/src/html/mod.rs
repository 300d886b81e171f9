//! What pages have in common: one file each, which needs nothing but a browser.

use crate::report::escape;

/// A page of this title, with a style of its own behind that of all pages. The title is text, the body is markup.
pub(crate) fn page(title: &str, style: &str, body: &str) -> String {
    fill(include_str!("shell.html"), |part| match part {
        "title" => escape::markup(title),
        "shell" => include_str!("shell.css").to_owned(),
        "style" => style.to_owned(),
        "body" => body.to_owned(),
        _ => unreachable!("shell.html has no {part}"),
    })
}

/// A template with each `{{part}}` replaced, once: what stands in a part is left alone.
pub(crate) fn fill(template: &str, part: impl Fn(&str) -> String) -> String {
    let mut pieces = template.split("{{");
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once("}}").expect("a part of the template ends");
        filled += &(part(name) + rest);
    }
    filled
}
