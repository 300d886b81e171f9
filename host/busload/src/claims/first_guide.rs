//! The guide's protocol for compute capability 1.0 to 2.x.

use super::evidence::Evidence;
use super::{Claim, claim, counted};
use crate::sim::{Arch, Transactions};
use gpu::suite::{Counts, Operation, Value};

const SEED: &str = "001_694816b6e708a5ea.txt";

fn offset(evidence: &dyn Evidence, offset: u64) -> Counts {
    evidence.counts("offset_read", &[("offset", Value::Count(offset))], "src", Operation::Load)
}

/// Transactions and bytes a request of `kernel`'s loads of `src`.
fn a_request(evidence: &dyn Evidence, arch: Arch, kernel: &str, values: &[(&str, Value)]) -> (f64, f64) {
    let Transactions { count, bytes } = evidence.transactions(arch, kernel, values, "src", Operation::Load);
    let requests = evidence.counts(kernel, values, "src", Operation::Load).requests as f64;
    (count as f64 / requests, bytes as f64 / requests)
}

/// The same of words in order that begin so many words behind a line.
fn words_from(evidence: &dyn Evidence, arch: Arch, offset: u64) -> (f64, f64) {
    a_request(evidence, arch, "offset_read", &[("offset", Value::Count(offset))])
}

/// A warp was two half warps before 2.x.
const HALF_WARPS: f64 = 2.0;

pub(super) fn claims() -> Vec<Claim> {
    vec![
        claim(
            "001-one-transaction",
            SEED,
            "Words in order from an aligned address are one transaction a half warp (1.x).",
            |evidence| counted(1.0, words_from(evidence, Arch::Cc10, 0).0 / HALF_WARPS, "transactions a half warp"),
        ),
        claim(
            "001-misaligned-two",
            SEED,
            "Words in order that straddle two lines are two transactions (2.x).",
            |evidence| counted(2.0, words_from(evidence, Arch::Cc20, 1).0, "transactions a warp"),
        ),
        claim(
            "001-misaligned-serial",
            SEED,
            "Words off the aligned segment are read one transaction a thread (1.0 and 1.1).",
            |evidence| counted(32.0, words_from(evidence, Arch::Cc10, 1).0, "transactions a warp"),
        ),
        claim("001-inactive-lanes", SEED, "Threads need not all take part (1.0 and 1.1).", |evidence| {
            let found = a_request(evidence, Arch::Cc10, "cache_path_cached", &[("lanes", Value::Count(16))]);
            counted(1.0, found.0, "transactions with 16 threads of 32")
        }),
        claim(
            "001-smaller-transactions",
            SEED,
            "Half of a 128-byte segment is fetched as 64 bytes (1.2 and 1.3).",
            |evidence| {
                let found = a_request(evidence, Arch::Cc12, "cache_path_cached", &[("lanes", Value::Count(16))]);
                counted(64.0, found.1, "bytes")
            },
        ),
        claim(
            "001-quarter-transactions",
            SEED,
            "A quarter of a 128-byte segment is fetched as 32 bytes (1.2 and 1.3).",
            |evidence| {
                let found = a_request(evidence, Arch::Cc12, "cache_path_cached", &[("lanes", Value::Count(8))]);
                counted(32.0, found.1, "bytes")
            },
        ),
        claim(
            "001-any-order",
            SEED,
            "Any order of words within a segment is one transaction a half warp (from 1.2 on).",
            |evidence| {
                let found = a_request(evidence, Arch::Cc12, "pattern_permuted", &[]);
                counted(1.0, found.0 / HALF_WARPS, "transactions a half warp")
            },
        ),
        claim(
            "001-kth-thread",
            SEED,
            "Words out of the threads' order are read one by one (1.0 and 1.1).",
            |evidence| counted(32.0, a_request(evidence, Arch::Cc10, "pattern_permuted", &[]).0, "transactions a warp"),
        ),
        claim(
            "001-line-sized",
            SEED,
            "A warp takes as few lines of the L1 as hold its words (2.x): 32 at a stride of a line.",
            |evidence| {
                let found = a_request(evidence, Arch::Cc20, "strided_read", &[("stride", Value::Count(32))]);
                counted(32.0, found.0, "transactions a warp")
            },
        ),
        claim("001-whole-warp", SEED, "From compute capability 2.x on a whole warp is one request.", |evidence| {
            let counts = offset(evidence, 0);
            counted(32.0, counts.lanes as f64 / counts.requests as f64, "lanes a request")
        }),
    ]
}
