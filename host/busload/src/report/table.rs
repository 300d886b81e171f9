//! Tables that fit where they are shown. A column that says nothing is left out, a long cell is wrapped, and what still finds no
//! room is named below the table.

use super::colour;
use super::escape::{markdown, terminal};
use super::width::wrapped;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, TableComponent, presets};
use std::borrow::Cow;

/// A column, and what becomes of it where room is short.
#[derive(Clone)]
pub(super) struct Column {
    /// Its lines are parted by `\n`.
    heading: Cow<'static, str>,
    is_text: bool,
    is_key: bool,
    is_once: bool,
    is_apart: bool,
    /// None if it is never left out; else the higher, the sooner.
    spare: Option<u8>,
}

impl Column {
    /// What a row is about: always there.
    pub(super) fn key(heading: impl Into<Cow<'static, str>>) -> Self {
        Self { is_key: true, ..Self::text(heading) }
    }

    /// Words, which may be wrapped.
    pub(super) fn text(heading: impl Into<Cow<'static, str>>) -> Self {
        let heading = heading.into();
        Self { heading, is_text: true, is_key: false, is_once: false, is_apart: false, spare: None }
    }

    /// Numbers, on the right.
    pub(super) fn number(heading: impl Into<Cow<'static, str>>) -> Self {
        Self { is_text: false, ..Self::text(heading) }
    }

    /// Where room is short and every row has the same in it, that is said once.
    pub(super) fn once(self) -> Self {
        Self { is_once: true, ..self }
    }

    /// Where room is short, it stands with others like it in a table of their own, below, of the rows that have any.
    pub(super) fn apart(self) -> Self {
        Self { is_apart: true, ..self }
    }

    /// Where room is short it is left out; the higher the number, the sooner.
    pub(super) fn spare(self, order: u8) -> Self {
        Self { spare: Some(order), ..self }
    }

    /// The heading in one line.
    fn name(&self) -> String {
        self.heading.replace('\n', " ")
    }
}

/// Rows under columns.
pub(super) struct Layout {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// Cells that say nothing.
const NOTHING: [&str; 2] = ["-", ""];

/// Text is wrapped to so many columns before any column is left out.
const COMFORTABLE: usize = 24;

impl Layout {
    pub(super) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row, with a cell for each column. What acts on a terminal is shown, and does not act.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let lines = |cell: String| cell.split('\n').map(terminal).collect::<Vec<_>>().join("\n");
        let cells: Vec<_> = cells.into_iter().map(lines).collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// The table, and below it what is left out, in lines of so many columns at most: wider only where a name in it is.
    pub(super) fn fit(&self, width: usize) -> String {
        let fits = |shown: &[usize], limit| self.width(shown, limit) <= width;
        let mut shown: Vec<usize> =
            (0..self.columns.len()).filter(|&i| self.columns[i].is_key || self.says_something(i)).collect();
        let (mut said, mut apart, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
        if !fits(&shown, usize::MAX) {
            said = shown.extract_if(.., |i| self.columns[*i].is_once && self.is_the_same(*i)).collect();
        }
        if !fits(&shown, usize::MAX) {
            apart = shown.extract_if(.., |i| self.columns[*i].is_apart).collect();
        }
        let mut limit = if fits(&shown, usize::MAX) { usize::MAX } else { COMFORTABLE };
        while !fits(&shown, limit)
            && let Some(spare) = shown.iter().copied().max_by_key(|&i| self.columns[i].spare)
            && self.columns[spare].spare.is_some()
        {
            shown.retain(|&i| i != spare);
            hidden.push(spare);
        }
        // What is still too much goes on in further tables; a column that has no room beside the keys is wider than was asked for.
        while !fits(&shown, 1)
            && shown.iter().filter(|&&i| !self.columns[i].is_key).count() > 1
            && let Some(last) = shown.pop_if(|i| !self.columns[*i].is_key)
        {
            apart.insert(0, last);
        }
        while limit > 1 && !fits(&shown, limit) {
            limit = limit.min(COMFORTABLE) - 1;
        }
        let mut text = self.draw(&shown, limit);
        self.apart(apart, width).iter().for_each(|table| text += &format!("\n{}", table.fit(width)));
        if !said.is_empty() {
            let said = said.iter().map(|&i| format!("{} {}", self.columns[i].name(), self.rows[0][i]));
            text += &wrapped(&format!("In every row: {}.\n", said.collect::<Vec<_>>().join(", ")), width, 0);
        }
        if !hidden.is_empty() {
            hidden.sort_unstable();
            let names = hidden.iter().map(|&i| self.columns[i].name()).collect::<Vec<_>>().join(", ");
            text += &wrapped(&format!("No room for {names}: a wider terminal shows more, --json all.\n"), width, 0);
        }
        text
    }

    /// All columns that say something, as a table in Markdown.
    pub(super) fn markdown(&self) -> String {
        let shown: Vec<_> =
            (0..self.columns.len()).filter(|&i| self.columns[i].is_key || self.says_something(i)).collect();
        let line = |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
        let ruler = |i: &usize| if self.columns[*i].is_text { "---" } else { "---:" }.to_owned();
        let mut text = line(&mut shown.iter().map(|&i| markdown(&self.columns[i].name())));
        text += &line(&mut shown.iter().map(ruler));
        self.rows.iter().for_each(|row| text += &line(&mut shown.iter().map(|&i| markdown(&row[i]))));
        text
    }

    /// Tables of these columns, as many in each as fit, and of the rows that have something in them.
    fn apart(&self, mut columns: Vec<usize>, width: usize) -> Vec<Self> {
        let keys: Vec<_> = (0..self.columns.len()).filter(|&i| self.columns[i].is_key).collect();
        let part = |columns: &[usize]| {
            let has_any = |row: &&Vec<String>| columns.iter().any(|&i| !NOTHING.contains(&row[i].as_str()));
            let all: Vec<_> = keys.iter().chain(columns).copied().collect();
            let pick = |row: &Vec<String>| all.iter().map(|&i| row[i].clone()).collect();
            Self {
                columns: all.iter().map(|&i| Column { is_apart: false, ..self.columns[i].clone() }).collect(),
                rows: self.rows.iter().filter(has_any).map(pick).collect(),
            }
        };
        let mut parts = Vec::new();
        while !columns.is_empty() {
            let is_too_wide = |&count: &usize| {
                let part = part(&columns[..count]);
                part.width(&(0..part.columns.len()).collect::<Vec<_>>(), COMFORTABLE) > width
            };
            let count = (1..=columns.len()).rev().find(|count| !is_too_wide(count)).unwrap_or(1);
            parts.push(part(&columns.drain(..count).collect::<Vec<_>>()));
        }
        parts
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().map(move |row| row[column].as_str())
    }

    fn says_something(&self, column: usize) -> bool {
        self.cells(column).any(|cell| !NOTHING.contains(&cell))
    }

    fn is_the_same(&self, column: usize) -> bool {
        let mut cells = self.cells(column);
        let first = cells.next();
        cells.all(|cell| Some(cell) == first)
    }

    /// The width of a column, where headings are broken at spaces if there is a limit, and its words if they are longer.
    fn column_width(&self, column: usize, limit: usize) -> usize {
        let Column { heading, is_text, .. } = &self.columns[column];
        let widest = |lines: &mut dyn Iterator<Item = &str>| lines.map(|line| line.chars().count()).max().unwrap_or(0);
        let head = match limit {
            usize::MAX => widest(&mut heading.split('\n')),
            _ => widest(&mut heading.split_whitespace()),
        };
        // The first column is of names, which are left whole.
        let is_wrapped = *is_text && column > 0 && limit < usize::MAX;
        let body = self.cells(column).map(|cell| match is_wrapped {
            true => widest(&mut wrapped(cell, limit, 0).split('\n')),
            false => widest(&mut cell.split('\n')),
        });
        body.max().unwrap_or(0).max(head)
    }

    /// The width of a table of these columns, of which text is wrapped to a limit.
    fn width(&self, columns: &[usize], limit: usize) -> usize {
        columns.iter().map(|&i| self.column_width(i, limit) + 2).sum::<usize>() - 1
    }

    /// The table of these columns, of which text is wrapped to a limit.
    fn draw(&self, columns: &[usize], limit: usize) -> String {
        let is_wrapped = limit < usize::MAX;
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_style(TableComponent::HeaderLines, '─').set_style(TableComponent::MiddleHeaderIntersections, '─');
        table.set_header(columns.iter().map(|&i| match is_wrapped {
            true => self.broken(i, limit),
            false => self.columns[i].heading.clone().into_owned(),
        }));
        // Whether there are colours is no matter of what this table goes to: it is a text first.
        if colour::of_tables() {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        for row in &self.rows {
            table.add_row(columns.iter().map(|&i| {
                let Column { is_text, is_key, .. } = self.columns[i];
                let cell = Cell::new(match is_text && i > 0 && is_wrapped {
                    true => wrapped(&row[i], limit, 0),
                    false => row[i].clone(),
                });
                match colour::of_verdict(&row[i]).filter(|_| is_text && !is_key) {
                    Some(colour) => cell.fg(colour),
                    None => cell,
                }
            }));
        }
        for (place, &i) in columns.iter().enumerate() {
            let column = table.column_mut(place).expect("it has a heading");
            column.set_padding((1, 0));
            if !self.columns[i].is_text {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt() + "\n"
    }

    /// The heading of a column, broken at spaces where its cells are narrower than its lines.
    fn broken(&self, column: usize, limit: usize) -> String {
        let lines = self.columns[column].heading.split('\n');
        let width = self.column_width(column, limit);
        lines.map(|line| wrapped(line, width, 0)).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let mut layout = Layout::new([
            Column::key("kernel"),
            Column::key("case"),
            Column::number("median\nms"),
            Column::number("min\nms").spare(2),
            Column::number("sectors read").spare(1),
            Column::number("never"),
            Column::number("shared load\nwavefronts").apart(),
            Column::number("shared store\nwavefronts").apart(),
            Column::text("verified").once(),
        ]);
        let cells = |cells: [&str; 9]| cells.map(str::to_owned);
        let tiled = ["transpose_tiles_vec4_swizzled", "4096x4096", "0.5214", "0.5203", "1024", "-", "1.00 (1.00)"];
        layout.row(cells([tiled[0], tiled[1], tiled[2], tiled[3], tiled[4], "-", tiled[6], "32.00 (1.00)", "yes"]));
        layout.row(cells(["gather_indexed", "1048576, block-local", "1.0000", "0.9", "77", "-", "-", "-", "yes"]));
        layout
    }

    #[test]
    fn where_there_is_room_all_that_says_something_stands_in_one_table() {
        insta::assert_snapshot!(layout().fit(200), @r"
             kernel                         case                  median     min  sectors read  shared load  shared store  verified
                                                                      ms      ms                 wavefronts    wavefronts
            ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
             transpose_tiles_vec4_swizzled  4096x4096             0.5214  0.5203          1024  1.00 (1.00)  32.00 (1.00)  yes
             gather_indexed                 1048576, block-local  1.0000     0.9            77            -             -  yes
            ");
    }

    #[test]
    fn at_100_columns_what_is_the_same_is_said_once() {
        insta::assert_snapshot!(layout().fit(100), @r"
         kernel                         case                  median     min  sectors read
                                                                  ms      ms
        ──────────────────────────────────────────────────────────────────────────────────
         transpose_tiles_vec4_swizzled  4096x4096             0.5214  0.5203          1024
         gather_indexed                 1048576, block-local  1.0000     0.9            77

         kernel                         case       shared load  shared store
                                                    wavefronts    wavefronts
        ────────────────────────────────────────────────────────────────────
         transpose_tiles_vec4_swizzled  4096x4096  1.00 (1.00)  32.00 (1.00)
        In every row: verified yes.
        ");
    }

    #[test]
    fn at_80_columns_some_columns_have_a_table_of_their_own() {
        insta::assert_snapshot!(layout().fit(80), @r"
         kernel                         case                  median     min  sectors
                                                                  ms      ms     read
        ─────────────────────────────────────────────────────────────────────────────
         transpose_tiles_vec4_swizzled  4096x4096             0.5214  0.5203     1024
         gather_indexed                 1048576, block-local  1.0000     0.9       77

         kernel                         case       shared load  shared store
                                                    wavefronts    wavefronts
        ────────────────────────────────────────────────────────────────────
         transpose_tiles_vec4_swizzled  4096x4096  1.00 (1.00)  32.00 (1.00)
        In every row: verified yes.
        ");
    }

    #[test]
    fn at_60_columns_cells_are_wrapped_and_what_is_left_out_is_named() {
        insta::assert_snapshot!(layout().fit(60), @r"
         kernel                         case                  median
                                                                  ms
        ────────────────────────────────────────────────────────────
         transpose_tiles_vec4_swizzled  4096x4096             0.5214
         gather_indexed                 1048576, block-local  1.0000

         kernel                         case       shared load
                                                    wavefronts
        ──────────────────────────────────────────────────────
         transpose_tiles_vec4_swizzled  4096x4096  1.00 (1.00)

         kernel                         case       shared store
                                                     wavefronts
        ───────────────────────────────────────────────────────
         transpose_tiles_vec4_swizzled  4096x4096  32.00 (1.00)
        In every row: verified yes.
        No room for min ms, sectors read: a wider terminal shows
        more, --json all.
        ");
    }

    #[test]
    fn a_name_that_leaves_no_room_is_drawn_wider_than_was_asked_for() {
        for width in 1..60 {
            let text = layout().fit(width);
            assert!(text.contains("transpose_tiles_vec4_swizzled") && text.contains("0.5214"), "{width}:\n{text}");
        }
    }

    #[test]
    fn what_acts_on_a_terminal_is_shown() {
        let mut layout = Layout::new([Column::key("kernel"), Column::text("id")]);
        layout.row(["copy".to_owned(), "\u{1b}[2J".to_owned()]);
        assert!(!layout.fit(100).contains('\u{1b}'), "{}", layout.fit(100));
    }

    #[test]
    fn lines_are_no_longer_than_was_asked_for_and_names_stand_whole() {
        for width in 60..220 {
            let text = layout().fit(width);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{width}:\n{text}");
            assert!(text.contains("transpose_tiles_vec4_swizzled") && text.contains("gather_indexed"), "{text}");
            assert!(!text.contains("never"), "{text}");
        }
    }
}
