//! Arrays of NumPy: files of one array each (`.npy`), read and written. The format is that of `numpy.lib.format`, versions 1 to 3.

use super::element::Type;
use crate::input;
use gpu::suite::Element;
use std::io::Write;
use std::path::Path;

/// Bytes of an array's file at most.
const MOST: u64 = 16 << 30;

const MAGIC: &[u8] = b"\x93NUMPY";

/// An array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// NumPy's name of its type, as `<f4`.
    pub descr: String,
    /// How many elements along each axis.
    pub shape: Vec<u64>,
    /// Its elements, the last axis fastest.
    pub bytes: Vec<u8>,
}

impl Array {
    /// How many elements it has.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether its elements are of that type.
    #[must_use]
    pub fn is_of(&self, ty: Type) -> bool {
        // What has no order of bytes says `|`; a bfloat16 is kept as 16 bits, or as 2 bytes of nothing known.
        let own = self.descr.trim_start_matches(['<', '|', '=']);
        own == descr(ty).trim_start_matches(['<', '|'])
            || ty.name == "bf16" && own == "V2"
            || ty.name == "u8" && own == "b1"
    }

    /// The bits of an element of so many bytes.
    #[must_use]
    pub fn bits(&self, i: u64, size: u64) -> u64 {
        let mut word = [0; 8];
        let from = self.bytes.get((i * size) as usize..((i + 1) * size) as usize).unwrap_or_default();
        word[..from.len()].copy_from_slice(from);
        u64::from_le_bytes(word)
    }
}

/// NumPy's name of a type.
#[must_use]
pub fn descr(ty: Type) -> &'static str {
    match ty.element {
        Element::I8 => "|i1",
        Element::U8 => "|u1",
        Element::I16 => "<i2",
        Element::U16 | Element::BF16 => "<u2",
        Element::F16 => "<f2",
        Element::I32 => "<i4",
        Element::U32 => "<u4",
        Element::F32 => "<f4",
        Element::I64 => "<i8",
        Element::U64 => "<u8",
        Element::F64 => "<f8",
    }
}

/// Reads an array.
///
/// # Errors
/// A sentence that names the file, what is wrong with it, and the way out.
pub fn read(file: &Path) -> Result<Array, String> {
    let bytes = input::bytes(file, MOST).map_err(|error| error.to_string())?;
    parse(&bytes).map_err(|reason| format!("{}: {reason}", file.display()))
}

fn parse(bytes: &[u8]) -> Result<Array, String> {
    const NONE: &str = "it is no array of NumPy: write it with `numpy.save`";
    let rest = bytes.strip_prefix(MAGIC).ok_or(NONE)?;
    let (length, rest) = match *rest {
        [1, _, low, high, ref rest @ ..] => (usize::from(u16::from_le_bytes([low, high])), rest),
        [2 | 3, _, a, b, c, d, ref rest @ ..] => (u32::from_le_bytes([a, b, c, d]) as usize, rest),
        [version @ 4..=255, ..] => return Err(format!("its format has the version {version}, and 1 to 3 are known")),
        _ => return Err(NONE.to_owned()),
    };
    let (header, data) = rest.split_at_checked(length).ok_or("it ends within its header")?;
    let header = std::str::from_utf8(header).map_err(|_| "its header is no text")?;
    let descr = field(header, "descr")
        .and_then(|value| value.strip_prefix(['\'', '"'])?.split(['\'', '"']).next())
        .ok_or("its header names no simple type (`descr`): save an array of numbers")?;
    let size: u64 = descr.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
    if !(1..=8).contains(&size) || descr.starts_with('>') {
        return Err(format!(
            "its elements are `{descr}`: save them as little-endian numbers of 1 to 8 bytes, such as `<f4`"
        ));
    }
    let shape = field(header, "shape").and_then(|value| value.strip_prefix('(')?.split(')').next());
    let shape = shape.ok_or("its header says no shape")?.split(',').map(str::trim).filter(|length| !length.is_empty());
    let shape: Vec<u64> = shape.map(str::parse).collect::<Result<_, _>>().map_err(|_| "its shape is none")?;
    let is_fortran = field(header, "fortran_order").is_some_and(|value| value.starts_with("True"));
    if is_fortran && shape.iter().filter(|length| **length > 1).count() > 1 {
        return Err("its first axis runs fastest (Fortran order): save `numpy.ascontiguousarray(…)` of it".to_owned());
    }
    let needed = shape.iter().try_fold(size, |bytes, length| bytes.checked_mul(*length));
    if needed != Some(data.len() as u64) {
        return Err(format!(
            "its header says {shape:?} elements of {size} bytes, and {} bytes follow: it was cut, or is not whole yet",
            data.len()
        ));
    }
    Ok(Array { descr: descr.to_owned(), shape, bytes: data.to_vec() })
}

/// What follows a key of the header's dictionary.
fn field<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let after = ["'", "\""].into_iter().find_map(|quote| header.split_once(&format!("{quote}{key}{quote}")))?.1;
    Some(after.trim_start().strip_prefix(':')?.trim_start())
}

/// Writes an array of one axis: its header, then what `elements` gives, piece by piece.
///
/// # Errors
/// What the system says.
pub fn write(mut to: impl Write, ty: Type, len: u64, elements: impl Iterator<Item = u64>) -> std::io::Result<()> {
    let dictionary = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({len},), }}", descr(ty));
    // The data begins at a multiple of 64.
    let length = (MAGIC.len() + 4 + dictionary.len() + 1).next_multiple_of(64) - MAGIC.len() - 4;
    to.write_all(MAGIC)?;
    to.write_all(&[1, 0])?;
    to.write_all(&(length as u16).to_le_bytes())?;
    to.write_all(format!("{dictionary:<0$}\n", length - 1).as_bytes())?;
    let mut to = std::io::BufWriter::new(to);
    for bits in elements {
        to.write_all(&bits.to_le_bytes()[..ty.size() as usize])?;
    }
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(name: &str) -> Type {
        Type::named(name).expect("a type")
    }

    /// What NumPy 2.1 writes for `numpy.save(…, numpy.array([[1, 2, 3], [4, 5, 6]], '<i4'))`.
    fn of_numpy(dictionary: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{dictionary:<117}\n");
        [MAGIC, &[1, 0, 118, 0], header.as_bytes(), data].concat()
    }

    const WHOLE: &str = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";

    fn data() -> Vec<u8> {
        (1..=6).flat_map(i32::to_le_bytes).collect()
    }

    #[test]
    fn what_numpy_writes_is_read() {
        let array = parse(&of_numpy(WHOLE, &data())).expect("an array");
        assert_eq!((array.descr.as_str(), &array.shape[..], array.len()), ("<i4", &[2, 3][..], 6));
        assert_eq!((0..6).map(|i| array.bits(i, 4)).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert!(array.is_of(ty("i32")) && !array.is_of(ty("u32")) && !array.is_of(ty("f32")) && !array.is_empty());
    }

    #[test]
    fn what_is_written_is_read_again() {
        for name in Type::names() {
            let (mut bytes, ty) = (Vec::new(), ty(name));
            let elements: Vec<_> = (0..5).map(|i| ty.wrapped(3 * i)).collect();
            write(&mut bytes, ty, 5, elements.iter().copied()).expect("memory takes everything");
            assert_eq!((bytes.len() - 5 * ty.size() as usize) % 64, 0, "{name}");
            let array = parse(&bytes).expect("an array");
            assert!(array.is_of(ty), "{name}");
            assert!((0..5).all(|i| array.bits(i, ty.size()) == elements[i as usize]), "{name}");
        }
    }

    #[test]
    fn an_array_that_was_damaged_is_an_error_or_an_array() {
        let whole = of_numpy(WHOLE, &data());
        let (mut arrays, mut errors) = (0, 0);
        for at in 0..whole.len() {
            for byte in [0, b'0', b'9', b'\'', b'(', b'<', 0xFF] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                match parse(&damaged) {
                    Ok(array) => {
                        arrays += 1;
                        let _ = (0..array.len().min(100)).fold(0, |sum, i| sum ^ array.bits(i, 8));
                    }
                    Err(_) => errors += 1,
                }
            }
        }
        assert!(arrays > 100 && errors > 100, "{arrays} arrays, {errors} errors");
    }

    #[test]
    fn what_is_no_such_array_is_refused_by_what_it_is() {
        let whole = of_numpy(WHOLE, &data());
        for (bytes, reason) in [
            (Vec::new(), "no array of NumPy"),
            (b"\x93NUMPY".to_vec(), "no array of NumPy"),
            (b"\x93NUMPY\x09\x00\x00".to_vec(), "version 9"),
            (whole[..40].to_vec(), "within its header"),
            (whole[..whole.len() - 1].to_vec(), "23 bytes follow"),
            ([&whole[..], &[0]].concat(), "25 bytes follow"),
            (of_numpy(&WHOLE.replace("<i4", ">i4"), &data()), "`>i4`"),
            (of_numpy(&WHOLE.replace("<i4", "<c16"), &data()), "`<c16`"),
            (of_numpy(&WHOLE.replace("'<i4'", "[('a', '<i4')]"), &data()), "no simple type"),
            (of_numpy(&WHOLE.replace("False", "True"), &data()), "ascontiguousarray"),
            (of_numpy(&WHOLE.replace("(2, 3)", "(2, -3)"), &data()), "shape"),
            (of_numpy(&WHOLE.replace("(2, 3)", "(4294967296, 4294967296)"), &data()), "bytes follow"),
            (of_numpy("{}", &data()), "descr"),
        ] {
            let error = parse(&bytes).expect_err(reason);
            assert!(error.contains(reason), "{error}");
        }
        let column = parse(&of_numpy(&WHOLE.replace("False", "True").replace("(2, 3)", "(6, 1)"), &data()));
        assert_eq!(column.expect("one axis has no order").len(), 6);
    }
}
