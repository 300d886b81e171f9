//! Types of elements and of values, as launch files name them, and their bits.

use gpu::suite::{Element, f16};

/// The type of a buffer's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// What launch files call it.
    pub name: &'static str,
    /// The elements.
    pub element: Element,
}

/// Every type, by name.
const TYPES: [Type; 12] = {
    const fn of(element: Element) -> Type {
        Type { name: element.name(), element }
    }
    [
        of(Element::F32),
        of(Element::F64),
        of(Element::F16),
        of(Element::BF16),
        of(Element::I8),
        of(Element::U8),
        of(Element::I16),
        of(Element::U16),
        of(Element::I32),
        of(Element::U32),
        of(Element::I64),
        of(Element::U64),
    ]
};

impl Type {
    /// The names of all types.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TYPES.iter().map(|ty| ty.name)
    }

    /// The type of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        TYPES.into_iter().find(|ty| ty.name == name)
    }

    /// Whether it is a floating-point number.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self.element, Element::F16 | Element::BF16 | Element::F32 | Element::F64)
    }

    /// Bytes an element.
    #[must_use]
    pub fn size(self) -> u64 {
        self.element.size()
    }

    /// The least and the greatest whole number that it holds; none if it is a floating-point number.
    #[must_use]
    pub fn range(self) -> Option<(i128, i128)> {
        let bits = 8 * self.size() as u32;
        let is_signed = matches!(self.element, Element::I8 | Element::I16 | Element::I32 | Element::I64);
        match (self.is_float(), is_signed) {
            (true, _) => None,
            (false, true) => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            (false, false) => Some((0, (1 << bits) - 1)),
        }
    }

    /// The bits of a number, which is rounded to a floating-point type and wraps in a whole one.
    #[must_use]
    pub fn bits(self, value: f64) -> u64 {
        match self.element {
            Element::BF16 => bf16_bits(value).into(),
            Element::F16 => f16::from_f64(value).to_bits().into(),
            Element::F32 => (value as f32).to_bits().into(),
            Element::F64 => value.to_bits(),
            _ => self.wrapped(value as i128),
        }
    }

    /// The low bits of a whole number, as many as an element has; of a floating-point type the number itself.
    #[must_use]
    pub fn wrapped(self, value: i128) -> u64 {
        if self.is_float() { self.bits(value as f64) } else { value as u64 & (u64::MAX >> (64 - 8 * self.size())) }
    }

    /// The number that an element's bits are.
    #[must_use]
    pub fn value(self, bits: u64) -> f64 {
        plan::verify::value(self.element, bits)
    }

    /// An element as text.
    #[must_use]
    pub fn show(self, bits: u64) -> String {
        match self.element {
            Element::I64 => (bits as i64).to_string(),
            Element::U64 => bits.to_string(),
            Element::F32 => f32::from_bits(bits as u32).to_string(),
            _ => self.value(bits).to_string(),
        }
    }
}

/// A number rounded to a bfloat16, to even: by way of a `f32` that is rounded to odd, so that nothing is rounded twice.
fn bf16_bits(value: f64) -> u16 {
    if value.is_nan() {
        return 0x7FFF;
    }
    let near = value as f32;
    let is_exact = f64::from(near) == value || near.is_infinite();
    // Towards zero, and a bit that says that something was left out.
    let toward_zero =
        if !is_exact && f64::from(near).abs() > value.abs() { near.to_bits() - 1 } else { near.to_bits() };
    let odd = toward_zero | u32::from(!is_exact);
    ((odd + 0x7FFF + (odd >> 16 & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_bits_and_bits_numbers() {
        for name in Type::names() {
            let ty = Type::named(name).expect("a type");
            for value in [0.0, 1.0, 100.0, 7.0] {
                assert_eq!(ty.value(ty.bits(value)), value, "{name}");
                assert_eq!(ty.wrapped(value as i128), ty.bits(value), "{name}");
            }
        }
        let of = |name, value| Type::named(name).expect("a type").wrapped(value);
        assert_eq!((of("i8", -1), of("u32", -1), of("u64", -1)), (0xFF, 0xFFFF_FFFF, u64::MAX));
        assert_eq!(Type::named("f128"), None);
    }

    #[test]
    fn a_bfloat16_is_rounded_once_to_even() {
        let of = |value| bf16_bits(value);
        assert_eq!((of(1.0), of(-2.0), of(f64::INFINITY), of(0.0)), (0x3F80, 0xC000, 0x7F80, 0));
        assert_eq!(of(1.0 + 1.0 / 256.0), 0x3F80, "a tie goes to the even one");
        assert_eq!(of(1.0 + 3.0 / 256.0), 0x3F82);
        assert_eq!(of(1.0 + 1.0 / 256.0 + 1e-12), 0x3F81, "just above a tie, though its f32 is one");
        assert_eq!(of(1.0 + 3.0 / 256.0 - 1e-12), 0x3F81, "just below one");
    }

    #[test]
    fn ranges_are_those_of_the_types() {
        let of = |name: &str| Type::named(name).expect("a type").range();
        assert_eq!((of("i8"), of("u16")), (Some((-128, 127)), Some((0, 65_535))));
        assert_eq!((of("u64"), of("f16"), of("bf16")), (Some((0, u64::MAX.into())), None, None));
    }
}
