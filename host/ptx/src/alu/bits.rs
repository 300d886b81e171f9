//! Instructions that take words for rows of bits or of bytes.

use super::op::Form;
use crate::ast::Type;
use crate::registers::{Alu, lanes, typed};

pub(super) fn find(form: &Form<'_>, ty: Type) -> Option<Alu> {
    match (form.opcode, ty) {
        ("popc", Type::Bits(32)) => lanes!(Narrow <- |a: Narrow| a.count_ones()),
        ("popc", Type::Bits(64)) => lanes!(Narrow <- |a: Wide| a.count_ones()),
        ("clz", Type::Bits(32)) => lanes!(Narrow <- |a: Narrow| a.leading_zeros()),
        ("clz", Type::Bits(64)) => lanes!(Narrow <- |a: Wide| a.leading_zeros()),
        ("brev", Type::Bits(32 | 64)) => typed!(ty, |a| a.reverse_bits()),
        ("bfind", _) => highest_bit(ty, form.has("shiftamt")),
        ("fns", Type::Bits(32)) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| nth_set(a, b, c as i32)),
        ("bfe", Type::Unsigned(32)) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| field(a.into(), b, c, 32, false) as u32)
        }
        ("bfe", Type::Signed(32)) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| field(a.into(), b, c, 32, true) as u32)
        }
        ("bfe", Type::Unsigned(64)) => lanes!(Wide <- |a: Wide, b: Narrow, c: Narrow| field(a, b, c, 64, false)),
        ("bfe", Type::Signed(64)) => lanes!(Wide <- |a: Wide, b: Narrow, c: Narrow| field(a, b, c, 64, true)),
        ("bfi", Type::Bits(32)) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow, d: Narrow| {
            inserted(a.into(), b.into(), c, d, 32) as u32
        }),
        ("bfi", Type::Bits(64)) => {
            lanes!(Wide <- |a: Wide, b: Wide, c: Narrow, d: Narrow| inserted(a, b, c, d, 64))
        }
        ("szext", _) => extended(ty, form.has("wrap")),
        ("bmsk", Type::Bits(32)) => match form.has("wrap") {
            true => lanes!(Narrow <- |a: Narrow, b: Narrow| mask(a & 31, b & 31)),
            false => lanes!(Narrow <- |a: Narrow, b: Narrow| mask(a, b)),
        },
        ("lop3", Type::Bits(32)) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow, table: Narrow| looked_up(a, b, c, table))
        }
        ("shf", Type::Bits(32)) => match (form.has("l"), form.has("clamp")) {
            (true, true) => {
                lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| (joined(a, b) << c.min(32) >> 32) as u32)
            }
            (true, false) => {
                lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| (joined(a, b) << (c & 31) >> 32) as u32)
            }
            (false, true) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| (joined(a, b) >> c.min(32)) as u32),
            (false, false) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| (joined(a, b) >> (c & 31)) as u32),
        },
        ("prmt", Type::Bits(32)) => permute(form),
        ("dp4a" | "dp2a", _) => dot_product(form),
        _ => None,
    }
}

#[inline(always)]
fn joined(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// The position of the highest bit that differs from the sign, or its distance from the top.
fn highest_bit(ty: Type, from_the_top: bool) -> Option<Alu> {
    #[inline(always)]
    fn narrow(a: u32) -> u32 {
        31u32.wrapping_sub(a.leading_zeros()).min(if a == 0 { u32::MAX } else { 31 })
    }
    #[inline(always)]
    fn wide(a: u64) -> u32 {
        if a == 0 { u32::MAX } else { 63 - a.leading_zeros() }
    }
    #[inline(always)]
    fn top(place: u32, last: u32) -> u32 {
        if place == u32::MAX { u32::MAX } else { last - place }
    }
    match (ty, from_the_top) {
        (Type::Unsigned(32), false) => lanes!(Narrow <- |a: Narrow| narrow(a)),
        (Type::Unsigned(32), true) => lanes!(Narrow <- |a: Narrow| top(narrow(a), 31)),
        (Type::Signed(32), false) => lanes!(Narrow <- |a: Narrow| narrow(a ^ (a as i32 >> 31) as u32)),
        (Type::Signed(32), true) => lanes!(Narrow <- |a: Narrow| top(narrow(a ^ (a as i32 >> 31) as u32), 31)),
        (Type::Unsigned(64), false) => lanes!(Narrow <- |a: Wide| wide(a)),
        (Type::Unsigned(64), true) => lanes!(Narrow <- |a: Wide| top(wide(a), 63)),
        (Type::Signed(64), false) => lanes!(Narrow <- |a: Wide| wide(a ^ (a as i64 >> 63) as u64)),
        (Type::Signed(64), true) => lanes!(Narrow <- |a: Wide| top(wide(a ^ (a as i64 >> 63) as u64), 63)),
        _ => None,
    }
}

/// The position of the `offset`-th set bit from `base` on, upwards or downwards; all ones if there is none.
fn nth_set(mask: u32, base: u32, offset: i32) -> u32 {
    if offset == 0 {
        return if base < 32 && mask >> base & 1 == 1 { base } else { u32::MAX };
    }
    let (mut place, mut left) = (i64::from(base), offset.unsigned_abs());
    let step = i64::from(offset.signum());
    while (0..32).contains(&place) {
        left -= mask >> place & 1;
        if left == 0 {
            return place as u32;
        }
        place += step;
    }
    u32::MAX
}

/// `length` bits of `value` from `start` on, of a word of so many `bits`.
#[inline(always)]
pub(super) fn field(value: u64, start: u32, length: u32, bits: u32, is_signed: bool) -> u64 {
    let (start, length) = (start & 0xFF, length & 0xFF);
    let sign = if is_signed && length != 0 {
        let highest = u64::from(start.saturating_add(length) - 1).min(u64::from(bits) - 1);
        value >> highest & 1
    } else {
        0
    };
    let shifted = if start >= bits { 0 } else { value >> start };
    let taken = length.min(bits.saturating_sub(start));
    let kept = if taken >= 64 { u64::MAX } else { (1 << taken) - 1 };
    let fill = if sign == 1 { !kept } else { 0 };
    if length == 0 { 0 } else { shifted & kept | fill }
}

/// `b` with the lowest `length` bits of `a` from `start` on.
#[inline(always)]
fn inserted(a: u64, b: u64, start: u32, length: u32, bits: u32) -> u64 {
    let (start, length) = (start & 0xFF, length & 0xFF);
    if start >= bits || length == 0 {
        return b;
    }
    let length = length.min(bits - start);
    let kept = (if length >= 64 { u64::MAX } else { (1 << length) - 1 }) << start;
    b & !kept | a << start & kept
}

fn extended(ty: Type, wraps: bool) -> Option<Alu> {
    match (ty, wraps) {
        (Type::Unsigned(32), true) => lanes!(Narrow <- |a: Narrow, b: Narrow| a & ((1u32 << (b & 31)) - 1)),
        (Type::Unsigned(32), false) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow| if b > 31 { a } else { a & ((1u32 << (b & 31)) - 1) })
        }
        (Type::Signed(32), true) => lanes!(Narrow <- |a: Narrow, b: Narrow| sign_extended(a, b & 31)),
        (Type::Signed(32), false) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow| if b > 31 { a } else { sign_extended(a, b & 31) })
        }
        _ => None,
    }
}

#[inline(always)]
fn sign_extended(a: u32, bits: u32) -> u32 {
    if bits == 0 { 0 } else { ((a << (32 - bits)) as i32 >> (32 - bits)) as u32 }
}

/// `length` ones from bit `start` on.
#[inline(always)]
fn mask(start: u32, length: u32) -> u32 {
    if start > 31 || length == 0 {
        return 0;
    }
    (if length > 31 { u32::MAX } else { (1 << length) - 1 }) << start
}

/// The bits that `table` has for those of three words.
#[inline(always)]
fn looked_up(a: u32, b: u32, c: u32, table: u32) -> u32 {
    (0..8).filter(|row| table >> row & 1 == 1).fold(0, |found, row| {
        let of = |word: u32, bit: u32| if row >> bit & 1 == 1 { word } else { !word };
        found | of(a, 2) & of(b, 1) & of(c, 0)
    })
}

/// Byte `number` of two words; with bit 3 set its sign instead.
#[inline(always)]
fn byte(words: u64, selector: u32) -> u32 {
    let byte = (words >> ((selector & 7) * 8)) as u32 & 0xFF;
    if selector & 8 != 0 { if byte & 0x80 != 0 { 0xFF } else { 0 } } else { byte }
}

fn permute(form: &Form<'_>) -> Option<Alu> {
    #[inline(always)]
    fn bytes(a: u32, b: u32, of: impl Fn(u32) -> u32) -> u32 {
        let words = joined(a, b);
        (0..4).fold(0, |word, place| word | byte(words, of(place)) << (8 * place))
    }
    let mode = ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"].into_iter().find(|mode| form.has(mode));
    match mode {
        None => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| bytes(a, b, |place| c >> (4 * place) & 15)),
        Some("f4e") => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| bytes(a, b, |place| ((c & 3) + place) & 7)),
        Some("b4e") => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| {
            bytes(a, b, |place| (c & 3).wrapping_sub(place) & 7)
        }),
        Some("rc8") => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| bytes(a, b, |_| c & 3)),
        Some("ecl") => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| bytes(a, b, |place| place.max(c & 3))),
        Some("ecr") => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| bytes(a, b, |place| place.min(c & 3))),
        _ => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| bytes(a, b, |place| (c & 1) * 2 + (place & 1))),
    }
}

fn dot_product(form: &Form<'_>) -> Option<Alu> {
    #[inline(always)]
    fn part(word: u32, place: u32, bits: u32, is_signed: bool) -> u32 {
        let at_top = word << (32 - bits - place * bits);
        if is_signed { (at_top as i32 >> (32 - bits)) as u32 } else { at_top >> (32 - bits) }
    }
    #[inline(always)]
    fn four(a: u32, b: u32, c: u32, signed: [bool; 2]) -> u32 {
        let product = |i| part(a, i, 8, signed[0]).wrapping_mul(part(b, i, 8, signed[1]));
        (0..4).fold(c, |sum, i| sum.wrapping_add(product(i)))
    }
    #[inline(always)]
    fn two(a: u32, b: u32, c: u32, signed: [bool; 2], high: u32) -> u32 {
        let product = |i| part(a, i, 16, signed[0]).wrapping_mul(part(b, i + 2 * high, 8, signed[1]));
        (0..2).fold(c, |sum, i| sum.wrapping_add(product(i)))
    }
    let &[a, b] = form.types.as_slice() else { return None };
    match (form.opcode, a.is_signed(), b.is_signed(), form.has("hi")) {
        ("dp4a", false, false, _) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| four(a, b, c, [false, false])),
        ("dp4a", false, true, _) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| four(a, b, c, [false, true])),
        ("dp4a", true, false, _) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| four(a, b, c, [true, false])),
        ("dp4a", true, true, _) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| four(a, b, c, [true, true])),
        (_, false, false, false) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| two(a, b, c, [false, false], 0))
        }
        (_, false, true, false) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| two(a, b, c, [false, true], 0)),
        (_, true, false, false) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| two(a, b, c, [true, false], 0)),
        (_, true, true, false) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| two(a, b, c, [true, true], 0)),
        (_, false, false, true) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| two(a, b, c, [false, false], 1)),
        (_, false, true, true) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| two(a, b, c, [false, true], 1)),
        (_, true, false, true) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| two(a, b, c, [true, false], 1)),
        (_, true, true, true) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| two(a, b, c, [true, true], 1)),
    }
}
