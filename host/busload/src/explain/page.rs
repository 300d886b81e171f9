//! The explanation as one HTML file, which needs nothing but a browser.

use super::{Explanation, text};
use crate::html;

/// A page about the kernels of a ladder, of which number `shown` is in front.
///
/// # Errors
/// If a number in it is none.
pub fn page(kernels: &[Explanation], shown: usize) -> serde_json::Result<String> {
    let data = serde_json::to_string(&serde_json::json!({ "kernels": kernels, "shown": shown }))?;
    let body = html::fill(include_str!("page.html"), |part| match part {
        "text" => escaped(&text(&kernels[shown])),
        "script" => include_str!("page.js").to_owned(),
        // Nothing in it can end the element that it stands in.
        "data" => data.replace('<', "\\u003c"),
        _ => unreachable!("page.html has no {part}"),
    });
    Ok(html::page(&kernels[shown].kernel, include_str!("page.css"), &body))
}

/// Text of several lines as the content of an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Excerpt;
    use crate::record::{BlocksRecord, LaunchRecord};

    #[test]
    fn no_source_text_ends_an_element_or_fills_a_part() {
        let lines = ["fn odd() {", "    // </script><!-- <script> {{data}} & </pre>", "}"].map(String::from).into();
        let odd = Explanation {
            kernel: "odd".into(),
            summary: "Says </title> and {{style}}.".into(),
            case: "1".into(),
            launch: LaunchRecord { grid: [1; 3], block: [1; 3], shared_bytes: 0 },
            blocks: BlocksRecord { total: 1, simulated: 1, which: "all".into() },
            counts_stated: true,
            source: vec![Excerpt { file: "odd.rs".into(), line: 1, lines }],
            accesses: Vec::new(),
            worst: None,
            counters: Vec::new(),
            arbitration: None,
        };
        let page = page(&[odd], 0).expect("JSON");
        for (tag, times) in
            [("</script>", 2), ("<script", 2), ("<!--", 0), ("</pre>", 1), ("</title>", 1), ("</style>", 1)]
        {
            assert_eq!(page.matches(tag).count(), times, "{tag}");
        }
        assert!(page.contains("{{data}} &amp; &lt;/pre&gt;"), "the text without scripts shows the source as it is");
        let data = page.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script>").next()).expect("the data");
        let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(data["kernels"][0]["summary"], "Says </title> and {{style}}.");
    }
}
