//! Arithmetic: what an instruction does to its lanes.

mod bits;
mod compare;
mod convert;
mod exact;
mod float;
mod half;
mod integer;
mod narrow;
mod op;
mod video;

pub(crate) use compare::{Combination, comparison};
pub(crate) use exact::{BF16, F16};
pub(crate) use half::{higher, lower};
pub(crate) use narrow::decoded;
pub(crate) use op::{Form, Rounding};

use crate::ast::Type;
use crate::registers::{Alu, Class, lanes};

/// An arithmetic instruction, and the word that its last source holds, if it has one more than is written.
pub(crate) fn find(form: &Form<'_>) -> Option<(Alu, Option<u32>)> {
    match form.opcode {
        "cvt" => return convert::find(form),
        "mov" => return moved(form.ty()?).map(|alu| (alu, None)),
        "selp" => return selected(form.ty()?).map(|alu| (alu, None)),
        "slct" => return slct(form).map(|alu| (alu, None)),
        opcode if opcode.starts_with('v') => return video::find(form),
        _ => {}
    }
    let ty = form.ty()?;
    let joins = matches!(form.opcode, "prmt" | "bfi");
    let alu = match ty {
        Type::Float(32 | 64) => return float::find(form),
        Type::Float(_) | Type::Bf16 | Type::F16x2 | Type::Bf16x2 => return half::find(form),
        Type::U16x2 | Type::S16x2 => pairs(form, ty),
        _ => integer::find(form),
    };
    alu.map(|alu| (Alu { joins, ..alu }, None))
}

/// A copy within a width.
pub(crate) fn copy(class: Class) -> Option<Alu> {
    match class {
        Class::Pred => lanes!(Pred <- |a: Pred| a),
        Class::Half => lanes!(Half <- |a: Half| a),
        Class::Narrow => lanes!(Narrow <- |a: Narrow| a),
        Class::Wide => lanes!(Wide <- |a: Wide| a),
    }
}

fn moved(ty: Type) -> Option<Alu> {
    copy(class_of(ty)?)
}

/// The width of a type's registers; none for those of 128 bits.
pub(crate) fn class_of(ty: Type) -> Option<Class> {
    Some(match ty.bits() {
        1 => Class::Pred,
        8 | 16 => Class::Half,
        32 => Class::Narrow,
        64 => Class::Wide,
        _ => return None,
    })
}

fn selected(ty: Type) -> Option<Alu> {
    match class_of(ty)? {
        Class::Pred => None,
        Class::Half => lanes!(Half <- |a: Half, b: Half, c: Pred| if c { a } else { b }),
        Class::Narrow => lanes!(Narrow <- |a: Narrow, b: Narrow, c: Pred| if c { a } else { b }),
        Class::Wide => lanes!(Wide <- |a: Wide, b: Wide, c: Pred| if c { a } else { b }),
    }
}

/// `slct`: by the sign of the third source.
fn slct(form: &Form<'_>) -> Option<Alu> {
    let &[ty, by] = form.types.as_slice() else { return None };
    match (class_of(ty)?, by) {
        (Class::Half, Type::Signed(32)) => {
            lanes!(Half <- |a: Half, b: Half, c: Narrow| if c as i32 >= 0 { a } else { b })
        }
        (Class::Narrow, Type::Signed(32)) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| if c as i32 >= 0 { a } else { b })
        }
        (Class::Wide, Type::Signed(32)) => {
            lanes!(Wide <- |a: Wide, b: Wide, c: Narrow| if c as i32 >= 0 { a } else { b })
        }
        (Class::Narrow, Type::Float(32)) => {
            lanes!(Narrow <- |a: Narrow, b: Narrow, c: Narrow| if f32::from_bits(c) >= 0.0 { a } else { b })
        }
        (Class::Wide, Type::Float(32)) => {
            lanes!(Wide <- |a: Wide, b: Wide, c: Narrow| if f32::from_bits(c) >= 0.0 { a } else { b })
        }
        _ => None,
    }
}

/// Pairs of 16-bit integers.
fn pairs(form: &Form<'_>, ty: Type) -> Option<Alu> {
    macro_rules! both {
        (|$($x:ident: $T:ty),+| $value:expr) => {
            lanes!(Narrow <- |$($x: Narrow),+| {
                let low = {
                    $(let $x = $x as u16 as $T;)+
                    u32::from($value as u16)
                };
                let high = {
                    $(let $x = ($x >> 16) as u16 as $T;)+
                    u32::from($value as u16)
                };
                low | high << 16
            })
        };
    }
    match (form.opcode, ty) {
        _ if form.has("relu") || form.has("sat") => None,
        ("add", _) => both!(|a: u16, b: u16| a.wrapping_add(b)),
        ("sub", _) => both!(|a: u16, b: u16| a.wrapping_sub(b)),
        ("min", Type::S16x2) => both!(|a: i16, b: i16| a.min(b)),
        ("max", Type::S16x2) => both!(|a: i16, b: i16| a.max(b)),
        ("min", _) => both!(|a: u16, b: u16| a.min(b)),
        ("max", _) => both!(|a: u16, b: u16| a.max(b)),
        _ => None,
    }
}

/// Parts of words put together, or taken out of them: what `mov` does with vectors.
pub(crate) fn joined(whole: Class, part: Class, count: usize) -> Option<Alu> {
    match (whole, part, count) {
        (Class::Wide, Class::Narrow, 2) => {
            lanes!(Wide <- |a: Narrow, b: Narrow| u64::from(a) | u64::from(b) << 32)
        }
        (Class::Narrow, Class::Half, 2) => lanes!(Narrow <- |a: Half, b: Half| a & 0xFFFF | b << 16),
        (Class::Wide, Class::Half, 4) => lanes!(Wide <- |a: Half, b: Half, c: Half, d: Half| {
            u64::from(a & 0xFFFF) | u64::from(b & 0xFFFF) << 16 | u64::from(c & 0xFFFF) << 32 | u64::from(d) << 48
        }),
        (Class::Half, Class::Half, 2) => lanes!(Half <- |a: Half, b: Half| a & 0xFF | b << 8),
        (Class::Narrow, Class::Half, 4) => {
            lanes!(Narrow <- |a: Half, b: Half, c: Half, d: Half| a & 0xFF | (b & 0xFF) << 8 | (c & 0xFF) << 16 | d << 24)
        }
        _ => None,
    }
}

/// So many bits of a word from the bit on that the second source says, the third being a mask.
pub(crate) fn part(whole: Class, part: Class) -> Option<Alu> {
    match (whole, part) {
        (Class::Wide, Class::Narrow) => lanes!(Narrow <- |a: Wide, shift: Narrow| (a >> (shift & 63)) as u32),
        (Class::Wide, Class::Half) => lanes!(Half <- |a: Wide, shift: Narrow| (a >> (shift & 63)) as u32),
        (Class::Narrow | Class::Half, Class::Half) => lanes!(Half <- |a: Narrow, shift: Narrow| a >> (shift & 31)),
        _ => None,
    }
}

/// A register's value in one of another width: cut off, or extended with zeros or its sign (of so many bits).
pub(crate) fn resized(from: Class, to: Class, signed_bits: Option<u32>) -> Option<Alu> {
    match (from, to, signed_bits) {
        (from, to, None) if from == to => copy(from),
        (Class::Wide, Class::Narrow, _) => lanes!(Narrow <- |a: Wide| a as u32),
        (Class::Wide, Class::Half, _) => lanes!(Half <- |a: Wide| a as u32),
        (Class::Narrow, Class::Half, None) => lanes!(Half <- |a: Narrow| a),
        (Class::Half, Class::Narrow, None) => lanes!(Narrow <- |a: Half| a),
        (Class::Half | Class::Narrow, Class::Wide, None) => lanes!(Wide <- |a: Narrow| u64::from(a)),
        (_, Class::Half, Some(8)) => lanes!(Half <- |a: Half| a as u8 as i8 as i32 as u32),
        (_, Class::Half, Some(_)) => lanes!(Half <- |a: Half| a),
        (_, Class::Narrow, Some(8)) => lanes!(Narrow <- |a: Half| a as u8 as i8 as i32 as u32),
        (_, Class::Narrow, Some(16)) => lanes!(Narrow <- |a: Half| a as u16 as i16 as i32 as u32),
        (_, Class::Wide, Some(8)) => lanes!(Wide <- |a: Half| a as u8 as i8 as i64 as u64),
        (_, Class::Wide, Some(16)) => lanes!(Wide <- |a: Half| a as u16 as i16 as i64 as u64),
        (_, Class::Wide, Some(32)) => lanes!(Wide <- |a: Narrow| a as i32 as i64 as u64),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
