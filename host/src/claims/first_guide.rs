//! The guide's protocol for compute capability 1.0 to 2.x.

use super::evidence::{Evidence, lines, sectors};
use super::{Claim, claim, counted};
use gpu::suite::{Counts, Operation, Value};

const SEED: &str = "001_694816b6e708a5ea.txt";

fn offset(evidence: &dyn Evidence, offset: u64) -> Counts {
    evidence.counts("offset_read", &[("offset", Value::Count(offset))], "src", Operation::Load)
}

pub(super) fn claims() -> Vec<Claim> {
    vec![
        claim(
            "001-one-transaction",
            SEED,
            "Sequential words from an aligned address are one transaction.",
            |evidence| counted(1.0, lines(offset(evidence, 0)), "lines a request"),
        ),
        claim(
            "001-misaligned-two",
            SEED,
            "Sequential words that straddle two segments are two transactions (2.x).",
            |evidence| counted(2.0, lines(offset(evidence, 1)), "lines a request"),
        ),
        claim(
            "001-misaligned-serial",
            SEED,
            "Words off the aligned segment are read one transaction a thread (1.0 and 1.1).",
            |evidence| {
                counted(32.0, sectors(offset(evidence, 1)), "sectors a request on today's GPUs")
                    .because("since compute capability 1.2 a request costs the units it touches, not one a thread")
            },
        ),
        claim(
            "001-inactive-lanes",
            SEED,
            "Threads need not all take part for an access to stay coalesced.",
            |evidence| {
                let counts =
                    evidence.counts("cache_path_cached", &[("lanes", Value::Count(16))], "src", Operation::Load);
                counted(1.0, lines(counts), "lines a request with 16 lanes")
            },
        ),
        claim(
            "001-smaller-transactions",
            SEED,
            "Half of a 128-byte segment is fetched as 64 bytes (1.2 and 1.3).",
            |evidence| {
                let counts =
                    evidence.counts("cache_path_cached", &[("lanes", Value::Count(16))], "src", Operation::Load);
                counted(64.0, 32.0 * sectors(counts), "bytes a request")
            },
        ),
        claim(
            "001-any-order",
            SEED,
            "Any order of words within a segment is one transaction (from 1.2 on).",
            |evidence| {
                counted(1.0, lines(evidence.counts("pattern_permuted", &[], "src", Operation::Load)), "lines a request")
            },
        ),
        claim(
            "001-kth-thread",
            SEED,
            "Words out of the threads' order are read one by one (1.0 and 1.1).",
            |evidence| {
                let counts = evidence.counts("pattern_permuted", &[], "src", Operation::Load);
                counted(32.0, sectors(counts), "sectors a request on today's GPUs")
            },
        ),
        claim("001-whole-warp", SEED, "From compute capability 2.x on a whole warp is one request.", |evidence| {
            let counts = offset(evidence, 0);
            counted(32.0, counts.lanes as f64 / counts.requests as f64, "lanes a request")
        }),
    ]
}
