//! The article on coalescing rules, particles and the transpose, of an A100 with 80 GB.

use super::evidence::{Evidence, lines, over, sectors, used, wavefronts};
use super::{Claim, Verdict, arithmetic, at_least, claim, counted, number, ratio, rounded};
use gpu::suite::{Counts, Operation, Value};

const SEED: &str = "000_1152bf3462082b6e.txt";

/// GB/s, the peak that the article's shares refer to.
const PEAK: f64 = 2039.0;

fn strided(evidence: &dyn Evidence, stride: u64) -> Counts {
    evidence.counts("strided_read", &[("stride", Value::Count(stride))], "src", Operation::Load)
}

fn transpose(evidence: &dyn Evidence, kernel: &str, buffer: &str, operation: Operation) -> Counts {
    evidence.counts(kernel, &[], buffer, operation)
}

pub(super) fn claims() -> Vec<Claim> {
    let mut claims = Vec::new();
    for stride in [1, 2, 4, 8, 16, 32] {
        claims.push(claim(
            format!("000-stride-{stride}-lines"),
            SEED,
            format!("A warp's load at stride {stride} takes {stride} transactions of 128 bytes (A100)."),
            move |evidence| counted(stride as f64, lines(strided(evidence, stride)), "lines a request"),
        ));
    }
    for (stride, share) in [(1, 100.0), (2, 50.0), (4, 25.0), (8, 12.5), (16, 6.25), (32, 3.1)] {
        claims.push(claim(
            format!("000-stride-{stride}-used"),
            SEED,
            format!("At stride {stride}, {share} % of the bytes transferred are used (A100)."),
            move |evidence| {
                rounded(share, used(strided(evidence, stride)), 0.05, "% of the bytes")
                    .because("a line is fetched by the 32-byte sector, so no stride falls below one word of eight")
            },
        ));
    }
    for (stride, slower) in [(2, 1.9), (4, 3.8), (8, 7.5), (16, 14.4), (32, 30.2)] {
        claims.push(claim(
            format!("000-stride-{stride}-slower"),
            SEED,
            format!("The strided copy is {slower} times slower at stride {stride} than at stride 1 (A100)."),
            move |evidence| {
                let at = |stride| evidence.gbps("strided_copy", &[("stride", Value::Count(stride))]);
                let counts = strided(evidence, stride);
                let bytes = (counts.sectors as f64 / counts.requests as f64 + 4.0) / 8.0;
                ratio(slower, over(at(1), at(stride)), 0.25, "strided_copy, L2 flushed")
                    .beside(format!("{} times the sectors, loads and stores", number(bytes)))
            },
        ));
    }
    claims.extend([
        claim("000-offset-two-lines", SEED, "A load that starts 16 bytes into a line takes 2 transactions.", |evidence| {
            let counts = evidence.counts("offset_read", &[("offset", Value::Count(4))], "src", Operation::Load);
            counted(2.0, lines(counts), "lines a request")
        }),
        claim("000-offset-still-cheap", SEED, "An offset costs far less than a stride: under 1.25 times the time.", |evidence| {
            let at = |offset| evidence.gbps("offset_read", &[("offset", Value::Count(offset))]);
            let mut judgement = ratio(1.0, over(at(0), at(4)), 0.25, "offset_read at 0 over at 4");
            if judgement.verdict == Verdict::Within {
                judgement.verdict = Verdict::Confirmed;
            }
            judgement
        }),
        claim("000-ideal-four-sectors", SEED, "The ideal is 4 sectors a request.", |evidence| {
            counted(4.0, sectors(strided(evidence, 1)), "sectors a request at 4 bytes a lane")
        }),
        claim("000-above-four-uncoalesced", SEED, "More than 4 sectors a request mean uncoalesced access.", |evidence| {
            let counts = evidence.counts("copy_vec4", &[], "src", Operation::Load);
            counted(4.0, sectors(counts), "sectors a request, all ideal, at 16 bytes a lane")
                .because("the ideal grows with the width; compare with the ideal, not with 4")
        }),
        claim("000-amplification-32", SEED, "At stride 32 the memory moves 32 times the bytes that are used.", |evidence| {
            let counts = strided(evidence, 32);
            counted(32.0, 32.0 * counts.sectors as f64 / (4.0 * counts.lanes as f64), "times the bytes")
                .because("sectors of 32 bytes bound it at 8 for words of 4")
        }),
        claim("000-vec4-four-lines", SEED, "A warp's load of 16 bytes a lane spans 4 lines.", |evidence| {
            counted(4.0, lines(evidence.counts("copy_vec4", &[], "src", Operation::Load)), "lines a request")
        }),
        claim("000-vec4-quarter-instructions", SEED, "16 bytes a lane need a quarter of the load instructions.", |evidence| {
            let of = |kernel| evidence.counts(kernel, &[], "src", Operation::Load).requests as f64;
            counted(4.0, of("copy_coalesced") / of("copy_vec4"), "requests at 4 bytes for one at 16")
        }),
        claim("000-vec4-faster", SEED, "Wider loads can raise the throughput of a memory-bound kernel.", |evidence| {
            let of = |kernel| evidence.gbps(kernel, &[]);
            at_least(1.0, over(of("copy_vec4"), of("copy_coalesced")), "copy_vec4 over copy_coalesced")
        }),
        claim("000-half-warp-cached", SEED, "With the L1, 16 lanes side by side load a whole line, 128 bytes.", |evidence| {
            counted(128.0, 32.0 * sectors(half_warp(evidence, "cache_path_cached")), "bytes a request")
                .because("the L1 fetches only the sectors that are missing")
        }),
        claim("000-half-warp-uncached", SEED, "Past the L1, 16 lanes side by side load 64 bytes.", |evidence| {
            counted(64.0, 32.0 * sectors(half_warp(evidence, "cache_path_cg")), "bytes a request")
        }),
        claim("000-l1-off-saves", SEED, "Loads past the L1 save bandwidth where half a warp is active.", |evidence| {
            let at = |kernel| evidence.gbps(kernel, &[("lanes", Value::Count(16))]);
            let mut judgement = ratio(2.0, over(at("cache_path_cg"), at("cache_path_cached")), 0.2, "half warps, cg over cached");
            if judgement.verdict == Verdict::Corrected {
                judgement.detail += ": both fetch 2 sectors";
            }
            judgement
        }),
        claim("000-stride-2-lines-or-sectors", SEED, "At stride 2, lines and sectors move the same 256 bytes.", |evidence| {
            let counts = strided(evidence, 2);
            counted(128.0 * lines(counts), 32.0 * sectors(counts), "bytes a request by sectors")
        }),
        claim("000-naive-store-32", SEED, "The naive transpose's store takes up to 32 transactions a warp.", |evidence| {
            counted(32.0, lines(transpose(evidence, "transpose_naive", "dst", Operation::Store)), "lines a request")
        }),
        claim("000-naive-load-coalesced", SEED, "The naive transpose's load is coalesced.", |evidence| {
            counted(4.0, sectors(transpose(evidence, "transpose_naive", "src", Operation::Load)), "sectors a request")
        }),
        claim("000-tile-conflicts", SEED, "A tile 32 words wide puts a whole column into one bank.", |evidence| {
            let counts = transpose(evidence, "transpose_tiled", "tile", Operation::Load);
            counted(32.0, wavefronts(counts), "wavefronts a request")
        }),
        claim("000-padding-removes-conflicts", SEED, "One word of padding removes every bank conflict.", |evidence| {
            let counts = transpose(evidence, "transpose_padded", "tile", Operation::Load);
            counted(1.0, wavefronts(counts), "wavefronts a request")
        }),
        claim("000-padding-no-traffic", SEED, "The padding adds no global traffic.", |evidence| {
            let of = |kernel| transpose(evidence, kernel, "src", Operation::Load).sectors as f64;
            let (tiled, padded) = (of("transpose_tiled"), of("transpose_padded"));
            counted(1.0, padded / tiled, "times the sectors")
        }),
        claim("000-tiled-7.6", SEED, "The tiled transpose is 7.6 times as fast as the naive one (A100).", |evidence| {
            let of = |kernel| evidence.gbps(kernel, &[]);
            ratio(7.6, over(of("transpose_tiled"), of("transpose_naive")), 0.25, "transpose_tiled over transpose_naive")
        }),
        claim("000-padded-8.8", SEED, "The padded transpose is 8.8 times as fast as the naive one (A100).", |evidence| {
            let of = |kernel| evidence.gbps(kernel, &[]);
            ratio(8.8, over(of("transpose_padded"), of("transpose_naive")), 0.25, "transpose_padded over transpose_naive")
        }),
        claim("000-copy-93.7", SEED, "1910 GB/s, the copy's, are 93.7 % of the A100's peak.", |_| {
            arithmetic(93.7, 100.0 * 1910.0 / PEAK, 0.06, |share| format!("{share} % by its own figures"))
        }),
        claim("000-15-times", SEED, "80 GB/s become 1200 by the layout: 15 times.", |_| {
            arithmetic(15.0, 1780.0 / 235.0, 0.5, |times| {
                format!("{times} times by the article's own table, which has 235 and 1780 GB/s for the same two kernels")
            })
        }),
        claim("000-naive-grid", SEED, "The naive transpose of 4096x4096 moves every element, at 195 GB/s (A100).", |_| {
            // Blocks of 32 x 8 threads, an element each, on a grid made for tiles of 32 x 32.
            let (blocks, threads, elements) = (128.0 * 128.0, 32.0 * 8.0, 4096.0 * 4096.0);
            arithmetic(1.0, blocks * threads / elements, 0.0, |share| {
                format!("{share} of the elements are written: its launch covers 8 of every 32 rows, so 195 GB/s count four times what moved")
            })
        }),
        claim("000-4mi-in-l2", SEED, "The benchmark of 4 Mi elements measures the memory's bandwidth (A100).", |_| {
            // Input and output at stride 1, against 40 MB of L2.
            let (footprint, l2) = (2.0 * 4.0 * f64::from(1 << 22), 40e6);
            arithmetic(1.0, f64::from(u8::from(footprint > l2)), 0.0, |_| {
                "input and output, 33.6 MB, fit the A100's 40 MB of L2, and the loop runs it hot 50 times".to_owned()
            })
        }),
        claim("000-hot-and-cold", SEED, "Run hot, 4 Mi elements are as fast as from memory: hot over cold is 1.", |evidence| {
            let values = [("elements", Value::Count(1 << 22)), ("stride", Value::Count(1))];
            let found = over(evidence.hot_gbps("strided_copy", &values), evidence.gbps("strided_copy", &values));
            ratio(1.0, found, 0.1, "strided_copy of 4 Mi elements, hot over cold").because("the L2 holds part of it")
        }),
        claim("000-strided-copy-index", SEED, "The strided copy's index formula has warps read at the stride.", |evidence| {
            let at = |kernel: &str| evidence.counts(kernel, &[("stride", Value::Count(4))], "src", Operation::Load);
            let (formula, plain) = (sectors(at("strided_copy")), sectors(at("strided_read")));
            let mut judgement = counted(plain, formula, "sectors a request, as with the index i * stride");
            if judgement.verdict == Verdict::Corrected {
                judgement.detail = format!("{} sectors a request instead of {}", number(formula), number(plain));
            }
            judgement
        }),
    ]);
    for (kernel, name, at_1, at_2) in [
        ("dtype_i8", "int8", 1.0, 1.0),
        ("dtype_f16", "half", 1.0, 1.0),
        ("dtype_f32", "float", 1.0, 2.0),
        ("dtype_f64", "double", 2.0, 4.0),
        ("dtype_f32x4", "float4", 4.0, 8.0),
    ] {
        for (stride, claimed) in [(1, at_1), (2, at_2)] {
            claims.push(claim(
                format!("000-{name}-stride-{stride}"),
                SEED,
                format!("A warp's load of {name} at stride {stride} takes {claimed} transactions of 128 bytes."),
                move |evidence| {
                    let values = [("stride", Value::Count(stride))];
                    counted(claimed, lines(evidence.counts(kernel, &values, "src", Operation::Load)), "lines a request")
                },
            ));
        }
    }
    claims.extend([
        claim("000-random-32", SEED, "A random load takes up to 32 transactions.", |evidence| {
            let found = lines(evidence.counts("pattern_random", &[], "src", Operation::Load));
            let mut judgement = rounded(32.0, found, 0.5, "lines a request on average");
            if judgement.verdict == Verdict::Confirmed && found < 32.0 {
                (judgement.verdict, judgement.detail) =
                    (Verdict::Within, "now and then two lanes share a line".to_owned());
            }
            judgement
        }),
        claim(
            "000-aos-8",
            SEED,
            "A particle of 8 floats as an array of structures costs 8 transactions a field.",
            |evidence| {
                counted(
                    8.0,
                    lines(evidence.counts("particles_aos", &[], "particles", Operation::Load)),
                    "lines a request",
                )
            },
        ),
        claim(
            "000-aos-sectors",
            SEED,
            "So the array of structures moves 8 times the bytes of the separate arrays.",
            |evidence| {
                let aos = sectors(evidence.counts("particles_aos", &[], "particles", Operation::Load));
                let soa = sectors(evidence.counts("particles_soa", &[], "x", Operation::Load));
                counted(8.0, aos / soa, "times the sectors a request")
            },
        ),
        claim("000-soa-1", SEED, "As a structure of arrays a field costs 1 transaction.", |evidence| {
            counted(1.0, lines(evidence.counts("particles_soa", &[], "x", Operation::Load)), "lines a request")
        }),
        claim("000-aosoa", SEED, "Groups of 32 particles cost 1 to 2 transactions a field.", |evidence| {
            counted(
                1.0,
                lines(evidence.counts("particles_aosoa", &[], "particles", Operation::Load)),
                "lines a request",
            )
        }),
        claim("000-soa-7.6", SEED, "The structure of arrays is 7.6 times as fast (A100, its own table).", |evidence| {
            let of = |kernel| evidence.gbps(kernel, &[]);
            ratio(
                1780.0 / 235.0,
                over(of("particles_soa"), of("particles_aos")),
                0.25,
                "particles_soa over particles_aos",
            )
            .because("the fields of a particle share sectors, which the L1 keeps for the next field")
        }),
        claim("000-aosoa-slower", SEED, "The hybrid layout reaches 78 % of the separate arrays (A100).", |evidence| {
            let of = |kernel| evidence.gbps(kernel, &[]);
            ratio(
                1390.0 / 1780.0,
                over(of("particles_aosoa"), of("particles_soa")),
                0.15,
                "particles_aosoa over particles_soa",
            )
        }),
        claim("000-gather-output", SEED, "A gather's stores are coalesced whatever the indices.", |evidence| {
            counted(4.0, sectors(indexed(evidence, "gather_indexed", "dst", Operation::Store)), "sectors a request")
        }),
        claim(
            "000-scatter-random",
            SEED,
            "A scatter by random indices takes up to 32 transactions a warp.",
            |evidence| {
                let found = sectors(indexed(evidence, "scatter_indexed", "dst", Operation::Store));
                rounded(32.0, found, 0.5, "sectors a request on average")
            },
        ),
        claim(
            "000-gather-over-scatter",
            SEED,
            "Prefer a gather to a scatter: with random indices it is faster.",
            |evidence| {
                let of = |kernel| evidence.gbps(kernel, &[("indices", Value::Choice("random"))]);
                at_least(1.0, over(of("gather_indexed"), of("scatter_indexed")), "random gather over random scatter")
            },
        ),
        claim("000-sort-gather", SEED, "Sorting the indices makes a gather faster.", |evidence| {
            let of = |order| evidence.gbps("gather_indexed", &[("indices", Value::Choice(order))]);
            at_least(1.0, over(of("sorted"), of("random")), "gather by sorted over random indices")
        }),
        claim("000-sort-scatter", SEED, "Sorting by destination makes a scatter dramatically faster.", |evidence| {
            let of = |order| evidence.gbps("scatter_indexed", &[("indices", Value::Choice(order))]);
            at_least(2.0, over(of("sorted"), of("random")), "scatter by sorted over random indices")
        }),
    ]);
    claims
}

fn indexed(evidence: &dyn Evidence, kernel: &str, buffer: &str, operation: Operation) -> Counts {
    evidence.counts(kernel, &[("indices", Value::Choice("random"))], buffer, operation)
}

fn half_warp(evidence: &dyn Evidence, kernel: &str) -> Counts {
    evidence.counts(kernel, &[("lanes", Value::Count(16))], "src", Operation::Load)
}
