//! Results as comma-separated values: a row a result, a column for each of its fields that is one value, as its JSON has it.

use serde_json::Value;

/// The results that stand in a report's JSON under `results`. Parts of a field have a column each, as in `params.elements`; numbers side
/// by side, as in a shape or a grid, are joined by `x`. Lists of anything else, such as samples or source lines, stand in the JSON alone.
///
/// # Errors
/// If they cannot be written.
pub fn csv(results: &[Value]) -> anyhow::Result<String> {
    let rows: Vec<Vec<(String, String)>> = results
        .iter()
        .map(|result| {
            let mut cells = Vec::new();
            flatten("", result, &mut cells);
            cells
        })
        .collect();
    let is_there = |name: &&str| rows.iter().flatten().any(|(own, _)| own == name);
    let mut columns: Vec<&str> = FIRST.into_iter().filter(is_there).collect();
    for row in &rows {
        // A field that only later rows have stands behind the one that is before it there.
        let mut after = columns.len().min(FIRST.len());
        for (name, _) in row {
            match columns.iter().position(|column| column == name) {
                Some(place) => after = after.max(place + 1),
                None => {
                    columns.insert(after, name);
                    after += 1;
                }
            }
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&columns)?;
    for row in &rows {
        let cell = |column: &&str| row.iter().find(|(name, _)| name == column).map_or("", |(_, value)| value);
        writer.write_record(columns.iter().map(cell))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// What a row is about stands first.
const FIRST: [&str; 2] = ["kernel", "case"];

/// At most so many numbers are joined: those of a grid.
const JOINED: usize = 3;

fn flatten(name: &str, value: &Value, cells: &mut Vec<(String, String)>) {
    let mut add = |text: String| cells.push((name.to_owned(), text));
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (field, value) in fields {
                let name = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                flatten(&name, value, cells);
            }
        }
        Value::Array(values) if (1..=JOINED).contains(&values.len()) && values.iter().all(Value::is_u64) => {
            add(values.iter().map(ToString::to_string).collect::<Vec<_>>().join("x"));
        }
        Value::Array(_) => {}
        Value::String(text) => add(text.clone()),
        value => add(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_has_a_column_and_what_a_row_lacks_is_empty() {
        let rows = [
            json!({ "case": "4, \"sorted\"", "kernel": "gather", "launch": { "grid": [2, 1, 1], "shared_bytes": 0 }, "samples_ms": [0.5, 0.25] }),
            json!({ "case": "8x8", "error": { "kind": "race" }, "kernel": "transpose", "params": { "shape": [8, 8] } }),
        ];
        insta::assert_snapshot!(csv(&rows).expect("text"), @r#"
        kernel,case,launch.grid,launch.shared_bytes,error.kind,params.shape
        gather,"4, ""sorted""",2x1x1,0,,
        transpose,8x8,,,race,8x8
        "#);
        assert_eq!(csv(&[]).expect("text"), "\"\"\n");
    }
}
