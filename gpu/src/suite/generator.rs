//! Index patterns as Spatter writes them: `UNIFORM:8:4`, `MS1:8:4:32`, `LAPLACIAN:2:1:100`, or the indices themselves.

use super::{PlanError, format};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Indices of one pattern at most.
pub const MOST_INDICES: u64 = 1 << 24;

/// The indices that a pattern stands for, and the delta that it sets; none if it leaves that to others.
///
/// # Errors
/// What of it makes no sense, with what it may be.
pub fn indices(pattern: &str) -> Result<(Vec<u64>, Option<u64>), PlanError> {
    let mut parts = pattern.split(':');
    let kind = parts.next().unwrap_or_default();
    let parts: Vec<&str> = parts.collect();
    match kind {
        "UNIFORM" => uniform(pattern, &parts),
        "MS1" => Ok((mostly_stride_1(pattern, &parts)?, None)),
        "LAPLACIAN" => Ok((laplacian(pattern, &parts)?, Some(1))),
        _ if parts.is_empty() && pattern.starts_with(|c: char| c.is_ascii_digit()) => {
            let indices: Result<Vec<u64>, _> =
                pattern.split(',').map(|index| number(pattern, "an index", index, 0)).collect();
            let indices = indices?;
            bounded(pattern, indices.len() as u64)?;
            Ok((indices, None))
        }
        _ => Err(PlanError(format!(
            "`{pattern}` is no pattern: give UNIFORM:LENGTH:STRIDE, MS1:LENGTH:PLACES:GAPS, LAPLACIAN:DIMENSIONS:ORDER:SIZE, or indices \
             (0,8,16)"
        ))),
    }
}

/// `LENGTH` indices `STRIDE` apart; `NR` sets the delta with which none is met again.
fn uniform(pattern: &str, parts: &[&str]) -> Result<(Vec<u64>, Option<u64>), PlanError> {
    let (length, stride, delta) = match parts {
        [length, stride] => (length, stride, None),
        [length, stride, delta] => (length, stride, Some(*delta)),
        _ => return Err(form(pattern, "UNIFORM:LENGTH:STRIDE, or with a third number, the delta, or NR")),
    };
    let length = bounded(pattern, number(pattern, "the length", length, 1)?)?;
    let stride = number(pattern, "the stride", stride, 1)?;
    let span = product(pattern, length, stride)?;
    let delta = match delta {
        None => None,
        Some("NR") => Some(span),
        Some(delta) => Some(number(pattern, "the delta", delta, 1)?),
    };
    Ok(((0..length).map(|i| i * stride).collect(), delta))
}

/// `LENGTH` neighbours, but for gaps at some places: one for all, or one for each.
fn mostly_stride_1(pattern: &str, parts: &[&str]) -> Result<Vec<u64>, PlanError> {
    let [length, places, gaps] = parts else { return Err(form(pattern, "MS1:LENGTH:PLACES:GAPS, as in MS1:8:2,3:20,22")) };
    let length = bounded(pattern, number(pattern, "the length", length, 1)?)?;
    let list = |what, text: &str| text.split(',').map(|n| number(pattern, what, n, 0)).collect::<Result<Vec<u64>, _>>();
    let (places, gaps) = (list("a place", places)?, list("a gap", gaps)?);
    if gaps.len() != 1 && gaps.len() != places.len() {
        let (gaps, places) = (gaps.len(), places.len());
        return Err(PlanError(format!("`{pattern}` has {gaps} gaps for {places} places: give one for all, or one for each")));
    }
    if let Some(pair) = places.windows(2).find(|pair| pair[0] >= pair[1]) {
        let [before, after] = [pair[0], pair[1]];
        return Err(PlanError(format!("`{pattern}` has the place {after} behind {before}: let places rise")));
    }
    if let Some(place) = places.iter().find(|place| **place >= length) {
        return Err(PlanError(format!("`{pattern}` has a gap at {place}, and {length} indices: places count from 0")));
    }
    let gap = |i: u64| match places.iter().position(|place| *place == i) {
        Some(number) => gaps[if gaps.len() == 1 { 0 } else { number }],
        None => 1,
    };
    // The first index is 0, one on from nothing.
    let mut next = Some(0u64);
    let indices = (0..length).map(|i| {
        let index = next.and_then(|next| (next + gap(i)).checked_sub(1));
        next = index.map(|index| index + 1);
        index.filter(|index| *index < 1 << 40)
    });
    let indices: Option<Vec<u64>> = indices.collect();
    indices.ok_or_else(|| PlanError(format!("`{pattern}` has indices below 0 or above 2^40: choose other gaps")))
}

/// The points of a stencil in a grid of `SIZE` points along each of so many dimensions, `ORDER` points along each arm.
fn laplacian(pattern: &str, parts: &[&str]) -> Result<Vec<u64>, PlanError> {
    let [dimensions, order, size] = parts else { return Err(form(pattern, "LAPLACIAN:DIMENSIONS:ORDER:SIZE, as in LAPLACIAN:2:1:100")) };
    let dimensions = number(pattern, "the number of dimensions", dimensions, 1)?;
    let order = number(pattern, "the order", order, 1)?;
    let size = number(pattern, "the size", size, 1)?;
    bounded(pattern, product(pattern, product(pattern, dimensions, order)?, 2)?.saturating_add(1))?;
    let mut arms = Vec::new();
    let mut step = 1;
    for dimension in 0..dimensions {
        if dimension > 0 {
            step = product(pattern, step, size)?;
        }
        for point in 1..=order {
            arms.push(product(pattern, point, step)?);
        }
    }
    // The last arm is the longest: nothing lies below the first point.
    let centre = *arms.last().unwrap_or(&0);
    let below = arms.iter().rev().map(|arm| centre - arm);
    Ok(below.chain([centre]).chain(arms.iter().map(|arm| centre + arm)).collect())
}

fn form(pattern: &str, form: &str) -> PlanError {
    PlanError(format!("`{pattern}` is not of the form {form}"))
}

fn number(pattern: &str, what: &str, text: &str, least: u64) -> Result<u64, PlanError> {
    let wrong = |way: String| PlanError(format!("`{pattern}`: {what} is `{text}`: {way}"));
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse::<u64>().ok().filter(|number| is_number && *number < 1 << 40);
    match number {
        Some(number) if number >= least => Ok(number),
        Some(_) => Err(wrong(format!("it must be at least {least}"))),
        None if is_number => Err(wrong("it must be below 2^40".to_string())),
        None => Err(wrong("give a whole number".to_string())),
    }
}

fn product(pattern: &str, a: u64, b: u64) -> Result<u64, PlanError> {
    let product = a.checked_mul(b).filter(|product| *product < 1 << 40);
    product.ok_or_else(|| PlanError(format!("`{pattern}` has indices above 2^40 ({a} times {b}): choose smaller numbers")))
}

fn bounded(pattern: &str, length: u64) -> Result<u64, PlanError> {
    if length > MOST_INDICES {
        let shown: String = pattern.chars().take(60).collect();
        return Err(PlanError(format!("`{shown}` has {length} indices, and a pattern has {MOST_INDICES} at most: shorten it")));
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// The examples of Spatter's own README.
    #[test]
    fn patterns_are_those_of_spatters_readme() {
        for (pattern, expected) in [
            ("UNIFORM:8:4", vec![0, 4, 8, 12, 16, 20, 24, 28]),
            ("MS1:8:4:32", vec![0, 1, 2, 3, 35, 36, 37, 38]),
            ("MS1:8:2,3:20", vec![0, 1, 21, 41, 42, 43, 44, 45]),
            ("MS1:8:2,3:20,22", vec![0, 1, 21, 43, 44, 45, 46, 47]),
            ("LAPLACIAN:1:1:100", vec![0, 1, 2]),
            ("LAPLACIAN:2:1:100", vec![0, 99, 100, 101, 200]),
            ("LAPLACIAN:2:2:100", vec![0, 100, 198, 199, 200, 201, 202, 300, 400]),
            ("LAPLACIAN:3:1:100", vec![0, 9900, 9999, 10000, 10001, 10100, 20000]),
            ("1,2,4,8,16,32", vec![1, 2, 4, 8, 16, 32]),
            ("4,4,4,4,4", vec![4, 4, 4, 4, 4]),
            ("7", vec![7]),
        ] {
            assert_eq!(indices(pattern).expect(pattern).0, expected, "{pattern}");
        }
        let delta = |pattern| indices(pattern).expect(pattern).1;
        assert_eq!([delta("UNIFORM:8:4"), delta("UNIFORM:8:4:NR"), delta("UNIFORM:8:4:5")], [None, Some(32), Some(5)]);
        assert_eq!([delta("MS1:8:4:32"), delta("LAPLACIAN:2:1:100"), delta("1,2")], [None, Some(1), None]);
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_the_way_out() {
        for (pattern, says) in [
            ("", "is no pattern"),
            ("RANDOM:8", "is no pattern: give UNIFORM:LENGTH:STRIDE"),
            ("UNIFORM:8", "is not of the form UNIFORM:LENGTH:STRIDE"),
            ("UNIFORM:0:1", "the length is `0`: it must be at least 1"),
            ("UNIFORM:8:-1", "the stride is `-1`: give a whole number"),
            ("UNIFORM:8:1:NE", "the delta is `NE`"),
            ("UNIFORM:99999999:1", "has 99999999 indices, and a pattern has 16777216 at most"),
            ("UNIFORM:16777216:1099511627775", "indices above 2^40"),
            ("UNIFORM:8:99999999999999999999999", "it must be below 2^40"),
            ("MS1:8:4", "is not of the form MS1"),
            ("MS1:8:2,3,4:20,22", "has 2 gaps for 3 places"),
            ("MS1:8:3,2:20", "has the place 2 behind 3"),
            ("MS1:8:9:20", "has a gap at 9, and 8 indices"),
            ("MS1:8:0:0", "has indices below 0"),
            ("LAPLACIAN:99:1:100", "has indices above 2^40"),
            ("LAPLACIAN:9999999999:1:1", "has 19999999999 indices"),
            ("1,2,x", "an index is `x`: give a whole number"),
            ("1,,2", "an index is ``"),
        ] {
            let error = indices(pattern).expect_err(pattern).to_string();
            assert!(error.contains(says), "{pattern}: {error}");
        }
    }
}
