//! What the build of a kernel tells of its loads: how many a warp has on their way at a time, and which wait for others.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;

/// The loads of a kernel by the source line they come from.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads(BTreeMap<u32, Load>);

/// The loads of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// How many a warp makes before it uses what the first brought.
    pub(super) in_flight: usize,
    /// Whether an address depends on what another load brought.
    pub(super) dependent: bool,
}

/// Loads of one line that follow each other where LLVM has unrolled a loop. ptxas does as much again with a loop whose
/// counter rises by a constant and that holds no store.
const UNROLLED: usize = 4;

/// Instructions of one loop, those of loops within it excepted, or of none, between two barriers. Branches that skip some of
/// them do not end it: ptxas makes predicates of them.
#[derive(Default)]
struct Run {
    /// Whether they are a loop's.
    looped: bool,
    /// Its loads by line.
    loads: BTreeMap<u32, usize>,
    /// Whether a register rises by a constant in it, and whether it stores to global memory.
    counts: bool,
    stores: bool,
}

impl Loads {
    /// From the kernel's instructions in `ptx`. Loads of one line that stand in one run of instructions are in flight
    /// together; a kernel that is not in it, or has no line table, has one load in flight.
    pub(super) fn of_kernel(ptx: &str, kernel: &str) -> Self {
        let Some((_, body)) = ptx.split_once(&format!(".entry {kernel}(")) else { return Self::default() };
        let body = body.split_once("\n}").map_or(body, |(body, _)| body);
        let mut brought = BTreeSet::new();
        // What a loop carries around reaches its head in the second round.
        let (mut runs, mut dependent) = Default::default();
        for _ in 0..2 {
            (runs, dependent) = scan(body, &mut brought);
        }
        let mut loads = BTreeMap::new();
        for run in runs.values() {
            for (&line, &count) in &run.loads {
                let again = run.looped
                    && run.counts
                    && !run.stores
                    && (count == UNROLLED || run.loads.len() == 1 && count == 1);
                let in_flight = if again { UNROLLED * count } else { count };
                let load = loads.entry(line).or_insert(Load { in_flight, dependent: dependent.contains(&line) });
                load.in_flight = load.in_flight.max(in_flight);
            }
        }
        Self(loads)
    }

    /// The loads of this position's line.
    pub(super) fn at(&self, position: &Location<'_>) -> Load {
        self.0.get(&position.line()).copied().unwrap_or(Load { in_flight: 1, dependent: false })
    }
}

/// The runs of a kernel, and the lines of those loads whose address comes from a register in `brought`, to which every register
/// is added that a load reaches.
fn scan<'a>(body: &'a str, brought: &mut BTreeSet<&'a str>) -> (BTreeMap<(Option<usize>, usize), Run>, BTreeSet<u32>) {
    let (mut runs, mut dependent) = (BTreeMap::<_, Run>::new(), BTreeSet::new());
    let (mut line, mut barriers) = (0, 0);
    let loops = loops(body);
    for (number, text) in body.lines().map(str::trim).enumerate() {
        if let Some(numbers) = text.strip_prefix(".loc") {
            line = numbers.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(line);
            continue;
        }
        let text = unconditional(text);
        barriers += usize::from(text.starts_with("bar."));
        let around = loops.iter().filter(|&(head, end)| (*head..=*end).contains(&number));
        let innermost = around.min_by_key(|&(head, end)| end - head);
        let run = runs.entry((innermost.map(|(head, _)| *head), barriers)).or_default();
        run.looped = innermost.is_some();
        let Some((opcode, operands)) = text.split_once(char::is_whitespace) else { continue };
        if ["ld.global", "ld.shared", "ld.volatile", "ld.const"].iter().any(|load| opcode.starts_with(load)) {
            let (to, address) = operands.split_once('[').unwrap_or((operands, ""));
            *run.loads.entry(line).or_default() += 1;
            if registers(address).any(|register| brought.contains(register)) {
                dependent.insert(line);
            }
            brought.extend(registers(to));
        } else if opcode.starts_with("st.") {
            run.stores |= opcode.contains(".global");
        } else {
            let last = operands.trim_end_matches(';').rsplit(' ').next().unwrap_or_default();
            run.counts |= opcode.starts_with("add.") && last.parse::<i64>().is_ok();
            let mut registers = registers(operands);
            if let Some(to) = registers.next()
                && registers.any(|register| brought.contains(register))
            {
                brought.insert(to);
            }
        }
    }
    (runs, dependent)
}

/// An instruction without its predicate.
fn unconditional(text: &str) -> &str {
    match text.split_once(char::is_whitespace) {
        Some((predicate, rest)) if predicate.starts_with('@') => rest.trim(),
        _ => text,
    }
}

/// The loops: the line of each head, and that of the last branch back to it.
fn loops(body: &str) -> BTreeMap<usize, usize> {
    let (mut labels, mut loops) = (BTreeMap::new(), BTreeMap::new());
    for (number, text) in body.lines().map(str::trim).enumerate() {
        if let Some(label) = text.strip_suffix(':') {
            labels.insert(label, number);
        } else if let Some((opcode, label)) = unconditional(text).split_once(char::is_whitespace)
            && opcode.starts_with("bra")
            && let Some(head) = labels.get(label.trim().trim_end_matches(';'))
        {
            loops.insert(*head, number);
        }
    }
    loops
}

/// The registers among operands.
fn registers(operands: &str) -> impl Iterator<Item = &str> {
    operands.split(|c: char| !c.is_alphanumeric() && c != '%').filter(|word| word.starts_with('%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "
.visible .entry gather(
) {
	.loc 1 10 5
	ld.global.b32 %r1, [%rd1];
	mul.wide.u32 %rd3, %r1, 4;
	add.s64 %rd4, %rd2, %rd3;
	.loc 1 11 5
	ld.global.b32 %f1, [%rd4];
	st.global.b32 [%rd5], %f1;
	ret;
}
.visible .entry sum(
) {
$L__BB1_1:
	.loc 1 20 5
	ld.global.b32 %f1, [%rd1];
	ld.global.b32 %f2, [%rd1+4];
	ld.global.b32 %f3, [%rd1+8];
	ld.global.b32 %f4, [%rd1+12];
	add.s64 %rd1, %rd1, 16;
	@%p1 bra $L__BB1_1;
	.loc 1 21 5
	@%p2 bra $L__BB1_2;
	ld.global.b32 %f5, [%rd1];
$L__BB1_2:
	@%p3 bra $L__BB1_3;
	ld.global.b32 %f6, [%rd1];
$L__BB1_3:
	ret;
}
";

    #[test]
    fn an_address_that_was_loaded_waits_and_an_unrolled_loop_has_many_in_flight() {
        let gather = Loads::of_kernel(PTX, "gather");
        assert_eq!(gather.0[&10], Load { in_flight: 1, dependent: false });
        assert_eq!(gather.0[&11], Load { in_flight: 1, dependent: true });
        assert_eq!(Loads::of_kernel(PTX, "sum").0[&20], Load { in_flight: 16, dependent: false });
        let skipped = Loads::of_kernel(PTX, "sum").0[&21];
        assert_eq!(skipped, Load { in_flight: 2, dependent: false }, "predicates, no branches");
        assert!(Loads::of_kernel(PTX, "another").0.is_empty());
    }

    #[test]
    fn the_committed_build_is_read() {
        let ptx = crate::ptx::EMBEDDED;
        let dependent = |kernel| Loads::of_kernel(ptx, kernel).0.values().filter(|load| load.dependent).count();
        assert_eq!((dependent("gather_indexed"), dependent("copy_coalesced")), (1, 0));
    }
}
