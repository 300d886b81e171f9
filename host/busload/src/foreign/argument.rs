//! From an argument as a launch file states it to the bytes of a parameter, or to a buffer.

use super::at::At;
use super::element::Type;
use super::file::{Invalid, Number, nearest};
use super::npy::{self, Array};
use gpu::suite::Buffer;
use ptx_machine as ptx;
use std::ops::Range;
use std::path::PathBuf;
use tempfile::NamedTempFile;
use toml::Spanned;

/// Bytes of a buffer are fewer.
const MOST_BYTES: u64 = 1 << 40;

/// What a parameter is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The address of a buffer: its number in the plan.
    Buffer(usize),
    /// Its bytes.
    Bytes(Vec<u8>),
}

/// A buffer, with what becomes of it after the run.
pub struct BufferOf {
    /// What the plan has of it.
    pub buffer: Buffer,
    /// The type of its elements.
    pub ty: Type,
    /// Where it is written to.
    pub write: Option<Written>,
    /// What it must be.
    pub expect: Option<Expected>,
    /// How far it may be off, if that is said.
    pub tolerance: Option<Tolerance>,
}

/// How far an element may be off: so much, and so large a share of what is expected, together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// So much.
    pub absolute: f64,
    /// So large a share.
    pub relative: f64,
}

/// An array that is written after the run: room for it is had before.
pub struct Written {
    /// The file.
    pub path: PathBuf,
    /// What becomes the file.
    pub file: NamedTempFile,
}

/// What a buffer must hold after the run.
pub struct Expected {
    /// The file.
    pub path: PathBuf,
    /// What it holds.
    pub array: Array,
}

/// What an argument is stated to be.
pub enum Stated {
    /// The bytes of a parameter.
    Bytes(Vec<u8>),
    /// A buffer.
    Buffer(Box<BufferOf>),
}

impl At<'_> {
    /// A parameter of the entry.
    ///
    /// # Errors
    /// If what is stated does not fit it.
    pub fn of_parameter(&self, parameter: &ptx::Variable<'_>, name: &'static str) -> Result<Stated, Invalid> {
        let table = self.table();
        let bytes = parameter.bytes().unwrap_or(u64::MAX);
        let is_scalar = parameter.dimensions.is_empty() && parameter.vector == 1 && bytes <= 8;
        if let Some(value) = &table.value {
            self.only("a value", &["value", "name"])?;
            if !is_scalar {
                let way = format!("give its bytes, as in bytes = \"00 01\", {bytes} of them");
                return self.wrong(value.span(), format!("`value` is a number, and the parameter a structure: {way}"));
            }
            return Ok(Stated::Bytes(self.scalar(value, parameter.ty)?));
        }
        if let Some(text) = &table.bytes {
            self.only("bytes", &["bytes", "name"])?;
            let given = self.hexadecimal(text)?;
            if given.len() as u64 != bytes {
                let count = given.len();
                return self
                    .wrong(text.span(), format!("`bytes` has {count}, and the parameter {bytes}: give as many"));
            }
            return Ok(Stated::Bytes(given));
        }
        if table.buffer.is_none() && table.npy.is_none() {
            let way = "say `value`, `bytes`, `buffer` or `npy`";
            return self.wrong(self.table.span(), format!("it states nothing: {way}"));
        }
        if !(is_scalar && bytes == 8) {
            let ty = type_name(parameter);
            let way = "give a `value`, or `bytes`";
            return self.wrong(
                self.table.span(),
                format!("a buffer's address has 8 bytes, and the parameter is {ty} of {bytes}: {way}"),
            );
        }
        Ok(Stated::Buffer(Box::new(self.buffer(name)?)))
    }

    /// A variable of the module of so many bytes.
    ///
    /// # Errors
    /// If it is no buffer of as many.
    pub fn of_variable(&self, name: &'static str, bytes: u64) -> Result<BufferOf, Invalid> {
        let stated = self.buffer(name)?;
        if stated.buffer.bytes() != bytes {
            let given = stated.buffer.bytes();
            return self.wrong(self.table.span(), format!("it has {given} bytes here, and {bytes} in the module"));
        }
        Ok(stated)
    }

    fn scalar(&self, value: &Spanned<Number>, ty: ptx::Type) -> Result<Vec<u8>, Invalid> {
        let size = ty.bytes() as usize;
        let float = match size {
            2 => "f16",
            4 => "f32",
            _ => "f64",
        };
        let float = Type::named(float).expect("a type of that name");
        let is_float = matches!(ty, ptx::Type::Float(_));
        let is_bits = matches!(ty, ptx::Type::Bits(_));
        let bits = match *value.get_ref() {
            Number::Integer(value) if is_float => float.bits(value as f64),
            Number::Float(value) if is_float || is_bits && size > 1 => float.bits(value),
            // C's `int` is `.u32` in nvcc's PTX: the sign is no matter of the parameter.
            Number::Integer(number) => {
                let bits = 8 * size as u32;
                let (least, greatest) = (-(1i128 << (bits - 1)), (1i128 << bits) - 1);
                if !(least..=greatest).contains(&number.into()) {
                    let what = format!(
                        "`value` = {number} is outside {least} to {greatest}, what a parameter of {size} bytes holds"
                    );
                    return self.wrong(value.span(), what);
                }
                number as u64
            }
            Number::Float(number) => {
                let what =
                    format!("`value` = {number:?} has a fraction, and the parameter is a whole number: give one");
                return self.wrong(value.span(), what);
            }
        };
        Ok(bits.to_le_bytes()[..size.min(8)].to_vec())
    }

    fn hexadecimal(&self, text: &Spanned<String>) -> Result<Vec<u8>, Invalid> {
        let digits: Vec<u8> = text.get_ref().bytes().filter(|c| !c.is_ascii_whitespace() && *c != b'_').collect();
        let byte =
            |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok().filter(|_| pair.len() == 2);
        let bytes = digits.chunks(2).map(byte).collect::<Option<Vec<_>>>();
        match bytes {
            Some(bytes) => Ok(bytes),
            None => self.wrong(text.span(), "`bytes` is to be hexadecimal, two digits a byte, as in \"00 ff\""),
        }
    }

    fn ty(&self, name: &Spanned<String>) -> Result<Type, Invalid> {
        let own = name.get_ref();
        Type::named(own).map_or_else(
            || {
                let all = Type::names().collect::<Vec<_>>().join(", ");
                let near = nearest(own, Type::names()).map_or_else(String::new, |near| format!(" (is it {near}?)"));
                self.wrong(name.span(), format!("`buffer` = \"{own}\" is no type of elements{near}: there are {all}"))
            },
            Ok,
        )
    }

    /// The array of a file that the argument names by `key`.
    fn array(&self, key: &str, file: &Spanned<String>) -> Result<(PathBuf, Array), Invalid> {
        let path = self.file.beside(file.get_ref());
        match npy::read(&path) {
            Ok(array) => Ok((path, array)),
            Err(reason) => self.wrong(file.span(), format!("`{key}`: {reason}")),
        }
    }

    fn buffer(&self, name: &'static str) -> Result<BufferOf, Invalid> {
        let table = self.table();
        let array = table.npy.as_ref().map(|file| self.array("npy", file)).transpose()?;
        let ty = match (&table.buffer, &array) {
            (Some(ty), _) => self.ty(ty)?,
            (None, Some((path, array))) => match Type::names().filter_map(Type::named).find(|ty| array.is_of(*ty)) {
                Some(ty) => ty,
                None => {
                    let (path, descr) = (path.display(), &array.descr);
                    return self.wrong(
                        self.table.span(),
                        format!("`npy`: {path} has elements `{descr}`, which buffers have not: save another type"),
                    );
                }
            },
            (None, None) => return self.wrong(self.table.span(), "it is no buffer: say `buffer` or `npy`"),
        };
        let len = match (&table.length, &array) {
            (Some(length), _) => *length.get_ref(),
            (None, Some((_, array))) => array.len(),
            (None, None) => {
                return self.wrong(self.table.span(), "a buffer has a `length`, in elements: say it");
            }
        };
        let at_length = || table.length.as_ref().map_or(self.table.span(), Spanned::span);
        if len == 0 || len.checked_mul(ty.size()).is_none_or(|bytes| bytes >= MOST_BYTES) {
            let most = (MOST_BYTES - 1) / ty.size();
            return self
                .wrong(at_length(), format!("`length` = {len}: a buffer of {} has 1 to {most} elements", ty.name));
        }
        let fits = |key: &str, path: &PathBuf, array: &Array, span: Range<usize>| {
            let (path, descr, name) = (path.display(), &array.descr, ty.name);
            match (array.is_of(ty), array.len()) {
                (false, _) => {
                    self.wrong(span, format!("`{key}`: {path} has elements `{descr}`, and the buffer {name}"))
                }
                (true, own) if own != len => {
                    self.wrong(span, format!("`{key}`: {path} has {own} elements, and the buffer {len}"))
                }
                _ => Ok(()),
            }
        };
        let span_of = |key: &Option<Spanned<String>>| key.as_ref().map_or(self.table.span(), Spanned::span);
        if let Some((path, array)) = &array {
            fits("npy", path, array, span_of(&table.npy))?;
        }
        let expect = table.expect.as_ref().map(|file| self.array("expect", file)).transpose()?;
        if let Some((path, array)) = &expect {
            fits("expect", path, array, span_of(&table.expect))?;
        }
        let before = self.before(ty, array.map(|(_, array)| array))?;
        let tolerance = self.tolerance()?;
        Ok(BufferOf {
            buffer: Buffer {
                name,
                constant: false,
                element: ty.element,
                len,
                before,
                // It is a result, whatever it holds.
                after: Some(Box::new(|_| None)),
                tolerance: 0.0,
            },
            ty,
            write: table.write.as_ref().map(|file| self.written(file)).transpose()?,
            expect: expect.map(|(path, array)| Expected { path, array }),
            tolerance,
        })
    }

    fn tolerance(&self) -> Result<Option<Tolerance>, Invalid> {
        let table = self.table();
        let part = |key: &str, given: &Option<Spanned<Number>>| {
            let Some(number) = given else { return Ok(0.0) };
            match number.get_ref().value() {
                value if value >= 0.0 && value.is_finite() => Ok(value),
                _ => self.wrong(
                    number.span(),
                    format!("`{key}` = {} is no tolerance: it is a number from 0", number.get_ref()),
                ),
            }
        };
        let (absolute, relative) = (part("absolute", &table.absolute)?, part("relative", &table.relative)?);
        let is_said = table.absolute.is_some() || table.relative.is_some();
        Ok(is_said.then_some(Tolerance { absolute, relative }))
    }

    fn written(&self, file: &Spanned<String>) -> Result<Written, Invalid> {
        let path = self.file.beside(file.get_ref());
        if path.is_dir() || file.get_ref().is_empty() {
            return self.wrong(file.span(), format!("`write`: {} is no file: name one", path.display()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(std::path::Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".busload-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
        match builder.tempfile_in(folder) {
            Ok(made) => Ok(Written { path, file: made }),
            Err(reason) => {
                self.wrong(file.span(), format!("`write`: {}: no file can be written there: {reason}", path.display()))
            }
        }
    }
}

/// A parameter's type as the module states it.
#[must_use]
pub fn type_name(parameter: &ptx::Variable<'_>) -> String {
    let (letter, bits) = match parameter.ty {
        ptx::Type::Bits(bits) => ('b', bits),
        ptx::Type::Unsigned(bits) => ('u', bits),
        ptx::Type::Signed(bits) => ('s', bits),
        ptx::Type::Float(bits) => ('f', bits),
        other => ('b', other.bits() as u8),
    };
    let array = parameter.dimensions.iter().map(|dimension| format!("[{dimension}]")).collect::<String>();
    format!(".{letter}{bits}{array}")
}
