//! Claims: what the five articles say that busload grew out of, each with the rule that judges it.
//!
//! A claim is judged by what the simulator counts, by what a GPU measured, or by the article's own figures, never by an
//! opinion: change the counts and the verdict changes. A figure measured on one GPU is never held against another GPU's
//! absolute figure, only against its ratios.

mod aos_and_transpose;
mod banks_and_transpose;
mod bus;
mod evidence;
mod first_guide;
mod week_one;

pub use evidence::{Cached, Evidence, Found};

use schemars::JsonSchema;
use serde::Serialize;

/// Something an article says, and how to find out whether it holds.
pub struct Claim {
    /// A name of its own.
    pub id: String,
    /// The article's file.
    pub seed: &'static str,
    /// What it says, in our words, with the GPU it speaks of.
    pub claim: String,
    judge: Rule,
}

/// How a claim is judged.
type Rule = Box<dyn Fn(&dyn Evidence) -> Judgement>;

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Judged {
    /// Its name.
    pub id: String,
    /// The article's file.
    pub seed: &'static str,
    /// What it says.
    pub claim: String,
    /// What the simulator counts, where that bears on it.
    pub simulated: Option<String>,
    /// What a GPU measured, where that bears on it.
    pub measured: Option<String>,
    /// Whether it holds.
    pub verdict: Verdict,
    /// What is true instead, within which band it holds, or what would settle it.
    pub detail: String,
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It does.
    Confirmed,
    /// It does, within the band that the detail names.
    Within,
    /// It does not; the detail says what is true.
    Corrected,
    /// Nothing at hand can say; the detail says what would.
    Open,
}

impl Verdict {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::Within => "within",
            Verdict::Corrected => "corrected",
            Verdict::Open => "open",
        }
    }
}

/// A verdict with what it rests on.
struct Judgement {
    simulated: Option<String>,
    measured: Option<String>,
    verdict: Verdict,
    detail: String,
}

/// Every claim, article by article.
pub fn all() -> Vec<Claim> {
    [
        aos_and_transpose::claims(),
        first_guide::claims(),
        bus::claims(),
        banks_and_transpose::claims(),
        week_one::claims(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Judges every claim.
pub fn judge(evidence: &dyn Evidence) -> Vec<Judged> {
    all()
        .into_iter()
        .map(|claim| {
            let Judgement { simulated, measured, verdict, detail } = (claim.judge)(evidence);
            Judged { id: claim.id, seed: claim.seed, claim: claim.claim, simulated, measured, verdict, detail }
        })
        .collect()
}

fn claim(
    id: impl Into<String>,
    seed: &'static str,
    claim: impl Into<String>,
    judge: impl Fn(&dyn Evidence) -> Judgement + 'static,
) -> Claim {
    Claim { id: id.into(), seed, claim: claim.into(), judge: Box::new(judge) }
}

/// A number without zeros that say nothing.
fn number(value: f64) -> String {
    format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Confirmed if the simulator counts what is claimed; the truth is the count.
fn counted(claimed: f64, found: f64, unit: &str) -> Judgement {
    let truth = format!("{} {unit}", number(found));
    let holds = (claimed - found).abs() <= 1e-9 * claimed.abs().max(1.0);
    Judgement {
        simulated: Some(truth.clone()),
        measured: None,
        verdict: if holds { Verdict::Confirmed } else { Verdict::Corrected },
        detail: if holds { String::new() } else { truth },
    }
}

/// The same with figures that an article rounds to `rounding`.
fn rounded(claimed: f64, found: f64, rounding: f64, unit: &str) -> Judgement {
    let mut judgement = counted(claimed, found, unit);
    if (claimed - found).abs() <= rounding {
        (judgement.verdict, judgement.detail) = (Verdict::Confirmed, String::new());
    }
    judgement
}

/// Judges a figure by arithmetic on the article's other figures: confirmed up to `rounding`.
fn arithmetic(claimed: f64, computed: f64, rounding: f64, says: impl Fn(&str) -> String) -> Judgement {
    let holds = (claimed - computed).abs() <= rounding;
    Judgement {
        simulated: None,
        measured: None,
        verdict: if holds { Verdict::Confirmed } else { Verdict::Corrected },
        detail: says(&number(computed)),
    }
}

/// Judges a ratio by the one measured: confirmed within 5 %, within the band if no further off than `band` (a share of the
/// claimed ratio), else corrected; open without a measurement.
fn ratio(claimed: f64, found: Option<Found>, band: f64, what: &str) -> Judgement {
    figure(claimed, "times", found, band, what)
}

/// The same with a figure that has a unit of its own, such as cycles, and is no figure of one GPU alone.
fn figure(claimed: f64, unit: &str, found: Option<Found>, band: f64, what: &str) -> Judgement {
    let Some(found) = found else {
        return Judgement {
            simulated: None,
            measured: None,
            verdict: Verdict::Open,
            detail: format!("a results file with {what}"),
        };
    };
    let off = (found.value / claimed - 1.0).abs();
    let (verdict, detail) = if off <= 0.05 {
        (Verdict::Confirmed, String::new())
    } else if off <= band {
        (Verdict::Within, format!("within {:.0} % of what is claimed", 100.0 * band))
    } else {
        (Verdict::Corrected, format!("{} {unit} on the {}", number(found.value), found.gpu))
    };
    let measured = format!("{} {unit} ({}, {})", number(found.value), what, found.gpu);
    Judgement { simulated: None, measured: Some(measured), verdict, detail }
}

/// Confirmed if the ratio measured is more than `least`.
fn at_least(least: f64, found: Option<Found>, what: &str) -> Judgement {
    let mut judgement = ratio(least, found.clone(), 0.0, what);
    if let Some(found) = found {
        let holds = found.value > least;
        judgement.verdict = if holds { Verdict::Confirmed } else { Verdict::Corrected };
        judgement.detail =
            if holds { String::new() } else { format!("{} times on the {}", number(found.value), found.gpu) };
    }
    judgement
}

impl Judgement {
    /// With a word on why, after what is true.
    fn because(mut self, why: &str) -> Self {
        if self.verdict == Verdict::Corrected {
            self.detail = if self.detail.is_empty() { why.to_owned() } else { format!("{}: {why}", self.detail) };
        }
        self
    }

    /// With what the simulator counts beside a measurement.
    fn beside(mut self, simulated: String) -> Self {
        self.simulated = Some(simulated);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::evidence::Perturbed;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_enough_claims_from_every_article_and_no_two_have_the_same_name() {
        let claims = all();
        assert!(claims.len() >= 60, "{} claims", claims.len());
        let ids: BTreeSet<_> = claims.iter().map(|claim| &claim.id).collect();
        assert_eq!(ids.len(), claims.len(), "names that stand twice");
        let seeds: BTreeSet<_> = claims.iter().map(|claim| claim.seed).collect();
        assert_eq!(seeds.len(), 5, "{seeds:?}");
    }

    /// Other counts, other verdicts: no verdict on a count is typed in.
    #[test]
    fn verdicts_that_rest_on_counts_change_with_the_counts() {
        let evidence = Cached::new(Vec::new());
        let straight = judge(&evidence);
        let perturbed = judge(&Perturbed(&evidence));
        let mut flipped = 0;
        for (before, after) in straight.iter().zip(&perturbed) {
            if before.simulated.is_some() && before.measured.is_none() && before.verdict == Verdict::Confirmed {
                assert_eq!(after.verdict, Verdict::Corrected, "{}: {before:?}", before.id);
                flipped += 1;
            }
        }
        assert!(flipped >= 20, "{flipped} confirmed claims rest on counts");
    }

    #[test]
    fn a_ratio_is_judged_by_its_distance() {
        let found = |value| Some(Found { value, gpu: "GPU".into() });
        let verdict = |value| ratio(2.0, found(value), 0.25, "x").verdict;
        assert_eq!([2.05, 2.4, 3.0].map(verdict), [Verdict::Confirmed, Verdict::Within, Verdict::Corrected]);
        assert_eq!(ratio(2.0, None, 0.25, "x").verdict, Verdict::Open);
    }
}
