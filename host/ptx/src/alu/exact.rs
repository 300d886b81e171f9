//! Rounding in every mode: a result in `f64` that is exact, or rounded to odd, gives the right result in a narrower format.

use super::op::Rounding;

/// A floating-point format narrower than `f64`: bits of the exponent and of the stored fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) exponent: u32,
    pub(crate) fraction: u32,
}

pub(crate) const F16: Format = Format { exponent: 5, fraction: 10 };
pub(crate) const BF16: Format = Format { exponent: 8, fraction: 7 };
pub(crate) const F32: Format = Format { exponent: 8, fraction: 23 };
pub(crate) const TF32: Format = Format { exponent: 8, fraction: 10 };

impl Format {
    fn sign(self) -> u32 {
        1 << (self.exponent + self.fraction)
    }

    fn infinity(self) -> u32 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The NaN that instructions give.
    pub(crate) fn nan(self) -> u32 {
        self.sign() - 1
    }

    /// The bits of `value` in this format.
    #[inline]
    pub(crate) fn round(self, value: f64, mode: Rounding) -> u32 {
        if value.is_nan() {
            return self.nan();
        }
        let bits = value.to_bits();
        let is_negative = bits >> 63 == 1;
        let sign = if is_negative { self.sign() } else { 0 };
        if value.is_infinite() {
            return sign | self.infinity();
        }
        if value == 0.0 {
            return sign;
        }
        let bias = (1i32 << (self.exponent - 1)) - 1;
        let (exponent, significand) = match (bits >> 52) as i32 & 0x7FF {
            0 => (-1022, bits & ((1 << 52) - 1)),
            exponent => (exponent - 1023, bits & ((1 << 52) - 1) | 1 << 52),
        };
        // How many bits of the significand are lost; more of a number below the normal ones.
        let below = (1 - bias - exponent).max(0) as u32;
        let lost = (52 - self.fraction).saturating_add(below).min(63);
        let kept = significand >> lost;
        let rest = significand & ((1u64 << lost) - 1);
        let half = 1u64 << (lost - 1);
        let up = match mode {
            Rounding::Nearest => rest > half || rest == half && kept & 1 == 1,
            Rounding::NearestAway => rest >= half,
            Rounding::Zero => false,
            Rounding::Down => is_negative && rest != 0,
            Rounding::Up => !is_negative && rest != 0,
        };
        // A carry goes on into the exponent, as it should.
        let magnitude = match below {
            0 => {
                let stored = (i64::from(exponent) + i64::from(bias)) << self.fraction;
                stored + (kept & ((1 << self.fraction) - 1)).cast_signed() + i64::from(up)
            }
            _ => kept.cast_signed() + i64::from(up),
        };
        if magnitude >= i64::from(self.infinity()) {
            let stays_finite = match mode {
                Rounding::Nearest | Rounding::NearestAway => false,
                Rounding::Zero => true,
                Rounding::Down => !is_negative,
                Rounding::Up => is_negative,
            };
            return sign | (self.infinity() - u32::from(stays_finite));
        }
        sign | magnitude as u32
    }

    /// What bits of this format are worth.
    #[inline]
    pub(crate) fn value(self, bits: u32) -> f64 {
        let sign = if bits & self.sign() != 0 { -1.0 } else { 1.0 };
        let fraction = f64::from(bits & ((1 << self.fraction) - 1)) / f64::from(1u32 << self.fraction);
        let bias = (1i32 << (self.exponent - 1)) - 1;
        match bits >> self.fraction & ((1 << self.exponent) - 1) {
            0 => sign * fraction * power_of_two(1 - bias),
            exponent if exponent == (1 << self.exponent) - 1 => match fraction == 0.0 {
                true => sign * f64::INFINITY,
                false => f64::NAN,
            },
            exponent => sign * (1.0 + fraction) * power_of_two(exponent as i32 - bias),
        }
    }
}

/// A power of two within the normal numbers.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// `value`, which is off by something of the sign of `error`, rounded to odd.
#[inline]
fn odd(value: f64, error: f64) -> f64 {
    if error == 0.0 || !value.is_finite() || error.is_nan() || value.to_bits() & 1 == 1 {
        return value;
    }
    if value == 0.0 {
        return f64::from_bits(1).copysign(error);
    }
    // Away from zero if the error has the number's sign.
    let away = (error > 0.0) == (value > 0.0);
    f64::from_bits(if away { value.to_bits() + 1 } else { value.to_bits() - 1 })
}

/// `a + b`, rounded to odd.
#[inline]
pub(crate) fn sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    odd(sum, (a - (sum - part)) + (b - part))
}

/// `a * b + c` of numbers whose product is exact, rounded to odd.
#[inline]
pub(crate) fn product_and_sum(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    // Infinities and zeros keep the signs that they have in one step.
    if !product.is_finite() || !c.is_finite() || product == 0.0 || c == 0.0 { product + c } else { sum(product, c) }
}

/// `a / b`, rounded to odd.
#[inline]
pub(crate) fn quotient(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if !quotient.is_finite() || quotient == 0.0 || !b.is_finite() {
        return quotient;
    }
    let rest = (-quotient).mul_add(b, a);
    odd(quotient, if b < 0.0 { -rest } else { rest })
}

/// The square root, rounded to odd.
#[inline]
pub(crate) fn square_root(a: f64) -> f64 {
    let root = a.sqrt();
    if !root.is_finite() || root == 0.0 {
        return root;
    }
    odd(root, (-root).mul_add(root, a))
}

/// An `f64` to the nearest, which is off by something of the sign of `error`, in another mode.
#[inline]
pub(crate) fn directed(nearest: f64, error: f64, mode: Rounding) -> f64 {
    let to = |up: bool| if up { nearest.next_up() } else { nearest.next_down() };
    if nearest.is_nan() || error == 0.0 || error.is_nan() {
        return nearest;
    }
    match mode {
        Rounding::Nearest | Rounding::NearestAway => nearest,
        Rounding::Zero if (error > 0.0) != (nearest > 0.0) && nearest != 0.0 => to(nearest < 0.0),
        Rounding::Zero => nearest,
        Rounding::Down if error < 0.0 => to(false),
        Rounding::Up if error > 0.0 => to(true),
        Rounding::Down | Rounding::Up => nearest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_precision_is_rounded_as_the_processor_does() {
        let mut bits = 1u64;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Around the range of `f32`, below it and above.
            let exponent = 1023 - 160 + (bits >> 40) % 320;
            let value = f64::from_bits(bits & ((1 << 52) - 1) | exponent << 52 | bits & 1 << 63);
            assert_eq!(F32.round(value, Rounding::Nearest), (value as f32).to_bits(), "{value:e}");
            let [down, up] = [Rounding::Down, Rounding::Up].map(|mode| f32::from_bits(F32.round(value, mode)));
            assert!(f64::from(down) <= value && value <= f64::from(up), "{down:e} {value:e} {up:e}");
            assert!(down == up || down.next_up() == up, "{down:e} {value:e} {up:e}");
            let zero = f32::from_bits(F32.round(value, Rounding::Zero));
            assert_eq!(zero, if value > 0.0 { down } else { up });
        }
    }

    #[test]
    fn bits_of_narrow_formats_are_worth_what_they_round_to() {
        for (format, bits) in [(F16, 16), (BF16, 16), (TF32, 19)] {
            for pattern in 0..1u32 << bits {
                let value = format.value(pattern);
                if value.is_nan() {
                    assert_eq!(format.round(value, Rounding::Nearest), format.nan());
                } else {
                    for mode in [Rounding::Nearest, Rounding::Zero, Rounding::Up, Rounding::Down] {
                        assert_eq!(format.round(value, mode), pattern, "{value:e}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_result_rounded_to_odd_rounds_like_the_exact_one() {
        let (a, b) = (1.0f64, 2f64.powi(-60));
        assert!(sum(a, b) > 1.0 && sum(a, -b) < 1.0);
        assert_eq!(F32.round(sum(1.0, 2f64.powi(-30)), Rounding::Up), 1f32.next_up().to_bits());
        assert_eq!(F32.round(quotient(1.0, 3.0), Rounding::Nearest), (1f32 / 3.0).to_bits());
        assert_eq!(F32.round(square_root(2.0), Rounding::Nearest), 2f32.sqrt().to_bits());
        assert_eq!(directed(1.0, 1e-30, Rounding::Up), 1f64.next_up());
        assert_eq!(directed(-1.0, 1e-30, Rounding::Zero), (-1f64).next_up());
        assert_eq!(directed(f64::INFINITY, -1.0, Rounding::Zero), f64::MAX);
    }
}
