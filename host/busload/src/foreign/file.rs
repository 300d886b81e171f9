//! Launch files: what they may hold, and where in them something stands. `docs/running-your-ptx.md` has every key.

use crate::input;
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Something in a file that makes no sense: the file, its line, what stands there, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

/// A launch file.
pub struct LaunchFile {
    path: PathBuf,
    text: String,
    /// The module, if the file names one.
    pub ptx: Option<Spanned<String>>,
    /// What is launched, in this order.
    pub launches: Vec<Spanned<LaunchTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    ptx: Option<Spanned<String>>,
    #[serde(default)]
    launch: Vec<Spanned<LaunchTable>>,
}

/// `[[launch]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchTable {
    /// The entry.
    pub entry: Spanned<String>,
    /// What reports call the launch, if not as its entry.
    pub name: Option<Spanned<String>>,
    /// Blocks.
    pub grid: Spanned<Extent>,
    /// Threads of a block.
    pub block: Spanned<Extent>,
    /// Bytes of dynamic shared memory a block.
    pub shared: Option<Spanned<u64>>,
    /// One for each parameter, in their order.
    #[serde(default)]
    pub arguments: Vec<Spanned<ArgumentTable>>,
    /// What stands in variables of the module before the launch.
    #[serde(default)]
    pub variables: Vec<Spanned<ArgumentTable>>,
}

/// An argument, or a variable of the module.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentTable {
    /// What reports call it; of a variable its name in the module.
    pub name: Option<Spanned<String>>,
    /// A scalar.
    pub value: Option<Spanned<Number>>,
    /// The bytes of a parameter that is no scalar, in hexadecimal.
    pub bytes: Option<Spanned<String>>,
    /// A pointer to a buffer of elements of that type.
    pub buffer: Option<Spanned<String>>,
    /// How many.
    pub length: Option<Spanned<u64>>,
    /// What they hold.
    pub fill: Option<Spanned<Fill>>,
    /// The least and the greatest of noise.
    pub range: Option<Spanned<[Number; 2]>>,
    /// Which noise.
    pub seed: Option<Spanned<u64>>,
    /// Where a ramp begins.
    pub start: Option<Spanned<Number>>,
    /// By how much it rises.
    pub step: Option<Spanned<Number>>,
    /// A file that has the elements.
    pub npy: Option<Spanned<String>>,
    /// Where they are written to after the run.
    pub write: Option<Spanned<String>>,
    /// A file that has what they must be after the run.
    pub expect: Option<Spanned<String>>,
    /// How far an element may be off.
    pub absolute: Option<Spanned<Number>>,
    /// The same as a share of what is expected.
    pub relative: Option<Spanned<Number>>,
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole one.
    Integer(i64),
    /// One with a fraction or an exponent, an infinity, or NaN.
    Float(f64),
}

impl Number {
    /// Its value.
    #[must_use]
    pub fn value(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
        }
    }
}

/// Blocks or threads along x, y and z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent(pub [i64; 3]);

/// What a buffer holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// What has this name.
    Named(String),
    /// A constant.
    Constant(Number),
}

macro_rules! visitor { ($ty:ident, $expects:literal, { $($method:item)* }) => {
    impl<'de> Deserialize<'de> for $ty {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Own;
            impl<'de> Visitor<'de> for Own {
                type Value = $ty;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str($expects)
                }

                $($method)*
            }
            deserializer.deserialize_any(Own)
        }
    }
} }

visitor!(Number, "a number", {
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
        Ok(Number::Integer(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Number, E> {
        Ok(Number::Float(value))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Number, E> {
        Ok(Number::Integer(value.into()))
    }
});

visitor!(Extent, "1 to 3 whole numbers, as in 64 or [8, 8]", {
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Extent, E> {
        Ok(Extent([value, 1, 1]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Extent, A::Error> {
        let mut extent = [1; 3];
        let mut given = 0;
        while let Some(value) = values.next_element()? {
            match extent.get_mut(given) {
                Some(place) => *place = value,
                None => return Err(de::Error::invalid_length(given + 1, &self)),
            }
            given += 1;
        }
        if given == 0 { Err(de::Error::invalid_length(0, &self)) } else { Ok(Extent(extent)) }
    }
});

visitor!(Fill, "\"zeros\", \"ramp\", \"noise\", \"uninitialized\", or a number", {
    fn visit_str<E: de::Error>(self, name: &str) -> Result<Fill, E> {
        Ok(Fill::Named(name.to_owned()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Fill, E> {
        Ok(Fill::Constant(Number::Integer(value)))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Fill, E> {
        Ok(Fill::Constant(Number::Float(value)))
    }
});

impl LaunchFile {
    /// Reads a launch file.
    ///
    /// # Errors
    /// If it cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Self, Invalid> {
        let text = input::text(path, input::DESCRIPTION).map_err(|error| Invalid(error.to_string()))?;
        Self::parse(path, text)
    }

    /// The launch file of this text, which stands at `path`.
    ///
    /// # Errors
    /// If it holds something else.
    pub fn parse(path: &Path, text: String) -> Result<Self, Invalid> {
        let path = path.to_owned();
        match toml::from_str(&text) {
            Ok(Whole { launch, .. }) if launch.is_empty() => {
                Err(Invalid(format!("{}: it has no `[[launch]]`: add one", path.display())))
            }
            Ok(Whole { ptx, launch }) => Ok(Self { path, text, ptx, launches: launch }),
            Err(error) => {
                let what = with_nearest(error.message());
                let empty = Self { path, text, ptx: None, launches: Vec::new() };
                Err(empty.invalid(error.span().unwrap_or_default(), what))
            }
        }
    }

    /// What is wrong at a place of the file.
    #[must_use]
    pub fn invalid(&self, at: Range<usize>, what: impl fmt::Display) -> Invalid {
        let before = self.text.as_bytes().get(..at.start).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Invalid(format!("{}:{line}: {what}", self.path.display()))
    }

    /// The file that a path in it leads to: from the folder that it stands in.
    #[must_use]
    pub fn beside(&self, path: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }

    /// Where it stands.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What the parser says of a key that there is not, with the nearest that there is.
pub(crate) fn with_nearest(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    match (message.starts_with("unknown field"), names.next()) {
        (true, Some(unknown)) => match nearest(unknown, names) {
            Some(near) => format!("{message}: is it `{near}`?"),
            None => message.to_owned(),
        },
        _ => message.to_owned(),
    }
}

/// The name that is most like this one, if any is like it at all.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = known.map(|other| (strsim::jaro_winkler(name, other), other)).filter(|(alike, _)| *alike > 0.7);
    alike.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<LaunchFile, Invalid> {
        LaunchFile::parse(Path::new("folder/launch.toml"), text.to_owned())
    }

    const LAUNCH: &str = "[[launch]]\nentry = \"scale\"\ngrid = 4\nblock = [8, 8]\n";

    #[test]
    fn a_launch_is_read_and_paths_begin_at_its_folder() {
        let text = format!(
            "ptx = \"scale.ptx\"\n{LAUNCH}shared = 0x400\narguments = [\n  {{ buffer = \"f32\", length = 64, fill = 1.5 }}, # in\n  \
             {{ value = -3 }},\n]\n{LAUNCH}"
        );
        let file = parse(&text).expect("a launch file");
        assert_eq!(file.beside("scale.ptx"), Path::new("folder/scale.ptx"));
        assert_eq!(file.launches.len(), 2);
        let launch = file.launches[0].get_ref();
        assert_eq!((launch.grid.get_ref(), launch.block.get_ref()), (&Extent([4, 1, 1]), &Extent([8, 8, 1])));
        assert_eq!(launch.shared.as_ref().map(Spanned::get_ref), Some(&0x400));
        let [buffer, value] = [0, 1].map(|i| launch.arguments[i].get_ref());
        assert_eq!(buffer.fill.as_ref().map(Spanned::get_ref), Some(&Fill::Constant(Number::Float(1.5))));
        assert_eq!(value.value.as_ref().map(Spanned::get_ref), Some(&Number::Integer(-3)));
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_line_and_the_way_out() {
        for (text, line, what) in [
            (String::new(), 0, "no `[[launch]]`"),
            (format!("ptx = 3\n{LAUNCH}"), 1, "expected a string"),
            (format!("{LAUNCH}gird = 4\n"), 5, "is it `grid`?"),
            (format!("{LAUNCH}arguments = [{{ bufer = \"f32\" }}]\n"), 5, "is it `buffer`?"),
            (format!("{LAUNCH}arguments = [{{ fill = [1] }}]\n"), 5, "\"zeros\", \"ramp\", \"noise\""),
            (format!("{LAUNCH}arguments = [{{ value = \"1\" }}]\n"), 5, "expected a number"),
            (LAUNCH.replace("4", "[]"), 3, "1 to 3 whole numbers"),
            (LAUNCH.replace("4", "[1, 2, 3, 4]"), 3, "1 to 3 whole numbers"),
            (LAUNCH.replace("4", "-"), 3, "quoted"),
            (LAUNCH.replace("grid = 4\n", ""), 1, "missing field `grid`"),
            (format!("{LAUNCH}shared = -1\n"), 5, "-1"),
            (LAUNCH.replace("4", "99999999999999999999"), 3, ""),
        ] {
            let error = parse(&text).err().expect(what).to_string();
            let place =
                if line == 0 { "folder/launch.toml: ".to_owned() } else { format!("folder/launch.toml:{line}: ") };
            assert!(error.starts_with(&place) && error.contains(what), "{text}: {error}");
        }
    }
}
