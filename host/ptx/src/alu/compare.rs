//! `setp` and `set`: comparisons.

use super::exact::{BF16, F16};
use super::float::flushed;
use super::op::Form;
use crate::ast::Type;
use crate::registers::{Alu, compared, lanes};

/// How a comparison is combined with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combination {
    And,
    Or,
    Xor,
}

impl Combination {
    pub(crate) fn of(form: &Form<'_>) -> Option<Self> {
        let all = [("and", Self::And), ("or", Self::Or), ("xor", Self::Xor)];
        all.into_iter().find(|(name, _)| form.has(name)).map(|(_, combination)| combination)
    }

    /// The result of a comparison, and then the predicate.
    pub(crate) fn alu(self) -> Option<Alu> {
        match self {
            Self::And => lanes!(Pred <- |a: Pred, b: Pred| a & b),
            Self::Or => lanes!(Pred <- |a: Pred, b: Pred| a | b),
            Self::Xor => lanes!(Pred <- |a: Pred, b: Pred| a ^ b),
        }
    }
}

/// What compares two numbers of a type as the form says.
pub(crate) fn comparison(form: &Form<'_>, ty: Type) -> Option<Alu> {
    let relation = *form.modifiers.first()?;
    match ty {
        Type::Float(32) => single(relation, form.has("ftz")),
        Type::Float(64) => double(relation),
        Type::Float(_) => half::<false>(relation),
        Type::Bf16 => half::<true>(relation),
        _ => integer(relation, ty),
    }
}

fn integer(relation: &str, ty: Type) -> Option<Alu> {
    match relation {
        "eq" => compared!(ty, |a, b| a == b),
        "ne" => compared!(ty, |a, b| a != b),
        "lt" | "lo" => compared!(ty, |a, b| a < b),
        "le" | "ls" => compared!(ty, |a, b| a <= b),
        "gt" | "hi" => compared!(ty, |a, b| a > b),
        "ge" | "hs" => compared!(ty, |a, b| a >= b),
        _ => None,
    }
}

/// The relations of floating-point numbers: those that end in `u` hold also if either is NaN.
macro_rules! relations {
    ($relation:expr, $build:ident) => {
        match $relation {
            "eq" => $build!(|a, b| a == b),
            "ne" => $build!(|a, b| a != b && !a.is_nan() && !b.is_nan()),
            "lt" => $build!(|a, b| a < b),
            "le" => $build!(|a, b| a <= b),
            "gt" => $build!(|a, b| a > b),
            "ge" => $build!(|a, b| a >= b),
            "equ" => $build!(|a, b| a == b || a.is_nan() || b.is_nan()),
            "neu" => $build!(|a, b| a != b),
            "ltu" => $build!(|a, b| a < b || a.is_nan() || b.is_nan()),
            "leu" => $build!(|a, b| a <= b || a.is_nan() || b.is_nan()),
            "gtu" => $build!(|a, b| a > b || a.is_nan() || b.is_nan()),
            "geu" => $build!(|a, b| a >= b || a.is_nan() || b.is_nan()),
            "num" => $build!(|a, b| !a.is_nan() && !b.is_nan()),
            "nan" => $build!(|a, b| a.is_nan() || b.is_nan()),
            _ => None,
        }
    };
}

fn single(relation: &str, flushes: bool) -> Option<Alu> {
    macro_rules! plain {
        (|$a:ident, $b:ident| $value:expr) => {
            lanes!(Pred <- |$a: Narrow, $b: Narrow| {
                let ($a, $b) = (f32::from_bits($a), f32::from_bits($b));
                $value
            })
        };
    }
    macro_rules! flushing {
        (|$a:ident, $b:ident| $value:expr) => {
            lanes!(Pred <- |$a: Narrow, $b: Narrow| {
                let ($a, $b) = (f32::from_bits(flushed($a)), f32::from_bits(flushed($b)));
                $value
            })
        };
    }
    if flushes { relations!(relation, flushing) } else { relations!(relation, plain) }
}

fn double(relation: &str) -> Option<Alu> {
    macro_rules! plain {
        (|$a:ident, $b:ident| $value:expr) => {
            lanes!(Pred <- |$a: Wide, $b: Wide| {
                let ($a, $b) = (f64::from_bits($a), f64::from_bits($b));
                $value
            })
        };
    }
    relations!(relation, plain)
}

fn half<const BRAIN: bool>(relation: &str) -> Option<Alu> {
    macro_rules! of_f16 {
        (|$a:ident, $b:ident| $value:expr) => {
            lanes!(Pred <- |$a: Half, $b: Half| {
                let ($a, $b) = (F16.value($a & 0xFFFF), F16.value($b & 0xFFFF));
                $value
            })
        };
    }
    macro_rules! of_bf16 {
        (|$a:ident, $b:ident| $value:expr) => {
            lanes!(Pred <- |$a: Half, $b: Half| {
                let ($a, $b) = (BF16.value($a & 0xFFFF), BF16.value($b & 0xFFFF));
                $value
            })
        };
    }
    if BRAIN { relations!(relation, of_bf16) } else { relations!(relation, of_f16) }
}
