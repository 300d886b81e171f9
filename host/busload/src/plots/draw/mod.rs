//! Plots as SVG.

mod canvas;
mod curves;
mod key;
mod rows;
mod space;

use super::picture::{Picture, Plot};
use canvas::{Anchor, COLOURS, Canvas, Drawn, Face, Tone, in_pieces};
use plotters::style::RGBColor;

/// The size of texts, in pixels.
const TEXT: f64 = 13.0;
/// That of what stands at axes and marks.
const SMALL: f64 = 12.0;

/// For how much room a plot is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// For a wide window, or paper.
    Wide,
    /// For a narrow one.
    Narrow,
}

impl Room {
    fn width(self) -> f64 {
        match self {
            Self::Wide => 640.0,
            Self::Narrow => 358.0,
        }
    }
}

/// The plot as a file of its own: on light ground, with its heading.
#[must_use]
pub fn svg(plot: &Plot) -> String {
    drawn(plot, Room::Wide, Some(&plot.title), &plot.name)
}

/// The plot as a part of a page, which has its heading and says what its colours are.
pub(super) fn inline(plot: &Plot, room: Room) -> String {
    let id = match room {
        Room::Wide => plot.name.clone(),
        Room::Narrow => format!("{}-narrow", plot.name),
    };
    let svg = drawn(plot, room, None, &id);
    COLOURS.iter().fold(svg, |svg, (RGBColor(red, green, blue), name)| {
        let colour = format!("#{red:02X}{green:02X}{blue:02X}");
        svg.replace(&format!("\"{colour}\""), &format!("\"var(--{name},{colour})\""))
    })
}

fn drawn(plot: &Plot, room: Room, heading: Option<&str>, id: &str) -> String {
    let mut svg = String::new();
    let above = if heading.is_some() { 34.0 } else { 0.0 };
    let drawn = match &plot.picture {
        Picture::Curves(curves) => curves::draw(curves, room, above, &mut svg, heading),
        Picture::Rows(rows) => rows::draw(rows, room, above, &mut svg, heading),
    };
    drawn.unwrap_or_else(|error| unreachable!("a text in memory takes all that is drawn: {error}"));
    with_title(&in_pieces(&svg).replace(" opacity=\"1\"", ""), plot, id)
}

/// The ground and the heading.
fn ground(canvas: &Canvas<'_>, [width, height]: [f64; 2], heading: Option<&str>) -> Drawn {
    let Some(heading) = heading else { return Ok(()) };
    canvas.bar([0.0, 0.0], [width, height], Tone::Ground, 1.0)?;
    canvas.text(heading, [12.0, 20.0], Anchor::Start, 16.0, Tone::Text, Face::Sans)
}

/// The same with a title and a description for those who do not see it.
fn with_title(svg: &str, plot: &Plot, id: &str) -> String {
    let (open, rest) = svg.split_once('>').unwrap_or((svg, ""));
    let (title, says) = (escaped(&plot.title), escaped(&plot.says));
    format!(
        "{open} role=\"img\" aria-labelledby=\"{id}-title {id}-says\">\n<title id=\"{id}-title\">{title}</title>\n\
         <desc id=\"{id}-says\">{says}</desc>{rest}"
    )
}

/// A text as the content of an element.
fn escaped(text: &str) -> String {
    crate::report::escape::markup(text)
}
