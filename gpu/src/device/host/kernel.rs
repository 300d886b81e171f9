//! A kernel as the host sees it: its description, its parameters, and how to call it.

use crate::device::{Global, GlobalMut};
use crate::suite::{Element, ElementType};

/// A kernel as the host sees it: made by `#[kernel]` as `NAME::KERNEL`.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Its name: function, PTX symbol, table row, command-line id.
    pub name: &'static str,
    /// Its documentation.
    pub documentation: &'static str,
    /// The source file, relative to its workspace.
    pub file: &'static str,
    /// The folder of its package, on the machine that compiled it; empty if no cargo did.
    pub folder: &'static str,
    /// The line its item begins at.
    pub line: u32,
    /// Names and kinds of its parameters.
    pub parameters: &'static [(&'static str, ParameterKind)],
    /// Names and bytes of its static arrays in shared memory, as they are declared.
    pub shared: &'static [(&'static str, u64)],
    /// Names and bytes of its constant arrays.
    pub constants: &'static [(&'static str, u64)],
    /// Runs it for the current lane, and for each further lane that the calling thread goes on as.
    ///
    /// # Safety
    /// A lane is running; the words are the parameters, in order.
    pub entry: unsafe fn(&[u64]),
}

/// Makes a kernel's function and its [`Kernel`].
#[macro_export]
#[doc(hidden)]
macro_rules! __entry {
    ($(#[doc = $doc:literal])* $(#[allow($($allow:tt)*)])* #[documentation($documentation:literal)]
     #[shared($($shared:ident: $tile:ty),*)] #[constants($($constant:ident: $array:ty),*)]
     $vis:vis unsafe fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[doc = $doc])*
        ///
        /// # Safety
        /// The launch contract of `gpu::device`: the buffers are as large as the launch of its family makes them.
        $(#[allow($($allow)*)])*
        #[inline(always)]
        $vis unsafe fn $name($($parameter: $ty),*) $body

        #[doc(hidden)]
        $vis mod $name {
            #[allow(unused_imports)]
            use super::*;
            pub const KERNEL: $crate::device::host::Kernel = $crate::device::host::Kernel {
                name: stringify!($name),
                documentation: $documentation,
                file: file!(),
                folder: match option_env!("CARGO_MANIFEST_DIR") {
                    Some(folder) => folder,
                    None => "",
                },
                line: line!(),
                parameters: &[$((stringify!($parameter), <$ty as $crate::device::host::Parameter>::KIND)),*],
                shared: &[$((stringify!($shared), size_of::<$tile>() as u64)),*],
                constants: &[$((stringify!($constant), size_of::<$array>() as u64)),*],
                entry: |words| {
                    let [$($parameter),*] = *words else {
                        panic!(concat!("`", stringify!($name), "` takes other parameters than it was given"))
                    };
                    loop {
                        // SAFETY: the caller of `entry` passes the parameters' words.
                        unsafe { super::$name($(<$ty as $crate::device::host::Parameter>::from_word($parameter)),*) }
                        if !$crate::device::host::end() {
                            break;
                        }
                    }
                },
            };
        }
    };
}
#[doc(hidden)]
pub use crate::__entry as entry;

/// A type of kernel parameters. The host passes each as one 64-bit word.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a kernel's parameter",
    label = "no parameter of a kernel",
    note = "a kernel takes buffers, as `Global<f32>` to read and `GlobalMut<f32>` to write, and plain values: `u32`, `i32`, \
            `u64`, `usize`, `f32`"
)]
pub trait Parameter: Sized {
    /// What the parameter is.
    const KIND: ParameterKind;

    /// The parameter from its word.
    fn from_word(word: u64) -> Self;
}

/// What a kernel's parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A buffer the kernel reads, of such elements.
    Global(Element),
    /// A buffer the kernel may write, of such elements.
    GlobalMut(Element),
    /// A plain value.
    Plain(Element),
}

/// What a kernel's pointer leads to.
#[diagnostic::on_unimplemented(
    message = "no buffer holds elements of type `{Self}`",
    note = "let the kernel take a pointer to scalars, and `cast` it"
)]
pub trait Pointee {
    /// The elements of the buffer.
    const ELEMENT: Element;
}

impl<T: ElementType> Pointee for T {
    const ELEMENT: Element = <T as ElementType>::ELEMENT;
}

impl<T: Pointee> Parameter for Global<T> {
    const KIND: ParameterKind = ParameterKind::Global(T::ELEMENT);
    fn from_word(word: u64) -> Self {
        Self(word, core::marker::PhantomData)
    }
}

impl<T: Pointee> Parameter for GlobalMut<T> {
    const KIND: ParameterKind = ParameterKind::GlobalMut(T::ELEMENT);
    fn from_word(word: u64) -> Self {
        Self(word, core::marker::PhantomData)
    }
}

macro_rules! plain_parameters { ($($ty:ty: $element:ident, $from:expr;)*) => { $(
    impl Parameter for $ty {
        const KIND: ParameterKind = ParameterKind::Plain(Element::$element);
        fn from_word(word: u64) -> Self {
            $from(word)
        }
    }
)* } }
plain_parameters! {
    u32: U32, |word| word as u32;
    i32: I32, |word| word as i32;
    u64: U64, |word| word;
    usize: U64, |word| word as usize;
    f32: F32, |word| f32::from_bits(word as u32);
}
