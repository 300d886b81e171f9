//! The names of a new kernel and of its family, before anything is written.

use super::reserved;
use anyhow::{Result, ensure};
use std::path::Path;

/// What a name may be long: it stands in tables.
const LONGEST: usize = 48;

/// Modules of Rust's own, which a module of the family's name would hide.
const HIDDEN: [&str; 5] = ["alloc", "core", "proc_macro", "std", "test"];

/// Whether a family may be called so.
pub(super) fn check_family(family: &str) -> Result<()> {
    check("family", family, "transpose_tiles")?;
    ensure!(
        !family.starts_with(|c: char| c.is_ascii_digit()),
        "`{family}` is no name of a family: its module begins with a letter, as in `transpose_tiles`"
    );
    ensure!(
        syn::parse_str::<syn::Ident>(family).is_ok() && !HIDDEN.contains(&family),
        "`{family}` is a word of Rust's own, and a family is a module of its name: choose another"
    );
    Ok(())
}

/// The name of the kernel that is this variant of a family, if it may be called so.
pub(super) fn kernel(family: &str, variant: &str) -> Result<String> {
    if let Some(rest) =
        variant.strip_prefix(family).and_then(|rest| rest.strip_prefix('_')).filter(|rest| !rest.is_empty())
    {
        anyhow::bail!(
            "`{variant}` names its family already, and a kernel is called {family}_VARIANT: \
             `cargo xtask new {family} {rest}` makes `{variant}`"
        );
    }
    check("variant", variant, "tiled")?;
    let kernel = format!("{family}_{variant}");
    ensure!(
        kernel.len() <= LONGEST,
        "`{kernel}` has {} letters, and a kernel's name {LONGEST} at most: it stands in every table",
        kernel.len()
    );
    if let Some(owner) = reserved::owner(&kernel) {
        anyhow::bail!("`{kernel}` is a name of {owner}, and a kernel's is a symbol of its PTX: choose another variant");
    }
    Ok(kernel)
}

fn check(what: &str, name: &str, example: &str) -> Result<()> {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_snake = name.bytes().all(is_word) && !name.contains("__") && !name.starts_with('_') && !name.ends_with('_');
    ensure!(
        !name.is_empty() && is_snake,
        "`{name}` is no name of a {what}: lower-case letters, digits and single underscores between them, as in `{example}`"
    );
    Ok(())
}

/// Refuses a kernel's name that some file of the families has already, as a kernel or as anything else.
pub(super) fn check_free<'a>(kernel: &str, files: impl IntoIterator<Item = (&'a Path, &'a str)>) -> Result<()> {
    for (file, text) in files {
        if let Some(line) = text.lines().position(|line| declares(line, kernel)) {
            anyhow::bail!(
                "{}:{} has a `{kernel}` already: choose another variant, since a kernel's name is its symbol in the PTX",
                file.display(),
                line + 1
            );
        }
    }
    Ok(())
}

/// Whether a line declares an item of this name.
fn declares(line: &str, name: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let mut is_behind = false;
    words.any(|word| {
        let found = is_behind && word == name;
        is_behind = ["fn", "mod", "const", "static", "struct", "enum", "type", "trait"].contains(&word);
        found
    })
}

/// The family that a name is nearly that of: a slip of two letters at most.
pub(super) fn nearly<'a>(name: &str, families: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |family: &str| strsim::damerau_levenshtein(name, family);
    let near = families.into_iter().filter(|family| distance(family) <= 2.min(name.len() / 3));
    near.min_by_key(|family| distance(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(result: Result<impl std::fmt::Debug>, says: &str) {
        let error = result.expect_err(says).to_string();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn names_are_words_of_lower_case_that_nobody_else_has() {
        for name in ["Transpose", "a-b", "", "_a", "a_", "a__b", "größe", "a b", "../a"] {
            refused(check_family(name), "is no name of a family: lower-case letters");
            refused(kernel("copy", name), "is no name of a variant: lower-case letters");
        }
        refused(check_family("2d"), "begins with a letter");
        for word in ["match", "move", "async", "core", "std", "super"] {
            refused(check_family(word), "is a word of Rust's own");
        }
        check_family("histogram").expect("a good name");
        assert_eq!(kernel("copy", "16_bytes").expect("a good name"), "copy_16_bytes");
        refused(kernel("transpose", "transpose_diagonal"), "`cargo xtask new transpose diagonal` makes");
        refused(kernel("pthread", "create"), "`pthread_create` is a name of C's library");
        refused(kernel("clock", "gettime"), "`clock_gettime` is a name of C's library");
        refused(kernel("cuda", "malloc"), "is a name of CUDA");
        refused(kernel("copy", &"long".repeat(20)), "48 at most");
    }

    #[test]
    fn a_name_that_a_file_has_is_not_free() {
        let text = "/// Like [`copy_a`].\n#[kernel]\npub unsafe fn copy_b(src: Global<f32>) {}\nconst copy_c: u32 = 1;\n// fn copy_d\n";
        let free = |name| check_free(name, [(Path::new("gpu/src/kernels/copy.rs"), text)]);
        for name in ["copy_a", "copy_d", "copy"] {
            free(name).expect(name);
        }
        refused(free("copy_b"), "gpu/src/kernels/copy.rs:3 has a `copy_b` already");
        refused(free("copy_c"), "gpu/src/kernels/copy.rs:4 has a `copy_c` already");
    }

    #[test]
    fn a_slip_is_near_a_family_and_a_new_word_is_not() {
        let families = ["copy", "transpose", "transpose_tiles", "matrix", "matmul"];
        for (name, family) in [
            ("transpos", Some("transpose")),
            ("trasnpose", Some("transpose")),
            ("transposed", Some("transpose")),
            ("histogram", None),
            ("stencil", None),
            ("scan", None),
        ] {
            assert_eq!(nearly(name, families), family, "{name}");
        }
    }
}
