//! What pictures are drawn on: shapes and texts in pixels, in colours by their meaning.

use crate::plots::picture::{Ink, Marker};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A colour by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// Texts and axes.
    Text,
    /// What stands behind, and what is said beside.
    Quiet,
    /// Lines of a grid.
    Rule,
    /// The ground.
    Ground,
    /// One of those that tell curves apart.
    Series(usize),
}

impl From<Ink> for Tone {
    fn from(ink: Ink) -> Self {
        match ink {
            Ink::Series(number) => Self::Series(number),
            Ink::Quiet => Self::Quiet,
        }
    }
}

/// The colours on light ground, and what a page calls them. No two are the same.
pub(super) const COLOURS: [(RGBColor, &str); 12] = [
    (RGBColor(0x1d, 0x20, 0x24), "text"),
    (RGBColor(0x5c, 0x63, 0x6b), "quiet"),
    (RGBColor(0xdf, 0xdf, 0xd9), "grid"),
    (RGBColor(0xfc, 0xfc, 0xfa), "ground"),
    // After Okabe and Ito: told apart by most who see few colours.
    (RGBColor(0x00, 0x6b, 0xa8), "series-1"),
    (RGBColor(0xc8, 0x55, 0x0a), "series-2"),
    (RGBColor(0x00, 0x85, 0x61), "series-3"),
    (RGBColor(0xa9, 0x4a, 0x8b), "series-4"),
    (RGBColor(0x8a, 0x6d, 0x00), "series-5"),
    (RGBColor(0x3f, 0x8f, 0xc4), "series-6"),
    (RGBColor(0x6d, 0x5a, 0xb5), "series-7"),
    (RGBColor(0xa3, 0x3a, 0x3a), "series-8"),
];
const FIXED: usize = 4;

impl Tone {
    fn colour(self) -> RGBColor {
        let place = match self {
            Self::Text => 0,
            Self::Quiet => 1,
            Self::Rule => 2,
            Self::Ground => 3,
            Self::Series(number) => FIXED + number % (COLOURS.len() - FIXED),
        };
        COLOURS[place].0
    }
}

/// The pieces of a line. The back end knows none but one after another, rounded to pixels, so a line stands in the picture with a width
/// that no other has until all is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dash {
    Long = 1000,
    Short = 2000,
}

/// The picture with its lines in pieces.
pub(super) fn in_pieces(svg: &str) -> String {
    let dashes = [(Dash::Long, "6 4"), (Dash::Short, "2 3")];
    let all = dashes.into_iter().flat_map(|(dash, pieces)| [1, 2].map(|width| (dash as u32 + width, width, pieces)));
    all.fold(svg.to_owned(), |svg, (drawn, width, pieces)| {
        let dashed = format!("stroke-width=\"{width}\" stroke-dasharray=\"{pieces}\"");
        svg.replace(&format!("stroke-width=\"{drawn}\""), &dashed)
    })
}

/// Where a text stands beside its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A family of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    /// Sentences.
    Sans,
    /// Names of the source.
    Mono,
}

impl Face {
    /// How wide a text may be, in pixels.
    pub(super) fn width(self, text: &str, size: f64) -> f64 {
        let wide = match self {
            Self::Sans => 0.58,
            Self::Mono => 0.605,
        };
        text.chars().count() as f64 * wide * size
    }
}

/// What it is that cannot be drawn: nothing, on a text in memory.
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Where a picture is drawn.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

fn at(point: [f64; 2]) -> (i32, i32) {
    (point[0].round() as i32, point[1].round() as i32)
}

impl<'a> Canvas<'a> {
    pub(super) fn new(svg: &'a mut String, [width, height]: [f64; 2]) -> Self {
        let size = (width.round() as u32, height.round() as u32);
        Self { area: SVGBackend::with_string(svg, size).into_drawing_area() }
    }

    pub(super) fn finish(self) -> Drawn {
        Ok(self.area.present()?)
    }

    /// A text at the height of its middle.
    pub(super) fn text(&self, text: &str, point: [f64; 2], anchor: Anchor, size: f64, tone: Tone, face: Face) -> Drawn {
        let along = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let family = match face {
            Face::Sans => FontFamily::SansSerif,
            Face::Mono => FontFamily::Monospace,
        };
        // The back end takes a size for that of another unit, and divides.
        let font = FontDesc::new(family, size * 1.24, FontStyle::Normal);
        let style = font.color(&tone.colour()).pos(Pos::new(along, VPos::Center));
        // It does not escape what is no character of XML.
        let text: String = crate::report::escape::terminal(text);
        Ok(self.area.draw(&Text::new(text, at(point), style))?)
    }

    pub(super) fn line(&self, points: &[[f64; 2]], width: u32, tone: Tone) -> Drawn {
        let points: Vec<_> = points.iter().copied().map(at).collect();
        Ok(self.area.draw(&PathElement::new(points, tone.colour().stroke_width(width)))?)
    }

    /// A line in pieces.
    pub(super) fn dashed(&self, points: &[[f64; 2]], dash: Dash, width: u32, tone: Tone) -> Drawn {
        self.line(points, dash as u32 + width, tone)
    }

    pub(super) fn bar(&self, corner: [f64; 2], opposite: [f64; 2], tone: Tone, opacity: f64) -> Drawn {
        let style = tone.colour().mix(opacity).filled();
        Ok(self.area.draw(&Rectangle::new([at(corner), at(opposite)], style))?)
    }

    pub(super) fn marker(&self, marker: Marker, [x, y]: [f64; 2], radius: f64, tone: Tone) -> Drawn {
        let polygon = |corners: &[[f64; 2]]| -> Drawn {
            let corners: Vec<_> = corners.iter().map(|[dx, dy]| at([x + dx * radius, y + dy * radius])).collect();
            Ok(self.area.draw(&Polygon::new(corners, tone.colour().filled()))?)
        };
        match marker {
            Marker::Dot => Ok(self.area.draw(&Circle::new(at([x, y]), radius, tone.colour().filled()))?),
            Marker::Ring => {
                self.area.draw(&Circle::new(at([x, y]), radius, Tone::Ground.colour().filled()))?;
                Ok(self.area.draw(&Circle::new(at([x, y]), radius, tone.colour().stroke_width(2)))?)
            }
            Marker::Square => polygon(&[[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]]),
            Marker::Triangle => polygon(&[[0.0, -1.2], [1.1, 0.9], [-1.1, 0.9]]),
            Marker::Diamond => polygon(&[[0.0, -1.3], [1.3, 0.0], [0.0, 1.3], [-1.3, 0.0]]),
            Marker::Wedge => polygon(&[[0.0, 1.2], [1.1, -0.9], [-1.1, -0.9]]),
            Marker::Plus => polygon(&around(&[(0.0, 0.45), (31.2, 1.34), (58.8, 1.34)], 4, 45.0)),
            Marker::Cross => polygon(&around(&[(0.0, 0.45), (31.2, 1.34), (58.8, 1.34)], 4, 0.0)),
            Marker::Star => polygon(&around(&[(0.0, 1.4), (36.0, 0.6)], 5, -90.0)),
        }
    }

    /// A diamond that is empty.
    pub(super) fn diamond(&self, [x, y]: [f64; 2], radius: f64, tone: Tone) -> Drawn {
        let corners = [[0.0, -1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]];
        let corners: Vec<_> = corners.iter().map(|[dx, dy]| [x + dx * radius, y + dy * radius]).collect();
        let filled: Vec<_> = corners.iter().copied().map(at).collect();
        self.area.draw(&Polygon::new(filled, Tone::Ground.colour().filled()))?;
        self.line(&corners, 2, tone)
    }
}

/// Corners by angle in degrees and distance, `times` around from `first` on.
fn around(corners: &[(f64, f64)], times: u32, first: f64) -> Vec<[f64; 2]> {
    let turn = 360.0 / f64::from(times);
    let corner =
        |(angle, distance): (f64, f64)| [angle.to_radians().cos() * distance, angle.to_radians().sin() * distance];
    let turns = (0..times).map(|number| first + f64::from(number) * turn);
    turns.flat_map(|from| corners.iter().map(move |(angle, distance)| corner((from + angle, *distance)))).collect()
}
