//! Colours, on terminals alone.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use comfy_table::Color;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether tables have colours, and lines on standard error; neither do until a program has asked.
static TABLES: AtomicBool = AtomicBool::new(false);
static LINES: AtomicBool = AtomicBool::new(false);

/// Allows colours on those of this process's outputs that are terminals, as far as `NO_COLOR`, `CLICOLOR_FORCE` and `TERM` do.
pub fn allow_colours() {
    let takes = |choice| choice != ColorChoice::Never;
    TABLES.store(takes(AutoStream::choice(&std::io::stdout())), Ordering::Relaxed);
    LINES.store(takes(AutoStream::choice(&std::io::stderr())), Ordering::Relaxed);
}

/// Has tables go without colours: standard output is a file's alone, and they are said on standard error.
pub fn plain_tables() {
    TABLES.store(false, Ordering::Relaxed);
}

/// Whether tables have colours.
pub(super) fn of_tables() -> bool {
    TABLES.load(Ordering::Relaxed)
}

/// The colour of a verdict in a table, if it has one: red is what somebody should look at, green what got better.
pub(super) fn of_verdict(cell: &str) -> Option<Color> {
    let is_bad = cell.starts_with("no: ") || ["slower", "failed", "look at it"].iter().any(|end| cell.ends_with(end));
    if is_bad { Some(Color::Red) } else { cell.ends_with("faster").then_some(Color::Green) }
}

/// A line for standard error, with what it begins with in its colour.
pub(super) fn of_line(line: &str) -> String {
    if LINES.load(Ordering::Relaxed) { painted(line) } else { line.to_owned() }
}

fn painted(line: &str) -> String {
    let heads = [("error:", AnsiColor::Red), ("warning:", AnsiColor::Yellow)];
    let Some((head, colour)) = heads.into_iter().find(|(head, _)| line.starts_with(head)) else {
        return line.to_owned();
    };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    format!("{style}{head}{style:#}{}", &line[head.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_red_and_warnings_yellow() {
        assert_eq!(painted("error: no"), "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m no");
        assert_eq!(painted("warning: old"), "\u{1b}[1m\u{1b}[33mwarning:\u{1b}[0m old");
        assert_eq!(painted("an error: no"), "an error: no");
        assert_eq!(of_line("error: no"), "error: no", "nobody has asked");
    }

    #[test]
    fn verdicts_have_colours() {
        let colours = ["no: verify", "1.043 slower", "look at it", "yes", "2.000 faster", "same"].map(of_verdict);
        let (red, green) = (Some(Color::Red), Some(Color::Green));
        assert_eq!(colours, [red, red, red, None, green, None]);
    }
}
