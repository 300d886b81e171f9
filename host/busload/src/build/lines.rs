//! The line table of the PTX: `.loc` directives that name the kernels' own lines.
//!
//! An access is a method of the facade, inlined, so the compiler's `.loc` names a line of the facade. The comment
//! behind it, which `-Z verbose-asm` asks for, also has the calls on the way there, the innermost first:
//!
//! ```text
//! .loc 5 42 21   // gpu/src/device/ptx.rs:42:21 @[ gpu/src/device/pointer.rs:71:22 @[ gpu/src/kernels/copy.rs:19:26 ] ]
//! ```
//!
//! The first of them in a kernel's file is where it calls the facade: what `Location::caller()` is in the simulator.

use anyhow::{Result, ensure};
use std::fmt::Write;

/// The compiler's PTX with the positions of kernels whose files are under `folder`, and without comments and what only a debugger reads. An instruction
/// that belongs to no line of a kernel goes with the one before it.
pub(super) fn of_kernels(ptx: &str, folder: &str) -> Result<String> {
    let mut out = String::new();
    let mut files = Vec::new();
    let mut last = None;
    for line in ptx.lines() {
        let (code, comment) = line.split_once("//").unwrap_or((line, ""));
        match code.split_whitespace().next().unwrap_or_default() {
            ".loc" => {
                let Some((file, line, column)) = in_kernels(comment, folder) else { continue };
                let known = files.iter().position(|known| *known == file);
                let index = known.unwrap_or_else(|| {
                    files.push(file);
                    files.len() - 1
                });
                let position = Some((index, line, column));
                if position != last {
                    writeln!(out, "\t.loc\t{} {line} {column}", index + 1)?;
                    last = position;
                }
            }
            ".file" | ".section" => {}
            label if label.starts_with("$L__tmp") || label.starts_with("$L__func_") => {}
            // A comment alone.
            "" if !line.is_empty() => {}
            word => {
                if word == "}" {
                    last = None;
                }
                writeln!(out, "{}", code.trim_end())?;
            }
        }
    }
    ensure!(!files.is_empty(), "the compiler's PTX names no line under {folder}: no line table can be made from it");
    for (i, file) in files.iter().enumerate() {
        writeln!(out, "\t.file\t{} \"{file}\"", i + 1)?;
    }
    Ok(out)
}

/// File, line and column of the innermost of these calls that stands in a kernel's file; none if the instruction
/// belongs to several lines, which the compiler writes as line 0.
fn in_kernels<'a>(calls: &'a str, folder: &str) -> Option<(&'a str, u32, u32)> {
    let mut parts = calls.split([' ', ']']).find(|call| call.starts_with(folder))?.split(':');
    let (file, line) = (parts.next()?, parts.next()?.parse().ok()?);
    // A column of 0 is left out.
    let column = parts.next().map_or(Ok(0), str::parse).ok()?;
    (line > 0).then_some((file, line, column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_has_the_line_of_the_kernel_that_it_was_inlined_into() {
        let ptx = "\t// .globl\tone
.visible .entry one()                   // @one
{
$L__func_begin0:
\t.loc\t1 55 0                          // gpu/src/device/nvptx.rs:55:0
// %bb.0:
\tld.param.b64 \t%rd1, [one_param_0];
$L__tmp0:
\t.loc\t4 422 9                         // gpu/src/device/mod.rs:422:9 @[ gpu/src/kernels/copy.rs:16:13 ]
\tadd.s64 \t%rd2, %rd1, 4;
\t.loc\t5 7 9                           // gpu/src/device/ptx.rs:7:9 @[ gpu/src/kernels/copy.rs:16:13 ]
\tadd.s64 \t%rd3, %rd2, 4;
\t.loc\t5 42 21                         // core.rs:3:4 @[ gpu/src/kernels/b.rs:8:2 @[ gpu/src/kernels/copy.rs:19:26 ] ]
\t// begin inline asm
\tld.global.b32 %r4, [%rd3];
\t// end inline asm
\t.loc\t6 0 8                           // gpu/src/kernels/copy.rs:0:8
\tret;
$L__func_end0:
                                        // -- End function
}

.visible .entry two()
{
\t.loc\t6 8 2                           // gpu/src/kernels/b.rs:8:2
\t@%p1 bra \t$L__BB1_2;
$L__BB1_2:
\t.loc\t6 9 0                           // gpu/src/kernels/b.rs:9
\tret;
}
\t.section\t.debug_macinfo\t{\t}
\t.file\t1 \"/home/someone/gpu/src/device/nvptx.rs\"
";
        let expected = ".visible .entry one()
{
\tld.param.b64 \t%rd1, [one_param_0];
\t.loc\t1 16 13
\tadd.s64 \t%rd2, %rd1, 4;
\tadd.s64 \t%rd3, %rd2, 4;
\t.loc\t2 8 2
\tld.global.b32 %r4, [%rd3];
\tret;
}

.visible .entry two()
{
\t.loc\t2 8 2
\t@%p1 bra \t$L__BB1_2;
$L__BB1_2:
\t.loc\t2 9 0
\tret;
}
\t.file\t1 \"gpu/src/kernels/copy.rs\"
\t.file\t2 \"gpu/src/kernels/b.rs\"
";
        assert_eq!(of_kernels(ptx, "gpu/src/kernels/").expect("it has lines"), expected);
    }

    #[test]
    fn ptx_without_lines_is_refused() {
        let error = of_kernels("\t.loc\t1 55 0\n\tret;\n", "gpu/src/kernels/").expect_err("it has no comment");
        assert!(error.to_string().contains("gpu/src/kernels/"), "{error}");
    }
}
