//! Kernels of the kinds that people bring (`tests/foreign/kernels.cu`, compiled by nvcc), each launched as its launch file says, and its
//! outputs held to what plain Rust computes.

use busload::foreign::file::LaunchFile;
use busload::foreign::prepare::{Ready, Source, prepare};
use busload::sim::Outcome;
use busload_tests::{on_threads, root};
use gpu::suite::{Before, Space};
use ptx_machine::Module;
use std::collections::BTreeSet;
use std::fs;
use std::sync::LazyLock;

static TEXT: LazyLock<String> =
    LazyLock::new(|| fs::read_to_string(root().join("tests/foreign/kernels.ptx")).expect("tests/foreign/kernels.ptx"));

static MODULE: LazyLock<Module<'static>> =
    LazyLock::new(|| ptx_machine::parse(&TEXT).unwrap_or_else(|error| panic!("{error}")));

/// A launch that ran.
struct Ran {
    ready: Ready,
    outcome: Outcome,
}

/// The one launch of `tests/foreign/<entry>.toml`.
fn run(entry: &str) -> Ran {
    let path = root().join("tests/foreign").join(entry).with_extension("toml");
    let file = LaunchFile::read(&path).unwrap_or_else(|error| panic!("{error}"));
    let source = Source { file: "kernels.ptx", module: &MODULE };
    let ready = prepare(&file, &source, None).unwrap_or_else(|error| panic!("{error}"));
    let [ready] = <[Ready; 1]>::try_from(ready).unwrap_or_else(|all| panic!("{} launches", all.len()));
    assert_eq!(ready.entry, entry);
    let outcome = ready.simulate(&on_threads(2), &|_, _| ()).unwrap_or_else(|error| panic!("{entry}: {error}"));
    assert!(outcome.findings.is_empty(), "{entry}: {}", outcome.findings[0]);
    Ran { ready, outcome }
}

impl Ran {
    fn number(&self, name: &str) -> usize {
        let number = self.ready.plan.buffers.iter().position(|buffer| buffer.name == name);
        number.unwrap_or_else(|| panic!("{} has no buffer {name}", self.ready.entry))
    }

    /// What a buffer held before the run.
    fn before(&self, name: &str) -> Vec<f64> {
        let number = self.number(name);
        let (buffer, ty) = (&self.ready.plan.buffers[number], self.ready.results[number].ty);
        let Before::Filled(fill) = &buffer.before else { panic!("{name} is not filled") };
        (0..buffer.len).map(|i| ty.value(fill.bits(i))).collect()
    }

    /// The same as single-precision numbers.
    fn f32s(&self, name: &str) -> Vec<f32> {
        self.before(name).into_iter().map(|value| value as f32).collect()
    }

    /// The same as whole numbers.
    fn integers(&self, name: &str) -> Vec<i64> {
        self.before(name).into_iter().map(|value| value as i64).collect()
    }

    /// Holds what a buffer holds after the run to `expected`: off by no more than a share of the largest.
    fn holds(&self, name: &str, expected: &[f64], share: f64) {
        let number = self.number(name);
        let (buffer, ty) = (&self.ready.plan.buffers[number], self.ready.results[number].ty);
        assert_eq!(buffer.len, expected.len() as u64, "{}: {name}", self.ready.entry);
        let largest = expected.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        for (i, expected) in expected.iter().enumerate() {
            let actual = self.outcome.actual(number, i as u64).expect("the run ended");
            let is = ty.value(actual.bits);
            assert!(
                (is - expected).abs() <= share * largest,
                "{}: {name}[{i}] is {is}, expected {expected}",
                self.ready.entry
            );
        }
    }
}

fn exactly(values: impl IntoIterator<Item = i64>) -> Vec<f64> {
    values.into_iter().map(|value| value as f64).collect()
}

fn doubles(values: impl IntoIterator<Item = f32>) -> Vec<f64> {
    values.into_iter().map(f64::from).collect()
}

const SUM: f64 = 1e-6;

#[test]
fn each_entry_has_a_launch_file_and_a_test() {
    let entries: BTreeSet<_> = MODULE.entries().map(|entry| entry.name.to_owned()).collect();
    let folder = fs::read_dir(root().join("tests/foreign")).expect("tests/foreign");
    let paths: Vec<_> = folder.map(|entry| entry.expect("an entry").path()).collect();
    let files = paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let files: BTreeSet<_> =
        files.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    assert!(entries.len() > 20);
    assert_eq!(entries, files);
    let own = include_str!("foreign.rs");
    let is_tested = |entry: &str| own.contains(&format!("run(\"{entry}\")"));
    let untested: Vec<_> = entries.iter().filter(|entry| !is_tested(entry)).collect();
    assert!(untested.is_empty(), "{untested:?}");
}

#[test]
fn a_matrix_times_a_vector() {
    let ran = run("matvec_warp_a_row");
    let (matrix, vector) = (ran.before("matrix"), ran.before("vector"));
    let row = |row: &[f64]| row.iter().zip(&vector).map(|(a, b)| a * b).sum();
    ran.holds("out", &matrix.chunks(40).map(row).collect::<Vec<_>>(), SUM);
}

#[test]
fn sums_of_columns_are_exact_in_their_order() {
    let ran = run("column_a_thread");
    let matrix = ran.f32s("matrix");
    ran.holds("out", &doubles((0..70).map(|x| (0..70).fold(0.0, |sum, y| sum + matrix[y * 70 + x]))), 0.0);
}

#[test]
fn stencils() {
    let ran = run("stencil_5_point");
    let (n, input) = (50i64, ran.before("in"));
    let at =
        |y: i64, x: i64| if (0..n).contains(&y) && (0..n).contains(&x) { input[(y * n + x) as usize] } else { 0.0 };
    let point = |i: i64| {
        let (y, x) = (i / n, i % n);
        0.5 * at(y, x) + 0.125 * (at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1))
    };
    ran.holds("out", &(0..n * n).map(point).collect::<Vec<_>>(), SUM);

    let ran = run("stencil_7_point");
    let (n, input) = (20i64, ran.before("in"));
    let is_in = |i: i64| (0..n).contains(&i);
    let at = |z: i64, y: i64, x: i64| match is_in(z) && is_in(y) && is_in(x) {
        true => input[((z * n + y) * n + x) as usize],
        false => 0.0,
    };
    let point = |i: i64| {
        let (z, y, x) = (i / n / n, i / n % n, i % n);
        let along = at(z - 1, y, x) + at(z + 1, y, x);
        0.4 * at(z, y, x) + 0.1 * (along + at(z, y - 1, x) + at(z, y + 1, x) + at(z, y, x - 1) + at(z, y, x + 1))
    };
    ran.holds("out", &(0..n * n * n).map(point).collect::<Vec<_>>(), SUM);
}

#[test]
fn histograms() {
    for ran in [run("histogram_global"), run("histogram_shared")] {
        let mut counts = vec![0; 37];
        ran.integers("keys").into_iter().for_each(|key| counts[key as usize % 37] += 1);
        ran.holds("counts", &exactly(counts), 0.0);
    }
}

#[test]
fn mandelbrot() {
    let ran = run("mandelbrot");
    let steps = |i: usize| {
        // nvcc contracts as it does: the numbers of steps hang on single roundings nowhere in this picture.
        let (cx, cy) = (3.5 * (i % 48) as f64 / 48.0 - 2.5, 2.0 * (i / 48) as f64 / 20.0 - 1.0);
        let (mut zx, mut zy, mut step) = (0.0, 0.0, 0);
        while step < 50 && zx * zx + zy * zy < 4.0 {
            (zx, zy) = (zx * zx - zy * zy + cx, 2.0 * zx * zy + cy);
            step += 1;
        }
        step
    };
    ran.holds("steps", &exactly((0..960).map(steps)), 0.0);
}

#[test]
fn sums_of_blocks() {
    let ran = run("reduce_blocks");
    let input = ran.before("in");
    let sum =
        |block: usize| input.iter().enumerate().filter(|(i, _)| i / 256 % 4 == block).map(|(_, value)| value).sum();
    ran.holds("sums", &(0..4).map(sum).collect::<Vec<_>>(), SUM);

    let ran = run("sum_by_last_block");
    let input = ran.integers("in");
    let part =
        |block: usize| input.iter().enumerate().filter(|(i, _)| i / 128 % 4 == block).map(|(_, value)| value).sum();
    ran.holds("parts", &exactly((0..4).map(part)), 0.0);
    ran.holds("out", &exactly([input.iter().sum()]), 0.0);
    ran.holds("done", &exactly([4]), 0.0);

    let ran = run("dot_f64");
    let (a, b) = (ran.before("a"), ran.before("b"));
    ran.holds("out", &[a.iter().zip(&b).map(|(a, b)| a * b).sum()], 1e-12);
}

#[test]
fn scans() {
    let ran = run("scan_blocks");
    let scan = ran.integers("in");
    let scan = scan.chunks(512).flat_map(|block| {
        block.iter().scan(0, |sum, value| {
            *sum += value;
            Some(*sum)
        })
    });
    ran.holds("out", &exactly(scan), 0.0);
}

/// The product of matrices of n by n, `b` as rows of it or of its transpose.
fn product(a: &[f64], b: &[f64], n: usize, is_transposed: bool) -> Vec<f64> {
    let b = |k: usize, x: usize| if is_transposed { b[x * n + k] } else { b[k * n + x] };
    (0..n * n).map(|i| (0..n).map(|k| a[i / n * n + k] * b(k, i % n)).sum()).collect()
}

#[test]
fn products_of_matrices() {
    let ran = run("matmul_registers");
    ran.holds("c", &product(&ran.before("a"), &ran.before("b"), 128, false), SUM);
}

#[test]
fn softmax() {
    let ran = run("softmax_rows");
    let input = ran.before("in");
    let row = |row: &[f64]| {
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exponentials: Vec<_> = row.iter().map(|value| (value - most).exp()).collect();
        let sum: f64 = exponentials.iter().sum();
        exponentials.into_iter().map(move |value| value / sum).collect::<Vec<_>>()
    };
    ran.holds("out", &input.chunks(300).flat_map(row).collect::<Vec<_>>(), 1e-5);
}

#[test]
fn pairs_of_bfloat16() {
    let ran = run("axpy_bf16");
    let (x, y) = (ran.before("x"), ran.before("y"));
    let ty = ran.ready.results[ran.number("y")].ty;
    // A fused multiply-add rounds once.
    let axpy = x.iter().zip(&y).map(|(x, y)| ty.value(ty.bits(0.75f64.mul_add(*x, *y))));
    ran.holds("y", &axpy.collect::<Vec<_>>(), 0.0);
}

#[test]
fn what_stands_in_local_memory() {
    let ran = run("sort_local");
    let mut sorted = ran.integers("in");
    sorted.chunks_mut(8).for_each(<[_]>::sort_unstable);
    ran.holds("out", &exactly(sorted), 0.0);
}

#[test]
fn the_mathematical_library() {
    let ran = run("functions_f32");
    let of = |x: f64| {
        x.sin()
            + (2.0 * x).cos()
            + (-x * x).exp()
            + (1.0 + x * x).ln()
            + x.tanh()
            + x.abs().sqrt()
            + (1.0 + x.abs()).powf(0.25)
            + erf(x)
            + x.atan2(2.0)
            + x % 0.75
    };
    ran.holds("out", &ran.before("in").into_iter().map(of).collect::<Vec<_>>(), 1e-6);
}

/// The error function, by its series.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..80 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

#[test]
fn what_a_kernel_says() {
    let ran = run("hello");
    ran.holds("out", &exactly(0..32), 0.0);
    let text = &ran.outcome.printed.text;
    assert_eq!(text.lines().count(), 32);
    assert!(text.starts_with("thread 0 of 32:  0.00 and on\nthread 1 of 32:  0.50 and on\n"), "{text}");
}

#[test]
fn a_launch_says_which_instructions_are_not_exact() {
    let of = |ran: Ran| ran.ready.program.exactness().approximate.iter().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(of(run("histogram_global")), "");
    assert!(of(run("softmax_rows")).contains("ex2.approx"));
    assert!(run("dot_f64").ready.adds_in_any_order && !run("histogram_global").ready.adds_in_any_order);
}

#[test]
fn tensor_cores() {
    let ran = run("matmul_wmma");
    ran.holds("c", &product(&ran.before("a"), &ran.before("b"), 32, true), SUM);
    let ran = run("matmul_mma");
    ran.holds("c", &product(&ran.before("a"), &ran.before("b"), 32, false), SUM);
}

#[test]
fn copies_ahead() {
    let ran = run("copy_async");
    ran.holds("out", &ran.before("in"), 0.0);
}

#[test]
fn a_table_that_the_module_fills() {
    let ran = run("smooth_1d");
    let input = ran.integers("in");
    let tap = |i: i64, tap: i64| [1, 4, 6, 4, 1][tap as usize] * input[(i + tap - 2).clamp(0, 199) as usize];
    ran.holds("out", &exactly((0..200).map(|i| (0..5).map(|k| tap(i, k)).sum::<i64>() / 16)), 0.0);
}

#[test]
fn calls_by_name_through_pointers_and_of_themselves() {
    let ran = run("calls");
    let fibonacci = [0, 1, 1, 2, 3, 5, 8, 13];
    let called = |i: i64| if i % 2 == 0 { 2 * i } else { i * i };
    ran.holds("out", &exactly((0..50).map(|i| called(i) + fibonacci[i as usize % 8])), 0.0);
}

/// Pieces that keys and values are made of, to put in the place of others.
const PIECES: [&str; 24] = [
    "-1",
    "0",
    "1e999",
    "nan",
    "9223372036854775807",
    "\"\"",
    "\"i8\"",
    "\"bf16\"",
    "\"noise\"",
    "\"ramp\"",
    "[]",
    "[1, 2, 3]",
    "{",
    "}",
    "]",
    "value",
    "buffer",
    "length",
    "range = [0, 9223372036854775807]",
    "step = -0.5",
    "bytes = \"00\"",
    "npy = \"kernels.cu\"",
    "=",
    "\n",
];

#[test]
fn a_launch_file_that_was_damaged_is_an_error_or_a_launch_and_never_a_panic() {
    let path = root().join("tests/foreign/histogram_shared.toml");
    let text = fs::read_to_string(&path).expect("a launch file");
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut launches, mut errors) = (0, 0);
    for _ in 0..4000 {
        let mut words: Vec<&str> = text.split_inclusive([' ', '\n', ',']).collect();
        for _ in 0..=random(3) {
            let place = random(words.len());
            match random(3) {
                0 => drop(words.remove(place)),
                1 => words[place] = PIECES[random(PIECES.len())],
                _ => words.insert(place, PIECES[random(PIECES.len())]),
            }
        }
        let source = Source { file: "kernels.ptx", module: &MODULE };
        let ready = LaunchFile::parse(&path, words.concat()).and_then(|file| prepare(&file, &source, None));
        match ready {
            Ok(ready) => {
                launches += 1;
                for buffer in ready.iter().flat_map(|ready| &ready.plan.buffers) {
                    if let Before::Filled(fill) = &buffer.before {
                        let _ = (fill.bits(0), fill.bits(buffer.len - 1));
                    }
                }
            }
            Err(error) => {
                errors += 1;
                assert!(error.to_string().contains("histogram_shared.toml"), "{error}");
            }
        }
    }
    assert!(launches > 50 && errors > 1000, "{launches} launches, {errors} errors");
}

/// Counts of a launch: requests and sectors of global memory, wavefronts of shared memory.
fn counts(outcome: &Outcome) -> [u64; 3] {
    let mut counts = [0; 3];
    for site in &outcome.sites {
        match site.space {
            Space::Global => {
                counts[0] += site.counts.requests;
                counts[1] += site.counts.sectors;
            }
            Space::Shared => counts[2] += site.counts.wavefronts,
            _ => {}
        }
    }
    counts
}

#[test]
fn counts_are_those_beside_nsight_computes() {
    let recorded = fs::read_to_string(root().join("results/nvidia-h200/foreign_counters.tsv")).expect("is recorded");
    let mut compared = 0;
    let (mut global, mut shared) = (0, 0);
    for line in recorded.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let fields: Vec<_> = line.split('\t').collect();
        let number = |field: usize| -> u64 { fields[field].parse().unwrap_or_else(|_| panic!("{line}")) };
        let simulated = [2, 4, 6].map(number);
        if fields[0] == "tests/foreign" {
            assert_eq!(counts(&run(fields[1]).outcome), simulated, "{line}");
        }
        global += u32::from(number(2) == number(3) && number(4) == number(5));
        shared += u32::from(number(6) == number(7));
        compared += 1;
    }
    // As docs/running-your-ptx.md says.
    assert_eq!((compared, global, shared), (50, 48, 41));
}
