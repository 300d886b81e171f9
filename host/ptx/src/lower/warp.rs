//! Barriers, and what the lanes of a warp do together.

use super::{Failure, Lowering, last_type};
use crate::ast::{Instruction, Operand, Type};
use crate::program::{Exchange, Exchanged, NONE, Op, Reduction, Value};
use crate::registers::Class;

impl<'m, 'a> Lowering<'m, 'a> {
    pub(super) fn warp(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        match instruction.opcode {
            "bar" | "barrier" => self.barrier(instruction),
            "shfl" => self.shuffle(instruction),
            "vote" => self.vote(instruction),
            "match" => self.matched(instruction),
            "redux" => self.redux(instruction),
            "activemask" => match instruction.operands.as_slice() {
                [target] => {
                    let slot = self.target(target, Class::Narrow)?;
                    self.emit(Op::ActiveMask { slot });
                    Ok(())
                }
                _ => Err("it takes one register".to_owned()),
            },
            _ => match instruction.operands.as_slice() {
                [Operand::Pair(target, predicate), mask] => {
                    let (target, predicate) = (self.any_target(target)?, self.any_target(predicate)?);
                    let mask = self.source(mask, Class::Narrow)?;
                    let source = (Class::Narrow, mask);
                    self.exchange(Exchange {
                        what: Exchanged::Elect,
                        target,
                        predicate,
                        source,
                        lane: NONE,
                        clamp: NONE,
                        mask,
                    })
                }
                _ => Err("it takes `d|p` and a mask".to_owned()),
            },
        }
    }

    fn exchange(&mut self, exchange: Exchange) -> Result<(), Failure> {
        self.exchanges.push(exchange);
        self.emit(Op::Exchange(self.exchanges.len() as u32 - 1));
        Ok(())
    }

    fn barrier(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        if instruction.has("warp") {
            let [mask] = instruction.operands.as_slice() else { return Err("it takes one mask".to_owned()) };
            let mask = self.source(mask, Class::Narrow)?;
            self.emit(Op::WarpBarrier { mask });
            return Ok(());
        }
        if instruction.has("cluster") {
            // A cluster is one block here: who arrives need not be waited for before all wait.
            if instruction.has("wait") {
                let number = self.holding(Class::Narrow, Value::Bits(16));
                self.emit(Op::Barrier { number, reduction: None });
            }
            return Ok(());
        }
        let has = |modifier| instruction.has(modifier);
        let (reduction, operands) = match instruction.operands.as_slice() {
            [target, operands @ .., source] if has("red") => {
                let kind = match instruction.modifiers().find(|name| matches!(*name, "and" | "or" | "popc")) {
                    Some("and") => Reduction::And,
                    Some("or") => Reduction::Or,
                    _ => Reduction::Count,
                };
                let source = self.source(source, Class::Pred)?;
                let target = self.target(target, kind.class())?;
                (Some((kind, target, source)), operands)
            }
            operands if has("sync") || has("arrive") => (None, operands),
            _ => return Err("of barriers, `.sync`, `.arrive`, `.red` and `bar.warp.sync` are carried out".to_owned()),
        };
        let number = match operands.first() {
            None => self.holding(Class::Narrow, Value::Bits(0)),
            Some(number) => self.source(number, Class::Narrow)?,
        };
        match operands {
            [] | [_] if has("arrive") => Err("it takes a barrier and a number of threads".to_owned()),
            [] | [_] => {
                self.emit(Op::Barrier { number, reduction });
                Ok(())
            }
            [_, threads] => {
                let threads = self.source(threads, Class::Narrow)?;
                self.emit(Op::PartialBarrier { number, threads, waits: !has("arrive"), reduction });
                Ok(())
            }
            _ => Err("it takes a barrier and a number of threads".to_owned()),
        }
    }

    fn shuffle(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let modes = [
            ("up", Exchanged::Up),
            ("down", Exchanged::Down),
            ("bfly", Exchanged::Butterfly),
            ("idx", Exchanged::Index),
        ];
        let mode = modes.into_iter().find(|(name, _)| instruction.has(name)).ok_or("it names no mode")?;
        let (target, source, lane, clamp, mask) = match instruction.operands.as_slice() {
            [target, source, lane, clamp, mask] => (target, source, lane, clamp, Some(mask)),
            [target, source, lane, clamp] => (target, source, lane, clamp, None),
            _ => return Err("its operands are none that it takes".to_owned()),
        };
        let (target, predicate) = match target {
            Operand::Pair(target, predicate) => (self.any_target(target)?, self.any_target(predicate)?),
            _ => (self.any_target(target)?, None),
        };
        let source = (Class::Narrow, self.source(source, Class::Narrow)?);
        let lane = self.source(lane, Class::Narrow)?;
        let clamp = self.source(clamp, Class::Narrow)?;
        let mask = mask.map_or(Ok(NONE), |mask| self.source(mask, Class::Narrow))?;
        self.exchange(Exchange { what: mode.1, target, predicate, source, lane, clamp, mask })
    }

    fn vote(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let modes = [
            ("all", Exchanged::All),
            ("any", Exchanged::Any),
            ("uni", Exchanged::Uniform),
            ("ballot", Exchanged::Ballot),
        ];
        let mode = modes.into_iter().find(|(name, _)| instruction.has(name)).ok_or("it names no mode")?;
        let (target, source, mask) = match instruction.operands.as_slice() {
            [target, source, mask] => (target, source, Some(mask)),
            [target, source] => (target, source, None),
            _ => return Err("its operands are none that it takes".to_owned()),
        };
        let class = if mode.1 == Exchanged::Ballot { Class::Narrow } else { Class::Pred };
        let target = Some((class, self.target(target, class)?));
        let source = (Class::Pred, self.source(source, Class::Pred)?);
        let mask = mask.map_or(Ok(NONE), |mask| self.source(mask, Class::Narrow))?;
        self.exchange(Exchange { what: mode.1, target, predicate: None, source, lane: NONE, clamp: NONE, mask })
    }

    fn matched(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let what = if instruction.has("all") { Exchanged::MatchAll } else { Exchanged::MatchAny };
        let [target, source, mask] = instruction.operands.as_slice() else {
            return Err("it takes a register, a value and a mask".to_owned());
        };
        let class = if last_type(instruction)?.bits() == 64 { Class::Wide } else { Class::Narrow };
        let (target, predicate) = match target {
            Operand::Pair(target, predicate) => (self.any_target(target)?, self.any_target(predicate)?),
            _ => (self.any_target(target)?, None),
        };
        let source = (class, self.source(source, class)?);
        let mask = self.source(mask, Class::Narrow)?;
        self.exchange(Exchange { what, target, predicate, source, lane: NONE, clamp: NONE, mask })
    }

    fn redux(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let ty = last_type(instruction)?;
        let operation =
            instruction.modifiers().find(|name| matches!(*name, "add" | "min" | "max" | "and" | "or" | "xor"));
        let what = match (operation, ty) {
            (Some("add"), Type::Unsigned(32) | Type::Signed(32)) => Exchanged::Add,
            (Some("min"), Type::Unsigned(32)) => Exchanged::MinUnsigned,
            (Some("max"), Type::Unsigned(32)) => Exchanged::MaxUnsigned,
            (Some("min"), Type::Signed(32)) => Exchanged::MinSigned,
            (Some("max"), Type::Signed(32)) => Exchanged::MaxSigned,
            (Some("and"), Type::Bits(32)) => Exchanged::And,
            (Some("or"), Type::Bits(32)) => Exchanged::Or,
            (Some("xor"), Type::Bits(32)) => Exchanged::Xor,
            _ => return Err("this reduction is not carried out".to_owned()),
        };
        let [target, source, mask] = instruction.operands.as_slice() else {
            return Err("it takes a register, a value and a mask".to_owned());
        };
        let target = self.any_target(target)?;
        let source = (Class::Narrow, self.source(source, Class::Narrow)?);
        let mask = self.source(mask, Class::Narrow)?;
        self.exchange(Exchange { what, target, predicate: None, source, lane: NONE, clamp: NONE, mask })
    }
}
