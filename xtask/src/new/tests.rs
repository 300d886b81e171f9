use super::*;

/// A workspace with a copy of the families.
fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kernels = folder.path().join(KERNELS);
    std::fs::create_dir_all(&kernels).expect("a folder");
    for entry in std::fs::read_dir(root().join(KERNELS)).expect("the families") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, kernels.join(path.file_name().expect("a name"))).expect("a copy");
    }
    folder
}

fn asked<'a>(family: &'a str, variant: &'a str) -> Asked<'a> {
    Asked { family, variant, like: None, new_family: false }
}

fn refused(root: &Path, asked: &Asked, says: &str) {
    let error = format!("{:#}", changes(root, asked).expect_err(says));
    assert!(error.contains(says), "{error}");
}

#[test]
fn a_variant_changes_its_familys_file_alone_and_is_a_copy_of_the_first_kernel() {
    let (kernel, changes) = changes(root(), &asked("transpose", "diagonal")).expect("a new variant");
    let [Change { file, before: Some(before), after }] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((kernel.as_str(), file.as_path()), ("transpose_diagonal", Path::new("gpu/src/kernels/transpose.rs")));
    assert!(
        after.contains(
            "            Entry { kernel: transpose_diagonal::KERNEL, plan: |case| copy(case) },\n        ],\n"
        )
    );
    let (_, behind) = after.split_once("/// Like [`transpose_copy`], so far the same").expect("its comment");
    assert!(
        behind.contains("**Look for**") && behind.contains("\n#[kernel]\npub unsafe fn transpose_diagonal(src: "),
        "{behind}"
    );
    // Nothing is lost: without what is new it is what was there.
    let added = after.lines().count() - before.lines().count();
    let mut rest = after.lines();
    assert!(before.lines().all(|line| rest.any(|other| other == line)), "{after}");
    assert!((10..60).contains(&added), "{added} lines");
    assert_eq!(formatted(after).expect("rustfmt").lines().count(), after.lines().count());
}

#[test]
fn a_variant_may_be_like_another_kernel_of_the_family() {
    let like = Asked { like: Some("transpose_tiled"), ..asked("transpose", "diagonal") };
    let (_, changes) = changes(root(), &like).expect("a new variant");
    assert!(changes[0].after.contains("Entry { kernel: transpose_diagonal::KERNEL, plan: |case| tiled(case, 32) },"));
    assert!(changes[0].after.contains("/// Like [`transpose_tiled`], so far the same"));
    let none = Asked { like: Some("copy_vec2"), ..asked("transpose", "diagonal") };
    refused(root(), &none, "--like copy_vec2: gpu/src/kernels/transpose.rs lists no such kernel, but transpose_copy, ");
    let nowhere = Asked { like: Some("copy_vec2"), ..asked("histogram", "global") };
    refused(root(), &nowhere, "--like copy_vec2: there is no family `histogram`");
}

#[test]
fn a_family_is_a_file_and_a_line() {
    let folder = workspace();
    let (kernel, changes) = changes(folder.path(), &asked("histogram", "global")).expect("a new family");
    write_all(folder.path(), &changes).expect("both are written");
    let text = |file: &str| std::fs::read_to_string(folder.path().join(KERNELS).join(file)).expect(file);
    let (family, list) = (text("histogram.rs"), text("mod.rs"));
    assert_eq!(kernel, "histogram_global");
    assert!(family.starts_with("//! Histogram: ") && family.contains("pub unsafe fn histogram_global("), "{family}");
    assert!(family.contains("name: \"histogram\"") && !family.contains("template"), "{family}");
    assert!(list.ends_with("    nchw_tiles\n    histogram\n}\n"), "{list}");
    // And a variant of that.
    let (_, again) = super::changes(folder.path(), &asked("histogram", "shared")).expect("a variant");
    assert!(again.len() == 1 && again[0].after.contains("Entry { kernel: histogram_shared::KERNEL, plan }"));
    refused(
        folder.path(),
        &asked("histogram", "global"),
        "gpu/src/kernels/histogram.rs:14 has a `histogram_global` already",
    );
}

#[test]
fn what_cannot_be_written_is_refused_with_the_way_out() {
    let folder = workspace();
    let root = folder.path();
    refused(root, &asked("copy", "coalesced"), "has a `copy_coalesced` already: choose another variant");
    refused(root, &asked("transpose", "tiles_swizzled"), "transpose_tiles.rs:");
    refused(root, &asked("transpose", "through"), "has a `transpose_through` already");
    refused(root, &asked("transpose", "Diagonal"), "`Diagonal` is no name of a variant");
    refused(root, &asked("transpose", "transpose_diagonal"), "`cargo xtask new transpose diagonal` makes");
    refused(root, &asked("pthread", "create"), "`pthread_create` is a name of C's library");
    refused(root, &asked("transpos", "diagonal"), "there is `transpose`: `cargo xtask new transpose diagonal`");
    refused(root, &Asked { new_family: true, ..asked("copy", "new") }, "leave --new-family out");
    let near = Asked { new_family: true, ..asked("transpos", "diagonal") };
    assert_eq!(changes(root, &near).expect("a family of its own").1.len(), 2);

    let file = |name: &str| root.join(KERNELS).join(name);
    std::fs::write(file("stencil.rs"), "//! A file.\n").expect("a file");
    refused(root, &asked("stencil", "naive"), "mod.rs does not list it: add the line `stencil`");
    for (text, says) in [
        ("pub fn a( {}\n", "copy.rs:1:"),
        ("//! Copy.\n", "no list `kernels: &[Entry { … }, …]`"),
        ("family! { pub static FAMILY: Family = Family { kernels: &[] }; }\n", "has no entry of the form"),
        ("family! { pub static FAMILY: Family = Family { kernels: &[all!()] }; }\n", "has no entry of the form"),
        (
            "family! { pub static FAMILY: Family = Family { kernels: &[Entry { kernel: copy_a::KERNEL, plan }] }; }\n",
            "the list has `copy_a`, and no function of that name stands under `#[kernel]`",
        ),
        ("#!/bin/sh\n", "begins with a byte order mark or `#!`"),
    ] {
        std::fs::write(file("copy.rs"), text).expect("a file");
        refused(root, &asked("copy", "new"), says);
        assert_eq!(std::fs::read_to_string(file("copy.rs")).expect("the file"), text, "nothing is written");
    }
    std::fs::write(file("mod.rs"), "pub mod copy;\n").expect("a file");
    refused(root, &asked("histogram", "global"), "mod.rs: no list `families! { … }`");
}

#[test]
fn a_familys_file_does_not_grow_past_what_a_test_holds() {
    let folder = workspace();
    let file = folder.path().join(KERNELS).join("copy.rs");
    let text = std::fs::read_to_string(&file).expect("the family");
    std::fs::write(&file, format!("{}{text}", "//! More.\n".repeat(240))).expect("a file");
    refused(folder.path(), &asked("copy", "new"), "and a family's file has fewer than 350: begin a family of its own");
}

#[test]
fn of_two_files_none_is_left_if_one_cannot_be_written() {
    let folder = workspace();
    let (_, mut changes) = changes(folder.path(), &asked("histogram", "global")).expect("a new family");
    // No file can be written where a file is a folder.
    changes[1].file = Path::new(KERNELS).join("copy.rs/mod.rs");
    let error = write_all(folder.path(), &changes).expect_err("it cannot be written");
    assert!(format!("{error:#}").contains("nothing was changed"), "{error:#}");
    assert!(!folder.path().join(KERNELS).join("histogram.rs").exists());
}

/// A library as it was compiled for this test.
fn library(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("the path of this test");
    let folder = this.parent().expect("a folder");
    let entries = folder.read_dir().expect("the folder of this test").flatten().map(|entry| entry.path());
    let begin = format!("lib{name}-");
    let is_library = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with(&begin) && file.ends_with(".rlib")
    };
    let age = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).expect("a time");
    entries.filter(is_library).max_by_key(age).expect("the library beside this test")
}

#[test]
fn a_variant_of_every_family_and_a_new_family_compile() {
    let folder = workspace();
    let list = std::fs::read_to_string(folder.path().join(KERNELS).join("mod.rs")).expect("the list");
    let mut written = 0;
    for family in file::families(Path::new("mod.rs"), &list).expect("the families") {
        match changes(folder.path(), &asked(&family, "of_this_test")) {
            Ok((_, changes)) => {
                write_all(folder.path(), &changes).expect("a file");
                written += 1;
            }
            // It must be short to begin with.
            Err(error) => assert!(error.to_string().contains("fewer than 350"), "{family}: {error:#}"),
        }
    }
    assert!(written > 20, "{written} variants");
    let (_, family) = changes(folder.path(), &asked("histogram", "global")).expect("a new family");
    write_all(folder.path(), &family).expect("its files");
    let root_file = folder.path().join("gpu/src/lib.rs");
    std::fs::write(&root_file, "extern crate alloc;\npub use gpu::{device, suite};\npub mod kernels;\n")
        .expect("a source");
    let mut rustc = std::process::Command::new("rustc");
    rustc.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--out-dir"]).arg(folder.path());
    let facade = library("gpu");
    rustc.arg("-L").arg(format!("dependency={}", facade.parent().expect("a folder").display()));
    rustc.arg("--extern").arg(format!("gpu={}", facade.display()));
    rustc.arg("--extern").arg(format!("libm={}", library("libm").display())).arg(root_file).current_dir(root());
    let output = rustc.output().expect("rustc runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("warning"), "{said}");
}
