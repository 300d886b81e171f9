//! Rows of bars and marks over one axis.

use super::canvas::{Anchor, Canvas, Drawn, Face, Tone};
use super::key::{self, BAND, Entry, Sign};
use super::{Room, SMALL, TEXT, ground};
use crate::plots::axis::Divided;
use crate::plots::picture::{Group, Lane, Mark, Row, Rows, Scale, Shape};
use crate::plots::text::text;

/// Where things stand.
struct Sheet {
    room: Room,
    /// Where the axis begins and ends.
    ends: [f64; 2],
    x: Divided,
    is_logarithmic: bool,
}

/// The height of a lane, and of the label above it where it stands there.
const LANE: f64 = 15.0;
const ABOVE: f64 = 17.0;
const GAP: f64 = 6.0;
const TITLE: f64 = 28.0;
const LEVELS: f64 = 16.0;

impl Sheet {
    fn along(&self, value: f64) -> f64 {
        self.ends[0] + self.x.place(value).clamp(0.0, 1.0) * (self.ends[1] - self.ends[0])
    }

    fn row(&self, row: &Row) -> f64 {
        let above = if self.room == Room::Narrow { ABOVE } else { 0.0 };
        above + LANE * row.lanes.len().max(1) as f64 + GAP
    }

    fn group(&self, group: &Group) -> f64 {
        self.head(group) + group.rows.iter().map(|row| self.row(row)).sum::<f64>()
    }

    /// What stands above the rows of a group.
    fn head(&self, group: &Group) -> f64 {
        let title = if group.title.is_some() { TITLE } else { 0.0 };
        title + if group.levels.is_empty() { 4.0 } else { LEVELS }
    }
}

pub(super) fn draw(rows: &Rows, room: Room, above: f64, svg: &mut String, heading: Option<&str>) -> Drawn {
    let width = room.width();
    let entry =
        |(shape, ink, label): &(Shape, _, String)| Entry { sign: Sign::Shape(*shape), ink: *ink, label: label.clone() };
    let entries: Vec<_> = rows.keys.iter().map(entry).collect();
    let key = key::height(&entries, width - 16.0) + 8.0;
    let all = || rows.groups.iter().flat_map(|group| &group.rows);
    let labels = all().map(|row| Face::Mono.width(&row.label, SMALL)).fold(0.0, f64::max);
    let notes = all().flat_map(|row| &row.lanes).map(|lane| Face::Sans.width(&lane.note, SMALL)).fold(0.0, f64::max);
    let left = if room == Room::Wide { labels + 18.0 } else { 8.0 };
    let ends = [left, width - notes - 14.0];
    let of_marks =
        all().flat_map(|row| &row.lanes).flat_map(|lane| &lane.marks).flat_map(|mark| mark.values.iter().copied());
    let of_levels = rows.groups.iter().flat_map(|group| &group.levels).map(|level| level.value);
    let is_logarithmic = rows.x.scale == Scale::Logarithmic;
    // Of powers an axis begins at the last one before its values.
    let values: Vec<f64> = of_marks.chain(of_levels).collect();
    let least = values.iter().copied().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let begin = (is_logarithmic && least.is_finite()).then(|| 10f64.powf((least * 0.9).log10().floor()));
    let x = rows.x.divided(values.into_iter().chain(begin), ((ends[1] - ends[0]) / 58.0) as usize);
    let sheet = Sheet { room, ends, x, is_logarithmic };
    let top = above + key;
    let height: f64 = rows.groups.iter().map(|group| sheet.group(group)).sum();
    let size = [width, top + height + 44.0];
    let canvas = Canvas::new(svg, size);
    ground(&canvas, size, heading)?;
    key::draw(&canvas, &entries, [8.0, above], width - 16.0)?;
    let mut y = top;
    for group in &rows.groups {
        draw_group(&canvas, &sheet, group, y)?;
        y += sheet.group(group);
    }
    canvas.line(&[[ends[0], y], [ends[1], y]], 1, Tone::Quiet)?;
    for mark in sheet.x.marks.iter().filter(|mark| sheet.x.holds(**mark)) {
        let text = text(*mark, rows.x.unit);
        // Where labels stand above their rows, the axis begins at the edge.
        let x = sheet.along(*mark).max(Face::Sans.width(&text, SMALL) / 2.0 + 1.0);
        canvas.text(&text, [x, y + 12.0], Anchor::Middle, SMALL, Tone::Quiet, Face::Sans)?;
    }
    let middle = f64::midpoint(ends[0], ends[1]);
    canvas.text(&rows.x.label, [middle, y + 31.0], Anchor::Middle, SMALL, Tone::Text, Face::Sans)?;
    canvas.finish()
}

fn draw_group(canvas: &Canvas<'_>, sheet: &Sheet, group: &Group, top: f64) -> Drawn {
    let [begin, end] = sheet.ends;
    let first = top + sheet.head(group);
    let bottom = top + sheet.group(group);
    if let Some(title) = &group.title {
        canvas.text(title, [8.0, top + 16.0], Anchor::Start, TEXT, Tone::Text, Face::Sans)?;
    }
    for mark in sheet.x.marks.iter().filter(|mark| sheet.x.holds(**mark)) {
        let x = sheet.along(*mark);
        canvas.line(&[[x, first - 3.0], [x, bottom]], 1, Tone::Rule)?;
    }
    let mut free = begin;
    let mut levels: Vec<_> = group.levels.iter().collect();
    levels.sort_by(|a, b| a.value.total_cmp(&b.value));
    for (n, level) in levels.iter().enumerate() {
        let x = sheet.along(level.value);
        canvas.line(&[[x, first - 3.0], [x, bottom]], 1, level.ink.into())?;
        let wide = Face::Sans.width(&level.label, SMALL);
        // The last stands behind its line where the one before is near.
        let is_near = levels.get(n.wrapping_sub(1)).is_some_and(|before| x - sheet.along(before.value) < wide + 12.0);
        let (anchor, left) = if is_near && n + 1 == levels.len() && x + wide / 2.0 < end + 20.0 {
            (Anchor::Middle, x - wide / 2.0)
        } else {
            (Anchor::End, x - wide)
        };
        let at = if anchor == Anchor::End { x + 3.0 } else { x };
        if left > free {
            canvas.text(&level.label, [at, first - LEVELS / 2.0 - 2.0], anchor, SMALL, Tone::Quiet, Face::Sans)?;
            free = left + wide + 10.0;
        }
    }
    let mut y = first;
    for row in &group.rows {
        let lanes = if sheet.room == Room::Narrow { y + ABOVE } else { y };
        let label = match sheet.room {
            Room::Wide => ([begin - 10.0, y + LANE * row.lanes.len().max(1) as f64 / 2.0], Anchor::End),
            Room::Narrow => ([begin, y + ABOVE / 2.0], Anchor::Start),
        };
        canvas.text(&row.label, label.0, label.1, SMALL, Tone::Text, Face::Mono)?;
        for (number, lane) in row.lanes.iter().enumerate() {
            draw_lane(canvas, sheet, lane, lanes + LANE * (number as f64 + 0.5))?;
        }
        y += sheet.row(row);
    }
    Ok(())
}

fn draw_lane(canvas: &Canvas<'_>, sheet: &Sheet, lane: &Lane, y: f64) -> Drawn {
    for mark in &lane.marks {
        draw_mark(canvas, sheet, mark, y)?;
    }
    canvas.text(&lane.note, [sheet.ends[1] + 8.0, y], Anchor::Start, SMALL, Tone::Text, Face::Sans)
}

fn draw_mark(canvas: &Canvas<'_>, sheet: &Sheet, mark: &Mark, y: f64) -> Drawn {
    let tone = Tone::from(mark.ink);
    let places: Vec<f64> = mark.values.iter().map(|value| sheet.along(*value)).collect();
    match (mark.shape, places.as_slice()) {
        // A bar of powers has no length that means anything.
        (Shape::Bar, [x]) if sheet.is_logarithmic => {
            canvas.line(&[[sheet.ends[0], y], [*x, y]], 2, tone)?;
            canvas.marker(crate::plots::picture::Marker::Dot, [*x, y], 5.0, tone)
        }
        (Shape::Bar, [x]) => canvas.bar([sheet.ends[0], y - 5.0], [x.max(sheet.ends[0] + 1.0), y + 5.0], tone, 1.0),
        (Shape::Band, [low, high]) => canvas.bar([*low, y - 6.0], [high.max(low + 1.0), y + 6.0], tone, BAND),
        (Shape::Diamond, places) => places.iter().try_for_each(|x| canvas.diamond([*x, y], 5.0, tone)),
        (Shape::Tick, [x]) => {
            // On its own ground, so that it is seen on a bar too.
            canvas.bar([x - 3.0, y - 7.0], [x + 3.0, y + 7.0], Tone::Ground, 1.0)?;
            canvas.bar([x - 1.0, y - 7.0], [x + 1.0, y + 7.0], tone, 1.0)?;
            Ok(())
        }
        // A comb: one line, whose teeth are the samples.
        (Shape::Sample, places) => {
            let mut sorted = places.to_vec();
            sorted.sort_by(f64::total_cmp);
            let teeth = sorted.iter().flat_map(|x| [[*x, y + 6.0], [*x, y - 6.0], [*x, y + 6.0]]);
            canvas.line(&teeth.collect::<Vec<_>>(), 1, tone)
        }
        (Shape::Bar | Shape::Band | Shape::Tick, _) => Ok(()),
    }
}
