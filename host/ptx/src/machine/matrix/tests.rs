//! Products of small integer matrices against sums in `i64`, with the fragments laid out as the PTX ISA's text says for each shape.

use crate::machine::tests::{finding, module, run, written};
use engine::{Kind, Outcome};
use gpu::suite::{Operation, Space};
use std::fmt::Write;

/// Row and column of element `i` of a lane: its group, and its number within it.
type Place = fn(i: u32, group: u32, within: u32) -> (u32, u32);

/// A number as a format has it, in its lowest bits.
fn encoded(number: &str, value: i64) -> u64 {
    let single = (value as f32).to_bits();
    match number {
        "f16" => {
            let magnitude = value.unsigned_abs();
            let exponent = 63 - magnitude.max(1).leading_zeros();
            let fraction = (magnitude << 10 >> exponent) & 0x3FF;
            let bits = if magnitude == 0 { 0 } else { u64::from(exponent + 15) << 10 | fraction };
            bits | u64::from(value < 0) << 15
        }
        "bf16" => u64::from(single >> 16),
        "tf32" | "f32" => single.into(),
        "f64" => (value as f64).to_bits(),
        // Small integers: 1.f times a power of two.
        "e4m3" | "e5m2" => {
            let (fraction, bias) = if number == "e4m3" { (3, 7) } else { (2, 15) };
            let magnitude = value.unsigned_abs();
            let exponent = 63 - magnitude.max(1).leading_zeros();
            let bits =
                u64::from(exponent + bias) << fraction | (magnitude << fraction >> exponent) & ((1 << fraction) - 1);
            (if magnitude == 0 { 0 } else { bits }) | u64::from(value < 0) << 7
        }
        _ => value.cast_unsigned(),
    }
}

fn width(number: &str) -> u32 {
    match number {
        "f16" | "bf16" => 16,
        "f64" => 64,
        "e4m3" | "e5m2" | "s8" | "u8" => 8,
        "s4" | "u4" => 4,
        "b1" => 1,
        _ => 32,
    }
}

/// What names a case, its shape and numbers, and where its factors' elements are.
type Row = (&'static str, [u32; 3], [&'static str; 4], Place, Place);

struct Case {
    modifiers: &'static str,
    shape: [u32; 3],
    numbers: [&'static str; 4],
    left: Place,
    right: Place,
    sum: Place,
}

const SUM: Place = |i, group, within| (group + 8 * (i / 2), 2 * within + i % 2);

/// The registers of a lane: elements side by side, from the lowest bits on.
fn registers(number: &str, count: u32, lane: u32, place: Place, value: impl Fn(u32, u32) -> i64) -> Vec<u64> {
    let (bits, each) = (width(number), (32 / width(number)).max(1));
    let kept = u64::MAX >> (64 - bits);
    let word = |register: u32| {
        (0..each).fold(0, |word, e| {
            let (row, column) = place(register * each + e, lane / 4, lane % 4);
            word | (encoded(number, value(row, column)) & kept) << (e * bits)
        })
    };
    (0..count).map(word).collect()
}

/// Small numbers, of which the unsigned ones and bits are not below zero.
fn sample(number: &str, row: u32, column: u32) -> i64 {
    let value = i64::from((row * 7 + column * 5 + row * column) % 8);
    match number {
        "b1" => value & 1,
        "u4" | "u8" => value,
        _ => value - 4,
    }
}

fn hold(case: &Case) {
    let [m, n, k] = case.shape;
    let [d, a, b, c] = case.numbers;
    let count = |number: &str, elements: u32| elements / 32 / (32 / width(number)).max(1);
    let counts = [count(d, m * n), count(a, m * k), count(b, k * n), count(c, m * n)];
    let mut input = Vec::new();
    for lane in 0..32 {
        input.extend(registers(a, counts[1], lane, case.left, |row, column| sample(a, row, column)));
        input.extend(registers(b, counts[2], lane, case.right, |row, column| sample(b, row + 1, column)));
        input.extend(registers(c, counts[3], lane, case.sum, |row, column| sample(c, column, row + 2)));
    }
    let words: u32 = counts[1..].iter().sum();
    let wide = |number: &str| number == "f64";
    let mut body = String::from(".reg .b32 %w<64>; .reg .b64 %x<64>; mov.b64 %d8, 0;\n");
    write!(body, "ld.param.u64 %d1, [p_in]; ld.param.u64 %d2, [p_out]; mad.wide.u32 %d1, %i, {}, %d1;", 8 * words)
        .and_then(|()| write!(body, "mad.wide.u32 %d2, %i, {}, %d2;", 8 * counts[0]))
        .expect("a string");
    let mut lists = Vec::new();
    let mut next = 0;
    for (number, count) in case.numbers[1..].iter().zip(&counts[1..]) {
        let mut list = Vec::new();
        for _ in 0..*count {
            let (bits, name) = if wide(number) { (64, "x") } else { (32, "w") };
            write!(body, "ld.global.b{bits} %{name}{next}, [%d1+{}];", 8 * next).expect("a string");
            list.push(format!("%{name}{next}"));
            next += 1;
        }
        lists.push(list.join(", "));
    }
    let (bits, name) = if wide(d) { (64, "x") } else { (32, "w") };
    let targets: Vec<_> = (0..counts[0]).map(|i| format!("%{name}{}", 40 + i)).collect();
    let [a_list, b_list, c_list] = &lists[..] else { unreachable!("three factors") };
    write!(
        body,
        "mma.sync.aligned.{} {{{}}}, {{{a_list}}}, {{{b_list}}}, {{{c_list}}};",
        case.modifiers,
        targets.join(", ")
    )
    .expect("a string");
    for (i, target) in targets.iter().enumerate() {
        write!(body, "st.global.b64 [%d2+{}], %d8; st.global.b{bits} [%d2+{}], {target};", 8 * i, 8 * i)
            .expect("a string");
    }
    let outcome = run(&module("", &format!("{body} ret;")), 1, 32, &input, 1);
    assert!(outcome.findings.is_empty(), "{}: {}", case.modifiers, outcome.findings[0]);
    let value = |row: u32, column: u32| {
        let term = |at: u32| {
            let [x, y] = [sample(a, row, at), sample(b, at + 1, column)];
            if case.modifiers.contains("xor") { (x != y).into() } else { x * y }
        };
        (0..k).map(term).sum::<i64>() + sample(c, column, row + 2)
    };
    for lane in 0..32 {
        let expected = registers(d, counts[0], lane, case.sum, value);
        for (i, expected) in (0..).zip(expected) {
            let found = outcome.bits(1, u64::from(lane * counts[0]) + i);
            assert_eq!(found, Some(expected), "{}: register {i} of lane {lane}", case.modifiers);
        }
    }
}

#[test]
fn products_are_those_of_the_matrices() {
    let half = |i, group, within| {
        (if i < 2 || (4..6).contains(&i) { group } else { group + 8 }, 2 * within + i % 2 + if i < 4 { 0 } else { 8 })
    };
    let half_right = |i, group, within| (2 * within + i % 2 + if i < 2 { 0 } else { 8 }, group);
    let bytes = |i, group, within| {
        let low = i < 4 || (8..12).contains(&i);
        (if low { group } else { group + 8 }, 4 * within + i % 4 + if i < 8 { 0 } else { 16 })
    };
    let bytes_right = |i, group, within| (4 * within + i % 4 + if i < 4 { 0 } else { 16 }, group);
    let nibbles = |i, group, within| {
        let low = i < 8 || (16..24).contains(&i);
        (if low { group } else { group + 8 }, 8 * within + i % 8 + if i < 16 { 0 } else { 32 })
    };
    let words = |i, group, within| (group + 8 * (i % 2), within + 4 * (i / 2));
    let words_right = |i, group, within| (within + 4 * i, group);
    let cases: [Row; 17] = [
        ("m16n8k16.row.col.f32.f16.f16.f32", [16, 8, 16], ["f32", "f16", "f16", "f32"], half, half_right),
        ("m16n8k16.row.col.f16.f16.f16.f16", [16, 8, 16], ["f16", "f16", "f16", "f16"], half, half_right),
        ("m16n8k8.row.col.f32.f16.f16.f32", [16, 8, 8], ["f32", "f16", "f16", "f32"], half, half_right),
        ("m16n8k16.row.col.f32.bf16.bf16.f32", [16, 8, 16], ["f32", "bf16", "bf16", "f32"], half, half_right),
        ("m16n8k8.row.col.f32.bf16.bf16.f32", [16, 8, 8], ["f32", "bf16", "bf16", "f32"], half, half_right),
        ("m16n8k4.row.col.f32.tf32.tf32.f32", [16, 8, 4], ["f32", "tf32", "tf32", "f32"], words, words_right),
        ("m16n8k8.row.col.f32.tf32.tf32.f32", [16, 8, 8], ["f32", "tf32", "tf32", "f32"], words, words_right),
        ("m8n8k4.row.col.f64.f64.f64.f64", [8, 8, 4], ["f64"; 4], words, words_right),
        ("m16n8k16.row.col.f64.f64.f64.f64", [16, 8, 16], ["f64"; 4], words, words_right),
        ("m8n8k16.row.col.s32.s8.u8.s32", [8, 8, 16], ["s32", "s8", "u8", "s32"], bytes, bytes_right),
        ("m16n8k16.row.col.s32.u8.s8.s32", [16, 8, 16], ["s32", "u8", "s8", "s32"], bytes, bytes_right),
        ("m16n8k32.row.col.satfinite.s32.s8.s8.s32", [16, 8, 32], ["s32", "s8", "s8", "s32"], bytes, bytes_right),
        ("m16n8k32.row.col.f32.e4m3.e5m2.f32", [16, 8, 32], ["f32", "e4m3", "e5m2", "f32"], bytes, bytes_right),
        ("m8n8k32.row.col.s32.s4.u4.s32", [8, 8, 32], ["s32", "s4", "u4", "s32"], nibbles, |i, group, within| {
            (8 * within + i, group)
        }),
        ("m16n8k64.row.col.s32.u4.s4.s32", [16, 8, 64], ["s32", "u4", "s4", "s32"], nibbles, |i, group, within| {
            (8 * within + i % 8 + if i < 8 { 0 } else { 32 }, group)
        }),
        (
            "m16n8k128.row.col.s32.b1.b1.s32.and.popc",
            [16, 8, 128],
            ["s32", "b1", "b1", "s32"],
            |i, group, within| (group + 8 * (i / 32), 32 * within + i % 32),
            |i, group, within| (32 * within + i, group),
        ),
        (
            "m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
            [8, 8, 128],
            ["s32", "b1", "b1", "s32"],
            |i, group, within| (group, 32 * within + i),
            |i, group, within| (32 * within + i, group),
        ),
    ];
    for (modifiers, shape, numbers, left, right) in cases {
        hold(&Case { modifiers, shape, numbers, left, right, sum: SUM });
    }
}

#[test]
fn a_sum_of_integers_is_clamped_or_wraps() {
    let body = |saturates: &str| {
        let text = format!(
            "mov.b32 %r1, 0x7F7F7F7F; mov.b32 %r2, 0x7FFFFFFF;
mma.sync.aligned.m8n8k16.row.col{saturates}.s32.s8.s8.s32 {{%r3, %r4}}, {{%r1}}, {{%r1}}, {{%r2, %r2}};
cvt.u64.u32 %d1, %r4; st.global.b64 [%out], %d1; ret;"
        );
        written(&module("", &text), 32, &[0; 32])[7]
    };
    assert_eq!(body(".satfinite"), 0x7FFF_FFFF);
    assert_eq!(body(""), 0x7FFF_FFFF + 16 * 127 * 127);
}

/// 4 matrices in shared memory, of rows of 16 bytes, the pitch of which is given. Element `[row][column]` of matrix `i` is
/// `100 i + 10 row + column`.
fn moved(pitch: u32, instruction: &str) -> (Vec<u64>, Outcome) {
    let store = (0..4)
        .map(|word| {
            format!(
                "mad.lo.u32 %r6, %r4, 100, {}; mad.lo.u32 %r6, %r5, 10, %r6; add.u32 %r7, %r6, 1; shl.b32 %r7, %r7, 16;
or.b32 %r6, %r6, %r7; st.shared.b32 [%r3+{}], %r6;\n",
                2 * word,
                4 * word
            )
        })
        .collect::<String>();
    let body = format!(
        "mov.u32 %r3, tile; mad.lo.u32 %r3, %i, {pitch}, %r3; shr.u32 %r4, %i, 3; and.b32 %r5, %i, 7;\n{store}
bar.sync 0; mov.b32 %r10, 0; mov.b32 %r11, 0;\n{instruction}
mov.b64 %d1, {{%r10, %r11}}; st.global.b64 [%out], %d1; ret;"
    );
    let text = module(".shared .align 16 .b8 tile[4608];", &body);
    let outcome = run(&text, 1, 32, &[0; 32], 1);
    assert!(outcome.findings.is_empty(), "{instruction}: {}", outcome.findings[0]);
    ((0..32).map(|lane| outcome.bits(1, lane).expect("the run ended")).collect(), outcome)
}

/// The pair of elements that stand side by side in a register.
fn pair(low: u64, high: u64) -> u64 {
    low | high << 16
}

#[test]
fn matrices_are_loaded_as_they_are_and_transposed() {
    let (all, outcome) = moved(16, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r8, %r9, %r10, %r11}, [%r3];");
    for (lane, word) in (0..32).zip(&all) {
        let (row, column) = (lane / 4, 2 * (lane % 4));
        let element = |matrix: u64| 100 * matrix + 10 * row + column;
        assert_eq!(*word, pair(element(2), element(2) + 1) | pair(element(3), element(3) + 1) << 32, "lane {lane}");
    }
    let load = |outcome: &Outcome| {
        let is_it = |site: &&engine::Site| site.space == Space::Shared && site.operation == Operation::Load;
        let found = outcome.sites.iter().find(is_it).expect("the load").counts;
        (found.requests, found.lanes, found.wavefronts)
    };
    // Each matrix is 128 bytes side by side, or rows that all begin in the same bank.
    assert_eq!(load(&outcome), (1, 32, 4));
    assert_eq!(load(&moved(128, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r8, %r9, %r10, %r11}, [%r3];").1).2, 32);
    assert_eq!(load(&moved(144, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r8, %r9, %r10, %r11}, [%r3];").1).2, 4);
    let (all, outcome) = moved(16, "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r10, %r11}, [%r3];");
    for (lane, word) in (0..32).zip(&all) {
        let (column, row) = (lane / 4, 2 * (lane % 4));
        let element = |matrix: u64, row: u64| 100 * matrix + 10 * row + column;
        let expected = [0, 1].map(|matrix| pair(element(matrix, row), element(matrix, row + 1)));
        assert_eq!(*word, expected[0] | expected[1] << 32, "lane {lane}");
    }
    assert_eq!(load(&outcome), (1, 16, 2));
    let (all, _) = moved(
        16,
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r3]; movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r9;",
    );
    assert_eq!(all[5], pair(21, 31));
}

#[test]
fn matrices_are_stored_row_by_row() {
    let back = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r8, %r9}, [%r3]; bar.sync 0;
stmatrix.sync.aligned.m8n8.x2TRANS.shared.b16 [%r3], {%r9, %r8}; bar.sync 0; ld.shared.v2.b32 {%r10, %r11}, [%r3+8];";
    let (all, _) = moved(16, &back.replace("TRANS", ""));
    assert_eq!(all[3], pair(134, 135) | pair(136, 137) << 32);
    assert_eq!(all[11], pair(34, 35) | pair(36, 37) << 32);
    assert_eq!(all[20], pair(244, 245) | pair(246, 247) << 32);
    let (all, _) = moved(16, &back.replace("TRANS", ".trans"));
    assert_eq!(all[3], pair(143, 153) | pair(163, 173) << 32);
}

/// `d = a * b + c` of 16 by 16 matrices by `wmma`, as each is laid out in memory.
#[test]
fn wmma_multiplies_matrices_in_memory_however_they_are_laid_out() {
    for (kind, loads, product, [left, right, sum], bytes) in [
        (["f16", "f32"], 8, "f32.f32", ["row", "col", "row"], [2, 4]),
        (["f16", "f32"], 8, "f32.f32", ["col", "row", "col"], [2, 4]),
        (["f16", "f16"], 8, "f16.f16", ["row", "row", "col"], [2, 2]),
        (["bf16", "f32"], 4, "f32.bf16.bf16.f32", ["col", "col", "row"], [2, 4]),
        (["u8", "s32"], 2, "s32.u8.u8.s32", ["row", "row", "row"], [1, 4]),
    ] {
        let [factor, total] = kind;
        let at = |layout: &str, row: usize, column: usize| {
            if layout == "row" { 16 * row + column } else { 16 * column + row }
        };
        let mut memory = vec![0u8; 2048];
        let mut put = |place: usize, bytes: usize, bits: u64| {
            memory[place..place + bytes].copy_from_slice(&bits.to_le_bytes()[..bytes]);
        };
        let value = |row: usize, column: usize| ((row * 3 + column) % 7) as i64;
        for (row, column) in (0..16).flat_map(|row| (0..16).map(move |column| (row, column))) {
            put(at(left, row, column) * bytes[0], bytes[0], encoded(factor, value(row, column)));
            put(512 + at(right, row, column) * bytes[0], bytes[0], encoded(factor, value(row + 1, column)));
            put(1024 + at(sum, row, column) * bytes[1], bytes[1], encoded(total, 2));
        }
        let input: Vec<_> =
            memory.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))).collect();
        let list = |name: &str, count: usize| (0..count).map(|i| format!("%{name}{i}")).collect::<Vec<_>>().join(", ");
        let sums = if total == "f16" { 4 } else { 8 };
        let [a, b, c] = [list("a", loads), list("b", loads), list("c", sums)];
        let body = format!(
            ".reg .b32 %a<8>, %b<8>, %c<8>; ld.param.u64 %d1, [p_in]; ld.param.u64 %d2, [p_out]; mov.b32 %r1, 16;
wmma.load.a.sync.aligned.{left}.m16n16k16.global.{factor} {{{a}}}, [%d1], %r1;
wmma.load.b.sync.aligned.{right}.m16n16k16.global.{factor} {{{b}}}, [%d1+512];
wmma.load.c.sync.aligned.{sum}.m16n16k16.global.{total} {{{c}}}, [%d1+1024], 16;
wmma.mma.sync.aligned.{left}.{right}.m16n16k16.{product} {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};
wmma.store.d.sync.aligned.{sum}.m16n16k16.global.{total} [%d2], {{{c}}}, %r1; ret;"
        );
        let outcome = run(&module("", &body), 1, 32, &input, 1);
        assert!(outcome.findings.is_empty(), "{product}: {}", outcome.findings[0]);
        for (row, column) in (0..16).flat_map(|row| (0..16).map(move |column| (row, column))) {
            let place = at(sum, row, column) * bytes[1];
            let word = outcome.bits(1, place as u64 / 8).expect("the run ended");
            let found = word >> (8 * (place % 8)) & (u64::MAX >> (64 - 8 * bytes[1]));
            let expected = (0..16).map(|at| value(row, at) * value(at + 1, column)).sum::<i64>() + 2;
            assert_eq!(found, encoded(total, expected), "{product} {left} {right} {sum}: {row}, {column}");
        }
    }
}

#[test]
fn all_lanes_carry_out_a_product_together() {
    let body = "mov.b64 %d3, 0; mov.b64 %d4, 0; mov.b64 %d5, 0; mov.b64 %d6, 0; setp.lt.u32 %p1, %i, 5; @%p1 mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1, %d2}, {%d3}, {%d4}, {%d5, %d6}; ret;";
    let found = finding(&module("", body), 32);
    assert!(found.kind == Kind::DivergentWarp && found.detail.contains("lane 5 does not"), "{found}");
}
