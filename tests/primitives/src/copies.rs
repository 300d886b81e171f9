//! Asynchronous copies: from global to shared memory past the registers, while the kernel goes on.

use gpu::device::prelude::*;

const BLOCK: u32 = 128;
const TILES: u32 = 4;

/// A tile is copied by its block, waited for, and comes out in reverse: 4 bytes a lane.
#[kernel]
pub unsafe fn copies_4(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; BLOCK as usize]);
    let (i, thread) = (thread::index_x(), thread::thread_idx_x());
    tile.copy_async(thread, src, i);
    copy_async::commit_group();
    // This thread's element is there, and behind the barrier everybody's.
    copy_async::wait_group::<0>();
    sync_threads();
    dst.store(i, tile.load(BLOCK - 1 - thread));
}

/// Like [`copies_4`], 8 bytes a lane, and nothing is put into groups.
#[kernel]
pub unsafe fn copies_8(src: Global<F32x2>, dst: GlobalMut<F32x2>) {
    let tile = shared!([F32x2; BLOCK as usize]);
    let (i, thread) = (thread::index_x(), thread::thread_idx_x());
    tile.copy_async(thread, src, i);
    copy_async::wait_all();
    sync_threads();
    dst.store(i, tile.load(BLOCK - 1 - thread));
}

/// Like [`copies_4`], 16 bytes a lane, which go past the L1.
#[kernel]
pub unsafe fn copies_16(src: Global<F32x4>, dst: GlobalMut<F32x4>) {
    let tile = shared!([F32x4; BLOCK as usize]);
    let (i, thread) = (thread::index_x(), thread::thread_idx_x());
    tile.copy_async(thread, src, i);
    copy_async::commit_group();
    copy_async::wait_group::<0>();
    sync_threads();
    dst.store(i, tile.load(BLOCK - 1 - thread));
}

/// Four tiles one after another through two buffers: while a block works on one, the next is on its way.
#[kernel]
pub unsafe fn copies_pipelined(src: Global<u32>, dst: GlobalMut<u32>) {
    let tiles = shared!([u32; 2 * BLOCK as usize]);
    let thread = thread::thread_idx_x();
    let first = thread::block_idx_x() as usize * (TILES * BLOCK) as usize + thread as usize;
    tiles.copy_async(thread, src, first);
    copy_async::commit_group();
    for tile in steps(0..TILES, 1) {
        let i = first + (tile * BLOCK) as usize;
        if tile + 1 < TILES {
            tiles.copy_async((tile + 1) % 2 * BLOCK + thread, src, i + BLOCK as usize);
        }
        copy_async::commit_group();
        // All groups but the one just made, which holds the next tile.
        copy_async::wait_group::<1>();
        sync_threads();
        let [own, other] = [thread, BLOCK - 1 - thread].map(|element| tile % 2 * BLOCK + element);
        dst.store(i, tiles.load(own).wrapping_sub(tiles.load(other)));
        // The next copy goes where others may still read.
        sync_threads();
    }
}

/// From memory that the kernel wrote itself, a tile that no other thread touches.
#[kernel]
pub unsafe fn copies_own(dst: GlobalMut<u32>, out: GlobalMut<u32>) {
    let tile = shared!([u32; BLOCK as usize]);
    let (i, thread) = (thread::index_x(), thread::thread_idx_x());
    dst.store(i, i as u32);
    tile.copy_async(thread, dst, i);
    copy_async::wait_all();
    out.store(i, tile.load(thread) + 1);
}

/// The 32 lanes of a warp copy one word to 32 places. No wavefront gives a word to two lanes, as one of a load does.
#[kernel]
pub unsafe fn copies_one_word(src: Global<u32>, dst: GlobalMut<u32>) {
    let tile = shared!([u32; BLOCK as usize]);
    let (i, thread) = (thread::index_x(), thread::thread_idx_x());
    tile.copy_async(thread, src, i / 32);
    copy_async::wait_all();
    sync_threads();
    dst.store(i, tile.load(BLOCK - 1 - thread));
}

/// Three lanes of four copy, and the fourth stores a zero.
#[kernel]
pub unsafe fn copies_some(src: Global<u32>, dst: GlobalMut<u32>) {
    let tile = shared!([u32; BLOCK as usize]);
    let (i, thread) = (thread::index_x(), thread::thread_idx_x());
    if thread % 4 != 3 {
        tile.copy_async(thread, src, i);
    } else {
        tile.store(thread, 0);
    }
    copy_async::wait_all();
    sync_threads();
    dst.store(i, tile.load(BLOCK - 1 - thread));
}

host_only! {
    use gpu::suite::*;

    const BLOCKS: Axis = Axis {
        on_gpu: &[Value::Count(3), Value::Count(1 << 12)],
        ..Axis::counted("blocks", "Blocks of 128 threads", 1, 1 << 20, &[Value::Count(3)])
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "copies",
        summary: "from global to shared memory, while the kernel goes on",
        axes: &[BLOCKS],
        kernels: &[
            Entry { kernel: copies_4::KERNEL, plan: |case| reversed(case, 1) },
            Entry { kernel: copies_8::KERNEL, plan: |case| reversed(case, 2) },
            Entry { kernel: copies_16::KERNEL, plan: |case| reversed(case, 4) },
            Entry { kernel: copies_pipelined::KERNEL, plan: pipelined },
            Entry { kernel: copies_own::KERNEL, plan: own },
            Entry { kernel: copies_one_word::KERNEL, plan: one_word },
            Entry { kernel: copies_some::KERNEL, plan: some },
        ],
    };

    /// So many words a thread, whose place in the block is turned round.
    fn reversed(case: &Case, words: u64) -> Result<Plan, PlanError> {
        let (block, width) = (u64::from(BLOCK), 4 * words);
        let threads = case.count("blocks") * block;
        let (n, warps) = (threads * words, threads / 32);
        let global = Progression::linear(0, 32, width).global() * warps;
        let shared = Progression::linear(0, 32, width).shared() * warps;
        // Of wide elements, a turned round quarter of a warp takes the same banks.
        Ok(Plan::new(Launch::linear(threads, BLOCK)?)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::output("dst", n, move |i| {
                let thread = i / words;
                noise((thread / block * block + block - 1 - thread % block) * words + i % words)
            })?)
            .bytes(product("the number of bytes", &[2, 4, n])?)
            .loads("src", width as u32, global)
            .stores("tile", width as u32, shared)
            .loads("tile", width as u32, shared)
            .stores("dst", width as u32, global))
    }

    fn pipelined(case: &Case) -> Result<Plan, PlanError> {
        let block = u64::from(BLOCK);
        let n = case.count("blocks") * block * u64::from(TILES);
        let value = |i| noise_bits(i) as u32;
        let global = Progression::linear(0, 32, 4).global() * (n / 32);
        let shared = Progression::linear(0, 32, 4).shared() * (n / 32);
        Ok(Plan::new(Launch::linear(n / u64::from(TILES), BLOCK)?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::output("dst", n, move |i| {
                value(i).wrapping_sub(value(i / block * block + block - 1 - i % block))
            })?)
            .bytes(product("the number of bytes", &[8, n])?)
            .loads("src", 4, global)
            .stores("tiles", 4, shared)
            .loads("tiles", 4, shared * 2)
            .stores("dst", 4, global))
    }

    fn own(case: &Case) -> Result<Plan, PlanError> {
        let n = case.count("blocks") * u64::from(BLOCK);
        let global = Progression::linear(0, 32, 4).global() * (n / 32);
        let shared = Progression::linear(0, 32, 4).shared() * (n / 32);
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::output("dst", n, |i| i as u32)?)
            .buffer(Buffer::output("out", n, |i| i as u32 + 1)?)
            .bytes(product("the number of bytes", &[12, n])?)
            .loads("dst", 4, global)
            .stores("dst", 4, global)
            .stores("tile", 4, shared)
            .loads("tile", 4, shared)
            .stores("out", 4, global))
    }

    fn one_word(case: &Case) -> Result<Plan, PlanError> {
        let n = case.count("blocks") * u64::from(BLOCK);
        let warps = n / 32;
        let word = |i: u64| noise_bits(i) as u32;
        let global = Progression::linear(0, 32, 4).global() * warps;
        let shared = Progression::linear(0, 32, 4).shared() * warps;
        // What a block's thread reads is of the warp at the block's other end.
        let warps_of_block = u64::from(BLOCK / 32);
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", warps, word)?)
            .buffer(Buffer::output("dst", n, move |i| {
                let warp = i / 32;
                word(warp / warps_of_block * warps_of_block + warps_of_block - 1 - warp % warps_of_block)
            })?)
            .bytes(product("the number of bytes", &[4, n])? + 4 * warps)
            .loads("src", 4, Progression { first: 0, step: 0, lanes: 32, width: 4 }.global() * warps)
            .stores("tile", 4, Counts { wavefronts: 32 * warps, ..shared })
            .loads("tile", 4, shared)
            .stores("dst", 4, global))
    }

    fn some(case: &Case) -> Result<Plan, PlanError> {
        let block = u64::from(BLOCK);
        let n = case.count("blocks") * block;
        let word = |i: u64| noise_bits(i) as u32;
        let global = Progression::linear(0, 32, 4).global() * (n / 32);
        let shared = Progression::linear(0, 32, 4).shared() * (n / 32);
        let copied = Counts { lanes: global.lanes / 4 * 3, sectors_ideal: global.sectors_ideal / 4 * 3, ..global };
        let stored = Counts { lanes: 0, ..shared };
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, word)?)
            .buffer(Buffer::output("dst", n, move |i| {
                let thread = block - 1 - i % block;
                if thread % 4 == 3 { 0 } else { word(i / block * block + thread) }
            })?)
            .bytes(product("the number of bytes", &[8, n])?)
            .loads("src", 4, copied)
            // All lanes store, in two requests.
            .stores("tile", 4, shared + stored)
            .loads("tile", 4, shared)
            .stores("dst", 4, global))
    }
}
