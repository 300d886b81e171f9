//! What atomics make of the old value.

use crate::alu::{BF16, F16, Rounding, higher, lower};
use crate::ast::Type;
use crate::program::Atomic;

const fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// Something done to each number of 16 bits in a word.
#[inline(always)]
fn halves<const BRAIN: bool>(old: u64, b: u64, change: fn(f64, f64) -> f64) -> u64 {
    let format = if BRAIN { BF16 } else { F16 };
    (0..4).fold(0, |word, number| {
        let [old, b] = [old, b].map(|word| format.value((word >> (16 * number)) as u32 & 0xFFFF));
        word | u64::from(format.round(change(old, b), Rounding::Nearest)) << (16 * number)
    })
}

/// The atomic of that name; its operands are as wide as the type, in the lowest bits. Sums of single precision and those of halves are
/// also those of as many as fit in a word, side by side.
pub(crate) fn find(name: &str, ty: Type) -> Option<Atomic> {
    Some(match (name, ty) {
        ("exch", _) => |_, b, _| b,
        ("cas", Type::Bits(16 | 32 | 64) | Type::Unsigned(32 | 64) | Type::Signed(32 | 64)) => {
            |old, b, c| if old == b { c } else { old }
        }
        ("and", Type::Bits(32 | 64)) => |old, b, _| old & b,
        ("or", Type::Bits(32 | 64)) => |old, b, _| old | b,
        ("xor", Type::Bits(32 | 64)) => |old, b, _| old ^ b,
        ("add", Type::Unsigned(32) | Type::Signed(32)) => |old, b, _| (old as u32).wrapping_add(b as u32).into(),
        ("add", Type::Unsigned(64) | Type::Signed(64)) => |old, b, _| old.wrapping_add(b),
        ("add", Type::Float(32)) => |old, b, _| {
            let [low, high] = [0, 32].map(|shift| u64::from((f32_of(old >> shift) + f32_of(b >> shift)).to_bits()));
            low | high << 32
        },
        ("add", Type::Float(64)) => |old, b, _| (f64::from_bits(old) + f64::from_bits(b)).to_bits(),
        ("add", Type::Float(16) | Type::F16x2) => |old, b, _| halves::<false>(old, b, |a, b| a + b),
        ("add", Type::Bf16 | Type::Bf16x2) => |old, b, _| halves::<true>(old, b, |a, b| a + b),
        ("min", Type::Float(16) | Type::F16x2) => |old, b, _| halves::<false>(old, b, lower),
        ("min", Type::Bf16 | Type::Bf16x2) => |old, b, _| halves::<true>(old, b, lower),
        ("max", Type::Float(16) | Type::F16x2) => |old, b, _| halves::<false>(old, b, higher),
        ("max", Type::Bf16 | Type::Bf16x2) => |old, b, _| halves::<true>(old, b, higher),
        ("inc", Type::Unsigned(32)) => |old, b, _| if old as u32 >= b as u32 { 0 } else { old + 1 },
        ("dec", Type::Unsigned(32)) => |old, b, _| {
            if old as u32 == 0 || old as u32 > b as u32 { u64::from(b as u32) } else { old - 1 }
        },
        ("min", Type::Unsigned(32 | 64)) => |old, b, _| old.min(b),
        ("max", Type::Unsigned(32 | 64)) => |old, b, _| old.max(b),
        ("min", Type::Signed(32)) => |old, b, _| (old as i32).min(b as i32) as u32 as u64,
        ("max", Type::Signed(32)) => |old, b, _| (old as i32).max(b as i32) as u32 as u64,
        ("min", Type::Signed(64)) => |old, b, _| old.cast_signed().min(b.cast_signed()).cast_unsigned(),
        ("max", Type::Signed(64)) => |old, b, _| old.cast_signed().max(b.cast_signed()).cast_unsigned(),
        _ => return None,
    })
}
