//! What an entry makes of its parameters, as far as its instructions show: which are pointers, to what, and whether it writes there.

use ptx_machine::{Block, Function, Instruction, Module, Operand, StateSpace, Statement, Type};
use std::collections::{BTreeMap, BTreeSet};

/// What becomes of a parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Whether something is read from where it points to.
    pub is_read: bool,
    /// Whether something is written there.
    pub is_written: bool,
    /// The types of the accesses there, as the instructions name them.
    pub types: BTreeSet<&'static str>,
    /// Whether it is made an address of global memory.
    pub is_pointer: bool,
    /// Whether it takes part in arithmetic of floating-point numbers.
    pub is_float: bool,
    /// Whether it is loaded at all.
    pub is_used: bool,
}

impl Use {
    /// The type of elements that a launch file starts with: what is accessed, floating-point numbers and narrow ones before others. Bits
    /// of no type are mostly those of floating-point numbers.
    #[must_use]
    pub fn element(&self) -> &'static str {
        let typed = ["f32", "f64", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"];
        let bits = [("b8", "u8"), ("b16", "f16"), ("b32", "f32"), ("b64", "f64")];
        let order = typed.map(|name| (name, name)).into_iter().chain(bits);
        order.into_iter().find(|(name, _)| self.types.contains(name)).map_or("f32", |(_, element)| element)
    }
}

/// What an entry makes of each of its parameters. Functions that it calls are not looked into.
#[must_use]
pub fn uses(function: &Function<'_>) -> Vec<Use> {
    let number = |name: &str| function.parameters.iter().position(|parameter| parameter.name == name);
    let mut uses = vec![Use::default(); function.parameters.len()];
    let mut instructions = Vec::new();
    function.body.iter().for_each(|body| flatten(body, &mut instructions));
    // Which registers hold a parameter, or an address that is made of it. What a loop carries is known the second time.
    let mut holds = BTreeMap::<&str, usize>::new();
    for instruction in instructions.iter().chain(&instructions) {
        let of = |operand: &Operand<'_>| name_of(operand).and_then(|name| holds.get(name).copied());
        let [first, rest @ ..] = &instruction.operands[..] else { continue };
        let space = instruction.modifiers().find_map(StateSpace::named);
        let from = match instruction.opcode {
            "ld" if space == Some(StateSpace::Parameter) => match rest {
                [Operand::Address(Some(name), ..)] => number(name).inspect(|number| uses[*number].is_used = true),
                _ => None,
            },
            "ld" | "ldu" | "st" | "atom" | "red" | "cp" => {
                access(instruction, space, &holds, &mut uses);
                None
            }
            "cvta" => rest.iter().find_map(of).inspect(|number| {
                uses[*number].is_pointer |= space == Some(StateSpace::Global);
            }),
            "mov" | "add" | "sub" | "mad" | "selp" => {
                let wide = instruction.modifiers().filter_map(Type::named).last().is_some_and(|ty| ty.bits() == 64);
                rest.iter().rev().find_map(of).filter(|_| wide || instruction.opcode != "selp")
            }
            _ => None,
        };
        if instruction
            .modifiers()
            .filter_map(Type::named)
            .any(|ty| matches!(ty, Type::Float(_) | Type::Bf16 | Type::F16x2))
            && !matches!(instruction.opcode, "ld" | "cvt")
        {
            rest.iter().filter_map(of).for_each(|number| uses[number].is_float = true);
        }
        if let (Some(number), Some(target)) = (from, name_of(first)) {
            holds.insert(target, number);
        }
    }
    uses
}

/// Whether an entry's instructions name a variable.
#[must_use]
pub fn names(function: &Function<'_>, variable: &str) -> bool {
    let mut instructions = Vec::new();
    function.body.iter().for_each(|body| flatten(body, &mut instructions));
    let is_it = |operand: &Operand<'_>| match operand {
        Operand::Name(name) | Operand::Sum(name, _) | Operand::Address(Some(name), ..) => *name == variable,
        _ => false,
    };
    instructions.iter().any(|instruction| instruction.operands.iter().any(is_it))
}

/// Whether an entry, or a function that it may call, adds floating-point numbers by atomics: in which order, nothing says.
#[must_use]
pub fn adds_in_any_order(module: &Module<'_>, entry: &str) -> bool {
    let is_float = |ty: Type| matches!(ty, Type::Float(_) | Type::F16x2 | Type::Bf16 | Type::Bf16x2);
    let is_one = |instruction: &Instruction<'_>| {
        matches!(instruction.opcode, "atom" | "red")
            && instruction.has("add")
            && instruction.modifiers().filter_map(Type::named).any(is_float)
    };
    let mut instructions = Vec::new();
    let own = module.functions.iter().filter(|function| !function.is_entry || function.name == entry);
    own.filter_map(|function| function.body.as_ref()).for_each(|body| flatten(body, &mut instructions));
    instructions.iter().any(|instruction| is_one(instruction))
}

fn flatten<'m, 'a>(block: &'m Block<'a>, instructions: &mut Vec<&'m Instruction<'a>>) {
    for statement in &block.statements {
        match statement {
            Statement::Instruction(instruction) => instructions.push(instruction),
            Statement::Block(inner) => flatten(inner, instructions),
            _ => {}
        }
    }
}

fn name_of<'a>(operand: &Operand<'a>) -> Option<&'a str> {
    match operand {
        Operand::Name(name) | Operand::Sum(name, _) => Some(name),
        _ => None,
    }
}

/// An access where some parameter points to.
fn access(instruction: &Instruction<'_>, space: Option<StateSpace>, holds: &BTreeMap<&str, usize>, uses: &mut [Use]) {
    if !matches!(space, None | Some(StateSpace::Global | StateSpace::Shared)) {
        return;
    }
    let addresses = instruction.operands.iter().filter_map(|operand| match operand {
        Operand::Address(Some(name), ..) => holds.get(name).copied(),
        _ => None,
    });
    for number in addresses {
        let own = &mut uses[number];
        own.is_pointer = true;
        own.is_read |= !matches!(instruction.opcode, "st" | "red");
        own.is_written |= matches!(instruction.opcode, "st" | "atom" | "red");
        own.types.extend(instruction.modifiers().filter_map(Type::named).last().map(element));
    }
}

/// The type of elements that an access of a type suggests.
fn element(ty: Type) -> &'static str {
    match (ty, ty.bits()) {
        (Type::Float(64), _) => "f64",
        (Type::Float(16) | Type::F16x2, _) => "f16",
        (Type::Bf16 | Type::Bf16x2, _) => "bf16",
        (Type::Float(_), _) => "f32",
        (Type::Signed(8), _) => "i8",
        (Type::Signed(16), _) => "i16",
        (Type::Signed(32), _) => "i32",
        (Type::Signed(64), _) => "i64",
        (Type::Bits(8), _) => "b8",
        (Type::Bits(16), _) => "b16",
        (Type::Bits(32), _) => "b32",
        (Type::Bits(64), _) => "b64",
        (_, 8) => "u8",
        (_, 16) => "u16",
        (_, 64) => "u64",
        _ => "u32",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_told_by_what_is_done_with_them() {
        let text = "
            .version 7.0
            .target sm_80
            .address_size 64
            .visible .entry scale(.param .u64 src, .param .u64 dst, .param .u32 n, .param .f32 by, .param .u64 count, .param .u64 none)
            {
                .reg .pred %p<2>;
                .reg .b32 %r<4>;
                .reg .f32 %f<4>;
                .reg .b64 %rd<9>;
                ld.param.u64 %rd1, [src];
                ld.param.u64 %rd2, [dst];
                ld.param.u32 %r1, [n];
                ld.param.f32 %f1, [by];
                ld.param.u64 %rd7, [count];
                cvta.to.global.u64 %rd3, %rd1;
                mov.u32 %r2, %tid.x;
                setp.ge.u32 %p1, %r2, %r1;
                @%p1 bra end;
                mul.wide.u32 %rd4, %r2, 4;
                add.s64 %rd5, %rd3, %rd4;
                ld.global.nc.v2.f32 {%f2, %f3}, [%rd5+8];
                mul.f32 %f2, %f2, %f1;
                add.s64 %rd6, %rd2, %rd4;
                st.f32 [%rd6], %f2;
                atom.global.add.u64 %rd8, [%rd7], 1;
            end:
                ret;
            }";
        let module = ptx_machine::parse(text).expect("a module");
        let [src, dst, n, by, count, none] =
            <[Use; 6]>::try_from(uses(module.entry("scale").expect("an entry"))).expect("six parameters");
        assert!(src.is_pointer && src.is_read && !src.is_written && src.element() == "f32", "{src:?}");
        assert!(dst.is_pointer && !dst.is_read && dst.is_written, "{dst:?}");
        assert!(!n.is_pointer && n.is_used && !n.is_float, "{n:?}");
        assert!(!by.is_pointer && by.is_float, "{by:?}");
        assert!(count.is_read && count.is_written && count.element() == "u64", "{count:?}");
        assert_eq!(none, Use::default());
    }
}
