//! Operands: registers, constants, special registers, addresses of variables.

use super::initial::bytes_of;
use super::names::{Named, Register};
use super::{Failure, Lowering, bank};
use crate::alu;
use crate::ast::{Constant, Operand, StateSpace, Type};
use crate::intern::intern;
use crate::program::{GLOBAL_BEGIN, PARAMETER_WINDOW, Part, RESERVED_BYTES, Special, Value, Variable};
use crate::registers::{Class, lanes};

/// What the shared memory is called that is reserved for the system.
pub(super) const RESERVED: &str = "reserved shared memory";

/// The bits of a constant in a register of that class.
fn bits(constant: Constant, class: Class) -> u64 {
    match (constant, class) {
        (Constant::Integer(value), Class::Wide) => value,
        (Constant::Integer(value), Class::Narrow) => value & 0xFFFF_FFFF,
        (Constant::Integer(value), Class::Half) => value & 0xFFFF,
        (Constant::Integer(value), Class::Pred) => u64::from(value != 0),
        (Constant::Single(bits), Class::Wide) => f64::from(f32::from_bits(bits)).to_bits(),
        (Constant::Single(bits), _) => bits.into(),
        (Constant::Double(bits), Class::Wide) => bits,
        (Constant::Double(bits), _) => (f64::from_bits(bits) as f32).to_bits().into(),
    }
}

impl<'m, 'a> Lowering<'m, 'a> {
    /// The slot of a register, made when it is first named.
    fn slot(&mut self, register: Register, component: u32) -> Result<(Class, u32), Failure> {
        let class = alu::class_of(register.ty).ok_or("registers of 128 bits are not carried out")?;
        let (declaration, number) = register.key;
        // Components of vectors stand side by side.
        let key = (declaration, u64::from(number) * u64::from(register.vector.max(1)) + u64::from(component));
        if let Some(slot) = self.slots.get(&key) {
            return Ok((class, *slot));
        }
        let slot = self.scratch(class);
        self.slots.insert(key, slot);
        Ok((class, slot))
    }

    /// The two words of a register of 128 bits; none if an operand is none.
    pub(super) fn halves(&mut self, operand: &Operand<'a>) -> Result<Option<[u32; 2]>, Failure> {
        let Operand::Name(name) = operand else { return Ok(None) };
        let Some(register) = self.scopes.register(name) else { return Ok(None) };
        if register.ty != Type::Bits(128) || register.vector > 1 {
            return Ok(None);
        }
        let half = Register { ty: Type::Bits(64), vector: 2, ..register };
        let [(_, low), (_, high)] = [self.slot(half, 0)?, self.slot(half, 1)?];
        Ok(Some([low, high]))
    }

    /// The register of that name, of whatever class.
    fn any_register(&mut self, name: &str) -> Result<Option<(Class, u32)>, Failure> {
        match self.scopes.register(name) {
            Some(register) if register.vector > 1 => Err(format!("`{name}` is a vector: name one of its components")),
            Some(register) => {
                let known = self.slots.len();
                let (class, slot) = self.slot(register, 0)?;
                if self.slots.len() > known {
                    self.names.insert((bank(class), slot), name.to_owned());
                }
                Ok(Some((class, slot)))
            }
            None => Ok(None),
        }
    }

    /// The slot of the register of that name and class.
    pub(super) fn register(&mut self, name: &str, class: Class) -> Result<u32, Failure> {
        let Some((own, slot)) = self.any_register(name)? else {
            return Err(format!("there is no register `{name}` here"));
        };
        same_class(name, own, class)?;
        Ok(slot)
    }

    /// The component of a vector register.
    fn component(&mut self, name: &str, component: &str) -> Result<Option<(Class, u32)>, Failure> {
        let Some(register) = self.scopes.register(name) else { return Ok(None) };
        let number = match component {
            "x" | "r" => 0,
            "y" | "g" => 1,
            "z" | "b" => 2,
            "w" | "a" => 3,
            _ => return Err(format!("`{name}` has no component `{component}`")),
        };
        if number >= register.vector {
            return Err(format!("`{name}` has {} components, and `{component}` is none of them", register.vector));
        }
        self.slot(register, number).map(Some)
    }

    /// The slot that an instruction writes.
    pub(super) fn target(&mut self, operand: &Operand<'a>, class: Class) -> Result<u32, Failure> {
        match self.any_target(operand)? {
            Some((own, slot)) => {
                same_class(&shown(operand), own, class)?;
                Ok(slot)
            }
            None => Ok(self.scratch(class)),
        }
    }

    /// The register that an instruction writes, of whatever class; none if the value is dropped.
    pub(super) fn any_target(&mut self, operand: &Operand<'a>) -> Result<Part, Failure> {
        let found = match operand {
            Operand::Sink => return Ok(None),
            Operand::Name(name) => self.any_register(name)?,
            Operand::Component(name, component) => self.component(name, component)?,
            _ => None,
        };
        found.map(Some).ok_or_else(|| format!("{} is no register that it could write", shown(operand)))
    }

    /// The slot that holds what an instruction reads, in a class.
    pub(super) fn source(&mut self, operand: &Operand<'a>, class: Class) -> Result<u32, Failure> {
        match operand {
            Operand::Constant(constant) => Ok(self.holding(class, Value::Bits(bits(*constant, class)))),
            Operand::Not(name) => {
                let (slot, target) = (self.register(name, Class::Pred)?, self.scratch(Class::Pred));
                let form = alu::Form { opcode: "not", modifiers: Vec::new(), types: vec![Type::Pred] };
                self.emit_alu(alu::find(&form).map(|(alu, _)| alu), target, &[slot])?;
                Ok(target)
            }
            _ => {
                let (own, slot) = self.any_source(operand, class)?;
                same_class(&shown(operand), own, class)?;
                Ok(slot)
            }
        }
    }

    /// The slot that holds what an instruction reads, of whatever class; `class` is that of constants.
    pub(super) fn any_source(&mut self, operand: &Operand<'a>, class: Class) -> Result<(Class, u32), Failure> {
        if let Operand::Name(name) | Operand::Sum(name, _) = operand
            && let Some(Named::Framed(_, begin)) = self.scopes.get(name)
        {
            let offset = if let Operand::Sum(_, offset) = operand { *offset } else { 0 };
            let behind = self.holding(Class::Wide, Value::Bits(begin.wrapping_add_signed(offset)));
            let address = self.scratch(Class::Wide);
            let [frame, _] = self.stack();
            self.emit_alu(lanes!(Wide <- |a: Wide, b: Wide| a.wrapping_add(b)), address, &[frame, behind])?;
            if class != Class::Narrow {
                return Ok((Class::Wide, address));
            }
            let narrow = self.scratch(Class::Narrow);
            self.emit_alu(alu::resized(Class::Wide, Class::Narrow, None), narrow, &[address])?;
            return Ok((Class::Narrow, narrow));
        }
        let found = match operand {
            Operand::Constant(constant) => Some((class, self.holding(class, Value::Bits(bits(*constant, class))))),
            Operand::Name(name) => match self.any_register(name)? {
                Some(found) => Some(found),
                None => match self.special(name, "")? {
                    Some((own, value)) => Some((own, self.holding(own, value))),
                    None => {
                        let value = self.address_of(name, 0)?;
                        let class = if class == Class::Narrow { Class::Narrow } else { Class::Wide };
                        Some((class, self.holding(class, value)))
                    }
                },
            },
            Operand::Sum(name, offset) => {
                let value = self.address_of(name, *offset)?;
                let class = if class == Class::Narrow { Class::Narrow } else { Class::Wide };
                Some((class, self.holding(class, value)))
            }
            Operand::Component(name, component) => match self.component(name, component)? {
                Some(found) => Some(found),
                None => self.special(name, component)?.map(|(own, value)| (own, self.holding(own, value))),
            },
            _ => None,
        };
        found.ok_or_else(|| format!("{} cannot be read here", shown(operand)))
    }

    /// What a special register holds, and its class; none if there is none of that name.
    fn special(&mut self, name: &str, component: &str) -> Result<Option<(Class, Value)>, Failure> {
        let Some(bare) = name.strip_prefix('%') else { return Ok(None) };
        let axis = match component {
            "x" => 0,
            "y" => 1,
            "z" => 2,
            _ => 3,
        };
        let lanes = ["lt", "le", "eq", "ge", "gt"];
        let along = |special: fn(usize) -> Special| if axis < 3 { Some(Value::Special(special(axis))) } else { None };
        let value = match bare {
            "tid" => along(Special::Tid),
            "ntid" => along(Special::Ntid),
            "ctaid" | "clusterid" => along(Special::Ctaid),
            "nctaid" | "nclusterid" => along(Special::Nctaid),
            "cluster_ctaid" => Some(Value::Bits(0)),
            "cluster_nctaid" => Some(Value::Bits(1)),
            _ if axis < 3 => None,
            "laneid" => Some(Value::Special(Special::Lane)),
            "warpid" => Some(Value::Special(Special::Warp)),
            "nwarpid" => Some(Value::Special(Special::Warps)),
            "smid" | "cluster_ctarank" => Some(Value::Bits(0)),
            "nsmid" | "cluster_nctarank" => Some(Value::Bits(1)),
            "gridid" => return Ok(Some((Class::Wide, Value::Bits(0)))),
            "reserved_smem_offset_begin" | "reserved_smem_offset_0" | "reserved_smem_offset_1" => {
                Some(self.reserved(0))
            }
            "reserved_smem_offset_end" => Some(self.reserved(RESERVED_BYTES.cast_signed())),
            "reserved_smem_offset_cap" => Some(Value::Bits(RESERVED_BYTES)),
            "is_explicit_cluster" => return Ok(Some((Class::Pred, Value::Bits(0)))),
            _ if bare.strip_prefix("pm").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) => {
                Some(Value::Bits(0))
            }
            "dynamic_smem_size" => Some(Value::Special(Special::DynamicShared)),
            "total_smem_size" => Some(Value::Special(Special::StaticShared)),
            _ => bare
                .strip_prefix("lanemask_")
                .and_then(|which| lanes.iter().position(|known| *known == which))
                .map(|which| Value::Special(Special::LaneMask(which as u8))),
        };
        match value {
            Some(value) => Ok(Some((Class::Narrow, value))),
            None => {
                let dot = if component.is_empty() { "" } else { "." };
                Err(format!("the register `{name}{dot}{component}` is neither declared nor one that is known"))
            }
        }
    }

    /// The address in the shared memory that is reserved for the system.
    fn reserved(&mut self, offset: i64) -> Value {
        let known = self.shared.iter().position(|(name, _)| *name == RESERVED);
        let number = known.unwrap_or_else(|| {
            self.shared.push((RESERVED, RESERVED_BYTES));
            self.shared.len() - 1
        });
        Value::Shared(number as u32, offset)
    }

    /// The address of a variable, in its own state space.
    pub(super) fn address_of(&mut self, name: &str, offset: i64) -> Result<Value, Failure> {
        match self.scopes.get(name) {
            Some(Named::Local(_, begin)) => return Ok(Value::Bits(begin.wrapping_add_signed(offset))),
            Some(Named::Parameter(_, begin)) => {
                return Ok(Value::Bits((PARAMETER_WINDOW + begin).wrapping_add_signed(offset)));
            }
            _ => {}
        }
        let Some(&variable) = self.module_variables.get(name) else {
            let number = self.function_number(name).ok_or_else(|| format!("there is no `{name}` here"))?;
            return Ok(Value::Function(number));
        };
        let bytes = bytes_of(variable);
        match variable.space {
            StateSpace::Shared if bytes == 0 || variable.is_extern => Ok(Value::DynamicShared(offset)),
            StateSpace::Shared => {
                let name = self.without_entry(variable.name);
                let known = self.shared.iter().position(|(own, _)| *own == name);
                let number = known.unwrap_or_else(|| {
                    self.shared.push((name, bytes));
                    self.shared.len() - 1
                });
                Ok(Value::Shared(number as u32, offset))
            }
            StateSpace::Global | StateSpace::Constant => {
                let name = self.without_entry(variable.name);
                let known = self.variables.iter().position(|own| own.name == name);
                let number = known.unwrap_or_else(|| {
                    self.variables.push(Variable {
                        name,
                        bytes,
                        align: variable.align,
                        is_constant: variable.space == StateSpace::Constant,
                        is_extern: variable.is_extern,
                        initial: Vec::new(),
                    });
                    self.declared.push(variable);
                    self.variables.len() - 1
                });
                Ok(Value::Variable(number as u32, offset))
            }
            _ => Err(format!("`{name}` is in a state space that has no addresses here")),
        }
    }

    /// A variable's name without that of the entry before it: what busload's kernels call it.
    fn without_entry(&self, name: &str) -> &'static str {
        let short = name.strip_prefix(self.entry).and_then(|rest| rest.strip_prefix('_'));
        intern(short.filter(|short| !short.is_empty()).unwrap_or(name))
    }

    /// What an address operand is made of: a slot, and bytes behind what it holds.
    pub(super) fn address(&mut self, operand: &Operand<'a>) -> Result<((Class, u32), i64), Failure> {
        let Operand::Address(base, offset, rest) = operand else {
            return Err(format!("{} is no address: write it in brackets", shown(operand)));
        };
        if !rest.is_empty() {
            return Err("an address with more than one part is not carried out".to_owned());
        }
        let Some(name) = base else {
            return Ok(((Class::Wide, self.holding(Class::Wide, Value::Bits(offset.cast_unsigned()))), 0));
        };
        match self.any_register(name)? {
            Some(found @ (Class::Narrow | Class::Wide, _)) => Ok((found, *offset)),
            Some(_) => Err(format!("`{name}` is too narrow for an address")),
            None => {
                if let Some(Named::Framed(_, begin)) = self.scopes.get(name) {
                    let [frame, _] = self.stack();
                    return Ok(((Class::Wide, frame), offset.wrapping_add(begin.cast_signed())));
                }
                let value = self.address_of(name, *offset)?;
                Ok(((Class::Wide, self.holding(Class::Wide, value)), 0))
            }
        }
    }
}

/// Bytes from an address in a state space to the generic one.
pub(super) fn window(space: StateSpace) -> Result<u64, Failure> {
    match space {
        StateSpace::Shared => Ok(crate::program::SHARED_WINDOW),
        StateSpace::Local => Ok(crate::program::LOCAL_WINDOW),
        // They are generic as they are.
        StateSpace::Global | StateSpace::Constant | StateSpace::Parameter => Ok(0),
        StateSpace::Register | StateSpace::Other => Err("this state space has no generic addresses".to_owned()),
    }
}

/// The generic addresses of a state space: the first, and the first behind them.
pub(super) fn window_of(space: StateSpace) -> Result<[u64; 2], Failure> {
    let begin = window(space)?;
    Ok(match space {
        StateSpace::Parameter => [PARAMETER_WINDOW, PARAMETER_WINDOW + (1 << 40)],
        _ if begin == 0 => [GLOBAL_BEGIN, u64::MAX],
        _ => [begin, begin + (1 << 40)],
    })
}

/// Two classes fit if they are the same, or both are kept in 32 bits and the narrower one is read as such.
fn same_class(name: &str, own: Class, wanted: Class) -> Result<(), Failure> {
    if own == wanted {
        return Ok(());
    }
    let bits = |class| match class {
        Class::Pred => "is a predicate",
        Class::Half => "has 16 bits",
        Class::Narrow => "has 32 bits",
        Class::Wide => "has 64 bits",
    };
    Err(format!("{} {}, and what stands there {}", name, bits(own), bits(wanted)))
}

/// An operand as an error names it.
pub(super) fn shown(operand: &Operand<'_>) -> String {
    match operand {
        Operand::Name(name) | Operand::Not(name) | Operand::Negated(name) => format!("`{name}`"),
        Operand::Component(name, component) => format!("`{name}.{component}`"),
        Operand::Sum(name, offset) => format!("`{name}+{offset}`"),
        Operand::Constant(Constant::Integer(value)) => format!("`{}`", value.cast_signed()),
        Operand::Constant(_) => "a floating-point constant".to_owned(),
        Operand::Vector(_) => "a vector".to_owned(),
        Operand::Address(..) => "an address".to_owned(),
        Operand::Pair(..) => "a pair".to_owned(),
        Operand::List(_) => "a list".to_owned(),
        Operand::Sink => "`_`".to_owned(),
    }
}
