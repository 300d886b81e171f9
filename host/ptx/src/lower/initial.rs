//! What variables of global and constant memory hold at first.

use super::{Failure, Lowering};
use crate::ast::{Constant, Initializer, Type, Variable};
use crate::error::Place;
use crate::program::{Content, FUNCTION_WINDOW, Initial, Value};

/// The elements that a variable holds at first, one after another.
struct Layout {
    ty: Type,
    found: Vec<(u64, Initial)>,
}

impl<'m, 'a> Lowering<'m, 'a> {
    /// Finds what the variables hold that the entry names, and those that they lead to.
    pub(super) fn initial_contents(&mut self) -> Result<(), (Place, Failure)> {
        let mut number = 0;
        while let Some(&variable) = self.declared.get(number) {
            let found = self.initial(variable).map_err(|failure| (variable.place, failure))?;
            self.variables[number].initial = found;
            number += 1;
        }
        Ok(())
    }

    fn initial(&mut self, variable: &'m Variable<'a>) -> Result<Vec<(u64, Initial)>, Failure> {
        let Some(initializer) = &variable.initializer else { return Ok(Vec::new()) };
        // The elements of a vector are one dimension more.
        let vector = (variable.vector > 1).then_some(u64::from(variable.vector));
        let dimensions: Vec<u64> = variable.dimensions.iter().copied().chain(vector).collect();
        let mut layout = Layout { ty: variable.ty, found: Vec::new() };
        let bytes = bytes_of(variable);
        self.lay(&mut layout, initializer, &dimensions, 0)?;
        if layout.found.iter().any(|(begin, initial)| begin.saturating_add(initial.bytes.into()) > bytes) {
            return Err(format!("`{}` has {bytes} bytes, and is given more", variable.name));
        }
        layout.found.sort_by_key(|(begin, _)| *begin);
        Ok(layout.found)
    }

    /// Lays down what stands at `begin`: an element, or a list of what the outermost dimension has; where that ends.
    fn lay(
        &mut self,
        layout: &mut Layout,
        initializer: &'m Initializer<'a>,
        dimensions: &[u64],
        begin: u64,
    ) -> Result<u64, Failure> {
        let size = layout.ty.bytes();
        let end = |bytes: u64| begin.checked_add(bytes).ok_or_else(|| "it is larger than any memory".to_owned());
        let content = match initializer {
            Initializer::List(list) => {
                let inner = dimensions.get(1..).unwrap_or_default();
                let each = inner.iter().try_fold(size, |bytes, dimension| bytes.checked_mul(*dimension));
                let each = each.ok_or("it is larger than any memory")?;
                let mut at = begin;
                for item in list {
                    if let Initializer::List(_) = item {
                        at = (at - begin).div_ceil(each.max(1)).saturating_mul(each).saturating_add(begin);
                        self.lay(layout, item, inner, at)?;
                        at = at.saturating_add(each);
                    } else {
                        at = self.lay(layout, item, &[], at)?;
                    }
                }
                return Ok(at);
            }
            Initializer::Value(constant) => Content::Bits(bits(*constant, layout.ty)),
            Initializer::Address(name, offset) => match self.address_of(name, *offset)? {
                Value::Variable(number, offset) => Content::Address(number, offset),
                Value::Function(number) => Content::Bits(FUNCTION_WINDOW + 16 * u64::from(number)),
                _ => return Err(format!("`{name}` is in no memory whose addresses variables could hold")),
            },
        };
        layout.found.push((begin, Initial { bytes: size as u32, content }));
        end(size)
    }
}

/// A constant as an element of that type holds it.
fn bits(constant: Constant, ty: Type) -> u64 {
    let number = match (constant, ty) {
        (Constant::Integer(value), Type::Float(32 | 64)) => value.cast_signed() as f64,
        (Constant::Integer(value), _) => return value,
        (Constant::Single(bits), Type::Float(64)) => f64::from(f32::from_bits(bits)),
        (Constant::Single(bits), _) => return bits.into(),
        (Constant::Double(bits), Type::Float(32)) => f64::from_bits(bits),
        (Constant::Double(bits), _) => return bits,
    };
    if ty == Type::Float(32) { u64::from((number as f32).to_bits()) } else { number.to_bits() }
}

/// The size of a variable: where its first dimension is not stated, its initializer says it.
pub(super) fn bytes_of(variable: &Variable<'_>) -> u64 {
    let counted = match (&variable.dimensions[..], &variable.initializer) {
        ([0, rest @ ..], Some(Initializer::List(list))) => {
            let element = variable.ty.bytes() * u64::from(variable.vector);
            rest.iter()
                .chain([&(list.len() as u64)])
                .try_fold(element, |bytes, dimension| bytes.checked_mul(*dimension))
        }
        _ => variable.bytes(),
    };
    counted.unwrap_or(u64::MAX)
}
