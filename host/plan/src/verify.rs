//! Compares what a kernel wrote with its reference, element by element.

use gpu::suite::{Buffer, Element, Launch, Plan, bf16, f16};
use std::fmt;
use system::parallel;

/// Wrong elements named in a report.
const SHOWN: usize = 4;

/// Elements that a thread compares at a time.
const PIECE: u64 = 1 << 16;

/// How much of an element of an output the kernel has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// All of it, or it need not be: it held something before.
    All,
    /// Some bytes of it.
    Part,
    /// Nothing.
    Nothing,
    /// It holds what it held before the run: a run on other bytes tells.
    Unknown,
}

/// An element after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actual {
    /// Its bits, zero-extended.
    pub bits: u64,
    /// How much of it the kernel has written.
    pub written: Written,
}

/// Elements that differ from their reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The buffer.
    pub buffer: &'static str,
    /// How many elements are wrong, and of how many.
    pub wrong: u64,
    /// Elements compared.
    pub of: u64,
    /// The first of them: index, expected, actual.
    pub first: Vec<(u64, String, String)>,
    /// Those of them that nobody wrote, if there are any.
    pub untouched: Option<Untouched>,
}

/// Elements of an output that nobody wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untouched {
    /// How many.
    pub count: u64,
    /// How many the kernel was to write.
    pub of: u64,
    /// The first of them.
    pub first: u64,
    /// The launch that left them, as far as it is known.
    pub launch: Option<Launch>,
}

impl Untouched {
    /// The blocks that cover all elements, if each wrote equally many and they are too few.
    pub fn blocks(&self) -> Option<u64> {
        let (blocks, written) = (self.launch?.block_count(), self.of - self.count);
        let is_even = written > 0 && blocks > 0 && written.is_multiple_of(blocks);
        let needed = is_even.then(|| self.of.div_ceil(written / blocks))?;
        (needed > blocks).then_some(needed)
    }
}

impl fmt::Display for Untouched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} elements are not written, the first is [{}]", self.count, self.of, self.first)?;
        let Some(launch) = self.launch else { return Ok(()) };
        let (blocks, threads) = (launch.block_count(), u64::from(launch.block_threads()));
        let plural = if blocks == 1 { "" } else { "s" };
        write!(f, "; the launch has {blocks} block{plural} of {threads} threads")?;
        let Some(needed) = self.blocks() else { return Ok(()) };
        let each = (self.of - self.count) / blocks;
        write!(f, ", each wrote {each} elements, and {} take {needed} blocks: ", self.of)?;
        let is_linear = launch.grid[1..] == [1, 1] && launch.block[1..] == [1, 1];
        match is_linear {
            true if each == threads => write!(f, "`Launch::linear({}, {threads})` has as many", self.of),
            true => write!(f, "`Launch::linear` takes the number of threads, here {}", needed * threads),
            false => write!(f, "`Launch::covering` makes as many from rows, columns and a block's tile"),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} elements of `{}` are wrong:", self.wrong, self.of, self.buffer)?;
        for (i, (index, expected, actual)) in self.first.iter().enumerate() {
            let comma = if i == 0 { "" } else { ";" };
            write!(f, "{comma} [{index}] is {actual}, expected {expected}")?;
        }
        match &self.untouched {
            // Without the launch the elements above have said it.
            Some(untouched) if untouched.launch.is_some() => write!(f, "\n{untouched}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Mismatch {}

/// Collects the wrong elements of one buffer, which may come in pieces, in order.
pub struct Check<'a> {
    buffer: &'a Buffer,
    wrong: u64,
    compared: u64,
    first: Vec<(u64, String, String)>,
    wanted: u64,
    untouched: u64,
    first_untouched: Option<u64>,
}

/// What is found of a piece.
#[derive(Default)]
struct Part {
    wrong: u64,
    first: Vec<u64>,
    wanted: u64,
    untouched: u64,
    first_untouched: Option<u64>,
}

impl<'a> Check<'a> {
    /// A check of `buffer` that has seen nothing so far.
    pub fn new(buffer: &'a Buffer) -> Self {
        Self { buffer, wrong: 0, compared: 0, first: Vec::new(), wanted: 0, untouched: 0, first_untouched: None }
    }

    /// The buffer.
    pub fn buffer(&self) -> &'a Buffer {
        self.buffer
    }

    /// Compares `len` elements from `start` on.
    pub fn compare(&mut self, start: u64, len: u64, actual: impl Fn(u64) -> Actual + Sync) {
        let Some(expected) = &self.buffer.after else { return };
        let Buffer { element, tolerance, .. } = *self.buffer;
        let part = |begin: u64| {
            let mut part = Part::default();
            for i in start + begin..start + len.min(begin + PIECE) {
                let Actual { bits, written } = actual(i);
                let is_wrong = match expected(i) {
                    None => matches!(written, Written::All | Written::Part),
                    // What nobody wrote is wrong even if what stood there happens to be right.
                    Some(expected) => {
                        part.wanted += 1;
                        matches!(written, Written::Part | Written::Nothing)
                            || !matches(element, tolerance, expected, bits)
                    }
                };
                if !is_wrong {
                    continue;
                }
                part.wrong += 1;
                if part.first.len() < SHOWN {
                    part.first.push(i);
                }
                if written == Written::Nothing {
                    part.untouched += 1;
                    part.first_untouched.get_or_insert(i);
                }
            }
            part
        };
        // Pieces come in the order of their elements.
        let pieces = (0..len.div_ceil(PIECE) as usize).map(|piece| piece as u64 * PIECE);
        let parts = parallel::map(pieces, parallel::threads(), part);
        for part in &parts {
            self.wrong += part.wrong;
            self.wanted += part.wanted;
            self.untouched += part.untouched;
            self.first_untouched = self.first_untouched.or(part.first_untouched);
        }
        let first = parts.into_iter().flat_map(|part| part.first);
        self.compared += len;
        for i in first.take(SHOWN - self.first.len()) {
            let expected = expected(i).map_or_else(|| "left alone".to_owned(), |bits| show(element, bits));
            let Actual { bits, written } = actual(i);
            let shown = show(element, bits);
            let actual = match written {
                Written::All => shown,
                Written::Part => format!("{shown}, of which some bytes are not written"),
                Written::Nothing => "not written".to_owned(),
                Written::Unknown => format!("not written, or {shown}"),
            };
            self.first.push((i, expected, actual));
        }
    }

    /// Whether the kernel is to write every element compared so far.
    pub fn wants_all(&self) -> bool {
        self.wanted == self.compared
    }

    /// What came of it.
    pub fn finish(self) -> Result<(), Mismatch> {
        let (count, of) = (self.untouched, self.wanted);
        let untouched = self.first_untouched.map(|first| Untouched { count, of, first, launch: None });
        match self.wrong {
            0 => Ok(()),
            wrong => Err(Mismatch { buffer: self.buffer.name, wrong, of: self.compared, first: self.first, untouched }),
        }
    }
}

/// Compares every element of every output of a plan: `actual(buffer, i)` gives element `i`.
pub fn verify(plan: &Plan, actual: impl Fn(usize, u64) -> Actual + Sync) -> Result<(), Mismatch> {
    plan.buffers.iter().enumerate().try_for_each(|(number, buffer)| {
        let mut check = Check::new(buffer);
        check.compare(0, buffer.len, |i| actual(number, i));
        check.finish().map_err(|mut mismatch| {
            if let Some(untouched) = &mut mismatch.untouched {
                untouched.launch = Some(plan.launch);
            }
            mismatch
        })
    })
}

/// Whether `actual` is `expected`: bit for bit, or no further off than `tolerance`. An infinity is near itself alone, and NaN
/// near any NaN.
fn matches(element: Element, tolerance: f64, expected: u64, actual: u64) -> bool {
    if tolerance == 0.0 || actual == expected {
        return actual == expected;
    }
    let [expected, actual] = [expected, actual].map(|bits| value(element, bits));
    expected.is_nan() && actual.is_nan() || (expected - actual).abs() <= tolerance
}

/// The number that an element's bits are.
pub fn value(element: Element, bits: u64) -> f64 {
    match element {
        Element::I8 => (bits as i8).into(),
        Element::U8 => (bits as u8).into(),
        Element::I16 => (bits as i16).into(),
        Element::U16 => (bits as u16).into(),
        Element::F16 => f16::from_bits(bits as u16).into(),
        Element::BF16 => bf16::from_bits(bits as u16).into(),
        Element::I32 => (bits as i32).into(),
        Element::U32 => (bits as u32).into(),
        Element::F32 => f32::from_bits(bits as u32).into(),
        Element::I64 => bits as i64 as f64,
        Element::U64 => bits as f64,
        Element::F64 => f64::from_bits(bits),
    }
}

fn show(element: Element, bits: u64) -> String {
    match element {
        Element::I64 => (bits as i64).to_string(),
        Element::U64 => bits.to_string(),
        _ if value(element, bits).is_nan() => {
            format!("NaN ({bits:#0width$x})", width = 2 + 2 * element.size() as usize)
        }
        Element::F32 => f32::from_bits(bits as u32).to_string(),
        _ => value(element, bits).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(len: u64) -> Buffer {
        Buffer::output("dst", len, |i| (i * i) as f32).expect("a small buffer")
    }

    fn written(bits: u64) -> Actual {
        Actual { bits, written: Written::All }
    }

    /// What comes of a buffer whose elements are these.
    fn checked(buffer: &Buffer, actual: impl Fn(u64) -> Actual + Sync) -> Result<(), String> {
        let mut check = Check::new(buffer);
        check.compare(0, buffer.len, actual);
        check.finish().map_err(|mismatch| mismatch.to_string())
    }

    #[test]
    fn a_wrong_element_is_named_with_index_expected_and_actual() {
        let buffer = squares(100_000);
        let mut check = Check::new(&buffer);
        let actual = |i: u64| written(u64::from(if i == 70_003 { 1.5f32 } else { (i * i) as f32 }.to_bits()));
        check.compare(0, 50_000, actual);
        check.compare(50_000, 50_000, actual);
        let mismatch = check.finish().expect_err("one element is wrong");
        assert_eq!((mismatch.wrong, mismatch.of), (1, 100_000));
        assert_eq!(
            mismatch.to_string(),
            "1 of 100000 elements of `dst` are wrong: [70003] is 1.5, expected 4900420000"
        );
    }

    #[test]
    fn an_element_that_nobody_wrote_is_wrong_and_so_is_one_that_should_be_left_alone() {
        let ones = Buffer::output("dst", 5, |_| u32::MAX).expect("a small buffer");
        let told = |i: u64| {
            let written = [Written::All, Written::Part, Written::Nothing, Written::Unknown, Written::All][i as usize];
            Actual { bits: if i == 4 { 7 } else { u32::MAX.into() }, written }
        };
        assert_eq!(
            checked(&ones, told).expect_err("three are wrong"),
            "3 of 5 elements of `dst` are wrong: [1] is 4294967295, of which some bytes are not written, expected \
             4294967295; [2] is not written, expected 4294967295; [4] is 7, expected 4294967295"
        );
        let zeros = Buffer::output("dst", 5, |_| 0u32).expect("a small buffer");
        let text = checked(&zeros, told).expect_err("all are wrong");
        assert!(text.contains("[3] is not written, or 4294967295, expected 0"), "{text}");

        let none = Buffer::partial_output("dst", 5, |_| None::<u32>).expect("a small buffer");
        assert_eq!(
            checked(&none, told).expect_err("three are written"),
            "3 of 5 elements of `dst` are wrong: [0] is 4294967295, expected left alone; [1] is 4294967295, of which some \
             bytes are not written, expected left alone; [4] is 7, expected left alone"
        );
    }

    #[test]
    fn a_launch_that_leaves_elements_untouched_is_told_how_many_blocks_would_cover_them() {
        let said = |launch: Result<Launch, _>, len: u64, covered: fn(u64) -> bool| {
            let plan = Plan::new(launch.expect("a small launch")).buffer(squares(len));
            let actual = |_, i: u64| match covered(i) {
                true => written(u64::from(((i * i) as f32).to_bits())),
                false => Actual { bits: 0, written: Written::Nothing },
            };
            let mismatch = verify(&plan, actual).expect_err("some are untouched");
            mismatch.to_string().split_once('\n').expect("a line of its own").1.to_owned()
        };
        assert_eq!(
            said(Launch::linear(512, 256), 1000, |i| i < 512),
            "488 of 1000 elements are not written, the first is [512]; the launch has 2 blocks of 256 threads, each wrote 256 \
             elements, and 1000 take 4 blocks: `Launch::linear(1000, 256)` has as many"
        );
        let four_a_thread = said(Launch::linear(64, 64), 1000, |i| i < 256);
        assert!(
            four_a_thread.ends_with("1000 take 4 blocks: `Launch::linear` takes the number of threads, here 256"),
            "{four_a_thread}"
        );
        let tiles = said(Launch::covering(32, 32, [32, 32], [32, 8]), 2048, |i| i % 64 < 32);
        assert!(tiles.starts_with("1024 of 2048 elements are not written, the first is [32]"), "{tiles}");
        assert!(tiles.contains("take 2 blocks: `Launch::covering`"), "{tiles}");
        // Whatever left these out, it is not the grid.
        let holes = said(Launch::linear(1000, 256), 1000, |i| i != 7);
        assert!(holes.ends_with("[7]; the launch has 4 blocks of 256 threads"), "{holes}");
    }

    #[test]
    fn an_infinity_is_near_itself_and_nan_near_nan_within_any_tolerance() {
        let near = |expected: f32, actual: f32, tolerance: f64| {
            let buffer = Buffer::output("dst", 1, move |_| expected).expect("a small buffer").within(tolerance);
            checked(&buffer, |_| written(actual.to_bits().into())).is_ok()
        };
        const NAN: f32 = f32::from_bits(0x7FC0_0001);
        let infinity = f32::INFINITY;
        for tolerance in [1e-6, 1e30] {
            for (expected, actual, is_near) in [
                (infinity, infinity, true),
                (-infinity, -infinity, true),
                (infinity, -infinity, false),
                (infinity, f32::MAX, false),
                (f32::MAX, infinity, false),
                (1.0, f32::NAN, false),
                (f32::NAN, 1.0, false),
                (infinity, f32::NAN, false),
                (f32::NAN, NAN, true),
                (1.0, 1.0, true),
            ] {
                assert_eq!(near(expected, actual, tolerance), is_near, "{actual} for {expected} within {tolerance}");
            }
        }
        assert!(near(infinity, infinity, 0.0) && !near(f32::NAN, NAN, 0.0), "bit for bit");
        let buffer = Buffer::output("dst", 1, |_| f32::NAN).expect("a small buffer");
        let text = checked(&buffer, |_| written(NAN.to_bits().into())).expect_err("another NaN");
        assert!(text.ends_with("[0] is NaN (0x7fc00001), expected NaN (0x7fc00000)"), "{text}");
    }

    #[test]
    fn the_first_wrong_elements_are_the_first_whatever_the_pieces() {
        let buffer = squares(1 << 20);
        let mut check = Check::new(&buffer);
        check.compare(0, 1 << 20, |_| written(1));
        let mismatch = check.finish().expect_err("all are wrong");
        assert_eq!(mismatch.first.iter().map(|(i, ..)| *i).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn elements_of_every_type_are_shown_as_what_they_are() {
        for (element, bits, shown) in [
            (Element::I8, 0xFF, "-1"),
            (Element::U8, 0xFF, "255"),
            (Element::I16, 0x8000, "-32768"),
            (Element::U16, 0x8000, "32768"),
            (Element::F16, 0x3E00, "1.5"),
            (Element::F16, 0x7E01, "NaN (0x7e01)"),
            (Element::BF16, 0x3FC0, "1.5"),
            (Element::BF16, 0x7FC1, "NaN (0x7fc1)"),
            (Element::I32, 0xFFFF_FFFE, "-2"),
            (Element::U32, 0xFFFF_FFFE, "4294967294"),
            (Element::F32, 0x3DCC_CCCD, "0.1"),
            (Element::I64, u64::MAX, "-1"),
            (Element::U64, u64::MAX, "18446744073709551615"),
            (Element::F64, 0.1f64.to_bits(), "0.1"),
        ] {
            assert_eq!(show(element, bits), shown);
        }
    }
}
