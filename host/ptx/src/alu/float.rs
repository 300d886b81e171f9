//! Single and double precision.
//!
//! What the manual says exactly is exact: sums, products, `fma`, `div.rn`, `sqrt.rn`. What it calls approximate (`.approx`, `.full`,
//! `sin`, `ex2` and their like) is computed exactly and rounded once here: nearer than the hardware comes, and not its bits.

use super::exact::{self, F32};
use super::op::{Form, Rounding};
use crate::ast::Type;
use crate::registers::{Alu, lanes};

/// What carries out an instruction, and the word that its last source holds, if it has one more than is written.
pub(super) fn find(form: &Form<'_>) -> Option<(Alu, Option<u32>)> {
    let alu = match form.ty()? {
        Type::Float(32) if form.rounding() != Rounding::Nearest => return directed(form),
        Type::Float(32) => single(form),
        Type::Float(64) => double(form),
        _ => None,
    };
    alu.map(|alu| (alu, None))
}

/// A number below the normal ones as a zero of its sign.
#[inline(always)]
pub(super) fn flushed(bits: u32) -> u32 {
    if bits & 0x7F80_0000 == 0 { bits & 1 << 31 } else { bits }
}

#[inline(always)]
fn input(bits: u32, flushes: bool) -> f32 {
    f32::from_bits(if flushes { flushed(bits) } else { bits })
}

/// The bits of a result: NaN has but one pattern; `.sat` clamps to [0, 1].
#[inline(always)]
fn output(value: f32, flushes: bool, saturates: bool) -> u32 {
    if saturates {
        // NaN becomes 0.
        return if value > 0.0 { value.min(1.0) } else { 0.0 }.to_bits();
    }
    let bits = if value.is_nan() { 0x7FFF_FFFF } else { value.to_bits() };
    if flushes { flushed(bits) } else { bits }
}

/// [`lanes`] of single precision, as `.ftz` and `.sat` want it.
macro_rules! singles {
    ($form:expr, |$($x:ident),+| $value:expr) => {
        match ($form.has("ftz"), $form.has("sat")) {
            (false, false) => singles!(false, false, |$($x),+| $value),
            (true, false) => singles!(true, false, |$($x),+| $value),
            (false, true) => singles!(false, true, |$($x),+| $value),
            (true, true) => singles!(true, true, |$($x),+| $value),
        }
    };
    ($ftz:literal, $sat:literal, |$($x:ident),+| $value:expr) => {
        lanes!(Narrow <- |$($x: Narrow),+| {
            $(let $x = input($x, $ftz);)+
            output($value, $ftz, $sat)
        })
    };
}

/// How a result is rounded that is no nearest one, in a word: the mode, and whether numbers are flushed and the result saturated.
fn how(form: &Form<'_>) -> u32 {
    let mode = match form.rounding() {
        Rounding::Down => 1,
        Rounding::Up => 2,
        _ => 0,
    };
    mode | u32::from(form.has("ftz")) << 2 | u32::from(form.has("sat")) << 3
}

/// An exact result in double precision, or one that is rounded to odd, rounded as such a word says.
#[inline(always)]
fn rounded(value: f64, how: u32) -> u32 {
    let mode = match how & 3 {
        1 => Rounding::Down,
        2 => Rounding::Up,
        _ => Rounding::Zero,
    };
    output(f32::from_bits(F32.round(value, mode)), how & 4 != 0, how & 8 != 0)
}

/// Instructions that round otherwise than to the nearest.
fn directed(form: &Form<'_>) -> Option<(Alu, Option<u32>)> {
    macro_rules! rounded {
        (|$($x:ident),+| $value:expr) => {
            lanes!(Narrow <- |$($x: Narrow),+, how: Narrow| {
                $(let $x = f64::from(input($x, how & 4 != 0));)+
                rounded($value, how)
            })
        };
    }
    if form.types.len() != 1 {
        return None;
    }
    let alu = match form.opcode {
        "add" => rounded!(|a, b| exact::product_and_sum(a, 1.0, b)),
        "sub" => rounded!(|a, b| exact::product_and_sum(a, 1.0, -b)),
        "mul" => rounded!(|a, b| a * b),
        "fma" | "mad" => rounded!(|a, b, c| exact::product_and_sum(a, b, c)),
        "div" => rounded!(|a, b| exact::quotient(a, b)),
        "rcp" => rounded!(|a| exact::quotient(1.0, a)),
        "sqrt" => rounded!(|a| exact::square_root(a)),
        _ => None,
    };
    Some((alu?, Some(how(form))))
}

fn single(form: &Form<'_>) -> Option<Alu> {
    let once = |form: &Form<'_>| form.types.len() == 1;
    if !once(form) {
        return None;
    }
    match form.opcode {
        "add" => singles!(form, |a, b| a + b),
        "sub" => singles!(form, |a, b| a - b),
        "mul" => singles!(form, |a, b| a * b),
        "fma" | "mad" => singles!(form, |a, b, c| a.mul_add(b, c)),
        "div" => singles!(form, |a, b| a / b),
        "rcp" => singles!(form, |a| 1.0 / a),
        "sqrt" => singles!(form, |a| a.sqrt()),
        "rsqrt" => singles!(form, |a| (1.0 / libm::sqrt(f64::from(a))) as f32),
        "sin" => singles!(form, |a| libm::sin(f64::from(a)) as f32),
        "cos" => singles!(form, |a| libm::cos(f64::from(a)) as f32),
        "lg2" => singles!(form, |a| libm::log2(f64::from(a)) as f32),
        "ex2" => singles!(form, |a| libm::exp2(f64::from(a)) as f32),
        "tanh" => singles!(form, |a| libm::tanh(f64::from(a)) as f32),
        "neg" => match form.has("ftz") {
            true => lanes!(Narrow <- |a: Narrow| flushed(a) ^ 1 << 31),
            false => lanes!(Narrow <- |a: Narrow| a ^ 1 << 31),
        },
        "abs" => match form.has("ftz") {
            true => lanes!(Narrow <- |a: Narrow| flushed(a) & !(1 << 31)),
            false => lanes!(Narrow <- |a: Narrow| a & !(1 << 31)),
        },
        "min" | "max" => extreme(form),
        "copysign" => lanes!(Narrow <- |a: Narrow, b: Narrow| b & !(1 << 31) | a & 1 << 31),
        "testp" => tested(form),
        _ => None,
    }
}

/// The lower of two numbers: a NaN only if both are, or if `.NaN` says that one is enough. -0 is below +0.
#[inline(always)]
pub(super) fn lower(a: f32, b: f32) -> f32 {
    if a.is_nan() || b < a || a == b && b.is_sign_negative() { b } else { a }
}

#[inline(always)]
pub(super) fn higher(a: f32, b: f32) -> f32 {
    if a.is_nan() || b > a || a == b && a.is_sign_negative() { b } else { a }
}

fn extreme(form: &Form<'_>) -> Option<Alu> {
    #[inline(always)]
    fn strict(a: f32, b: f32, chosen: f32) -> f32 {
        if a.is_nan() || b.is_nan() { f32::NAN } else { chosen }
    }
    /// The chosen one of two magnitudes, with the product of their signs.
    #[inline(always)]
    fn signed(a: f32, b: f32, chosen: f32) -> f32 {
        f32::from_bits(chosen.to_bits() & !(1 << 31) | (a.to_bits() ^ b.to_bits()) & 1 << 31)
    }
    match (form.opcode, form.has("NaN")) {
        ("min", false) if form.has("xorsign") => singles!(form, |a, b| signed(a, b, lower(a.abs(), b.abs()))),
        ("max", false) if form.has("xorsign") => singles!(form, |a, b| signed(a, b, higher(a.abs(), b.abs()))),
        _ if form.has("xorsign") || form.has("abs") => None,
        ("min", false) => singles!(form, |a, b| lower(a, b)),
        ("max", false) => singles!(form, |a, b| higher(a, b)),
        ("min", true) => singles!(form, |a, b| strict(a, b, lower(a, b))),
        (_, true) => singles!(form, |a, b| strict(a, b, higher(a, b))),
        _ => None,
    }
}

fn tested(form: &Form<'_>) -> Option<Alu> {
    let property = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"];
    match property.into_iter().find(|property| form.has(property))? {
        "finite" => lanes!(Pred <- |a: Narrow| f32::from_bits(a).is_finite()),
        "infinite" => lanes!(Pred <- |a: Narrow| f32::from_bits(a).is_infinite()),
        "number" => lanes!(Pred <- |a: Narrow| !f32::from_bits(a).is_nan()),
        "notanumber" => lanes!(Pred <- |a: Narrow| f32::from_bits(a).is_nan()),
        "normal" => lanes!(Pred <- |a: Narrow| f32::from_bits(a).is_normal()),
        _ => lanes!(Pred <- |a: Narrow| f32::from_bits(a).is_subnormal()),
    }
}

/// [`lanes`] of double precision.
macro_rules! doubles {
    (|$($x:ident),+| $value:expr) => {
        lanes!(Wide <- |$($x: Wide),+| {
            $(let $x = f64::from_bits($x);)+
            let value: f64 = $value;
            value.to_bits()
        })
    };
    ($mode:expr, |$($x:ident),+| $value:expr, $error:expr) => {
        match $mode {
            Rounding::Zero => doubles!(|$($x),+| exact::directed($value, $error, Rounding::Zero)),
            Rounding::Down => doubles!(|$($x),+| exact::directed($value, $error, Rounding::Down)),
            Rounding::Up => doubles!(|$($x),+| exact::directed($value, $error, Rounding::Up)),
            _ => doubles!(|$($x),+| $value),
        }
    };
}

/// What is missing from `a + b` in its sum.
#[inline(always)]
fn missing(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if sum.is_infinite() && a.is_finite() && b.is_finite() {
        return -sum;
    }
    let part = sum - a;
    (a - (sum - part)) + (b - part)
}

/// What is missing from `a * b + c` in its fused result: its sign.
#[inline(always)]
fn missing_of_product(a: f64, b: f64, c: f64) -> f64 {
    let result = a.mul_add(b, c);
    if result.is_infinite() && a.is_finite() && b.is_finite() && c.is_finite() {
        return -result;
    }
    let product = a * b;
    let low = a.mul_add(b, -product);
    let sum = product + c;
    let rest = missing(product, c);
    let small = low + rest;
    let total = (sum - result) + small;
    if total != 0.0 { total } else { missing(low, rest) }
}

fn double(form: &Form<'_>) -> Option<Alu> {
    let mode = form.rounding();
    if form.types.len() != 1 || form.has("sat") {
        return None;
    }
    match form.opcode {
        "add" => doubles!(mode, |a, b| a + b, missing(a, b)),
        "sub" => doubles!(mode, |a, b| a - b, missing(a, -b)),
        "mul" => doubles!(mode, |a, b| a * b, missing_of_product(a, b, 0.0)),
        "fma" | "mad" => doubles!(mode, |a, b, c| a.mul_add(b, c), missing_of_product(a, b, c)),
        "div" => doubles!(mode, |a, b| a / b, {
            let rest = (-(a / b)).mul_add(b, a);
            if b < 0.0 { -rest } else { rest }
        }),
        "rcp" => doubles!(mode, |a| 1.0 / a, {
            let rest = (-(1.0 / a)).mul_add(a, 1.0);
            if a < 0.0 { -rest } else { rest }
        }),
        "sqrt" => doubles!(mode, |a| a.sqrt(), (-a.sqrt()).mul_add(a.sqrt(), a)),
        "rsqrt" => doubles!(|a| 1.0 / a.sqrt()),
        "neg" => lanes!(Wide <- |a: Wide| a ^ 1 << 63),
        "abs" => lanes!(Wide <- |a: Wide| a & !(1 << 63)),
        "min" => doubles!(|a, b| if a.is_nan() || b < a || a == b && b.is_sign_negative() { b } else { a }),
        "max" => doubles!(|a, b| if a.is_nan() || b > a || a == b && a.is_sign_negative() { b } else { a }),
        "copysign" => lanes!(Wide <- |a: Wide, b: Wide| b & !(1 << 63) | a & 1 << 63),
        "testp" => {
            let property = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"];
            match property.into_iter().find(|property| form.has(property))? {
                "finite" => lanes!(Pred <- |a: Wide| f64::from_bits(a).is_finite()),
                "infinite" => lanes!(Pred <- |a: Wide| f64::from_bits(a).is_infinite()),
                "number" => lanes!(Pred <- |a: Wide| !f64::from_bits(a).is_nan()),
                "notanumber" => lanes!(Pred <- |a: Wide| f64::from_bits(a).is_nan()),
                "normal" => lanes!(Pred <- |a: Wide| f64::from_bits(a).is_normal()),
                _ => lanes!(Pred <- |a: Wide| f64::from_bits(a).is_subnormal()),
            }
        }
        _ => None,
    }
}
