//! `vadd4` and its like: what is done to each byte or half of two words.

use super::op::Form;
use crate::ast::Type;
use crate::registers::{Alu, lanes};

const OPERATIONS: [&str; 6] = ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"];

/// In an instruction's word, behind the operation: which of target and sources are signed, and what becomes of the results.
const SIGNED: [u32; 3] = [1 << 3, 1 << 4, 1 << 5];
const BYTES: u32 = 1 << 6;
const SATURATES: u32 = 1 << 7;
const ADDS: u32 = 1 << 8;

#[inline]
fn carried_out(a: u32, b: u32, c: u32, how: u32) -> u32 {
    let (bits, count) = if how & BYTES != 0 { (8, 4) } else { (16, 2) };
    let extended = |word: u32, is_signed: bool| {
        let at_top = i64::from(word) << (64 - bits);
        if is_signed { at_top >> (64 - bits) } else { (at_top.cast_unsigned() >> (64 - bits)).cast_signed() }
    };
    let is_signed = |which: usize| how & SIGNED[which] != 0;
    let (least, most) = match is_signed(0) {
        true => (-(1i64 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1i64 << bits) - 1),
    };
    let (mut word, mut sum) = (0, c);
    for number in 0..count {
        let shift = number * bits;
        let (a, b) = (extended(a >> shift, is_signed(1)), extended(b >> shift, is_signed(2)));
        let value = match how & 7 {
            0 => a + b,
            1 => a - b,
            2 => (a + b + i64::from(a + b >= 0)) >> 1,
            3 => (a - b).abs(),
            4 => a.min(b),
            _ => a.max(b),
        };
        let value = if how & SATURATES != 0 { value.clamp(least, most) } else { value };
        let kept = value as u32 & (u32::MAX >> (32 - bits));
        word |= kept << shift;
        sum = sum.wrapping_add(extended(kept, is_signed(0)) as u32);
    }
    if how & ADDS != 0 { sum } else { word }
}

/// What carries out such an instruction on whole words, and the word of its last source.
pub(super) fn find(form: &Form<'_>) -> Option<(Alu, Option<u32>)> {
    let (name, bytes) = match form.opcode.strip_suffix('4') {
        Some(name) => (name, BYTES),
        None => (form.opcode.strip_suffix('2')?, 0),
    };
    let operation = OPERATIONS.iter().position(|known| *known == name)? as u32;
    let &[d, a, b] = form.types.as_slice() else { return None };
    if ![d, a, b].iter().all(|ty| matches!(ty, Type::Unsigned(32) | Type::Signed(32))) {
        return None;
    }
    let signs = [d, a, b].iter().zip(SIGNED).filter(|(ty, _)| ty.is_signed()).fold(0, |signs, (_, sign)| signs | sign);
    let flags = [("sat", SATURATES), ("add", ADDS)];
    let flags = flags.into_iter().filter(|(name, _)| form.has(name)).fold(0, |flags, (_, flag)| flags | flag);
    let alu = lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow, how: Narrow| carried_out(a, b, c, how))?;
    Some((alu, Some(operation | bytes | signs | flags)))
}
