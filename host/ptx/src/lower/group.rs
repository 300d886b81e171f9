//! `wgmma`: products that four warps make together, of matrices in shared memory.
//!
//! Each warp makes its own 16 rows at once: the fences and waits around them have nothing left to do, so that a sum that is read before
//! it is waited for is not found. What is read from shared memory is checked, and is no request: it does not pass the LSU.

use super::matrix::shape;
use super::{Failure, Lowering};
use crate::ast::{Constant, Instruction, Operand};
use crate::matrix::{Described, Factor, Layout, Matrix, Number, Product, Role};
use crate::program::Value;
use crate::registers::Class;

impl<'m, 'a> Lowering<'m, 'a> {
    pub(super) fn group(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let has = |modifier| instruction.has(modifier);
        if has("fence") || has("commit_group") || has("wait_group") {
            return Ok(());
        }
        let numbers: Vec<_> = instruction.modifiers().filter_map(Number::named).collect();
        if !has("mma_async") || instruction.modifiers().any(|name| name == "sp") {
            return Err("of `wgmma`, products of dense matrices are carried out".to_owned());
        }
        let ([64, n, k], &[d, a, b]) = (shape(instruction)?, numbers.as_slice()) else {
            return Err("it takes a shape of 64 rows and the types of three matrices".to_owned());
        };
        let known = match (a, b) {
            (Number::F16, Number::F16) | (Number::E4m3 | Number::E5m2, Number::E4m3 | Number::E5m2) => {
                matches!(d, Number::F16 | Number::F32)
            }
            (Number::Bf16, Number::Bf16) | (Number::Tf32, Number::Tf32) => d == Number::F32,
            (Number::Signed(8) | Number::Unsigned(8), Number::Signed(8) | Number::Unsigned(8)) => {
                d == Number::Signed(32)
            }
            _ => false,
        };
        let layout = |role, number| {
            let found = Layout::of(role, number, [16, n, k]).filter(|_| known && k * a.bits() == 256);
            found.ok_or_else(|| "no product of matrices of this shape and these types is carried out".to_owned())
        };
        let [sum, left, right, rest @ ..] = instruction.operands.as_slice() else {
            return Err("it takes three matrices".to_owned());
        };
        let sum = self.fragment(sum, layout(Role::Sum, d)?, true)?;
        let left_layout = layout(Role::Left, a)?;
        let right_layout = layout(Role::Right, b)?;
        // Behind the matrices: whether the sum is added to, the signs of the factors, and which of them are transposed.
        let [adds, flags @ ..] = rest else { return Err("it takes a predicate behind the matrices".to_owned()) };
        let adds = match adds {
            Operand::Constant(Constant::Integer(value)) => self.holding(Class::Pred, Value::Bits((*value != 0).into())),
            other => self.source(other, Class::Pred)?,
        };
        let mut all = Vec::new();
        for flag in flags {
            match flag {
                Operand::Constant(Constant::Integer(value)) => all.push(value.cast_signed()),
                _ => return Err("what stands behind the predicate are constants".to_owned()),
            }
        }
        let of_registers = matches!(left, Operand::Vector(_));
        let (signs, transposes) = match all[..] {
            [] => ([1, 1], [0, 0]),
            [left, right] => ([left, right], [0, 0]),
            [left, right, of_right] if of_registers => ([left, right], [0, of_right]),
            [left, right, of_left, of_right] if !of_registers => ([left, right], [of_left, of_right]),
            _ => return Err("it takes two signs, and whether each matrix in shared memory is transposed".to_owned()),
        };
        let signs = signs.map(|sign| sign < 0);
        let left = match of_registers {
            true => Factor::Registers(self.fragment(left, left_layout, false)?),
            false => Factor::Memory(self.source(left, Class::Wide)?, transposes[0] != 0),
        };
        let right = Factor::Memory(self.source(right, Class::Wide)?, transposes[1] != 0);
        let factors = [
            Described { layout: left_layout, factor: left, is_negative: signs[0] },
            Described { layout: right_layout, factor: right, is_negative: signs[1] },
        ];
        let product = if has("satfinite") { Product::Saturating } else { Product::Plain };
        self.emit_matrix(Matrix::Group { product, factors, sum, adds });
        Ok(())
    }
}
