//! NCHW: images as planes of one channel each, or as pixels with their channels side by side (NHWC).
//!
//! ```text
//!  NCHW   r r r r … g g g g … b b b b …     neighbours of a plane lie together
//!  NHWC   r g b r g b r g b r g b …         a pixel's channels lie together
//! ```
//!
//! From the one to the other is a transpose of each image, channels by pixels. A case is two images of `shape` and `channels`.

use crate::device::prelude::*;

const TILE: u32 = 32;

/// NCHW to NHWC, an element a thread: lanes along a plane.
///
/// **Look for** 4 sectors a load, and stores that are `channels` words apart: 32 sectors from 8 channels on. **Cost** each
/// sector written holds one element of this warp's.
#[kernel]
pub unsafe fn nchw_to_nhwc_naive(src: Global<f32>, dst: GlobalMut<f32>, pixels: usize, channels: u32) {
    let pixel = thread::index_x();
    let channel = thread::block_idx_y() * thread::block_dim_y() + thread::thread_idx_y();
    if pixel < pixels && channel < channels {
        let image = thread::block_idx_z() as usize * channels as usize * pixels;
        // A warp loads one line of a plane and stores to 32 pixels.
        let value = src.load(image + channel as usize * pixels + pixel);
        dst.store(image + pixel * channels as usize + channel as usize, value);
    }
}

/// Like [`nchw_to_nhwc_naive`], through a tile of 32 channels by 32 pixels, padded to a pitch of 33 words.
///
/// **Look for** 4 sectors on both sides, from 32 channels on, and 1 wavefront. **Cost** with fewer channels most lanes have
/// nothing to store.
#[kernel]
pub unsafe fn nchw_to_nhwc_tiled(src: Global<f32>, dst: GlobalMut<f32>, pixels: usize, channels: u32) {
    let tile = shared!([f32; 33 * 32]);
    let (lane, row) = (thread::thread_idx_x(), thread::thread_idx_y());
    let (first_pixel, first_channel) = (thread::block_idx_x() as usize * 32, thread::block_idx_y() * TILE);
    let image = thread::block_idx_z() as usize * channels as usize * pixels;
    let (src, dst) = (src.starting_at(image), dst.starting_at(image));
    unroll!(for j in [0, 8, 16, 24] {
        let (pixel, channel) = (first_pixel + lane as usize, first_channel + row + j);
        if pixel < pixels && channel < channels {
            // A warp moves 32 pixels of a plane into one row of the tile.
            tile.store((row + j) * 33 + lane, src.load(channel as usize * pixels + pixel));
        }
    });

    // The columns read below were written by other warps.
    sync_threads();

    unroll!(for j in [0, 8, 16, 24] {
        let (pixel, channel) = (first_pixel + (row + j) as usize, first_channel + lane);
        if pixel < pixels && channel < channels {
            // A warp moves a column of the tile, 32 channels of a pixel.
            dst.store(pixel * channels as usize + channel as usize, tile.load(lane * 33 + row + j));
        }
    });
}

/// NHWC to NCHW, an element a thread: lanes along the channels of a pixel.
///
/// **Look for** stores that are a plane apart: 32 sectors in 32 lines. **Cost** as [`nchw_to_nhwc_naive`], in the other
/// direction.
#[kernel]
pub unsafe fn nchw_from_nhwc_naive(src: Global<f32>, dst: GlobalMut<f32>, pixels: usize, channels: u32) {
    let pixel = thread::block_idx_x() as usize * thread::block_dim_y() as usize + thread::thread_idx_y() as usize;
    let channel = thread::block_idx_y() * TILE + thread::thread_idx_x();
    if pixel < pixels && channel < channels {
        let image = thread::block_idx_z() as usize * channels as usize * pixels;
        // A warp loads one line of channels and stores to 32 planes.
        let value = src.load(image + pixel * channels as usize + channel as usize);
        dst.store(image + channel as usize * pixels + pixel, value);
    }
}

/// Like [`nchw_from_nhwc_naive`], through a tile of 32 pixels by 32 channels, padded to a pitch of 33 words.
///
/// **Look for** 4 sectors on both sides, and 1 wavefront. **Cost** the tile and a barrier.
#[kernel]
pub unsafe fn nchw_from_nhwc_tiled(src: Global<f32>, dst: GlobalMut<f32>, pixels: usize, channels: u32) {
    let tile = shared!([f32; 33 * 32]);
    let (lane, row) = (thread::thread_idx_x(), thread::thread_idx_y());
    let (first_pixel, first_channel) = (thread::block_idx_x() as usize * 32, thread::block_idx_y() * TILE);
    let image = thread::block_idx_z() as usize * channels as usize * pixels;
    let (src, dst) = (src.starting_at(image), dst.starting_at(image));
    unroll!(for j in [0, 8, 16, 24] {
        let (pixel, channel) = (first_pixel + (row + j) as usize, first_channel + lane);
        if pixel < pixels && channel < channels {
            // A warp moves 32 channels of a pixel into one row of the tile.
            tile.store((row + j) * 33 + lane, src.load(pixel * channels as usize + channel as usize));
        }
    });

    // The columns read below were written by other warps.
    sync_threads();

    unroll!(for j in [0, 8, 16, 24] {
        let (pixel, channel) = (first_pixel + lane as usize, first_channel + row + j);
        if pixel < pixels && channel < channels {
            // A warp moves a column of the tile, 32 pixels of a plane.
            dst.store(channel as usize * pixels + pixel, tile.load(lane * 33 + row + j));
        }
    });
}

/// The 3×3 neighbourhood of each pixel as a column of nine (im2col), with zeros around the plane; lanes along a row of it.
///
/// **Look for** loads of the halo: a warp's 32 pixels move left and right by one, off the line's boundary, 5 sectors, and the
/// lane at the edge loads nothing. Stores of 4. **Cost** each element is loaded nine times, eight of them from the L1, and
/// written nine times.
#[kernel]
pub unsafe fn nchw_im2col(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let x = thread::block_idx_x() * TILE + thread::thread_idx_x();
    let y = thread::block_idx_y() * thread::block_dim_y() + thread::thread_idx_y();
    let (plane, size) = (thread::block_idx_z() as usize, width as usize * height as usize);
    if x < width && y < height {
        unroll!(for tap in [0, 1, 2, 3, 4, 5, 6, 7, 8] {
            // The neighbour, one further down and to the right, so that no index is negative.
            let (right, down) = (x + tap % 3, y + tap / 3);
            let inside = 1 <= right && right <= width && 1 <= down && down <= height;
            // A warp loads its line, or the line moved by one; at the edge a lane less.
            let value = if inside { src.load(plane * size + at(down - 1, right - 1, width)) } else { 0.0 };
            // One line of one of the nine planes.
            dst.store((plane * 9 + tap as usize) * size + at(y, x, width), value);
        });
    }
}

family! {
    pub(crate) const SHAPE: Axis = Axis {
        on_gpu: &[Value::Shape(256, 256)],
        in_simulator: &[Value::Shape(96, 96)],
        ..Axis::SHAPE
    };

    pub(crate) const CHANNELS: Axis = Axis {
        name: "channels",
        help: "Channels of an image, 1 to 32767, for nchw",
        // Two images have as many planes as a grid has blocks along z.
        kind: AxisKind::Count { min: 1, max: 32_767 },
        on_gpu: &[Value::Count(128)],
        in_simulator: &[Value::Count(32)],
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "nchw",
        summary: "images from NCHW to NHWC and back, strided and through shared memory; im2col of a 3x3 window",
        axes: &[SHAPE, CHANNELS],
        kernels: &[
            Entry { kernel: nchw_to_nhwc_naive::KERNEL, plan: |case| to_nhwc(case, false) },
            Entry { kernel: nchw_to_nhwc_tiled::KERNEL, plan: |case| to_nhwc(case, true) },
            Entry { kernel: nchw_from_nhwc_naive::KERNEL, plan: |case| from_nhwc(case, false) },
            Entry { kernel: nchw_from_nhwc_tiled::KERNEL, plan: |case| from_nhwc(case, true) },
            Entry { kernel: nchw_im2col::KERNEL, plan: im2col },
        ],
    };

    pub(crate) const IMAGES: u64 = 2;

    /// Pixels and channels of an image.
    pub(crate) fn sizes(case: &Case) -> Result<[u64; 2], PlanError> {
        let (height, width) = case.shape();
        let (pixels, channels) = (u64::from(height) * u64::from(width), case.count("channels"));
        // No count below is larger than the elements of both images, nine times over and a sector each.
        product("the number of elements", &[32 * 9 * IMAGES, pixels, channels])?;
        Ok([pixels, channels])
    }

    /// Blocks of `pixels` by `channels`, 32 threads wide and 8 high, a layer of them for each image.
    fn launch(case: &Case, tile: [u64; 2]) -> Result<Launch, PlanError> {
        let [pixels, channels] = sizes(case)?;
        let mut launch = Launch::linear(pixels.div_ceil(tile[0]), 1)?;
        launch.grid[1] = channels.div_ceil(tile[1]) as u32;
        launch.grid[2] = IMAGES as u32;
        launch.block = [32, 8, 1];
        Ok(launch)
    }

    /// What the transposes have in common: both images in, and out of them the element that `source` names by its place in an
    /// image.
    pub(crate) fn plan(
        case: &Case,
        launch: Launch,
        source: impl Fn(u64) -> u64 + Send + Sync + 'static,
    ) -> Result<Plan, PlanError> {
        let [pixels, channels] = sizes(case)?;
        let (image, n) = (pixels * channels, IMAGES * pixels * channels);
        Ok(Plan::new(launch)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::output("dst", n, move |i| noise(i / image * image + source(i % image)))?)
            .scalar("pixels", pixels)
            .scalar("channels", channels as u32)
            .bytes(8 * n))
    }

    /// The columns of both images' matrices, `rows` by `columns`, one behind the other.
    fn down_both(rows: u64, columns: u64) -> Counts {
        let column = |image: u64, x: u64| {
            let step = 4 * columns;
            let first = 4 * (image * rows * columns + x);
            warps(rows, |warp, lanes| Progression { first: first + 32 * warp * step, step, lanes, width: 4 }.global())
        };
        (0..IMAGES).map(|image| periodic(columns, 32, |x| column(image, x))).sum()
    }

    /// A transpose of `rows` by `columns` in each image, loads along the rows, and stores along them too if a tile turns
    /// them over.
    pub(crate) fn transposed(plan: Plan, rows: u64, columns: u64, tiled: bool) -> Plan {
        let plan = plan.loads("src", 4, along_rows(IMAGES * rows, columns, 4));
        if !tiled {
            return plan.stores("dst", 4, down_both(columns, rows));
        }
        let row = warps(columns, |_, lanes| Progression::linear(0, lanes, 4).shared());
        let column = warps(rows, |_, lanes| Progression { first: 0, step: 4 * 33, lanes, width: 4 }.shared());
        plan.stores("tile", 4, row * rows * IMAGES)
            .loads("tile", 4, column * columns * IMAGES)
            .stores("dst", 4, along_rows(IMAGES * columns, rows, 4))
    }

    fn to_nhwc(case: &Case, tiled: bool) -> Result<Plan, PlanError> {
        let [pixels, channels] = sizes(case)?;
        let launch = launch(case, if tiled { [32, 32] } else { [32, 8] })?;
        let plan = plan(case, launch, move |i| i % channels * pixels + i / channels)?;
        Ok(transposed(plan, channels, pixels, tiled))
    }

    fn from_nhwc(case: &Case, tiled: bool) -> Result<Plan, PlanError> {
        let [pixels, channels] = sizes(case)?;
        let launch = launch(case, if tiled { [32, 32] } else { [8, 32] })?;
        let plan = plan(case, launch, move |i| i % pixels * channels + i / pixels)?;
        Ok(transposed(plan, pixels, channels, tiled))
    }

    /// The loads of a row for a row of pixels: the pixels themselves, their right neighbours, which the last one lacks, and
    /// their left ones, which lane 0 of the first warp lacks.
    fn neighbours(y: u64, width: u64) -> Counts {
        let lanes = |x, lanes| Progression::linear(4 * (y * width + x), lanes, 4).global();
        let right = width - 1;
        warps(width, |warp, n| lanes(32 * warp, n))
            + warps(right, |warp, n| lanes(32 * warp + 1, n))
            + lanes(0, right.min(31))
            + warps(right.saturating_sub(31), |warp, n| lanes(32 * warp + 31, n))
    }

    fn im2col(case: &Case) -> Result<Plan, PlanError> {
        let ((height, width), [pixels, channels]) = (case.shape(), sizes(case)?);
        let planes = IMAGES * channels;
        let mut launch = Launch::covering(width, height, [TILE, 8], [32, 8])?;
        launch.grid[2] = planes as u32;
        let (height, width) = (u64::from(height), u64::from(width));
        let element = move |i: u64| {
            let (plane, tap, y, x) = (i / pixels / 9, i / pixels % 9, i % pixels / width, i % width);
            let (down, right) = (y + tap / 3, x + tap % 3);
            let inside = (1..=height).contains(&down) && (1..=width).contains(&right);
            if inside { noise(plane * pixels + (down - 1) * width + right - 1) } else { 0.0 }
        };
        // Each row is loaded for itself, all of a plane's but the last for the one below, and all but the first for the
        // one above.
        let own = periodic(planes * height, 32, |y| neighbours(y, width));
        let others = |plane| {
            let first = plane * height;
            periodic(height - 1, 32, |y| neighbours(first + y, width) + neighbours(first + y + 1, width))
        };
        Ok(Plan::new(launch)
            .buffer(Buffer::input("src", planes * pixels, noise)?)
            .buffer(Buffer::output("dst", planes * 9 * pixels, element)?)
            .scalar("width", width as u32)
            .scalar("height", height as u32)
            .bytes(4 * 10 * planes * pixels)
            .loads("src", 4, own + periodic(planes, 32, others))
            .stores("dst", 4, along_rows(planes * 9 * height, width, 4)))
    }
}
