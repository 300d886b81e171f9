//! How values are written.

use super::picture::{Table, Unit};

/// A value as it is written at a mark or in a table.
pub(crate) fn text(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Number => number(value),
        Unit::Percent => format!("{} %", number(100.0 * value)),
        Unit::Bytes => {
            let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
            let power = (0..units.len()).rev().find(|power| value >= 1024f64.powi(*power as i32)).unwrap_or(0);
            format!("{} {}", number(value / 1024f64.powi(power as i32)), units[power])
        }
    }
}

/// A number with three digits or all those before the point, and no zeros at its end.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// What stands in a table where there is no figure.
pub(crate) const MISSING: &str = "–";

/// A table without the columns that have no figure.
pub(crate) fn filled(table: Table) -> Table {
    let Table { columns, rows } = table;
    let has_any = |column: usize| rows.is_empty() || rows.iter().any(|row| row[column] != MISSING);
    let kept: Vec<_> = (0..columns.len()).filter(|column| has_any(*column)).collect();
    let of = |row: &Vec<String>| kept.iter().map(|column| row[*column].clone()).collect();
    Table { columns: of(&columns), rows: rows.iter().map(of).collect() }
}

/// A figure in a table.
pub(crate) fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| MISSING.to_owned(), number)
}

/// A share in a table.
pub(crate) fn share(value: Option<f64>) -> String {
    value.map_or_else(|| MISSING.to_owned(), |value| format!("{:.1} %", 100.0 * value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_without_a_figure_is_left_out() {
        let row = |texts: [&str; 3]| texts.map(str::to_owned).to_vec();
        let table =
            Table { columns: row(["a", "b", "c"]), rows: vec![row(["1", MISSING, "2"]), row(["3", MISSING, MISSING])] };
        assert_eq!(filled(table).columns, ["a", "c"]);
    }

    #[test]
    fn values_are_written_with_three_digits() {
        let written = [0.0, 0.30000000000000004, 20_000.0, 1.0, 453.26, 0.012_91, 4238.9].map(number);
        assert_eq!(written, ["0", "0.3", "20000", "1", "453", "0.0129", "4239"]);
        assert_eq!([text(0.222, Unit::Percent), text(1024.0, Unit::Bytes)], ["22.2 %", "1 KiB"]);
    }
}
