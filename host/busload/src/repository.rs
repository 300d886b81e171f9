//! Where files stand in the repository that one stands in: tools beside a checkout name them from its top.

use std::path::{Component, Path, PathBuf};

/// A checkout, and where one stands in it.
#[derive(Clone, Debug, Default)]
pub struct Repository {
    /// Its top; none if one stands in no checkout.
    top: Option<PathBuf>,
    /// The folder that one stands in.
    here: PathBuf,
}

impl Repository {
    /// The checkout that one stands in.
    #[must_use]
    pub fn here() -> Self {
        Self::around(&std::env::current_dir().unwrap_or_default())
    }

    /// The checkout that a folder stands in.
    #[must_use]
    pub fn around(folder: &Path) -> Self {
        let top = folder.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned);
        Self { top, here: folder.to_owned() }
    }

    /// A file as it is named from the top, with `/` between its parts; as it is if it stands elsewhere.
    #[must_use]
    pub fn path(&self, file: &str) -> String {
        let Some(top) = &self.top else { return slashed(Path::new(file)) };
        let path = Path::new(file);
        // The sources of the suite are named from its top, wherever one stands.
        let from_here = self.here.join(path);
        let whole = if from_here.exists() { from_here } else { top.join(path) };
        slashed(normal(&whole).strip_prefix(top).unwrap_or(path))
    }
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut done, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                done.pop();
            }
            part => done.push(part),
        }
        done
    })
}

fn slashed(path: &Path) -> String {
    let text = path.to_string_lossy().into_owned();
    if cfg!(windows) { text.replace('\\', "/") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_from_the_top_of_the_checkout() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path();
        for made in [".git", "own/src", "gpu/src"] {
            std::fs::create_dir_all(top.join(made)).expect("a folder");
        }
        for file in ["own/src/lib.rs", "gpu/src/copy.rs", "k.toml"] {
            std::fs::write(top.join(file), "").expect("a file");
        }
        let inside = Repository::around(&top.join("own"));
        assert_eq!(inside.path("src/lib.rs"), "own/src/lib.rs");
        assert_eq!(inside.path("./src/../src/lib.rs"), "own/src/lib.rs");
        assert_eq!(inside.path("../k.toml"), "k.toml");
        assert_eq!(inside.path("gpu/src/copy.rs"), "gpu/src/copy.rs");
        assert_eq!(inside.path(top.join("k.toml").to_str().expect("text")), "k.toml");
        assert_eq!(inside.path("/usr/include/cuda.h"), "/usr/include/cuda.h");
        assert_eq!(Repository::default().path("src/lib.rs"), "src/lib.rs");
    }
}
