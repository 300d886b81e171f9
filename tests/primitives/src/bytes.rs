//! Bytes of two words, put together to a third.

use gpu::device::prelude::*;

/// The same two words by one selector a thread, and by one that the compiler knows.
#[kernel]
pub unsafe fn bytes_perm(words: Global<U32x2>, selectors: Global<u32>, dst: GlobalMut<U32x2>) {
    let i = thread::index_x();
    let U32x2 { x: a, y: b } = words.load(i);
    dst.store(i, U32x2 { x: byte_perm(a, b, selectors.load(i)), y: byte_perm(a, b, 0x8F52) });
}

host_only! {
    use gpu::suite::*;

    const BLOCK: u32 = 128;

    const BLOCKS: Axis = Axis {
        on_gpu: &[Value::Count(4), Value::Count(1 << 15)],
        ..Axis::counted("blocks", "Blocks of 128 threads", 1, 1 << 20, &[Value::Count(4)])
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "bytes",
        summary: "bytes of two words, put together to a third",
        axes: &[BLOCKS],
        kernels: &[Entry { kernel: bytes_perm::KERNEL, plan }],
    };

    /// A thread's words, or its selector, of all of whose digits there are all.
    fn word(i: u64) -> u32 {
        (noise_bits(i) >> 16) as u32
    }

    fn selector(i: u64) -> u32 {
        (noise_bits(i + (1 << 40)) >> 24) as u32
    }

    /// Of 64 bits the bytes that the digits name, the lowest digit for the lowest byte; from 8 on their upmost bits alone.
    fn chosen(i: u64, selector: u32) -> u32 {
        let pair = u64::from(word(2 * i + 1)) << 32 | u64::from(word(2 * i));
        (0..4).rev().fold(0, |bytes, place| {
            let digit = selector >> (4 * place) & 15;
            let byte = (pair >> (8 * (digit % 8))) as u32 & 255;
            bytes << 8 | if digit < 8 { byte } else { 255 * (byte >> 7) }
        })
    }

    fn plan(case: &Case) -> Result<Plan, PlanError> {
        let n = case.count("blocks") * u64::from(BLOCK);
        let counts = |width| Progression::linear(0, 32, width).global() * (n / 32);
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("words", 2 * n, word)?)
            .buffer(Buffer::input("selectors", n, selector)?)
            .buffer(Buffer::output("dst", 2 * n, |i| chosen(i / 2, if i % 2 == 0 { selector(i / 2) } else { 0x8F52 }))?)
            .bytes(product("the number of bytes", &[20, n])?)
            .loads("words", 8, counts(8))
            .loads("selectors", 4, counts(4))
            .stores("dst", 8, counts(8)))
    }
}
