//! What the lanes of a warp make of the values that they bring to one another.

use gpu::device::host::Exchange;

/// What comes of an exchange for `lane`, of the values that the lanes brought; the error is the lane that it names, if that brought
/// none.
pub(super) fn exchanged(exchange: Exchange, lane: usize, values: &[Option<u64>; 32]) -> Result<u64, u32> {
    let lanes = |is_it: &dyn Fn(u64) -> bool| {
        let those = (0..32).filter(|lane: &usize| values[*lane].is_some_and(is_it));
        those.fold(0u64, |lanes, lane| lanes | 1 << lane)
    };
    let words = || values.iter().flatten().map(|value| *value as u32);
    let signed = || words().map(u32::cast_signed);
    let reduced = match exchange {
        Exchange::Lane(source) => return values[source as usize % 32].ok_or(source),
        Exchange::Ballot => return Ok(lanes(&|value| value != 0)),
        Exchange::Match => return Ok(lanes(&|value| Some(value) == values[lane])),
        Exchange::Add => words().fold(0, u32::wrapping_add),
        Exchange::MinUnsigned => words().fold(u32::MAX, u32::min),
        Exchange::MaxUnsigned => words().fold(0, u32::max),
        Exchange::MinSigned => signed().fold(i32::MAX, i32::min).cast_unsigned(),
        Exchange::MaxSigned => signed().fold(i32::MIN, i32::max).cast_unsigned(),
        Exchange::And => words().fold(u32::MAX, |all, word| all & word),
        Exchange::Or => words().fold(0, |any, word| any | word),
        Exchange::Xor => words().fold(0, |odd, word| odd ^ word),
    };
    Ok(reduced.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_bring_nothing_have_no_say() {
        let mut values = [None; 32];
        (values[1], values[4], values[31]) = (Some(5), Some(0), Some(5));
        let of = |exchange, lane| exchanged(exchange, lane, &values);
        assert_eq!((of(Exchange::Lane(4), 1), of(Exchange::Lane(2), 1)), (Ok(0), Err(2)));
        assert_eq!(of(Exchange::Ballot, 4), Ok(1 << 1 | 1 << 31));
        assert_eq!((of(Exchange::Match, 31), of(Exchange::Match, 4)), (Ok(1 << 1 | 1 << 31), Ok(1 << 4)));
        let minus_two = u64::from((-2i32).cast_unsigned());
        (values[1], values[4]) = (Some(minus_two), Some(7));
        let of = |exchange| exchanged(exchange, 1, &values).expect("it names no lane") as u32;
        assert_eq!(of(Exchange::Add), 10);
        assert_eq!((of(Exchange::MinUnsigned), of(Exchange::MaxUnsigned)), (5, minus_two as u32));
        assert_eq!((of(Exchange::MinSigned), of(Exchange::MaxSigned)), (minus_two as u32, 7));
        assert_eq!((of(Exchange::And), of(Exchange::Or)), (4, u32::MAX));
        assert_eq!(of(Exchange::Xor), minus_two as u32 ^ 7 ^ 5);
    }
}
