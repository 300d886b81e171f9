//! Random kernels against a plain model of what they ask for and of what orders it: the same counts, and the same verdict, on
//! any number of threads.
//!
//! A kernel is a tree of statements that [`interpreted`] runs. The model runs the same tree thread by thread, without a notion
//! of time: lanes that make an access at the same place of the tree, in the same iterations of its loops, make a request; and
//! of two accesses one comes first if a chain of barriers leads from it to the other.

use busload::sim::Kind;
use busload_tests::{launch, memory, on_threads, simulate};
use gpu::device::prelude::*;
use gpu::suite::{Buffer, Counts, Operation, Plan, noise};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Words of a buffer, and of the block's array.
const WORDS: u32 = 512;

/// A place of the tree: which statement of each list around it, in which iteration.
type Place = Vec<u32>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Region {
    Src,
    Dst,
    Tile,
}

impl Region {
    fn name(self) -> &'static str {
        match self {
            Region::Src => "src",
            Region::Dst => "dst",
            Region::Tile => "tile",
        }
    }
}

/// A thread goes to word `by_thread * thread + by_step * step + from`, wherever that is round the buffer; blocks to words of
/// their own if they are `apart`.
#[derive(Clone, Copy, Debug)]
struct Access {
    region: Region,
    operation: Operation,
    /// One word, or two.
    words: u32,
    by_thread: u32,
    by_step: u32,
    from: u32,
    apart: bool,
}

impl Access {
    fn word(&self, block: u32, thread: u32, step: u32) -> u32 {
        let part = if self.apart && self.region != Region::Tile { WORDS / 2 } else { WORDS };
        let word = (self.by_thread * thread + self.by_step * step + self.from) % part;
        (word + if part < WORDS { block % 2 * part } else { 0 }) / self.words * self.words
    }
}

#[derive(Clone, Debug)]
enum Statement {
    Access(Access),
    /// The lanes in a mask do one thing, the others another.
    If(u32, Vec<Statement>, Vec<Statement>),
    /// So many iterations, and so many more in every third lane each.
    Loop(u32, u32, Vec<Statement>),
    /// All of the block meet.
    Block,
    /// The lanes in a mask meet.
    Warp(u32),
    /// The lanes in a mask take the value of the lowest.
    Shuffle(u32),
    Return,
}

struct Program {
    blocks: u32,
    threads: u32,
    /// Whether the output holds zeros before.
    zeroed: bool,
    statements: Vec<Statement>,
}

impl Program {
    fn trips(fixed: u32, more: u32, thread: u32) -> u32 {
        fixed + more * (thread % 3)
    }
}

/// Runs a tree, whose address it is given.
#[kernel]
unsafe fn interpreted(src: Global<u32>, dst: GlobalMut<u32>, program: u64) {
    let tile = shared!([u32; 512]);
    // The test keeps it alive.
    let program = &*std::ptr::with_exposed_provenance::<Program>(program as usize);
    run(&program.statements, 0, src, dst, tile);
}

/// Whether the thread goes on.
unsafe fn run(
    statements: &[Statement],
    step: u32,
    src: Global<u32>,
    dst: GlobalMut<u32>,
    tile: Shared<u32, 512>,
) -> bool {
    let thread = thread::thread_idx_x();
    for statement in each(statements) {
        // SAFETY: the launch's contract; what goes wrong in spite of it the simulator finds.
        let goes_on = unsafe {
            match statement {
                Statement::Access(access) => {
                    make(access, access.word(thread::block_idx_x(), thread, step), src, dst, tile);
                    true
                }
                Statement::If(lanes, yes, no) => {
                    // Each part is a place of its own.
                    for (part, taken) in each([no, yes].into_iter().zip(0..)) {
                        if lanes >> warp::lane_id() & 1 == taken && !run(part, step, src, dst, tile) {
                            return false;
                        }
                    }
                    true
                }
                Statement::Loop(fixed, more, body) => {
                    for step in steps(0..Program::trips(*fixed, *more, thread), 1) {
                        if !run(body, step, src, dst, tile) {
                            return false;
                        }
                    }
                    true
                }
                Statement::Block => {
                    sync_threads();
                    true
                }
                Statement::Warp(mask) => {
                    sync_warp(*mask);
                    true
                }
                Statement::Shuffle(mask) => {
                    warp::shuffle(*mask, 1.0, mask.trailing_zeros());
                    true
                }
                Statement::Return => false,
            }
        };
        if !goes_on {
            return false;
        }
    }
    true
}

unsafe fn make(access: &Access, word: u32, src: Global<u32>, dst: GlobalMut<u32>, tile: Shared<u32, 512>) {
    let (index, pair) = (word as usize, F32x2 { x: 0.0, y: 0.0 });
    // SAFETY: every word lies in its buffer.
    unsafe {
        match (access.region, access.operation, access.words) {
            (Region::Src, _, 1) => drop(src.load(index)),
            (Region::Src, ..) => drop(src.cast::<F32x2>().load(index / 2)),
            (Region::Dst, Operation::Load, 1) => drop(dst.load(index)),
            (Region::Dst, Operation::Load, _) => drop(dst.cast::<F32x2>().load(index / 2)),
            (Region::Dst, Operation::Store, 1) => dst.store(index, 0),
            (Region::Dst, Operation::Store, _) => dst.cast::<F32x2>().store(index / 2, pair),
            (Region::Dst, Operation::Atomic, _) => drop(dst.atomic_add(index, 0)),
            (Region::Tile, Operation::Load, 1) => drop(tile.load(word)),
            (Region::Tile, Operation::Load, _) => drop(tile.cast::<F32x2>().load(word / 2)),
            (Region::Tile, _, 1) => tile.store(word, 0),
            (Region::Tile, ..) => tile.cast::<F32x2>().store(word / 2, pair),
        }
    }
}

/// Numbers that decide what a program looks like. Where there are no more, it is as simple as can be.
struct Choices<'a>(std::slice::Iter<'a, u16>);

/// What is known of the threads that come to a list of statements.
#[derive(Clone, Copy)]
struct Known {
    /// The lanes of each warp.
    lanes: u32,
    /// Whether these lanes come there together, and whether all of the block's threads do that have not returned.
    together: bool,
    block: bool,
    depth: u32,
}

impl Choices<'_> {
    fn below(&mut self, end: u16) -> u32 {
        self.0.next().map_or(0, |choice| u32::from(choice % end))
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u16) as usize]
    }

    fn program(&mut self) -> Program {
        let (blocks, threads) = (1 + self.below(3), self.of(&[32, 64, 48, 96, 7]));
        let zeroed = self.below(2) == 1;
        let mut known = Known { lanes: u32::MAX, together: true, block: true, depth: 0 };
        Program { blocks, threads, zeroed, statements: self.list(&mut known, 6) }
    }

    fn list(&mut self, known: &mut Known, most: u16) -> Vec<Statement> {
        let count = 1 + self.below(most);
        (0..count).map(|_| self.statement(known)).collect()
    }

    fn statement(&mut self, known: &mut Known) -> Statement {
        let deeper = known.depth < 3;
        match self.below(10) {
            5 if deeper => {
                let lanes = self.of(&[0xFFFF, 0xFF, 0x5555_5555, 0xFFFF_0000, 1, 0x0FF0_F00F]);
                let [yes, no] = [lanes, !lanes].map(|part| Known {
                    lanes: known.lanes & part,
                    block: false,
                    depth: known.depth + 1,
                    ..*known
                });
                let mut first = self.list(&mut { yes }, 3);
                // At the top, some threads return for good.
                if known.depth == 0 && known.lanes & !lanes != 0 && self.below(4) == 3 {
                    first.push(Statement::Return);
                    known.lanes &= !lanes;
                    return Statement::If(lanes, first, Vec::new());
                }
                Statement::If(lanes, first, self.list(&mut { no }, 3))
            }
            6 if deeper => {
                let more = self.below(3);
                let mut inside = Known { depth: known.depth + 1, ..*known };
                if more > 0 {
                    (inside.together, inside.block) = (false, false);
                }
                Statement::Loop(1 + self.below(3), more, self.list(&mut inside, 3))
            }
            7 if known.block => Statement::Block,
            8 if known.together && known.lanes != 0 => Statement::Warp(known.lanes),
            9 if known.together && known.lanes != 0 => Statement::Shuffle(known.lanes),
            _ => Statement::Access(self.access()),
        }
    }

    fn access(&mut self) -> Access {
        let region = self.of(&[Region::Src, Region::Dst, Region::Tile, Region::Tile]);
        let operation = match region {
            Region::Src => Operation::Load,
            Region::Dst => self.of(&[Operation::Store, Operation::Load, Operation::Atomic]),
            Region::Tile => self.of(&[Operation::Store, Operation::Load]),
        };
        let words = if operation == Operation::Atomic { 1 } else { self.of(&[1, 1, 2]) };
        Access {
            region,
            operation,
            words,
            by_thread: self.of(&[1, 1, 2, 0, 3, 33]) * words,
            by_step: self.of(&[0, 96, 1]) * words,
            from: self.of(&[0, 0, 192, 5]),
            apart: self.below(2) == 1,
        }
    }
}

/// What a thread does.
enum Event {
    Access(Place, Access, u32),
    Block,
    Warp(Place, u32),
}

/// What thread number `thread` of a block does; false if it returns.
fn events(statements: &[Statement], at: &Place, block: u32, thread: u32, step: u32, out: &mut Vec<Event>) -> bool {
    for (statement, number) in statements.iter().zip(0..) {
        let mut here = at.clone();
        here.push(number);
        let goes_on = match statement {
            Statement::Access(access) => {
                out.push(Event::Access(here, *access, access.word(block, thread, step)));
                true
            }
            Statement::If(lanes, yes, no) => {
                let taken = lanes >> (thread % 32) & 1;
                here.push(taken);
                events(if taken == 1 { yes } else { no }, &here, block, thread, step, out)
            }
            Statement::Loop(fixed, more, body) => (0..Program::trips(*fixed, *more, thread)).all(|step| {
                let mut here = here.clone();
                here.push(step);
                events(body, &here, block, thread, step, out)
            }),
            Statement::Block => {
                out.push(Event::Block);
                true
            }
            Statement::Warp(mask) => {
                out.push(Event::Warp(here, *mask));
                true
            }
            // It exchanges registers, and orders nothing.
            Statement::Shuffle(_) => true,
            Statement::Return => false,
        };
        if !goes_on {
            return false;
        }
    }
    true
}

/// An access to a word, with what its thread knew: how much of what each thread of its block did lies before.
struct Touch {
    block: u32,
    thread: u32,
    operation: Operation,
    knew: Vec<u32>,
}

impl Touch {
    fn comes_before(&self, other: &Touch) -> bool {
        self.block == other.block && self.knew[self.thread as usize] <= other.knew[self.thread as usize]
    }
}

/// What is expected of a program.
struct Expected {
    counts: BTreeMap<(String, Operation, u64), Counts>,
    findings: BTreeSet<Kind>,
}

type Requests = BTreeMap<(u32, u32, Place), (Access, Vec<(u32, u32)>)>;

fn expected(program: &Program) -> Expected {
    let mut requests = Requests::new();
    let mut touches: BTreeMap<(Region, u32, u32), Vec<Touch>> = BTreeMap::new();
    for block in 0..program.blocks {
        let mut threads: Vec<_> = (0..program.threads)
            .map(|thread| {
                let mut out = Vec::new();
                events(&program.statements, &Vec::new(), block, thread, 0, &mut out);
                out.into_iter().peekable()
            })
            .collect();
        let mut knows = vec![vec![0; threads.len()]; threads.len()];
        (0..threads.len()).for_each(|thread| knows[thread][thread] = 1);
        let meet = |knows: &mut Vec<Vec<u32>>, who: &[usize]| {
            let all: Vec<u32> =
                (0..knows.len()).map(|of| who.iter().map(|&thread| knows[thread][of]).max().unwrap()).collect();
            for &thread in who {
                knows[thread].clone_from(&all);
                knows[thread][thread] += 1;
            }
        };
        loop {
            for (thread, events) in threads.iter_mut().enumerate() {
                while let Some(Event::Access(place, access, word)) =
                    events.next_if(|event| matches!(event, Event::Access(..)))
                {
                    let key = (block, thread as u32 / 32, place);
                    requests.entry(key).or_insert((access, Vec::new())).1.push((thread as u32 % 32, word));
                    for word in word..word + access.words {
                        let of = if access.region == Region::Tile { block } else { 0 };
                        touches.entry((access.region, of, word)).or_default().push(Touch {
                            block,
                            thread: thread as u32,
                            operation: access.operation,
                            knew: knows[thread].clone(),
                        });
                    }
                }
            }
            // Lanes of a warp that wait for one another; else all of the block, and those that have returned are no obstacle.
            let mut meetings: BTreeMap<(usize, Place), Vec<usize>> = BTreeMap::new();
            for (thread, events) in threads.iter_mut().enumerate() {
                if let Some(Event::Warp(place, _)) = events.peek() {
                    meetings.entry((thread / 32, place.clone())).or_default().push(thread);
                }
            }
            let met = meetings.into_values().find(|who| {
                let Some(&Event::Warp(_, mask)) = threads[who[0]].peek() else { return false };
                let first = who[0] / 32 * 32;
                let named = (first..threads.len().min(first + 32)).filter(|thread| mask >> (thread % 32) & 1 == 1);
                let named: Vec<_> = named.collect();
                named.iter().all(|thread| who.contains(thread) || threads[*thread].peek().is_none())
            });
            if let Some(who) = met {
                meet(&mut knows, &who);
                who.iter().for_each(|&thread| drop(threads[thread].next()));
            } else if threads.iter_mut().any(|events| events.peek().is_some()) {
                let all: Vec<_> = (0..threads.len()).collect();
                meet(&mut knows, &all);
                for events in &mut threads {
                    let event = events.next();
                    assert!(matches!(event, None | Some(Event::Block)), "the model is stuck");
                }
            } else {
                break;
            }
        }
    }
    let mut counts: BTreeMap<(String, Operation, u64), Counts> = BTreeMap::new();
    for (access, lanes) in requests.into_values() {
        let key = (access.region.name().to_owned(), access.operation, 4 * u64::from(access.words));
        *counts.entry(key).or_default() += cost(&access, &lanes);
    }
    let findings = touches.iter().flat_map(|((region, ..), touches)| verdict(program, *region, touches)).collect();
    Expected { counts, findings }
}

/// What a request costs: units touched, and the most words that a bank has to send at a time.
fn cost(access: &Access, lanes: &[(u32, u32)]) -> Counts {
    let (count, width) = (lanes.len() as u64, 4 * u64::from(access.words));
    let mut counts = Counts { requests: 1, lanes: count, ..Counts::default() };
    if access.region != Region::Tile {
        let units = |words: u32| lanes.iter().map(|(_, word)| word / words).collect::<BTreeSet<_>>().len() as u64;
        (counts.sectors, counts.lines) = (units(8), units(32));
        counts.sectors_ideal = counts.sectors.min((count * width).div_ceil(32));
        return counts;
    }
    let word_of: BTreeMap<u32, u32> = lanes.iter().copied().collect();
    let paired =
        |xor: u32| word_of.iter().all(|(lane, word)| word_of.get(&(lane ^ xor)).is_none_or(|other| other == word));
    let is_paired = access.operation == Operation::Load && (paired(1) || paired(2));
    let together = if access.words == 1 || is_paired { 32 } else { 16 };
    counts.wavefronts = (0..32)
        .step_by(together as usize)
        .map(|first| {
            let served = word_of.range(first..first + together);
            let words: BTreeSet<u32> = served.flat_map(|(_, word)| *word..*word + access.words).collect();
            (0..32).map(|bank| words.iter().filter(|word| *word % 32 == bank).count() as u64).max().unwrap_or(0)
        })
        .sum();
    counts.wavefronts_ideal = counts.wavefronts.min((count * width).div_ceil(128));
    counts
}

/// What is wrong with the accesses to a word.
fn verdict(program: &Program, region: Region, touches: &[Touch]) -> BTreeSet<Kind> {
    let initialized = region == Region::Src || region == Region::Dst && program.zeroed;
    let is_other = |a: &Touch, b: &Touch| (a.block, a.thread) != (b.block, b.thread);
    let races = |a: &Touch, b: &Touch| {
        let both = |operation| a.operation == operation && b.operation == operation;
        is_other(a, b) && !both(Operation::Load) && !both(Operation::Atomic) && !a.comes_before(b) && !b.comes_before(a)
    };
    let mut found = BTreeSet::new();
    for (number, touch) in touches.iter().enumerate() {
        if touches[..number].iter().any(|earlier| races(earlier, touch)) {
            found.insert(Kind::Race);
        }
        // What races with a read is a race. The accesses of a thread stand in their order.
        let is_written = |(other_number, other): (usize, &Touch)| {
            other.operation != Operation::Load
                && match is_other(other, touch) {
                    true => other.comes_before(touch) || races(other, touch),
                    false => other_number < number,
                }
        };
        let reads = touch.operation != Operation::Store;
        if reads && !initialized && !touches.iter().enumerate().any(is_written) {
            found.insert(Kind::Uninitialized);
        }
    }
    found
}

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
