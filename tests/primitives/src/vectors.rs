//! Vectors: scalars of every type side by side, in one access to global memory and one to shared memory each way. Each thread turns
//! one round.

use gpu::device::prelude::*;

const BLOCK: u32 = 64;

/// A kernel that turns vectors round, on the way through shared memory. Its accesses stand at the line of the macro's call.
macro_rules! reversed { ($name:ident: $vector:ident) => {
    /// Turns a vector round.
    #[kernel]
    pub unsafe fn $name(src: Global<$vector>, dst: GlobalMut<$vector>) {
        let tile = shared!([$vector; BLOCK as usize]);
        let (i, thread) = (thread::index_x(), thread::thread_idx_x());
        let mut scalars = src.load(i).to_array();
        scalars.reverse();
        tile.store(thread, $vector::from_array(scalars));
        dst.store(i, tile.load(thread));
    }
} }

reversed!(vectors_i8x2: I8x2);
reversed!(vectors_i8x4: I8x4);
reversed!(vectors_i8x8: I8x8);
reversed!(vectors_i8x16: I8x16);
reversed!(vectors_u8x2: U8x2);
reversed!(vectors_u8x4: U8x4);
reversed!(vectors_u8x8: U8x8);
reversed!(vectors_u8x16: U8x16);
reversed!(vectors_i16x2: I16x2);
reversed!(vectors_i16x4: I16x4);
reversed!(vectors_i16x8: I16x8);
reversed!(vectors_u16x2: U16x2);
reversed!(vectors_u16x4: U16x4);
reversed!(vectors_u16x8: U16x8);
reversed!(vectors_f16x2: F16x2);
reversed!(vectors_f16x4: F16x4);
reversed!(vectors_f16x8: F16x8);
reversed!(vectors_bf16x2: Bf16x2);
reversed!(vectors_bf16x4: Bf16x4);
reversed!(vectors_bf16x8: Bf16x8);
reversed!(vectors_i32x2: I32x2);
reversed!(vectors_i32x4: I32x4);
reversed!(vectors_u32x2: U32x2);
reversed!(vectors_u32x4: U32x4);
reversed!(vectors_f32x2: F32x2);
reversed!(vectors_f32x4: F32x4);
reversed!(vectors_i64x2: I64x2);
reversed!(vectors_u64x2: U64x2);
reversed!(vectors_f64x2: F64x2);

/// No vector: `bf16` as it is, and twice as much.
#[kernel]
pub unsafe fn vectors_bf16(src: Global<bf16>, dst: GlobalMut<bf16>) {
    let i = thread::index_x();
    let value = src.load(i);
    // One more in the exponent.
    dst.store(i, bf16::from_bits(value.to_bits() + (1 << 7)));
}

host_only! {
    use gpu::suite::*;

    const BLOCKS: Axis = Axis {
        on_gpu: &[Value::Count(3), Value::Count(1 << 14)],
        ..Axis::counted("blocks", "Blocks of 64 vectors", 1, 1 << 20, &[Value::Count(3)])
    };

    /// An entry for a kernel of vectors of so many scalars.
    macro_rules! entry {
        ($name:ident, $count:literal, $value:expr) => {
            Entry { kernel: $name::KERNEL, plan: |case| plan(case, $count, $value) }
        };
    }

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "vectors",
        summary: "scalars of every type side by side, in one access",
        axes: &[BLOCKS],
        kernels: &[
            entry!(vectors_i8x2, 2, noise_i8),
            entry!(vectors_i8x4, 4, noise_i8),
            entry!(vectors_i8x8, 8, noise_i8),
            entry!(vectors_i8x16, 16, noise_i8),
            entry!(vectors_u8x2, 2, |i| noise_bits(i) as u8),
            entry!(vectors_u8x4, 4, |i| noise_bits(i) as u8),
            entry!(vectors_u8x8, 8, |i| noise_bits(i) as u8),
            entry!(vectors_u8x16, 16, |i| noise_bits(i) as u8),
            entry!(vectors_i16x2, 2, |i| noise_bits(i) as i16),
            entry!(vectors_i16x4, 4, |i| noise_bits(i) as i16),
            entry!(vectors_i16x8, 8, |i| noise_bits(i) as i16),
            entry!(vectors_u16x2, 2, |i| noise_bits(i) as u16),
            entry!(vectors_u16x4, 4, |i| noise_bits(i) as u16),
            entry!(vectors_u16x8, 8, |i| noise_bits(i) as u16),
            entry!(vectors_f16x2, 2, noise_f16),
            entry!(vectors_f16x4, 4, noise_f16),
            entry!(vectors_f16x8, 8, noise_f16),
            entry!(vectors_bf16x2, 2, noise_bf16),
            entry!(vectors_bf16x4, 4, noise_bf16),
            entry!(vectors_bf16x8, 8, noise_bf16),
            entry!(vectors_i32x2, 2, |i| noise_bits(i) as i32),
            entry!(vectors_i32x4, 4, |i| noise_bits(i) as i32),
            entry!(vectors_u32x2, 2, |i| noise_bits(i) as u32),
            entry!(vectors_u32x4, 4, |i| noise_bits(i) as u32),
            entry!(vectors_f32x2, 2, noise),
            entry!(vectors_f32x4, 4, noise),
            entry!(vectors_i64x2, 2, |i| noise_bits(i) as i64),
            entry!(vectors_u64x2, 2, noise_bits),
            entry!(vectors_f64x2, 2, noise_f64),
            Entry { kernel: vectors_bf16::KERNEL, plan: doubled },
        ],
    };

    fn plan<T: ElementType + 'static>(case: &Case, count: u64, value: fn(u64) -> T) -> Result<Plan, PlanError> {
        let threads = case.count("blocks") * u64::from(BLOCK);
        let (n, width) = (threads * count, count * T::ELEMENT.size());
        let counts = warps(threads, |_, lanes| Progression::linear(0, lanes, width).global());
        let through_tile = warps(threads, |_, lanes| Progression::linear(0, lanes, width).shared());
        Ok(Plan::new(Launch::linear(threads, BLOCK)?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::output("dst", n, move |i| value(i / count * count + count - 1 - i % count))?)
            .bytes(product("the number of bytes", &[2, threads, width])?)
            .loads("src", width as u32, counts)
            .stores("tile", width as u32, through_tile)
            .loads("tile", width as u32, through_tile)
            .stores("dst", width as u32, counts))
    }

    fn doubled(case: &Case) -> Result<Plan, PlanError> {
        let n = case.count("blocks") * u64::from(BLOCK);
        let value = |i| bf16::from_f32(noise(i) + 1.0);
        let counts = warps(n, |warp, lanes| Progression::linear(64 * warp, lanes, 2).global());
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::output("dst", n, move |i| bf16::from_f32(2.0 * value(i).to_f32()))?)
            .bytes(product("the number of bytes", &[4, n])?)
            .loads("src", 2, counts)
            .stores("dst", 2, counts))
    }
}
