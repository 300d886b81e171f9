//! What the compiler says of kernels that it refuses.

use busload_tests::root;
use std::path::PathBuf;
use std::process::Command;

/// The facade as it was compiled for this test.
fn facade() -> PathBuf {
    let this = std::env::current_exe().expect("the path of this test");
    let folder = this.parent().expect("a folder");
    let entries = folder.read_dir().expect("the folder of this test").flatten().map(|entry| entry.path());
    let is_facade = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libgpu-") && name.ends_with(".rlib")
    };
    let age = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).expect("a time");
    entries.filter(is_facade).max_by_key(age).expect("the library gpu beside this test")
}

/// What rustc says of a crate, which it must refuse.
fn refused(source: &str) -> String {
    let (is_taken, said) = compiled(source, "gpu");
    assert!(!is_taken, "it compiles: {said}");
    said
}

/// Whether rustc takes a crate which has the facade by this name, and what it says.
fn compiled(source: &str, name: &str) -> (bool, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("kernel.rs");
    std::fs::write(&file, source).expect("a source");
    let facade = facade();
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--out-dir"]).arg(folder.path());
    rustc.arg("-L").arg(format!("dependency={}", facade.parent().expect("a folder").display()));
    rustc.arg("--extern").arg(format!("{name}={}", facade.display())).arg(file).current_dir(root());
    let output = rustc.output().expect("rustc runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

const COPY: &str = "#[kernel]\npub unsafe fn a(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let value = |i: usize| src.load(i);
    tile.store(thread::thread_idx_x(), value(0));
    dst.store(0, tile.load(0));
}
";

#[test]
fn a_kernels_crate_has_the_facade_by_any_name() {
    let (is_taken, said) = compiled(&format!("use renamed::device::prelude::*;\n{COPY}"), "renamed");
    assert!(is_taken, "{said}");
    let inner = format!("use gpu::device::prelude::*;\npub mod gpu_kernels {{ use super::*; {COPY} }}");
    let (is_taken, said) = compiled(&inner, "gpu");
    assert!(is_taken, "{said}");
}

#[test]
fn a_file_without_the_prelude_is_told_what_it_lacks() {
    let said = refused("use gpu::device::{Global, kernel};\n#[kernel]\npub unsafe fn a(_src: Global<f32>) {}\n");
    assert!(said.contains("`busload_prelude`"), "{said}");
}

#[test]
fn a_type_that_cannot_be_a_parameter_is_refused_with_those_that_can() {
    for ty in ["&'static [f32]", "f64"] {
        let said = refused(&format!(
            "use gpu::device::prelude::*;\n#[kernel]\npub unsafe fn a(_src: Global<f32>, _other: {ty}) {{}}\n"
        ));
        assert!(said.contains(&format!("`{ty}` cannot be a kernel's parameter")), "{said}");
        assert!(said.contains("`Global<f32>` to read") && said.contains("kernel.rs:3:"), "{said}");
    }
}

#[test]
fn a_name_that_c_or_cuda_has_is_refused_with_another() {
    for (name, owner) in [("printf", "C's library"), ("memcpy", "C's library"), ("rsqrt", "CUDA")] {
        let said = refused(&format!(
            "use gpu::device::prelude::*;\n#[kernel]\npub unsafe fn {name}(_src: Global<f32>) {{}}\n"
        ));
        assert!(said.contains(&format!("`{name}` is a name of {owner}")), "{said}");
        assert!(said.contains(&format!("as in `copy_{name}`")) && said.contains("kernel.rs:3:"), "{said}");
    }
}

#[test]
fn what_touches_memory_past_the_facade_is_refused_with_the_way_through_it() {
    for (body, says) in [
        ("dst.store(0, *src);", "`src.load(0)` reads an element"),
        ("*dst = 1.0;", "`dst.store(0, value)` writes one"),
        ("dst.store(i, src[i]);", "`src.load(i)` reads an element"),
        ("dst[i] = 1.0;", "`dst.store(i, value)` writes one"),
        ("let p = 16 as *const f32; dst.store(i, *p);", "a kernel has no raw pointers"),
    ] {
        let said = refused(&format!(
            "use gpu::device::prelude::*;\n#[kernel]\npub unsafe fn a_kernel(src: Global<f32>, dst: GlobalMut<f32>) {{\n    let i = \
             thread::index_x();\n    {body}\n}}\n"
        ));
        assert!(said.contains(says) && said.contains("kernel.rs:5:"), "{body}: {said}");
    }
    let said = refused("use gpu::device::prelude::*;\n#[kernel]\npub unsafe fn a_kernel(src: *const f32) {}\n");
    assert!(
        said.contains("`*const f32` cannot be a kernel's parameter") && said.contains("`Global<f32>` to read"),
        "{said}"
    );
}

#[test]
fn two_kernels_of_one_name_are_refused_at_the_second() {
    let kernel = "#[kernel]\npub unsafe fn a_kernel(_src: Global<f32>) {}\n";
    let said = refused(&format!("use gpu::device::prelude::*;\n{kernel}{kernel}"));
    assert!(said.contains("the name `a_kernel` is defined multiple times") && said.contains("kernel.rs:4:"), "{said}");
}

#[test]
fn a_value_that_no_primitive_takes_is_refused_with_those_that_it_takes() {
    for (call, reason, way_out) in [
        ("warp::shuffle(warp::FULL, 1u16, 0)", "no shuffle moves a `u16`", "vectors of 4 bytes"),
        ("warp::reduce_add(warp::FULL, 1.0f32)", "no reduction of a warp takes values of type `f32`", "`shuffle_xor`"),
        ("warp::match_any(warp::FULL, 1u8)", "no match compares values of type `u8`", "`u32`"),
        ("tile.copy_async(0, src, 0)", "no asynchronous copy moves a `u16`", "`cast` narrower elements to vectors"),
    ] {
        let said = refused(&format!(
            "use gpu::device::prelude::*;\n#[kernel]\npub unsafe fn a(src: Global<u16>) {{\n    let tile = shared!([u16; 64]);\n    \
             tile.store(0, src.load(0));\n    let _ = {call};\n}}\n"
        ));
        assert!(said.contains(reason) && said.contains(way_out) && said.contains("kernel.rs:6:"), "{call}: {said}");
    }
}

#[test]
fn an_array_outside_a_kernel_is_told_where_it_belongs() {
    for array in ["shared", "constant"] {
        let said = refused(&format!(
            "use gpu::device::prelude::*;\n#[device]\nunsafe fn part() {{\n    let array = {array}!([f32; 64]);\n    let _ = array.load(0);\n}}\n"
        ));
        assert!(said.contains(&format!("{array} memory is a kernel's")) && said.contains("under #[kernel]"), "{said}");
        assert!(!said.contains("no rules expected"), "{said}");
    }
}
