//! What a buffer holds before a run.

use super::at::At;
use super::element::Type;
use super::file::{Fill, Invalid, Number, nearest};
use super::npy::Array;
use gpu::suite::{Before, Fill as Elements};
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;

/// The elements of a buffer, by a function of their number.
struct By<F> {
    size: u64,
    bits: F,
}

impl<F: Fn(u64) -> u64 + Send + Sync> Elements for By<F> {
    fn bits(&self, i: u64) -> u64 {
        (self.bits)(i)
    }

    fn lay(&self, elements: Range<u64>, words: &mut [u64]) {
        words.fill(0);
        let each = 8 / self.size;
        for (place, i) in elements.enumerate() {
            let place = place as u64;
            words[(place / each) as usize] |= self.bits(i) << (8 * self.size * (place % each));
        }
    }
}

fn filled(ty: Type, bits: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Before {
    Before::Filled(Box::new(By { size: ty.size(), bits }))
}

/// 64 random bits of element `i`: SplitMix64 from `seed` on.
fn random(seed: u64, i: u64) -> u64 {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut z = seed.wrapping_add(i.wrapping_add(1).wrapping_mul(STEP));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl At<'_> {
    /// What a buffer of elements of that type holds before the run; `array` is that of its file.
    pub(super) fn before(&self, ty: Type, array: Option<Array>) -> Result<Before, Invalid> {
        let table = self.table();
        let (all, noise, ramp) = (
            ["name", "buffer", "length", "fill", "write", "expect", "absolute", "relative"],
            ["range", "seed"],
            ["start", "step"],
        );
        if let Some(array) = array {
            let keys = [&all[..3], &all[4..], &["npy"]].concat();
            self.only("a buffer that a file fills", &keys)?;
            let array = Arc::new(array);
            return Ok(filled(ty, move |i| array.bits(i, ty.size())));
        }
        let Some(fill) = &table.fill else {
            return self.wrong(
                self.table.span(),
                "a buffer has a `fill`: \"zeros\", \"ramp\", \"noise\", \"uninitialized\", or a number",
            );
        };
        match fill.get_ref() {
            Fill::Constant(constant) => {
                self.only("a constant", &all)?;
                let bits = self.element(ty, *constant, "fill", fill.span())?;
                Ok(filled(ty, move |_| bits))
            }
            Fill::Named(name) => match name.as_str() {
                "zeros" => self.only("zeros", &all).map(|()| Before::Zero),
                "uninitialized" => self.only("what is not initialized", &all).map(|()| Before::Poison),
                "ramp" => {
                    self.only("a ramp", &[&all[..], &ramp].concat())?;
                    self.ramp(ty)
                }
                "noise" => {
                    self.only("noise", &[&all[..], &noise].concat())?;
                    self.noise(ty)
                }
                _ => {
                    let known = ["zeros", "ramp", "noise", "uninitialized"];
                    let near =
                        nearest(name, known.into_iter()).map_or_else(String::new, |near| format!(" (is it {near}?)"));
                    let way = "say \"zeros\", \"ramp\", \"noise\", \"uninitialized\", or a number; a file is an `npy`";
                    self.wrong(fill.span(), format!("`fill` = \"{name}\" is none{near}: {way}"))
                }
            },
        }
    }

    /// A number as an element's bits.
    fn element(&self, ty: Type, number: Number, key: &str, at: Range<usize>) -> Result<u64, Invalid> {
        match (ty.range(), number) {
            (None, number) => Ok(ty.bits(number.value())),
            (Some((least, greatest)), Number::Integer(value)) if (least..=greatest).contains(&value.into()) => {
                Ok(ty.wrapped(value.into()))
            }
            (Some((least, greatest)), _) => {
                let name = ty.name;
                self.wrong(
                    at,
                    format!("`{key}` = {number} is no {name}: that is a whole number from {least} to {greatest}"),
                )
            }
        }
    }

    fn ramp(&self, ty: Type) -> Result<Before, Invalid> {
        let part = |key: &str, given: &Option<Spanned<Number>>, without: i64| {
            let number = given.as_ref().map_or(Number::Integer(without), |number| *number.get_ref());
            match (ty.range(), number) {
                (Some(_), Number::Float(value)) => {
                    let at = given.as_ref().map_or(self.table.span(), Spanned::span);
                    self.wrong(
                        at,
                        format!(
                            "`{key}` = {value:?} has a fraction, and elements are {}: give a whole number",
                            ty.name
                        ),
                    )
                }
                _ => Ok(number),
            }
        };
        let (start, step) = (part("start", &self.table().start, 0)?, part("step", &self.table().step, 1)?);
        Ok(match (start, step) {
            (Number::Integer(start), Number::Integer(step)) => {
                filled(ty, move |i| ty.wrapped(i128::from(start) + i128::from(i) * i128::from(step)))
            }
            _ => {
                let (start, step) = (start.value(), step.value());
                filled(ty, move |i| ty.bits(start + i as f64 * step))
            }
        })
    }

    fn noise(&self, ty: Type) -> Result<Before, Invalid> {
        let table = self.table();
        let seed = table.seed.as_ref().map_or(0, |seed| *seed.get_ref());
        let range = table.range.as_ref().map(|range| (*range.get_ref(), range.span()));
        let (numbers, at) = range.unwrap_or_else(|| {
            let numbers = if ty.is_float() { [-1, 1] } else { [0, 100] };
            (numbers.map(Number::Integer), self.table.span())
        });
        let [from, to] = numbers.map(Number::value);
        if !(from <= to && from.is_finite() && to.is_finite()) {
            return self.wrong(at, "`range` is [least, greatest]: the least comes first, and both are finite");
        }
        if ty.is_float() {
            let unit = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
            return Ok(filled(ty, move |i| ty.bits(from + unit(random(seed, i)) * (to - from))));
        }
        for number in numbers {
            self.element(ty, number, "range", at.clone())?;
        }
        let [Number::Integer(from), Number::Integer(to)] = numbers else {
            return self.wrong(at, "`range` of whole numbers is two of them");
        };
        let count = (i128::from(to) - i128::from(from) + 1) as u128;
        Ok(filled(ty, move |i| ty.wrapped(i128::from(from) + ((u128::from(random(seed, i)) * count) >> 64) as i128)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_the_same_for_the_same_seed_and_fills_its_range() {
        let noise = |seed| (0..1000).map(|i| random(seed, i)).collect::<Vec<_>>();
        assert_eq!(noise(1), noise(1));
        assert_ne!(noise(1), noise(2));
        // The first of SplitMix64 with the seed 1234567 (Vigna's reference code).
        assert_eq!(
            [0, 1, 2].map(|i| random(1_234_567, i)),
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn elements_are_laid_side_by_side() {
        for (name, size) in [("u8", 1), ("i16", 2), ("u32", 4), ("f64", 8)] {
            let ty = Type::named(name).expect("a type");
            let Before::Filled(fill) = filled(ty, move |i| ty.wrapped(3 * i128::from(i) + 1)) else { panic!("{name}") };
            let mut words = [u64::MAX; 6];
            let count = 5 * 8 / size + u64::from(size < 8);
            fill.lay(7..7 + count, &mut words);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            for i in 0..count {
                let mut word = [0; 8];
                word[..size as usize].copy_from_slice(&bytes[(i * size) as usize..][..size as usize]);
                assert_eq!(u64::from_le_bytes(word), fill.bits(7 + i), "{name}");
            }
        }
    }
}
