//! Matrices that the lanes of a warp hold together: which lane has which element, in which register.
//!
//! The layouts are those of `mma` in the PTX ISA's figures. Lane `l` is number `l / 4` of 8 groups, and number `l % 4` within it. A
//! register of the left matrix holds neighbours along `k` in the group's row, one of the right matrix neighbours along `k` in the
//! group's column, and a lane holds pairs of the sum, side by side in the group's row. Larger matrices are made of such tiles of 8 rows
//! or columns, the tiles of the left matrix and of the sum one below the other first.
//!
//! What the ISA leaves open for `wmma` is laid out the same way, as `ptxas` does for the chips it knows: a fragment with more registers
//! than its elements take holds them again.

use crate::alu::{BF16, F16, Rounding, decoded};
use crate::registers::Class;

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
    E4m3,
    E5m2,
    Signed(u32),
    Unsigned(u32),
    Bit,
}

impl Number {
    /// The one of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "tf32" => Self::Tf32,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "e4m3" => Self::E4m3,
            "e5m2" => Self::E5m2,
            "s4" => Self::Signed(4),
            "u4" => Self::Unsigned(4),
            "s8" => Self::Signed(8),
            "u8" => Self::Unsigned(8),
            "s32" => Self::Signed(32),
            "b1" => Self::Bit,
            _ => return None,
        })
    }

    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 | Self::F32 => 32,
            Self::F64 => 64,
            Self::E4m3 | Self::E5m2 => 8,
            Self::Signed(bits) | Self::Unsigned(bits) => bits,
            Self::Bit => 1,
        }
    }

    /// How wide the registers are that hold it.
    pub(crate) fn class(self) -> Class {
        if self == Self::F64 { Class::Wide } else { Class::Narrow }
    }

    /// How many of them a register holds.
    pub(crate) fn each(self) -> u32 {
        (32 / self.bits()).max(1)
    }

    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Self::Signed(_) | Self::Unsigned(_) | Self::Bit)
    }

    /// What its bits are worth, which are the lowest ones.
    pub(crate) fn value(self, bits: u64) -> f64 {
        let low = |width: u32| bits & ((1 << width) - 1);
        match self {
            Self::F16 => F16.value(low(16) as u32),
            Self::Bf16 => f32::from_bits((low(16) as u32) << 16).into(),
            // The lowest 13 bits of a register are not looked at.
            Self::Tf32 => f32::from_bits(bits as u32 & !0x1FFF).into(),
            Self::F32 => f32::from_bits(bits as u32).into(),
            Self::F64 => f64::from_bits(bits),
            Self::E4m3 | Self::E5m2 => decoded(bits as u32, self == Self::E5m2),
            Self::Signed(width) => ((bits << (64 - width)).cast_signed() >> (64 - width)) as f64,
            Self::Unsigned(width) => low(width) as f64,
            Self::Bit => low(1) as f64,
        }
    }

    /// The bits of a result, which is one of the formats that sums have.
    pub(crate) fn rounded(self, value: f64) -> u64 {
        match self {
            Self::F16 => F16.round(value, Rounding::Nearest).into(),
            Self::Bf16 => BF16.round(value, Rounding::Nearest).into(),
            Self::F64 => value.to_bits(),
            _ if value.is_nan() => 0x7FFF_FFFF,
            _ => (value as f32).to_bits().into(),
        }
    }
}

/// Which matrix of `d = a * b + c` it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Left,
    Right,
    Sum,
}

/// A matrix, without its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) role: Role,
    pub(crate) number: Number,
    pub(crate) rows: u32,
    pub(crate) columns: u32,
}

impl Layout {
    /// The matrix of that role in a product of `[m, n, k]`; none if its tiles do not fit in it.
    pub(crate) fn of(role: Role, number: Number, [m, n, k]: [u32; 3]) -> Option<Self> {
        let along = 4 * number.each();
        let [rows, columns, fits] = match role {
            Role::Left => [m, k, u32::from(m % 8 == 0 && k % along == 0)],
            Role::Right => [k, n, u32::from(n % 8 == 0 && k % along == 0)],
            Role::Sum => [m, n, u32::from(m % 8 == 0 && n % 8 == 0 && number.bits() >= 16)],
        };
        (fits == 1 && m * n * k > 0).then_some(Self { role, number, rows, columns })
    }

    /// How many registers its elements take.
    pub(crate) fn registers(self) -> u32 {
        self.rows * self.columns / (32 * self.number.each())
    }

    /// The row and column of an element of a lane's register.
    pub(crate) fn place(self, register: u32, element: u32, lane: u32) -> [u32; 2] {
        let (group, within, each) = (lane / 4, lane % 4, self.number.each());
        match self.role {
            Role::Left => {
                let tiles = self.rows / 8;
                [8 * (register % tiles) + group, 4 * each * (register / tiles) + each * within + element]
            }
            Role::Right => {
                let tiles = self.rows / (4 * each);
                [4 * each * (register % tiles) + each * within + element, 8 * (register / tiles) + group]
            }
            Role::Sum => {
                let (pair, side) = ((register * each + element) / 2, (register * each + element) % 2);
                let tiles = self.rows / 8;
                [8 * (pair % tiles) + group, 8 * (pair / tiles) + 2 * within + side]
            }
        }
    }

    /// Of elements that lie side by side in a lane's registers, how many are neighbours in the matrix too.
    pub(crate) fn together(self) -> u32 {
        if self.role == Role::Sum { 2 } else { self.number.each() }
    }

    /// The number of an element, row by row.
    pub(crate) fn index(self, register: u32, element: u32, lane: u32) -> usize {
        let [row, column] = self.place(register, element, lane);
        (row * self.columns + column) as usize
    }
}

/// A matrix in registers.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    pub(crate) layout: Layout,
    pub(crate) registers: Vec<(Class, u32)>,
}

/// What becomes of an overflow, and of pairs of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    Plain,
    /// Sums of integers are clamped.
    Saturating,
    /// Pairs of bits are counted that are both set.
    And,
    /// Or of which one is.
    Xor,
}

/// Where a factor of a product is that four warps make.
#[derive(Clone, Debug)]
pub(crate) enum Factor {
    Registers(Fragment),
    /// In shared memory, as a descriptor in a register says, and whether it is transposed.
    Memory(u32, bool),
}

/// Such a factor.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) layout: Layout,
    pub(crate) factor: Factor,
    pub(crate) is_negative: bool,
}

/// What the lanes of a warp do to matrices.
#[derive(Clone, Debug)]
pub(crate) enum Matrix {
    /// `d = a * b + c`; `d` has the layout of `c` and a number of its own.
    Multiply { product: Product, a: Fragment, b: Fragment, c: Fragment, d: Fragment },
    /// Matrices of 8 by 8 elements of 16 bits between rows, of which lane `8 i + r` has row `r` of matrix `i` in 4 registers, and
    /// fragments, of which register `i` is matrix `i`. It may be transposed on the way.
    Rows { rows: [u32; 4], fragments: Vec<u32>, to_rows: bool, transposes: bool },
    /// A fragment of such a matrix, transposed.
    Transpose { target: u32, source: u32 },
    /// A warp's rows of a product of matrices in shared memory, which may be added to those that the sum has.
    Group { product: Product, factors: [Described; 2], sum: Fragment, adds: u32 },
    /// Nothing: all lanes are to be there.
    Together,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each element of a matrix is in one place.
    #[test]
    fn fragments_hold_each_element_once() {
        use Number::{Bf16, Bit, E4m3, F16, F32, F64, Signed, Tf32};
        for (shape, factor, sums) in [
            ([16, 8, 8], F16, &[F16, F32][..]),
            ([16, 8, 16], F16, &[F16, F32]),
            ([16, 8, 8], Bf16, &[F32]),
            ([16, 8, 4], Tf32, &[F32]),
            ([16, 8, 8], Tf32, &[F32]),
            ([8, 8, 4], F64, &[F64]),
            ([16, 8, 16], F64, &[F64]),
            ([8, 8, 16], Signed(8), &[Signed(32)]),
            ([16, 8, 32], Signed(8), &[Signed(32)]),
            ([16, 8, 64], Signed(4), &[Signed(32)]),
            ([16, 8, 256], Bit, &[Signed(32)]),
            ([16, 8, 32], E4m3, &[F32]),
            ([16, 16, 16], F16, &[F16, F32]),
            ([32, 8, 16], Bf16, &[F32]),
            ([8, 32, 16], Signed(8), &[Signed(32)]),
        ] {
            let of_sums = sums.iter().map(|number| (Role::Sum, *number));
            for (role, number) in [(Role::Left, factor), (Role::Right, factor)].into_iter().chain(of_sums) {
                let layout = Layout::of(role, number, shape).expect("a layout");
                let mut times = vec![0; (layout.rows * layout.columns) as usize];
                for register in 0..layout.registers() {
                    for (lane, element) in (0..32).flat_map(|lane| (0..number.each()).map(move |e| (lane, e))) {
                        times[layout.index(register, element, lane)] += 1;
                    }
                }
                assert!(times.iter().all(|times| *times == 1), "{layout:?} {times:?}");
            }
        }
        assert_eq!(Layout::of(Role::Left, F16, [16, 8, 4]), None);
    }

    /// Some elements, where the manual's figures have them.
    #[test]
    fn elements_are_where_the_figures_have_them() {
        let of = |role, number, shape| Layout::of(role, number, shape).expect("a layout");
        let (a, b) = (of(Role::Left, Number::F16, [16, 8, 16]), of(Role::Right, Number::F16, [16, 8, 16]));
        // a5 of thread 6, which is in group 1: row 9... of its second half.
        assert_eq!(a.place(2, 1, 6), [1, 13]);
        assert_eq!(a.place(3, 0, 6), [9, 12]);
        assert_eq!(b.place(1, 1, 31), [15, 7]);
        let c = of(Role::Sum, Number::F32, [16, 8, 16]);
        assert_eq!([c.place(0, 0, 5), c.place(3, 0, 5)], [[1, 2], [9, 3]]);
        let tf32 = of(Role::Left, Number::Tf32, [16, 8, 8]);
        assert_eq!([1, 2].map(|i| tf32.place(i, 0, 5)), [[9, 1], [1, 5]]);
        let s8 = of(Role::Left, Number::Signed(8), [16, 8, 32]);
        assert_eq!(s8.place(2, 3, 1), [0, 23]);
        let f64 = of(Role::Right, Number::F64, [8, 8, 4]);
        assert_eq!(f64.place(0, 0, 6), [2, 1]);
    }

    #[test]
    fn narrow_formats_are_worth_what_the_manual_says() {
        for (bits, value) in [(0x7E, 448.0), (0x38, 1.0), (0x01, 1.0 / 512.0), (0xF8, -256.0)] {
            assert_eq!(Number::E4m3.value(bits), value, "{bits:#x}");
        }
        assert!(Number::E4m3.value(0xFF).is_nan());
        assert_eq!((Number::E5m2.value(0x7B), Number::E5m2.value(0x7C)), (57344.0, f64::INFINITY));
        assert_eq!((Number::Signed(4).value(0xF8), Number::Unsigned(4).value(0xF8)), (-8.0, 8.0));
    }
}
