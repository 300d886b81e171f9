//! What a block hands on to the next one by a flag, as PTX can say it.

use super::{Kind, module, run};

/// Block 0 stores a word and sets a flag behind it; block 1 waits for the flag and loads the word.
fn handed_on(tell: &str, hear: &str) -> Vec<String> {
    let body = format!(
        "
mov.u32 %r1, %ctaid.x;
setp.eq.u32 %p1, %r1, 1;
mov.b64 %d2, 1;
@%p1 bra WAIT;
st.global.b64 [%out], 7;
{tell}
ret;
WAIT: {hear}
setp.ne.b64 %p2, %d1, 1;
@%p2 bra WAIT;
ld.global.b64 %d3, [%out];
st.global.b64 [%out+16], %d3;
ret;"
    );
    let outcome = run(&module("", &body), 2, 1, &[0; 4], 2);
    if outcome.findings.is_empty() {
        assert_eq!(outcome.bits(1, 2), Some(7), "{tell} {hear}");
    }
    assert!(outcome.findings.iter().all(|finding| finding.kind == Kind::Race), "{:?}", outcome.findings);
    outcome.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_release_and_an_acquire_order_what_lies_around_them() {
    let told = [
        "membar.gl; st.volatile.global.b64 [%out+8], 1;",
        "fence.sc.sys; st.relaxed.gpu.global.b64 [%out+8], 1;",
        "fence.acq_rel.gpu; atom.global.exch.b64 %d4, [%out+8], 1;",
        "st.release.gpu.global.b64 [%out+8], 1;",
        "red.release.gpu.global.add.u64 [%out+8], 1;",
        "atom.acq_rel.sys.global.or.b64 %d4, [%out+8], 1;",
    ];
    let heard = [
        "ld.volatile.global.b64 %d1, [%out+8]; membar.gl;",
        "ld.acquire.gpu.global.b64 %d1, [%out+8];",
        "ld.relaxed.sys.global.b64 %d1, [%out+8]; fence.acq_rel.gpu;",
        "atom.acquire.gpu.global.add.u64 %d1, [%out+8], 0;",
    ];
    for (tell, hear) in told.iter().flat_map(|tell| heard.map(|hear| (*tell, hear))) {
        assert_eq!(handed_on(tell, hear), [""; 0], "{tell} {hear}");
    }
}

#[test]
fn where_either_side_is_missing_or_too_small_it_is_a_race() {
    let (told, heard) = ("st.release.gpu.global.b64 [%out+8], 1;", "ld.acquire.gpu.global.b64 %d1, [%out+8];");
    let fence = "no fence orders the two";
    for (tell, hear, words) in [
        ("st.relaxed.gpu.global.b64 [%out+8], 1;", heard, fence),
        ("membar.cta; st.volatile.global.b64 [%out+8], 1;", heard, fence),
        (told, "ld.relaxed.gpu.global.b64 %d1, [%out+8];", fence),
        (told, "ld.volatile.global.b64 %d1, [%out+8]; fence.acq_rel.cta;", fence),
        ("st.release.cta.global.b64 [%out+8], 1;", heard, "an atomic of a block's scope excludes no other block"),
        ("membar.gl; st.global.b64 [%out+8], 1;", heard, "nothing orders the blocks of a launch"),
        (told, "ld.global.b64 %d1, [%out+8]; membar.gl;", "nothing orders the blocks of a launch"),
    ] {
        let found = handed_on(tell, hear);
        assert!(found.iter().any(|text| text.contains(words)), "{tell} {hear}: {found:?}");
    }
}
