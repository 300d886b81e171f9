//! `cvt`: between integers and floating-point formats, in every mode.

use super::exact::{self, BF16, F16, F32, Format, TF32};
use super::float::flushed;
use super::narrow;
use super::op::{Form, Rounding};
use crate::ast::Type;
use crate::registers::{Alu, lanes};

/// What a conversion goes from or to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Integer { bits: u32, is_signed: bool },
    Float(Format),
    Double,
}

impl Number {
    pub(super) fn of(ty: Type) -> Option<Self> {
        Some(match ty {
            Type::Signed(bits) => Self::Integer { bits: bits.into(), is_signed: true },
            Type::Unsigned(bits) | Type::Bits(bits) => Self::Integer { bits: bits.into(), is_signed: false },
            Type::Float(16) => Self::Float(F16),
            Type::Float(32) => Self::Float(F32),
            Type::Float(64) => Self::Double,
            Type::Bf16 => Self::Float(BF16),
            Type::Tf32 => Self::Float(TF32),
            _ => return None,
        })
    }

    /// The number of five bits that stands for it.
    fn code(self) -> u32 {
        match self {
            Self::Integer { bits, is_signed } => bits.trailing_zeros() - 3 + 4 * u32::from(is_signed),
            Self::Double => 8,
            Self::Float(format) => {
                9 + [F16, BF16, F32, TF32].iter().position(|known| *known == format).unwrap_or(2) as u32
            }
        }
    }

    fn decoded(code: u32) -> Self {
        match code & 31 {
            code @ 0..8 => Self::Integer { bits: 8 << (code & 3), is_signed: code & 4 != 0 },
            8 => Self::Double,
            code => Self::Float([F16, BF16, F32, TF32][(code as usize - 9) % 4]),
        }
    }
}

/// A conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub(crate) from: Number,
    pub(crate) to: Number,
    pub(crate) mode: Rounding,
    /// Whether a floating-point number becomes a whole one of the same format.
    pub(crate) whole: bool,
    pub(crate) flushes: bool,
    pub(crate) saturates: bool,
    pub(crate) rectifies: bool,
}

const MODES: [Rounding; 5] = [Rounding::Nearest, Rounding::NearestAway, Rounding::Zero, Rounding::Down, Rounding::Up];

impl Conversion {
    pub(super) fn of(form: &Form<'_>, to: Type, from: Type) -> Option<Self> {
        let whole =
            [("rni", Rounding::Nearest), ("rzi", Rounding::Zero), ("rmi", Rounding::Down), ("rpi", Rounding::Up)];
        let whole = whole.into_iter().find(|(name, _)| form.has(name)).map(|(_, mode)| mode);
        Some(Self {
            from: Number::of(from)?,
            to: Number::of(to)?,
            mode: whole.unwrap_or_else(|| form.rounding()),
            whole: whole.is_some(),
            flushes: form.has("ftz"),
            saturates: form.has("sat"),
            rectifies: form.has("relu"),
        })
    }

    /// In one word, for a slot.
    pub(crate) fn packed(self) -> u32 {
        let mode = MODES.iter().position(|mode| *mode == self.mode).unwrap_or(0) as u32;
        let flags = [self.whole, self.flushes, self.saturates, self.rectifies];
        let flags = flags.iter().fold(0, |flags, flag| flags << 1 | u32::from(*flag));
        self.from.code() | self.to.code() << 5 | mode << 10 | flags << 13
    }

    #[inline]
    fn unpacked(word: u32) -> Self {
        let flag = |bit: u32| word >> (13 + bit) & 1 == 1;
        Self {
            from: Number::decoded(word),
            to: Number::decoded(word >> 5),
            mode: MODES[(word >> 10 & 7) as usize % 5],
            whole: flag(3),
            flushes: flag(2),
            saturates: flag(1),
            rectifies: flag(0),
        }
    }

    /// What a value becomes, whose bits these are; what stands above its width means nothing.
    pub(crate) fn convert(self, bits: u64) -> u64 {
        match self.from {
            Number::Integer { bits: width, is_signed } => {
                let value = match is_signed {
                    true => i128::from((bits << (64 - width)).cast_signed() >> (64 - width)),
                    false => i128::from(bits << (64 - width) >> (64 - width)),
                };
                self.of_integer(value)
            }
            Number::Double => self.of_float(f64::from_bits(bits)),
            Number::Float(F32) => {
                let bits = if self.flushes { flushed(bits as u32) } else { bits as u32 };
                self.of_float(f64::from(f32::from_bits(bits)))
            }
            Number::Float(format) => self.of_float(format.value(bits as u32 & ((format.nan() << 1) | 1))),
        }
    }

    fn of_integer(self, value: i128) -> u64 {
        match self.to {
            Number::Integer { bits, is_signed } => {
                let [least, most] = range(bits, is_signed);
                let value = if self.saturates { value.clamp(least, most) } else { value };
                value as u64 & u64::MAX >> (64 - bits)
            }
            Number::Double => {
                let nearest = value as f64;
                exact::directed(nearest, (value - nearest as i128) as f64, self.mode).to_bits()
            }
            Number::Float(format) => {
                // Rounded to odd.
                let magnitude = value.unsigned_abs();
                let lost = (128 - magnitude.leading_zeros()).saturating_sub(53);
                let kept = magnitude >> lost;
                let sticky = u128::from(magnitude != kept << lost);
                let odd = ((kept | sticky) << lost) as f64;
                format.round(if value < 0 { -odd } else { odd }, self.mode).into()
            }
        }
    }

    fn of_float(self, value: f64) -> u64 {
        match self.to {
            Number::Integer { bits, is_signed } => {
                if value.is_nan() {
                    let is_long = bits == 64 || self.from == Number::Double;
                    return if is_long { 1 << (bits - 1) } else { 0 };
                }
                let [least, most] = range(bits, is_signed);
                let whole = self.rounded(value);
                // What does not fit is clamped.
                (whole as i128).clamp(least, most) as u64 & u64::MAX >> (64 - bits)
            }
            Number::Double => self.clamped(if self.whole { self.rounded(value) } else { value }).to_bits(),
            Number::Float(format) => {
                let value = self.clamped(if self.whole { self.rounded(value) } else { value });
                let mode = if self.whole { Rounding::Nearest } else { self.mode };
                let bits = format.round(value, mode);
                let bits = if self.flushes && format == F32 { flushed(bits) } else { bits };
                // The lower bits of a register are not used.
                u64::from(if format == TF32 { bits << 13 } else { bits })
            }
        }
    }

    fn rounded(self, value: f64) -> f64 {
        match self.mode {
            Rounding::Nearest => value.round_ties_even(),
            Rounding::NearestAway => value.round(),
            Rounding::Zero => value.trunc(),
            Rounding::Down => value.floor(),
            Rounding::Up => value.ceil(),
        }
    }

    fn clamped(self, value: f64) -> f64 {
        match (self.saturates, self.rectifies) {
            (true, _) if value > 0.0 => value.min(1.0),
            (true, _) => 0.0,
            (_, true) if value < 0.0 => 0.0,
            _ => value,
        }
    }
}

fn range(bits: u32, is_signed: bool) -> [i128; 2] {
    match is_signed {
        true => [-(1 << (bits - 1)), (1 << (bits - 1)) - 1],
        false => [0, (1 << bits) - 1],
    }
}

/// What carries out a `cvt`, and the word that its last source is to hold, if it has one more than is written.
pub(super) fn find(form: &Form<'_>) -> Option<(Alu, Option<u32>)> {
    if form.has("pack") {
        return narrow::pack(form);
    }
    let of_format = |part: &str| form.modifiers.iter().any(|modifier| modifier.starts_with(part));
    if of_format("e4m3") || of_format("e5m2") {
        return narrow::find(form);
    }
    if ["e2m", "e3m", "ue8", "s2f6", "satfinite", "rs", "scaled"].into_iter().any(of_format) {
        return None;
    }
    let &[to, from] = form.types.as_slice() else { return None };
    if let Some(alu) = frequent(form, to, from) {
        return Some((alu, None));
    }
    if matches!(to, Type::F16x2 | Type::Bf16x2) {
        let one = if to == Type::F16x2 { Type::Float(16) } else { Type::Bf16 };
        let conversion = Conversion::of(form, one, from)?;
        let alu = lanes!(Narrow <- |a: Narrow, b: Narrow, how: Narrow| {
            let how = Conversion::unpacked(how);
            (how.convert(a.into()) << 16 | how.convert(b.into())) as u32
        })?;
        return (from == Type::Float(32)).then_some((alu, Some(conversion.packed())));
    }
    let conversion = Conversion::of(form, to, from)?;
    let alu = match (to.bits(), from.bits()) {
        (8 | 16, 8 | 16) => lanes!(Half <- |a: Half, how: Narrow| Conversion::unpacked(how).convert(a.into()) as u32),
        (32, 8 | 16) => lanes!(Narrow <- |a: Half, how: Narrow| Conversion::unpacked(how).convert(a.into()) as u32),
        (64, 8 | 16) => lanes!(Wide <- |a: Half, how: Narrow| Conversion::unpacked(how).convert(a.into())),
        (8 | 16, 32) => lanes!(Half <- |a: Narrow, how: Narrow| Conversion::unpacked(how).convert(a.into()) as u32),
        (32, 32) => lanes!(Narrow <- |a: Narrow, how: Narrow| Conversion::unpacked(how).convert(a.into()) as u32),
        (64, 32) => lanes!(Wide <- |a: Narrow, how: Narrow| Conversion::unpacked(how).convert(a.into())),
        (8 | 16, 64) => lanes!(Half <- |a: Wide, how: Narrow| Conversion::unpacked(how).convert(a) as u32),
        (32, 64) => lanes!(Narrow <- |a: Wide, how: Narrow| Conversion::unpacked(how).convert(a) as u32),
        (64, 64) => lanes!(Wide <- |a: Wide, how: Narrow| Conversion::unpacked(how).convert(a)),
        _ => None,
    };
    Some((alu?, Some(conversion.packed())))
}

/// Those that kernels are full of.
fn frequent(form: &Form<'_>, to: Type, from: Type) -> Option<Alu> {
    use Type::{Bits, Float, Signed, Unsigned};
    let plain = !form.has("sat") && !form.has("ftz");
    match (to, from) {
        _ if !plain => None,
        (Unsigned(64) | Signed(64) | Bits(64), Unsigned(32) | Bits(32)) => lanes!(Wide <- |a: Narrow| u64::from(a)),
        (Unsigned(64) | Signed(64) | Bits(64), Signed(32)) => lanes!(Wide <- |a: Narrow| a as i32 as i64 as u64),
        (Unsigned(32) | Signed(32) | Bits(32), Unsigned(64) | Signed(64) | Bits(64)) => {
            lanes!(Narrow <- |a: Wide| a as u32)
        }
        (Unsigned(32) | Signed(32) | Bits(32), Unsigned(16)) => lanes!(Narrow <- |a: Half| a & 0xFFFF),
        (Unsigned(16) | Signed(16), Unsigned(32) | Signed(32)) => lanes!(Half <- |a: Narrow| a & 0xFFFF),
        (Float(32), Unsigned(32)) if form.has("rn") => lanes!(Narrow <- |a: Narrow| (a as f32).to_bits()),
        (Float(32), Signed(32)) if form.has("rn") => lanes!(Narrow <- |a: Narrow| (a as i32 as f32).to_bits()),
        (Float(32), Unsigned(64)) if form.has("rn") => lanes!(Narrow <- |a: Wide| (a as f32).to_bits()),
        (Unsigned(32), Float(32)) if form.has("rzi") => lanes!(Narrow <- |a: Narrow| f32::from_bits(a) as u32),
        (Signed(32), Float(32)) if form.has("rzi") => lanes!(Narrow <- |a: Narrow| (f32::from_bits(a) as i32) as u32),
        _ => None,
    }
}
