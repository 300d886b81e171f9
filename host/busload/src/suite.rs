//! A suite: families of kernels and their PTX. Every command is of one: [`BUSLOAD`], or that of a crate with kernels of its own, made by
//! [`main!`](crate::main).

use crate::ptx;
use crate::texts;
use gpu::kernels::{COUNTEREXAMPLES, FAMILIES};
use gpu::suite::{Entry, Family};
use std::path::{Path, PathBuf};

/// Families of kernels and their PTX.
#[derive(Clone, Copy)]
pub struct Suite {
    /// What it is called: the package of its kernels.
    pub name: &'static str,
    /// The families, in the order of the curriculum.
    pub families: &'static [&'static Family],
    /// Kernels that are wrong on purpose, by family: no PTX has them, and the simulator must refuse them.
    pub counterexamples: &'static [(&'static Family, &'static [Entry])],
    /// Where its PTX is.
    pub module: Module,
}

/// Where the PTX of a suite is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Module {
    /// In the program.
    BuiltIn {
        /// The file that it was, as positions name it that its line table does not.
        file: &'static str,
        /// Its text.
        text: &'static str,
    },
    /// In the folder of the package whose library has the kernels, where the command `ptx` builds it.
    Package {
        /// The folder of its `Cargo.toml`.
        folder: &'static str,
    },
}

/// The suite that busload is made of.
pub static BUSLOAD: Suite = Suite {
    name: "busload-gpu",
    families: FAMILIES,
    counterexamples: COUNTEREXAMPLES,
    module: Module::BuiltIn { file: ptx::FILE, text: ptx::EMBEDDED },
};

impl Suite {
    /// The suite of a package: its name, the folder of its `Cargo.toml`, and the families of its library.
    #[must_use]
    pub const fn of_package(name: &'static str, folder: &'static str, families: &'static [&'static Family]) -> Self {
        Self { name, families, counterexamples: &[], module: Module::Package { folder } }
    }

    /// Whether it is busload's own, which predictions were held to and claims are of.
    #[must_use]
    pub fn is_busload(&self) -> bool {
        self.name == BUSLOAD.name
    }

    /// Every kernel with its family, in the order of the curriculum.
    pub fn entries(&self) -> impl Iterator<Item = (&'static Family, &'static Entry)> + use<> {
        self.families.iter().flat_map(|family| family.kernels.iter().map(move |entry| (*family, entry)))
    }

    /// The names of its kernels, in the order of the curriculum.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.entries().map(|(_, entry)| entry.kernel.name)
    }

    /// The names of its counterexamples.
    pub fn counterexample_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.counterexamples.iter().flat_map(|(_, entries)| *entries).map(|entry| entry.kernel.name)
    }

    /// The kernels in the text of the families' files that are in no list, each with its file.
    pub fn unlisted(&self) -> impl Iterator<Item = (String, &'static str)> + use<> {
        let listed: Vec<_> = self.names().chain(self.counterexample_names()).collect();
        let kernels = self.families.iter().filter_map(|family| family.kernels.first().map(|entry| entry.kernel));
        let files = kernels.filter_map(|kernel| Some((kernel.file, texts::of(&kernel, kernel.file)?)));
        let kernels = files.flat_map(|(file, text)| in_text(&text).into_iter().map(move |name| (name, file)));
        kernels.filter(move |(name, _)| !listed.contains(&name.as_str()))
    }

    /// The file of its PTX: that of a package is beside its sources, to be committed with them.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        match self.module {
            Module::BuiltIn { file, .. } => PathBuf::from(file),
            Module::Package { folder } => {
                Path::new(folder).join(format!("ptx/{}_sm_80.ptx", self.name.replace('-', "_")))
            }
        }
    }
}

/// The names of the functions under a line `#[kernel]`.
fn in_text(text: &str) -> Vec<String> {
    let mut lines = text.lines();
    let kernels = std::iter::from_fn(move || {
        lines.find(|line| line.trim() == "#[kernel]")?;
        lines.find_map(|line| line.split_once("fn ")?.1.split('(').next())
    });
    kernels.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_in_the_text_are_those_in_the_lists() {
        let text = "/// One.\n#[kernel]\n#[allow(x)]\npub unsafe fn a(src: u32) {}\nfn b() {}\n    #[kernel]\n    unsafe fn c(\n";
        assert_eq!(in_text(text), ["a", "c"]);
        // So whoever forgets the entry of a kernel is told, and nobody else.
        let written: usize = gpu::kernels::SOURCES.iter().map(|text| in_text(text).len()).sum();
        assert_eq!(written, BUSLOAD.names().count() + BUSLOAD.counterexample_names().count());
        assert_eq!(BUSLOAD.unlisted().next(), None);
    }

    #[test]
    fn the_ptx_of_a_package_stands_beside_its_sources() {
        let suite = Suite::of_package("own-crate", "/somewhere", &[]);
        assert_eq!(suite.file(), Path::new("/somewhere/ptx/own_crate_sm_80.ptx"));
        assert!(!suite.is_busload() && BUSLOAD.is_busload());
    }
}
