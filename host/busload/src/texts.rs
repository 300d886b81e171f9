//! The text of the files that kernels stand in. That of the suite's own is built in, so it need not be at hand; any other is read where it
//! was compiled, or from where the user stands.

use crate::input;
use gpu::kernels::{FAMILIES, SOURCES};
use gpu::suite::Kernel;
use std::borrow::Cow;
use std::path::Path;

/// The text of a file that was compiled with a kernel, as positions in it name it; none if it is not at hand.
#[must_use]
pub(crate) fn of(kernel: &Kernel, file: &str) -> Option<Cow<'static, str>> {
    let stands_in = |own: &Kernel| own.file == file && own.folder == kernel.folder;
    let built_in = FAMILIES.iter().zip(SOURCES);
    let mut built_in = built_in.filter(|(family, _)| family.kernels.iter().any(|entry| stands_in(&entry.kernel)));
    match built_in.next() {
        Some((_, text)) => Some(Cow::Borrowed(*text)),
        None => read(Path::new(kernel.folder), Path::new(file)).map(Cow::Owned),
    }
}

/// A file named relative to the workspace of the package in `folder`, which is that folder or one around it; or to where the user stands.
fn read(folder: &Path, file: &Path) -> Option<String> {
    let places = folder.ancestors().chain([Path::new("")]).map(|folder| folder.join(file));
    places.into_iter().filter(|place| place.is_file()).find_map(|place| input::text(place, input::SOURCE).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_from_the_folder_of_its_package_up() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let package = folder.path().join("crates/mine");
        std::fs::create_dir_all(package.join("src")).expect("a folder");
        std::fs::write(package.join("src/lib.rs"), "text").expect("a file");
        for file in ["src/lib.rs", "crates/mine/src/lib.rs"] {
            assert_eq!(read(&package, Path::new(file)).as_deref(), Some("text"), "{file}");
        }
        assert_eq!(read(&package, &package.join("src/lib.rs")).as_deref(), Some("text"), "by its whole path");
        assert_eq!(read(&package, Path::new("src/none.rs")), None);
    }

    #[test]
    fn the_suites_own_text_is_built_in() {
        let elsewhere = FAMILIES[0].kernels[0].kernel;
        assert_eq!(of(&elsewhere, elsewhere.file), Some(Cow::Borrowed(SOURCES[0])));
        assert_eq!(of(&Kernel { folder: "/nowhere", ..elsewhere }, "gpu/src/kernels/none.rs"), None);
    }
}
