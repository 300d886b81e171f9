//! Runs on a GPU, for the commands that verify and those that measure.
//!
//! After a launch that failed on the GPU, CUDA takes no further call from the process. So the cases after it run in a child: the same
//! command with `--from=N`. It reads the device's copies as a line of JSON from its standard input, writes a line of JSON for each case as
//! soon as it is done, and reads a line before it begins the next: then the parent has kept it. Whatever ends either of them, nothing
//! is lost of what was finished.

use super::output::Output;
use crate::bench::{self, Asked, COPY, Copied, Device};
use crate::cases::Run;
use crate::moved::Moved;
use crate::record::{ErrorRecord, Record};
use crate::report;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use system::interrupt::{OnEnd, name};

/// What is to be done on a GPU.
pub(super) struct Work<'a> {
    pub(super) device: &'a dyn Device,
    pub(super) runs: &'a [Run],
    pub(super) asked: Asked,
    /// In a child, the number of the case that it begins at.
    pub(super) from: Option<usize>,
    /// Bytes that profiles say moved.
    pub(super) moved: Moved,
}

/// The device's copy of each number of bytes.
type Copies = BTreeMap<u64, Copied>;

/// What came of a case: a line of a child.
#[derive(Serialize, Deserialize)]
struct Done {
    run: usize,
    records: Vec<Record>,
    /// Whether the process can run nothing more on the GPU.
    lost: bool,
}

/// Runs the cases that the report has nothing of yet; the device's copy before those that are measured.
///
/// # Errors
/// In a child, if there is nobody to tell.
pub(super) fn on_gpu(work: &Work<'_>, output: &mut Output) -> Result<()> {
    if let Some(first) = work.from {
        return as_child(work, first, output);
    }
    let file = output.file().map(|path| path.display().to_string());
    let _ending = OnEnd::new(move |signal| say_end(signal, file.as_deref()));
    let copies = copies(work, output);
    for (number, run) in work.runs.iter().enumerate() {
        output.progress.at(run, 0, 0);
        if output.has(run) {
            output.progress.next();
            continue;
        }
        let done = work.one(number, &copies);
        output.keep(done.records);
        output.progress.next();
        if done.lost {
            rest(work, number + 1, &copies, output);
            break;
        }
    }
    Ok(())
}

/// What is done when this process is asked to end: what finished is in the file already.
fn say_end(signal: i32, file: Option<&str>) {
    if let Some(child) = child().as_mut() {
        let _ = child.kill();
    }
    // Whoever writes now is let finish.
    std::mem::forget(report::hold());
    let kept = match file {
        Some(file) => format!("what finished is in {file}, and --resume {file} goes on"),
        None => "nothing is kept without --json FILE".to_owned(),
    };
    report::say(&format!("\nended by {}: {kept}", name(signal)));
}

/// The device's copies of as many bytes as the cases move, those that the report lacks measured.
fn copies(work: &Work<'_>, output: &mut Output) -> Copies {
    let mut copies = BTreeMap::new();
    let Some(sampling) = work.asked.sampling() else { return copies };
    let mut sizes: Vec<u64> = work.runs.iter().map(|run| run.plan.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for bytes in sizes {
        let known = output.report.results.iter().find(|record| record.kernel == COPY && record.bytes == bytes);
        let copied = match known {
            Some(record) => Copied::of(record),
            None => {
                // A copy that does not fit leaves its cases without a share of copy.
                let Some(record) = work.device.copy(bytes, &sampling) else { continue };
                let copied = Copied::of(&record);
                let best = &mut output.report.machine.copy_gbps;
                *best = best.iter().copied().chain(copied.cold).reduce(f64::max);
                output.keep([record]);
                copied
            }
        };
        copies.insert(bytes, copied);
    }
    copies
}

impl Work<'_> {
    /// Whether no run before this one has the same routine of a library beside it, on the same case.
    fn is_first_of_library(&self, number: usize) -> bool {
        let of = |run: &Run| run.plan.library.map(|library| (library.name(), run.case.to_string()));
        let own = of(&self.runs[number]);
        !self.runs[..number].iter().any(|before| of(before) == own)
    }

    /// Runs a case, and the library's routine beside it.
    fn one(&self, number: usize, copies: &Copies) -> Done {
        let run = &self.runs[number];
        let copied = copies.get(&run.plan.bytes).copied().unwrap_or_default();
        let mut done = self.device.kernel(run, self.asked, copied);
        done.record.moved = self.moved.of(&done.record);
        let library = if done.lost || matches!(self.asked, Asked::Once) || !self.is_first_of_library(number) {
            None
        } else {
            self.device.library(run, self.asked, copied)
        };
        let lost = done.lost || library.as_ref().is_some_and(|library| library.lost);
        let records = library.into_iter().map(|library| library.record).chain([done.record]).collect();
        Done { run: number, records, lost }
    }
}

/// More bytes than the copies of all sizes take, and a line for each case.
const MOST: u64 = 16 << 20;

/// Runs the cases from the `first` on, and tells the parent of each.
fn as_child(work: &Work<'_>, first: usize, output: &Output) -> Result<()> {
    let mut input = BufReader::new(std::io::stdin().lock().take(MOST));
    let mut next_line = || -> Result<String> {
        let mut line = String::new();
        input.read_line(&mut line).context("--from: standard input")?;
        anyhow::ensure!(line.ends_with('\n'), "--from: whoever asked for it is gone");
        Ok(line)
    };
    let copies = serde_json::from_str(&next_line()?).context("--from: standard input")?;
    for number in first..work.runs.len() {
        if output.has(&work.runs[number]) {
            continue;
        }
        let done = work.one(number, &copies);
        // What a kernel prints may stand before it.
        let line = format!("\n{}\n", serde_json::to_string(&done)?);
        let mut out = std::io::stdout().lock();
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).context("--from: standard output")?;
        if done.lost {
            break;
        }
        next_line()?;
    }
    Ok(())
}

/// The child, while there is one.
fn child() -> MutexGuard<'static, Option<Child>> {
    static CHILD: Mutex<Option<Child>> = Mutex::new(None);
    CHILD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the cases from `next` on in children, each until a launch fails in it, or something ends it.
fn rest(work: &Work<'_>, mut next: usize, copies: &Copies, output: &mut Output) {
    let on = output.report.machine.kind.clone();
    let failed = |run: &Run, kind: &str, message: String| {
        let error = Some(ErrorRecord { kind: kind.to_owned(), message });
        Record { error, ..bench::record(run, &on) }
    };
    loop {
        while work.runs.get(next).is_some_and(|run| output.has(run)) {
            (next, ()) = (next + 1, output.progress.next());
        }
        if next == work.runs.len() {
            return;
        }
        let begun = next;
        let status = in_child(next, copies, |done: Done| {
            next = done.run + 1;
            output.keep(done.records);
            output.progress.next();
        });
        match status {
            Ok(status) if next > begun && status.success() => {}
            // Killed, as where memory is short: that case is lost, and the others are tried.
            Ok(status) if status.code().is_none() => {
                let message = format!("the process that ran it was ended ({status}); the other cases run in a new one");
                output.keep([failed(&work.runs[next], "process", message)]);
                output.progress.next();
                next += 1;
            }
            other => {
                let why = other.map_or_else(|error| format!("{error:#}"), |status| status.to_string());
                let message = format!("the other cases did not run in a new process: {why}");
                output.keep(work.runs[next..].iter().map(|run| failed(run, bench::NOT_RUN, message.clone())));
                return;
            }
        }
    }
}

/// Runs the cases from the `first` on in a new process: a launch failed, and CUDA takes no more calls from this one.
fn in_child(first: usize, copies: &Copies, mut done: impl FnMut(Done)) -> Result<ExitStatus> {
    let program = std::env::current_exe().context("the path of this program")?;
    let is_ours = |argument: &std::ffi::OsString| argument.to_string_lossy().starts_with("--from=");
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1).filter(|argument| !is_ours(argument))).arg(format!("--from={first}"));
    let mut started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("a new process")?;
    let (stdin, stdout) = (started.stdin.take(), started.stdout.take());
    *child() = Some(started);
    let mut stdin = stdin.context("its input")?;
    // One that ends before it reads says why by its status.
    let mut tell = |line: &str| drop(stdin.write_all(format!("{line}\n").as_bytes()));
    tell(&serde_json::to_string(copies)?);
    for line in BufReader::new(stdout.context("its output")?).split(b'\n') {
        let Ok(line) = line else { break };
        if let Ok(line) = serde_json::from_slice(&line) {
            done(line);
            tell("");
        }
    }
    loop {
        // Between two looks it can be ended.
        let status = child().as_mut().map_or(Ok(None), Child::try_wait)?;
        if let Some(status) = status {
            *child() = None;
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
