//! Programs that are waited for, and that end when this one is asked to: so that what was made for them can be removed.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// Why there is no exit status.
#[derive(Debug, thiserror::Error)]
pub enum Unfinished {
    /// It could not be started, or not be waited for.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// This process was asked to end, by such a signal.
    #[error("interrupted")]
    Interrupted(i32),
}

/// How often a program is asked whether it has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// While it is there, this process does not end by a signal that asks for it (SIGINT, SIGTERM, SIGHUP): programs that are waited for do.
pub struct Watch {
    #[cfg(target_os = "linux")]
    before: [(i32, libc::sighandler_t); 3],
}

#[cfg(target_os = "linux")]
mod signal {
    use std::sync::atomic::{AtomicI32, Ordering};

    static SEEN: AtomicI32 = AtomicI32::new(0);

    pub(super) extern "C" fn note(signal: libc::c_int) {
        SEEN.store(signal, Ordering::SeqCst);
    }

    pub(super) fn seen() -> Option<i32> {
        Some(SEEN.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    pub(super) fn forget() {
        SEEN.store(0, Ordering::SeqCst);
    }
}

impl Watch {
    /// Begins to watch.
    #[must_use]
    pub fn new() -> Self {
        #[cfg(target_os = "linux")]
        {
            signal::forget();
            let handler: extern "C" fn(libc::c_int) = signal::note;
            let before = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].map(|signal| {
                // SAFETY: the handler stores a number, and nothing else.
                (signal, unsafe { libc::signal(signal, handler as libc::sighandler_t) })
            });
            Self { before }
        }
        #[cfg(not(target_os = "linux"))]
        Self {}
    }

    /// The signal that asked this process to end, if one did.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        #[cfg(target_os = "linux")]
        return signal::seen();
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Runs a program to its end.
    ///
    /// # Errors
    /// If it cannot be run, or this process is asked to end: then the program is ended, with all that it started.
    pub fn run(&self, command: &mut Command) -> Result<ExitStatus, Unfinished> {
        // In a group of its own, it is ended by this process and not by the terminal beside it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let mut child = command.spawn()?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if let Some(signal) = self.signal() {
                end(&mut child);
                child.wait()?;
                return Err(Unfinished::Interrupted(signal));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        for (signal, before) in self.before {
            // SAFETY: what handled it before does again.
            unsafe { libc::signal(signal, before) };
        }
    }
}

/// Ends this process as the signal would have done.
pub fn end_by(signal: i32) -> ! {
    #[cfg(target_os = "linux")]
    // SAFETY: nothing of this process is left to be done.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    std::process::exit(128 + signal)
}

fn end(child: &mut Child) {
    #[cfg(target_os = "linux")]
    // SAFETY: the group is the child's, which was not waited for yet.
    unsafe {
        libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL);
    }
    let _ = child.kill();
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_program_ends_when_this_one_is_asked_to_and_so_does_what_it_started() {
        let watch = Watch::new();
        let status = watch.run(Command::new("sh").args(["-c", "exit 3"])).expect("it runs to its end");
        assert_eq!(status.code(), Some(3));
        assert!(matches!(watch.run(&mut Command::new("no-such-program")), Err(Unfinished::Io(_))));
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pid");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while std::fs::read_to_string(&file).map_or(true, |pid| !pid.ends_with('\n')) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                // SAFETY: a signal to this process, which is handled.
                unsafe { libc::raise(libc::SIGTERM) };
            });
            let begun = Instant::now();
            let script = format!("sleep 600 & echo $! > {}; wait", file.display());
            let ended = watch.run(Command::new("sh").args(["-c", &script]));
            assert!(matches!(ended, Err(Unfinished::Interrupted(libc::SIGTERM))), "{ended:?}");
            assert!(begun.elapsed() < Duration::from_secs(60));
        });
        let pid = std::fs::read_to_string(&file).expect("a number");
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let begun = Instant::now();
        // Gone, or not yet waited for by whoever took it on.
        while !(state().is_empty() || state().contains(") Z")) {
            assert!(begun.elapsed() < Duration::from_secs(10), "sleep goes on: {}", state());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
