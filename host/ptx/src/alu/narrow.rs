//! `cvt` to and from pairs of numbers of 8 bits, and `cvt.pack`.

use super::exact::{F16, Format};
use super::op::{Form, Rounding};
use crate::ast::Type;
use crate::registers::{Alu, lanes};

const E4M3: Format = Format { exponent: 4, fraction: 3 };
const E5M2: Format = Format { exponent: 5, fraction: 2 };

/// In a conversion's word: the format is `e5m2`, and what is below 0 becomes 0.
const WIDE_RANGE: u32 = 1;
const RECTIFIES: u32 = 2;

/// The nearest number of 8 bits; what is too large becomes the largest.
#[inline]
fn encoded(value: f64, how: u32) -> u32 {
    if value.is_nan() {
        return 0x7F;
    }
    let value = if how & RECTIFIES != 0 && value < 0.0 { 0.0 } else { value };
    let sign = u32::from(value.is_sign_negative()) << 7;
    if how & WIDE_RANGE != 0 {
        return sign | (E5M2.round(value.abs(), Rounding::Nearest)).min(0x7B);
    }
    // Its highest exponent, which belongs to infinities elsewhere, is that of 256 to 448 here.
    match value.abs() {
        magnitude if magnitude < 256.0 => sign | E4M3.round(magnitude, Rounding::Nearest),
        magnitude => sign | (0x70 + (magnitude / 32.0).round_ties_even().min(14.0) as u32),
    }
}

/// What 8 bits are worth.
#[inline]
pub(crate) fn decoded(bits: u32, is_wide_range: bool) -> f64 {
    let bits = bits & 0xFF;
    match bits & 0x7F {
        _ if is_wide_range => E5M2.value(bits),
        0x7F => f64::NAN,
        low @ 0x78.. => {
            let magnitude = f64::from(low - 0x70) * 32.0;
            if bits & 0x80 == 0 { magnitude } else { -magnitude }
        }
        _ => E4M3.value(bits),
    }
}

/// What carries out such a `cvt`, and the word of its last source.
pub(super) fn find(form: &Form<'_>) -> Option<(Alu, Option<u32>)> {
    let pair = |name: &str| match name {
        "e4m3x2" => Some(0),
        "e5m2x2" => Some(WIDE_RANGE),
        _ => None,
    };
    let at = form.modifiers.iter().position(|name| pair(name).is_some())?;
    let how = pair(form.modifiers[at])? | if form.has("relu") { RECTIFIES } else { 0 };
    let &[other] = form.types.as_slice() else { return None };
    let is_target = at + 2 == form.modifiers.len();
    if is_target && !form.has("satfinite") || !form.has("rn") {
        return None;
    }
    let alu = match (is_target, other) {
        (true, Type::Float(32)) => lanes!(Half <- |a: Narrow, b: Narrow, how: Narrow| {
            let [high, low] = [a, b].map(|bits| encoded(f32::from_bits(bits).into(), how));
            high << 8 | low
        }),
        (true, Type::F16x2) => lanes!(Half <- |a: Narrow, how: Narrow| {
            let [high, low] = [a >> 16, a & 0xFFFF].map(|bits| encoded(F16.value(bits), how));
            high << 8 | low
        }),
        (false, Type::F16x2) => lanes!(Narrow <- |a: Half, how: Narrow| {
            let [high, low] = [a >> 8, a].map(|bits| {
                let value = decoded(bits, how & WIDE_RANGE != 0);
                let value = if how & RECTIFIES != 0 && value < 0.0 { 0.0 } else { value };
                F16.round(value, Rounding::Nearest)
            });
            high << 16 | low
        }),
        _ => None,
    };
    Some((alu?, Some(how)))
}

/// `cvt.pack`: two integers, clamped, side by side below the bits of a third word.
pub(super) fn pack(form: &Form<'_>) -> Option<(Alu, Option<u32>)> {
    let name = form.modifiers.iter().find(|name| name.len() < 4 && name.starts_with(['u', 's']) && name != &&"sat")?;
    let bits: u32 = name[1..].parse().ok().filter(|bits| matches!(bits, 2 | 4 | 8 | 16))?;
    #[inline(always)]
    fn packed(a: u32, b: u32, how: u32) -> u32 {
        let (bits, is_signed) = (how & 31, how >> 5 & 1);
        let (least, most) = match is_signed {
            1 => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            _ => (0, (1 << bits) - 1),
        };
        let [a, b] = [a, b].map(|word| (word as i32).clamp(least, most) as u32 & ((1 << bits) - 1));
        a << bits | b
    }
    let how = bits | u32::from(name.starts_with('s')) << 5;
    let alu = match (form.types.last()?, bits) {
        (Type::Bits(32), ..16) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow, how: Narrow| {
            packed(a, b, how) | c << (2 * (how & 31))
        }),
        (Type::Signed(32), 16) => lanes!(Narrow <- |a: Narrow, b: Narrow, how: Narrow| packed(a, b, how)),
        _ => None,
    };
    Some((alu?, Some(how)))
}
