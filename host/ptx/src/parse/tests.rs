use super::*;
use crate::ast::{Operand, Statement};
use std::fmt::Write;

const EMBEDDED: &str = include_str!("../../../../gpu/ptx/busload_sm_80.ptx");

/// A module with this body.
fn with(body: &str) -> String {
    format!(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry e(.param .u64 p)\n{{\n{body}\n}}\n")
}

/// The operands of the only instruction of a body.
fn operands(body: &str) -> String {
    let text = with(body);
    let module = parse(&text).unwrap_or_else(|error| panic!("{body}: {error}"));
    let statements = &module.functions[0].body.as_ref().expect("a body").statements;
    let [Statement::Instruction(instruction)] = &statements[..] else { panic!("{body}: {statements:?}") };
    let mut said = format!("{:?} {}{}", instruction.guard, instruction.opcode, instruction.modifiers);
    instruction.operands.iter().for_each(|operand| write!(said, " {operand:?}").expect("a string"));
    said
}

#[test]
fn the_committed_module_is_read() {
    let module = parse(EMBEDDED).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((module.version, &module.target[..], module.address_size), ((7, 0), &["sm_80"][..], 64));
    assert_eq!(module.entries().count(), EMBEDDED.matches(".entry ").count());
    assert!(module.files.values().all(|file| file.starts_with("gpu/src/kernels/")), "{:?}", module.files);
    let table = module.variables.iter().find(|variable| variable.name == "constant_uniform_table").expect("the table");
    assert_eq!((table.space, table.bytes(), table.align), (StateSpace::Constant, Some(256), 16));
    let dynamic = module.variables.iter().find(|variable| variable.name == "dynamic_shared").expect("the array");
    assert!(dynamic.is_extern && dynamic.dimensions == [0]);
}

#[test]
fn operands_are_what_they_are_written_as() {
    for (body, expected) in [
        ("@!%p1 bra.uni L;", r#"Some(("%p1", true)) bra.uni Name("L")"#),
        ("mov.u32 %r1, %tid.x;", r#"None mov.u32 Name("%r1") Component("%tid", "x")"#),
        (
            "ld.global.v2.b32 {%r1, _}, [%rd1+-4];",
            r#"None ld.global.v2.b32 Vector([Name("%r1"), Sink]) Address(Some("%rd1"), -4, [])"#,
        ),
        (
            "shfl.sync.down.b32 %r1|%p1, %r2, 1, 0x1f, -1;",
            "None shfl.sync.down.b32 Pair(Name(\"%r1\"), Name(\"%p1\")) Name(\"%r2\") Constant(Integer(1)) \
             Constant(Integer(31)) Constant(Integer(18446744073709551615))",
        ),
        ("mov.b64 %rd1, table+8;", r#"None mov.b64 Name("%rd1") Sum("table", 8)"#),
        ("mov.f32 f, 0f3F800000;", r#"None mov.f32 Name("f") Constant(Single(1065353216))"#),
        ("ret;", "None ret"),
        (
            "call.uni (r), f, (a, 5);",
            r#"None call.uni List([Name("r")]) Name("f") List([Name("a"), Constant(Integer(5))])"#,
        ),
        ("ld.shared::cta.u8 r, [16];", r#"None ld.shared::cta.u8 Name("r") Address(None, 16, [])"#),
        (
            "setp.lt.and.s32 p|q, a, -b, !c;",
            r#"None setp.lt.and.s32 Pair(Name("p"), Name("q")) Name("a") Negated("b") Not("c")"#,
        ),
        (
            "tex.2d.v4.f32.f32 {a,b,c,d}, [t, {x, y}];",
            r#"None tex.2d.v4.f32.f32 Vector([Name("a"), Name("b"), Name("c"), Name("d")]) Address(Some("t"), 0, [Vector([Name("x"), Name("y")])])"#,
        ),
    ] {
        assert_eq!(operands(body), expected, "{body}");
    }
    assert_eq!(Operand::Constant(Constant::Integer(1)), Operand::Constant(Constant::Integer(1)));
}

#[test]
fn what_compilers_write_around_kernels_is_passed_or_kept() {
    let text = "
// of nvcc
.version 8.4
.target sm_90a, debug
.address_size 64
.extern .func (.param .b32 func_retval0) vprintf (.param .b64 vprintf_param_0, .param .b64 vprintf_param_1) ;
.global .align 1 .b8 $str[3] = {104, 105, 0};
.global .u64 pointer = generic($str)+1;
.const .f32 half = 0.5;
.func (.param .b32 r) helper(.param .b32 a) .noreturn
{ .reg .b32 %r1, %r2; ret; }
.visible .entry k(
    .param .u64 .ptr .global .align 16 k_param_0,
    .param .align 8 .b8 k_param_1[24]
)
.maxntid 256, 1, 1
.minnctapersm 2
{
    .reg .pred %p<3>;
    .local .align 8 .b8 __local_depot0[8];
    /* a comment
       of two lines */
    .loc 1 5 0, function_name $L__info_string0, inlined_at 1 9 3
L: { // callseq 0, 0
    .param .b64 param0;
    st.param.b64 [param0+0], %rd1;
    call.uni (retval0), vprintf, (param0, param1);
    }
    .pragma \"nounroll\";
    @%p1 bra L;
ts: .branchtargets L, L;
    ret;
}
.file 1 \"/a/b.cu\", 12345, 678
.section .debug_str { $L__info_string0: .b8 95,90 }
";
    let module = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let kernel = module.entry("k").expect("the entry");
    assert_eq!(kernel.directives, [(".maxntid", vec![256, 1, 1]), (".minnctapersm", vec![2])]);
    assert_eq!(kernel.parameters[1].bytes(), Some(24));
    assert_eq!(module.files[&1], "/a/b.cu");
    assert_eq!(module.variables[1].initializer, Some(Initializer::Address("$str", 1)));
    assert_eq!(module.functions.len(), 3);
}

#[test]
fn errors_name_the_token_and_where_it_stands() {
    for (text, expected) in [
        ("", "line 1, column 1: the end of the text: the module has no `.version`"),
        (".version 7", "line 1, column 10: `7` is no version such as 7.0"),
        (".version 7.0\n  bogus", "line 2, column 3: `bogus`: a directive, a variable, an `.entry` or a `.func`"),
        (&with("add.s32 %r1 %r2;"), "line 6, column 13: `%r2`: `,` should stand here"),
        (&with("mov.u32 %r1, 99999999999999999999;"), "column 14: `99999999999999999999` is no number of PTX"),
        (&with("/* open"), "line 6, column 1: the comment that begins here does not end"),
        (&with("\u{e9}"), "line 6, column 1: `é` has no meaning in PTX"),
        (".version 7.0\n.entry e() {", "the end of the text: a statement should stand here, or `}`"),
        (&with(&"{".repeat(100)), "blocks are nested deeper than 64"),
        (&with(&format!("mov.b32 {}", "{".repeat(100))), "operands are nested deeper than 64"),
    ] {
        let error = parse(text).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}\n{expected}");
    }
}

/// A sequence that is the same on every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }
}

/// Parts of the committed module: its begin with one entry each.
pub(crate) fn parts() -> Vec<String> {
    let (head, rest) = EMBEDDED.split_once(".visible .entry").expect("an entry");
    rest.split(".visible .entry").map(|entry| format!("{head}.visible .entry{entry}")).collect()
}

/// A text with something changed: bytes, lines, tokens.
pub(crate) fn mutated(parts: &[String], random: &mut Random) -> String {
    let mut bytes = parts[random.below(parts.len())].clone().into_bytes();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        let end = (at + random.below(30)).min(bytes.len());
        match random.below(6) {
            0 => bytes[at] = random.below(256) as u8,
            1 => drop(bytes.drain(at..end)),
            2 => {
                let again = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, again);
            }
            3 => bytes.truncate(at + 1),
            4 => {
                let marks = b"{}[]();,.@!+-%<>:\"*/|0x9";
                bytes.insert(at, marks[random.below(marks.len())]);
            }
            _ => {
                let (from, length) = (random.below(bytes.len()), random.below(12));
                let word = bytes[from..(from + length).min(bytes.len())].to_vec();
                bytes.splice(at..end, word);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn mutated_modules_give_modules_or_errors() {
    let (parts, mut random) = (parts(), Random(1));
    let [mut modules, mut errors] = [0, 0];
    for _ in 0..2000 {
        match parse(&mutated(&parts, &mut random)) {
            Ok(_) => modules += 1,
            Err(error) => {
                assert!(error.place.line > 0 && error.place.column > 0 && !error.detail.is_empty());
                errors += 1;
            }
        }
    }
    assert!(modules > 100 && errors > 100, "{modules} modules, {errors} errors");
}
