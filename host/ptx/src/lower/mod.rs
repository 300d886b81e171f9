//! From an entry as it is written to a program: registers become slots, labels become places, calls are inlined.

mod arithmetic;
mod atomics;
mod call;
mod control;
mod copy;
mod exactness;
mod external;
mod fence;
mod finish;
mod group;
mod initial;
mod lines;
mod matrix;
mod mbarrier;
mod memory;
mod names;
mod operand;
mod warp;

pub use lines::Lines;

use crate::ast::{Block, Function, Instruction, Module, StateSpace, Statement, Type, Variable};
use crate::cost::Cost;
use crate::error::{LowerError, Place};
use crate::matrix::{Layout, Matrix};
use crate::program::{Access, Ahead, Bulk, Call, Exactness, Exchange, Fixed, Inst, NONE, Op, Program, Value};
use crate::registers::{Alu, Class, Classes, OWN, Sizes, lanes};
use call::{Frame, Pending};
use engine::Pc;
use lines::Positions;
use names::{Named, Scopes};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Instructions of an entry, with the functions it calls, at most.
const MOST_INSTRUCTIONS: usize = 1 << 20;

/// Bytes of local memory of a thread, at most: what the hardware gives one.
const MOST_LOCAL: u64 = 512 << 10;

/// Lowers the entry of that name.
///
/// # Errors
/// If there is none, or it has an instruction that is not carried out: the first one, and how many others.
pub fn lower(module: &Module<'_>, entry: &str, lines: Lines<'_>) -> Result<Program, LowerError> {
    let Some(function) = module.entry(entry) else {
        let known: Vec<_> = module.entries().map(|entry| format!("`{}`", entry.name)).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(LowerError::NoEntry { entry: entry.to_owned(), known });
    };
    if module.address_size != 64 {
        let detail = format!("the module has addresses of {} bits: build it with 64", module.address_size);
        return Err(LowerError::at(function.place, detail));
    }
    let cluster = function.directives.iter().find(|(name, _)| *name == ".reqnctapercluster");
    if let Some((_, blocks)) = cluster.filter(|(_, blocks)| blocks.iter().any(|count| *count != 1)) {
        let detail = format!("`{entry}` asks for clusters of {blocks:?} blocks, and those of one are carried out");
        return Err(LowerError::at(function.place, detail));
    }
    let mut lowering = Lowering::new(module, function, lines);
    lowering.parameters(function);
    if let Some(body) = &function.body {
        lowering.block(body);
    }
    lowering.finish(function)
}

/// What is wrong with an instruction, as part of a sentence.
type Failure = String;

/// What is known while an entry is lowered.
struct Lowering<'m, 'a> {
    module_variables: FxHashMap<&'a str, &'m Variable<'a>>,
    module_functions: FxHashMap<&'a str, &'m Function<'a>>,
    entry: &'a str,
    positions: Positions<'m, 'a>,
    scopes: Scopes<'m, 'a>,
    code: Vec<Inst>,
    accesses: Vec<Access>,
    exchanges: Vec<Exchange>,
    matrices: Vec<Matrix>,
    /// The numbers of the elements of layouts.
    numbers: FxHashMap<Layout, Arc<[u16]>>,
    exactness: Exactness,
    copies: Vec<Ahead>,
    bulks: Vec<Bulk>,
    /// Where each label stands, once that is known.
    labels: Vec<Option<u32>>,
    tables: Vec<Vec<u32>>,
    /// What registers are called, by bank and slot.
    names: FxHashMap<(usize, u32), String>,
    /// The slots of registers.
    slots: FxHashMap<(u32, u64), u32>,
    fixed: FxHashMap<(usize, Value), u32>,
    fixed_list: Vec<Fixed>,
    sizes: [Sizes; 3],
    declarations: u32,
    shared: Vec<(&'static str, u64)>,
    variables: Vec<crate::program::Variable>,
    /// The same, as they are declared.
    declared: Vec<&'m Variable<'a>>,
    local_bytes: u64,
    parameters: Vec<(u64, u64)>,
    /// The functions that are being inlined, each with the label behind its call.
    calls: Vec<(&'a str, u32)>,
    /// Functions that are called as such, where they are, and the frame of the one that is being lowered.
    pending: Vec<Pending<'m, 'a>>,
    call_sites: Vec<Call>,
    frame: Option<Frame>,
    stack: Option<[u32; 2]>,
    /// Calls that have been inlined so far.
    inlined: usize,
    /// The guard of the instruction that is being lowered, and where it stands.
    guard: (u32, bool),
    cost: Cost,
    pc: Pc,
    place: Place,
    error: Option<(Place, String)>,
    others: usize,
}

/// The bank of a class.
fn bank(class: Class) -> usize {
    match class {
        Class::Pred => 0,
        Class::Half | Class::Narrow => 1,
        Class::Wide => 2,
    }
}

impl<'m, 'a> Lowering<'m, 'a> {
    fn new(module: &'m Module<'a>, function: &'m Function<'a>, lines: Lines<'m>) -> Self {
        let positions = Positions::new(module, lines);
        Self {
            module_variables: module.variables.iter().map(|variable| (variable.name, variable)).collect(),
            module_functions: module
                .functions
                .iter()
                .filter(|function| function.body.is_some())
                .map(|function| (function.name, function))
                .collect(),
            entry: function.name,
            pc: positions.at(function.place),
            positions,
            scopes: Scopes::default(),
            code: Vec::new(),
            accesses: Vec::new(),
            exchanges: Vec::new(),
            matrices: Vec::new(),
            numbers: FxHashMap::default(),
            exactness: Exactness::default(),
            copies: Vec::new(),
            bulks: Vec::new(),
            labels: Vec::new(),
            tables: Vec::new(),
            names: FxHashMap::default(),
            slots: FxHashMap::default(),
            fixed: FxHashMap::default(),
            fixed_list: Vec::new(),
            sizes: [Sizes::default(); 3],
            declarations: 0,
            shared: Vec::new(),
            variables: Vec::new(),
            declared: Vec::new(),
            local_bytes: 0,
            parameters: Vec::new(),
            calls: Vec::new(),
            pending: Vec::new(),
            call_sites: Vec::new(),
            frame: None,
            stack: None,
            inlined: 0,
            guard: (NONE, false),
            cost: Cost::default(),
            place: function.place,
            error: None,
            others: 0,
        }
    }

    fn fail(&mut self, place: Place, failure: Failure) {
        match self.error {
            None => self.error = Some((place, failure)),
            Some(_) => self.others += 1,
        }
    }

    /// Lays out the entry's parameters.
    fn parameters(&mut self, function: &'m Function<'a>) {
        self.scopes.enter();
        let mut end = 0u64;
        for parameter in &function.parameters {
            let bytes = parameter.bytes().unwrap_or(u64::MAX);
            let begin = end.checked_next_multiple_of(parameter.align.max(1)).unwrap_or(u64::MAX);
            end = begin.saturating_add(bytes);
            if end > 1 << 16 {
                let failure = format!("the parameter `{}` ends beyond 65536 bytes of parameters", parameter.name);
                self.fail(parameter.place, failure);
                return;
            }
            self.parameters.push((begin, bytes));
            self.scopes.add(parameter.name, Named::Parameter(parameter, begin));
        }
    }

    /// Lowers what stands in braces.
    fn block(&mut self, block: &'m Block<'a>) {
        self.scopes.enter();
        block.variables.iter().for_each(|variable| self.declare(variable));
        for statement in &block.statements {
            match statement {
                Statement::Label(name, _) => {
                    let label = self.new_label();
                    self.scopes.add(name, Named::Label(label));
                }
                Statement::BranchTargets(name, ..) => {
                    self.tables.push(Vec::new());
                    self.scopes.add(name, Named::Targets(self.tables.len() as u32 - 1));
                }
                _ => {}
            }
        }
        for statement in &block.statements {
            match statement {
                Statement::Label(name, _) => {
                    if let Some(Named::Label(label)) = self.scopes.get(name) {
                        self.labels[label as usize] = Some(self.code.len() as u32);
                    }
                }
                Statement::BranchTargets(name, targets, place) => {
                    let labels: Result<Vec<_>, _> = targets.iter().map(|target| self.label(target)).collect();
                    match (labels, self.scopes.get(name)) {
                        (Ok(labels), Some(Named::Targets(table))) => self.tables[table as usize] = labels,
                        (Err(failure), _) => self.fail(*place, failure),
                        _ => {}
                    }
                }
                Statement::CallPrototype(..) => {}
                Statement::Location(location) => self.positions.locate(location),
                Statement::Instruction(instruction) => self.statement(instruction),
                Statement::Block(inner) => self.block(inner),
            }
        }
        self.scopes.leave();
    }

    fn new_label(&mut self) -> u32 {
        self.labels.push(None);
        self.labels.len() as u32 - 1
    }

    fn label(&self, name: &str) -> Result<u32, Failure> {
        match self.scopes.get(name) {
            Some(Named::Label(label)) => Ok(label),
            _ => Err(format!("there is no label `{name}` here")),
        }
    }

    fn declare(&mut self, variable: &'m Variable<'a>) {
        match variable.space {
            StateSpace::Register => {
                self.declarations += 1;
                let Variable { ty, vector, range, .. } = *variable;
                let register = Named::Register { declaration: self.declarations, ty, vector, range };
                self.scopes.add(variable.name, register);
            }
            StateSpace::Local | StateSpace::Parameter => match self.room(variable) {
                Some(begin) if self.frame.is_some() => self.scopes.add(variable.name, Named::Framed(variable, begin)),
                Some(begin) => self.scopes.add(variable.name, Named::Local(variable, begin)),
                None => self.fail(
                    variable.place,
                    format!("`{}` ends beyond the {MOST_LOCAL} bytes of local memory of a thread", variable.name),
                ),
            },
            // Those of a function have a name of their own in the module.
            StateSpace::Shared | StateSpace::Global | StateSpace::Constant | StateSpace::Other => {
                self.module_variables.insert(variable.name, variable);
            }
        }
    }

    /// Room in local memory for a variable: where it begins.
    fn room(&mut self, variable: &Variable<'_>) -> Option<u64> {
        if let Some(frame) = &mut self.frame {
            return frame.room(variable, MOST_LOCAL);
        }
        let begin = self.local_bytes.checked_next_multiple_of(variable.align.max(8))?;
        let end = begin.checked_add(variable.bytes()?)?;
        self.local_bytes = end.min(MOST_LOCAL);
        (end <= MOST_LOCAL).then_some(begin)
    }

    /// Lowers an instruction.
    fn statement(&mut self, instruction: &'m Instruction<'a>) {
        if self.code.len() > MOST_INSTRUCTIONS {
            if self.error.is_none() {
                let failure =
                    format!("`{}` has more than {MOST_INSTRUCTIONS} instructions, with its calls", self.entry);
                self.fail(instruction.place, failure);
            }
            return;
        }
        self.place = instruction.place;
        self.pc = self.positions.at(instruction.place);
        self.guard = (NONE, false);
        self.cost = Cost::of(instruction);
        let lowered = self.set_guard(instruction).and_then(|()| self.instruction(instruction));
        match (lowered, exactness::Kind::of(instruction)) {
            (Err(failure), _) => {
                self.fail(instruction.place, format!("`{}{}`: {failure}", instruction.opcode, instruction.modifiers));
            }
            (Ok(()), exactness::Kind::Exact) => {}
            (Ok(()), exactness::Kind::Approximate) => {
                self.exactness.approximate.insert(exactness::shown(instruction));
            }
            (Ok(()), exactness::Kind::Ignored) => {
                self.exactness.ignored.insert(exactness::shown(instruction));
            }
        }
    }

    fn set_guard(&mut self, instruction: &Instruction<'a>) -> Result<(), Failure> {
        if let Some((name, negated)) = instruction.guard {
            self.guard = (self.register(name, Class::Pred)?, negated);
        }
        Ok(())
    }

    fn instruction(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        match instruction.opcode {
            "bra" | "brx" | "ret" | "exit" | "call" | "trap" => self.control(instruction),
            "ld" | "ldu" | "st" | "atom" | "red" => self.ordered(instruction, |lowering| lowering.access(instruction)),
            "alloca" | "stacksave" | "stackrestore" => self.stack_memory(instruction),
            "mbarrier" => self.mbarrier(instruction),
            "cp" if instruction.has("bulk") => self.bulk(instruction),
            "cp" if instruction.has("mbarrier") => self.copies_arrive(instruction),
            "cp" => self.copy_ahead(instruction),
            "bar" | "barrier" | "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" => self.warp(instruction),
            "wgmma" => self.group(instruction),
            "mma" | "wmma" | "ldmatrix" | "stmatrix" | "movmatrix" => self.matrix(instruction),
            // Who sleeps waits for others.
            "nanosleep" => {
                self.emit(Op::Yield);
                Ok(())
            }
            "membar" | "fence" => self.fence(instruction),
            // What only hints.
            "prefetch" | "prefetchu" | "pmevent" | "brkpt" | "discard" | "applypriority" | "griddepcontrol"
            | "setmaxnreg" => Ok(()),
            _ => self.arithmetic(instruction),
        }
    }

    /// What is emitted from now on is carried out by the lanes of the guard for which a condition holds.
    fn under(&mut self, condition: Option<Alu>, sources: &[u32]) -> Result<(), Failure> {
        let (guard, holds) = (self.guard, self.scratch(Class::Pred));
        if guard.0 != NONE {
            let no = self.holding(Class::Pred, Value::Bits(0));
            self.guard = (NONE, false);
            self.emit_alu(lanes!(Pred <- |a: Pred| a), holds, &[no])?;
            self.guard = guard;
        }
        self.emit_alu(condition, holds, sources)?;
        self.guard = (holds, false);
        Ok(())
    }

    fn emit(&mut self, op: Op) {
        let (guard, negated) = self.guard;
        self.code.push(Inst { op, guard, negated, watched: false, cost: self.cost, pc: self.pc });
        // An instruction that becomes several is issued once.
        self.cost.slots = 0;
    }

    /// Emits arithmetic whose slots are known.
    fn emit_alu(&mut self, alu: Option<Alu>, target: u32, sources: &[u32]) -> Result<(), Failure> {
        let alu = alu.ok_or("it is not carried out for these types")?;
        let mut slots = [target; 5];
        if sources.len() != alu.sources.len() {
            return Err(format!("it has {} operands that are read, and takes {}", sources.len(), alu.sources.len()));
        }
        slots[1..=sources.len()].copy_from_slice(sources);
        self.emit(Op::Alu { run: alu.run, slots, classes: Classes::new(&alu) });
        Ok(())
    }

    /// A register that no name means.
    fn scratch(&mut self, class: Class) -> u32 {
        let sizes = &mut self.sizes[bank(class)];
        sizes.own += 1;
        (sizes.own - 1) | OWN
    }

    /// The slot that always holds a value.
    fn holding(&mut self, class: Class, value: Value) -> u32 {
        let bank = bank(class);
        if let Some(slot) = self.fixed.get(&(bank, value)) {
            return *slot;
        }
        let is_own = value.is_of_warp();
        let slot = if is_own {
            self.scratch(class)
        } else {
            self.sizes[bank].constants += 1;
            self.sizes[bank].constants - 1
        };
        self.fixed.insert((bank, value), slot);
        self.fixed_list.push(Fixed { class, slot, value });
        slot
    }
}

/// The type that stands last among an instruction's modifiers.
fn last_type(instruction: &Instruction<'_>) -> Result<Type, Failure> {
    instruction.modifiers().filter_map(Type::named).last().ok_or_else(|| "it names no type".to_owned())
}
