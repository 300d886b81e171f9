//! Random kernels against a plain model of what they ask for and of what orders it: the same counts, and the same verdict, on
//! any number of threads.
//!
//! A kernel is a tree of statements that [`interpreted`] runs. The model runs the same tree thread by thread, without a notion
//! of time: lanes that make an access at the same place of the tree, in the same iterations of its loops, make a request; and
//! of two accesses one comes first if a chain of barriers leads from it to the other.

mod choices;
mod model;
mod program;

use busload::sim::Kind;
use busload_tests::{launch, memory, on_threads, simulate};
use choices::Choices;
use gpu::suite::{Buffer, Plan, noise};
use model::expected;
use program::{WORDS, interpreted};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn check(choices: &[u16], threads: usize) -> Result<(), TestCaseError> {
    let program = Choices(choices.iter()).program();
    let expected = expected(&program);
    let dst = match program.zeroed {
        true => Buffer::zeroed("dst", WORDS.into(), |_| 0u32),
        false => Buffer::output("dst", WORDS.into(), |_| 0u32),
    };
    let plan = Plan::new(launch([program.blocks, 1, 1], [program.threads, 1, 1]))
        .buffer(Buffer::input("src", WORDS.into(), |i| noise(i).to_bits()).expect("a small buffer"))
        .buffer(dst.expect("a small buffer"))
        .scalar("program", (&raw const program).expose_provenance() as u64);
    let plan = Arc::new(plan);
    let mut runs = [1, threads].into_iter().map(|threads| simulate(interpreted::KERNEL, &plan, &on_threads(threads)));
    let (first, second) = (runs.next().expect("one run"), runs.next().expect("another"));
    prop_assert_eq!(&first.findings, &second.findings);
    let found: BTreeSet<Kind> = first.findings.iter().map(|finding| finding.kind).collect();
    prop_assert_eq!(
        found.is_empty(),
        expected.findings.is_empty(),
        "{:?}, expected {:?}\n{:#?}",
        first.findings,
        expected.findings,
        program.statements
    );
    // After a race no other block runs, in which what nobody wrote until then might have been written.
    let mut possible = expected.findings.clone();
    possible.extend(found.contains(&Kind::Race).then_some(Kind::Uninitialized));
    prop_assert!(
        found.is_subset(&possible),
        "{:?}, expected {:?}\n{:#?}",
        first.findings,
        expected.findings,
        program.statements
    );
    if found.is_empty() {
        prop_assert_eq!(&first.regions, &expected.counts, "{:#?}", program.statements);
        prop_assert_eq!(&second.regions, &expected.counts, "{:#?}", program.statements);
        prop_assert_eq!(memory(&plan, &first), memory(&plan, &second));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_kernels_count_and_are_judged_as_the_plain_model_says(
        choices in proptest::collection::vec(any::<u16>(), 0..150),
        threads in 1..=8usize,
    ) {
        check(&choices, threads)?;
    }
}

/// What the programs are: the test above would say little if all were wrong, or none.
#[test]
fn random_kernels_are_right_and_wrong_in_every_way() {
    let mut ways = BTreeMap::<String, u32>::new();
    for seed in 0..2000u64 {
        let choices: Vec<u16> = (0..100).map(|i| (noise(seed << 8 | i).to_bits() >> 7) as u16).collect();
        let expected = expected(&Choices(choices.iter()).program());
        *ways.entry(format!("{:?}", expected.findings)).or_default() += 1;
    }
    let least = ways.values().min().copied().unwrap_or(0);
    assert!(ways.len() == 4 && least > 50, "{ways:?}");
}
