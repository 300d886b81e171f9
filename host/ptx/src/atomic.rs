//! What atomics make of the old value.

use crate::ast::Type;
use crate::program::Atomic;

const fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// The atomic of that name; its operands are as wide as the type, in the lowest bits.
pub(crate) fn find(name: &str, ty: Type) -> Option<Atomic> {
    Some(match (name, ty) {
        ("exch", _) => |_, b, _| b,
        ("cas", _) => |old, b, c| if old == b { c } else { old },
        ("and", Type::Bits(32 | 64)) => |old, b, _| old & b,
        ("or", Type::Bits(32 | 64)) => |old, b, _| old | b,
        ("xor", Type::Bits(32 | 64)) => |old, b, _| old ^ b,
        ("add", Type::Unsigned(32) | Type::Signed(32)) => |old, b, _| (old as u32).wrapping_add(b as u32).into(),
        ("add", Type::Unsigned(64) | Type::Signed(64)) => |old, b, _| old.wrapping_add(b),
        ("add", Type::Float(32)) => |old, b, _| (f32_of(old) + f32_of(b)).to_bits().into(),
        ("add", Type::Float(64)) => |old, b, _| (f64::from_bits(old) + f64::from_bits(b)).to_bits(),
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
