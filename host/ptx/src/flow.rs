//! The control-flow graph: basic blocks, and where the lanes that a branch sends apart meet again: its immediate post-dominator.
//!
//! Lanes that end are waited for nowhere, as on the hardware. So of several ends of a thread one counts, the last that is reached: a
//! way to another one is none, and the lanes of all others meet as if it were not there.

/// Where an instruction leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leads {
    /// To the next one.
    On,
    /// To the next one, or elsewhere.
    Maybe(Vec<u32>),
    /// Elsewhere only.
    Away(Vec<u32>),
    /// Nowhere: it ends the thread.
    Nowhere,
    /// To the next one, or nowhere.
    MaybeNowhere,
}

const EXIT: usize = 0;
const UNKNOWN: usize = usize::MAX;

/// Of each instruction that leads to several, the one where its ways meet again; `none` if they do not.
pub(crate) fn meeting_points(code: &[Leads], none: u32) -> Vec<u32> {
    let starts = block_starts(code);
    let mut of = vec![0; code.len()];
    for (block, window) in starts.windows(2).enumerate() {
        of[window[0]..window[1]].fill(block);
    }
    let count = starts.len() - 1;
    let end = last_end(code, &starts, &of);
    // The exit is node 0, block `b` is node `b + 1`.
    let follow = |block: usize| -> Vec<usize> {
        let last = starts[block + 1] - 1;
        let next = || if last + 1 < code.len() { of[last + 1] + 1 } else { EXIT };
        let node = |target: &u32| of.get(*target as usize).map_or(EXIT, |block| block + 1);
        match &code[last] {
            Leads::On => vec![next()],
            Leads::Maybe(targets) => targets.iter().map(node).chain([next()]).collect(),
            Leads::Away(targets) => targets.iter().map(node).collect(),
            Leads::Nowhere if end.is_none_or(|end| end == last) => vec![EXIT],
            Leads::Nowhere => Vec::new(),
            Leads::MaybeNowhere if end.is_none() => vec![EXIT, next()],
            Leads::MaybeNowhere => vec![next()],
        }
    };
    let follow: Vec<_> = [Vec::new()].into_iter().chain((0..count).map(follow)).collect();
    let dominators = post_dominators(&follow);
    let meet = |(at, leads): (usize, &Leads)| match leads {
        Leads::Maybe(_) | Leads::Away(_) => match dominators[of[at] + 1] {
            EXIT | UNKNOWN => none,
            node => starts[node - 1] as u32,
        },
        _ => none,
    };
    code.iter().enumerate().map(meet).collect()
}

/// The last instruction that ends every thread that comes there, of those that any comes to.
fn last_end(code: &[Leads], starts: &[usize], of: &[usize]) -> Option<usize> {
    let mut reached = vec![false; starts.len()];
    let mut waiting = vec![0];
    let mut end = None;
    while let Some(block) = waiting.pop() {
        if block + 1 >= starts.len() || std::mem::replace(&mut reached[block], true) {
            continue;
        }
        let last = starts[block + 1] - 1;
        if let Leads::Maybe(targets) | Leads::Away(targets) = &code[last] {
            waiting.extend(targets.iter().filter_map(|target| of.get(*target as usize)));
        }
        match code[last] {
            Leads::Nowhere => end = end.max(Some(last)),
            Leads::Away(_) => {}
            _ => waiting.push(block + 1),
        }
    }
    end
}

/// Where blocks begin, and where the last one ends.
pub(crate) fn block_starts(code: &[Leads]) -> Vec<usize> {
    let mut begins = vec![false; code.len() + 1];
    begins[0] = true;
    begins[code.len()] = true;
    for (at, leads) in code.iter().enumerate() {
        match leads {
            Leads::On => continue,
            Leads::Maybe(targets) | Leads::Away(targets) => {
                for target in targets {
                    if let Some(begin) = begins.get_mut(*target as usize) {
                        *begin = true;
                    }
                }
            }
            Leads::Nowhere | Leads::MaybeNowhere => {}
        }
        begins[at + 1] = true;
    }
    (0..begins.len()).filter(|at| begins[*at]).collect()
}

/// The immediate post-dominator of each node (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", on the reversed graph);
/// unknown for nodes that never come to the exit.
fn post_dominators(follow: &[Vec<usize>]) -> Vec<usize> {
    let mut before = vec![Vec::new(); follow.len()];
    for (node, targets) in follow.iter().enumerate() {
        targets.iter().for_each(|target| before[*target].push(node));
    }
    let order = post_order(&before);
    let mut rank = vec![UNKNOWN; follow.len()];
    order.iter().enumerate().for_each(|(place, node)| rank[*node] = place);
    let mut dominators = vec![UNKNOWN; follow.len()];
    dominators[EXIT] = EXIT;
    let mut changed = true;
    while changed {
        changed = false;
        for &node in order.iter().rev().filter(|node| **node != EXIT) {
            let mut known = follow[node].iter().copied().filter(|target| dominators[*target] != UNKNOWN);
            let Some(first) = known.next() else { continue };
            let found = known.fold(first, |mut a, mut b| {
                while a != b {
                    while rank[a] < rank[b] {
                        a = dominators[a];
                    }
                    while rank[b] < rank[a] {
                        b = dominators[b];
                    }
                }
                a
            });
            changed |= dominators[node] != found;
            dominators[node] = found;
        }
    }
    dominators
}

/// The nodes that are reached from the exit, each after those that it leads to.
fn post_order(edges: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; edges.len()];
    let mut stack = vec![(EXIT, 0)];
    seen[EXIT] = true;
    while let Some((node, next)) = stack.last_mut() {
        match edges[*node].get(*next) {
            Some(&target) => {
                *next += 1;
                if !seen[target] {
                    seen[target] = true;
                    stack.push((target, 0));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO: u32 = u32::MAX;

    #[test]
    fn a_branch_meets_where_all_its_ways_come_by() {
        use Leads::{Away, Maybe, Nowhere, On};
        // if/else: 0 → {1, 3}, 2 → 4.
        let code = [Maybe(vec![3]), On, Away(vec![4]), On, Nowhere];
        assert_eq!(meeting_points(&code, NO), [4, NO, 4, NO, NO]);
        // A loop: 1 → {0, 2}.
        assert_eq!(meeting_points(&[On, Maybe(vec![0]), Nowhere], NO), [NO, 2, NO]);
        // An early end of some lanes: the others do not wait for them.
        assert_eq!(meeting_points(&[Maybe(vec![2]), Nowhere, On, Nowhere], NO), [2, NO, NO, NO]);
        // In one of two ways that meet: 0 → {1, 4}, 1 → {2, 3}.
        let code = [Maybe(vec![4]), Maybe(vec![3]), Nowhere, On, On, Nowhere];
        assert_eq!(meeting_points(&code, NO), [4, 3, NO, NO, NO, NO]);
        // A loop with two ways out that meet behind it.
        let code = [Maybe(vec![3]), Maybe(vec![3]), Away(vec![0]), Nowhere];
        assert_eq!(meeting_points(&code, NO)[..2], [3, 3]);
    }

    #[test]
    fn endless_loops_have_no_meeting_point() {
        use Leads::{Away, Maybe, Nowhere};
        assert_eq!(meeting_points(&[Away(vec![0])], NO), [NO]);
        assert_eq!(meeting_points(&[Maybe(vec![2]), Away(vec![1]), Nowhere], NO)[0], 2);
        assert_eq!(meeting_points(&[], NO), [0u32; 0]);
    }
}
