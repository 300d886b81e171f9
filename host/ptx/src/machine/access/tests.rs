use crate::machine::tests::{finding, module};
use engine::Kind;

#[test]
fn a_generic_address_is_named_by_the_memory_that_it_leads_to() {
    let globals = ".shared .align 8 .b8 e_tile[64]; .const .align 4 .u32 fixed[2] = {1, 2};";
    let local = ".local .align 8 .b8 own[16]; .reg .b64 %o; mov.u64 %o, own; cvta.local.u64 %o, %o; mov.b32 %r1, 7;";
    for (body, kind, says) in [
        (
            "mov.u64 %d1, e_tile; cvta.shared.u64 %d1, %d1; ld.b32 %r1, [%d1+64]; ret;",
            Kind::OutOfBounds,
            "`tile`, which has 64",
        ),
        (
            "mov.u64 %d1, e_tile; cvta.shared.u64 %d1, %d1; st.b32 [%d1+2], %i; ret;",
            Kind::Misaligned,
            "byte 2 of `tile`",
        ),
        ("st.b32 [%o+16], %r1; ret;", Kind::OutOfBounds, "byte 16 of its local memory, which has 16"),
        ("st.b32 [%o+6], %r1; ret;", Kind::Misaligned, "byte 6 of its local memory"),
        ("atom.add.u32 %r2, [%o], %r1; ret;", Kind::OutOfBounds, "its local memory by an atomic"),
        ("mov.u64 %d1, p_out; ld.b64 %d2, [%d1+8]; ret;", Kind::OutOfBounds, "byte 16 of the parameters"),
        ("mov.u64 %d1, p_out; ld.b32 %r2, [%d1+2]; ret;", Kind::Misaligned, "byte 10 of the parameters"),
        ("mov.u64 %d1, p_out; st.b32 [%d1], %r1; ret;", Kind::OutOfBounds, "and only read"),
        (
            "mov.u64 %d1, fixed; cvta.const.u64 %d1, %d1; ld.b32 %r2, [%d1+8]; ret;",
            Kind::OutOfBounds,
            "byte 8 of `fixed`",
        ),
        ("ld.b32 %r2, [%in+8192]; ret;", Kind::OutOfBounds, "byte 8192 of `in`"),
        ("mov.u64 %d1, 64; ld.b32 %r2, [%d1]; ret;", Kind::OutOfBounds, "a pointer that is no buffer of the launch"),
    ] {
        let found = finding(&module(globals, &format!("{local} {body}")), 1);
        assert!(found.kind == kind && found.detail.contains(says), "{body}\n{found}");
    }
}
