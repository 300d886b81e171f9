//! The article on coalescing and bank conflicts, of an H100 SXM.

use super::evidence::{Evidence, lines, over, sectors, wavefronts};
use super::{Claim, arithmetic, at_least, claim, counted, figure, number, ratio};
use gpu::suite::{Counts, Operation, Value};

const SEED: &str = "003_e637866d8e713887.txt";

/// GB/s, the H100's peak.
const PEAK: f64 = 3350.0;

/// Rows of its printed output: kernel, side of the matrix, milliseconds, GB/s.
const OUTPUT: [(&str, u32, f64, f64); 8] = [
    ("copy", 4096, 0.214, 588.4),
    ("strided copy", 4096, 1.823, 68.9),
    ("naive transpose", 4096, 1.641, 76.6),
    ("shared transpose", 4096, 0.281, 447.9),
    ("copy", 8192, 0.843, 598.1),
    ("strided copy", 8192, 7.104, 71.1),
    ("naive transpose", 8192, 6.531, 77.3),
    ("shared transpose", 8192, 1.092, 461.6),
];

fn transpose(evidence: &dyn Evidence, kernel: &str, buffer: &str, operation: Operation) -> Counts {
    evidence.counts(kernel, &[], buffer, operation)
}

pub(super) fn claims() -> Vec<Claim> {
    let mut claims: Vec<Claim> = OUTPUT
        .into_iter()
        .map(|(kernel, side, ms, gbps)| {
            let name = kernel.replace(' ', "-");
            let text = format!("The {kernel} of {side}x{side} takes {ms} ms, which is {gbps} GB/s (H100).");
            claim(format!("003-ms-{name}-{side}"), SEED, text, move |_| {
                let bytes = 8.0 * f64::from(side) * f64::from(side);
                arithmetic(gbps, bytes / ms / 1e6, 0.005 * gbps, |truth| {
                    format!("{truth} GB/s by its own milliseconds")
                })
            })
        })
        .collect();
    for words in 1..=33u64 {
        let ways = 1u64 << words.trailing_zeros().min(5);
        claims.push(claim(
            format!("003-gcd-{words}"),
            SEED,
            format!("A stride of {words} words conflicts gcd({words}, 32) = {ways} ways."),
            move |evidence| {
                let counts = evidence.counts(
                    "bank_load",
                    &[("words", Value::Count(words))],
                    "dynamic shared memory",
                    Operation::Load,
                );
                counted(ways as f64, wavefronts(counts), "wavefronts a request")
            },
        ));
    }
    claims.push(claim(
        "003-stride-2-sixteen",
        SEED,
        "At a stride of 2 words 16 threads share each bank.",
        |evidence| {
            let counts =
                evidence.counts("bank_load", &[("words", Value::Count(2))], "dynamic shared memory", Operation::Load);
            counted(16.0, wavefronts(counts), "threads a bank").because("32 threads on 16 banks are 2 a bank")
        },
    ));
    claims.push(claim(
        "003-broadcast",
        SEED,
        "One address for all threads is a broadcast, without conflict.",
        |evidence| {
            let counts = evidence.counts("bank_broadcast", &[], "dynamic shared memory", Operation::Load);
            counted(1.0, wavefronts(counts), "wavefronts a request")
        },
    ));
    claims.push(claim("003-shared-32-cycles", SEED, "Shared memory has a latency of about 32 cycles.", |evidence| {
        figure(32.0, "cycles", evidence.cycles("latency_shared"), 0.25, "a hop of latency_shared")
    }));
    claims.push(claim(
        "003-constant-uniform",
        SEED,
        "Constant memory suits a value that all threads read: one pass for the warp.",
        |evidence| {
            let counts = evidence.counts("constant_uniform", &[], "table", Operation::Load);
            counted(1.0, wavefronts(counts), "passes a request")
        },
    ));
    claims.extend([
        claim("003-copy-13-percent", SEED, "A coalesced copy reaches 450 GB/s, 13 % of peak (H100).", |evidence| {
            let found = evidence.share_of_peak("transpose_copy");
            let stated = arithmetic(13.0, 100.0 * 450.0 / PEAK, 0.5, |share| format!("{share} % by its own figures"));
            match found {
                None => stated,
                Some(_) => ratio(0.13, found, 0.5, "share of peak of the same tiled copy"),
            }
        }),
        claim("003-8-times", SEED, "Copy and naive transpose differ 8 times (H100).", |evidence| {
            let of = |kernel| evidence.gbps(kernel, &[]);
            ratio(8.0, over(of("transpose_copy"), of("transpose_naive")), 0.3, "transpose_copy over transpose_naive")
        }),
        claim("003-naive-over-reads", SEED, "The naive transpose reads 32 times too much.", |evidence| {
            let counts = transpose(evidence, "transpose_naive", "src", Operation::Load);
            counted(32.0, counts.sectors as f64 / counts.sectors_ideal as f64, "times the ideal sectors loaded")
                .because("it is the store that is strided")
        }),
        claim("003-naive-writes-coalesced", SEED, "The naive transpose's writes are coalesced.", |evidence| {
            counted(4.0, sectors(transpose(evidence, "transpose_naive", "dst", Operation::Store)), "sectors a request")
        }),
        claim("003-naive-store-32", SEED, "The naive transpose's write is 32 separate transactions.", |evidence| {
            counted(32.0, sectors(transpose(evidence, "transpose_naive", "dst", Operation::Store)), "sectors a request")
        }),
        claim("003-swapped-roles", SEED, "With the roles swapped it is the read that is strided.", |evidence| {
            let counts = transpose(evidence, "transpose_naive_strided_load", "src", Operation::Load);
            counted(32.0, sectors(counts), "sectors a request")
        }),
        claim("003-either-way-slow", SEED, "Strided read or strided write: either way it is as slow.", |evidence| {
            let of = |kernel| evidence.gbps(kernel, &[]);
            let found = over(of("transpose_naive_strided_load"), of("transpose_naive"));
            ratio(1.0, found, 0.25, "strided load over strided store")
        }),
        claim("003-sectors-per-request-1", SEED, "One sector a request means perfect coalescing.", |evidence| {
            let counts = evidence.counts("copy_coalesced", &[], "src", Operation::Load);
            counted(1.0, sectors(counts), "sectors a request").because("a full warp of floats needs 4")
        }),
        claim(
            "003-shared-both-coalesced",
            SEED,
            "Through shared memory read and write are both coalesced.",
            |evidence| {
                let load = sectors(transpose(evidence, "transpose_padded", "src", Operation::Load));
                let store = sectors(transpose(evidence, "transpose_padded", "dst", Operation::Store));
                counted(8.0, load + store, "sectors for a load and a store")
            },
        ),
        claim("003-column-32-way", SEED, "A column of a 32-word-wide array is a 32-way conflict.", |evidence| {
            counted(
                32.0,
                wavefronts(transpose(evidence, "transpose_tiled", "tile", Operation::Load)),
                "wavefronts a request",
            )
        }),
        claim("003-row-no-conflict", SEED, "A row of it has no conflict.", |evidence| {
            counted(
                1.0,
                wavefronts(transpose(evidence, "transpose_tiled", "tile", Operation::Store)),
                "wavefronts a request",
            )
        }),
        claim("003-33-conflict-free", SEED, "A pitch of 33 words has no conflict.", |evidence| {
            counted(
                1.0,
                wavefronts(transpose(evidence, "transpose_padded", "tile", Operation::Load)),
                "wavefronts a request",
            )
        }),
        claim("003-padding-3.1", SEED, "The padding costs 3.1 % more shared memory.", |_| {
            arithmetic(3.1, 100.0 * (33.0 * 32.0 / (32.0 * 32.0) - 1.0), 0.05, |share| format!("{share} %"))
        }),
        claim("003-nearly-copy", SEED, "The shared transpose nearly matches the copy.", |evidence| {
            let of = |kernel| evidence.gbps(kernel, &[]);
            let found = over(of("transpose_padded"), of("transpose_copy"));
            ratio(447.9 / 588.4, found, 0.25, "transpose_padded over transpose_copy")
        }),
        claim("003-strided-copy-any-shape", SEED, "Its strided copy is right for any rows and columns.", |_| {
            // in[x * cols + y + j] with x < cols and y + j < rows.
            let (rows, columns): (f64, f64) = (65.0, 97.0);
            let largest = (columns - 1.0) * columns + rows - 1.0;
            arithmetic(0.0, f64::from(u8::from(largest >= rows * columns)), 0.0, |_| {
                let (largest, elements) = (number(largest), number(rows * columns));
                format!("of a 65x97 matrix it reads element {largest} of {elements}: it is right for square ones alone")
            })
        }),
        claim(
            "003-naive-grid",
            SEED,
            "The naive transpose of 4096x4096 moves every element, at 76.6 GB/s (H100).",
            |_| {
                let written = 128.0 * 128.0 * 32.0 * 8.0 / (4096.0 * 4096.0);
                arithmetic(1.0, written, 0.0, |share| {
                    format!(
                        "{share} of the elements are written: the grid is made for 32 rows a block, the block has 8"
                    )
                })
            },
        ),
        claim("003-double-two-lines", SEED, "A warp of doubles loads 256 bytes, 2 lines.", |evidence| {
            counted(2.0, lines(evidence.counts("dtype_f64", &[], "src", Operation::Load)), "lines a request")
        }),
        claim("003-half-half-line", SEED, "A warp of halves loads 64 bytes, half a line.", |evidence| {
            counted(64.0, 32.0 * sectors(evidence.counts("dtype_f16", &[], "src", Operation::Load)), "bytes a request")
        }),
        claim(
            "003-embedding-vectorized",
            SEED,
            "Wider loads amortize the scatter of an embedding look-up.",
            |evidence| {
                let of = |kernel| evidence.gbps(kernel, &[("lookups", Value::Choice("random"))]);
                let found = over(of("embedding_warp_a_row_vec4"), of("embedding_warp_a_row"));
                at_least(1.0, found, "embedding by 16 bytes over 4, random rows")
            },
        ),
        claim("003-embedding-inherently", SEED, "An embedding look-up is inherently uncoalesced.", |evidence| {
            let counts = evidence.counts("embedding_warp_a_row", &[], "table", Operation::Load);
            counted(32.0, sectors(counts), "sectors a request where a warp takes a row")
                .because("within a row neighbours are neighbours; only a thread a row scatters")
        }),
        claim(
            "003-column-major",
            SEED,
            "Reading a row-major matrix by columns costs 32 transactions a warp.",
            |evidence| {
                counted(
                    32.0,
                    lines(evidence.counts("matrix_column_copy", &[], "src", Operation::Load)),
                    "lines a request",
                )
            },
        ),
        claim("003-attention-column", SEED, "Loading K in column order is uncoalesced.", |evidence| {
            counted(32.0, lines(evidence.counts("attention_naive", &[], "k", Operation::Load)), "lines a request")
        }),
        claim("003-attention-tile", SEED, "Through a tile K is loaded in rows, coalesced.", |evidence| {
            counted(4.0, sectors(evidence.counts("attention_padded", &[], "k", Operation::Load)), "sectors a request")
        }),
        claim(
            "003-stride-32-twenty-times",
            SEED,
            "Loads at stride 32 are 20 to 30 times slower than at stride 1.",
            |evidence| {
                let at = |stride| evidence.gbps("strided_read", &[("stride", Value::Count(stride))]);
                ratio(25.0, over(at(1), at(32)), 0.2, "strided_read at 1 over at 32")
            },
        ),
    ]);
    claims
}
