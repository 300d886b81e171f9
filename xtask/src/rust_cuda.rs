//! Drives rust-cuda's toolchain: a nightly with rustc-dev, LLVM 7, libNVVM, and `gpu/nvvm`, a workspace of its own.

use crate::command::command;
use anyhow::{Context, Result, ensure};
use busload::build::{Built, output};
use busload::cli::Usage;
use busload::input;
use busload::report;
use sources::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The toolchain that the pinned revision of rust-cuda is written for: see gpu/nvvm/rust-toolchain.toml.
pub(crate) const TOOLCHAIN: &str = "nightly-2026-04-02";

/// The pinned revision: see gpu/nvvm/Cargo.toml.
const REVISION: &str = "946c91f080770f30d42d7c706ac8185969274073";

/// Where rust-cuda looks for the CUDA toolkit.
const CUDA_VARIABLES: [&str; 3] = ["CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"];
const CUDA_FOLDERS: [&str; 3] = ["/usr/lib/cuda", "/usr/local/cuda", "/opt/cuda"];

/// What the back end and `nvvm` look for in the CUDA toolkit; the library by the name that it is linked by.
const LIBNVVM: [&str; 3] = ["nvvm/include/nvvm.h", "nvvm/lib64/libnvvm.so.4", "nvvm/libdevice/libdevice.10.bc"];

/// How `gpu/nvvm/builder` sets up cuda_builder.
const SETTINGS: [&str; 5] =
    ["fma_contraction(false)", "ftz(false)", "fast_div(false)", "fast_sqrt(false)", "override_libm(true)"];

/// What this machine lacks to build with rust-cuda, each with the way to get it; nothing if it has it all.
pub(crate) fn missing(toolchain: &str) -> Vec<String> {
    let mut missing = match sysroot(toolchain) {
        Ok(sysroot) => missing_components(&sysroot, toolchain),
        Err(_) => vec![format!(
            "the toolchain {toolchain}: run `rustup toolchain install {toolchain} --component rust-src,rustc-dev,llvm-tools`"
        )],
    };
    let llvm_config = std::env::var("LLVM_CONFIG").unwrap_or_else(|_| "llvm-config".to_owned());
    match output(Command::new(&llvm_config).arg("--version")) {
        Ok(version) if version.starts_with("7.") => {}
        Ok(version) => missing.push(format!(
            "LLVM 7: {llvm_config} is that of LLVM {}; set LLVM_CONFIG to the llvm-config of LLVM 7",
            version.trim()
        )),
        Err(_) => missing.push(format!("LLVM 7: {llvm_config} does not run; set LLVM_CONFIG to its llvm-config")),
    }
    match cuda_root() {
        Some(root) => missing.extend(missing_libraries(&root)),
        None => missing
            .push(format!("libNVVM: no CUDA toolkit in {}; set CUDA_PATH to its folder", CUDA_FOLDERS.join(", "))),
    }
    if !has_libclang() {
        missing.push("libclang: install it (Debian's package libclang-dev), or set LIBCLANG_PATH to its folder".into());
    }
    missing
}

/// Where a toolchain is, also one that is linked.
fn sysroot(toolchain: &str) -> Result<PathBuf> {
    let mut rustc = command("rustup");
    rustc.args(["run", toolchain, "rustc", "--print", "sysroot"]).env_remove("RUSTUP_TOOLCHAIN");
    Ok(output(&mut rustc)?.trim().into())
}

/// The components that a toolchain lacks, by their files: rustup lists none of a linked one.
fn missing_components(sysroot: &Path, toolchain: &str) -> Vec<String> {
    let rustlib = sysroot.join("lib/rustlib");
    let targets: Vec<_> = rustlib.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let holds = |folder: &str, beginning: &str| {
        let entries = targets.iter().flat_map(|target| target.join(folder).read_dir()).flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(beginning))
    };
    let components = [
        ("rust-src", rustlib.join("src/rust/library/core/src/lib.rs").is_file()),
        ("rustc-dev", holds("lib", "librustc_driver-")),
        ("llvm-tools", holds("bin", "llvm-")),
    ];
    let missing = components.into_iter().filter(|(_, is_there)| !is_there);
    missing
        .map(|(component, _)| {
            format!(
                "the component {component}, in {}: run `rustup component add --toolchain {toolchain} {component}`, or for a \
                 linked toolchain link one that has it",
                sysroot.display()
            )
        })
        .collect()
}

/// What a CUDA toolkit lacks.
fn missing_libraries(toolkit: &Path) -> Vec<String> {
    let missing = LIBNVVM.into_iter().filter(|file| !toolkit.join(file).exists());
    missing
        .map(|file| format!("libNVVM: {} has no {file}; install the whole CUDA toolkit", toolkit.display()))
        .collect()
}

pub(crate) fn cuda_root() -> Option<PathBuf> {
    let named = CUDA_VARIABLES.into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    named.chain(CUDA_FOLDERS.map(PathBuf::from)).find(|root| root.join("include/cuda.h").is_file())
}

fn has_libclang() -> bool {
    let is_libclang = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libclang.so") || name.starts_with("libclang-")
    };
    let holds = |folder: &Path| {
        folder.read_dir().is_ok_and(|entries| entries.flatten().any(|entry| is_libclang(&entry.path())))
    };
    if let Some(path) = std::env::var_os("LIBCLANG_PATH").map(PathBuf::from) {
        return is_libclang(&path) || holds(&path);
    }
    let mut folders: Vec<PathBuf> =
        ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu"].map(Into::into).into();
    let versions = Path::new("/usr/lib").read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    folders.extend(versions.filter(|path| path.to_string_lossy().contains("/llvm")).map(|path| path.join("lib")));
    folders.iter().any(|folder| holds(folder))
}

/// Compiler, flags, and the PTX by rust-cuda: of the pinned revision, or of a checkout.
pub(crate) fn build(toolchain: &str, checkout: Option<&Path>, arch: &str) -> Result<Built> {
    let missing = missing(toolchain);
    if !missing.is_empty() {
        return Err(Usage(anyhow::anyhow!(
            "this machine cannot build with rust-cuda; it lacks\n  {}",
            missing.join("\n  ")
        ))
        .into());
    }
    let toolkit = cuda_root().context("the CUDA toolkit")?;
    let target = root().join(if checkout.is_some() { "target/nvvm-checkout" } else { "target/nvvm" });
    // Cargo does not see that the back end, or libNVVM, has changed.
    let kernels = target.join("nvptx64-nvidia-cuda");
    if kernels.exists() {
        std::fs::remove_dir_all(&kernels).with_context(|| kernels.display().to_string())?;
    }
    std::fs::create_dir_all(&target).with_context(|| target.display().to_string())?;
    let ptx = target.join("busload.ptx");
    let extra = match checkout {
        None => vec!["--locked".to_owned()],
        Some(path) => patches(path)?,
    };
    let lock = Lock::keep(root().join("gpu/nvvm/Cargo.lock"))?;
    let mut cargo = command("rustup");
    cargo.current_dir(root().join("gpu/nvvm")).args(["run", toolchain, "cargo", "run", "--release"]).args(&extra);
    cargo.args(["--package", "busload-nvvm-builder", "--"]).arg(&ptx).arg(arch.replace("sm_", "compute_")).args(&extra);
    // The cargo that runs this program tells its children of a toolchain and of settings that are not rust-cuda's.
    for variable in [
        "CARGO",
        "RUSTC",
        "RUSTDOC",
        "RUSTUP_TOOLCHAIN",
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "OUT_DIR",
        "PROFILE",
        "TARGET",
        "HOST",
        "CARGO_WORKSPACE_DIR",
        "CARGO_WORKSPACE_ROOT",
        "USE_PREBUILT_LLVM",
    ] {
        cargo.env_remove(variable);
    }
    let mut libraries = toolkit.join("nvvm/lib64").into_os_string();
    if let Some(others) = std::env::var_os("LD_LIBRARY_PATH") {
        libraries.push(":");
        libraries.push(others);
    }
    cargo.env("CARGO_TARGET_DIR", &target).env("LD_LIBRARY_PATH", libraries).env("CUDA_PATH", &toolkit);
    // Else a rustc that did not run once, say for want of a library, fails alike for ever after.
    cargo.env("CARGO_CACHE_RUSTC_INFO", "0");
    let status = cargo.status().context("running rustup")?;
    drop(lock);
    ensure!(status.success(), "rust-cuda did not build the kernels");
    let text = input::text(&ptx, input::SOURCE)?;
    let rustc =
        output(command("rustup").args(["run", toolchain, "rustc", "--version"]).env_remove("RUSTUP_TOOLCHAIN"))?;
    let nvvm = text
        .lines()
        .find_map(|line| line.strip_prefix("// Cuda compilation tools, "))
        .unwrap_or("of an unknown release");
    let source = checkout.map_or_else(|| REVISION.to_owned(), |path| path.display().to_string());
    let compiler = format!("{}, rust-cuda {source}, libNVVM {nvvm}", rustc.trim());
    Ok(Built { compiler, flags: SETTINGS.join(", "), ptx: text })
}

/// The options by which cargo takes rust-cuda's crates from a checkout.
fn patches(checkout: &Path) -> Result<Vec<String>> {
    let path = checkout.canonicalize().with_context(|| format!("--rust-cuda {}", checkout.display()))?;
    let mut options = Vec::new();
    for name in ["cuda_std", "cuda_builder"] {
        let folder = path.join("crates").join(name);
        if !folder.join("Cargo.toml").is_file() {
            return Err(Usage(anyhow::anyhow!(
                "--rust-cuda {}: no checkout of rust-cuda, it has no crates/{name}",
                checkout.display()
            ))
            .into());
        }
        let patch =
            format!(r#"patch."https://github.com/Rust-GPU/rust-cuda".{name}.path={:?}"#, folder.display().to_string());
        options.extend(["--config".to_owned(), patch]);
    }
    Ok(options)
}

/// Puts a lock file back as it was: a checkout's crates would stay in it.
struct Lock {
    file: PathBuf,
    text: Vec<u8>,
}

impl Lock {
    fn keep(file: PathBuf) -> Result<Self> {
        let text = input::bytes(&file, input::SOURCE)?;
        Ok(Self { file, text })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if input::bytes(&self.file, input::SOURCE).is_ok_and(|now| now != self.text)
            && let Err(error) = std::fs::write(&self.file, &self.text)
        {
            report::say(&format!("warning: {} could not be put back: {error}", self.file.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(folder: &Path, file: &str) {
        let file = folder.join(file);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, "").expect("a file");
    }

    #[test]
    fn a_toolchains_components_are_known_by_their_files() {
        let sysroot = tempfile::tempdir().expect("a temporary folder");
        let missing = || missing_components(sysroot.path(), "mine").join("\n");
        // What every toolchain has.
        touch(sysroot.path(), "lib/librustc_driver-1.so");
        touch(sysroot.path(), "lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld");
        touch(sysroot.path(), "lib/rustlib/x86_64-unknown-linux-gnu/lib/librustc_demangle-1.rlib");
        for (component, file) in [
            ("rust-src", "lib/rustlib/src/rust/library/core/src/lib.rs"),
            ("rustc-dev", "lib/rustlib/x86_64-unknown-linux-gnu/lib/librustc_driver-1.so"),
            ("llvm-tools", "lib/rustlib/x86_64-unknown-linux-gnu/bin/llvm-ar"),
        ] {
            assert!(missing().contains(&format!("--toolchain mine {component}")), "{}", missing());
            touch(sysroot.path(), file);
            assert!(!missing().contains(component), "{}", missing());
        }
        assert_eq!(missing(), "");
    }

    #[test]
    fn libnvvm_is_looked_for_by_the_name_that_it_is_linked_by() {
        let toolkit = tempfile::tempdir().expect("a temporary folder");
        for file in ["nvvm/include/nvvm.h", "nvvm/libdevice/libdevice.10.bc", "nvvm/lib64/libnvvm.so"] {
            touch(toolkit.path(), file);
        }
        let missing = missing_libraries(toolkit.path());
        assert!(missing.len() == 1 && missing[0].contains("has no nvvm/lib64/libnvvm.so.4"), "{missing:?}");
        touch(toolkit.path(), "nvvm/lib64/libnvvm.so.4");
        assert_eq!(missing_libraries(toolkit.path()), [""; 0]);
    }

    #[test]
    fn the_header_says_how_the_builder_sets_up_cuda_builder() {
        let builder = std::fs::read_to_string(root().join("gpu/nvvm/builder/src/main.rs")).expect("the builder");
        let set = builder.lines().filter_map(|line| line.trim().trim_end_matches(';').strip_prefix('.'));
        let set: Vec<_> = set.filter(|call| call.ends_with("(true)") || call.ends_with("(false)")).collect();
        assert_eq!(set, SETTINGS);
    }
}
