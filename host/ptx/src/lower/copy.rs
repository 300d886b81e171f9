//! `cp.async`: copies from global to shared memory that arrive when they are waited for.

use super::{Failure, Lowering};
use crate::ast::{Constant, Instruction, Operand, Type};
use crate::program::{Action, Ahead, Op, Part, Value, Where};
use crate::registers::Class;

impl<'m, 'a> Lowering<'m, 'a> {
    pub(super) fn copy_ahead(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let has = |modifier| instruction.has(modifier);
        match Self::without_policy(instruction) {
            [] if has("async") && has("commit_group") => self.emit(Op::Commit),
            [] if has("async") && has("wait_all") => self.emit(Op::Await(None)),
            [Operand::Constant(Constant::Integer(groups))] if has("async") && has("wait_group") => {
                self.emit(Op::Await(Some(u32::try_from(*groups).unwrap_or(u32::MAX))));
            }
            [to, from, Operand::Constant(Constant::Integer(bytes @ (4 | 8 | 16))), rest @ ..] => {
                if !has("async") || has("bulk") || has("mbarrier") || !has("global") {
                    return Err("of copies, `cp.async` from global to shared memory is carried out".to_owned());
                }
                self.copy(instruction, to, from, *bytes, rest)?;
            }
            _ => return Err("of copies, `cp.async` of 4, 8 or 16 bytes is carried out".to_owned()),
        }
        Ok(())
    }

    fn copy(
        &mut self,
        instruction: &'m Instruction<'a>,
        to: &Operand<'a>,
        from: &Operand<'a>,
        bytes: u64,
        rest: &[Operand<'a>],
    ) -> Result<(), Failure> {
        let (size, ignore) = match rest {
            [] => (None, None),
            [Operand::Constant(Constant::Integer(size))] if *size >= bytes => (None, None),
            [Operand::Constant(Constant::Integer(size))] => {
                (Some(self.holding(Class::Narrow, Value::Bits(*size))), None)
            }
            [operand] => match self.any_source(operand, Class::Narrow)? {
                (Class::Pred, slot) => (None, Some(slot)),
                (Class::Narrow, slot) => (Some(slot), None),
                _ => return Err("how many bytes are read stands in a register of 32 bits".to_owned()),
            },
            _ => return Err("its operands are none that it takes".to_owned()),
        };
        let parts: Vec<_> = (0..bytes / 4).map(|_| Some((Class::Narrow, self.scratch(Class::Narrow)))).collect();
        let load = self.part(instruction, Action::Load, Where::Global, from, parts.clone())?;
        let store = self.part(instruction, Action::Store, Where::Shared, to, parts)?;
        for end in [load, store] {
            let known = &mut self.accesses[end as usize].instructions;
            known.iter_mut().for_each(|known| known.is_of_copy = true);
        }
        self.copies.push(Ahead { load, store, size, ignore });
        self.emit(Op::Copy(self.copies.len() as u32 - 1));
        Ok(())
    }

    /// An access of the copy, which is carried out by that.
    pub(super) fn part(
        &mut self,
        instruction: &'m Instruction<'a>,
        action: Action,
        space: Where,
        address: &Operand<'a>,
        parts: Vec<Part>,
    ) -> Result<u32, Failure> {
        self.push(instruction, action, space, address, Type::Bits(32), parts, &[])?;
        self.code.pop();
        Ok(self.accesses.len() as u32 - 1)
    }
}
