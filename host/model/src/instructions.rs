//! What the PTX of a kernel tells of its requests: how many instructions come before each, how many loads a warp has in flight at a time,
//! and which of them depend on others.

use engine::Pc;
use std::collections::{BTreeMap, BTreeSet};

/// The instructions of a kernel, by the source line of the memory access, barrier or shuffle that they lead to.
#[derive(Clone, Debug, Default)]
pub(super) struct Instructions {
    lines: BTreeMap<u32, Line>,
    /// The line of a loop that neither accesses memory nor waits, if there is one: how often it goes round nothing tells.
    pub(super) computes: Option<u32>,
}

/// Memory accesses, barriers or shuffles of one source line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// Loads of one iteration of a loop, or of straight-line code: what the last of them brought is used before another is issued.
    pub(super) in_flight: usize,
    /// Loads that a warp has destination registers for: to issue another it stalls on the oldest.
    pub(super) registers: usize,
    /// Whether an address depends on another load.
    pub(super) dependent: bool,
    /// Instructions before each, and it: an average, if there are several.
    pub(super) instructions: f64,
}

/// A line that nothing is known of.
const UNKNOWN: Line = Line { in_flight: 1, registers: MAX_IN_FLIGHT, dependent: false, instructions: 1.0 };

/// Loads of one source line in an iteration of a loop that LLVM has unrolled, or ptxas if LLVM did not.
const UNROLLED: usize = 4;

/// ptxas unrolls such a loop four times again if its counter rises by a constant, it holds no store, and but one source line of it loads; it
/// then has registers for so many of the sixteen loads, fitted to `matrix_column_sums_thread`. For an H200 it issues 14 of them there before
/// it uses the first, and 10 in `matrix_row_sums_thread` and `matmul_naive`.
const REGISTERS: usize = 13;

/// ptxas has no registers for more loads than these, rather than lower the occupancy.
pub(super) const MAX_IN_FLIGHT: usize = 24;

/// Instructions of an integer division: there is none in hardware.
const DIVISION: usize = 20;

/// Issue slots that a shuffle takes beyond its own: an SM shuffles one warp a cycle.
const SHUFFLE_SLOTS: usize = 4;

/// Instructions of one loop, those of inner loops excepted, or of straight-line code, between two barriers. Branches that skip some of them
/// do not end it: ptxas makes predicates of them.
#[derive(Default)]
struct Run {
    /// Whether they are a loop's.
    looped: bool,
    /// How often each line accesses memory or waits, and the instructions that lead there.
    lines: BTreeMap<u32, (usize, usize)>,
    /// Its loads by line.
    loads: BTreeMap<u32, usize>,
    /// Whether a register rises by a constant in it, and whether it stores to global memory.
    counts: bool,
    stores: bool,
}

/// By the line of the loop's head, and by the barriers before.
type Runs = BTreeMap<(Option<usize>, usize), Run>;

impl Run {
    /// What is `leading` leads to an access or a wait of `line`.
    fn reach(&mut self, line: u32, leading: &mut usize) {
        let (count, instructions) = self.lines.entry(line).or_default();
        *count += 1;
        *instructions += std::mem::take(leading);
    }
}

impl Instructions {
    /// Those of a kernel in `ptx`. Loads of one line that stand in one run of instructions are in flight together; a kernel
    /// that is not in it, or has no line table, has one load in flight.
    pub(super) fn of_kernel(ptx: &str, kernel: &str) -> Self {
        let Some((_, body)) = ptx.split_once(&format!(".entry {kernel}(")) else { return Self::default() };
        let body = body.split_once("\n}").map_or(body, |(body, _)| body);
        let mut brought = BTreeSet::new();
        // What a loop carries around reaches its head in the second round.
        let (mut runs, mut dependent) = (Runs::new(), BTreeSet::new());
        for _ in 0..2 {
            (runs, dependent) = scan(body, &mut brought);
        }
        let mut lines = BTreeMap::<u32, Line>::new();
        // By line and loop, how often it accesses or waits, and after how many instructions in all.
        let mut reached = BTreeMap::<(u32, Option<usize>), (usize, usize)>::new();
        for (&(head, _), run) in &runs {
            let alone = run.looped && run.counts && !run.stores && run.loads.len() == 1;
            for (&line, &(count, instructions)) in &run.lines {
                let loads = run.loads.get(&line).copied().unwrap_or(0);
                let unrolled = if alone && [1, UNROLLED].contains(&loads) { UNROLLED } else { 1 };
                let known = lines.entry(line).or_insert(UNKNOWN);
                known.in_flight = known.in_flight.max(unrolled * loads);
                if unrolled > 1 && loads > 1 {
                    known.registers = REGISTERS;
                }
                known.dependent = dependent.contains(&line);
                let sum = reached.entry((line, head)).or_default();
                *sum = (sum.0 + count, sum.1 + instructions);
            }
        }
        // What is left over of an unrolled loop does not matter.
        for (number, line) in &mut lines {
            let loops = reached.range((*number, None)..=(*number, Some(usize::MAX)));
            let (count, instructions) = loops.map(|(_, sum)| *sum).max_by_key(|sum| sum.0).unwrap_or((1, 1));
            line.instructions = instructions as f64 / count as f64;
        }
        Self { lines, computes: computes(body) }
    }

    /// Whether the kernel was not found, or has no line table.
    pub(super) fn are_unknown(&self) -> bool {
        !self.lines.keys().any(|line| *line > 0)
    }

    /// Whether there is an access or a wait in this line.
    pub(super) fn know(&self, line: u32) -> bool {
        self.lines.contains_key(&line)
    }

    /// One line, of which a warp has so many loads in flight, each after so many instructions.
    #[cfg(test)]
    pub(super) fn in_flight(at: Pc, in_flight: usize, instructions: f64) -> Self {
        Self::in_rounds(at, in_flight, MAX_IN_FLIGHT, instructions)
    }

    /// The same, of a loop that has registers for so many.
    #[cfg(test)]
    pub(super) fn in_rounds(at: Pc, in_flight: usize, registers: usize, instructions: f64) -> Self {
        Self { lines: [(at.line(), Line { in_flight, registers, instructions, ..UNKNOWN })].into(), computes: None }
    }

    /// The line of this position.
    pub(super) fn at(&self, position: Pc) -> Line {
        self.lines.get(&position.line()).copied().unwrap_or(UNKNOWN)
    }
}

/// The runs of a kernel, and the lines of those loads whose address comes from a register in `brought`, to which every register
/// is added that a load reaches.
fn scan<'a>(body: &'a str, brought: &mut BTreeSet<&'a str>) -> (Runs, BTreeSet<u32>) {
    let (mut runs, mut dependent) = (Runs::new(), BTreeSet::new());
    // Instructions of each loop that lead to nothing yet.
    let mut leading = BTreeMap::<Option<usize>, usize>::new();
    let (mut line, mut barriers) = (0, 0);
    let loops = loops(body);
    for (number, text) in body.lines().map(str::trim).enumerate() {
        if let Some(numbers) = text.strip_prefix(".loc") {
            line = numbers.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(line);
            continue;
        }
        let text = unconditional(text);
        let around = loops.iter().filter(|&(head, end)| (*head..=*end).contains(&number));
        let innermost = around.min_by_key(|&(head, end)| end - head);
        let head = innermost.map(|(head, _)| *head);
        let run = runs.entry((head, barriers)).or_default();
        run.looped = innermost.is_some();
        let Some((opcode, operands)) = text.split_once(char::is_whitespace) else { continue };
        let leading = leading.entry(head).or_default();
        *leading += count(opcode, operands);
        if LOADS.iter().any(|load| opcode.starts_with(load)) {
            run.reach(line, leading);
            *run.loads.entry(line).or_default() += 1;
            let (to, address) = operands.split_once('[').unwrap_or((operands, ""));
            if registers(address).any(|register| brought.contains(register)) {
                dependent.insert(line);
            }
            brought.extend(registers(to));
        } else if opcode.starts_with("st.") {
            run.reach(line, leading);
            run.stores |= opcode.contains(".global");
        } else if WAITS_AND_ATOMICS.iter().any(|other| opcode.starts_with(other)) {
            run.reach(line, leading);
            barriers += usize::from(opcode.starts_with("bar."));
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
    // The end of a loop leads to its head.
    for ((head, _), run) in runs.iter_mut().filter(|(_, run)| run.looped) {
        if let Some((_, instructions)) = run.lines.values_mut().next() {
            *instructions += leading.remove(head).unwrap_or(0);
        }
    }
    (runs, dependent)
}

/// What begins a load, of parameters excepted.
const LOADS: [&str; 4] = ["ld.global", "ld.shared", "ld.volatile", "ld.const"];

/// What begins a barrier, a shuffle or an atomic.
const WAITS_AND_ATOMICS: [&str; 4] = ["bar.", "shfl.", "atom.", "red."];

/// About as many instructions as ptxas makes of one.
fn count(opcode: &str, operands: &str) -> usize {
    match opcode.split('.').next().unwrap_or_default() {
        // Parameters, constants and immediates are operands.
        "ld" if ["ld.param", "ld.const"].iter().any(|load| opcode.starts_with(load)) => 0,
        "cvta" => 0,
        "mov" if !operands.contains("tid.") && !operands.contains("ctaid.") => 0,
        "div" | "rem" => DIVISION,
        // Nothing is left of a barrier of a whole warp.
        "bar" if opcode.starts_with("bar.warp") => 0,
        "shfl" => 1 + SHUFFLE_SLOTS,
        directive if directive.is_empty() || directive.starts_with(['/', '(', ')', '{', '}']) => 0,
        _ => 1,
    }
}

/// An instruction without its predicate.
fn unconditional(text: &str) -> &str {
    match text.split_once(char::is_whitespace) {
        Some((predicate, rest)) if predicate.starts_with('@') => rest.trim(),
        _ => text,
    }
}

/// The loops: the line of each head, and that of its last back edge.
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

/// The line of a loop that neither accesses memory nor waits for other lanes, wherever its instructions stand.
fn computes(body: &str) -> Option<u32> {
    let lines: Vec<_> = body.lines().map(str::trim).collect();
    let labels: BTreeMap<_, _> =
        lines.iter().zip(0..).filter_map(|(text, number)| Some((text.strip_suffix(':')?, number))).collect();
    let (mut after, mut before) = (vec![Vec::new(); lines.len()], vec![Vec::new(); lines.len()]);
    for (number, text) in lines.iter().enumerate() {
        let branch =
            unconditional(text).split_once(char::is_whitespace).filter(|(opcode, _)| opcode.starts_with("bra"));
        let target = branch.and_then(|(_, label)| labels.get(label.trim().trim_end_matches(';'))).copied();
        let ends = ["bra", "ret", "exit", "trap"].iter().any(|end| text.starts_with(end));
        let next = Some(number + 1).filter(|next| !ends && *next < lines.len());
        for to in target.into_iter().chain(next) {
            after[number].push(to);
            before[to].push(number);
        }
    }
    // What a line leads to, or what leads to it, but for what only does by way of another.
    let reached = |from: usize, edges: &[Vec<usize>], but: usize| {
        let (mut reached, mut rest) = (BTreeSet::from([from]), vec![from]);
        while let Some(number) = rest.pop() {
            let further = edges[number].iter().filter(|to| **to != but);
            rest.extend(further.filter(|to| reached.insert(**to)));
        }
        reached
    };
    let waits_or_accesses = |number: usize| {
        let text = unconditional(lines[number]);
        LOADS.iter().chain(&["st."]).chain(&WAITS_AND_ATOMICS).any(|such| text.starts_with(such))
    };
    labels.into_values().find_map(|head| {
        // Its head is what all ways to the loop's end lead through.
        let around = reached(0, &after, head);
        let mut ends = before[head].iter().filter(|end| !around.contains(*end));
        let round = ends.find_map(|end| {
            let round = reached(*end, &before, head);
            (!round.iter().any(|number| waits_or_accesses(*number))).then_some(round)
        })?;
        let number = |text: &str| text.strip_prefix(".loc")?.split_whitespace().nth(1)?.parse().ok();
        let within = round.iter().find_map(|line| number(lines[*line]));
        within.or_else(|| lines[..head].iter().rev().find_map(|text| number(text))).or(Some(0))
    })
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
        let gather = Instructions::of_kernel(PTX, "gather").lines;
        assert_eq!(gather[&10], Line { instructions: 1.0, ..UNKNOWN });
        assert_eq!(gather[&11], Line { dependent: true, instructions: (3.0 + 1.0) / 2.0, ..UNKNOWN });
        let sum = Instructions::of_kernel(PTX, "sum").lines;
        let (of_a_round, loads) = (6.0, 4.0);
        assert_eq!(sum[&20], Line { in_flight: 16, registers: REGISTERS, instructions: of_a_round / loads, ..UNKNOWN });
        assert_eq!(sum[&21].in_flight, 2, "what skips a load is a predicate, no branch");
        let another = Instructions::of_kernel(PTX, "another");
        assert!(another.lines.is_empty() && another.are_unknown() && !another.know(20));
        let without_lines = PTX.lines().filter(|line| !line.contains(".loc")).collect::<Vec<_>>().join("\n");
        assert!(Instructions::of_kernel(&without_lines, "sum").are_unknown());
        let known = Instructions::of_kernel(PTX, "sum");
        assert!(!known.are_unknown() && known.know(20) && known.know(21) && !known.know(10));
    }

    #[test]
    fn a_loop_that_only_computes_is_found_and_one_that_loads_is_not() {
        assert_eq!(Instructions::of_kernel(PTX, "gather").computes, None);
        assert_eq!(Instructions::of_kernel(PTX, "sum").computes, None);
        let computes = PTX.replace(
            "\tld.global.b32 %f2, [%rd1+4];",
            "$L__BB1_4:\n\t.loc 1 22 9\n\tmul.f32 %f2, %f2, %f3;\n\t@%p4 bra $L__BB1_4;",
        );
        assert_ne!(computes, PTX);
        assert_eq!(Instructions::of_kernel(&computes, "sum").computes, Some(22));
        let waits = computes.replace("\tmul.f32 %f2, %f2, %f3;", "\tbar.sync 0;");
        assert_eq!(Instructions::of_kernel(&waits, "sum").computes, None);
    }

    #[test]
    fn of_the_committed_build_no_loop_only_computes() {
        let ptx = include_str!("../../../gpu/ptx/busload_sm_80.ptx");
        let kernels: Vec<_> = ptx.split(".entry ").skip(1).filter_map(|entry| Some(entry.split_once('(')?.0)).collect();
        assert!(kernels.len() > 100, "{} kernels", kernels.len());
        for kernel in kernels {
            let instructions = Instructions::of_kernel(ptx, kernel);
            assert_eq!((instructions.computes, instructions.are_unknown()), (None, false), "{kernel}");
        }
    }

    #[test]
    fn the_committed_build_is_read() {
        let ptx = include_str!("../../../gpu/ptx/busload_sm_80.ptx");
        let dependent =
            |kernel| Instructions::of_kernel(ptx, kernel).lines.values().filter(|line| line.dependent).count();
        assert_eq!((dependent("gather_indexed"), dependent("copy_coalesced")), (1, 0));
    }
}
