//! Text from outside, such as names in a results file, made fit for where it is shown.

/// For a terminal: control characters, and others that change how the rest is shown, stand there by their numbers.
pub fn terminal(text: &str) -> String {
    let acts = |c: char| {
        c.is_control()
            || matches!(c, '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
    };
    text.chars().fold(String::new(), |mut shown, c| {
        if acts(c) {
            shown.extend(c.escape_unicode())
        } else {
            shown.push(c)
        }
        shown
    })
}

/// For Markdown: the same, and nothing in it is markup. An underscore within a word is none.
pub fn markdown(text: &str) -> String {
    let text = terminal(text);
    let mut shown = String::new();
    for (at, c) in text.char_indices() {
        let in_word = || shown.ends_with(char::is_alphanumeric) && text[at + 1..].starts_with(char::is_alphanumeric);
        if matches!(c, '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '&' | '~') || c == '_' && !in_word() {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

/// For HTML and SVG, as the content of an element or of an attribute: the same as for a terminal, and nothing in it is markup.
pub fn markup(text: &str) -> String {
    let text = terminal(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_the_cursor_or_turns_the_text_around() {
        assert_eq!(terminal("copy_vec4 on 64×64"), "copy_vec4 on 64×64");
        assert_eq!(terminal("a\u{1b}[2Jb\nc\rd\u{9b}e"), "a\\u{1b}[2Jb\\u{a}c\\u{d}d\\u{9b}e");
        assert_eq!(terminal("\u{202e}abc\u{2066}"), "\\u{202e}abc\\u{2066}");
    }

    #[test]
    fn nothing_is_markup() {
        assert_eq!(markdown("copy_vec4"), "copy_vec4");
        assert_eq!(markdown("a | b\n| c"), "a \\| b\\\\u{a}\\| c");
        assert_eq!(
            markdown("<img src=x> [a](b) `c` *d* _e_ \\"),
            "\\<img src=x\\> \\[a\\](b) \\`c\\` \\*d\\* \\_e\\_ \\\\"
        );
    }
}
