//! Launches that are ready, carried out on the machine that executes PTX, and what came of them.

use super::argument::{Expected, Parameter, Written};
use super::compare::{Compared, Comparison};
use super::npy;
use super::prepare::Ready;
use crate::sim::{Options, Outcome};
use crate::verify;
use engine::Memory;
use gpu::suite::Before;
use ptx_machine::Program;
use std::path::PathBuf;
use std::sync::Arc;

impl Ready {
    /// The words of its parameters: one for each 8 bytes that one begins. `base` gives the address of a buffer of the plan.
    pub fn words(&self, base: impl Fn(usize) -> u64) -> Vec<u64> {
        let words = self.parameters.iter().flat_map(|parameter| match parameter {
            Parameter::Buffer(number) => vec![base(*number)],
            Parameter::Bytes(bytes) => bytes.chunks(8).map(word).collect(),
        });
        words.collect()
    }

    /// Carries it out.
    ///
    /// # Errors
    /// If its buffers do not fit in memory.
    pub fn simulate(&self, options: &Options, progress: &dyn Fn(u64, u64)) -> Result<Outcome, ptx_machine::Error> {
        self.simulate_as(&self.program, options, progress)
    }

    /// The same as another program of the same entry, which may name other lines.
    ///
    /// # Errors
    /// As [`Ready::simulate`].
    pub fn simulate_as(
        &self,
        program: &Arc<Program>,
        options: &Options,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Outcome, ptx_machine::Error> {
        // What the parameters point to, PTX does not say whether it is written.
        let written = vec![true; self.plan.buffers.len()];
        let words = self.words(Memory::base);
        ptx_machine::simulate(program, Arc::clone(&self.plan), &words, &written, options, progress)
    }

    /// What its outputs hold, beside what they should.
    pub fn compare(&self, outcome: &Outcome) -> Vec<Compared> {
        let compared =
            self.results.iter().zip(&self.plan.buffers).enumerate().filter_map(|(number, (results, buffer))| {
                let Expected { path, array } = results.expect.as_ref()?;
                let with = path.display().to_string();
                let mut comparison = Comparison::new(buffer.name, with, results.ty, results.tolerance);
                for i in 0..buffer.len {
                    let actual = outcome.actual(number, i)?;
                    let is_written = !matches!(buffer.before, Before::Poison) || actual.written == verify::Written::All;
                    comparison.next(array.bits(i, results.ty.size()), actual.bits, is_written);
                }
                Some(comparison.finish())
            });
        compared.collect()
    }

    /// Writes the outputs that are to be files, and says which.
    ///
    /// # Errors
    /// What could not be written.
    pub fn write(&mut self, outcome: &Outcome) -> anyhow::Result<Vec<PathBuf>> {
        let mut written = Vec::new();
        for (number, results) in self.results.iter_mut().enumerate() {
            let Some(Written { path, file }) = results.write.take() else { continue };
            let len = self.plan.buffers[number].len;
            let elements = (0..len).map(|i| outcome.bits(number, i).unwrap_or_default());
            let done = npy::write(&file, results.ty, len, elements).and_then(|()| Ok(file.persist(&path)?));
            done.map_err(|reason| anyhow::anyhow!("{}: {reason}", path.display()))?;
            written.push(path);
        }
        Ok(written)
    }
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
