//! How wide a report may be, and text in that width.

use comfy_table::Table;

/// Columns where nobody says how many there are: in a file or a pipe.
const COLUMNS: usize = 100;

/// Sentences are no longer than this, however wide the terminal is.
const READABLE: usize = 120;

/// Columns of the terminal, if standard output is one.
pub fn width() -> usize {
    Table::new().width().map(usize::from).filter(|&columns| columns > 0).unwrap_or(COLUMNS)
}

/// The text in lines of so many columns at most, broken at spaces. Lines that go on are indented like the first, and by `hang`
/// more; a word that is longer stays whole.
pub fn wrapped(text: &str, width: usize, hang: usize) -> String {
    let width = width.min(READABLE);
    let lines = text.split('\n').map(|line| {
        if line.chars().count() <= width {
            return line.to_owned();
        }
        let indent = line.chars().take_while(|c| *c == ' ').count();
        let (mut done, mut length) = (" ".repeat(indent), indent);
        let mut is_first = true;
        for word in line[indent..].split(' ') {
            let longer = length + usize::from(!is_first) + word.chars().count();
            if longer > width && !is_first {
                done.truncate(done.trim_end_matches(' ').len());
                done += "\n";
                done += &" ".repeat(indent + hang);
                length = indent + hang;
            } else if !is_first {
                done.push(' ');
                length += 1;
            }
            done += word;
            length += word.chars().count();
            is_first = false;
        }
        done
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_go_on_under_their_first_word() {
        let text = "yes  GPU: an H200 with 132 SMs\n  short\n  a_name_that_is_longer_than_a_line and more";
        assert_eq!(
            wrapped(text, 16, 5),
            "yes  GPU: an\n     H200 with\n     132 SMs\n  short\n  a_name_that_is_longer_than_a_line\n       and more"
        );
        assert_eq!(wrapped("a b\n\nc\n", 3, 0), "a b\n\nc\n");
        assert_eq!(wrapped("", 3, 2), "");
    }
}
