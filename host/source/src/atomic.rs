//! What atomics make of what stands in memory.

use gpu::device::Change;
use gpu::device::host::{Atomic, Number};

/// What `atomic` makes of `old` with its operand. Bits of 32-bit numbers are the lowest of the word.
pub(super) fn change(atomic: Atomic, old: u64, operand: u64) -> u64 {
    let Atomic { change, number, compare } = atomic;
    match change {
        Change::Add => sum(number, old, operand),
        Change::Min => {
            if is_below(number, operand, old) {
                operand
            } else {
                old
            }
        }
        Change::Max => {
            if is_below(number, old, operand) {
                operand
            } else {
                old
            }
        }
        Change::And => old & operand,
        Change::Or => old | operand,
        Change::Xor => old ^ operand,
        Change::Exch => operand,
        Change::Cas => {
            if old == compare {
                operand
            } else {
                old
            }
        }
        Change::Inc => {
            if old >= operand {
                0
            } else {
                old + 1
            }
        }
        Change::Dec => {
            if old == 0 || old > operand {
                operand
            } else {
                old - 1
            }
        }
    }
}

fn sum(number: Number, a: u64, b: u64) -> u64 {
    match number {
        Number::U32 | Number::I32 => (a as u32).wrapping_add(b as u32).into(),
        Number::U64 | Number::I64 => a.wrapping_add(b),
        Number::F32 => (f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits().into(),
        Number::F64 => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
    }
}

fn is_below(number: Number, a: u64, b: u64) -> bool {
    match number {
        Number::U32 | Number::U64 => a < b,
        Number::I32 => (a as u32).cast_signed() < (b as u32).cast_signed(),
        Number::I64 => a.cast_signed() < b.cast_signed(),
        Number::F32 => f32::from_bits(a as u32) < f32::from_bits(b as u32),
        Number::F64 => f64::from_bits(a) < f64::from_bits(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(change_: Change, number: Number, old: u64, operand: u64) -> u64 {
        change(Atomic { change: change_, number, compare: 7 }, old, operand)
    }

    #[test]
    fn integers_wrap_around_and_are_compared_with_their_sign() {
        let minus_one = u64::from(u32::MAX);
        assert_eq!(of(Change::Add, Number::U32, minus_one, 2), 1);
        assert_eq!(of(Change::Add, Number::I64, u64::MAX, 2), 1);
        assert_eq!(of(Change::Min, Number::U32, minus_one, 2), 2);
        assert_eq!(of(Change::Min, Number::I32, minus_one, 2), minus_one);
        assert_eq!(of(Change::Max, Number::I32, minus_one, 2), 2);
        assert_eq!(of(Change::Max, Number::I64, u64::MAX, 2), 2);
        assert_eq!(of(Change::Max, Number::U64, u64::MAX, 2), u64::MAX);
    }

    #[test]
    fn counters_go_round_at_their_limit() {
        let count = |change| [0, 3, 4, 9].map(|old| of(change, Number::U32, old, 4));
        assert_eq!(count(Change::Inc), [1, 4, 0, 0]);
        assert_eq!(count(Change::Dec), [4, 2, 3, 4]);
    }

    #[test]
    fn a_value_is_exchanged_if_the_old_one_is_the_one_to_compare_with() {
        assert_eq!([7, 8].map(|old| of(Change::Cas, Number::U64, old, 1)), [1, 8]);
    }
}
