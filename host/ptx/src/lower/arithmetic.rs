//! Arithmetic, and what moves values between registers.

use super::operand::{shown, window, window_of};
use super::{Failure, Lowering, last_type};
use crate::alu::{self, Combination, Form};
use crate::ast::{Instruction, Operand, StateSpace, Type};
use crate::program::{NONE, Op, Value};
use crate::registers::{Alu, Class, lanes};

impl<'m, 'a> Lowering<'m, 'a> {
    pub(super) fn arithmetic(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let form = Form::of(instruction);
        match instruction.opcode {
            "mov" => self.mov(instruction),
            "cvt" => self.cvt(instruction, &form),
            "cvta" => self.cvta(instruction),
            "isspacep" => self.isspacep(instruction),
            "set" if matches!(form.ty(), Some(Type::F16x2 | Type::Bf16x2)) => self.set_of_pairs(instruction, &form),
            "set" => self.set(instruction, &form),
            "addc" | "subc" | "madc" => self.carrying(instruction, &form),
            "add" | "sub" | "mad" if form.has("cc") => self.carrying(instruction, &form),
            "lop3" if form.has("and") || form.has("or") || form.has("xor") => self.tested_logic(instruction, &form),
            "setp" if matches!(form.ty(), Some(Type::F16x2 | Type::Bf16x2)) => self.setp_of_pairs(instruction, &form),
            "setp" => self.setp(instruction, &form),
            "mapa" | "getctarank" | "createpolicy" => self.of_cluster(instruction),
            _ => self.plain(instruction, &form),
        }
    }

    /// An instruction whose operands are registers and constants, the first of which is written.
    fn plain(&mut self, instruction: &'m Instruction<'a>, form: &Form<'a>) -> Result<(), Failure> {
        let Some((alu, how)) = alu::find(form) else {
            return Err("this instruction is not carried out".to_owned());
        };
        let (target, sources) = Self::written_and_read(instruction, alu, how)?;
        let sources: Result<Vec<_>, _> =
            sources.iter().zip(alu.sources).map(|(operand, class)| self.source(operand, *class)).collect();
        let mut sources = sources?;
        sources.extend(how.map(|how| self.holding(Class::Narrow, Value::Bits(how.into()))));
        let target = self.target(target, alu.target)?;
        self.emit_alu(Some(alu), target, &sources)
    }

    /// The operand that an instruction writes, and those that it reads, as many as there should be.
    fn written_and_read(
        instruction: &'m Instruction<'a>,
        alu: Alu,
        how: Option<u32>,
    ) -> Result<(&'m Operand<'a>, &'m [Operand<'a>]), Failure> {
        let Some((target, sources)) = instruction.operands.split_first() else {
            return Err("it has no operands".to_owned());
        };
        let takes = alu.sources.len() - usize::from(how.is_some());
        if sources.len() != takes {
            return Err(format!("it has {} operands that are read, and takes {takes}", sources.len()));
        }
        Ok((target, sources))
    }

    fn operands<const N: usize>(instruction: &'m Instruction<'a>) -> Result<&'m [Operand<'a>; N], Failure> {
        let given = instruction.operands.len();
        instruction.operands.as_slice().try_into().map_err(|_| format!("it has {given} operands, and takes {N}"))
    }

    fn mov(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let [target, source] = Self::operands(instruction)?;
        if last_type(instruction)? == Type::Bits(128) {
            let [low, high] = self.sources(source, Type::Bits(64))?[..] else {
                return Err("it takes 128 bits, or two registers of 64".to_owned());
            };
            let [to_low, to_high] = self.targets(target)?[..] else {
                return Err("it takes 128 bits, or two registers of 64".to_owned());
            };
            // The first target may be the second source.
            let kept = self.scratch(Class::Wide);
            let moves = [(high, Some((Class::Wide, kept))), (low, to_low), (Some((Class::Wide, kept)), to_high)];
            for (from, to) in moves {
                if let (Some((Class::Wide, from)), Some((Class::Wide, to))) = (from, to) {
                    self.emit_alu(alu::copy(Class::Wide), to, &[from])?;
                }
            }
            return Ok(());
        }
        let class = alu::class_of(last_type(instruction)?).ok_or("its type is not carried out")?;
        match (target, source) {
            (Operand::Vector(parts), _) => self.taken_apart(class, parts, source),
            (_, Operand::Vector(parts)) => {
                let first = parts.first().map(|part| self.any_source(part, Class::Half)).transpose()?;
                let part = first.map_or(Class::Half, |(class, _)| class);
                let sources: Result<Vec<_>, _> = parts.iter().map(|operand| self.source(operand, part)).collect();
                let sources = sources?;
                let target = self.target(target, class)?;
                self.emit_alu(alu::joined(class, part, parts.len()), target, &sources)
            }
            (_, Operand::Name("%clock_hi" | "%globaltimer_hi")) => {
                let [whole, target] = [self.scratch(Class::Wide), self.target(target, Class::Narrow)?];
                self.emit(Op::Clock { class: Class::Wide, slot: whole });
                self.emit_alu(lanes!(Narrow <- |a: Wide| (a >> 32) as u32), target, &[whole])
            }
            (_, Operand::Name("%clock" | "%clock64" | "%globaltimer" | "%globaltimer_lo")) => {
                let slot = self.target(target, class)?;
                self.emit(Op::Clock { class, slot });
                Ok(())
            }
            _ => {
                let (own, slot) = self.any_source(source, class)?;
                let slot = match (own, class) {
                    _ if own == class => slot,
                    // Special registers may be read in another width than theirs.
                    (Class::Narrow | Class::Wide, Class::Half | Class::Narrow | Class::Wide) if is_special(source) => {
                        let wanted = self.scratch(class);
                        self.emit_alu(alu::resized(own, class, None), wanted, &[slot])?;
                        wanted
                    }
                    _ => self.source(source, class)?,
                };
                let target = self.target(target, class)?;
                self.emit_alu(alu::copy(class), target, &[slot])
            }
        }
    }

    /// A word into the registers of a vector.
    fn taken_apart(&mut self, class: Class, parts: &[Operand<'a>], source: &Operand<'a>) -> Result<(), Failure> {
        let slot = self.source(source, class)?;
        let bits = match class {
            Class::Wide => 64,
            Class::Narrow => 32,
            _ => 16,
        };
        let each = bits / parts.len().max(1) as u64;
        let class_of_part = match each {
            32 => Class::Narrow,
            8 | 16 => Class::Half,
            _ => return Err(format!("{bits} bits cannot be taken apart into {} registers", parts.len())),
        };
        for (number, part) in parts.iter().enumerate() {
            let shift = self.holding(Class::Narrow, Value::Bits(number as u64 * each));
            if *part == Operand::Sink {
                continue;
            }
            let target = self.target(part, class_of_part)?;
            self.emit_alu(alu::part(class, class_of_part), target, &[slot, shift])?;
            if each == 8 {
                let field = self.holding(Class::Narrow, Value::Bits(0xFF));
                self.emit_alu(lanes!(Half <- |a: Half, b: Narrow| a & b), target, &[target, field])?;
            }
        }
        Ok(())
    }

    /// Registers may be wider than the types of a conversion.
    fn cvt(&mut self, instruction: &'m Instruction<'a>, form: &Form<'a>) -> Result<(), Failure> {
        let (alu, how) = alu::find(form).ok_or("this conversion is not carried out")?;
        let (target, sources) = Self::written_and_read(instruction, alu, how)?;
        let mut slots = Vec::new();
        for (operand, class) in sources.iter().zip(alu.sources) {
            let (own, slot) = self.any_source(operand, *class)?;
            slots.push(match (own, *class) {
                _ if own == *class => slot,
                (Class::Half, Class::Narrow) | (Class::Narrow, Class::Half) => slot,
                (Class::Wide, _) => {
                    let narrow = self.scratch(*class);
                    self.emit_alu(alu::resized(Class::Wide, *class, None), narrow, &[slot])?;
                    narrow
                }
                _ => return Err(format!("{} is narrower than the type", shown(operand))),
            });
        }
        if let Some(how) = how {
            slots.push(self.holding(Class::Narrow, Value::Bits(how.into())));
        }
        let to = form.types.first().copied().unwrap_or(Type::Pred);
        match self.any_target(target)? {
            None => Ok(()),
            Some((own, slot)) if own == alu.target && !(own == Class::Half && to == Type::Signed(8)) => {
                self.emit_alu(Some(alu), slot, &slots)
            }
            Some((own, slot)) => {
                let result = self.scratch(alu.target);
                self.emit_alu(Some(alu), result, &slots)?;
                let sign = to.is_signed().then(|| to.bits());
                self.emit_alu(alu::resized(alu.target, own, sign), slot, &[result])
            }
        }
    }

    fn space(instruction: &Instruction<'_>) -> StateSpace {
        instruction.modifiers().find_map(StateSpace::named).unwrap_or(StateSpace::Global)
    }

    fn cvta(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let [target, source] = Self::operands(instruction)?;
        if last_type(instruction)?.bits() != 64 {
            return Err("addresses of 32 bits are not carried out".to_owned());
        }
        let shift = window(Self::space(instruction))?;
        let to = instruction.has("to");
        let (class, slot) = self.any_source(source, Class::Wide)?;
        let slot = match class {
            Class::Wide => slot,
            _ => {
                let wide = self.scratch(Class::Wide);
                self.emit_alu(alu::resized(class, Class::Wide, None), wide, &[slot])?;
                wide
            }
        };
        let shift = self.holding(Class::Wide, Value::Bits(if to { shift.wrapping_neg() } else { shift }));
        let target = self.target(target, Class::Wide)?;
        self.emit_alu(lanes!(Wide <- |a: Wide, b: Wide| a.wrapping_add(b)), target, &[slot, shift])
    }

    fn isspacep(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let [target, source] = Self::operands(instruction)?;
        let window = window_of(Self::space(instruction))?;
        let source = self.source(source, Class::Wide)?;
        let [begin, end] = window.map(|bound| self.holding(Class::Wide, Value::Bits(bound)));
        let target = self.target(target, Class::Pred)?;
        let alu = lanes!(Pred <- |a: Wide, begin: Wide, end: Wide| a >= begin && a < end);
        self.emit_alu(alu, target, &[source, begin, end])
    }

    /// Compares, and combines the result with a predicate if the form says so: the slot of what comes of it, and of the same for the
    /// opposite of the comparison.
    fn compared(&mut self, form: &Form<'a>, sources: &[Operand<'a>], both: bool) -> Result<[u32; 2], Failure> {
        let ty = form.ty().ok_or("it names no type")?;
        let alu = alu::comparison(form, ty).ok_or("this comparison is not carried out")?;
        let [a, b, rest @ ..] = sources else { return Err("it takes two operands to compare".to_owned()) };
        let sources = [self.source(a, alu.sources[0])?, self.source(b, alu.sources[1])?];
        let result = self.scratch(Class::Pred);
        self.emit_alu(Some(alu), result, &sources)?;
        let opposite = if both { self.scratch(Class::Pred) } else { result };
        if both {
            self.emit_alu(lanes!(Pred <- |a: Pred| !a), opposite, &[result])?;
        }
        match (Combination::of(form), rest) {
            (None, []) => {}
            (Some(combination), [with]) => {
                let with = self.source(with, Class::Pred)?;
                self.emit_alu(combination.alu(), result, &[result, with])?;
                if both {
                    self.emit_alu(combination.alu(), opposite, &[opposite, with])?;
                }
            }
            _ => return Err("its operands do not fit `.and`, `.or` or `.xor`".to_owned()),
        }
        Ok([result, opposite])
    }

    fn setp(&mut self, instruction: &'m Instruction<'a>, form: &Form<'a>) -> Result<(), Failure> {
        let [target, sources @ ..] = instruction.operands.as_slice() else {
            return Err("it has no operands".to_owned());
        };
        if let (Operand::Name(_), 2) = (target, sources.len()) {
            // The common case: straight to its target.
            let ty = form.ty().ok_or("it names no type")?;
            let alu = alu::comparison(form, ty).ok_or("this comparison is not carried out")?;
            let sources = [self.source(&sources[0], alu.sources[0])?, self.source(&sources[1], alu.sources[1])?];
            let target = self.target(target, Class::Pred)?;
            return self.emit_alu(Some(alu), target, &sources);
        }
        let (first, second) = match target {
            Operand::Pair(first, second) => (&**first, Some(&**second)),
            _ => (target, None),
        };
        if self.guard.0 != NONE && second.is_some() {
            // The first target may be the guard of the second.
            let guard = self.scratch(Class::Pred);
            let (slot, negated) = std::mem::replace(&mut self.guard, (NONE, false));
            self.emit_alu(alu::copy(Class::Pred), guard, &[slot])?;
            self.guard = (guard, negated);
        }
        let results = self.compared(form, sources, second.is_some())?;
        for (target, result) in [Some(first), second].into_iter().flatten().zip(results) {
            if *target != Operand::Sink {
                let target = self.target(target, Class::Pred)?;
                self.emit_alu(alu::copy(Class::Pred), target, &[result])?;
            }
        }
        Ok(())
    }

    /// `setp` of pairs: a predicate for each of the two.
    fn setp_of_pairs(&mut self, instruction: &'m Instruction<'a>, form: &Form<'a>) -> Result<(), Failure> {
        let [Operand::Pair(low, high), a, b, rest @ ..] = instruction.operands.as_slice() else {
            return Err("it takes `p|q` and two operands to compare".to_owned());
        };
        let results = self.compared_pairs(form, [a, b], rest)?;
        for (target, result) in [&**low, &**high].into_iter().zip(results) {
            let target = self.target(target, Class::Pred)?;
            self.emit_alu(alu::copy(Class::Pred), target, &[result])?;
        }
        Ok(())
    }

    /// The predicates of the lower and the upper one of two pairs that are compared.
    fn compared_pairs(
        &mut self,
        form: &Form<'a>,
        pairs: [&Operand<'a>; 2],
        with: &[Operand<'a>],
    ) -> Result<[u32; 2], Failure> {
        let one = if form.ty() == Some(Type::F16x2) { Type::Float(16) } else { Type::Bf16 };
        let alu = alu::comparison(form, one).ok_or("this comparison is not carried out")?;
        let [a, b] = pairs;
        let wholes = [self.source(a, Class::Narrow)?, self.source(b, Class::Narrow)?];
        let with = match (Combination::of(form), with) {
            (None, []) => None,
            (Some(combination), [with]) => Some((combination, self.source(with, Class::Pred)?)),
            _ => return Err("its operands do not fit `.and`, `.or` or `.xor`".to_owned()),
        };
        let results = [self.scratch(Class::Pred), self.scratch(Class::Pred)];
        for (result, shift) in results.into_iter().zip([0, 16]) {
            let shift = self.holding(Class::Narrow, Value::Bits(shift));
            let halves = [self.scratch(Class::Half), self.scratch(Class::Half)];
            for (half, whole) in halves.into_iter().zip(wholes) {
                self.emit_alu(lanes!(Half <- |a: Narrow, b: Narrow| a >> b), half, &[whole, shift])?;
            }
            self.emit_alu(Some(alu), result, &halves)?;
            if let Some((combination, with)) = with {
                self.emit_alu(combination.alu(), result, &[result, with])?;
            }
        }
        Ok(results)
    }

    /// `set` of pairs: 1 or 0 for each of the two, or all bits or none.
    fn set_of_pairs(&mut self, instruction: &'m Instruction<'a>, form: &Form<'a>) -> Result<(), Failure> {
        let [target, a, b, rest @ ..] = instruction.operands.as_slice() else {
            return Err("it takes a register and two operands to compare".to_owned());
        };
        let yes = match form.types.first() {
            Some(Type::F16x2) => 0x3C00,
            Some(Type::Bf16x2) => 0x3F80,
            Some(Type::Unsigned(32) | Type::Signed(32)) => 0xFFFF,
            _ => return Err("this type is not carried out".to_owned()),
        };
        let yes = self.holding(Class::Narrow, Value::Bits(yes));
        let [low, high] = self.compared_pairs(form, [a, b], rest)?;
        let target = self.target(target, Class::Narrow)?;
        let alu = lanes!(Narrow <- |yes: Narrow, low: Pred, high: Pred| {
            (if low { yes } else { 0 }) | (if high { yes << 16 } else { 0 })
        });
        self.emit_alu(alu, target, &[yes, low, high])
    }

    /// `lop3` with a predicate: whether any bit is set, and another predicate.
    fn tested_logic(&mut self, instruction: &'m Instruction<'a>, form: &Form<'a>) -> Result<(), Failure> {
        let [Operand::Pair(target, predicate), a, b, c, table, with] = instruction.operands.as_slice() else {
            return Err("it takes `d|p`, three words, a table and a predicate".to_owned());
        };
        let combination = Combination::of(form).ok_or("it names no combination")?;
        let alu = alu::find(&Form { opcode: "lop3", modifiers: Vec::new(), types: vec![Type::Bits(32)] });
        let mut sources = Vec::new();
        for operand in [a, b, c, table] {
            sources.push(self.source(operand, Class::Narrow)?);
        }
        let with = self.source(with, Class::Pred)?;
        let [word, result] = [self.scratch(Class::Narrow), self.scratch(Class::Pred)];
        self.emit_alu(alu.map(|(alu, _)| alu), word, &sources)?;
        self.emit_alu(lanes!(Pred <- |a: Narrow| a != 0), result, &[word])?;
        let predicate = self.target(predicate, Class::Pred)?;
        self.emit_alu(combination.alu(), predicate, &[result, with])?;
        let target = self.target(target, Class::Narrow)?;
        self.emit_alu(alu::copy(Class::Narrow), target, &[word])
    }

    /// What is asked of a cluster, which is one block here, and of cache policies, which have no effect.
    fn of_cluster(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let [target, source, ..] = instruction.operands.as_slice() else {
            return Err("it takes a register and what it is made of".to_owned());
        };
        let Some((class, target)) = self.any_target(target)? else { return Ok(()) };
        let source = match instruction.opcode {
            "mapa" => self.source(source, class)?,
            _ => self.holding(class, Value::Bits(0)),
        };
        self.emit_alu(alu::copy(class), target, &[source])
    }

    /// `set`: a comparison's result as a number.
    fn set(&mut self, instruction: &'m Instruction<'a>, form: &Form<'a>) -> Result<(), Failure> {
        let [target, sources @ ..] = instruction.operands.as_slice() else {
            return Err("it has no operands".to_owned());
        };
        let &[to, _] = form.types.as_slice() else { return Err("it takes two types".to_owned()) };
        let [result, _] = self.compared(form, sources, false)?;
        let class = alu::class_of(to).filter(|class| *class == Class::Narrow).ok_or("this type is not carried out")?;
        let yes = if to == Type::Float(32) { 1f32.to_bits().into() } else { 0xFFFF_FFFF };
        let [yes, no] = [yes, 0].map(|bits| self.holding(class, Value::Bits(bits)));
        let target = self.target(target, class)?;
        self.emit_alu(
            lanes!(Narrow <- |a: Narrow, b: Narrow, c: Pred| if c { a } else { b }),
            target,
            &[yes, no, result],
        )
    }

    /// Sums of several words: what is carried stands in a predicate that no name means.
    fn carrying(&mut self, instruction: &'m Instruction<'a>, form: &Form<'a>) -> Result<(), Failure> {
        let ty = form.ty().ok_or("it names no type")?;
        let class = alu::class_of(ty).filter(|class| matches!(class, Class::Narrow | Class::Wide));
        let class = class.ok_or("only words of 32 and 64 bits are carried from")?;
        let [target, sources @ ..] = instruction.operands.as_slice() else {
            return Err("it has no operands".to_owned());
        };
        let mut sources = sources.iter().map(|operand| self.source(operand, class)).collect::<Result<Vec<_>, _>>()?;
        if matches!(form.opcode, "mad" | "madc") {
            let [a, b, c] = sources[..] else { return Err("it takes three operands to read".to_owned()) };
            let part = if form.has("hi") { "hi" } else { "lo" };
            let product = Form { opcode: "mul", modifiers: vec![part], types: vec![ty] };
            let slot = self.scratch(class);
            self.emit_alu(alu::find(&product).map(|(alu, _)| alu), slot, &[a, b])?;
            sources = vec![slot, c];
        }
        let [a, b] = sources[..] else { return Err("it takes two operands to read".to_owned()) };
        let flag = self.carry_flag();
        let carried = match form.opcode {
            "addc" | "subc" | "madc" => flag,
            _ => self.holding(Class::Pred, Value::Bits(0)),
        };
        let subtracts = matches!(form.opcode, "sub" | "subc");
        let [sum, carry] = match (class, subtracts) {
            (Class::Narrow, false) => [
                lanes!(Narrow <- |a: Narrow, b: Narrow, c: Pred| a.wrapping_add(b).wrapping_add(u32::from(c))),
                lanes!(Pred <- |a: Narrow, b: Narrow, c: Pred| u64::from(a) + u64::from(b) + u64::from(c) > u64::from(u32::MAX)),
            ],
            (Class::Narrow, true) => [
                lanes!(Narrow <- |a: Narrow, b: Narrow, c: Pred| a.wrapping_sub(b).wrapping_sub(u32::from(c))),
                lanes!(Pred <- |a: Narrow, b: Narrow, c: Pred| u64::from(a) < u64::from(b) + u64::from(c)),
            ],
            (_, false) => [
                lanes!(Wide <- |a: Wide, b: Wide, c: Pred| a.wrapping_add(b).wrapping_add(u64::from(c))),
                lanes!(Pred <- |a: Wide, b: Wide, c: Pred| u128::from(a) + u128::from(b) + u128::from(c) > u128::from(u64::MAX)),
            ],
            (_, true) => [
                lanes!(Wide <- |a: Wide, b: Wide, c: Pred| a.wrapping_sub(b).wrapping_sub(u64::from(c))),
                lanes!(Pred <- |a: Wide, b: Wide, c: Pred| u128::from(a) < u128::from(b) + u128::from(c)),
            ],
        };
        let [result, next] = [self.scratch(class), self.scratch(Class::Pred)];
        self.emit_alu(sum, result, &[a, b, carried])?;
        self.emit_alu(carry, next, &[a, b, carried])?;
        if form.has("cc") {
            self.emit_alu(alu::copy(Class::Pred), flag, &[next])?;
        }
        let target = self.target(target, class)?;
        self.emit_alu(alu::copy(class), target, &[result])
    }

    /// The register of the carry.
    fn carry_flag(&mut self) -> u32 {
        // No declaration has this number.
        const KEY: (u32, u64) = (0, 0);
        if let Some(slot) = self.slots.get(&KEY) {
            return *slot;
        }
        let slot = self.scratch(Class::Pred);
        self.slots.insert(KEY, slot);
        slot
    }
}

fn is_special(operand: &Operand<'_>) -> bool {
    match operand {
        Operand::Name(name) | Operand::Component(name, _) => name.starts_with('%'),
        _ => false,
    }
}
