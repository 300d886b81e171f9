//! What figures are of, row by row of a table: a file of times, or a file of predictions alone.

use super::material::{Material, Subject};
use crate::timing::Timed;

/// What a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A file of times.
    Series(usize),
    /// A file of predictions for a chip that nothing was measured on.
    Forecast(usize),
}

impl Source {
    /// The file of times.
    pub(crate) fn series(self) -> Option<usize> {
        if let Self::Series(series) = self { Some(series) } else { None }
    }

    pub(crate) fn timed(self, subject: &Subject) -> Option<&Timed> {
        subject.measured[self.series()?].as_ref()
    }
}

/// The sources of some material.
pub(crate) struct On<'a>(&'a Material);

impl<'a> On<'a> {
    pub(crate) fn new(material: &'a Material) -> Self {
        Self(material)
    }

    fn alone(&self) -> impl Iterator<Item = usize> {
        let forecasts = self.0.forecasts.iter().enumerate();
        forecasts.filter(|(_, forecast)| forecast.series.is_none()).map(|(number, _)| number)
    }

    fn are_several(&self) -> bool {
        self.0.series.len() + self.alone().count() > 1
    }

    /// The heading of the column that tells them apart, if there are several.
    pub(crate) fn column(&self) -> Option<String> {
        self.are_several().then(|| "on".to_owned())
    }

    /// What stands in it.
    pub(crate) fn cell(&self, source: Source) -> Option<String> {
        let name = match source {
            Source::Series(series) => &self.0.series[series].label,
            Source::Forecast(forecast) => &self.0.forecasts[forecast].chip,
        };
        self.are_several().then(|| name.clone())
    }

    /// Those that hold anything of a subject.
    pub(crate) fn sources(&self, subject: &Subject) -> Vec<Source> {
        let measured = (0..subject.measured.len()).map(Source::Series);
        let holds =
            |source: &Source| source.timed(subject).is_some() || self.predicted_gbps(subject, *source).is_some();
        measured.chain(self.alone().map(Source::Forecast)).filter(holds).collect()
    }

    /// The bandwidth that is predicted of it, in GB/s.
    pub(crate) fn predicted_gbps(&self, subject: &Subject, source: Source) -> Option<f64> {
        let forecast = match source {
            Source::Series(series) => self.0.forecasts.iter().position(|forecast| forecast.series == Some(series))?,
            Source::Forecast(forecast) => forecast,
        };
        subject.predicted_gbps(forecast)
    }
}
