//! What the marks of a picture mean, in lines that are as long as there is room.

use super::SMALL;
use super::canvas::{Anchor, Canvas, Dash, Drawn, Face, Tone};
use crate::plots::picture::{Ink, Shape, Stroke};

/// A mark as it stands in a key.
#[derive(Clone, Copy)]
pub(super) enum Sign {
    Stroke(Stroke),
    Shape(Shape),
}

/// An entry.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) sign: Sign,
    pub(super) ink: Ink,
    pub(super) label: String,
}

/// The height of a line.
pub(super) const LINE: f64 = 19.0;
const SIGN: f64 = 30.0;
const GAP: f64 = 16.0;

/// Where the entries stand, from the upper left corner on, and how high all of them are.
fn places(entries: &[Entry], width: f64) -> (Vec<[f64; 2]>, f64) {
    let (mut x, mut y) = (0.0, 0.0);
    let mut places = Vec::new();
    for entry in entries {
        let wide = SIGN + Face::Sans.width(&entry.label, SMALL);
        if x > 0.0 && x + wide > width {
            (x, y) = (0.0, y + LINE);
        }
        places.push([x, y]);
        x += wide + GAP;
    }
    (places, if entries.is_empty() { 0.0 } else { y + LINE })
}

/// How high a key is.
pub(super) fn height(entries: &[Entry], width: f64) -> f64 {
    places(entries, width).1
}

/// Draws a key with its upper left corner there.
pub(super) fn draw(canvas: &Canvas<'_>, entries: &[Entry], [left, top]: [f64; 2], width: f64) -> Drawn {
    for (entry, [x, y]) in entries.iter().zip(places(entries, width).0) {
        let (x, y) = (left + x, top + y + LINE / 2.0);
        sign(canvas, entry.sign, [x, y], entry.ink.into())?;
        canvas.text(&entry.label, [x + SIGN, y], Anchor::Start, SMALL, Tone::Text, Face::Sans)?;
    }
    Ok(())
}

/// A mark, a little more than a letter wide.
pub(super) fn sign(canvas: &Canvas<'_>, sign: Sign, [x, y]: [f64; 2], tone: Tone) -> Drawn {
    let line = [[x, y], [x + 22.0, y]];
    let middle = [x + 11.0, y];
    match sign {
        Sign::Stroke(Stroke::Plain) => canvas.line(&line, 2, tone),
        Sign::Stroke(Stroke::Dashed) => canvas.dashed(&line, Dash::Long, 2, tone),
        Sign::Stroke(Stroke::Dotted) => canvas.dashed(&line, Dash::Short, 2, tone),
        Sign::Stroke(Stroke::Points(marker)) => canvas.marker(marker, middle, 4.0, tone),
        Sign::Stroke(Stroke::Line(marker)) => {
            canvas.line(&line, 2, tone)?;
            canvas.marker(marker, middle, 4.0, tone)
        }
        Sign::Shape(Shape::Bar) => canvas.bar([x, y - 5.0], [x + 22.0, y + 5.0], tone, 1.0),
        Sign::Shape(Shape::Band) => canvas.bar([x, y - 5.0], [x + 22.0, y + 5.0], tone, BAND),
        Sign::Shape(Shape::Diamond) => canvas.diamond(middle, 5.0, tone),
        Sign::Shape(Shape::Tick) => canvas.line(&[[middle[0], y - 7.0], [middle[0], y + 7.0]], 2, tone),
        Sign::Shape(Shape::Sample) => canvas.line(&[[middle[0], y - 6.0], [middle[0], y + 6.0]], 1, tone),
    }
}

/// How opaque a band is.
pub(super) const BAND: f64 = 0.2;
