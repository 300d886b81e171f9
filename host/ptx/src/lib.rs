//! The front end that carries out kernels from their PTX, a warp at a time.

mod alu;
mod ast;
mod atomic;
mod error;
mod flow;
mod intern;
mod lex;
mod lower;
mod machine;
mod parse;
mod program;
mod registers;

pub use ast::{
    Block, Constant, Function, Initializer, Instruction, Location, Module, Operand, Point, StateSpace, Statement, Type,
    Variable,
};
pub use error::{LowerError, ParseError, Place};
pub use lower::{Lines, lower};
pub use machine::{Error, simulate};
pub use parse::parse;
pub use program::Program;
