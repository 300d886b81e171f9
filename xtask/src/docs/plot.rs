//! Plots as SVG, of both GPUs: a colour for each curve, solid for the one GPU and dashed for the other.

use anyhow::{Context, Result, anyhow, ensure};
use plotters::prelude::*;

/// A plot, but for its curves.
pub(super) struct Plot {
    /// The name of its file, without `.svg`.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) x: Axis,
    pub(super) y: Axis,
}

/// What an axis shows.
pub(super) struct Axis {
    /// What, with its unit.
    pub(super) label: &'static str,
    pub(super) scale: Scale,
}

/// How an axis is divided.
#[derive(Clone, Copy)]
pub(super) enum Scale {
    /// From zero on.
    Linear,
    /// From one figure to another.
    Between(f64, f64),
    /// By powers, with these marks, of which the first and the last are its ends.
    Logarithmic(&'static [f64]),
}

/// A curve.
pub(super) struct Curve {
    /// What it is of.
    pub(super) label: String,
    pub(super) points: Vec<(f64, f64)>,
}

impl Curve {
    pub(super) fn new(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), points }
    }
}

const WIDTH: u32 = 860;
const HEIGHT: u32 = 430;
/// Of the legend.
const LEGEND: i32 = 240;
/// A curve of more points is a line alone.
const MOST_DOTS: usize = 40;
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// Told apart by most who see few colours (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x8a, 0x6d, 0x00),
    RGBColor(0x55, 0x55, 0x55),
];

impl Scale {
    /// Where a value stands on the axis.
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Logarithmic(_) => value.log2(),
            _ => value,
        }
    }

    /// The ends of the axis and its marks, if these are the values on it.
    fn divided(self, values: impl Iterator<Item = f64>) -> (f64, f64, Vec<f64>) {
        let (low, high) = match self {
            Self::Logarithmic(marks) => {
                return (
                    marks[0].log2(),
                    marks[marks.len() - 1].log2(),
                    marks.iter().map(|mark| mark.log2()).collect(),
                );
            }
            Self::Between(low, high) => (low, high),
            Self::Linear => (0.0, values.fold(0.0, f64::max)),
        };
        let step = step(high - low);
        // Room for the points at the ends.
        let first = (low / step).ceil() as i64;
        let last = match self {
            Self::Linear => ((high * 1.02) / step).ceil() as i64,
            _ => (high / step).floor() as i64,
        };
        let marks: Vec<f64> = (first..=last).map(|mark| mark as f64 * step).collect();
        (low, high.max(marks.last().copied().unwrap_or(high)), marks)
    }
}

/// The distance between two of some six marks of an axis of this length: one, two or five times a power of ten.
fn step(length: f64) -> f64 {
    let power = 10f64.powf((length / 6.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| length / step <= 7.0).unwrap_or(power)
}

/// A mark's text.
fn text(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded.abs() >= 10_000.0 && rounded % 1000.0 == 0.0 {
        format!("{} k", rounded / 1000.0)
    } else {
        rounded.to_string()
    }
}

impl Plot {
    /// The SVG, of the curves of each GPU, which must be of the same things.
    pub(super) fn svg(&self, gpus: &[(&str, Vec<Curve>)]) -> Result<String> {
        let (_, first) = gpus.first().context("no GPU")?;
        for (gpu, curves) in gpus {
            let labels = |curves: &[Curve]| curves.iter().map(|curve| curve.label.clone()).collect::<Vec<_>>();
            ensure!(labels(curves) == labels(first), "{}: other curves for the {gpu}", self.name);
        }
        let mut svg = String::new();
        self.draw(gpus, &mut svg).map_err(|error| anyhow!("{}: {error}", self.name))?;
        Ok(svg)
    }

    fn draw(&self, gpus: &[(&str, Vec<Curve>)], svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::with_string(svg, (WIDTH, HEIGHT)).into_drawing_area();
        root.fill(&WHITE)?;
        let root = root.margin(8, 0, 0, 0);
        let root = root.titled(self.title, (FONT, 17).into_font().color(&INK))?;
        let (area, legend) = root.split_horizontally(WIDTH as i32 - LEGEND);
        let points =
            || gpus.iter().flat_map(|(_, curves)| curves.iter().flat_map(|curve| curve.points.iter().copied()));
        let (left, right, across) = self.x.scale.divided(points().map(|point| point.0));
        let (bottom, top, up) = self.y.scale.divided(points().map(|point| point.1));
        let margin = (right - left) * 0.015;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(46)
            .y_label_area_size(62)
            .build_cartesian_2d(left - margin..right + margin, bottom..top)?;
        chart.configure_mesh().disable_mesh().disable_axes().draw()?;
        let frame = chart.plotting_area();
        for mark in &across {
            frame.draw(&PathElement::new([(*mark, bottom), (*mark, top)], GRID))?;
        }
        for mark in &up {
            frame.draw(&PathElement::new([(left - margin, *mark), (right + margin, *mark)], GRID))?;
        }
        self.label_axes(&area, frame, &across, &up)?;
        let single = gpus.iter().all(|(_, curves)| curves.len() == 1);
        for (gpu, (_, curves)) in gpus.iter().enumerate() {
            for (number, curve) in curves.iter().enumerate() {
                let colour = COLOURS[if single { gpu } else { number } % COLOURS.len()];
                let places: Vec<_> =
                    curve.points.iter().map(|(x, y)| (self.x.scale.place(*x), self.y.scale.place(*y))).collect();
                let line = colour.stroke_width(2);
                if gpu == 0 {
                    chart.draw_series(LineSeries::new(places.iter().copied(), line))?;
                } else {
                    chart.draw_series(DashedLineSeries::new(places.iter().copied(), 6, 4, line))?;
                }
                if places.len() > MOST_DOTS {
                    continue;
                }
                let dots = places.iter().map(|place| Circle::new(*place, 3, dot(gpu, colour)));
                chart.draw_series(dots)?;
            }
        }
        draw_legend(&legend, gpus, single)?;
        root.present()?;
        Ok(())
    }

    /// Marks and names of both axes.
    fn label_axes<C>(
        &self,
        area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
        frame: &DrawingArea<SVGBackend<'_>, C>,
        across: &[f64],
        up: &[f64],
    ) -> Result<(), Box<dyn std::error::Error>>
    where
        C: CoordTranslate<From = (f64, f64)>,
    {
        use plotters::style::text_anchor::{HPos, Pos, VPos};
        let small = (FONT, 13).into_font().color(&INK);
        let base = area.get_base_pixel();
        let (xs, ys) = frame.get_pixel_range();
        let (xs, ys) = (xs.start - base.0..xs.end - base.0, ys.start - base.1..ys.end - base.1);
        let shown = |scale: Scale, mark: f64| text(if let Scale::Logarithmic(_) = scale { mark.exp2() } else { mark });
        let centred = small.pos(Pos::new(HPos::Center, VPos::Top));
        for mark in across {
            let x = frame.map_coordinate(&(*mark, up[0])).0 - base.0;
            area.draw(&Text::new(shown(self.x.scale, *mark), (x, ys.end + 6), centred.clone()))?;
        }
        let ended = small.pos(Pos::new(HPos::Right, VPos::Center));
        for mark in up {
            let y = frame.map_coordinate(&(across[0], *mark)).1 - base.1;
            area.draw(&Text::new(shown(self.y.scale, *mark), (xs.start - 7, y), ended.clone()))?;
        }
        area.draw(&PathElement::new([(xs.start, ys.start), (xs.start, ys.end), (xs.end, ys.end)], INK))?;
        let name = (FONT, 14).into_font().color(&INK);
        let below = name.pos(Pos::new(HPos::Center, VPos::Top));
        area.draw(&Text::new(self.x.label, (i32::midpoint(xs.start, xs.end), ys.end + 26), below))?;
        let beside = name.transform(FontTransform::Rotate270).pos(Pos::new(HPos::Center, VPos::Top));
        area.draw(&Text::new(self.y.label, (xs.start - 60, i32::midpoint(ys.start, ys.end)), beside))?;
        Ok(())
    }
}

/// The style of a point: full for the first GPU, a ring for the other.
fn dot(gpu: usize, colour: RGBColor) -> ShapeStyle {
    if gpu == 0 { colour.filled() } else { colour.stroke_width(1) }
}

fn draw_legend(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    gpus: &[(&str, Vec<Curve>)],
    single: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    use plotters::style::text_anchor::{HPos, Pos, VPos};
    let style = (FONT, 13).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    let mut y = 24;
    let mut line = |label: &str, colour: RGBColor, gpu: Option<usize>| {
        let parts: &[(i32, i32)] = if gpu == Some(1) { &[(4, 10), (14, 20), (24, 30)] } else { &[(4, 32)] };
        for (from, to) in parts {
            area.draw(&PathElement::new([(*from, y), (*to, y)], colour.stroke_width(2)))?;
        }
        if let Some(gpu) = gpu {
            area.draw(&Circle::new((18, y), 3, dot(gpu, colour)))?;
        }
        area.draw(&Text::new(label.to_owned(), (40, y), style.clone()))?;
        y += 22;
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    if !single {
        for (number, curve) in gpus[0].1.iter().enumerate() {
            line(&curve.label, COLOURS[number % COLOURS.len()], None)?;
        }
    }
    for (number, (gpu, _)) in gpus.iter().enumerate() {
        line(gpu, if single { COLOURS[number % COLOURS.len()] } else { INK }, Some(number))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLOT: Plot = Plot {
        name: "test",
        title: "A test",
        x: Axis { label: "MiB", scale: Scale::Logarithmic(&[1.0, 4.0, 16.0]) },
        y: Axis { label: "µs", scale: Scale::Linear },
    };

    fn curves(label: &str) -> Vec<Curve> {
        vec![Curve::new(label, vec![(1.0, 3.0), (16.0, 9.0)])]
    }

    #[test]
    fn an_svg_has_its_own_background_and_both_labels() {
        let svg = PLOT.svg(&[("H200", curves("one")), ("H100", curves("one"))]).expect("an SVG");
        for part in ["<svg", "#FFFFFF", "MiB", "µs", "H200", "H100", "A test"] {
            assert!(svg.contains(part), "{part} in\n{svg}");
        }
    }

    #[test]
    fn both_gpus_have_the_same_curves() {
        let error = PLOT.svg(&[("H200", curves("one")), ("H100", curves("two"))]).expect_err("others");
        assert!(error.to_string().contains("test: other curves for the H100"), "{error}");
    }

    #[test]
    fn an_axis_has_four_to_eight_round_marks() {
        for high in [0.9, 1.0, 7.3, 42.0, 99.0, 1107.0, 16384.0] {
            let (_, top, marks) = Scale::Linear.divided([high].into_iter());
            assert!((4..=9).contains(&marks.len()) && top >= high, "{high}: {marks:?}");
        }
        assert_eq!([text(0.30000000000000004), text(20_000.0), text(5000.0)], ["0.3", "20 k", "5000"]);
    }
}
