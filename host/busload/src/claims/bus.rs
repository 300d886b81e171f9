//! The chapter of the bus, which gave busload its name; its figures are of an H100.

use super::evidence::{Evidence, lines, over, sectors, used};
use super::{Claim, arithmetic, claim, counted, ratio, rounded};
use gpu::suite::{Counts, Operation, Value};

const SEED: &str = "002_481adede6db67a1f.txt";

fn thousand(evidence: &dyn Evidence) -> Counts {
    let values = [("elements", Value::Count(1 << 14)), ("stride", Value::Count(1000))];
    evidence.counts("strided_read", &values, "src", Operation::Load)
}

fn linear(evidence: &dyn Evidence) -> Counts {
    evidence.counts("copy_coalesced", &[], "src", Operation::Load)
}

pub(super) fn claims() -> Vec<Claim> {
    vec![
        claim("002-one-bus", SEED, "32 neighbours take one trip of 128 bytes.", |evidence| {
            counted(1.0, lines(linear(evidence)), "lines a request")
        }),
        claim("002-all-used", SEED, "Of that trip every byte is used.", |evidence| {
            counted(100.0, used(linear(evidence)), "% of the bytes")
        }),
        claim("002-32-buses", SEED, "32 threads 1000 floats apart take 32 trips.", |evidence| {
            counted(32.0, lines(thousand(evidence)), "lines a request")
        }),
        claim("002-4096-bytes", SEED, "Those trips fetch 4096 bytes.", |evidence| {
            counted(4096.0, 32.0 * sectors(thousand(evidence)), "bytes a request")
                .because("each trip fetches one sector of its line")
        }),
        claim("002-3-percent", SEED, "About 3 % of what they fetch is used.", |evidence| {
            rounded(3.125, used(thousand(evidence)), 0.2, "% of the bytes").because("a sector is a quarter of a line")
        }),
        claim(
            "002-32-times-the-bytes",
            SEED,
            "The scattered load is charged 32 times the bytes of the other.",
            |evidence| counted(32.0, sectors(thousand(evidence)) / sectors(linear(evidence)), "times the bytes"),
        ),
        claim("002-four-sectors", SEED, "The floor of a request is 4 sectors a warp.", |evidence| {
            let counts = evidence.counts("cache_path_cached", &[("lanes", Value::Count(16))], "src", Operation::Load);
            counted(4.0, sectors(counts), "sectors a request with half the lanes")
                .because("the floor is what the active lanes need, down to 1 for a broadcast")
        }),
        claim("002-sectors-by-hopper", SEED, "A partial access wastes down to 32 bytes, not 128 (H100).", |evidence| {
            counted(32.0, 32.0 * sectors(thousand(evidence)) / 32.0, "bytes a lane")
        }),
        claim(
            "002-1000-times-4mi",
            SEED,
            "Thread t reads the float at t x 1000, for 4 Mi threads with int indices.",
            |_| {
                let largest = (f64::from(1 << 22) - 1.0) * 1000.0;
                arithmetic(1.0, (largest / 2_147_483_647.0).ceil(), 0.0, |_| {
                    "the index passes 2^31 - 1 at thread 2147484, and the negative index passes a guard that asks for less than n"
                        .to_owned()
                })
            },
        ),
        claim("002-6.4-times", SEED, "From 1.3 to 8.5 % of cuBLAS is about 6.4 times (H100).", |_| {
            arithmetic(6.4, 8.5 / 1.3, 0.2, |times| format!("{times} by its own shares"))
        }),
        claim("002-broadcast", SEED, "One address for all 32 threads is one fetch, shared by all.", |evidence| {
            counted(
                1.0,
                sectors(evidence.counts("pattern_broadcast", &[], "src", Operation::Load)),
                "sectors a request",
            )
        }),
        claim("002-naive-b-coalesced", SEED, "The naive product's load of B is one bus a warp.", |evidence| {
            counted(1.0, lines(evidence.counts("matmul_naive", &[], "b", Operation::Load)), "lines a request")
        }),
        claim("002-naive-a-broadcast", SEED, "Its load of A is a broadcast, one fetch.", |evidence| {
            counted(1.0, sectors(evidence.counts("matmul_naive", &[], "a", Operation::Load)), "sectors a request")
        }),
        claim(
            "002-remap-same",
            SEED,
            "The remapped product makes on purpose what the naive one has by luck.",
            |evidence| {
                let all = |kernel| {
                    let of = |buffer, operation| evidence.counts(kernel, &[], buffer, operation).sectors as f64;
                    of("a", Operation::Load) + of("b", Operation::Load) + of("c", Operation::Store)
                };
                counted(1.0, all("matmul_remapped") / all("matmul_naive"), "times the sectors of the naive one")
            },
        ),
        claim("002-remap-6.4", SEED, "The remap makes the product 6.4 times as fast (H100).", |evidence| {
            let of = |kernel| evidence.gbps(kernel, &[]);
            ratio(6.4, over(of("matmul_remapped"), of("matmul_naive")), 0.25, "matmul_remapped over matmul_naive")
                .because("CUDA's own numbering was coalesced already; it is the swapped axis that is slow")
        }),
        claim(
            "002-coalesced-6.4",
            SEED,
            "Against rows along the warp, columns along it are 6.4 times as fast (H100).",
            |evidence| {
                let of = |kernel| evidence.gbps(kernel, &[]);
                ratio(
                    6.4,
                    over(of("matmul_remapped"), of("matmul_uncoalesced")),
                    0.25,
                    "matmul_remapped over matmul_uncoalesced",
                )
            },
        ),
        claim(
            "002-warp-numbering",
            SEED,
            "A warp is 32 consecutive threadIdx.x: taken for y, every load inverts.",
            |evidence| {
                let of = |kernel| lines(evidence.counts(kernel, &[], "b", Operation::Load));
                counted(
                    1.0,
                    of("matmul_swapped"),
                    "lines a request of B, which is the broadcast once the axis is swapped",
                )
            },
        ),
        claim("002-1.3-percent", SEED, "The naive product reaches 1.3 % of cuBLAS (H100).", |evidence| {
            let of = |kernel| evidence.gbps(kernel, &[]);
            ratio(0.013, over(of("matmul_uncoalesced"), of("cublasSgemm")), 0.25, "matmul_uncoalesced over cublasSgemm")
        }),
        claim("002-8.5-percent", SEED, "The coalesced product reaches 8.5 % of cuBLAS (H100).", |evidence| {
            let of = |kernel| evidence.gbps(kernel, &[]);
            ratio(0.085, over(of("matmul_remapped"), of("cublasSgemm")), 0.25, "matmul_remapped over cublasSgemm")
        }),
        claim("002-line-is-a-warp", SEED, "A line holds exactly one warp's worth of floats.", |evidence| {
            let counts = linear(evidence);
            counted(32.0, counts.lanes as f64 / counts.lines as f64, "floats a line")
        }),
    ]
}
