//! What accesses cost, as budgets name and limit it.

use crate::explain::Explanation;
use crate::record::SiteRecord;
use crate::sim::coalesce::SECTOR;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::Add;

/// What a budget limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Requests of warps.
    Requests,
    /// Sectors that a request to global memory touches, on average.
    SectorsPerRequest,
    /// Bytes of these sectors.
    BytesMoved,
    /// Bytes that lanes want, as a share of those moved: the one measure that a budget holds from below.
    Used,
    /// Excess wavefronts of requests to shared memory, and excess passes of those to constant memory.
    Conflicts,
}

impl Measure {
    /// All, in the order in which they are written.
    pub const ALL: [Self; 5] = [Self::Requests, Self::SectorsPerRequest, Self::BytesMoved, Self::Used, Self::Conflicts];

    /// Its key in a file of budgets.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::SectorsPerRequest => "sectors_per_request",
            Self::BytesMoved => "bytes_moved",
            Self::Used => "used",
            Self::Conflicts => "conflicts",
        }
    }

    /// Whether it counts something, in whole numbers.
    #[must_use]
    pub const fn is_count(self) -> bool {
        matches!(self, Self::Requests | Self::BytesMoved | Self::Conflicts)
    }

    /// Whether one value is worse than another.
    #[must_use]
    pub fn is_worse(self, value: f64, than: f64) -> bool {
        if self == Self::Used { value < than } else { value > than }
    }
}

/// Sums over the requests of an access, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    requests: u64,
    to_global: u64,
    sectors: u64,
    used: u64,
    /// To shared or constant memory.
    to_banks: u64,
    conflicts: u64,
}

impl Cost {
    pub(super) fn of(site: &SiteRecord) -> Self {
        let requests = site.requests;
        let Some(sectors) = site.sectors else {
            let [wavefronts, ideal] = [site.wavefronts, site.wavefronts_ideal].map(Option::unwrap_or_default);
            return Self {
                requests,
                to_banks: requests,
                conflicts: wavefronts.saturating_sub(ideal),
                ..Self::default()
            };
        };
        Self { requests, to_global: requests, sectors, used: site.used.unwrap_or_default(), ..Self::default() }
    }

    /// A measure of it; none if no request is of the memory that it is a measure of. A quotient is that of the sums, so it is the same
    /// number on every machine.
    #[must_use]
    pub fn measure(&self, measure: Measure) -> Option<f64> {
        let of_global = (self.to_global > 0).then_some(());
        match measure {
            Measure::Requests => Some(self.requests as f64),
            Measure::SectorsPerRequest => of_global.map(|()| self.sectors as f64 / self.to_global as f64),
            Measure::BytesMoved => of_global.map(|()| (SECTOR * self.sectors) as f64),
            Measure::Used => (self.sectors > 0).then(|| self.used as f64 / (SECTOR * self.sectors) as f64),
            Measure::Conflicts => (self.to_banks > 0).then_some(self.conflicts as f64),
        }
    }

    /// All measures that it has.
    #[must_use]
    pub fn measures(&self) -> Vec<(Measure, f64)> {
        Measure::ALL.into_iter().filter_map(|measure| Some((measure, self.measure(measure)?))).collect()
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            to_global: self.to_global + other.to_global,
            sectors: self.sectors + other.sectors,
            used: self.used + other.used,
            to_banks: self.to_banks + other.to_banks,
            conflicts: self.conflicts + other.conflicts,
        }
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Self::add)
    }
}

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; none if it is all of the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// An access, as budgets name it.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// `load src`, or `load src #2` for the second of that name in the order of the source: where it stands is no part of it.
    pub name: String,
    /// The buffers or shared arrays that it goes to.
    pub regions: Vec<String>,
    /// Where it stands now.
    pub at: Place,
    /// What it costs.
    pub cost: Cost,
    /// Bytes in excess, as `explain` ranks accesses.
    pub excess: u64,
    /// Why it costs that, in a sentence.
    pub why: String,
    /// What to do about it, in sentences.
    pub advice: Vec<String>,
}

/// What a budget is called that all accesses of a kernel share.
pub const ALL: &str = "all";

impl Access {
    /// Whether a budget of such a name is its own, or that of a region that it belongs to.
    #[must_use]
    pub fn is_of(&self, budget: &str) -> bool {
        budget == ALL || budget == self.name || self.regions.iter().any(|region| region == budget)
    }
}

/// The accesses of a kernel that was explained, in the order of its source.
#[must_use]
pub fn accesses(explanation: Explanation) -> Vec<Access> {
    let mut numbers = BTreeMap::<_, usize>::new();
    let access = |access: crate::explain::Access| {
        let site = &access.site;
        let name = format!("{} {}", site.op, access.region);
        let number = numbers.entry(name.clone()).or_default();
        *number += 1;
        Access {
            name: if *number == 1 { name } else { format!("{name} #{number}") },
            regions: access.region.split(", ").map(str::to_owned).collect(),
            at: Place { file: site.file.clone(), line: site.line, column: Some(site.column) },
            cost: Cost::of(site),
            excess: access.excess,
            why: access.why,
            advice: access.advice,
        }
    };
    explanation.accesses.into_iter().map(access).collect()
}
