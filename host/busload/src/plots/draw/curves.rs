//! Curves and points over two axes. Curves are named at their ends where there is room beside them, else in a key.

use super::canvas::{Anchor, Canvas, Dash, Drawn, Face, Tone};
use super::key::{self, Entry, Sign};
use super::space::{Taken, spread};
use super::{Room, SMALL, ground};
use crate::plots::axis::Divided;
use crate::plots::picture::{Curves, Ink, Layer, Stroke};
use crate::plots::text::text;

/// Names of points that are drawn at most.
const fn most_names(room: Room) -> usize {
    match room {
        Room::Wide => 10,
        Room::Narrow => 5,
    }
}

/// As many as are named first may stand further from their points.
const MOST_FAR: usize = 5;

/// The part of the picture that has the curves.
struct Frame {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    x: Divided,
    y: Divided,
}

/// Between the frame and the points at its ends.
const INSET: f64 = 9.0;

impl Frame {
    fn along(&self, x: f64) -> f64 {
        self.left + INSET + self.x.place(x) * (self.right - self.left - 2.0 * INSET)
    }

    fn up(&self, y: f64) -> f64 {
        self.bottom - INSET - self.y.place(y) * (self.bottom - self.top - 2.0 * INSET)
    }

    fn at(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [self.along(x), self.up(y)]
    }
}

/// Whether a layer is named at its end, if there is room.
fn has_end(layer: &Layer) -> bool {
    !matches!(layer.stroke, Stroke::Points(_))
}

/// The first layer of each label; at the ends of curves with marks, of each label in each colour.
fn distinct(layers: &[Layer], room: Room) -> Vec<&Layer> {
    let mut distinct: Vec<&Layer> = Vec::new();
    for layer in layers.iter().filter(|layer| !layer.points.is_empty()) {
        let is_by_colour = room == Room::Wide && matches!(layer.stroke, Stroke::Line(_));
        let is_same = |other: &&Layer| other.label == layer.label && (other.ink == layer.ink || !is_by_colour);
        if !distinct.iter().any(is_same) {
            distinct.push(layer);
        }
    }
    distinct
}

/// The entry of a layer in the key. What is there in several colours has none.
fn entry(layer: &Layer, layers: &[Layer]) -> Entry {
    let has_one_ink = layers.iter().filter(|other| other.label == layer.label).all(|other| other.ink == layer.ink);
    let ink = if has_one_ink { layer.ink } else { Ink::Quiet };
    Entry { sign: Sign::Stroke(layer.stroke), ink, label: layer.label.clone() }
}

/// The layers that are named at their ends, and the entries of the key.
fn named(curves: &Curves, room: Room) -> (Vec<&Layer>, Vec<Entry>) {
    let layers = distinct(&curves.layers, room);
    // Long names take the room that the curves need.
    let most = 0.36 * room.width();
    let fit = layers.iter().filter(|layer| has_end(layer)).all(|layer| Face::Sans.width(&layer.label, SMALL) < most);
    let (at_ends, in_key): (Vec<&Layer>, Vec<&Layer>) =
        layers.into_iter().partition(|layer| room == Room::Wide && fit && has_end(layer));
    let mut entries: Vec<_> = in_key.into_iter().map(|layer| entry(layer, &curves.layers)).collect();
    // What was measured comes first.
    entries.sort_by_key(|entry| !matches!(entry.sign, Sign::Stroke(Stroke::Line(_))));
    let keys = curves.keys.iter();
    let keys = keys.map(|(stroke, ink, label)| Entry { sign: Sign::Stroke(*stroke), ink: *ink, label: label.clone() });
    (at_ends, keys.chain(entries).collect())
}

pub(super) fn draw(curves: &Curves, room: Room, above: f64, svg: &mut String, heading: Option<&str>) -> Drawn {
    let width = room.width();
    let (at_ends, entries) = named(curves, room);
    let longest = at_ends.iter().map(|layer| Face::Sans.width(&layer.label, SMALL)).fold(0.0, f64::max);
    let beside = if at_ends.is_empty() { 8.0 } else { longest + 16.0 };
    let key = key::height(&entries, width - 16.0);
    let high = match room {
        Room::Wide => 0.52 * width,
        Room::Narrow => 0.86 * width,
    };
    let points = || curves.layers.iter().flat_map(|layer| &layer.points);
    let y = curves.y.divided(points().map(|point| point[1]), (high / 34.0) as usize);
    let marks = y.marks.iter().map(|mark| Face::Sans.width(&text(*mark, curves.y.unit), SMALL)).fold(0.0, f64::max);
    let (left, right) = (marks + 14.0, width - beside);
    let top = above + 26.0;
    let bottom = top + high;
    let key_top = bottom + 48.0;
    let size = [width, key_top + key + if key > 0.0 { 6.0 } else { -4.0 }];
    let x = curves.x.divided(points().map(|point| point[0]), ((right - left) / 52.0) as usize);
    let frame = Frame { left, top, right, bottom, x, y };
    let canvas = Canvas::new(svg, size);
    ground(&canvas, size, heading)?;
    axes(&canvas, curves, &frame)?;
    let mut taken = Taken::default();
    for layer in &curves.layers {
        let places: Vec<_> = layer.points.iter().map(|point| frame.at(*point)).collect();
        stroke(&canvas, layer, &places)?;
        if !has_end(layer) || matches!(layer.stroke, Stroke::Line(_)) {
            places.iter().for_each(|[x, y]| taken.take([x - 4.0, y - 4.0, x + 4.0, y + 4.0]));
        }
    }
    ends(&canvas, &at_ends, &curves.layers, &frame)?;
    names(&canvas, curves, room, &frame, &mut taken)?;
    key::draw(&canvas, &entries, [8.0, key_top], width - 16.0)?;
    canvas.finish()
}

fn axes(canvas: &Canvas<'_>, curves: &Curves, frame: &Frame) -> Drawn {
    let Frame { left, top, right, bottom, .. } = *frame;
    for mark in frame.y.marks.iter().filter(|mark| frame.y.holds(**mark)) {
        let y = frame.up(*mark);
        canvas.line(&[[left, y], [right, y]], 1, Tone::Rule)?;
        canvas.text(&text(*mark, curves.y.unit), [left - 8.0, y], Anchor::End, SMALL, Tone::Quiet, Face::Sans)?;
    }
    // From the right: where two are close together the greater one is written.
    let mut free = f64::INFINITY;
    for mark in frame.x.marks.iter().rev().filter(|mark| frame.x.holds(**mark)) {
        let (x, text) = (frame.along(*mark), text(*mark, curves.x.unit));
        canvas.line(&[[x, top], [x, bottom]], 1, Tone::Rule)?;
        let half = Face::Sans.width(&text, SMALL) / 2.0;
        if x + half < free {
            canvas.text(&text, [x, bottom + 13.0], Anchor::Middle, SMALL, Tone::Quiet, Face::Sans)?;
            free = x - half - 4.0;
        }
    }
    canvas.line(&[[left, bottom], [right, bottom]], 1, Tone::Quiet)?;
    canvas.text(&curves.y.label, [4.0, top - 13.0], Anchor::Start, SMALL, Tone::Text, Face::Sans)?;
    let middle = f64::midpoint(left, right);
    canvas.text(&curves.x.label, [middle, bottom + 33.0], Anchor::Middle, SMALL, Tone::Text, Face::Sans)
}

fn stroke(canvas: &Canvas<'_>, layer: &Layer, places: &[[f64; 2]]) -> Drawn {
    let tone = Tone::from(layer.ink);
    let behind = layer.ink == Ink::Quiet;
    match layer.stroke {
        Stroke::Line(marker) => {
            canvas.line(places, 2, tone)?;
            places.iter().try_for_each(|place| canvas.marker(marker, *place, 4.0, tone))
        }
        Stroke::Points(marker) => places.iter().try_for_each(|place| canvas.marker(marker, *place, 4.0, tone)),
        Stroke::Plain => canvas.line(places, if behind { 1 } else { 2 }, tone),
        Stroke::Dashed => canvas.dashed(places, Dash::Long, if behind { 1 } else { 2 }, tone),
        Stroke::Dotted => canvas.dashed(places, Dash::Short, if behind { 1 } else { 2 }, tone),
    }
}

/// The labels at the ends of curves, each with a line from the end to where it found room.
fn ends(canvas: &Canvas<'_>, layers: &[&Layer], all: &[Layer], frame: &Frame) -> Drawn {
    let last = |layer: &&&Layer| layer.points.last().map_or([frame.right, frame.top], |point| frame.at(*point));
    let ends: Vec<_> = layers.iter().map(|layer| last(&layer)).collect();
    let wished: Vec<_> = ends.iter().map(|end| end[1]).collect();
    let places = spread(&wished, 15.0, [frame.top + 4.0, frame.bottom - 4.0]);
    for ((layer, [x, y]), place) in layers.iter().zip(&ends).zip(places) {
        let begin = frame.right + 12.0;
        if (place - y).abs() > 3.0 || frame.right - x > 2.0 * INSET {
            canvas.line(&[[x + 7.0, *y], [frame.right, *y], [begin - 3.0, place]], 1, Tone::Rule)?;
        }
        // What is there in several colours has one name for all.
        let is_one = matches!(layer.stroke, Stroke::Line(_)) || entry(layer, all).ink == layer.ink;
        let tone = if is_one { Tone::from(layer.ink) } else { Tone::Quiet };
        canvas.text(&layer.label, [begin, place], Anchor::Start, SMALL, tone, Face::Sans)?;
    }
    Ok(())
}

/// The names of points that find room.
fn names(canvas: &Canvas<'_>, curves: &Curves, room: Room, frame: &Frame, taken: &mut Taken) -> Drawn {
    let mut drawn = 0;
    for name in &curves.names {
        let [x, y] = frame.at(name.at);
        let wide = Face::Sans.width(&name.text, SMALL);
        let near = [
            (Anchor::Start, [x + 8.0, y]),
            (Anchor::End, [x - 8.0, y]),
            (Anchor::Middle, [x, y + 13.0]),
            (Anchor::Middle, [x, y - 13.0]),
        ];
        let far = [(16.0, 18.0), (24.0, 34.0), (32.0, 52.0)]
            .into_iter()
            .flat_map(|(dx, dy)| [(Anchor::Start, [x + dx, y + dy]), (Anchor::End, [x - dx, y - dy])]);
        let sides = near.into_iter().chain(far.filter(|_| drawn < MOST_FAR));
        let of = |anchor, [x, y]: [f64; 2]| {
            let left = match anchor {
                Anchor::Start => x,
                Anchor::Middle => x - wide / 2.0,
                Anchor::End => x - wide,
            };
            [left, y - 7.0, left + wide, y + 7.0]
        };
        let fits = |[left, top, right, bottom]: [f64; 4]| {
            left > frame.left && right < frame.right && top > frame.top && bottom < frame.bottom
        };
        let free = { sides }.find(|(anchor, place)| fits(of(*anchor, *place)) && taken.is_free(of(*anchor, *place)));
        if let Some((anchor, place)) = free {
            taken.take(of(anchor, place));
            if anchor != Anchor::Middle && place[1] != y {
                let end = if anchor == Anchor::Start { place[0] - 3.0 } else { place[0] + 3.0 };
                canvas.line(&[[x, y], [end, place[1]]], 1, Tone::Quiet)?;
            }
            canvas.text(&name.text, place, anchor, SMALL, Tone::Text, Face::Sans)?;
            drawn += 1;
            if drawn == most_names(room) {
                break;
            }
        }
    }
    Ok(())
}
