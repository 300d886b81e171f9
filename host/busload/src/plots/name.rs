//! Names of plots.

/// A name of these parts that can stand in a file's name, in an address and on a command line.
pub(crate) fn name(parts: &[&str]) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    parts.iter().map(|part| part.chars().map(safe).collect::<String>()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_has_a_meaning_elsewhere() {
        assert_eq!(name(&["ladder", "transpose_types"]), "ladder-transpose_types");
        assert_eq!(name(&["ladder", "a\"><b> ../é"]), "ladder-a---b------");
    }
}
