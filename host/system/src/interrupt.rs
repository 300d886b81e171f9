//! Programs that are waited for, and that end when this one is asked to: so that what was made for them can be removed.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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
                let before = unsafe { libc::signal(signal, handler as libc::sighandler_t) };
                if before == libc::SIG_IGN {
                    // `nohup`, or a shell for what it runs behind: whoever ignores it goes on to.
                    // SAFETY: as it was.
                    unsafe { libc::signal(signal, before) };
                }
                (signal, before)
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

impl Watch {
    /// Waits for programs that run already.
    ///
    /// # Errors
    /// If one of them cannot be waited for, or this process is asked to end: then they are asked too, by the same signal, and those that
    /// do not end soon are ended.
    pub fn wait(&self, children: &mut [Child]) -> Result<Vec<ExitStatus>, Unfinished> {
        let mut asked: Option<(i32, Instant)> = None;
        loop {
            let statuses = children.iter_mut().map(Child::try_wait).collect::<io::Result<Option<Vec<_>>>>()?;
            match (statuses, asked) {
                (Some(statuses), None) => return Ok(statuses),
                (Some(_), Some((signal, _))) => return Err(Unfinished::Interrupted(signal)),
                (None, Some((_, at))) if at.elapsed() > PATIENCE => children.iter_mut().for_each(|child| {
                    let _ = child.kill();
                }),
                (None, Some(_)) => {}
                (None, None) => {
                    if let Some(signal) = self.signal() {
                        for child in children.iter_mut() {
                            if let Ok(None) = child.try_wait() {
                                ask(child, signal);
                            }
                        }
                        asked = Some((signal, Instant::now()));
                    }
                }
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// So long programs may take to end that were asked to.
const PATIENCE: Duration = Duration::from_secs(10);

/// While it is there, something is done before this process ends by a signal that asks for it.
pub struct OnEnd {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl OnEnd {
    /// Has `act` be done, on a thread of its own, whatever the others are at; none if the system starts no thread, and then nothing is.
    pub fn new(act: impl FnOnce(i32) + Send + 'static) -> Option<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (seen, watch) = (Arc::clone(&is_over), Watch::new());
        let wait = move || {
            while !seen.load(Ordering::SeqCst) {
                if let Some(signal) = watch.signal() {
                    act(signal);
                    end_by(signal);
                }
                std::thread::park_timeout(PAUSE);
            }
        };
        let thread = std::thread::Builder::new().spawn(wait).ok()?;
        Some(Self { is_over, thread: Some(thread) })
    }
}

impl Drop for OnEnd {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// What a signal is called.
pub fn name(signal: i32) -> String {
    #[cfg(target_os = "linux")]
    for (known, name) in [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP")] {
        if signal == known {
            return name.to_owned();
        }
    }
    format!("signal {signal}")
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

/// Asks a program to end.
fn ask(child: &Child, signal: i32) {
    #[cfg(target_os = "linux")]
    // SAFETY: the process is the child, which was not waited for to its end.
    unsafe {
        libc::kill(child.id() as libc::pid_t, signal);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (child, signal);
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
