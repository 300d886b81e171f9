//! What the runtime of the GPU does for a kernel: text that it prints, assertions that fail.

use super::block::Runner;
use super::format::{Arguments, format};
use crate::program::{External, LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW};
use crate::registers::{Lanes, Narrow};
use engine::{Kind, Pc};

/// Bytes of a text, at most.
const LONGEST: u64 = 1 << 16;

impl Runner {
    /// Does it for the lanes in `active`, one after another: false if that is a finding.
    pub(super) fn external(&mut self, external: External, warp: usize, active: u32, pc: Pc) -> bool {
        match external {
            External::Print { format, arguments, printed } => self.print(warp, active, format, arguments, printed, pc),
            External::Assert { message, file, line, function } => {
                let lane = active.trailing_zeros() as usize % 32;
                let [message, file, function] = [message, file, function].map(|slot| {
                    let text = self.text(warp, lane, self.registers.wide.get(slot)[lane]);
                    text.map_or_else(|| "?".to_owned(), |text| String::from_utf8_lossy(&text).into_owned())
                });
                let line = self.registers.narrow.get(line)[lane];
                let detail = format!("assertion failed: `{message}`, {file}:{line}, function `{function}`");
                self.find(warp, 1 << lane, Kind::Panic, pc, detail);
                false
            }
        }
    }

    fn print(&mut self, warp: usize, active: u32, text: u32, arguments: u32, printed: u32, pc: Pc) -> bool {
        let [texts, places] = [text, arguments].map(|slot| *self.registers.wide.get(slot));
        let mut counts = [0; 32];
        for lane in (0..32).filter(|lane| active >> lane & 1 == 1) {
            let Some(text) = self.text(warp, lane, texts[lane]) else {
                let detail = format!("a thread prints by a format at {:#x}, where there is no text", texts[lane]);
                self.find(warp, 1 << lane, Kind::OutOfBounds, pc, detail);
                return false;
            };
            let mut given = Given { runner: self, warp, lane, at: places[lane] };
            let Some((printed, count)) = format(&text, &mut given) else {
                let text = String::from_utf8_lossy(&text);
                let detail = format!(
                    "a thread prints by the format `{}`, and has not all its arguments, or more than 32",
                    text.escape_debug()
                );
                self.find(warp, 1 << lane, Kind::OutOfBounds, pc, detail);
                return false;
            };
            counts[lane] = count;
            self.page.print(&printed);
        }
        Narrow::set(&mut self.registers, printed, active, &counts);
        true
    }

    /// The byte at a generic address.
    fn byte(&self, warp: usize, lane: usize, address: u64) -> Option<u8> {
        let within = |begin: u64| Some(address.wrapping_sub(begin)).filter(|offset| *offset < 1 << 40);
        if let Some(offset) = within(LOCAL_WINDOW) {
            let size = self.job.program.local_bytes;
            return (offset < size).then(|| self.local[((32 * warp + lane) as u64 * size + offset) as usize]);
        }
        if let Some(offset) = within(PARAMETER_WINDOW) {
            return self.job.parameters.get(offset as usize).copied();
        }
        let element = match within(SHARED_WINDOW) {
            Some(offset) => self.worker.shared.resolve(offset, 0, 1),
            None => self.job.memory().resolve(address, 0, 1),
        }?;
        let mut byte = 0;
        // SAFETY: it was resolved for a byte.
        unsafe { element.load(1, &raw mut byte) };
        Some(byte)
    }

    /// The text at a generic address, up to its 0 byte.
    fn text(&self, warp: usize, lane: usize, address: u64) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for at in 0..LONGEST {
            match self.byte(warp, lane, address.wrapping_add(at))? {
                0 => return Some(text),
                byte => text.push(byte),
            }
        }
        None
    }
}

/// The arguments that a thread has laid down one after another, each aligned to its size.
struct Given<'r> {
    runner: &'r Runner,
    warp: usize,
    lane: usize,
    at: u64,
}

impl Arguments for Given<'_> {
    fn next(&mut self, bytes: u64) -> Option<u64> {
        let begin = self.at.checked_next_multiple_of(bytes)?;
        self.at = begin.checked_add(bytes)?;
        (0..bytes).try_fold(0, |value, at| {
            Some(value | u64::from(self.runner.byte(self.warp, self.lane, begin.wrapping_add(at))?) << (8 * at))
        })
    }

    fn text(&mut self, address: u64) -> Option<Vec<u8>> {
        self.runner.text(self.warp, self.lane, address)
    }
}

#[cfg(test)]
mod tests;
