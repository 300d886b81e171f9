//! The variables of a module's global and constant memory: buffers of the plan by their names, and others that are made as the module
//! says.

use super::Error;
use crate::program::{Content, Program, Variable};
use engine::Memory;
use gpu::suite::{Before, Buffer, Fill, Plan, PlanError};
use std::ops::Range;
use std::sync::Arc;

/// A plan with a buffer for each variable.
pub(super) struct Whole {
    pub(super) plan: Arc<Plan>,
    pub(super) written: Vec<bool>,
    /// Where each variable begins.
    pub(super) bases: Vec<u64>,
}

impl Whole {
    /// That of a program.
    pub(super) fn new(program: &Program, plan: &Arc<Plan>, written: &[bool]) -> Result<Self, Error> {
        let (mut bases, mut missing) = (Vec::new(), Vec::new());
        for variable in &program.variables {
            let number = match given(plan, variable) {
                Some(number) => number,
                None if variable.is_extern => return Err(unknown(program, variable)),
                None => {
                    missing.push(variable);
                    plan.buffers.len() + missing.len() - 1
                }
            };
            bases.push(Memory::base(number));
        }
        if missing.is_empty() {
            return Ok(Self { plan: Arc::clone(plan), written: written.to_vec(), bases });
        }
        let handed = (0..plan.buffers.len()).map(|number| handed_on(plan, number));
        let made = missing.iter().map(|variable| made(variable, &bases)).collect::<Result<Vec<_>, _>>();
        let made = made.map_err(|error| Error::Plan { entry: program.name, detail: format!("has {error}") })?;
        let written = written.iter().copied().chain(missing.iter().map(|variable| !variable.is_constant)).collect();
        let whole =
            Plan { buffers: handed.chain(made).collect(), expected: plan.expected.clone(), ..Plan::new(plan.launch) };
        Ok(Self { plan: Arc::new(whole), written, bases })
    }
}

/// The buffer of the plan that a variable is.
fn given(plan: &Plan, variable: &Variable) -> Option<usize> {
    let is_it = |buffer: &Buffer| buffer.name == variable.name && buffer.bytes() >= variable.bytes;
    // What the entry's parameters point to may have the name of a variable: one in constant memory comes first.
    let constant = plan.buffers.iter().position(|buffer| buffer.constant && is_it(buffer));
    constant.or_else(|| plan.buffers.iter().position(is_it))
}

fn unknown(program: &Program, variable: &Variable) -> Error {
    let Variable { name, bytes, .. } = variable;
    let detail = format!(
        "names the variable `{name}` of {bytes} bytes, which another module has, and the plan has no buffer of that name and size: add it"
    );
    Error::Plan { entry: program.name, detail }
}

/// A buffer that holds what the variable holds at first.
fn made(variable: &Variable, bases: &[u64]) -> Result<Buffer, PlanError> {
    let Variable { name, bytes, align, is_constant, .. } = *variable;
    let mut words: Vec<(u64, u64)> = Vec::new();
    let mut put = |at: u64, byte: u8| {
        let (word, shift) = (at / 8, 8 * (at % 8));
        match words.last_mut() {
            Some((last, value)) if *last == word => *value |= u64::from(byte) << shift,
            _ => words.push((word, u64::from(byte) << shift)),
        }
    };
    for (begin, initial) in &variable.initial {
        let value = match initial.content {
            Content::Bits(bits) => bits,
            Content::Address(variable, offset) => {
                bases.get(variable as usize).copied().unwrap_or_default().wrapping_add_signed(offset)
            }
        };
        let bytes = value.to_le_bytes().into_iter().take(initial.bytes as usize);
        (*begin..).zip(bytes).for_each(|(at, byte)| put(at, byte));
    }
    let word = move |at: u64| words.binary_search_by_key(&at, |(word, _)| *word).map_or(0, |found| words[found].1);
    // What is touched byte by byte is watched byte by byte.
    let mut buffer = match bytes % 4 == 0 && align >= 4 {
        true => Buffer::input(name, (bytes / 4).max(1), move |i| (word(i / 2) >> (32 * (i % 2))) as u32),
        false => Buffer::input(name, bytes.max(1), move |i| (word(i / 8) >> (8 * (i % 8))) as u8),
    }?;
    buffer.constant = is_constant;
    if variable.initial.is_empty() {
        buffer.before = Before::Zero;
    }
    Ok(buffer)
}

/// The buffer of that number of another plan.
fn handed_on(plan: &Arc<Plan>, number: usize) -> Buffer {
    let Buffer { name, constant, element, len, ref before, tolerance, .. } = plan.buffers[number];
    let before = match before {
        Before::Filled(_) => Before::Filled(Box::new(HandedOn(Arc::clone(plan), number))),
        Before::Poison => Before::Poison,
        Before::Zero => Before::Zero,
    };
    Buffer { name, constant, element, len, before, after: None, tolerance }
}

/// What the buffer of that number of a plan is filled with.
struct HandedOn(Arc<Plan>, usize);

impl Fill for HandedOn {
    fn bits(&self, i: u64) -> u64 {
        match &self.0.buffers[self.1].before {
            Before::Filled(fill) => fill.bits(i),
            Before::Poison | Before::Zero => 0,
        }
    }

    fn lay(&self, elements: Range<u64>, words: &mut [u64]) {
        if let Before::Filled(fill) = &self.0.buffers[self.1].before {
            fill.lay(elements, words);
        }
    }
}

#[cfg(test)]
mod tests;
