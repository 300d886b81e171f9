//! Instructions against known answers, through the whole machine.

use crate::machine::tests::{module, run};

/// What a body leaves in `%d0`, from the three words `%d1` to `%d3`, whose lower halves are `%r1` to `%r3` and whose lowest 16 bits are
/// `%h1` to `%h3`. A body that names `%r0`, `%h0` or `%p0` leaves its result there.
fn value(body: &str, inputs: [u64; 3]) -> u64 {
    let loads: String = (1..=3)
        .map(|i| {
            let at = (i - 1) * 8;
            format!("ld.global.b64 %d{i}, [%in+{at}]; cvt.u32.u64 %r{i}, %d{i}; cvt.u16.u64 %h{i}, %d{i};\n")
        })
        .chain(["setp.ne.b64 %p1, %d1, %d1; setp.ne.b64 %p2, %d1, %d1;\n".to_owned()])
        .collect();
    let result = match body {
        body if body.contains("%r0") => "cvt.u64.u32 %d0, %r0;",
        body if body.contains("%h0") => "cvt.u64.u16 %d0, %h0;",
        body if body.contains("%p0") => "selp.b64 %d0, 1, 0, %p0;",
        _ => "",
    };
    let text = module("", &format!("{loads}{body}\n{result} st.global.b64 [%out], %d0; ret;"));
    let outcome = run(&text, 1, 1, &inputs, 1);
    assert!(outcome.findings.is_empty(), "{body}: {}", outcome.findings[0]);
    outcome.bits(1, 0).expect("the run ended")
}

fn hold(cases: &[(&str, [u64; 3], u64)]) {
    for (body, inputs, expected) in cases {
        let found = value(body, *inputs);
        assert_eq!(found, *expected, "{body} {inputs:x?}: {found:#x}, not {expected:#x}");
    }
}

fn f(value: f32) -> u64 {
    value.to_bits().into()
}

const MIN32: u64 = 0x8000_0000;
const MAX32: u64 = 0x7FFF_FFFF;
const ALL32: u64 = 0xFFFF_FFFF;

#[test]
fn integers() {
    hold(&[
        ("add.s32 %r0, %r1, %r2;", [ALL32, 1, 0], 0),
        ("add.sat.s32 %r0, %r1, %r2;", [MAX32, 1, 0], MAX32),
        ("sub.sat.s32 %r0, %r1, %r2;", [MIN32, 1, 0], MIN32),
        ("add.u16 %h0, %h1, %h2;", [0xFFFF, 2, 0], 1),
        ("sub.s64 %d0, %d1, %d2;", [0, 1, 0], u64::MAX),
        ("mul.lo.s32 %r0, %r1, -3;", [5, 0, 0], ALL32 - 14),
        ("mul.hi.s32 %r0, %r1, %r2;", [ALL32, 2, 0], ALL32),
        ("mul.hi.u32 %r0, %r1, %r2;", [ALL32, 2, 0], 1),
        ("mul.hi.u64 %d0, %d1, %d2;", [u64::MAX, u64::MAX, 0], u64::MAX - 1),
        ("mul.hi.s64 %d0, %d1, %d2;", [u64::MAX, u64::MAX, 0], 0),
        ("mul.wide.s32 %d0, %r1, %r2;", [ALL32, ALL32, 0], 1),
        ("mul.wide.u32 %d0, %r1, %r2;", [ALL32, ALL32, 0], 0xFFFF_FFFE_0000_0001),
        ("mul.wide.s16 %r0, %h1, %h2;", [0xFFFF, 5, 0], ALL32 - 4),
        ("mad.lo.u32 %r0, %r1, %r2, %r3;", [7, 6, ALL32], 41),
        ("mad.wide.s32 %d0, %r1, %r2, %d3;", [ALL32, 4, 10], 6),
        ("mad.hi.u32 %r0, %r1, %r2, %r3;", [ALL32, ALL32, 3], 1),
        ("mul24.lo.u32 %r0, %r1, %r2;", [0xFF00_0003, 5, 0], 15),
        ("mul24.lo.s32 %r0, %r1, %r2;", [0x00FF_FFFF, 5, 0], ALL32 - 4),
        ("mul24.hi.u32 %r0, %r1, %r2;", [0x00FF_FFFF, 0x00FF_FFFF, 0], 0xFFFF_FE00),
        ("sad.s32 %r0, %r1, %r2, %r3;", [ALL32, 3, 10], 14),
        ("div.s32 %r0, %r1, %r2;", [ALL32 - 6, 2, 0], ALL32 - 2),
        ("div.s32 %r0, %r1, %r2;", [MIN32, ALL32, 0], MIN32),
        ("div.u32 %r0, %r1, %r2;", [7, 0, 0], ALL32),
        ("rem.s32 %r0, %r1, %r2;", [ALL32 - 6, 4, 0], ALL32 - 2),
        ("rem.u64 %d0, %d1, %d2;", [7, 0, 0], 7),
        ("abs.s32 %r0, %r1;", [ALL32 - 4, 0, 0], 5),
        ("abs.s32 %r0, %r1;", [MIN32, 0, 0], MIN32),
        ("neg.s16 %h0, %h1;", [1, 0, 0], 0xFFFF),
        ("min.s32 %r0, %r1, %r2;", [ALL32, 1, 0], ALL32),
        ("min.u32 %r0, %r1, %r2;", [ALL32, 1, 0], 1),
        ("max.s16 %h0, %h1, %h2;", [0xFFFF, 1, 0], 1),
        ("max.s32.relu %r0, %r1, %r2;", [ALL32, MIN32, 0], 0),
        ("shl.b32 %r0, %r1, %r2;", [1, 32, 0], 0),
        ("shl.b32 %r0, %r1, %r2;", [1, 31, 0], MIN32),
        ("shr.s32 %r0, %r1, %r2;", [MIN32, 40, 0], ALL32),
        ("shr.u32 %r0, %r1, %r2;", [MIN32, 40, 0], 0),
        ("shr.s16 %h0, %h1, 4;", [0x8000, 0, 0], 0xF800),
        ("shl.b64 %d0, %d1, %r2;", [1, 63, 0], 1 << 63),
        ("cnot.b32 %r0, %r1;", [0, 0, 0], 1),
        ("not.b16 %h0, %h1;", [1, 0, 0], 0xFFFE),
        ("selp.s32 %r0, 3, 4, %p1;", [0, 0, 0], 4),
        ("slct.b32.s32 %r0, %r1, %r2, %r3;", [3, 4, ALL32], 4),
        ("slct.b32.f32 %r0, %r1, %r2, %r3;", [3, 4, f(-0.0)], 3),
        ("setp.lt.and.s32 %p0|%p1, %r1, %r2, %p2;", [1, 2, 0], 0),
        ("setp.lt.or.s32 %p1|%p0, %r1, %r2, %p2;", [1, 2, 0], 0),
        ("setp.lo.u32 %p0, %r1, %r2;", [1, ALL32, 0], 1),
        ("setp.lt.s32 %p0, %r1, %r2;", [1, ALL32, 0], 0),
        ("set.gt.u32.s32 %r0, %r1, %r2;", [1, ALL32, 0], ALL32),
        ("set.gt.f32.s32 %r0, %r1, %r2;", [1, ALL32, 0], f(1.0)),
        ("add.cc.u32 %r4, %r1, %r2; addc.u32 %r0, %r3, 0;", [ALL32, 1, 5], 6),
        ("sub.cc.u32 %r4, %r1, %r2; subc.u32 %r0, %r3, 0;", [0, 1, 5], 4),
        ("mad.lo.cc.u32 %r4, %r1, %r2, %r2; madc.hi.u32 %r0, %r1, %r2, %r3;", [ALL32, ALL32, 0], ALL32),
        ("vote.sync.any.pred %p0, %p1, 1;", [0, 0, 0], 0),
    ]);
}

#[test]
fn rows_of_bits() {
    hold(&[
        ("popc.b64 %r0, %d1;", [u64::MAX, 0, 0], 64),
        ("clz.b32 %r0, %r1;", [0, 0, 0], 32),
        ("clz.b64 %r0, %d1;", [1, 0, 0], 63),
        ("brev.b32 %r0, %r1;", [1, 0, 0], MIN32),
        ("bfind.u32 %r0, %r1;", [0, 0, 0], ALL32),
        ("bfind.u32 %r0, %r1;", [0x0001_0000, 0, 0], 16),
        ("bfind.s32 %r0, %r1;", [ALL32, 0, 0], ALL32),
        ("bfind.s32 %r0, %r1;", [ALL32 - 8, 0, 0], 3),
        ("bfind.shiftamt.u32 %r0, %r1;", [1, 0, 0], 31),
        ("fns.b32 %r0, %r1, %r2, %r3;", [0b1011_0000, 4, 3], 7),
        ("fns.b32 %r0, %r1, %r2, %r3;", [0b1011_0000, 7, ALL32 - 1], 5),
        ("fns.b32 %r0, %r1, %r2, %r3;", [0b1011_0000, 0, 4], ALL32),
        ("bfe.u32 %r0, %r1, %r2, %r3;", [0xABCD_1234, 8, 8], 0x12),
        ("bfe.s32 %r0, %r1, %r2, %r3;", [0xABCD_1234, 28, 8], 0xFFFF_FFFA),
        ("bfe.s32 %r0, %r1, %r2, %r3;", [0xABCD_1234, 16, 8], 0xFFFF_FFCD),
        ("bfe.u32 %r0, %r1, %r2, %r3;", [ALL32, 40, 8], 0),
        ("bfe.s32 %r0, %r1, %r2, %r3;", [ALL32, 40, 8], ALL32),
        ("bfe.u64 %d0, %d1, %r2, %r3;", [u64::MAX, 1, 70], u64::MAX >> 1),
        ("bfi.b32 %r0, %r1, %r2, 8, 8;", [0xFF, 0x1234_5678, 0], 0x1234_FF78),
        ("bfi.b32 %r0, %r1, %r2, 32, 8;", [0xFF, 0x1234_5678, 0], 0x1234_5678),
        ("bfi.b64 %d0, %d1, %d2, 60, 8;", [0xFF, 0, 0], 0xF << 60),
        ("szext.wrap.s32 %r0, %r1, %r2;", [0x18, 5, 0], ALL32 - 7),
        ("bmsk.clamp.b32 %r0, %r1, %r2;", [4, 8, 0], 0xFF0),
        ("lop3.b32 %r0, %r1, %r2, %r3, 0x96;", [0b1100, 0b1010, 0b1001], 0b1111),
        ("lop3.b32 %r0, %r1, %r2, %r3, 0x80;", [0b1100, 0b1010, 0b1001], 0b1000),
        ("lop3.b32 %r0, %r1, %r2, %r3, 0xCA;", [0b1100, 0b1010, 0b0101], 0b1001),
        ("shf.l.wrap.b32 %r0, %r1, %r2, 36;", [0x8765_4321, 0xFEDC_BA98, 0], 0xEDCB_A988),
        ("shf.l.clamp.b32 %r0, %r1, %r2, 36;", [0x8765_4321, 0xFEDC_BA98, 0], 0x8765_4321),
        ("shf.r.wrap.b32 %r0, %r1, %r2, 4;", [0x8765_4321, 0xFEDC_BA98, 0], 0x8876_5432),
        ("shf.r.clamp.b32 %r0, %r1, %r2, 40;", [0x8765_4321, 0xFEDC_BA98, 0], 0xFEDC_BA98),
        ("prmt.b32 %r0, %r1, %r2, 0x5410;", [0x3322_1100, 0x7766_5544, 0], 0x5544_1100),
        ("prmt.b32 %r0, %r1, %r2, 0x8FF7;", [0x3322_1180, 0xF766_5544, 0], 0xFFFF_FFF7),
        ("prmt.b32.f4e %r0, %r1, %r2, 1;", [0x3322_1100, 0x7766_5544, 0], 0x4433_2211),
        ("prmt.b32.b4e %r0, %r1, %r2, 1;", [0x3322_1100, 0x7766_5544, 0], 0x6677_0011),
        ("prmt.b32.rc8 %r0, %r1, %r2, 2;", [0x3322_1100, 0x7766_5544, 0], 0x2222_2222),
        ("prmt.b32.ecl %r0, %r1, %r2, 1;", [0x3322_1100, 0x7766_5544, 0], 0x3322_1111),
        ("prmt.b32.ecr %r0, %r1, %r2, 1;", [0x3322_1100, 0x7766_5544, 0], 0x1111_1100),
        ("prmt.b32.rc16 %r0, %r1, %r2, 1;", [0x3322_1100, 0x7766_5544, 0], 0x3322_3322),
        ("dp4a.u32.u32 %r0, %r1, %r2, %r3;", [0x0102_0304, 0x0506_0708, 100], 100 + 5 + 12 + 21 + 32),
        ("dp4a.s32.s32 %r0, %r1, %r2, %r3;", [0xFF00_0000, 0x0200_0000, 0], ALL32 - 1),
        ("dp2a.lo.u32.u32 %r0, %r1, %r2, %r3;", [0x0003_0005, 0x0706_0201, 1], 1 + 5 + 6),
        ("dp2a.hi.u32.u32 %r0, %r1, %r2, %r3;", [0x0003_0005, 0x0706_0201, 1], 1 + 30 + 21),
        ("mov.b64 %d0, {%r1, %r2};", [1, 2, 0], 2 << 32 | 1),
        ("mov.b64 {%r4, %r0}, %d1;", [0x1234_5678_9ABC_DEF0, 0, 0], 0x1234_5678),
        ("mov.b32 {_, %h0}, %r1;", [0x1234_5678, 0, 0], 0x1234),
        ("mov.b64 {%h4, %h5, %h0, %h6}, %d1;", [0x1234_5678_9ABC_DEF0, 0, 0], 0x5678),
        ("mov.b32 %r0, {%h1, %h2};", [0x5678, 0x1234, 0], 0x1234_5678),
        ("add.u16x2 %r0, %r1, %r2;", [0xFFFF_0001, 0x0001_FFFF, 0], 0),
        ("min.s16x2 %r0, %r1, %r2;", [0xFFFF_0001, 0x0001_0000, 0], 0xFFFF_0000),
    ]);
}

#[test]
fn single_and_double_precision() {
    let tiny = f(f32::from_bits(1));
    let nan = 0x7FFF_FFFF;
    let d = |value: f64| value.to_bits();
    hold(&[
        ("add.rn.f32 %r0, %r1, %r2;", [f(1.0), f(2.0), 0], f(3.0)),
        ("add.f32 %r0, %r1, %r2;", [f(f32::INFINITY), f(f32::NEG_INFINITY), 0], nan),
        ("add.rz.f32 %r0, %r1, %r2;", [f(1.0), f(1e-9), 0], f(1.0)),
        ("add.rp.f32 %r0, %r1, %r2;", [f(1.0), f(1e-9), 0], f(1f32.next_up())),
        ("add.rm.f32 %r0, %r1, %r2;", [f(-1.0), f(-1e-9), 0], f((-1f32).next_down())),
        ("sub.rm.f32 %r0, %r1, %r2;", [f(1.0), f(1e-9), 0], f(1f32.next_down())),
        ("mul.rz.f32 %r0, %r1, %r2;", [f(f32::MAX), f(2.0), 0], f(f32::MAX)),
        ("mul.f32 %r0, %r1, %r2;", [f(f32::MAX), f(2.0), 0], f(f32::INFINITY)),
        ("mul.ftz.f32 %r0, %r1, %r2;", [tiny, f(1.0), 0], 0),
        ("mul.f32 %r0, %r1, %r2;", [tiny, f(1.0), 0], tiny),
        ("add.sat.f32 %r0, %r1, %r2;", [f(1.0), f(2.0), 0], f(1.0)),
        ("add.sat.f32 %r0, %r1, %r2;", [nan, f(2.0), 0], 0),
        // One rounding, not two.
        (
            "fma.rn.f32 %r0, %r1, %r2, %r3;",
            [f(1.0 + f32::EPSILON), f(1.0 - f32::EPSILON), f(-1.0)],
            f(-1.421_085_5e-14),
        ),
        ("fma.rz.f32 %r0, %r1, %r2, %r3;", [f(1.0), f(1.0), f(1e-9)], f(1.0)),
        ("fma.rp.f32 %r0, %r1, %r2, %r3;", [f(1.0), f(1.0), f(1e-9)], f(1f32.next_up())),
        ("div.rn.f32 %r0, %r1, %r2;", [f(1.0), f(3.0), 0], f(1.0 / 3.0)),
        ("div.rp.f32 %r0, %r1, %r2;", [f(1.0), f(3.0), 0], f(1.0 / 3.0)),
        ("div.rz.f32 %r0, %r1, %r2;", [f(1.0), f(3.0), 0], f((1f32 / 3.0).next_down())),
        ("div.full.f32 %r0, %r1, %r2;", [f(6.0), f(3.0), 0], f(2.0)),
        ("rcp.rn.f32 %r0, %r1;", [f(4.0), 0, 0], f(0.25)),
        ("sqrt.rn.f32 %r0, %r1;", [f(2.0), 0, 0], f(2f32.sqrt())),
        ("sqrt.rn.f32 %r0, %r1;", [f(-1.0), 0, 0], nan),
        ("rsqrt.approx.f32 %r0, %r1;", [f(4.0), 0, 0], f(0.5)),
        ("ex2.approx.f32 %r0, %r1;", [f(3.0), 0, 0], f(8.0)),
        ("lg2.approx.f32 %r0, %r1;", [f(8.0), 0, 0], f(3.0)),
        ("neg.f32 %r0, %r1;", [f(0.0), 0, 0], f(-0.0)),
        ("abs.f32 %r0, %r1;", [f(-3.0), 0, 0], f(3.0)),
        ("min.f32 %r0, %r1, %r2;", [nan, f(2.0), 0], f(2.0)),
        ("min.NaN.f32 %r0, %r1, %r2;", [nan, f(2.0), 0], nan),
        ("min.f32 %r0, %r1, %r2;", [f(0.0), f(-0.0), 0], f(-0.0)),
        ("max.f32 %r0, %r1, %r2;", [f(-0.0), f(0.0), 0], f(0.0)),
        ("copysign.f32 %r0, %r1, %r2;", [f(-1.0), f(3.0), 0], f(-3.0)),
        ("testp.subnormal.f32 %p0, %r1;", [tiny, 0, 0], 1),
        ("setp.lt.f32 %p0, %r1, %r2;", [nan, f(1.0), 0], 0),
        ("setp.ltu.f32 %p0, %r1, %r2;", [nan, f(1.0), 0], 1),
        ("setp.ne.f32 %p0, %r1, %r2;", [nan, f(1.0), 0], 0),
        ("setp.neu.f32 %p0, %r1, %r2;", [nan, f(1.0), 0], 1),
        ("setp.equ.f32 %p0, %r1, %r2;", [f(2.0), f(1.0), 0], 0),
        ("setp.num.f64 %p0, %d1, %d2;", [d(2.0), d(1.0), 0], 1),
        ("add.f64 %d0, %d1, %d2;", [d(1.0), d(2.5), 0], d(3.5)),
        ("add.rp.f64 %d0, %d1, %d2;", [d(1.0), d(1e-30), 0], d(1f64.next_up())),
        ("add.rz.f64 %d0, %d1, %d2;", [d(f64::MAX), d(f64::MAX), 0], d(f64::MAX)),
        ("mul.rm.f64 %d0, %d1, %d2;", [d(1.0 + f64::EPSILON), d(1.0 - f64::EPSILON), 0], d(1f64.next_down())),
        ("fma.rn.f64 %d0, %d1, %d2, %d3;", [d(3.0), d(4.0), d(0.5)], d(12.5)),
        ("fma.rp.f64 %d0, %d1, %d2, %d3;", [d(1.0), d(1.0), d(1e-40)], d(1f64.next_up())),
        ("fma.rm.f64 %d0, %d1, %d2, %d3;", [d(1.0), d(1.0), d(-1e-40)], d(1f64.next_down())),
        ("div.rz.f64 %d0, %d1, %d2;", [d(2.0), d(3.0), 0], d(2.0 / 3.0)),
        ("div.rp.f64 %d0, %d1, %d2;", [d(2.0), d(3.0), 0], d((2f64 / 3.0).next_up())),
        ("sqrt.rn.f64 %d0, %d1;", [d(2.0), 0, 0], d(2f64.sqrt())),
        ("mov.f32 %r0, 0f3F800000;", [0; 3], f(1.0)),
        ("mov.f64 %d0, 1.5;", [0; 3], d(1.5)),
    ]);
}

#[test]
fn conversions() {
    let d = |value: f64| value.to_bits();
    hold(&[
        ("cvt.s64.s32 %d0, %r1;", [ALL32, 0, 0], u64::MAX),
        ("cvt.u64.u32 %d0, %r1;", [ALL32, 0, 0], ALL32),
        ("cvt.s32.s8 %r0, %r1;", [0x1280, 0, 0], ALL32 - 127),
        ("cvt.u32.u8 %r0, %r1;", [0x1280, 0, 0], 0x80),
        ("cvt.s16.s8 %h0, %h1;", [0x80, 0, 0], 0xFF80),
        ("cvt.u8.u32 %h0, %r1;", [0x1234, 0, 0], 0x34),
        ("cvt.sat.u8.s32 %h0, %r1;", [0x1234, 0, 0], 0xFF),
        ("cvt.sat.u8.s32 %h0, %r1;", [ALL32, 0, 0], 0),
        ("cvt.sat.s32.s64 %r0, %d1;", [1 << 40, 0, 0], MAX32),
        ("cvt.u32.u16 %r0, %h1;", [0xFFFF, 0, 0], 0xFFFF),
        ("cvt.rn.f32.u32 %r0, %r1;", [16_777_217, 0, 0], f(16_777_216.0)),
        ("cvt.rp.f32.u32 %r0, %r1;", [16_777_217, 0, 0], f(16_777_218.0)),
        ("cvt.rz.f32.s32 %r0, %r1;", [ALL32 - 16_777_216, 0, 0], f(-16_777_216.0)),
        ("cvt.rn.f32.u64 %r0, %d1;", [u64::MAX, 0, 0], f(1.844_674_4e19)),
        ("cvt.rz.f32.u64 %r0, %d1;", [u64::MAX, 0, 0], f(1.844_674_4e19f32.next_down())),
        ("cvt.rn.f64.s64 %d0, %d1;", [u64::MAX, 0, 0], d(-1.0)),
        ("cvt.rm.f64.u64 %d0, %d1;", [u64::MAX, 0, 0], d(1.844_674_407_370_955_2e19f64.next_down())),
        ("cvt.rzi.s32.f32 %r0, %r1;", [f(-2.7), 0, 0], ALL32 - 1),
        ("cvt.rni.s32.f32 %r0, %r1;", [f(2.5), 0, 0], 2),
        ("cvt.rni.s32.f32 %r0, %r1;", [f(3.5), 0, 0], 4),
        ("cvt.rmi.s32.f32 %r0, %r1;", [f(-2.1), 0, 0], ALL32 - 2),
        ("cvt.rpi.u32.f32 %r0, %r1;", [f(2.1), 0, 0], 3),
        ("cvt.rzi.u32.f32 %r0, %r1;", [f(-2.7), 0, 0], 0),
        ("cvt.rzi.s32.f32 %r0, %r1;", [f(3e9), 0, 0], MAX32),
        ("cvt.rzi.s32.f32 %r0, %r1;", [f(f32::NAN), 0, 0], 0),
        ("cvt.rzi.s64.f64 %d0, %d1;", [d(f64::NAN), 0, 0], 1 << 63),
        ("cvt.rzi.u8.f32 %h0, %r1;", [f(300.0), 0, 0], 255),
        ("cvt.rni.f32.f32 %r0, %r1;", [f(2.5), 0, 0], f(2.0)),
        ("cvt.rpi.f32.f32 %r0, %r1;", [f(2.1), 0, 0], f(3.0)),
        ("cvt.sat.f32.f32 %r0, %r1;", [f(2.1), 0, 0], f(1.0)),
        ("cvt.rn.f32.f64 %r0, %d1;", [d(0.1), 0, 0], f(0.1)),
        ("cvt.rz.f32.f64 %r0, %d1;", [d(1.0 - 1e-12), 0, 0], f(1f32.next_down())),
        ("cvt.f64.f32 %d0, %r1;", [f(0.1), 0, 0], d(f64::from(0.1f32))),
        ("cvt.rn.f16.f32 %h0, %r1;", [f(65_520.0), 0, 0], 0x7C00),
        ("cvt.rz.f16.f32 %h0, %r1;", [f(65_520.0), 0, 0], 0x7BFF),
        ("cvt.rn.f16.f32 %h0, %r1;", [f(6e-8), 0, 0], 1),
        ("cvt.rn.f16.f32 %h0, %r1;", [f(1.0 / 3.0), 0, 0], 0x3555),
        ("cvt.f32.f16 %r0, %h1;", [0x3555, 0, 0], f(0.333_251_95)),
        ("cvt.f64.f16 %d0, %h1;", [0xC000, 0, 0], d(-2.0)),
        ("cvt.rn.bf16.f32 %h0, %r1;", [f(1.003_906_3), 0, 0], 0x3F80),
        ("cvt.f32.bf16 %r0, %h1;", [0x4049, 0, 0], 0x4049_0000),
        ("cvt.rn.f16x2.f32 %r0, %r1, %r2;", [f(1.0), f(2.0), 0], 0x3C00_4000),
        ("cvt.rn.bf16x2.f32 %r0, %r1, %r2;", [f(1.0), f(2.0), 0], 0x3F80_4000),
        ("cvt.rn.relu.f16.f32 %h0, %r1;", [f(-1.0), 0, 0], 0),
        ("cvt.rna.tf32.f32 %r0, %r1;", [0x3F80_1000, 0, 0], 0x3F80_2000),
        ("cvt.rn.f16.s32 %h0, %r1;", [2049, 0, 0], 0x6800),
    ]);
}

#[test]
fn half_precision() {
    hold(&[
        ("add.f16 %h0, %h1, %h2;", [0x3C00, 0x4000, 0], 0x4200),
        ("sub.rn.f16 %h0, %h1, %h2;", [0x3C00, 0x3C00, 0], 0),
        ("mul.f16 %h0, %h1, %h2;", [0x7BFF, 0x4000, 0], 0x7C00),
        ("add.sat.f16 %h0, %h1, %h2;", [0x3C00, 0x4000, 0], 0x3C00),
        ("fma.rn.f16 %h0, %h1, %h2, %h3;", [0x3C03, 0x3C03, 0xBC00], 0x1E02),
        ("fma.rn.relu.f16 %h0, %h1, %h2, %h3;", [0x3C00, 0xBC00, 0], 0),
        ("neg.f16 %h0, %h1;", [0x3C00, 0, 0], 0xBC00),
        ("max.f16 %h0, %h1, %h2;", [0x7FFF, 0x3C00, 0], 0x3C00),
        ("max.NaN.f16 %h0, %h1, %h2;", [0x7FFF, 0x3C00, 0], 0x7FFF),
        ("setp.gt.f16 %p0, %h1, %h2;", [0x4000, 0x3C00, 0], 1),
        ("add.f16x2 %r0, %r1, %r2;", [0x3C00_4000, 0x3C00_3C00, 0], 0x4000_4200),
        ("fma.rn.f16x2 %r0, %r1, %r2, %r3;", [0x3C00_4000, 0x4000_4000, 0x3C00_0000], 0x4200_4400),
        ("add.bf16 %h0, %h1, %h2;", [0x3F80, 0x4000, 0], 0x4040),
        ("fma.rn.bf16x2 %r0, %r1, %r2, %r3;", [0x3F80_4000, 0x4000_4000, 0x3F80_0000], 0x4040_4080),
    ]);
}

#[test]
fn directed_rounding_with_flushed_and_saturated_numbers() {
    let (tiny, least) = (f(f32::from_bits(1)), f(f32::MIN_POSITIVE));
    hold(&[
        ("add.rz.ftz.f32 %r0, %r1, %r2;", [tiny, f(1.0), 0], f(1.0)),
        ("add.rp.ftz.f32 %r0, %r1, %r2;", [f(1.0), f(1e-9), 0], f(1f32.next_up())),
        ("add.rp.f32 %r0, %r1, %r2;", [f(1.0), tiny, 0], f(1f32.next_up())),
        ("add.rp.ftz.f32 %r0, %r1, %r2;", [f(1.0), tiny, 0], f(1.0)),
        ("mul.rm.ftz.f32 %r0, %r1, %r2;", [least, f(0.5), 0], 0),
        ("mul.rm.f32 %r0, %r1, %r2;", [least, f(0.5), 0], f(f32::MIN_POSITIVE / 2.0)),
        ("mul.rp.sat.f32 %r0, %r1, %r2;", [f(3.0), f(0.5), 0], f(1.0)),
        ("fma.rm.sat.f32 %r0, %r1, %r2, %r3;", [f(-3.0), f(0.5), f(1.0)], 0),
        ("fma.rz.ftz.sat.f32 %r0, %r1, %r2, %r3;", [f(0.5), f(0.5), f(1e-9)], f(0.25)),
        ("fma.rp.ftz.sat.f32 %r0, %r1, %r2, %r3;", [f(0.5), f(0.5), f(1e-9)], f(0.25f32.next_up())),
        ("div.rm.ftz.f32 %r0, %r1, %r2;", [f(1.0), f(3.0), 0], f((1f32 / 3.0).next_down())),
        ("sqrt.rp.ftz.f32 %r0, %r1;", [f(2.0), 0, 0], f(2f32.sqrt().next_up())),
        ("rcp.rz.f32 %r0, %r1;", [f(-3.0), 0, 0], f(-(1f32 / 3.0).next_down())),
        ("cvt.rz.ftz.f32.f64 %r0, %d1;", [(f64::from(f32::MIN_POSITIVE) / 2.0).to_bits(), 0, 0], 0),
        ("cvt.rp.sat.f32.f64 %r0, %d1;", [1.5f64.to_bits(), 0, 0], f(1.0)),
        ("min.xorsign.abs.f32 %r0, %r1, %r2;", [f(-3.0), f(2.0), 0], f(-2.0)),
        ("max.xorsign.abs.f32 %r0, %r1, %r2;", [f(-3.0), f(-2.0), 0], f(3.0)),
    ]);
}

#[test]
fn halves_that_are_flushed() {
    hold(&[
        ("add.ftz.f16 %h0, %h1, %h2;", [1, 0x3C00, 0], 0x3C00),
        ("add.ftz.f16 %h0, %h1, %h2;", [1, 0, 0], 0),
        ("add.f16 %h0, %h1, %h2;", [1, 0, 0], 1),
        ("mul.ftz.f16 %h0, %h1, %h2;", [0x0400, 0x3800, 0], 0),
        ("mul.ftz.sat.f16 %h0, %h1, %h2;", [0x4000, 0x3C00, 0], 0x3C00),
        ("fma.rn.ftz.relu.f16x2 %r0, %r1, %r2, %r3;", [0x0001_3C00, 0x3C00_BC00, 0], 0),
        ("ex2.approx.f16 %h0, %h1;", [0x4200, 0, 0], 0x4800),
        ("ex2.approx.f16x2 %r0, %r1;", [0x4200_0000, 0, 0], 0x4800_3C00),
        ("ex2.approx.ftz.bf16 %h0, %h1;", [0x4040, 0, 0], 0x4100),
        ("tanh.approx.f16 %h0, %h1;", [0x7C00, 0, 0], 0x3C00),
        ("tanh.approx.bf16x2 %r0, %r1;", [0xFF80_0000, 0, 0], 0xBF80_0000),
        ("setp.gt.f16x2 %p1|%p0, %r1, %r2;", [0x4000_3C00, 0x3C00_4000, 0], 1),
        ("setp.gt.f16x2 %p0|%p1, %r1, %r2;", [0x4000_3C00, 0x3C00_4000, 0], 0),
        ("set.gt.f16x2.f16x2 %r0, %r1, %r2;", [0x4000_3C00, 0x3C00_4000, 0], 0x3C00_0000),
        ("set.le.bf16x2.bf16x2 %r0, %r1, %r2;", [0x4000_3F80, 0x3F80_4000, 0], 0x3F80),
        ("set.neu.u32.f16x2 %r0, %r1, %r2;", [0x7FFF_3C00, 0x7FFF_3C00, 0], 0xFFFF_0000),
    ]);
}

/// The largest numbers of 8 bits are 448 and 57344, the smallest of `e4m3` is 2 to the power of -9.
#[test]
fn numbers_of_eight_bits() {
    hold(&[
        ("cvt.rn.satfinite.e4m3x2.f32 %h0, %r1, %r2;", [f(1.0), f(448.0), 0], 0x387E),
        ("cvt.rn.satfinite.e4m3x2.f32 %h0, %r1, %r2;", [f(-1000.0), f(f32::NAN), 0], 0xFE7F),
        ("cvt.rn.satfinite.e4m3x2.f32 %h0, %r1, %r2;", [f(17.0), f(19.0), 0], 0x585A),
        ("cvt.rn.satfinite.e4m3x2.f32 %h0, %r1, %r2;", [f(272.0), f(304.0), 0], 0x787A),
        ("cvt.rn.satfinite.e4m3x2.f32 %h0, %r1, %r2;", [f(0.001_953_125), f(0.000_976), 0], 0x0100),
        ("cvt.rn.satfinite.relu.e4m3x2.f32 %h0, %r1, %r2;", [f(-2.0), f(2.0), 0], 0x0040),
        ("cvt.rn.satfinite.e5m2x2.f32 %h0, %r1, %r2;", [f(1.0), f(f32::NEG_INFINITY), 0], 0x3CFB),
        ("cvt.rn.satfinite.e5m2x2.f16x2 %h0, %r1;", [0x3C00_7C00, 0, 0], 0x3C7B),
        ("cvt.rn.f16x2.e4m3x2 %r0, %h1;", [0x387E, 0, 0], 0x3C00_5F00),
        ("cvt.rn.f16x2.e4m3x2 %r0, %h1;", [0x7F01, 0, 0], 0x7FFF_1800),
        ("cvt.rn.relu.f16x2.e5m2x2 %r0, %h1;", [0xBC7B, 0, 0], 0x7B00),
        ("cvt.pack.sat.u8.s32.b32 %r0, %r1, %r2, %r3;", [300, ALL32 - 4, 0xAABB], 0xAABB_FF00),
        ("cvt.pack.sat.s8.s32.b32 %r0, %r1, %r2, %r3;", [300, ALL32 - 999, 0], 0x7F80),
        ("cvt.pack.sat.s16.s32 %r0, %r1, %r2;", [ALL32, 40_000, 0], 0xFFFF_7FFF),
        ("cvt.pack.sat.u4.s32.b32 %r0, %r1, %r2, %r3;", [20, 3, 0x12], 0x12F3),
    ]);
}

#[test]
fn wider_and_rarer_forms() {
    hold(&[
        (".reg .b128 %q<2>; mov.b128 %q1, {%d1, %d2}; mov.b128 {%d4, %d0}, %q1;", [1, 7, 0], 7),
        (".reg .b128 %q<2>; mov.b128 %q1, {%d1, %d2}; mov.b128 %q0, %q1; mov.b128 {%d0, %d4}, %q0;", [1, 7, 0], 1),
        ("lop3.or.b32 %r0|%p1, %r1, %r2, %r3, 0x96, %p2;", [0b1100, 0b1010, 0b1001], 0b1111),
        ("lop3.or.b32 %r4|%p0, %r1, %r2, %r3, 0x96, %p2;", [0b1100, 0b1010, 0b1001], 1),
        ("lop3.and.b32 _|%p0, %r1, %r2, %r3, 0x96, %p2;", [0b1100, 0b1010, 0b1001], 0),
        ("mad24.hi.s32 %r0, %r1, %r2, %r3;", [0x00FF_FFFF, 0x0002_0000, 5], 3),
        ("mad24.hi.sat.s32 %r0, %r1, %r2, %r3;", [0x7F_FFFF, 0x7F_FFFF, MAX32], MAX32),
        ("mapa.u64 %d0, %d1, 0;", [99, 0, 0], 99),
        ("getctarank.u64 %r0, %d1;", [99, 0, 0], 0),
        ("createpolicy.fractional.L2::evict_last.b64 %d0, 0f3F800000;", [0; 3], 0),
        ("ld.global.L2::cache_hint.b64 %d0, [%in+8], %d1;", [1, 55, 0], 55),
        ("ld.global.nc.L1::no_allocate.L2::128B.v2.b64 {%d0, %d4}, [%in];", [77, 55, 0], 77),
        ("mov.u32 %r0, %gridid;", [0; 3], 0),
        ("mov.u32 %r0, %cluster_nctaid.x;", [0; 3], 1),
        ("mov.u32 %r0, %nsmid;", [0; 3], 1),
        ("mov.u32 %r0, %pm0;", [0; 3], 0),
    ]);
}

#[test]
fn bytes_and_halves_of_words() {
    hold(&[
        ("vadd4.u32.u32.u32 %r0, %r1, %r2, %r3;", [0x01FF_7F80, 0x0101_0180, 0], 0x0200_8000),
        ("vadd4.u32.u32.u32.sat %r0, %r1, %r2, %r3;", [0x01FF_7F80, 0x0101_0180, 0], 0x02FF_80FF),
        ("vadd4.s32.s32.s32.sat %r0, %r1, %r2, %r3;", [0x01FF_7F80, 0x0101_0180, 0], 0x0200_7F80),
        ("vsub2.s32.u32.u32 %r0, %r1, %r2, %r3;", [0x0001_0005, 0x0002_0003, 0], 0xFFFF_0002),
        ("vavrg4.u32.u32.u32 %r0, %r1, %r2, %r3;", [0x0203_0000, 0x0202_0100, 0], 0x0203_0100),
        ("vavrg2.s32.s32.s32 %r0, %r1, %r2, %r3;", [0xFFFD_0001, 0xFFFE_0002, 0], 0xFFFD_0002),
        ("vabsdiff4.u32.u32.u32 %r0, %r1, %r2, %r3;", [0x10FF_0005, 0x2001_0003, 0], 0x10FE_0002),
        ("vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3;", [0x10FF_0005, 0x2001_0003, 100], 0x10 + 0xFE + 2 + 100),
        ("vmin2.s32.s32.s32 %r0, %r1, %r2, %r3;", [0xFFFF_0001, 0x0001_0002, 0], 0xFFFF_0001),
        ("vmax4.u32.u32.u32 %r0, %r1, %r2, %r3;", [0xFF00_0102, 0x01FF_0201, 0], 0xFFFF_0202),
        ("vmax4.s32.s32.s32.add %r0, %r1, %r2, %r3;", [0xFF00_0102, 0xFEFF_0201, 10], 10 + 3),
    ]);
}
