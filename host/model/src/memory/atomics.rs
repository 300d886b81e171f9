//! Atomics in the L2: slices carry them out, some lines in a row at one of them, and two slices share an adder (probe `atomics`).
//!
//! A slice takes a time for each line of a request, for each of its sectors, and for each that it has to fill. An adder takes a time for each
//! sector, and for each lane beyond the first on an address of it: lanes on one address are served one after another. Atomics of two
//! requests on one line are farther apart (the families of FITTED_ON). While a line is filled, its slice serves others.

use super::super::constants::Constants;

pub(super) struct Atomics {
    constants: Constants,
    /// When each slice is free, and each adder.
    slices: Vec<f64>,
    adders: Vec<f64>,
}

/// The part of an atomic that goes to one line.
#[derive(Clone, Copy)]
pub(super) struct OnLine {
    /// The slice and the adder of the line.
    pub(super) slice: usize,
    pub(super) adder: usize,
    /// Sectors, and those of them that are not in the L2.
    pub(super) sectors: u32,
    pub(super) missing: u32,
    /// Lanes that wait for others on their address.
    pub(super) waiting: f64,
}

impl Atomics {
    /// Idle slices and adders.
    pub(super) fn new(slices: usize, adders: usize, constants: &Constants) -> Self {
        Self { constants: *constants, slices: vec![0.0; slices], adders: vec![0.0; adders] }
    }

    /// Has a slice and an adder carry it out, and says when that is done.
    pub(super) fn serve(&mut self, part: OnLine, at: f64) -> f64 {
        let constants = &self.constants;
        let sectors = f64::from(part.sectors);
        let of_slice = (sectors * constants.l2_atomic_sector_cycles).max(constants.l2_atomic_line_cycles)
            + f64::from(part.missing) * constants.l2_atomic_fill_cycles;
        let of_adder = sectors * constants.l2_adder_sector_cycles + part.waiting * constants.l2_adder_lane_cycles;
        let (slice, adder) = (&mut self.slices[part.slice], &mut self.adders[part.adder]);
        *slice = slice.max(at) + of_slice;
        *adder = adder.max(at) + of_adder;
        slice.max(*adder)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::chip::Chip;
    use super::*;

    /// What an H200 takes of a slice for requests one after another, in the rows of one to 64 elements of `atomics.tsv`.
    #[test]
    fn lanes_on_one_address_wait_and_those_beside_do_not() {
        let constants = Constants::of(&Chip::load("h200").expect("is built in"));
        let each = |sectors, waiting| {
            let mut atomics = Atomics::new(94, 47, &constants);
            let part = OnLine { slice: 3, adder: 3, sectors, missing: 0, waiting };
            (0..100).fold(0.0, |_, _| atomics.serve(part, 0.0)) / 100.0
        };
        for (sectors, waiting, measured) in [(1, 31.0, 46.4), (1, 7.0, 11.65), (2, 2.0, 4.69), (4, 0.0, 4.69)] {
            let cycles = each(sectors, waiting);
            assert!((cycles / measured - 1.0).abs() < 0.1, "{sectors} sectors, {waiting} waiting: {cycles}");
        }
    }
}
