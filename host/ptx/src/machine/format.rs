//! What `vprintf` makes of a format and its arguments: what C's `printf` does.

/// Characters that a conversion is padded to, and digits that it is given, at most.
const WIDEST: usize = 4096;

/// Conversions of a format, at most: as many arguments as CUDA takes.
const MOST: u32 = 32;

/// Where a conversion takes its arguments.
pub(super) trait Arguments {
    /// The next one, of 4 or 8 bytes; none if there is none to be had.
    fn next(&mut self, bytes: u64) -> Option<u64>;
    /// The text at an address, up to its 0 byte; none if there is none.
    fn text(&mut self, address: u64) -> Option<Vec<u8>>;
}

/// A conversion, as it is written.
#[derive(Default)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    /// Bytes of an integer.
    bytes: u64,
}

/// Puts arguments into a format: the text, and how many conversions it has; none if an argument cannot be read, or there are too many.
pub(super) fn format(format: &[u8], arguments: &mut impl Arguments) -> Option<(Vec<u8>, u32)> {
    let (mut out, mut count, mut rest) = (Vec::new(), 0, format);
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let whole = rest;
        let conversion = Conversion::read(&mut rest, arguments)?;
        let Some((&kind, behind)) = rest.split_first() else {
            out.push(b'%');
            out.extend_from_slice(whole);
            break;
        };
        rest = behind;
        if kind == b'%' {
            out.push(b'%');
            continue;
        }
        match conversion.convert(kind, arguments)? {
            Some(_) if count == MOST => return None,
            Some(text) => {
                count += 1;
                out.extend(text);
            }
            // No conversion that C knows: as it stands there.
            None => {
                out.push(b'%');
                out.extend_from_slice(&whole[..whole.len() - rest.len()]);
            }
        }
    }
    Some((out, count))
}

/// A number at the front of a text, or the next argument for `*`.
fn number(rest: &mut &[u8], arguments: &mut impl Arguments) -> Option<i64> {
    if let Some(behind) = rest.strip_prefix(b"*") {
        *rest = behind;
        return Some(i64::from(arguments.next(4)? as u32 as i32));
    }
    let mut value = 0;
    while let Some((digit @ b'0'..=b'9', behind)) = rest.split_first() {
        value = (10 * value + i64::from(digit - b'0')).min(WIDEST as i64);
        *rest = behind;
    }
    Some(value)
}

impl Conversion {
    fn read(rest: &mut &[u8], arguments: &mut impl Arguments) -> Option<Self> {
        let mut own = Self { bytes: 4, ..Self::default() };
        while let Some((flag @ (b'-' | b'+' | b' ' | b'#' | b'0'), behind)) = rest.split_first() {
            match flag {
                b'-' => own.left = true,
                b'+' => own.plus = true,
                b' ' => own.space = true,
                b'#' => own.alternate = true,
                _ => own.zero = true,
            }
            *rest = behind;
        }
        let width = number(rest, arguments)?;
        own.left |= width < 0;
        own.width = (width.unsigned_abs() as usize).min(WIDEST);
        if let Some(behind) = rest.strip_prefix(b".") {
            *rest = behind;
            // One below zero is as if there were none.
            own.precision = usize::try_from(number(rest, arguments)?).ok().map(|precision| precision.min(WIDEST));
        }
        while let Some((length @ (b'h' | b'l' | b'j' | b'z' | b't' | b'q' | b'L'), behind)) = rest.split_first() {
            own.bytes = match (length, own.bytes) {
                (b'h', 2) => 1,
                (b'h', _) => 2,
                _ => 8,
            };
            *rest = behind;
        }
        Some(own)
    }

    /// What becomes of the next argument: none within if this is no conversion.
    fn convert(&self, kind: u8, arguments: &mut impl Arguments) -> Option<Option<Vec<u8>>> {
        Some(Some(match kind {
            b'd' | b'i' => {
                let (value, above) = (arguments.next(self.bytes.max(4))?, 64 - 8 * self.bytes);
                let value = (value << above).cast_signed() >> above;
                self.integer(value < 0, value.unsigned_abs().to_string(), "")
            }
            b'u' | b'o' | b'x' | b'X' => {
                let value = arguments.next(self.bytes.max(4))? & u64::MAX >> (64 - 8 * self.bytes);
                let digits = match kind {
                    b'u' => value.to_string(),
                    b'o' if self.alternate && value != 0 => format!("0{value:o}"),
                    b'o' => format!("{value:o}"),
                    b'x' => format!("{value:x}"),
                    _ => format!("{value:X}"),
                };
                let prefix = match kind {
                    b'x' if self.alternate && value != 0 => "0x",
                    b'X' if self.alternate && value != 0 => "0X",
                    _ => "",
                };
                Self { plus: false, space: false, ..*self }.integer(false, digits, prefix)
            }
            b'c' => self.padded(vec![arguments.next(4)? as u8]),
            b's' => {
                let address = arguments.next(8)?;
                let mut text = if address == 0 { b"(null)".to_vec() } else { arguments.text(address)? };
                text.truncate(self.precision.unwrap_or(usize::MAX));
                self.padded(text)
            }
            b'p' => match arguments.next(8)? {
                0 => self.padded(b"(nil)".to_vec()),
                address => self.integer(false, format!("{address:x}"), "0x"),
            },
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                let value = f64::from_bits(arguments.next(8)?);
                let text = self.float(value.abs(), kind.to_ascii_lowercase());
                let prefix = if kind.eq_ignore_ascii_case(&b'a') && value.is_finite() { "0x" } else { "" };
                let zero = self.zero && value.is_finite();
                let mut all = Self { zero, precision: None, ..*self }.integer(value.is_sign_negative(), text, prefix);
                if kind.is_ascii_uppercase() {
                    all.make_ascii_uppercase();
                }
                all
            }
            _ => return Some(None),
        }))
    }

    fn padded(&self, text: Vec<u8>) -> Vec<u8> {
        let fill = vec![b' '; self.width.saturating_sub(text.len())];
        if self.left { [text, fill].concat() } else { [fill, text].concat() }
    }

    /// Digits with their sign, what stands before them, and zeros.
    fn integer(&self, negative: bool, digits: String, prefix: &str) -> Vec<u8> {
        let sign = match negative {
            true => "-",
            false if self.plus => "+",
            false if self.space => " ",
            false => "",
        };
        let least = match self.precision {
            Some(precision) => precision,
            None if self.zero && !self.left => self.width.saturating_sub(sign.len() + prefix.len()),
            None => 0,
        };
        let digits = if self.precision == Some(0) && digits == "0" { String::new() } else { digits };
        let zeros = "0".repeat(least.saturating_sub(digits.len()));
        self.padded(format!("{sign}{prefix}{zeros}{digits}").into_bytes())
    }

    /// The digits of a number that is not below zero.
    fn float(&self, value: f64, kind: u8) -> String {
        if !value.is_finite() {
            return if value.is_nan() { "nan" } else { "inf" }.to_owned();
        }
        let precision = self.precision.unwrap_or(6);
        match kind {
            b'f' => self.pointed(format!("{value:.precision$}")),
            b'e' => self.scientific(value, precision),
            b'g' => {
                let digits = precision.max(1);
                let exponent = exponent_of(&format!("{value:.*e}", digits - 1));
                let text = match exponent {
                    -4.. if exponent < digits as i64 => {
                        self.pointed(format!("{value:.*}", (digits as i64 - 1 - exponent) as usize))
                    }
                    _ => self.scientific(value, digits - 1),
                };
                if self.alternate { text } else { without_zeros(&text) }
            }
            _ => self.hexadecimal(value),
        }
    }

    /// A number with its point, though nothing stands behind it.
    fn pointed(&self, text: String) -> String {
        if self.alternate && !text.contains('.') { text + "." } else { text }
    }

    fn scientific(&self, value: f64, precision: usize) -> String {
        let text = format!("{value:.precision$e}");
        let (digits, exponent) = (text.split('e').next().unwrap_or_default(), exponent_of(&text));
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", self.pointed(digits.to_owned()), exponent.abs())
    }

    /// The digits behind `0x`.
    fn hexadecimal(&self, value: f64) -> String {
        let (bits, mut exponent) = (value.to_bits(), (value.to_bits() >> 52).cast_signed() - 1023);
        let mut lead = u64::from(bits >> 52 != 0);
        let mut fraction = bits & ((1 << 52) - 1);
        if lead == 0 {
            exponent = if fraction == 0 { 0 } else { -1022 };
        }
        let mut digits = 13;
        match self.precision {
            Some(precision) if precision < 13 => {
                // To the nearest, and to even.
                let dropped = 4 * (13 - precision as u32);
                let all = lead << 52 | fraction;
                let (kept, rest, half) = (all >> dropped, all & ((1 << dropped) - 1), 1 << (dropped - 1));
                let all = (kept + u64::from(rest > half || rest == half && kept & 1 == 1)) << dropped;
                (lead, fraction, digits) = (all >> 52, all & ((1 << 52) - 1), precision);
            }
            Some(_) => {}
            None => {
                while digits > 0 && fraction >> (4 * (13 - digits)) & 0xF == 0 {
                    digits -= 1;
                }
            }
        }
        let mut text = format!("{lead:x}.{fraction:013x}");
        text.truncate(2 + digits);
        text += &"0".repeat(self.precision.unwrap_or(0).saturating_sub(13));
        if digits == 0 && !self.alternate {
            text.pop();
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{text}p{sign}{}", exponent.abs())
    }
}

/// The exponent behind the `e` that Rust writes.
fn exponent_of(text: &str) -> i64 {
    text.rsplit('e').next().and_then(|exponent| exponent.parse().ok()).unwrap_or(0)
}

/// Without the zeros that end what stands behind the point.
fn without_zeros(text: &str) -> String {
    let (digits, exponent) = text.find('e').map_or((text, ""), |at| text.split_at(at));
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    format!("{digits}{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given(Vec<u64>);

    impl Arguments for Given {
        fn next(&mut self, _: u64) -> Option<u64> {
            if self.0.is_empty() { None } else { Some(self.0.remove(0)) }
        }

        fn text(&mut self, address: u64) -> Option<Vec<u8>> {
            (address == 7).then(|| b"text".to_vec())
        }
    }

    fn printed(text: &str, arguments: &[u64]) -> String {
        let (text, _) = format(text.as_bytes(), &mut Given(arguments.to_vec())).expect("arguments");
        String::from_utf8(text).expect("UTF-8")
    }

    #[test]
    fn integers_are_printed_as_by_c() {
        let minus_five = u64::from((-5i32) as u32);
        for (text, value, expected) in [
            ("%d|", minus_five, "-5|"),
            ("%5i|%%", 42, "   42|%"),
            ("%-5d|", 42, "42   |"),
            ("%05d|", minus_five, "-0005|"),
            ("%+d|", 3, "+3|"),
            ("% d|", 3, " 3|"),
            ("%.3d|", 7, "007|"),
            ("%6.3d|", minus_five, "  -005|"),
            ("%.0d|", 0, "|"),
            ("%u", minus_five, "4294967291"),
            ("%x %%", 255, "ff %"),
            ("%#X", 255, "0XFF"),
            ("%#010x", 255, "0x000000ff"),
            ("%o", 8, "10"),
            ("%#o", 8, "010"),
            ("%ld", u64::MAX, "-1"),
            ("%llu", u64::MAX, "18446744073709551615"),
            ("%hd", 65535, "-1"),
            ("%hhu", 258, "2"),
            ("%c|%%", 65, "A|%"),
            ("%3c|", 65, "  A|"),
            ("%s|", 7, "text|"),
            ("%6s|", 7, "  text|"),
            ("%-6s|", 7, "text  |"),
            ("%.2s|", 7, "te|"),
            ("%p", 0xABC, "0xabc"),
            ("%p", 0, "(nil)"),
            ("%y %d", 4, "%y 4"),
            ("100%", 0, "100%"),
        ] {
            assert_eq!(printed(text, &[value]), expected, "{text}");
        }
        assert_eq!(printed("%*d|%-*d|%.*d", &[4, 1, 4, 2, 3, 3]), "   1|2   |003");
        assert_eq!(format(b"%d %d", &mut Given(vec![1])), None, "an argument is missing");
        assert_eq!(format(&b"%d".repeat(33), &mut Given(vec![1; 33])), None, "there are more than 32");
        assert_eq!(format(b"%d %s%%", &mut Given(vec![1, 7])).expect("arguments").1, 2);
    }

    #[test]
    fn floating_point_numbers_are_printed_as_by_c() {
        for (text, value, expected) in [
            ("%f", 1.5, "1.500000"),
            ("%.2f", 2.675, "2.67"),
            ("%.0f", 2.5, "2"),
            ("%#.0f", 2.5, "2."),
            ("%8.2f|", -4.56789, "   -4.57|"),
            ("%08.2f|", -4.56789, "-0004.57|"),
            ("%+.1f", 0.05, "+0.1"),
            ("%f", f64::INFINITY, "inf"),
            ("%06F|", f64::NEG_INFINITY, "  -INF|"),
            ("%e", 0.0, "0.000000e+00"),
            ("%e", 123456.789, "1.234568e+05"),
            ("%.3E", 1e-10, "1.000E-10"),
            ("%e", 1e300, "1.000000e+300"),
            ("%g", 100000.0, "100000"),
            ("%g", 1e6, "1e+06"),
            ("%g", 0.0001, "0.0001"),
            ("%g", 0.00001, "1e-05"),
            ("%g", 0.5, "0.5"),
            ("%.3g", 1234.0, "1.23e+03"),
            ("%#g", 0.5, "0.500000"),
            ("%g", 9.9999995, "10"),
            ("%a", 1.0, "0x1p+0"),
            ("%a", 0.5, "0x1p-1"),
            ("%a", 5.1, "0x1.4666666666666p+2"),
            ("%.2a", 5.1, "0x1.46p+2"),
            ("%.1a", 5.9, "0x1.8p+2"),
            ("%a", 0.0, "0x0p+0"),
            ("%A", 255.5, "0X1.FFP+7"),
        ] {
            assert_eq!(printed(text, &[f64::to_bits(value)]), expected, "{text} {value}");
        }
        assert_eq!(printed("%f", &[f64::NAN.to_bits()]), "nan");
    }
}
