//! Half precision, `bf16`, and pairs of them.

use super::exact::{self, BF16, F16, Format};
use super::op::{Form, Rounding};
use crate::ast::Type;
use crate::registers::{Alu, lanes};

pub(super) fn find(form: &Form<'_>) -> Option<Alu> {
    match form.ty()? {
        Type::Float(16) => of_format::<false>(form),
        Type::Bf16 => of_format::<true>(form),
        Type::F16x2 => of_pairs::<false>(form),
        Type::Bf16x2 => of_pairs::<true>(form),
        _ => None,
    }
}

const fn format(is_brain: bool) -> Format {
    if is_brain { BF16 } else { F16 }
}

/// A result: NaN has one pattern, `.sat` clamps to [0, 1], `.relu` to what is not below 0.
#[inline(always)]
fn output<const BRAIN: bool>(value: f64, saturates: bool, rectifies: bool) -> u32 {
    let value = match (saturates, rectifies) {
        (true, _) => {
            if value > 0.0 {
                value.min(1.0)
            } else {
                0.0
            }
        }
        (_, true) if value < 0.0 => 0.0,
        _ => value,
    };
    format(BRAIN).round(value, Rounding::Nearest)
}

fn low<const BRAIN: bool>(a: u32) -> f64 {
    format(BRAIN).value(a & 0xFFFF)
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
fn lower(a: f64, b: f64) -> f64 {
    if a.is_nan() || b < a || a == b && b.is_sign_negative() { b } else { a }
}

#[inline(always)]
fn higher(a: f64, b: f64) -> f64 {
    if a.is_nan() || b > a || a == b && a.is_sign_negative() { b } else { a }
}

macro_rules! one {
    ($form:expr, $B:literal, |$($x:ident),+| $value:expr) => {
        match ($form.has("sat"), $form.has("relu")) {
            (false, false) => one!($B, false, false, |$($x),+| $value),
            (true, _) => one!($B, true, false, |$($x),+| $value),
            (_, true) => one!($B, false, true, |$($x),+| $value),
        }
    };
    ($B:literal, $sat:literal, $relu:literal, |$($x:ident),+| $value:expr) => {
        lanes!(Half <- |$($x: Half),+| {
            $(let $x = low::<$B>($x);)+
            output::<$B>($value, $sat, $relu)
        })
    };
}

macro_rules! two {
    ($form:expr, $B:literal, |$($x:ident),+| $value:expr) => {
        match ($form.has("sat"), $form.has("relu")) {
            (false, false) => two!($B, false, false, |$($x),+| $value),
            (true, _) => two!($B, true, false, |$($x),+| $value),
            (_, true) => two!($B, false, true, |$($x),+| $value),
        }
    };
    ($B:literal, $sat:literal, $relu:literal, |$($x:ident),+| $value:expr) => {
        lanes!(Narrow <- |$($x: Narrow),+| {
            let first = {
                $(let $x = low::<$B>($x);)+
                output::<$B>($value, $sat, $relu)
            };
            let second = {
                $(let $x = low::<$B>($x >> 16);)+
                output::<$B>($value, $sat, $relu)
            };
            first | second << 16
        })
    };
}

fn of_format<const BRAIN: bool>(form: &Form<'_>) -> Option<Alu> {
    if form.types.len() != 1 || form.rounding() != Rounding::Nearest {
        return None;
    }
    match form.opcode {
        "neg" => lanes!(Half <- |a: Half| a ^ 0x8000),
        "abs" => lanes!(Half <- |a: Half| a & 0x7FFF),
        _ if BRAIN => operation!(form, one, true),
        _ => operation!(form, one, false),
    }
}

fn of_pairs<const BRAIN: bool>(form: &Form<'_>) -> Option<Alu> {
    if form.types.len() != 1 || form.rounding() != Rounding::Nearest {
        return None;
    }
    match form.opcode {
        "neg" => lanes!(Narrow <- |a: Narrow| a ^ 0x8000_8000),
        "abs" => lanes!(Narrow <- |a: Narrow| a & 0x7FFF_7FFF),
        _ if BRAIN => operation!(form, two, true),
        _ => operation!(form, two, false),
    }
}
