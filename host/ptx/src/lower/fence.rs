//! Fences, and what accesses say of order: whom they reach, and whether a fence comes before or behind them.

use super::{Failure, Lowering};
use crate::ast::Instruction;
use crate::program::Op;
use gpu::suite::{Scope, Space};

impl<'m, 'a> Lowering<'m, 'a> {
    /// `fence` and `membar`. Those between proxies, and of the initialization of an `mbarrier`, order nothing that is told apart here.
    pub(super) fn fence(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        if !instruction.has("proxy") && !instruction.has("mbarrier_init") {
            self.emit(Op::Fence(scope(instruction).unwrap_or(Scope::Device)));
        }
        Ok(())
    }

    /// Emits an access with the fences that `.acquire`, `.release` and `.acq_rel` make of it.
    pub(super) fn ordered(
        &mut self,
        instruction: &'m Instruction<'a>,
        emit: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let scope = scope(instruction).unwrap_or(Scope::Device);
        let has = |order: [&str; 2]| order.into_iter().any(|order| instruction.has(order));
        if has(["release", "acq_rel"]) {
            self.emit(Op::Fence(scope));
        }
        emit(self)?;
        if has(["acquire", "acq_rel"]) {
            self.emit(Op::Fence(scope));
        }
        Ok(())
    }
}

/// The scope that an instruction names; a cluster is taken for the device.
fn scope(instruction: &Instruction<'_>) -> Option<Scope> {
    instruction.modifiers().find_map(|modifier| match modifier {
        "cta" => Some(Scope::Block),
        "gl" | "gpu" | "cluster" => Some(Scope::Device),
        "sys" => Some(Scope::System),
        _ => None,
    })
}

/// To whom a load or store is one access that others may meet; none of a plain one. To shared memory a volatile access is one: compilers
/// write it for a plain one that is to stay as it stands.
pub(super) fn scope_of_access(instruction: &Instruction<'_>, space: Space) -> Option<Scope> {
    let has = |modifiers: &[&str]| modifiers.iter().any(|modifier| instruction.has(modifier));
    if has(&["relaxed", "acquire", "release", "mmio"]) {
        return scope(instruction).or(Some(Scope::Device));
    }
    (space == Space::Global && has(&["volatile"])).then_some(Scope::System)
}

/// The same of an atomic.
pub(super) fn scope_of_atomic(instruction: &Instruction<'_>) -> Option<Scope> {
    scope(instruction).or(Some(Scope::Device))
}
