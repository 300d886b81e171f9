//! The front end that carries out kernels from their PTX, a warp at a time.
//!
//! [`parse()`] reads a module, [`lower()`] makes a register machine's program of one of its entries, and [`simulate`] carries it out over
//! the [`engine`]: each instruction for the 32 lanes of a warp under its mask, in one loop. A memory instruction under its mask *is* the
//! request. Lanes that a branch sends apart meet at its immediate post-dominator; what an instruction's `.loc` says is its position.
//!
//! It is carried out as the PTX ISA says, not as `ptxas` schedules it: no load is moved, put together with another, or dropped.
//! Accesses to a thread's own memory (`.local`) and to parameters are carried out and checked, and make no requests. What an asynchronous
//! copy (`cp.async`) brings is there when its thread waits for it; its requests are made where it begins. What a kernel prints
//! (`vprintf`) is part of the outcome.
//!
//! Beside what the engine's sanitizer finds there are reads of tiles whose copies have not arrived, of local memory that the thread has
//! not written, and of registers. A register that some way leaves unwritten (`assigned`) is followed at run time, lane by lane: arithmetic
//! and shuffles hand on what it holds, and to go by it, as an address, a condition, or a value that is stored, is a finding. In functions
//! that are called as such, and not inlined, registers are not followed. Local memory is watched by elements: one is unwritten if none of
//! its bytes has been written, since structures are copied with their padding.
//!
//! Every instruction that is lowered is exact, approximate or ignored ([`Program::exactness`]); one that is not lowered is an error before
//! anything runs. Functions are inlined, but for those that call themselves or are called by address. A cluster is one block. Of textures,
//! surfaces, tensor maps, sparse matrices and clusters of several blocks nothing is carried out.
//!
//! Where no source says what the hardware asks of memory, it is assumed: `ldmatrix` and `stmatrix` are one request of 16 bytes for each
//! lane that names a row; `wmma.load` and `wmma.store` are one for each register, laid out as in `mma`; copies in bulk are requests of 16
//! bytes a lane; what `mbarrier` does are atomics in shared memory; and what `wgmma` reads there is checked, and is no request.
//!
//! The parser is its own. Of the published ones `ptx-90-parser` is deprecated by its author, `singe-ptx` is an alpha without a licence,
//! and ZLUDA's is no package of the registry; this one borrows the text, names the token and column of an error, bounds nesting, and
//! keeps opcodes as they are written, so that a new instruction is a line where it is carried out.
//!
//! It knows the engine and plans. It may not know the facade that kernels are written against, sources, models or reports.

mod alu;
mod assigned;
mod ast;
mod atomic;
mod error;
mod flow;
mod intern;
mod lex;
mod lower;
mod machine;
mod matrix;
mod parse;
mod program;
mod registers;
mod uses;
mod watch;

pub use ast::{
    Block, Constant, Function, Initializer, Instruction, Location, Module, Operand, Point, StateSpace, Statement, Type,
    Variable,
};
pub use error::{LowerError, ParseError, Place};
pub use lower::{Lines, lower};
pub use machine::{Error, simulate};
pub use parse::parse;
pub use program::{Exactness, Program};
