//! Integer arithmetic, logic and shifts.

use super::bits;
use super::op::Form;
use crate::ast::Type;
use crate::registers::{Alu, lanes, typed};

/// What carries out an integer instruction; none if it is none that is known.
pub(super) fn find(form: &Form<'_>) -> Option<Alu> {
    let ty = form.ty()?;
    let has = |modifier| form.has(modifier);
    match form.opcode {
        "add" if has("sat") && ty == Type::Signed(32) => typed!(ty, |a, b| a.saturating_add(b)),
        "sub" if has("sat") && ty == Type::Signed(32) => typed!(ty, |a, b| a.saturating_sub(b)),
        "add" if !has("cc") => typed!(ty, |a, b| a.wrapping_add(b)),
        "sub" if !has("cc") => typed!(ty, |a, b| a.wrapping_sub(b)),
        "mul" if has("wide") => wide_product(ty),
        "mul" if has("hi") => high_product(ty),
        "mul" if has("lo") => typed!(ty, |a, b| a.wrapping_mul(b)),
        "mad" if has("wide") => wide_sum(ty),
        "mad" if has("hi") && !has("cc") => high_sum(ty, has("sat")),
        "mad" if has("lo") && !has("cc") => typed!(ty, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        "mul24" | "mad24" => of_24_bits(form, ty),
        "sad" => typed!(ty, |a, b, c| c.wrapping_add(if a < b { b.wrapping_sub(a) } else { a.wrapping_sub(b) })),
        // What the hardware gives for a division by zero: all ones, and the dividend for the remainder.
        "div" => match ty {
            Type::Signed(_) => typed!(ty, |a, b| if b == 0 { !0 } else { a.wrapping_div(b) }),
            _ => typed!(ty, |a, b| a.checked_div(b).unwrap_or(!0)),
        },
        "rem" => typed!(ty, |a, b| if b == 0 { a } else { a.wrapping_rem(b) }),
        "abs" => match ty {
            Type::Signed(16) => lanes!(Half <- |a: Half| (a as u16 as i16).wrapping_abs() as u16 as u32),
            Type::Signed(32) => lanes!(Narrow <- |a: Narrow| (a as i32).wrapping_abs() as u32),
            Type::Signed(64) => lanes!(Wide <- |a: Wide| (a as i64).wrapping_abs() as u64),
            _ => None,
        },
        "neg" => typed!(ty, |a| a.wrapping_neg()),
        "min" | "max" if has("relu") => match (form.opcode, ty) {
            ("min", Type::Signed(32)) => {
                lanes!(Narrow <- |a: Narrow, b: Narrow| (a as i32).min(b as i32).max(0) as u32)
            }
            ("max", Type::Signed(32)) => {
                lanes!(Narrow <- |a: Narrow, b: Narrow| (a as i32).max(b as i32).max(0) as u32)
            }
            _ => None,
        },
        "min" => typed!(ty, |a, b| a.min(b)),
        "max" => typed!(ty, |a, b| a.max(b)),
        "and" | "or" | "xor" | "not" | "cnot" => logic(form.opcode, ty),
        "shl" | "shr" => shift(form.opcode, ty),
        _ => bits::find(form, ty),
    }
}

fn logic(opcode: &str, ty: Type) -> Option<Alu> {
    if ty == Type::Pred {
        return match opcode {
            "and" => lanes!(Pred <- |a: Pred, b: Pred| a & b),
            "or" => lanes!(Pred <- |a: Pred, b: Pred| a | b),
            "xor" => lanes!(Pred <- |a: Pred, b: Pred| a ^ b),
            "not" => lanes!(Pred <- |a: Pred| !a),
            _ => None,
        };
    }
    match opcode {
        "and" => typed!(ty, |a, b| a & b),
        "or" => typed!(ty, |a, b| a | b),
        "xor" => typed!(ty, |a, b| a ^ b),
        "not" => typed!(ty, |a| !a),
        _ => typed!(ty, |a| if a == 0 { 1 } else { 0 }),
    }
}

/// Shifts past the width leave nothing, or the sign.
fn shift(opcode: &str, ty: Type) -> Option<Alu> {
    match (opcode, ty) {
        ("shl", Type::Bits(16)) => lanes!(Half <- |a: Half, b: Narrow| if b > 15 { 0 } else { a << (b & 15) }),
        ("shl", Type::Bits(32)) => lanes!(Narrow <- |a: Narrow, b: Narrow| if b > 31 { 0 } else { a << (b & 31) }),
        ("shl", Type::Bits(64)) => lanes!(Wide <- |a: Wide, b: Narrow| if b > 63 { 0 } else { a << (b & 63) }),
        ("shr", Type::Bits(16) | Type::Unsigned(16)) => {
            lanes!(Half <- |a: Half, b: Narrow| if b > 15 { 0 } else { a >> (b & 15) })
        }
        ("shr", Type::Bits(32) | Type::Unsigned(32)) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow| if b > 31 { 0 } else { a >> (b & 31) })
        }
        ("shr", Type::Bits(64) | Type::Unsigned(64)) => {
            lanes!(Wide <- |a: Wide, b: Narrow| if b > 63 { 0 } else { a >> (b & 63) })
        }
        ("shr", Type::Signed(16)) => lanes!(Half <- |a: Half, b: Narrow| (a as u16 as i16 >> b.min(15)) as u16 as u32),
        ("shr", Type::Signed(32)) => lanes!(Narrow <- |a: Narrow, b: Narrow| (a as i32 >> b.min(31)) as u32),
        ("shr", Type::Signed(64)) => lanes!(Wide <- |a: Wide, b: Narrow| (a as i64 >> b.min(63)) as u64),
        _ => None,
    }
}

fn wide_product(ty: Type) -> Option<Alu> {
    match ty {
        Type::Unsigned(16) => lanes!(Narrow <- |a: Half, b: Half| a.wrapping_mul(b)),
        Type::Signed(16) => {
            lanes!(Narrow <- |a: Half, b: Half| (i32::from(a as u16 as i16) * i32::from(b as u16 as i16)) as u32)
        }
        Type::Unsigned(32) => lanes!(Wide <- |a: Narrow, b: Narrow| u64::from(a) * u64::from(b)),
        Type::Signed(32) => lanes!(Wide <- |a: Narrow, b: Narrow| (i64::from(a as i32) * i64::from(b as i32)) as u64),
        _ => None,
    }
}

fn wide_sum(ty: Type) -> Option<Alu> {
    match ty {
        Type::Unsigned(16) => lanes!(Narrow <- |a: Half, b: Half, c: Narrow| a.wrapping_mul(b).wrapping_add(c)),
        Type::Signed(16) => lanes!(Narrow <- |a: Half, b: Half, c: Narrow| {
            ((i32::from(a as u16 as i16) * i32::from(b as u16 as i16)) as u32).wrapping_add(c)
        }),
        Type::Unsigned(32) => {
            lanes!(Wide <- |a: Narrow, b: Narrow, c: Wide| (u64::from(a) * u64::from(b)).wrapping_add(c))
        }
        Type::Signed(32) => lanes!(Wide <- |a: Narrow, b: Narrow, c: Wide| {
            ((i64::from(a as i32) * i64::from(b as i32)) as u64).wrapping_add(c)
        }),
        _ => None,
    }
}

fn high_product(ty: Type) -> Option<Alu> {
    match ty {
        Type::Unsigned(16) => lanes!(Half <- |a: Half, b: Half| a.wrapping_mul(b) >> 16),
        Type::Signed(16) => lanes!(Half <- |a: Half, b: Half| {
            ((i32::from(a as u16 as i16) * i32::from(b as u16 as i16)) >> 16) as u32
        }),
        Type::Unsigned(32) => lanes!(Narrow <- |a: Narrow, b: Narrow| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        Type::Signed(32) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32)
        }
        Type::Unsigned(64) => lanes!(Wide <- |a: Wide, b: Wide| ((u128::from(a) * u128::from(b)) >> 64) as u64),
        Type::Signed(64) => {
            lanes!(Wide <- |a: Wide, b: Wide| ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64)
        }
        _ => None,
    }
}

fn high_sum(ty: Type, saturates: bool) -> Option<Alu> {
    match ty {
        Type::Signed(32) if saturates => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| {
            (((i64::from(a as i32) * i64::from(b as i32)) >> 32) as i32).saturating_add(c as i32) as u32
        }),
        _ if saturates => None,
        Type::Unsigned(32) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| {
            (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c)
        }),
        Type::Signed(32) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| {
            (((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32).wrapping_add(c)
        }),
        Type::Unsigned(64) => lanes!(Wide <- |a: Wide, b: Wide, c: Wide| {
            (((u128::from(a) * u128::from(b)) >> 64) as u64).wrapping_add(c)
        }),
        Type::Signed(64) => lanes!(Wide <- |a: Wide, b: Wide, c: Wide| {
            (((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64).wrapping_add(c)
        }),
        _ => None,
    }
}

/// The lower 24 bits of a number.
#[inline(always)]
fn low(value: u32, is_signed: bool) -> i64 {
    if is_signed { i64::from((value << 8) as i32 >> 8) } else { i64::from(value & 0x00FF_FFFF) }
}

fn of_24_bits(form: &Form<'_>, ty: Type) -> Option<Alu> {
    match (form.opcode, ty, form.has("hi")) {
        ("mul24", Type::Unsigned(32), false) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow| (low(a, false) * low(b, false)) as u32)
        }
        ("mul24", Type::Signed(32), false) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow| (low(a, true) * low(b, true)) as u32)
        }
        ("mul24", Type::Unsigned(32), true) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow| ((low(a, false) * low(b, false)) >> 16) as u32)
        }
        ("mul24", Type::Signed(32), true) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow| ((low(a, true) * low(b, true)) >> 16) as u32)
        }
        ("mad24", Type::Unsigned(32), true) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| {
            (((low(a, false) * low(b, false)) >> 16) as u32).wrapping_add(c)
        }),
        ("mad24", Type::Signed(32), true) if form.has("sat") => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| {
            (((low(a, true) * low(b, true)) >> 16) as i32).saturating_add(c as i32) as u32
        }),
        ("mad24", Type::Signed(32), true) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| {
            (((low(a, true) * low(b, true)) >> 16) as u32).wrapping_add(c)
        }),
        ("mad24", Type::Unsigned(32), false) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| {
            ((low(a, false) * low(b, false)) as u32).wrapping_add(c)
        }),
        ("mad24", Type::Signed(32), false) => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| {
            ((low(a, true) * low(b, true)) as u32).wrapping_add(c)
        }),
        _ => None,
    }
}
