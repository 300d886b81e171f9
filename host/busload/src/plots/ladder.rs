//! The ladder of a family: its kernels from naive to best, beside the driver's copy and the memory's peak.

use super::cases::{Case, cases};
use super::material::{Asked, Material, Subject};
use super::name::name;
use super::on::On;
use super::picture::{Axis, Group, Ink, Lane, Level, Mark, Picture, Plot, Row, Rows, Scale, Shape, Table};
use super::text::{MISSING, filled, number, share, shown};
use crate::timing::Timed;

/// Rows that are drawn at most: of a family that has more, some cases are.
const MOST: usize = 40;
/// If the best of a family is below this share of the peak, the axis is one of powers.
const LOW: f64 = 0.1;

/// The ladders of all families of which anything was measured or predicted.
pub(crate) fn plots(material: &Material) -> Vec<Plot> {
    material.families().into_iter().filter_map(|family| plot(material, family)).collect()
}

/// What a ladder shows.
#[derive(Clone, Copy)]
enum Figure {
    /// Bandwidth.
    Gbps,
    /// Ticks of the clock a request, of kernels that read it.
    Cycles,
}

impl Figure {
    fn measured(self, timed: &Timed) -> Option<f64> {
        match self {
            Self::Gbps => Some(timed.gbps),
            Self::Cycles => timed.cycles,
        }
    }
}

fn plot(material: &Material, family: &str) -> Option<Plot> {
    let subjects: Vec<_> = material.of_family(family).collect();
    let timed = || subjects.iter().flat_map(|subject| subject.measured.iter().flatten());
    let figure = match timed().next().is_some() && timed().all(|timed| timed.cycles.is_some()) {
        true => Figure::Cycles,
        false => Figure::Gbps,
    };
    let ladder = Ladder { material, figure };
    let (cases, common) = cases(&subjects);
    let table = ladder.table(&cases);
    let all = cases.len();
    let cases = some(cases, MOST / material.series.len().max(1));
    let on = if common.is_empty() { String::new() } else { format!(", on {common}") };
    let left_out = match cases.len() {
        drawn if drawn < all => format!(" Drawn are {drawn} of {all} cases; the table has all."),
        _ => String::new(),
    };
    let says = match figure {
        Figure::Cycles => {
            format!("Ticks of the SM's clock that a request takes, by the kernels' own clock{on}.{left_out}")
        }
        Figure::Gbps => format!("Bytes that must move over the median time{on}.{left_out}"),
    };
    // Of one kernel the cases are the rows.
    let groups = match cases.iter().all(|case| case.subjects.len() == 1) && all > 1 {
        true => vec![ladder.group(None, cases.iter().map(|case| (case.label.as_str(), case.subjects[0])))],
        false => {
            let group = |case: &Case<'_>| {
                let named = case.subjects.iter().map(|subject| (subject.kernel.as_str(), *subject));
                ladder.group((all > 1).then_some(case.label.as_str()), named)
            };
            cases.iter().map(group).collect()
        }
    };
    let has_marks =
        groups.iter().flat_map(|group| &group.rows).flat_map(|row| &row.lanes).any(|lane| !lane.marks.is_empty());
    let best = subjects.iter().flat_map(|subject| ladder.values(subject)).fold(0.0, f64::max);
    let peak = material.series.iter().filter_map(|series| series.machine.peak_gbps).fold(0.0, f64::max);
    let (label, scale) = match figure {
        Figure::Gbps if best < LOW * peak => ("GB/s, by powers", Scale::Logarithmic),
        Figure::Gbps => ("GB/s", Scale::Linear),
        Figure::Cycles => ("ticks a request", Scale::Linear),
    };
    let picture = Picture::Rows(Rows { x: Axis::new(label, scale), keys: ladder.keys(&subjects), groups });
    has_marks.then(|| Plot { name: name(&["ladder", family]), title: family.to_owned(), says, picture, table })
}

/// Cases with so many rows at most, the first and the last among them.
fn some(cases: Vec<Case<'_>>, most: usize) -> Vec<Case<'_>> {
    let rows = cases.iter().map(|case| case.subjects.len()).max().unwrap_or_default();
    let places = places(cases.len(), most / rows.max(1));
    cases.into_iter().enumerate().filter(|(place, _)| places.contains(place)).map(|(_, case)| case).collect()
}

/// So many of `count` places, the first and the last among them; one at least.
fn places(count: usize, most: usize) -> Vec<usize> {
    let last = count.saturating_sub(1);
    match most.min(count) {
        0 | 1 => vec![last],
        kept => (0..kept).map(|n| n * last / (kept - 1)).collect(),
    }
}

struct Ladder<'a> {
    material: &'a Material,
    figure: Figure,
}

impl Ladder<'_> {
    fn is_gbps(&self) -> bool {
        matches!(self.figure, Figure::Gbps)
    }

    fn values(&self, subject: &Subject) -> Vec<f64> {
        let measured = subject.measured.iter().flatten().filter_map(|timed| self.figure.measured(timed));
        let predicted =
            (0..subject.predicted.len()).filter_map(|of| subject.predicted_gbps(of).filter(|_| self.is_gbps()));
        measured.chain(predicted).collect()
    }

    fn group<'s>(&self, title: Option<&str>, named: impl Iterator<Item = (&'s str, &'s Subject)>) -> Group {
        let named: Vec<_> = named.collect();
        let subjects: Vec<_> = named.iter().map(|(_, subject)| *subject).collect();
        let mut levels = Vec::new();
        for (number, series) in self.material.series.iter().enumerate().filter(|_| self.is_gbps()) {
            let is_here = subjects.iter().any(|subject| subject.measured[number].is_some());
            let ink = if self.material.series.len() > 1 { Ink::Series(number) } else { Ink::Quiet };
            let copy = subjects.iter().filter_map(|subject| subject.copy_gbps(number)).reduce(f64::max);
            let level = |label: &str, value| Level { label: label.to_owned(), ink, value };
            levels.extend(copy.filter(|_| is_here).map(|copy| level("copy", copy)));
            levels.extend(series.machine.peak_gbps.filter(|_| is_here).map(|peak| level("peak", peak)));
        }
        let rows =
            named.iter().map(|(name, subject)| Row { label: (*name).to_owned(), lanes: self.lanes(subject) }).collect();
        Group { title: title.map(str::to_owned), levels, rows }
    }

    /// A lane for each series, and for each forecast of a chip that nothing was measured on.
    fn lanes(&self, subject: &Subject) -> Vec<Lane> {
        let mut lanes = Vec::new();
        let forecasts = || self.material.forecasts.iter().enumerate().filter(|_| self.is_gbps());
        let predicted = |number: usize| {
            let ink = Ink::Series(self.material.ink_of(number));
            Some(Mark { shape: Shape::Diamond, ink, values: vec![subject.predicted_gbps(number)?] })
        };
        for (series, timed) in subject.measured.iter().enumerate() {
            let value = timed.as_ref().and_then(|timed| self.figure.measured(timed));
            let mut marks: Vec<_> = value
                .map(|value| Mark { shape: Shape::Bar, ink: Ink::Series(series), values: vec![value] })
                .into_iter()
                .collect();
            if let Some(expected) = subject.expected_gbps(series).filter(|_| self.is_gbps()) {
                marks.push(Mark { shape: Shape::Tick, ink: Ink::Quiet, values: vec![expected] });
            }
            let of_series = forecasts().filter(|(_, forecast)| forecast.series == Some(series));
            marks.extend(of_series.filter_map(|(number, _)| predicted(number)));
            lanes.push(Lane { marks, note: value.map_or_else(|| MISSING.to_owned(), number) });
        }
        for (forecast, _) in forecasts().filter(|(_, forecast)| forecast.series.is_none()) {
            if let Some(mark) = predicted(forecast) {
                let note = mark.values.first().map_or_else(String::new, |value| number(*value));
                lanes.push(Lane { marks: vec![mark], note });
            }
        }
        lanes
    }

    /// What a forecast is called.
    fn predicted(&self, forecast: usize) -> String {
        match self.material.forecasts.len() {
            1 => "predicted".to_owned(),
            _ => format!("predicted, {}", self.material.forecasts[forecast].chip),
        }
    }

    fn keys(&self, subjects: &[&Subject]) -> Vec<(Shape, Ink, String)> {
        let mut keys = Vec::new();
        let series = self.material.series.iter().enumerate();
        for (number, series) in series.filter(|(of, _)| subjects.iter().any(|subject| subject.measured[*of].is_some()))
        {
            let label = if self.material.series.len() > 1 { series.label.clone() } else { "measured".to_owned() };
            keys.push((Shape::Bar, Ink::Series(number), label));
        }
        if self.is_gbps() {
            let is_expected =
                |subject: &&&Subject| (0..subject.measured.len()).any(|of| subject.expected_gbps(of).is_some());
            if subjects.iter().any(|subject| is_expected(&subject)) {
                keys.push((Shape::Tick, Ink::Quiet, "expected from sectors".to_owned()));
            }
            for number in 0..self.material.forecasts.len() {
                if subjects.iter().any(|subject| subject.predicted[number].is_some()) {
                    let ink = Ink::Series(self.material.ink_of(number));
                    keys.push((Shape::Diamond, ink, self.predicted(number)));
                }
            }
        }
        keys
    }

    fn table(&self, cases: &[Case<'_>]) -> Table {
        let on = On::new(self.material);
        let is_predicted = self.is_gbps() && !self.material.forecasts.is_empty();
        let mut columns = vec!["kernel".to_owned()];
        columns.extend((cases.len() > 1).then(|| "case".to_owned()));
        columns.extend(on.column());
        let figures: &[&str] = match self.figure {
            Figure::Gbps => &["GB/s", "of copy", "of peak", "expected from sectors"],
            Figure::Cycles => &["ticks a request"],
        };
        columns.extend(figures.iter().map(|figure| (*figure).to_owned()));
        columns.extend(is_predicted.then(|| "predicted".to_owned()));
        let simulated = self.is_gbps().then_some(["sectors a request", "bytes used", "wavefronts of ideal"]);
        columns.extend(simulated.into_iter().flatten().map(str::to_owned));
        let mut rows = Vec::new();
        for (case, subject) in
            cases.iter().flat_map(|case| case.subjects.iter().map(move |subject| (&case.label, *subject)))
        {
            for source in on.sources(subject) {
                let timed = source.timed(subject);
                let mut row = vec![subject.kernel.clone()];
                row.extend((cases.len() > 1).then(|| case.clone()));
                row.extend(on.cell(source));
                row.push(shown(timed.and_then(|timed| self.figure.measured(timed))));
                if self.is_gbps() {
                    row.push(share(timed.and_then(|timed| timed.share_of_copy)));
                    row.push(share(timed.and_then(|timed| timed.share_of_peak)));
                    row.push(shown(source.series().and_then(|series| subject.expected_gbps(series))));
                    row.extend(is_predicted.then(|| shown(on.predicted_gbps(subject, source))));
                    row.push(shown(subject.asked.and_then(Asked::sectors_a_request)));
                    row.push(share(subject.asked.and_then(|asked| asked.used_of_sectors(subject.bytes))));
                    row.push(shown(subject.asked.and_then(|asked| asked.wavefronts)));
                }
                rows.push(row);
            }
        }
        filled(Table { columns, rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_cases_the_first_and_the_last_are_drawn() {
        assert_eq!(places(9, 4), [0, 2, 5, 8]);
        assert_eq!(places(4, 4), [0, 1, 2, 3]);
        assert_eq!([places(1, 9), places(3, 1), places(3, 0)], [[0], [2], [2]]);
    }
}
