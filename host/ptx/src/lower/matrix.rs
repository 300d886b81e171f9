//! Matrices: `mma`, `wmma`, `ldmatrix`, `stmatrix`, `movmatrix`.
//!
//! `ldmatrix` and `stmatrix` are one request to shared memory: of the lanes that name a row, 16 bytes each. A matrix is 8 such rows,
//! 128 bytes, which one wavefront serves unless rows lie in the same banks.
//!
//! `wmma.load` and `wmma.store` are a request for each register: of what lies side by side in the matrix and in the fragment, or of
//! each element if nothing does. The ISA does not say what they are.

use super::operand::shown;
use super::{Failure, Lowering};
use crate::alu;
use crate::ast::{Instruction, Operand, StateSpace, Type};
use crate::matrix::{Fragment, Layout, Matrix, Number, Product, Role};
use crate::program::{Action, Op, Special, Value, Where};
use crate::registers::{Class, lanes};

/// The `[m, n, k]` of `m16n8k16`.
pub(super) fn shape(instruction: &Instruction<'_>) -> Result<[u32; 3], Failure> {
    let numbers = |modifier: &str| {
        let (m, rest) = modifier.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        let small = |text: &str| text.parse().ok().filter(|number| (1..=256).contains(number));
        Some([small(m)?, small(n)?, small(k)?])
    };
    instruction.modifiers().find_map(numbers).ok_or_else(|| "it names no shape such as `.m16n8k16`".to_owned())
}

impl<'m, 'a> Lowering<'m, 'a> {
    pub(super) fn matrix(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        match instruction.opcode {
            "mma" => self.multiply(instruction),
            "wmma" if instruction.has("mma") => self.multiply(instruction),
            "wmma" if instruction.has("load") => self.fragment_access(instruction, Action::Load),
            "wmma" if instruction.has("store") => self.fragment_access(instruction, Action::Store),
            "ldmatrix" => self.row_access(instruction, Action::Load),
            "stmatrix" => self.row_access(instruction, Action::Store),
            "movmatrix" => match instruction.operands.as_slice() {
                [target, source] if instruction.has("m8n8") && instruction.has("b16") => {
                    let source = self.source(source, Class::Narrow)?;
                    let target = self.target(target, Class::Narrow)?;
                    self.emit_matrix(Matrix::Transpose { target, source });
                    Ok(())
                }
                _ => Err("of `movmatrix`, `.m8n8.trans.b16` is carried out".to_owned()),
            },
            _ => Err("this instruction is not carried out".to_owned()),
        }
    }

    pub(super) fn emit_matrix(&mut self, matrix: Matrix) {
        self.matrices.push(matrix);
        self.emit(Op::Matrix(self.matrices.len() as u32 - 1));
    }

    /// The registers of a matrix: as many as its elements take, or a multiple.
    pub(super) fn fragment(
        &mut self,
        operand: &Operand<'a>,
        layout: Layout,
        is_target: bool,
    ) -> Result<Fragment, Failure> {
        let parts = match operand {
            Operand::Vector(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let needed = layout.registers() as usize;
        if parts.is_empty() || !parts.len().is_multiple_of(needed) {
            return Err(format!(
                "a matrix of {} by {} such elements takes {needed} registers, and {} are given",
                layout.rows,
                layout.columns,
                parts.len()
            ));
        }
        let class = layout.number.class();
        let slot = |part| match is_target {
            true => self.target(part, class),
            false => self.source(part, class),
        };
        let slots: Vec<_> = parts.iter().map(slot).collect::<Result<_, _>>()?;
        Ok(Fragment { layout, registers: slots.into_iter().map(|slot| (class, slot)).collect() })
    }

    fn multiply(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let has = |modifier| instruction.has(modifier);
        let is_wmma = instruction.opcode == "wmma";
        let strange = |name: &str| name.starts_with("sp") || name.contains("::") || name.starts_with("block_scale");
        if instruction.modifiers().any(strange) {
            return Err("of products of matrices, those of dense ones without scales are carried out".to_owned());
        }
        let shape = shape(instruction)?;
        let numbers: Vec<_> = instruction.modifiers().filter_map(Number::named).collect();
        let [d, a, b, c] = match numbers[..] {
            [d, a, b, c] => [d, a, b, c],
            // Of `wmma`, the factors are not named if they are of half precision.
            [d, c] if is_wmma => [d, Number::F16, Number::F16, c],
            _ => return Err("it takes the types of four matrices".to_owned()),
        };
        if !(is_wmma || has("row") && has("col")) {
            return Err("of `mma`, `.row.col` is carried out".to_owned());
        }
        let known = match (a, b) {
            (Number::Signed(4 | 8) | Number::Unsigned(4 | 8), Number::Signed(_) | Number::Unsigned(_)) => {
                a.bits() == b.bits() && [c, d] == [Number::Signed(32); 2]
            }
            (Number::Bit, Number::Bit) => [c, d] == [Number::Signed(32); 2],
            (Number::F64, Number::F64) => [c, d] == [Number::F64; 2],
            (Number::F16, Number::F16) => [c, d].iter().all(|sum| matches!(sum, Number::F16 | Number::F32)),
            (Number::E4m3 | Number::E5m2, Number::E4m3 | Number::E5m2) => {
                [c, d].iter().all(|sum| matches!(sum, Number::F16 | Number::F32))
            }
            (Number::Bf16, Number::Bf16) | (Number::Tf32, Number::Tf32) => [c, d] == [Number::F32; 2],
            _ => false,
        };
        let product = match (has("xor"), has("and"), has("satfinite")) {
            (true, ..) => Product::Xor,
            (_, true, _) => Product::And,
            (.., true) if a.is_integer() => Product::Saturating,
            _ => Product::Plain,
        };
        let layout = |role, number| {
            let found = Layout::of(role, number, shape).filter(|_| known);
            found.ok_or_else(|| "no product of matrices of this shape and these types is carried out".to_owned())
        };
        let [to, left, right, sum] = instruction.operands.as_slice() else {
            return Err("it takes four matrices".to_owned());
        };
        let a = self.fragment(left, layout(Role::Left, a)?, false)?;
        let b = self.fragment(right, layout(Role::Right, b)?, false)?;
        let c = self.fragment(sum, layout(Role::Sum, c)?, false)?;
        let d = self.fragment(to, layout(Role::Sum, d)?, true)?;
        self.emit_matrix(Matrix::Multiply { product, a, b, c, d });
        Ok(())
    }

    /// `ldmatrix`, `stmatrix`.
    fn row_access(&mut self, instruction: &'m Instruction<'a>, action: Action) -> Result<(), Failure> {
        let (parts, address) = match (action, instruction.operands.as_slice()) {
            (Action::Load, [parts, address]) | (_, [address, parts]) => (parts, address),
            _ => return Err("it takes registers and an address".to_owned()),
        };
        if !instruction.has("m8n8") || !instruction.has("b16") {
            return Err("of matrices in memory, those of `.m8n8` and `.b16` are carried out".to_owned());
        }
        let parts = match parts {
            Operand::Vector(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let count = instruction.modifiers().find_map(|name| match name {
            "x1" => Some(1),
            "x2" => Some(2),
            "x4" => Some(4),
            _ => None,
        });
        if count != Some(parts.len()) {
            return Err(format!(
                "{} registers are given, and `.x1`, `.x2` or `.x4` says how many it takes",
                parts.len()
            ));
        }
        let is_load = matches!(action, Action::Load);
        let slot = |part| match is_load {
            true => self.target(part, Class::Narrow),
            false => self.source(part, Class::Narrow),
        };
        let fragments: Vec<_> = parts.iter().map(slot).collect::<Result<_, _>>()?;
        let rows = [(); 4].map(|()| self.scratch(Class::Narrow));
        let transposes = instruction.has("trans");
        let matrix = Matrix::Rows { rows, fragments, to_rows: !is_load, transposes };
        if !is_load {
            self.emit_matrix(matrix.clone());
        }
        let guard = self.guard;
        // Of the lanes, those that name a row.
        if parts.len() < 4 {
            let zero = self.holding(Class::Narrow, Value::Bits(0));
            for row in rows.into_iter().filter(|_| is_load) {
                self.emit_alu(alu::copy(Class::Narrow), row, &[zero])?;
            }
            let lane = self.holding(Class::Narrow, Value::Special(Special::Lane));
            let end = self.holding(Class::Narrow, Value::Bits(8 * parts.len() as u64));
            self.under(lanes!(Pred <- |a: Narrow, b: Narrow| a < b), &[lane, end])?;
        }
        let space = match instruction.modifiers().find_map(StateSpace::named) {
            None => Where::Generic,
            _ => Where::Shared,
        };
        let words = rows.iter().map(|row| Some((Class::Narrow, *row))).collect();
        self.push(instruction, action, space, address, Type::Bits(32), words, &[])?;
        self.guard = guard;
        if is_load {
            self.emit_matrix(matrix);
        }
        Ok(())
    }

    /// `wmma.load`, `wmma.store`.
    fn fragment_access(&mut self, instruction: &'m Instruction<'a>, action: Action) -> Result<(), Failure> {
        let shape = shape(instruction)?;
        let named = instruction.modifiers().filter_map(Number::named).last();
        let number = named.ok_or("it names no type of elements that is known")?;
        let role = match instruction.modifiers().find(|name| matches!(*name, "a" | "b" | "c" | "d")) {
            Some("a") => Role::Left,
            Some("b") => Role::Right,
            _ => Role::Sum,
        };
        let layout = Layout::of(role, number, shape).ok_or("no matrix of this shape and type is carried out")?;
        let is_load = matches!(action, Action::Load);
        let (parts, address, stride) = match (is_load, instruction.operands.as_slice()) {
            (true, [parts, address, stride @ ..]) | (false, [address, parts, stride @ ..]) => (parts, address, stride),
            _ => return Err("it takes registers and an address".to_owned()),
        };
        let by_columns = instruction.has("col");
        let stride = match stride {
            [stride] => self.source(stride, Class::Narrow)?,
            [] => {
                let leading = if by_columns { layout.rows } else { layout.columns };
                self.holding(Class::Narrow, Value::Bits(leading.into()))
            }
            _ => return Err("it takes one stride".to_owned()),
        };
        let Operand::Address(..) = address else {
            return Err(format!("{} is no address: write it in brackets", shown(address)));
        };
        let ((class, mut base), offset) = self.address(address)?;
        if class != Class::Wide {
            let wide = self.scratch(Class::Wide);
            self.emit_alu(alu::resized(class, Class::Wide, None), wide, &[base])?;
            base = wide;
        }
        let space = match instruction.modifiers().find_map(StateSpace::named) {
            None => Where::Generic,
            Some(StateSpace::Global) => Where::Global,
            Some(StateSpace::Shared) => Where::Shared,
            Some(_) => return Err("this state space is not carried out".to_owned()),
        };
        let fragment = self.fragment(parts, layout, is_load)?;
        self.emit_matrix(Matrix::Together);
        // What lies side by side in memory is one access.
        let is_along = by_columns == (role == Role::Right);
        let together = if is_along || number.bits() < 8 { layout.together() } else { 1 };
        if number.bits() < 8 && !is_along {
            return Err("elements of less than a byte are to lie side by side along `k`".to_owned());
        }
        let needed = layout.registers();
        let each = number.each();
        for first in (0..needed * each).step_by(together as usize) {
            let (register, element) = (first / each, first % each);
            let at = self.element_address(layout, [register, element], by_columns, [base, stride])?;
            if together * number.bits() < 32 {
                self.part_access(instruction, action, space, (at, offset), &fragment, [register, element])?;
                continue;
            }
            let count = (together / each).max(1);
            let parts: Vec<_> =
                (register..register + count).map(|register| Some(fragment.registers[register as usize])).collect();
            let ty = if number == Number::F64 { Type::Bits(64) } else { Type::Bits(32) };
            self.push_at(instruction, action, space, ((Class::Wide, at), offset), ty, parts, &[])?;
        }
        // What is held again.
        for register in needed as usize..if is_load { fragment.registers.len() } else { 0 } {
            let (class, from) = fragment.registers[register % needed as usize];
            self.emit_alu(alu::copy(class), fragment.registers[register].1, &[from])?;
        }
        Ok(())
    }

    /// An access to one element, which is a part of a register.
    fn part_access(
        &mut self,
        instruction: &'m Instruction<'a>,
        action: Action,
        space: Where,
        (address, offset): (u32, i64),
        fragment: &Fragment,
        [register, element]: [u32; 2],
    ) -> Result<(), Failure> {
        let bits = fragment.layout.number.bits();
        let (part, (_, whole)) = (self.scratch(Class::Half), fragment.registers[register as usize]);
        let shift = self.holding(Class::Narrow, Value::Bits(u64::from(element * bits)));
        let ty = Type::Bits(bits as u8);
        let address = ((Class::Wide, address), offset);
        let parts = vec![Some((Class::Half, part))];
        if matches!(action, Action::Store) {
            self.emit_alu(lanes!(Half <- |a: Narrow, b: Narrow| a >> b), part, &[whole, shift])?;
            return self.push_at(instruction, action, space, address, ty, parts, &[]);
        }
        self.push_at(instruction, action, space, address, ty, parts, &[])?;
        match element {
            0 => self.emit_alu(lanes!(Narrow <- |a: Half| a), whole, &[part]),
            _ => self.emit_alu(
                lanes!(Narrow <- |a: Narrow, b: Half, c: Narrow| a | b << c),
                whole,
                &[whole, part, shift],
            ),
        }
    }

    /// Where a lane's element stands in memory: a register of the address.
    fn element_address(
        &mut self,
        layout: Layout,
        [register, element]: [u32; 2],
        by_columns: bool,
        [base, stride]: [u32; 2],
    ) -> Result<u32, Failure> {
        let [row, column] = layout.place(register, element, 0);
        let along = if layout.role == Role::Sum { 2 } else { layout.number.each() };
        let turned = layout.role == Role::Right;
        let flags = u32::from(turned) | u32::from(by_columns) << 1 | layout.number.bits().trailing_zeros() << 2;
        let how = u64::from(row | column << 8 | along << 16 | flags << 24);
        let how = self.holding(Class::Narrow, Value::Bits(how));
        let lane = self.holding(Class::Narrow, Value::Special(Special::Lane));
        let address = self.scratch(Class::Wide);
        let alu = lanes!(Wide <- |base: Wide, lane: Narrow, stride: Narrow, how: Narrow| {
            let (group, within) = (lane / 4, lane % 4 * (how >> 16 & 0xFF));
            let (turned, by_columns) = (how >> 24 & 1 == 1, how >> 25 & 1 == 1);
            let row = (how & 0xFF) + if turned { within } else { group };
            let column = (how >> 8 & 0xFF) + if turned { group } else { within };
            let (far, near) = if by_columns { (column, row) } else { (row, column) };
            let elements = u64::from(far).wrapping_mul(stride.into()).wrapping_add(near.into());
            base.wrapping_add((elements << (how >> 26 & 7)) >> 3)
        });
        self.emit_alu(alu, address, &[base, lane, stride, how])?;
        Ok(address)
    }
}
