//! From a launch file and a module to launches that are ready to run: everything is checked before anything runs.

use super::argument::{BufferOf, Expected, Parameter, Stated, Tolerance, Written};
use super::at::At;
use super::element::Type;
use super::file::{Extent, Invalid, LaunchFile, LaunchTable, nearest};
use super::lines;
use super::parameters::adds_in_any_order;
use gpu::suite::{Launch, MOST_SHARED, MOST_STATIC_SHARED, Plan};
use ptx_machine::{self as ptx, Lines, Module, Program};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use toml::Spanned;

/// A module that launch files speak of.
pub struct Source<'a> {
    /// The file, as reports name it.
    pub file: &'a str,
    /// What it holds.
    pub module: &'a Module<'a>,
}

/// A launch, ready to run.
pub struct Ready {
    /// What reports call it.
    pub name: String,
    /// The entry.
    pub entry: &'static str,
    /// The entry, as it is carried out.
    pub program: Arc<Program>,
    /// What is launched.
    pub plan: Arc<Plan>,
    /// Whether it adds floating-point numbers by atomics, in an order that nothing says.
    pub adds_in_any_order: bool,
    /// What each parameter is given.
    pub parameters: Vec<Parameter>,
    /// The plan's buffers that are variables of the module, filled by the launch file.
    pub filled: Range<usize>,
    /// What becomes of each of the plan's buffers after the run.
    pub results: Vec<Results>,
}

/// What becomes of a buffer after the run.
pub struct Results {
    /// The type of its elements.
    pub ty: Type,
    /// Where it is written to.
    pub write: Option<Written>,
    /// What it must be.
    pub expect: Option<Expected>,
    /// How far it may be off, if that is said.
    pub tolerance: Option<Tolerance>,
}

/// A text that is kept for as long as the process runs, once.
pub(super) fn kept(text: &str) -> &'static str {
    static KNOWN: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    known.get(text).copied().unwrap_or_else(|| {
        let kept: &'static str = Box::leak(text.into());
        known.insert(kept);
        kept
    })
}

/// The launches of a file, or those of one entry of it.
///
/// # Errors
/// The first thing that does not fit the module or the hardware.
pub fn prepare(file: &LaunchFile, source: &Source<'_>, entry: Option<&str>) -> Result<Vec<Ready>, Invalid> {
    let is_asked = |launch: &&Spanned<LaunchTable>| entry.is_none_or(|entry| launch.get_ref().entry.get_ref() == entry);
    let ready: Vec<_> =
        file.launches.iter().filter(is_asked).map(|launch| ready(file, source, launch)).collect::<Result<_, _>>()?;
    match entry {
        Some(entry) if ready.is_empty() => {
            let known = file.launches.iter().map(|launch| launch.get_ref().entry.get_ref().as_str());
            let path = file.path().display();
            Err(Invalid(format!("--entry {entry}: {path} launches no such entry{}", nearest_of(entry, known))))
        }
        _ => Ok(ready),
    }
}

/// `; the nearest is x`, if any is near.
pub(super) fn nearest_of<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!("; the nearest is `{near}`"))
}

fn ready(file: &LaunchFile, source: &Source<'_>, at: &Spanned<LaunchTable>) -> Result<Ready, Invalid> {
    let table = at.get_ref();
    let (module, name) = (source.module, table.entry.get_ref().as_str());
    let Some(function) = module.entry(name) else {
        let near = nearest_of(name, module.entries().map(|entry| entry.name));
        let all = module.entries().map(|entry| format!("`{}`", entry.name)).collect::<Vec<_>>();
        let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        let what = format!("`entry` = \"{name}\": {} has no such entry{near}; it has {all}", source.file);
        return Err(file.invalid(table.entry.span(), what));
    };
    let lines = Lines { file: source.file, within: &lines::within(module, function) };
    let program =
        ptx::lower(module, name, lines).map_err(|error| Invalid(format!("{}: `{name}`: {error}", source.file)))?;
    let launch = launch(file, table, function, &program)?;
    if table.arguments.len() != function.parameters.len() {
        let (takes, given) = (function.parameters.len(), table.arguments.len());
        let way = format!("`busload run --describe {}` shows them", source.file);
        let what = format!("`arguments`: `{name}` takes {takes}, and {given} are given: {way}");
        let place = table.arguments.get(takes).map_or(table.entry.span(), Spanned::span);
        return Err(file.invalid(place, what));
    }
    let mut plan = Plan::new(launch);
    let (mut parameters, mut results) = (Vec::new(), Vec::new());
    let add = |plan: &mut Plan, results: &mut Vec<Results>, made: BufferOf| {
        let BufferOf { buffer, ty, write, expect, tolerance } = made;
        plan.bytes += buffer.bytes();
        plan.buffers.push(buffer);
        results.push(Results { ty, write, expect, tolerance });
    };
    for (number, (argument, parameter)) in table.arguments.iter().zip(&function.parameters).enumerate() {
        let own = argument.get_ref().name.as_ref();
        let short = parameter.name.strip_prefix(name).and_then(|rest| rest.strip_prefix('_'));
        let called = kept(own.map_or(short.unwrap_or(parameter.name), |own| own.get_ref()));
        let is_taken = plan.buffers.iter().any(|buffer| buffer.name == called)
            || program.variables().any(|(variable, _)| variable == called);
        if is_taken {
            let what =
                format!("`name` = \"{called}\" is another argument's, or a variable's: name this one differently");
            return Err(file.invalid(own.map_or(argument.span(), Spanned::span), what));
        }
        let at = At { file, table: argument, what: format!("argument {number} of `{name}`") };
        parameters.push(match at.of_parameter(parameter, called)? {
            Stated::Bytes(bytes) => Parameter::Bytes(bytes),
            Stated::Buffer(made) => {
                add(&mut plan, &mut results, *made);
                Parameter::Buffer(plan.buffers.len() - 1)
            }
        });
    }
    let first = plan.buffers.len();
    variables(file, source, table, &program, &mut |made| add(&mut plan, &mut results, made))?;
    let called = table.name.as_ref().map_or(name, |own| own.get_ref());
    Ok(Ready {
        name: called.to_owned(),
        entry: program.name(),
        program: Arc::new(program),
        plan: Arc::new(plan),
        adds_in_any_order: adds_in_any_order(module, name),
        parameters,
        filled: first..first + table.variables.len(),
        results,
    })
}

/// The variables that the launch fills: others hold what the module says.
fn variables(
    file: &LaunchFile,
    source: &Source<'_>,
    table: &LaunchTable,
    program: &Program,
    add: &mut dyn FnMut(BufferOf),
) -> Result<(), Invalid> {
    let known: Vec<_> = program.variables().collect();
    let mut given: Vec<&str> = Vec::new();
    for variable in &table.variables {
        let at = |span, what: String| Err(file.invalid(span, format!("`variables`: {what}")));
        let Some(name) = &variable.get_ref().name else {
            return at(variable.span(), "one has no `name`: say which variable of the module it fills".to_owned());
        };
        let own = name.get_ref().as_str();
        let Some((kept, bytes)) = known.iter().find(|(known, _)| *known == own) else {
            let near = nearest_of(own, known.iter().map(|(known, _)| *known));
            let (entry, module) = (program.name(), source.file);
            return at(
                name.span(),
                format!("`{entry}` of {module} names no variable `{own}` in global or constant memory{near}"),
            );
        };
        if given.contains(kept) {
            return at(name.span(), format!("`{own}` is filled twice: leave one out"));
        }
        given.push(kept);
        add(At { file, table: variable, what: format!("the variable `{own}`") }.of_variable(kept, *bytes)?);
    }
    let is_open = |variable: &&ptx::Variable<'_>| {
        let is_named = known.iter().any(|(known, _)| *known == variable.name);
        variable.is_extern && is_named && !given.contains(&variable.name)
    };
    match source.module.variables.iter().find(is_open) {
        None => Ok(()),
        Some(ptx::Variable { name, .. }) => {
            let way = "fill it by `variables`, or link the modules";
            let what = format!("`{}` names the variable `{name}`, which another module has: {way}", program.name());
            Err(file.invalid(table.entry.span(), what))
        }
    }
}

/// What CUDA takes at most: blocks of a grid, and threads of a block, along x, y and z.
const MOST_BLOCKS: [i64; 3] = [(1 << 31) - 1, 65_535, 65_535];
const MOST_THREADS: [i64; 3] = [1024, 1024, 64];

/// The launch, if the hardware takes it and it is one that the entry asks for.
fn launch(
    file: &LaunchFile,
    table: &LaunchTable,
    function: &ptx::Function<'_>,
    program: &Program,
) -> Result<Launch, Invalid> {
    let extent = |key: &str, given: &Spanned<Extent>, most: [i64; 3], of: &str| {
        let Extent(amounts) = *given.get_ref();
        match (0..3).find(|&axis| !(1..=most[axis]).contains(&amounts[axis])) {
            None => Ok(amounts.map(|amount| amount as u32)),
            Some(axis) => {
                let (amount, most, axis) = (amounts[axis], most[axis], ["x", "y", "z"][axis]);
                Err(file
                    .invalid(given.span(), format!("`{key}`: {amount} {of} along {axis}, and CUDA takes 1 to {most}")))
            }
        }
    };
    let grid = extent("grid", &table.grid, MOST_BLOCKS, "blocks")?;
    let block = extent("block", &table.block, MOST_THREADS, "threads")?;
    let threads: u64 = block.iter().map(|amount| u64::from(*amount)).product();
    let wrong = |what: String| Err(file.invalid(table.block.span(), format!("`block`: {what}")));
    if threads > 1024 {
        return wrong(format!("{threads} threads, and CUDA takes at most 1024: launch smaller blocks"));
    }
    let stated = |directive: &str| {
        let (_, numbers) = function.directives.iter().find(|(name, _)| *name == directive)?;
        Some(std::array::from_fn::<_, 3, _>(|axis| numbers.get(axis).copied().unwrap_or(1)))
    };
    if let Some(asked) = stated(".reqntid").filter(|asked| *asked != block.map(u64::from)) {
        return wrong(format!(
            "{block:?} threads, and `{}` asks for {asked:?} (`.reqntid`): give these",
            function.name
        ));
    }
    if let Some(most) = stated(".maxntid").filter(|most| threads > most.iter().product()) {
        let most: u64 = most.iter().product();
        return wrong(format!(
            "{threads} threads, and `{}` was compiled for {most} at most (`.maxntid`)",
            function.name
        ));
    }
    let shared = table.shared.as_ref().map_or(0, |shared| *shared.get_ref());
    let (own, at) = (program.shared_bytes(), table.shared.as_ref().map_or(table.entry.span(), Spanned::span));
    if own > MOST_STATIC_SHARED.into() {
        let what = format!(
            "`{}` has {own} bytes of static shared memory, and CUDA takes at most {MOST_STATIC_SHARED}",
            function.name
        );
        return Err(file.invalid(at, what));
    }
    if shared.saturating_add(own) > MOST_SHARED.into() {
        let what = format!(
            "`shared`: {shared} bytes, with {own} of static shared memory, and a GPU gives a block at most {MOST_SHARED} \
             (compute capability 9.0), others less"
        );
        return Err(file.invalid(at, what));
    }
    Ok(Launch { grid, block, shared_bytes: shared as u32 })
}
