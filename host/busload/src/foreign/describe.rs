//! A launch file to start from: every entry of a module, with its parameters.

use super::argument::type_name;
use super::lines;
use super::parameters::{Use, names, uses};
use ptx_machine::{Function, Lines, Module, StateSpace, Type, Variable};
use std::fmt::{self, Write};

/// Elements of a buffer, and blocks and threads, of a launch that nobody has thought about yet.
const LENGTH: u64 = 1024;
const THREADS: u64 = 256;

/// A launch file of every entry of a module, or of those that are asked for. `file` is the module, from the folder of the launch file.
#[must_use]
pub fn describe(file: &str, module: &Module<'_>, entry: Option<&str>) -> String {
    let mut text = String::new();
    write(&mut text, file, module, entry).expect("a string takes everything");
    text
}

fn write(text: &mut String, file: &str, module: &Module<'_>, entry: Option<&str>) -> fmt::Result {
    let entries: Vec<_> = module.entries().filter(|own| entry.is_none_or(|entry| own.name == entry)).collect();
    writeln!(text, "{HEAD}")?;
    writeln!(text, "ptx = {}", quoted(file))?;
    entries.iter().try_for_each(|own| write_entry(text, module, own))
}

const HEAD: &str = "\
# A launch file of busload, written by `busload run --describe`. `busload run` with its name carries the launches out.
# Leave out what is not to run, and say of the rest how large it is and what it is given: each argument stands here as the
# PTX suggests it, and sizes are a guess. Paths are relative to this file.
#
# An argument is one of
#   { value = 1024 }                                   a number, of the parameter's own type
#   { bytes = \"00 00 80 3f\" }                          a structure, byte by byte
#   { buffer = \"f32\", length = 1024, fill = \"zeros\" }  a pointer: f32 f64 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64
#   { npy = \"in.npy\" }                                 a pointer to the elements of an array of NumPy
# Buffers are filled with \"zeros\", \"ramp\" (start, step), \"noise\" (range, seed), \"uninitialized\", or a number. And after the run
#   write = \"out.npy\"                                  writes one,
#   expect = \"right.npy\", absolute = 1e-6, relative = 1e-5   compares it: bit for bit without a tolerance.
";

fn write_entry(text: &mut String, module: &Module<'_>, function: &Function<'_>) -> fmt::Result {
    let numbers = |directive: &str| {
        let (_, numbers) = function.directives.iter().find(|(name, _)| *name == directive)?;
        Some(numbers.as_slice())
    };
    writeln!(text, "\n[[launch]]\nentry = {}", quoted(function.name))?;
    let mut line = |what: String, why: &str| writeln!(text, "{what:<24} # {why}");
    line("grid = [1, 1, 1]".to_owned(), "blocks along x, y and z")?;
    let (block, why) = match (numbers(".reqntid"), numbers(".maxntid")) {
        (Some(asked), _) => (extent(asked), "threads: what it asks for (.reqntid)".to_owned()),
        (None, Some(most)) => {
            let most = most.iter().product::<u64>();
            (extent(&[most.min(THREADS)]), format!("threads: {most} at most (.maxntid)"))
        }
        (None, None) => (extent(&[THREADS]), "threads along x, y and z".to_owned()),
    };
    line(format!("block = {block}"), &why)?;
    let is_dynamic = |variable: &&Variable<'_>| {
        let is_shared = variable.space == StateSpace::Shared;
        variable.is_extern && is_shared && names(function, variable.name)
    };
    if let Some(variable) = module.variables.iter().find(is_dynamic) {
        line("shared = 1024".to_owned(), &format!("bytes of dynamic shared memory: it uses `{}`", variable.name))?;
    }
    if !lines::within(module, function).is_empty() {
        writeln!(text, "# It has a line table: counts are by the lines of its source.")?;
    }
    if let Err(error) = ptx_machine::lower(module, function.name, Lines { file: "", within: "" }) {
        writeln!(text, "# It is not carried out so far, so leave it out: {}", error.to_string().replace('\n', " "))?;
    }
    if function.parameters.is_empty() {
        return writeln!(text, "arguments = []");
    }
    writeln!(text, "arguments = [")?;
    for ((number, parameter), own) in function.parameters.iter().enumerate().zip(uses(function)) {
        let (what, argument, instead) = suggestion(parameter, &own);
        writeln!(text, "    # {number}: {}, {what}", parameter.name)?;
        writeln!(text, "    {argument},")?;
        instead.iter().try_for_each(|instead| writeln!(text, "    # {instead},"))?;
    }
    writeln!(text, "]")
}

/// What a parameter is, what it may be given, and what else.
fn suggestion(parameter: &Variable<'_>, own: &Use) -> (String, String, Vec<String>) {
    let ty = type_name(parameter);
    let bytes = parameter.bytes().unwrap_or(u64::MAX);
    let buffer = |fill: &str| format!("{{ buffer = \"{}\", length = {LENGTH}, fill = {fill} }}", own.element());
    if !parameter.dimensions.is_empty() || parameter.vector != 1 {
        let zeros = vec!["00"; bytes.min(1 << 12) as usize].join(" ");
        return (format!("{ty}: a structure of {bytes} bytes"), format!("{{ bytes = \"{zeros}\" }}"), Vec::new());
    }
    let accessed = || match own.types.is_empty() {
        true => String::new(),
        false => format!(" as {}", own.types.iter().copied().collect::<Vec<_>>().join(", ")),
    };
    match (own.is_pointer, own.is_read, own.is_written) {
        (true, false, true) => {
            let instead = format!(
                "{{ buffer = \"{}\", length = {LENGTH}, fill = \"uninitialized\", write = \"out.npy\" }}",
                own.element()
            );
            (format!("{ty}: a pointer, written{}", accessed()), buffer("\"uninitialized\""), vec![instead])
        }
        (true, _, true) => {
            (format!("{ty}: a pointer, read and written{}", accessed()), buffer("\"zeros\""), Vec::new())
        }
        (true, true, false) => (
            format!("{ty}: a pointer, read{}", accessed()),
            buffer("\"noise\""),
            vec!["{ npy = \"in.npy\" }".to_owned()],
        ),
        (true, false, false) => (format!("{ty}: a pointer"), buffer("\"zeros\""), Vec::new()),
        (false, ..) if !own.is_used => (format!("{ty}: not used"), "{ value = 0 }".to_owned(), Vec::new()),
        (false, ..) if matches!((parameter.ty, own.is_float), (Type::Float(_), _) | (Type::Bits(_), true)) => {
            (format!("{ty}: a floating-point number"), "{ value = 1.0 }".to_owned(), Vec::new())
        }
        (false, ..) if bytes == 8 => {
            let instead = vec![buffer("\"zeros\"")];
            (format!("{ty}: a number of 64 bits, or a pointer"), format!("{{ value = {LENGTH} }}"), instead)
        }
        (false, ..) => {
            let value = LENGTH.min(u64::MAX >> (64 - 8 * bytes.clamp(1, 8)) >> 1);
            (format!("{ty}: a number"), format!("{{ value = {value} }}"), Vec::new())
        }
    }
}

fn extent(numbers: &[u64]) -> String {
    let along = |axis: usize| numbers.get(axis).copied().unwrap_or(1);
    format!("[{}, {}, {}]", along(0), along(1), along(2))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
