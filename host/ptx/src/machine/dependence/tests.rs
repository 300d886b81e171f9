use super::super::tests::{module, program};
use crate::machine::simulate;
use engine::trace::{Observer, Trace, What};
use engine::{Flow, Memory, Options};
use gpu::suite::{Buffer, Launch, Plan};
use std::sync::{Arc, Mutex};

#[derive(Debug, Default)]
struct Kept(Mutex<Vec<(What, Flow)>>);

impl Observer for Kept {
    fn block(&self, trace: Trace) {
        let requests = trace.requests.iter().map(|request| (request.what, request.flow));
        self.0.lock().expect("no panic under this lock").extend(requests);
    }

    fn lines_a_warp(&self) -> u32 {
        u32::MAX
    }
}

/// What a warp asks for, with what comes before each.
fn flows(body: &str) -> Vec<(What, Flow)> {
    let program = program(&module(".shared .align 8 .b64 tile[64];", body));
    let buffers = [Buffer::input("in", 1024, |_| 0u64), Buffer::zeroed("out", 1024, |_| 0u64)];
    let shape = Launch { grid: [1; 3], block: [32, 1, 1], shared_bytes: 0 };
    let plan = buffers.into_iter().fold(Plan::new(shape), |plan, buffer| plan.buffer(buffer.expect("a small buffer")));
    let kept = Arc::new(Kept::default());
    let options = Options { sanitize: false, observer: Some(kept.clone()), ..Options::default() };
    let words = [Memory::base(0), Memory::base(1)];
    let outcome = simulate(&program, Arc::new(plan), &words, &[false, true], &options, &|_, _| ());
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.findings.is_empty(), "{}", outcome.findings[0]);
    drop(outcome);
    let kept = kept.0.lock().expect("no panic under this lock");
    kept.clone()
}

/// The loads that each load needs, as bits: the lowest is the one before it.
fn needs_of_loads(body: &str) -> Vec<u64> {
    let is_load = |what: &What| matches!(what, What::Load { .. } | What::SharedLoad);
    flows(body).into_iter().filter(|(what, _)| is_load(what)).map(|(_, flow)| flow.needs).collect()
}

#[test]
fn loads_of_a_block_are_in_flight_together_and_a_store_needs_what_it_stores() {
    let all = flows(
        "ld.global.u64 %d1, [%in]; ld.global.u64 %d2, [%in+256]; add.u64 %d3, %d1, 1; ld.global.u64 %d4, [%in+512];
         st.global.u64 [%out], %d2; ret;",
    );
    let needs: Vec<_> = all.iter().map(|(what, flow)| (*what, flow.needs)).collect();
    let load = What::Load { past_l1: false };
    // The end waits for what was used: the first load.
    assert_eq!(needs, [(load, 0), (load, 0), (load, 0), (What::Store, 0b010), (What::Instructions, 0b100)]);
}

#[test]
fn an_address_that_is_loaded_is_waited_for_and_arithmetic_on_it_takes_its_time() {
    let chain = "ld.global.u64 %d1, [%in]; and.b64 %d1, %d1, 7; xor.b64 %d1, %d1, 8; add.u64 %d1, %d1, %in;
                 ld.global.u64 %d2, [%d1]; st.global.u64 [%out], %d2; ret;";
    let flow = flows(chain)[1].1;
    assert_eq!(flow.needs, 1);
    assert!((12..=20).contains(&flow.after), "three instructions of 64 bits, one after another: {flow:?}");
}

#[test]
fn a_loop_waits_for_what_a_round_used_and_one_that_counts_by_a_constant_every_fourth_round() {
    let looped = |step: &str, store: &str| {
        needs_of_loads(&format!(
            "mov.u32 %r1, 0; mov.u32 %r3, 1; mov.u64 %d5, 0;
             again: ld.global.u64 %d1, [%in]; add.u64 %d5, %d5, %d1; {store} add.u32 %r1, %r1, {step};
             setp.lt.u32 %p1, %r1, 8; @%p1 bra again; st.global.u64 [%out], %d5; ret;"
        ))
    };
    assert_eq!(looped("%r3", ""), [0, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(looped("1", ""), [0, 0, 0, 0, 0b1111, 0, 0, 0]);
    assert_eq!(looped("1", "st.global.u64 [%out], %d5;"), [0; 8], "a store has waited already");
    let store = "st.shared.u64 [tile], %d5;";
    assert_eq!(looped("1", store), [0, 0, 0, 0, 0b1111, 0, 0, 0], "no global address is a shared one");
}

#[test]
fn a_short_branch_is_a_predicate_and_a_long_one_ends_a_block() {
    let branch = |more: &str| {
        needs_of_loads(&format!(
            "setp.gt.u32 %p1, %i, 40; ld.global.u64 %d1, [%in]; add.u64 %d2, %d1, 1; @%p1 bra over; add.u64 %d3, %d3, 1; {more}
             over: ld.global.u64 %d4, [%in+256]; st.global.u64 [%out], %d4; ret;"
        ))
    };
    let written = "mov.u64 %d3, 0;";
    assert_eq!(branch(written), [0, 0]);
    assert_eq!(branch(&format!("{written} {}", "add.u64 %d3, %d3, %d3; ".repeat(20))), [0, 1]);
}

#[test]
fn copies_are_waited_for_by_group() {
    let copies = "mov.u32 %r1, tile; shl.b32 %r2, %i, 3; add.u32 %r1, %r1, %r2;
        cp.async.ca.shared.global [%r1], [%in], 8; cp.async.commit_group;
        cp.async.ca.shared.global [%r1+256], [%in+256], 8; cp.async.commit_group;
        cp.async.wait_group 1; ld.shared.u64 %d1, [%r1]; cp.async.wait_group 0; ld.shared.u64 %d2, [%r1+256];
        st.global.u64 [%out], %d2; ret;";
    // Of the copies, the older one; then the younger one, before the load that comes between.
    assert_eq!(needs_of_loads(copies)[2..], [0b10, 0b10]);
}

#[test]
fn long_arithmetic_is_told_by_itself() {
    let body = format!("mov.u64 %d1, 0; {} st.global.u64 [%out], %d1; ret;", "add.u64 %d1, %d1, %d1; ".repeat(200));
    let all = flows(&body);
    let issued: u32 = all.iter().map(|(_, flow)| u32::from(flow.issue)).sum();
    assert!((400..440).contains(&issued), "two instructions of 32 bits each: {issued}");
    assert!(all.iter().filter(|(what, _)| *what == What::Instructions).count() >= 2);
}
