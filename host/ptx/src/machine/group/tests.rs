//! Products of matrices of small integers, laid out in shared memory as CUTLASS writes the canonical layouts of `wgmma` down.

use crate::machine::tests::{module, run_with};
use engine::Kind;
use std::fmt::Write;

fn half(value: u64) -> u64 {
    let exponent = 63 - value.max(1).leading_zeros();
    if value == 0 { 0 } else { u64::from(exponent + 15) << 10 | (value << 10 >> exponent) & 0x3FF }
}

/// Where in bytes an element is: of a row (or a column, of the right matrix) at a place along `k`.
type Place = fn(line: u64, along: u64) -> u64;

/// A descriptor of a matrix at byte `start`.
fn descriptor(start: u64, leading: u64, stride: u64, swizzle: u64) -> u64 {
    start >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | swizzle << 62
}

/// 8 rows of 16 bytes side by side; 2 such tiles along `k`.
const TILES: Place = |line, along| line / 8 * 256 + along / 8 * 128 + line % 8 * 16 + along % 8 * 2;
/// Rows of 128 bytes, the 8 pieces of which are turned round by the row's number.
const SWIZZLED: Place = |line, along| line * 128 + ((along / 8) ^ (line % 8)) * 16 + along % 8 * 2;
/// The same of 32 bytes: the 2 pieces change places in every other four rows.
const SWIZZLED_BY_32: Place = |line, along| line * 32 + ((along / 8) ^ (line / 4 % 2)) * 16 + along % 8 * 2;
/// A row for each place along `k`.
const TURNED: Place = |line, along| along * 128 + ((line / 8) ^ (along % 8)) * 16 + line % 8 * 2;
/// Tiles of 8 by 8, the places along `k` one below the other; those of the lines side by side.
const TURNED_TILES: Place = |line, along| along / 8 * 1024 + line / 8 * 128 + along % 8 * 16 + line % 8 * 2;

const RIGHT: u64 = 8192;

#[test]
fn matrices_in_shared_memory_are_read_as_their_descriptors_say() {
    let a = |row: u64, k: u64| (row * 3 + k) % 5;
    let b = |k: u64, column: u64| (k + column * 2) % 7;
    let tiles = |start| descriptor(start, 128, 256, 0);
    let wide = |start| descriptor(start, 16, 1024, 1);
    for (left, right, descriptors, flags) in [
        (TILES, TILES, [tiles(0), tiles(RIGHT)], "0, 0"),
        (SWIZZLED, SWIZZLED, [wide(0), wide(RIGHT)], "0, 0"),
        (SWIZZLED_BY_32, SWIZZLED_BY_32, [descriptor(0, 16, 256, 3), descriptor(RIGHT, 16, 256, 3)], "0, 0"),
        (SWIZZLED, TURNED, [wide(0), wide(RIGHT)], "0, 1"),
        (TURNED, TURNED, [wide(0), wide(RIGHT)], "1, 1"),
        (TURNED_TILES, TILES, [descriptor(0, 1024, 128, 0), tiles(RIGHT)], "1, 0"),
    ] {
        let mut memory = vec![0u8; 16384];
        let mut put = |at: u64, value: u64| {
            memory[at as usize..at as usize + 2].copy_from_slice(&half(value).to_le_bytes()[..2]);
        };
        for (line, k) in (0..64).flat_map(|line| (0..16).map(move |k| (line, k))) {
            put(left(line, k), a(line, k));
            put(RIGHT + right(line, k), b(k, line));
        }
        let input: Vec<_> =
            memory.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))).collect();
        let list = (0..32).map(|i| format!("%w{i}")).collect::<Vec<_>>().join(", ");
        let mut body = String::from(
            ".reg .b32 %w<32>; ld.param.u64 %d1, [p_in]; ld.param.u64 %d2, [p_out]; mad.wide.u32 %d1, %i, 8, %d1; mov.u32 %r1, dynamic;
mad.lo.u32 %r1, %i, 8, %r1; mov.u32 %r2, 0; C: ld.global.b64 %d3, [%d1]; st.shared.b64 [%r1], %d3; add.u64 %d1, %d1, 1024; add.u32 %r1, %r1, 1024;
add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 16; @%p1 bra C; fence.proxy.async.shared::cta; bar.sync 0; wgmma.fence.sync.aligned;\n",
        );
        (0..32).for_each(|i| write!(body, "mov.b32 %w{i}, 0f40000000; ").expect("a string"));
        let [one, other] = descriptors;
        write!(
            body,
            "mov.b64 %d4, {one}; mov.b64 %d5, {other}; mov.pred %p2, 1;
wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{list}}}, %d4, %d5, %p2, 1, -1, {flags};
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; mad.wide.u32 %d2, %i, 64, %d2; setp.lt.u32 %p3, %i, 64; setp.ge.u32 %p4, %i, 64;"
        )
        .expect("a string");
        // The lower half of the warps' sums, of 16 of 32 registers each.
        (0..16).for_each(|i| write!(body, "st.global.b32 [%d2+{}], %w{};", 4 * i, 2 * i).expect("a string"));
        let text = module(".extern .shared .align 1024 .b8 dynamic[];", &format!("{body} ret;"));
        let outcome = run_with(&text, [1, 128], &input, 1, 16384);
        assert!(outcome.findings.is_empty(), "{flags}: {}", outcome.findings[0]);
        for (lane, i) in (0..128u64).flat_map(|lane| (0..16).map(move |i| (lane, i))) {
            let register = 2 * i;
            let row = 16 * (lane / 32) + lane % 32 / 4 + 8 * (register / 2 % 2);
            let column = register / 4 * 8 + lane % 4 * 2;
            let expected = 2.0 - (0..16).map(|k| a(row, k) * b(k, column)).sum::<u64>() as f32;
            let word = outcome.bits(1, (lane * 16 + i) / 2).expect("the run ended");
            let found = f32::from_bits((word >> (32 * (i % 2))) as u32);
            assert_eq!(found, expected, "{flags}: row {row}, column {column}");
        }
    }
}

#[test]
fn four_warps_make_a_product_together() {
    let body = "mov.b64 %d4, 0; mov.pred %p2, 0; mov.b32 %r1, 0;
wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %d4, %d4, %p2, 1, 1, 0, 0; ret;";
    let text = module(".extern .shared .align 1024 .b8 dynamic[];", body);
    let found = &run_with(&text, [1, 96], &[0; 8], 1, 16384).findings[0];
    assert!(found.kind == Kind::DivergentWarp && found.detail.contains("the block ends before the fourth"), "{found}");
    let found = &run_with(&text, [1, 128], &[0; 8], 1, 16384).findings[0];
    assert_eq!(found.kind, Kind::Uninitialized, "{found}");
    let found = &run_with(&text, [1, 128], &[0; 8], 1, 64).findings[0];
    assert_eq!(found.kind, Kind::OutOfBounds, "{found}");
}
