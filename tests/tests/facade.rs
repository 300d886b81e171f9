//! The facade's table of primitives, held to the facade's own source, both ways.

use busload_tests::{files, root};
use gpu::device::primitives::{Counted, PRIMITIVES};
use std::collections::BTreeSet;

/// The facade's files of what kernels use: no back end, no table.
fn facade() -> Vec<(String, String)> {
    let files = files("gpu/src/device", ".rs").into_iter().map(|(path, text)| {
        (path.strip_prefix("gpu/src/device").expect("under it").to_string_lossy().into_owned(), text)
    });
    files
        .filter(|(path, _)| !path.starts_with("host/"))
        .filter(|(path, _)| !["nvptx.rs", "nvvm.rs", "ptx.rs", "primitives.rs"].contains(&path.as_str()))
        .collect()
}

/// The public functions in a text, but for hidden ones and for what macros name.
fn functions(text: &str) -> Vec<String> {
    let mut hidden = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[doc(hidden)]") {
            hidden = true;
        } else if let Some(rest) = line.strip_prefix("pub ") {
            let rest = ["const ", "unsafe "].iter().fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
            if let Some(rest) = rest.strip_prefix("fn ") {
                let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
                if !hidden && !name.is_empty() {
                    found.push(name.to_owned());
                }
            }
            hidden = false;
        }
    }
    found
}

/// The words of a text: what macros name is among them.
fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
}

fn listed() -> Vec<&'static str> {
    PRIMITIVES.iter().map(|primitive| primitive.name).collect()
}

#[test]
fn every_function_of_the_facade_is_in_the_table() {
    let listed = listed();
    let last: BTreeSet<_> = listed.iter().map(|name| name.rsplit("::").next().expect("a name")).collect();
    let mut missing = Vec::new();
    let mut seen = 0;
    for (path, text) in facade() {
        for function in functions(&text) {
            seen += 1;
            let module = ["warp", "thread", "copy_async"].into_iter().find(|module| path == format!("{module}.rs"));
            let is_there = match module {
                Some(module) => listed.contains(&format!("{module}::{function}").as_str()),
                None => last.contains(function.as_str()),
            };
            if !is_there {
                missing.push(format!("{path}: {function}"));
            }
        }
    }
    assert!(seen > 40, "{seen} functions were found");
    assert!(missing.is_empty(), "gpu/src/device/primitives.rs lacks {missing:#?}");
}

#[test]
fn every_primitive_of_the_table_is_in_the_facade() {
    let facade = facade();
    let all: BTreeSet<_> = facade.iter().flat_map(|(_, text)| words(text)).collect();
    let mut unknown = Vec::new();
    for name in listed().into_iter().filter(|name| *name != "[T; N]") {
        let is_known = match name.split_once("::") {
            Some((module @ ("warp" | "thread" | "copy_async"), function)) => {
                let (_, text) = facade.iter().find(|(path, _)| *path == format!("{module}.rs")).expect("its file");
                words(text).contains(function)
            }
            Some((ty, function)) => all.contains(ty) && all.contains(function),
            None => all.contains(name),
        };
        if !is_known {
            unknown.push(name);
        }
    }
    assert!(unknown.is_empty(), "the facade has no {unknown:?}");
    let twice: Vec<_> =
        listed().into_iter().filter(|name| listed().iter().filter(|other| *other == name).count() > 1).collect();
    assert!(twice.is_empty(), "{twice:?} are listed twice");
}

/// The vectors in the table are all that there are.
#[test]
fn every_vector_is_in_the_table() {
    let (_, text) = facade().into_iter().find(|(path, _)| path == "vector.rs").expect("the vectors");
    let declared = text.split("vectors! {").nth(1).expect("their list").lines().filter_map(|line| {
        let (name, rest) = line.trim().split_once(": ")?;
        rest.ends_with(';').then(|| name.to_owned())
    });
    let declared: BTreeSet<_> = declared.collect();
    let listed: BTreeSet<_> = PRIMITIVES
        .iter()
        .filter(|primitive| primitive.counts == Counted::Width)
        .map(|primitive| primitive.name)
        .filter(|name| !["f16", "bf16"].contains(name))
        .map(str::to_owned)
        .collect();
    assert_eq!(declared, listed);
    assert!(declared.len() > 20);
}

#[test]
fn every_primitive_is_used_by_a_kernel() {
    let of = |folder| files(folder, ".rs").into_iter().map(|(_, text)| text).collect::<String>();
    let text = of("tests/primitives/src") + &of("gpu/src/kernels");
    assert!(root().join("tests/primitives/src").is_dir());
    let used = words(&text);
    let unused: Vec<_> = listed()
        .into_iter()
        .filter(|name| *name != "[T; N]" && !used.contains(name.rsplit("::").next().expect("a name")))
        .collect();
    assert!(unused.is_empty(), "no kernel uses {unused:?}");
}
