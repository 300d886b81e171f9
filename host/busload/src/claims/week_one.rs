//! The course's fourth day, of an A100.

use super::evidence::{Evidence, lines, over, sectors, used, wavefronts};
use super::{Claim, arithmetic, claim, counted, ratio, rounded};
use gpu::suite::{Counts, Operation, Value};

const SEED: &str = "004_8b6ad650f2b2be83.txt";

/// GB/s, the A100's peak.
const PEAK: f64 = 2039.0;

/// Its SMs, and the highest clock of them.
const SMS: f64 = 108.0;
const BOOST_GHZ: f64 = 1.41;

/// Its summary: version, GB/s, per cent of peak.
const SUMMARY: [(&str, f64, f64); 4] =
    [("naive", 380.0, 19.0), ("unpadded", 920.0, 45.0), ("padded", 1590.0, 78.0), ("geam", 1710.0, 84.0)];

fn strided(evidence: &dyn Evidence, stride: u64) -> Counts {
    evidence.counts("strided_read", &[("stride", Value::Count(stride))], "src", Operation::Load)
}

pub(super) fn claims() -> Vec<Claim> {
    let mut claims: Vec<Claim> = SUMMARY
        .into_iter()
        .map(|(version, gbps, share)| {
            let text = format!("{gbps} GB/s ({version} transpose) are {share} % of the A100's peak.");
            claim(format!("004-share-{version}"), SEED, text, move |_| {
                arithmetic(share, 100.0 * gbps / PEAK, 0.5, |truth| format!("{truth} % by its own figures"))
            })
        })
        .collect();
    claims.extend([
        claim(
            "004-latency-20",
            SEED,
            "A load from global memory takes about 400 cycles, one from shared memory about 20: 20 times (A100).",
            |evidence| {
                let found = over(evidence.cycles("latency_global"), evidence.cycles("latency_shared"));
                ratio(20.0, found, 0.25, "cycles of latency_global over latency_shared")
            },
        ),
        claim("004-conflict-n-cycles", SEED, "A conflict of N ways takes N cycles: 32 ways, 32 times.", |evidence| {
            let found = over(evidence.cycles("latency_shared_conflict"), evidence.cycles("latency_shared_throughput"));
            ratio(32.0, found, 0.25, "cycles of latency_shared_conflict over latency_shared_throughput")
        }),
        claim("004-shared-4-tb-an-sm", SEED, "Shared memory moves about 4 TB/s an SM (A100).", |evidence| {
            let request = evidence.counts("latency_shared_throughput", &[], "tile", Operation::Load);
            let bytes_a_wavefront = 4.0 * request.lanes as f64 / request.wavefronts as f64;
            arithmetic(4000.0, bytes_a_wavefront * BOOST_GHZ, 400.0, |gbps| {
                format!("{gbps} GB/s: {bytes_a_wavefront} bytes a wavefront, one a cycle at {BOOST_GHZ} GHz")
            })
            .beside(format!("{bytes_a_wavefront} bytes a wavefront"))
        }),
        claim("004-global-100-gb-an-sm", SEED, "Global memory moves about 100 GB/s an SM (A100).", |_| {
            arithmetic(100.0, PEAK / SMS, 10.0, |gbps| format!("{gbps} GB/s: its peak over {SMS} SMs"))
        }),
        claim("004-line-four-sectors", SEED, "A line is four sectors of 32 bytes.", |evidence| {
            let counts = strided(evidence, 1);
            counted(4.0, sectors(counts) / lines(counts), "sectors a line")
        }),
        claim(
            "004-stride-2-lines",
            SEED,
            "A stride of 2 takes 2 transactions and uses half of 256 bytes.",
            |evidence| counted(2.0, lines(strided(evidence, 2)), "lines a request"),
        ),
        claim("004-eta", SEED, "The share used is 128 / (32 T) for T sectors: 50 % at stride 2.", |evidence| {
            counted(50.0, used(strided(evidence, 2)), "% of the bytes")
        }),
        claim("004-worst-12.5", SEED, "The worst scatter moves 1024 bytes and uses 12.5 % of them.", |evidence| {
            counted(12.5, used(strided(evidence, 32)), "% of the bytes")
        }),
        claim(
            "004-sector-lines-consistent",
            SEED,
            "A scattered warp makes up to 32 transactions of 32 bytes.",
            |evidence| counted(32.0, sectors(strided(evidence, 8)), "sectors a request"),
        ),
        claim("004-column-conflict", SEED, "A column of a 32x32 array puts all 32 threads on one bank.", |evidence| {
            counted(
                32.0,
                wavefronts(evidence.counts("transpose_tiled", &[], "tile", Operation::Load)),
                "wavefronts a request",
            )
        }),
        claim("004-padding-zero-conflicts", SEED, "With a 33rd column no conflict is left.", |evidence| {
            counted(
                1.0,
                wavefronts(evidence.counts("transpose_padded", &[], "tile", Operation::Load)),
                "wavefronts a request",
            )
        }),
        claim("004-padding-4.2", SEED, "Padding makes the transpose 4.2 times as fast (A100).", |evidence| {
            let of = |kernel| evidence.gbps(kernel, &[]);
            ratio(
                4.2,
                over(of("transpose_padded"), of("transpose_tiled")),
                0.25,
                "transpose_padded over transpose_tiled",
            )
        }),
        claim("004-unpadded-380", SEED, "Without padding the transpose reaches 380 GB/s (A100).", |_| {
            arithmetic(380.0, 920.0, 0.0, |gbps| format!("{gbps} GB/s in its own summary of the same kernel"))
        }),
        claim(
            "004-naive-380",
            SEED,
            "The naive transpose is as slow as the unpadded tile: both 380 GB/s (A100).",
            |evidence| {
                let of = |kernel| evidence.gbps(kernel, &[]);
                ratio(
                    1.0,
                    over(of("transpose_tiled"), of("transpose_naive")),
                    0.25,
                    "transpose_tiled over transpose_naive",
                )
            },
        ),
        claim(
            "004-padded-over-naive",
            SEED,
            "The padded transpose is 4.2 times as fast as the naive one (A100).",
            |evidence| {
                let of = |kernel| evidence.gbps(kernel, &[]);
                ratio(
                    1590.0 / 380.0,
                    over(of("transpose_padded"), of("transpose_naive")),
                    0.25,
                    "transpose_padded over transpose_naive",
                )
            },
        ),
        claim(
            "004-aos-4",
            SEED,
            "Particles of 4 floats as an array of structures cost 4 transactions, 25 % used.",
            |evidence| {
                let counts = evidence.counts("particles_quad_aos", &[], "particles", Operation::Load);
                counted(25.0, used(counts), "% of the bytes")
            },
        ),
        claim("004-soa-perfect", SEED, "As a structure of arrays a field costs 1 transaction.", |evidence| {
            counted(1.0, lines(evidence.counts("particles_quad_soa", &[], "x", Operation::Load)), "lines a request")
        }),
        claim("004-layout-4.5", SEED, "The layout alone makes 4.5 times (A100).", |evidence| {
            let of = |kernel| evidence.gbps(kernel, &[]);
            let found = over(of("particles_quad_soa"), of("particles_quad_aos"));
            ratio(4.5, found, 0.25, "particles_quad_soa over particles_quad_aos")
                .because("all four fields of a particle lie in one sector, which is used whole")
        }),
        claim("004-random-1024", SEED, "A random load moves up to 1024 bytes.", |evidence| {
            let found = 32.0 * sectors(evidence.counts("pattern_random", &[], "src", Operation::Load));
            rounded(1024.0, found, 16.0, "bytes a request on average")
        }),
        claim("004-one-line-aim", SEED, "Exactly one line a request is what to aim for.", |evidence| {
            let counts = evidence.counts("copy_vec4", &[], "src", Operation::Load);
            counted(1.0, lines(counts), "lines a request in the fastest copy")
                .because("16 bytes a lane make four, all of them full")
        }),
        claim(
            "004-naive-strided-writes",
            SEED,
            "In the naive transpose the writes are strided and the reads coalesced.",
            |evidence| {
                let store = sectors(evidence.counts("transpose_naive", &[], "dst", Operation::Store));
                let load = sectors(evidence.counts("transpose_naive", &[], "src", Operation::Load));
                counted(8.0, store / load, "times the sectors on the writing side")
            },
        ),
    ]);
    claims
}
