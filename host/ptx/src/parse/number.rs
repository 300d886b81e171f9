//! Numbers, and expressions of constants.

use super::Parser;
use crate::ast::Constant;
use crate::error::ParseError;
use crate::lex::{Kind, Token};

/// How deep expressions, lists and blocks may be nested.
pub(super) const DEEPEST: usize = 64;

/// What a number means; none if it is none.
fn value(text: &str) -> Option<Constant> {
    let digits = |text: &str, radix| u64::from_str_radix(text, radix).ok().map(Constant::Integer);
    let rest = |prefixes: [&str; 2]| prefixes.iter().find_map(|prefix| text.strip_prefix(prefix));
    let exact = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(bits) = rest(["0f", "0F"]) {
        return exact(bits, 8).then(|| u32::from_str_radix(bits, 16).ok().map(Constant::Single)).flatten();
    }
    if let Some(bits) = rest(["0d", "0D"]) {
        return exact(bits, 16).then(|| u64::from_str_radix(bits, 16).ok().map(Constant::Double)).flatten();
    }
    let whole = text.strip_suffix('U').unwrap_or(text);
    if let Some(hex) = whole.strip_prefix("0x").or_else(|| whole.strip_prefix("0X")) {
        return digits(hex, 16);
    }
    if let Some(binary) = whole.strip_prefix("0b").or_else(|| whole.strip_prefix("0B")) {
        return digits(binary, 2);
    }
    if text.contains(['.', 'e', 'E']) {
        return text.parse::<f64>().ok().map(|value| Constant::Double(value.to_bits()));
    }
    match whole.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => digits(octal, 8),
        _ => digits(whole, 10),
    }
}

/// How tightly a binary operator binds.
fn precedence(operator: &str) -> Option<u8> {
    Some(match operator {
        "||" => 1,
        "&&" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "==" | "!=" => 6,
        "<" | "<=" | ">" | ">=" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "%" => 10,
        _ => return None,
    })
}

fn combined(operator: &str, a: Constant, b: Constant) -> Option<Constant> {
    use Constant::{Double, Integer};
    let real = |constant| match constant {
        Double(bits) => f64::from_bits(bits),
        Constant::Single(bits) => f32::from_bits(bits).into(),
        Integer(value) => value as f64,
    };
    if let (Integer(a), Integer(b)) = (a, b) {
        let (left, right) = (a.cast_signed(), b.cast_signed());
        let shift = u32::try_from(b).ok().filter(|shift| *shift < 64);
        return Some(Integer(match operator {
            "||" => u64::from(a != 0 || b != 0),
            "&&" => u64::from(a != 0 && b != 0),
            "|" => a | b,
            "^" => a ^ b,
            "&" => a & b,
            "==" => u64::from(a == b),
            "!=" => u64::from(a != b),
            "<" => u64::from(left < right),
            "<=" => u64::from(left <= right),
            ">" => u64::from(left > right),
            ">=" => u64::from(left >= right),
            "<<" => shift.map_or(0, |shift| a << shift),
            ">>" => left.wrapping_shr(shift.unwrap_or(63)).cast_unsigned(),
            "+" => a.wrapping_add(b),
            "-" => a.wrapping_sub(b),
            "*" => a.wrapping_mul(b),
            "/" => left.checked_div(right)?.cast_unsigned(),
            _ => left.checked_rem(right)?.cast_unsigned(),
        }));
    }
    let (a, b) = (real(a), real(b));
    let result = match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        _ => return None,
    };
    Some(Double(result.to_bits()))
}

impl<'a> Parser<'a> {
    /// A number by itself, or an expression in parentheses.
    pub(super) fn number(&mut self, what: &str) -> Result<u64, ParseError> {
        match self.unary(0)? {
            Constant::Integer(value) => Ok(value),
            _ => Err(self.error(format!("{what} is no integer: write one"))),
        }
    }

    /// One that fits in 32 bits.
    pub(super) fn small_number(&mut self, what: &str) -> Result<u32, ParseError> {
        let token = self.token;
        let value = self.number(what)?;
        u32::try_from(value)
            .map_err(|_| ParseError::new(token.place, format!("{what} is {value}, which does not fit in 32 bits")))
    }

    /// A constant, or an expression of some.
    pub(super) fn expression(&mut self, depth: usize) -> Result<Constant, ParseError> {
        self.binary(0, depth)
    }

    fn binary(&mut self, least: u8, depth: usize) -> Result<Constant, ParseError> {
        let mut left = self.unary(depth)?;
        loop {
            let operator = self.token;
            let Some(binds) = precedence(operator.text).filter(|binds| operator.kind == Kind::Mark && *binds > least)
            else {
                break;
            };
            self.advance()?;
            let right = self.binary(binds, depth + 1)?;
            left = combined(operator.text, left, right).ok_or_else(|| {
                ParseError::new(operator.place, format!("`{}` has no value for these constants", operator.text))
            })?;
        }
        if least == 0 && self.is("?") {
            self.advance()?;
            let one = self.binary(0, depth + 1)?;
            self.expect(":")?;
            let other = self.binary(0, depth + 1)?;
            return Ok(if left == Constant::Integer(0) { other } else { one });
        }
        Ok(left)
    }

    fn unary(&mut self, depth: usize) -> Result<Constant, ParseError> {
        if depth > DEEPEST {
            return Err(self.error(format!("expressions are nested deeper than {DEEPEST}")));
        }
        let token @ Token { kind, text, .. } = self.token;
        match (kind, text) {
            (Kind::Number, _) => {
                self.advance()?;
                let what = || format!("{} is no number of PTX, or does not fit in 64 bits", token.shown());
                value(text).ok_or_else(|| ParseError::new(token.place, what()))
            }
            (Kind::Word, "WARP_SZ") => {
                self.advance()?;
                Ok(Constant::Integer(32))
            }
            (Kind::Mark, "(") => {
                self.advance()?;
                if self.token.kind == Kind::Dotted {
                    // A cast between the signed and the unsigned type of 64 bits.
                    self.advance()?;
                    self.expect(")")?;
                    return self.unary(depth + 1);
                }
                let value = self.expression(depth + 1)?;
                self.expect(")")?;
                Ok(value)
            }
            (Kind::Mark, "-" | "+" | "~" | "!") => {
                self.advance()?;
                let value = self.unary(depth + 1)?;
                Ok(match (text, value) {
                    ("-", Constant::Integer(value)) => Constant::Integer(value.wrapping_neg()),
                    ("-", Constant::Single(bits)) => Constant::Single(bits ^ 1 << 31),
                    ("-", Constant::Double(bits)) => Constant::Double(bits ^ 1 << 63),
                    ("~", Constant::Integer(value)) => Constant::Integer(!value),
                    ("!", Constant::Integer(value)) => Constant::Integer(u64::from(value == 0)),
                    ("+", value) => value,
                    _ => return Err(ParseError::new(token.place, format!("`{text}` stands before no integer"))),
                })
            }
            _ => Err(self.error("a constant should stand here")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_mean_what_the_manual_says() {
        for (text, expected) in [
            ("0", Constant::Integer(0)),
            ("42U", Constant::Integer(42)),
            ("0x1F", Constant::Integer(31)),
            ("0X1fU", Constant::Integer(31)),
            ("017", Constant::Integer(15)),
            ("0b101", Constant::Integer(5)),
            ("18446744073709551615", Constant::Integer(u64::MAX)),
            ("0f3F800000", Constant::Single(0x3F80_0000)),
            ("0d3FF0000000000000", Constant::Double(0x3FF0_0000_0000_0000)),
            ("1.5", Constant::Double(1.5f64.to_bits())),
            ("1e3", Constant::Double(1e3f64.to_bits())),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
        for text in ["0f3F8", "18446744073709551616", "0x", "09", "12q", "0d12"] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn operators_bind_as_in_c() {
        for (text, expected) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("10 - 3 - 2", 5),
            ("1 << 4 | 1", 17),
            ("-1 >> 1", u64::MAX),
            ("~0 & 0xFF", 255),
            ("2 > 1 ? 5 : 6", 5),
            ("(.s64) 7 % 4", 3),
            ("!3 + WARP_SZ", 32),
        ] {
            let mut parser = Parser::new(text).expect("tokens");
            assert_eq!(parser.expression(0), Ok(Constant::Integer(expected)), "{text}");
        }
        assert!(Parser::new("1 / 0").expect("tokens").expression(0).is_err());
        assert!(Parser::new(&"(".repeat(10_000)).expect("tokens").expression(0).is_err());
        assert!(Parser::new(&"1+".repeat(10_000)).expect("tokens").expression(0).is_err());
    }
}
