//! A thread that takes more stack than it has: a finding, and not the end of the process.
//!
//! Calls of the facade look how much is left, and keep a reserve for themselves. A kernel that overflows between two calls
//! touches the page behind its stack, which is no memory: the handler here then makes the coroutine return [`Overflow`] to
//! the scheduler. It is the kernel's own code that is left there, which holds nothing that must be given back. Every other
//! fault goes on to the handler that was installed before; if a kernel's thread runs, the handler first says whose it is and
//! what its last access was.

use crate::stack::STACK;
use corosensei::trap::CoroutineTrapHandler;
use gpu::device::host::Watched;
use std::cell::Cell;
use std::ptr::NonNull;

/// What a thread returns that overflowed its stack; others never return.
#[derive(Clone, Copy)]
pub(super) struct Overflow;

impl Overflow {
    /// What happened, and the way out.
    pub(super) fn detail() -> String {
        format!(
            "a thread takes more than {} KiB of stack: end its recursion sooner, or keep its arrays in shared or global memory",
            STACK >> 10
        )
    }
}

/// What runs on a thread: for its handler of faults.
#[derive(Clone, Copy)]
struct Running {
    /// The stack of the coroutine.
    stack: CoroutineTrapHandler<Overflow>,
    /// The kernel's name.
    kernel: &'static str,
    /// What its lane tells; valid while the coroutine runs.
    lane: NonNull<Watched>,
}

thread_local! {
    static RUNNING: Cell<Option<Running>> = const { Cell::new(None) };
}

/// Runs `resume`, which goes on with the coroutine of `stack`, a thread of `kernel`.
pub(super) fn on_stack<T>(
    stack: CoroutineTrapHandler<Overflow>,
    kernel: &'static str,
    lane: &Watched,
    resume: impl FnOnce() -> T,
) -> T {
    RUNNING.set(Some(Running { stack, kernel, lane: NonNull::from(lane) }));
    let result = resume();
    RUNNING.set(None);
    result
}

/// Whether a coroutine runs on the calling thread.
pub(super) fn is_on_stack() -> bool {
    RUNNING.get().is_some()
}

/// About where the caller's stack ends.
#[inline(always)]
pub(super) fn stack_pointer() -> usize {
    let here = 0u8;
    (&raw const here).addr()
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) fn catch_faults() {}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use fault::catch_faults;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod fault {
    use super::{Overflow, RUNNING, Running};
    use corosensei::trap::TrapHandlerRegs;
    use libc::{c_int, c_void, siginfo_t, ucontext_t};
    use std::fmt::Write;
    use std::mem::{transmute, zeroed};
    use std::ptr;
    use std::sync::{Once, OnceLock};

    /// What handled faults before.
    static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    /// Installs the handler, once. It runs on the alternate stack that Rust gives its threads.
    pub(crate) fn catch_faults() {
        static ONCE: Once = Once::new();
        // SAFETY: zeros are an action, the handler has the signature that `SA_SIGINFO` asks for, and it touches nothing that
        // a handler must not.
        ONCE.call_once(|| unsafe {
            let mut action: libc::sigaction = zeroed();
            libc::sigaction(libc::SIGSEGV, ptr::null(), &raw mut action);
            let _ = BEFORE.set(action);
            action = zeroed();
            action.sa_sigaction = on_fault as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut());
        });
    }

    /// # Safety
    /// Called as a handler of SIGSEGV.
    unsafe extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the kernel passes both.
        let (address, registers) = unsafe { ((*info).si_addr().addr(), &mut *context.cast::<ucontext_t>()) };
        match RUNNING.get() {
            // Of a coroutine's stack, only the page behind it is no memory.
            Some(Running { stack, .. })
                if [address, stack_pointer(registers)].map(|at| stack.stack_ptr_in_bounds(at)) == [true; 2] =>
            {
                // SAFETY: the coroutine runs on this thread, with its stack pointer in its stack, and its frames hold
                // nothing that must be dropped.
                set(registers, unsafe { stack.setup_trap_handler(|| Overflow) });
            }
            running => {
                if let Some(running) = running {
                    tell(&running, address);
                }
                // SAFETY: as for this function.
                unsafe { pass_on(signal, info, context) }
            }
        }
    }

    /// Says on standard error whose fault it is. Only what a handler may call is called: nothing here allocates or locks.
    fn tell(Running { kernel, lane, .. }: &Running, address: usize) {
        let mut line = Line { bytes: [0; 1024], length: 0 };
        let _ = write!(line, "error: {kernel} touched address {address:#x} by itself, which is no memory");
        // SAFETY: it is valid while the coroutine runs, which it does on this thread.
        match unsafe { lane.as_ref() }.last() {
            Some(site) => {
                let _ = write!(line, "; the last access before it is at {}", site.at());
            }
            None => drop(line.write_str("; no access was made before it")),
        }
        let _ = line.write_str(": touch memory through gpu::device alone\n");
        // SAFETY: the bytes are there.
        unsafe { libc::write(libc::STDERR_FILENO, line.bytes.as_ptr().cast(), line.length) };
    }

    /// A line of text that is cut off where there is no more room.
    struct Line {
        bytes: [u8; 1024],
        length: usize,
    }

    impl Write for Line {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            let room = &mut self.bytes[self.length..];
            let many = text.len().min(room.len());
            room[..many].copy_from_slice(&text.as_bytes()[..many]);
            self.length += many;
            Ok(())
        }
    }

    /// # Safety
    /// As for [`on_fault`].
    unsafe fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let Some(before) = BEFORE.get() else { return };
        // SAFETY: `before` says how its handler wants to be called.
        unsafe {
            match before.sa_sigaction {
                libc::SIG_DFL | libc::SIG_IGN => {
                    // The access faults again, and ends the process.
                    libc::sigaction(signal, before, ptr::null_mut());
                }
                handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                    transmute::<usize, extern "C" fn(c_int, *mut siginfo_t, *mut c_void)>(handler)(
                        signal, info, context,
                    );
                }
                handler => transmute::<usize, extern "C" fn(c_int)>(handler)(signal),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn stack_pointer(context: &ucontext_t) -> usize {
        context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
    }

    #[cfg(target_arch = "x86_64")]
    fn set(context: &mut ucontext_t, TrapHandlerRegs { rip, rsp, rbp, rdi, rsi }: TrapHandlerRegs) {
        let values = [
            (libc::REG_RIP, rip),
            (libc::REG_RSP, rsp),
            (libc::REG_RBP, rbp),
            (libc::REG_RDI, rdi),
            (libc::REG_RSI, rsi),
        ];
        for (register, value) in values {
            context.uc_mcontext.gregs[register as usize] = value.cast_signed();
        }
    }

    #[cfg(target_arch = "aarch64")]
    fn stack_pointer(context: &ucontext_t) -> usize {
        context.uc_mcontext.sp as usize
    }

    #[cfg(target_arch = "aarch64")]
    fn set(context: &mut ucontext_t, TrapHandlerRegs { pc, sp, x0, x1, x29, lr }: TrapHandlerRegs) {
        let machine = &mut context.uc_mcontext;
        (machine.pc, machine.sp) = (pc, sp);
        for (register, value) in [(0, x0), (1, x1), (29, x29), (30, lr)] {
            machine.regs[register] = value;
        }
    }
}
