//! Calls of what the GPU's runtime has, and no module: `vprintf`, `__assertfail`, the heap.

use super::names::Named;
use super::{Failure, Lowering};
use crate::ast::Operand;
use crate::program::{Access, Action, External, Op, Value, Where};
use crate::registers::Class;
use engine::Instruction as Known;
use gpu::suite::{Operation, Space};

impl<'m, 'a> Lowering<'m, 'a> {
    /// Lowers a call of such a function: false if this is none.
    pub(super) fn external(
        &mut self,
        name: &str,
        returns: &[Operand<'a>],
        arguments: &[Operand<'a>],
    ) -> Result<bool, Failure> {
        match (name, arguments) {
            ("vprintf", [format, given]) => {
                let format = self.handed_over(format, Class::Wide)?;
                let arguments = self.handed_over(given, Class::Wide)?;
                let printed = self.scratch(Class::Narrow);
                self.emit(Op::External(External::Print { format, arguments, printed }));
                if let [result] = returns {
                    self.hand_back(result, printed)?;
                }
            }
            ("__assertfail" | "__assert_fail", [message, file, line, function, ..]) => {
                let message = self.handed_over(message, Class::Wide)?;
                let file = self.handed_over(file, Class::Wide)?;
                let line = self.handed_over(line, Class::Narrow)?;
                let function = self.handed_over(function, Class::Wide)?;
                self.emit(Op::External(External::Assert { message, file, line, function }));
            }
            ("vprintf" | "__assertfail" | "__assert_fail", _) => {
                return Err(format!("`{name}` is not called like this: {} parameters", arguments.len()));
            }
            ("malloc" | "free" | "__nv_aligned_device_malloc", _) => {
                return Err(format!(
                    "`{name}`: there is no heap on the device here: hand the kernel a buffer of the launch"
                ));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// An argument, in a register: it may stand in the caller's own memory.
    fn handed_over(&mut self, operand: &Operand<'a>, class: Class) -> Result<u32, Failure> {
        let Some(place) = self.own_memory(operand) else { return self.source(operand, class) };
        let slot = self.scratch(class);
        self.move_own(Action::Load, place, class, slot);
        Ok(slot)
    }

    /// A result of 32 bits, to where the caller asks for it.
    fn hand_back(&mut self, operand: &Operand<'a>, slot: u32) -> Result<(), Failure> {
        let Some(place) = self.own_memory(operand) else {
            let target = self.target(operand, Class::Narrow)?;
            return self.emit_alu(crate::alu::copy(Class::Narrow), target, &[slot]);
        };
        self.move_own(Action::Store, place, Class::Narrow, slot);
        Ok(())
    }

    /// Where a `.param` variable of the caller begins: a register, and bytes behind what that holds.
    fn own_memory(&mut self, operand: &Operand<'a>) -> Option<(u32, i64)> {
        let Operand::Name(name) = operand else { return None };
        match self.scopes.get(name) {
            Some(Named::Local(_, begin)) => Some((self.holding(Class::Wide, Value::Bits(begin)), 0)),
            Some(Named::Framed(_, begin)) => Some((self.stack()[0], begin.cast_signed())),
            _ => None,
        }
    }

    fn move_own(&mut self, action: Action, (base, offset): (u32, i64), class: Class, slot: u32) {
        let (bytes, log_width) = if class == Class::Wide { (8, 3) } else { (4, 2) };
        let operation = if let Action::Load = action { Operation::Load } else { Operation::Store };
        self.accesses.push(Access {
            action,
            space: Where::Local,
            address: (Class::Wide, base),
            offset,
            bytes,
            is_signed: false,
            parts: vec![Some((class, slot))],
            operands: [(class, 0); 2],
            instructions: [Space::Global; 3].map(|space| Known::new(self.pc, space, operation, log_width)),
        });
        self.emit(Op::Access(self.accesses.len() as u32 - 1));
    }
}
