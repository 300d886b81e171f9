//! PTX in tokens.

use crate::error::{ParseError, Place};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name: of a register with its `%`, an opcode, a label, anything else that is named.
    Word,
    /// A modifier or directive, with its dot.
    Dotted,
    /// A number as it is written.
    Number,
    /// What stands between quotation marks.
    Text,
    /// Punctuation, one character or two.
    Mark,
    /// The end.
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// Where it begins, in bytes.
    pub(crate) start: usize,
    pub(crate) place: Place,
}

impl Token<'_> {
    /// How an error names it.
    pub(crate) fn shown(&self) -> String {
        const LONGEST: usize = 40;
        match self.kind {
            Kind::End => "the end of the text".to_owned(),
            _ if self.text.chars().count() > LONGEST => {
                format!("`{}…`", self.text.chars().take(LONGEST).collect::<String>())
            }
            _ => format!("`{}`", self.text),
        }
    }
}

/// Hands out the tokens of a text, one after another.
#[derive(Clone)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    /// Where the line begins.
    line_start: usize,
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1, line_start: 0 }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn place(&self, at: usize) -> Place {
        Place { line: self.line, column: (at - self.line_start) as u32 + 1 }
    }

    fn new_line(&mut self) {
        self.line = self.line.saturating_add(1);
        self.line_start = self.at;
    }

    /// Passes white space and comments.
    fn skip(&mut self) -> Result<(), ParseError> {
        loop {
            match (self.byte(0), self.byte(1)) {
                (b'\n', _) => {
                    self.at += 1;
                    self.new_line();
                }
                (b' ' | b'\t' | b'\r' | b'\x0c', _) => self.at += 1,
                (b'/', b'/') => {
                    let rest = &self.text.as_bytes()[self.at..];
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                (b'/', b'*') => {
                    let place = self.place(self.at);
                    let Some(length) = self.text[self.at + 2..].find("*/") else {
                        return Err(ParseError::new(place, "the comment that begins here does not end: add `*/`"));
                    };
                    let end = self.at + 2 + length + 2;
                    while let Some(line) = self.text[self.at..end].find('\n') {
                        self.at += line + 1;
                        self.new_line();
                    }
                    self.at = end;
                }
                // Lines of an older debug format.
                (b'@', b'@') => {
                    let rest = &self.text.as_bytes()[self.at..];
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                _ => return Ok(()),
            }
        }
    }

    fn run(&self, from: usize, belongs: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text.as_bytes()[from..];
        from + rest.iter().position(|byte| !belongs(*byte)).unwrap_or(rest.len())
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Result<Token<'a>, ParseError> {
        self.skip()?;
        let start = self.at;
        let place = self.place(start);
        let byte = self.byte(0);
        let kind = match byte {
            _ if start >= self.text.len() => Kind::End,
            b'%' if is_name(self.byte(1)) => {
                self.at = self.run(start + 1, is_name);
                Kind::Word
            }
            b'0'..=b'9' => {
                self.at = self.number(start);
                Kind::Number
            }
            _ if is_name(byte) => {
                self.at = self.run(start, is_name);
                Kind::Word
            }
            b'.' if is_name(self.byte(1)) => {
                self.at = self.run(start + 1, is_name);
                while self.byte(0) == b':' && self.byte(1) == b':' && is_name(self.byte(2)) {
                    self.at = self.run(self.at + 2, is_name);
                }
                Kind::Dotted
            }
            b'"' => {
                let end = self.run(start + 1, |byte| !matches!(byte, b'"' | b'\n'));
                if self.text.as_bytes().get(end) != Some(&b'"') {
                    return Err(ParseError::new(place, "the string that begins here does not end: add `\"`"));
                }
                self.at = end + 1;
                return Ok(Token { kind: Kind::Text, text: &self.text[start + 1..end], start, place });
            }
            _ if byte.is_ascii_graphic() => {
                let two = matches!(
                    &self.text.as_bytes()[start..(start + 2).min(self.text.len())],
                    b"==" | b"!=" | b"<=" | b">=" | b"<<" | b">>" | b"&&" | b"||"
                );
                self.at += 1 + usize::from(two);
                Kind::Mark
            }
            _ => {
                let character = self.text[start..].chars().next().unwrap_or_default();
                let detail = format!("`{}` has no meaning in PTX: remove it", character.escape_debug());
                return Err(ParseError::new(place, detail));
            }
        };
        Ok(Token { kind, text: &self.text[start..self.at], start, place })
    }

    /// Where the number that begins at `start` ends.
    fn number(&self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
        if at(start) == b'0' && at(start + 1).is_ascii_alphabetic() {
            return self.run(start, is_name);
        }
        let mut end = self.run(start, |byte| byte.is_ascii_digit());
        let is_fraction = at(end) == b'.' && at(end + 1).is_ascii_digit();
        if is_fraction {
            end = self.run(end + 1, |byte| byte.is_ascii_digit());
        }
        let sign = usize::from(matches!(at(end + 1), b'+' | b'-'));
        if matches!(at(end), b'e' | b'E') && at(end + 1 + sign).is_ascii_digit() {
            end = self.run(end + 1 + sign, |byte| byte.is_ascii_digit());
        }
        self.run(end, is_name)
    }
}
