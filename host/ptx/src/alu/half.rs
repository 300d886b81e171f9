//! Half precision, `bf16`, and pairs of them.

use super::exact::{self, BF16, F16, Format};
use super::op::{Form, Rounding};
use crate::ast::Type;
use crate::registers::{Alu, lanes};

/// What carries out an instruction, and the word that its last source holds, if it has one more than is written.
pub(super) fn find(form: &Form<'_>) -> Option<(Alu, Option<u32>)> {
    if form.types.len() != 1 || form.rounding() != Rounding::Nearest || form.has("oob") {
        return None;
    }
    match form.ty()? {
        Type::Float(16) => of_format::<false>(form),
        Type::Bf16 => of_format::<true>(form),
        Type::F16x2 => of_pairs::<false>(form),
        Type::Bf16x2 => of_pairs::<true>(form),
        _ => None,
    }
}

/// What becomes of a result: `.sat` clamps it to [0, 1], `.relu` to what is not below 0, `.ftz` has none below the normal numbers.
const SATURATES: u32 = 1;
const RECTIFIES: u32 = 2;
const FLUSHES: u32 = 4;

/// That of a form, in a word; none if it says nothing of it.
fn how(form: &Form<'_>) -> Option<u32> {
    let all = [("sat", SATURATES), ("relu", RECTIFIES), ("ftz", FLUSHES)];
    let how = all.into_iter().filter(|(name, _)| form.has(name)).fold(0, |how, (_, flag)| how | flag);
    (how != 0).then_some(how)
}

const fn format(is_brain: bool) -> Format {
    if is_brain { BF16 } else { F16 }
}

/// A number below the normal ones as a zero of its sign.
#[inline(always)]
fn flushed<const BRAIN: bool>(bits: u32, how: u32) -> u32 {
    let exponent = if BRAIN { 0x7F80 } else { 0x7C00 };
    if how & FLUSHES != 0 && bits & exponent == 0 { bits & 0x8000 } else { bits }
}

/// A result: NaN has one pattern.
#[inline(always)]
fn output<const BRAIN: bool>(value: f64, how: u32) -> u32 {
    let value = match (how & SATURATES, how & RECTIFIES) {
        (SATURATES, _) => {
            if value > 0.0 {
                value.min(1.0)
            } else {
                0.0
            }
        }
        (_, RECTIFIES) if value < 0.0 => 0.0,
        _ => value,
    };
    flushed::<BRAIN>(format(BRAIN).round(value, Rounding::Nearest), how)
}

#[inline(always)]
fn low<const BRAIN: bool>(a: u32, how: u32) -> f64 {
    format(BRAIN).value(flushed::<BRAIN>(a & 0xFFFF, how))
}

/// What an instruction does to one number of each operand, in double precision: exact, or rounded to odd.
macro_rules! operation {
    ($form:expr, $build:ident, $B:literal) => {{
        let form: &Form<'_> = $form;
        match form.opcode {
            "add" => $build!($form, $B, |a, b| exact::product_and_sum(a, 1.0, b)),
            "sub" => $build!($form, $B, |a, b| exact::product_and_sum(a, 1.0, -b)),
            "mul" => $build!($form, $B, |a, b| a * b),
            "fma" => $build!($form, $B, |a, b, c| exact::product_and_sum(a, b, c)),
            "min" | "max" if form.has("xorsign") || form.has("abs") => None,
            "min" if form.has("NaN") => {
                $build!($form, $B, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { lower(a, b) })
            }
            "max" if form.has("NaN") => {
                $build!($form, $B, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { higher(a, b) })
            }
            "min" => $build!($form, $B, |a, b| lower(a, b)),
            "max" => $build!($form, $B, |a, b| higher(a, b)),
            "tanh" => $build!($form, $B, |a| a.tanh()),
            "ex2" => $build!($form, $B, |a| a.exp2()),
            _ => None,
        }
    }};
}

#[inline(always)]
pub(crate) fn lower(a: f64, b: f64) -> f64 {
    if a.is_nan() || b < a || a == b && b.is_sign_negative() { b } else { a }
}

#[inline(always)]
pub(crate) fn higher(a: f64, b: f64) -> f64 {
    if a.is_nan() || b > a || a == b && a.is_sign_negative() { b } else { a }
}

macro_rules! one {
    ($form:expr, $B:literal, |$($x:ident),+| $value:expr) => {
        match how($form) {
            None => lanes!(Half <- |$($x: Half),+| {
                $(let $x = low::<$B>($x, 0);)+
                output::<$B>($value, 0)
            }),
            Some(_) => lanes!(Half <- |$($x: Half),+, how: Narrow| {
                $(let $x = low::<$B>($x, how);)+
                output::<$B>($value, how)
            }),
        }
    };
}

macro_rules! two {
    ($form:expr, $B:literal, |$($x:ident),+| $value:expr) => {
        match how($form) {
            None => two!($B, |$($x),+| $value, 0, ),
            Some(_) => two!($B, |$($x),+| $value, how, how),
        }
    };
    ($B:literal, |$($x:ident),+| $value:expr, $how:expr, $($last:ident)?) => {
        lanes!(Narrow <- |$($x: Narrow),+ $(, $last: Narrow)?| {
            let first = {
                $(let $x = low::<$B>($x, $how);)+
                output::<$B>($value, $how)
            };
            let second = {
                $(let $x = low::<$B>($x >> 16, $how);)+
                output::<$B>($value, $how)
            };
            first | second << 16
        })
    };
}

fn of_format<const BRAIN: bool>(form: &Form<'_>) -> Option<(Alu, Option<u32>)> {
    let alu = match form.opcode {
        "neg" => lanes!(Half <- |a: Half| a ^ 0x8000),
        "abs" => lanes!(Half <- |a: Half| a & 0x7FFF),
        _ if BRAIN => return with_how(form, operation!(form, one, true)),
        _ => return with_how(form, operation!(form, one, false)),
    };
    alu.map(|alu| (alu, None))
}

fn with_how(form: &Form<'_>, alu: Option<Alu>) -> Option<(Alu, Option<u32>)> {
    alu.map(|alu| (alu, how(form)))
}

fn of_pairs<const BRAIN: bool>(form: &Form<'_>) -> Option<(Alu, Option<u32>)> {
    let alu = match form.opcode {
        "neg" => lanes!(Narrow <- |a: Narrow| a ^ 0x8000_8000),
        "abs" => lanes!(Narrow <- |a: Narrow| a & 0x7FFF_7FFF),
        _ if BRAIN => return with_how(form, operation!(form, two, true)),
        _ => return with_how(form, operation!(form, two, false)),
    };
    alu.map(|alu| (alu, None))
}
