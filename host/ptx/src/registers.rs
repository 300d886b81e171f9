//! The registers of a block's warps: each is 32 lanes side by side, and an instruction goes through them in one loop.
//!
//! Constants, parameters and what is the same for the whole block stand in front, once; the registers of each warp follow. So an
//! operand is a slot, whatever it is.

use std::marker::PhantomData;

/// How wide a register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// A predicate.
    Pred,
    /// 8 or 16 bits, kept in 32, the rest of which are 0.
    Half,
    /// 32 bits.
    Narrow,
    /// 64 bits.
    Wide,
}

/// The widths of an arithmetic instruction's target and sources, and whether it joins parts of these, in one word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Classes(u16);

impl Classes {
    const ALL: [Class; 4] = [Class::Pred, Class::Half, Class::Narrow, Class::Wide];

    const JOINS: u16 = 1 << 15;

    /// Those of an instruction with up to four sources.
    pub(crate) fn new(alu: &Alu) -> Self {
        let all = alu.sources.iter().rev().chain([&alu.target]).fold(0, |all, class| all << 2 | *class as u16);
        Self(all << 3 | alu.sources.len() as u16 | if alu.joins { Self::JOINS } else { 0 })
    }

    /// Whether the target is put together of parts of the sources.
    pub(crate) fn joins(self) -> bool {
        self.0 & Self::JOINS != 0
    }

    /// The target's, then the sources'.
    pub(crate) fn iter(self) -> impl Iterator<Item = Class> {
        (0..=self.0 & 7).map(move |number| Self::ALL[usize::from(self.0 >> (3 + 2 * number) & 3)])
    }
}

/// What is set in the slot of a register that each warp has for itself.
pub(crate) const OWN: u32 = 1 << 31;

/// Which constants, and which registers of a warp, a program has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub(crate) constants: u32,
    pub(crate) own: u32,
}

/// Registers of one width.
pub(crate) struct Bank<T> {
    slots: Vec<T>,
    sizes: Sizes,
    /// From a slot's number to its place, for the registers of the warp that runs.
    shift: usize,
}

impl<T: Copy> Bank<T> {
    fn new(sizes: Sizes, warps: usize, zero: T) -> Self {
        let slots = vec![zero; sizes.constants as usize + sizes.own as usize * warps];
        Self { slots, sizes, shift: sizes.constants as usize }
    }

    #[inline(always)]
    fn place(&self, slot: u32) -> usize {
        (slot & !OWN) as usize + if slot & OWN == 0 { 0 } else { self.shift }
    }

    #[inline(always)]
    pub(crate) fn get(&self, slot: u32) -> &T {
        &self.slots[self.place(slot)]
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut T {
        let place = self.place(slot);
        &mut self.slots[place]
    }

    fn select(&mut self, warp: usize) {
        self.shift = self.sizes.constants as usize + warp * self.sizes.own as usize;
    }
}

/// All registers of a block.
pub(crate) struct Registers {
    pub(crate) preds: Bank<u32>,
    pub(crate) narrow: Bank<[u32; 32]>,
    pub(crate) wide: Bank<[u64; 32]>,
}

impl Registers {
    /// Those of so many warps: predicates, narrow ones and wide ones.
    pub(crate) fn new([preds, narrow, wide]: [Sizes; 3], warps: usize) -> Self {
        Self {
            preds: Bank::new(preds, warps, 0),
            narrow: Bank::new(narrow, warps, [0; 32]),
            wide: Bank::new(wide, warps, [0; 32]),
        }
    }

    /// This warp is the one that runs.
    pub(crate) fn select(&mut self, warp: usize) {
        self.preds.select(warp);
        self.narrow.select(warp);
        self.wide.select(warp);
    }
}

/// A width as a type.
pub(crate) trait Lanes {
    /// A lane's value.
    type Value: Copy + Default;
    /// Those of all lanes.
    type All<'a>;

    fn all(registers: &Registers, slot: u32) -> Self::All<'_>;
    fn get(all: &Self::All<'_>, lane: usize) -> Self::Value;
    fn set(registers: &mut Registers, slot: u32, mask: u32, values: &[Self::Value; 32]);
}

pub(crate) struct Pred(PhantomData<()>);
pub(crate) struct Half(PhantomData<()>);
pub(crate) struct Narrow(PhantomData<()>);
pub(crate) struct Wide(PhantomData<()>);

impl Lanes for Pred {
    type Value = bool;
    type All<'a> = u32;

    #[inline(always)]
    fn all(registers: &Registers, slot: u32) -> u32 {
        *registers.preds.get(slot)
    }

    #[inline(always)]
    fn get(all: &u32, lane: usize) -> bool {
        all >> lane & 1 != 0
    }

    #[inline(always)]
    fn set(registers: &mut Registers, slot: u32, mask: u32, values: &[bool; 32]) {
        let set = values.iter().rev().fold(0, |set, value| set << 1 | u32::from(*value));
        let target = registers.preds.get_mut(slot);
        *target = *target & !mask | set & mask;
    }
}

impl Lanes for Half {
    type Value = u32;
    type All<'a> = &'a [u32; 32];

    #[inline(always)]
    fn all(registers: &Registers, slot: u32) -> &[u32; 32] {
        registers.narrow.get(slot)
    }

    #[inline(always)]
    fn get(all: &&[u32; 32], lane: usize) -> u32 {
        all[lane]
    }

    #[inline(always)]
    fn set(registers: &mut Registers, slot: u32, mask: u32, values: &[u32; 32]) {
        blend(registers.narrow.get_mut(slot), mask, &values.map(|value| value & 0xFFFF));
    }
}

/// Registers that hold whole words.
macro_rules! words {
    ($class:ident, $file:ident, $word:ty) => {
        impl Lanes for $class {
            type Value = $word;
            type All<'a> = &'a [$word; 32];

            #[inline(always)]
            fn all(registers: &Registers, slot: u32) -> &[$word; 32] {
                registers.$file.get(slot)
            }

            #[inline(always)]
            fn get(all: &&[$word; 32], lane: usize) -> $word {
                all[lane]
            }

            #[inline(always)]
            fn set(registers: &mut Registers, slot: u32, mask: u32, values: &[$word; 32]) {
                blend(registers.$file.get_mut(slot), mask, values);
            }
        }
    };
}

words!(Narrow, narrow, u32);
words!(Wide, wide, u64);

/// Writes the lanes in `mask`.
#[inline(always)]
fn blend<T: Copy>(target: &mut [T; 32], mask: u32, values: &[T; 32]) {
    if mask == u32::MAX {
        *target = *values;
        return;
    }
    for lane in 0..32 {
        target[lane] = if mask >> lane & 1 != 0 { values[lane] } else { target[lane] };
    }
}

/// Carries out an arithmetic instruction for the lanes in a mask: the target's slot, and those of the sources.
///
/// Calling one asks for a processor that [`has_vectors`] says there is, where it was chosen for it.
pub(crate) type Run = unsafe fn(&mut Registers, [u32; 5], u32);

/// An arithmetic instruction.
#[derive(Clone, Copy)]
pub(crate) struct Alu {
    pub(crate) run: Run,
    pub(crate) target: Class,
    pub(crate) sources: &'static [Class],
    /// Whether it puts its target together of parts of its sources, as `prmt` and `bfi` do.
    pub(crate) joins: bool,
}

/// Whether the processor has what the faster of two builds of an instruction asks for.
pub(crate) fn has_vectors() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// An arithmetic instruction: the width of its target, those of its sources, and what it does to a lane. Its lanes are gone
/// through in one loop, which the compiler makes vectors of: once for any processor, and once for those that have wide ones.
macro_rules! lanes {
    ($target:ident <- |$($x:ident : $class:ident),+| $value:expr) => {{
        #[inline(always)]
        #[allow(unused_assignments)]
        fn body(registers: &mut $crate::registers::Registers, slots: [u32; 5], mask: u32) {
            use $crate::registers::Lanes;
            let mut source = 0;
            $(
                source += 1;
                let $x = <$crate::registers::$class as Lanes>::all(registers, slots[source]);
            )+
            let mut values = [Default::default(); 32];
            for lane in 0..32 {
                $(let $x = <$crate::registers::$class as Lanes>::get(&$x, lane);)+
                values[lane] = $value;
            }
            <$crate::registers::$target as Lanes>::set(registers, slots[0], mask, &values);
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,lzcnt,popcnt")]
        fn vectors(registers: &mut $crate::registers::Registers, slots: [u32; 5], mask: u32) {
            body(registers, slots, mask);
        }
        #[cfg(not(target_arch = "x86_64"))]
        use body as vectors;
        Some($crate::registers::Alu {
            run: if $crate::registers::has_vectors() { vectors } else { body },
            target: $crate::registers::Class::$target,
            sources: &[$($crate::registers::Class::$class),+],
            joins: false,
        })
    }};
}

/// [`lanes`] for an integer type: the values have it, and so has the result.
macro_rules! typed {
    ($ty:expr, |$($x:ident),+| $value:expr) => {
        match $ty {
            $crate::ast::Type::Signed(16) => lanes!(Half <- |$($x: Half),+| {
                $(let $x = $x as u16 as i16;)+
                let value: i16 = $value;
                value as u16 as u32
            }),
            $crate::ast::Type::Unsigned(16) | $crate::ast::Type::Bits(16) => lanes!(Half <- |$($x: Half),+| {
                $(let $x = $x as u16;)+
                let value: u16 = $value;
                u32::from(value)
            }),
            $crate::ast::Type::Signed(32) => lanes!(Narrow <- |$($x: Narrow),+| {
                $(let $x = $x as i32;)+
                let value: i32 = $value;
                value as u32
            }),
            $crate::ast::Type::Unsigned(32) | $crate::ast::Type::Bits(32) => lanes!(Narrow <- |$($x: Narrow),+| {
                let value: u32 = $value;
                value
            }),
            $crate::ast::Type::Signed(64) => lanes!(Wide <- |$($x: Wide),+| {
                $(let $x = $x as i64;)+
                let value: i64 = $value;
                value as u64
            }),
            $crate::ast::Type::Unsigned(64) | $crate::ast::Type::Bits(64) => lanes!(Wide <- |$($x: Wide),+| {
                let value: u64 = $value;
                value
            }),
            _ => None,
        }
    };
}

/// The same for a comparison.
macro_rules! compared {
    ($ty:expr, |$($x:ident),+| $value:expr) => {
        match $ty {
            $crate::ast::Type::Signed(16) => lanes!(Pred <- |$($x: Half),+| {
                $(let $x = $x as u16 as i16;)+
                $value
            }),
            $crate::ast::Type::Unsigned(16) | $crate::ast::Type::Bits(16) => lanes!(Pred <- |$($x: Half),+| $value),
            $crate::ast::Type::Signed(32) => lanes!(Pred <- |$($x: Narrow),+| {
                $(let $x = $x as i32;)+
                $value
            }),
            $crate::ast::Type::Unsigned(32) | $crate::ast::Type::Bits(32) => lanes!(Pred <- |$($x: Narrow),+| $value),
            $crate::ast::Type::Signed(64) => lanes!(Pred <- |$($x: Wide),+| {
                $(let $x = $x as i64;)+
                $value
            }),
            $crate::ast::Type::Unsigned(64) | $crate::ast::Type::Bits(64) => lanes!(Pred <- |$($x: Wide),+| $value),
            _ => None,
        }
    };
}

pub(crate) use {compared, lanes, typed};
