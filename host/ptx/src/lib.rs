//! The front end that carries out kernels from their PTX, a warp at a time.

mod ast;
mod error;
mod lex;
mod parse;

pub use ast::{
    Block, Constant, Function, Initializer, Instruction, Location, Module, Operand, Point, StateSpace, Statement, Type,
    Variable,
};
pub use error::{LowerError, ParseError, Place};
pub use parse::parse;
