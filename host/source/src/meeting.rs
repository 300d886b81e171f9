//! Lanes of a warp that meet: at its barrier, to exchange values, or because they happen to come along together.

use crate::block::Runner;
use crate::context::Context;
use crate::exchange::exchanged;
use crate::place::{Place, pc, position};
use crate::thread::State;
use engine::Kind;
use std::ops::Range;
use std::panic::Location;

impl Runner {
    /// Lets the lanes that wait for one another within a warp go on; false if none does.
    pub(super) fn release_warp(&mut self, warp: usize) -> bool {
        let lanes = self.lanes(warp);
        if self.masks_differ(lanes.clone()) {
            return false;
        }
        let mut released = false;
        let mut stuck = None;
        for thread in lanes.clone() {
            let State::Warp { mask, place, .. } = self.context().lanes[thread].state else { continue };
            match self.awaited(lanes.clone(), thread, mask, place) {
                None => {
                    self.exchange(lanes.clone(), mask, place.at);
                    released = true;
                }
                Some(other) => stuck = stuck.or(Some((thread, mask, place, other))),
            }
        }
        let resting =
            |context: &Context, lane: usize| matches!(context.lanes[lane].state, State::Loop(_) | State::Together(_));
        if lanes.clone().any(|lane| resting(self.context(), lane)) {
            return released;
        }
        if let (false, Some((thread, mask, place, other))) = (released, stuck) {
            let context = self.context();
            let where_ = match context.lanes[other].state {
                State::Block(other) | State::Warp { place: other, .. } | State::Together(other) => Some(other),
                State::Ready | State::Loop(_) | State::Done => None,
            };
            let lane = other % 32;
            let (where_, detail) = match where_ {
                _ if other == thread => (None, format!("lane {lane} is not in its own mask {mask:#010x}")),
                Some(_) => (where_, format!("the mask {mask:#010x} names lane {lane}, which waits elsewhere")),
                None => (None, format!("the mask {mask:#010x} names lane {lane}, which takes no part")),
            };
            let at = where_.map_or(position(place.at), |other| place.told_from(other));
            let where_ = where_.map(|other| other.told_from(place));
            context.find(thread, Kind::DivergentWarp, Some(at), where_, detail);
            context.stopped = true;
        }
        released
    }

    /// Whether a lane names another in its mask that has come to the same place with another mask: that is a finding.
    fn masks_differ(&mut self, lanes: Range<usize>) -> bool {
        let context = self.context();
        let of = |thread: usize| match context.lanes[thread].state {
            State::Warp { mask, place, .. } => Some((mask, place, context.lanes[thread].path)),
            _ => None,
        };
        let masks = || lanes.clone().filter_map(|thread| Some(of(thread)?.0));
        if masks().all(|mask| Some(mask) == masks().next()) {
            return false;
        }
        let found = lanes.clone().find_map(|first| {
            let (mask, place, path) = of(first)?;
            let differs = |thread: &usize| {
                mask >> (thread % 32) & 1 == 1
                    && of(*thread).is_some_and(|(other, at, on)| other != mask && at.is(place) && on == path)
            };
            let other = lanes.clone().find(differs)?;
            Some((first, mask, other, of(other)?.0, place.at))
        });
        let Some((first, mask, other, other_mask, at)) = found else { return false };
        let detail = format!(
            "lane {} names the mask {other_mask:#010x}, and lane {} {mask:#010x}, which names both",
            other % 32,
            first % 32
        );
        context.find(other, Kind::DivergentWarp, Some(position(at)), None, detail);
        context.stopped = true;
        true
    }

    /// Of the lanes that wait for whoever comes along, lets those go on that came to one place in the same iteration: those that
    /// have done least so far. False if none waits so.
    pub(super) fn release_together(&mut self, warp: usize) -> bool {
        let lanes = self.lanes(warp);
        let context = self.context();
        let of = |context: &Context, thread: usize| match context.lanes[thread].state {
            State::Together(place) if !context.stopped => Some((place, context.lanes[thread].path)),
            _ => None,
        };
        let waiting = lanes.clone().filter(|thread| of(context, *thread).is_some());
        let Some(first) = waiting.min_by_key(|thread| context.lanes[*thread].calls) else { return false };
        let Some((place, path)) = of(context, first) else { return false };
        let comes_along =
            |thread: &usize| of(context, *thread).is_some_and(|(other, on)| other.is(place) && on == path);
        let together = lanes.clone().filter(comes_along).fold(0u32, |mask, thread| mask | 1 << (thread % 32));
        for thread in lanes.filter(|thread| together >> (thread % 32) & 1 == 1) {
            let lane = &mut context.lanes[thread];
            (lane.value, lane.state) = (together.into(), State::Ready);
        }
        true
    }

    /// A lane in `mask` that has not come to where `thread` waits; lanes that have ended are not waited for.
    fn awaited(&mut self, mut lanes: Range<usize>, thread: usize, mask: u32, place: Place) -> Option<usize> {
        if mask >> (thread % 32) & 1 == 0 {
            return Some(thread);
        }
        let context = self.context();
        lanes.find(|&lane| {
            mask >> (lane % 32) & 1 == 1
                && match context.lanes[lane].state {
                    State::Warp { mask: other_mask, place: other, .. } => other_mask != mask || !other.is(place),
                    State::Done => false,
                    State::Ready | State::Loop(_) | State::Together(_) | State::Block(_) => true,
                }
        })
    }

    /// All lanes of `mask` have come to `at`: hands out what they make of their values, and lets the lanes go on.
    fn exchange(&mut self, lanes: Range<usize>, mask: u32, at: &'static Location<'static>) {
        let first = lanes.start;
        let context = self.context();
        context.count_barrier(first, at);
        let here = |context: &Context, thread: usize| {
            mask >> (thread % 32) & 1 == 1 && matches!(context.lanes[thread].state, State::Warp { .. })
        };
        let mut values = [None; 32];
        for thread in lanes.clone().filter(|&thread| here(context, thread)) {
            values[thread - first] = Some(context.lanes[thread].value);
        }
        let everybody = lanes
            .clone()
            .all(|thread| values[thread - first].is_some() || matches!(context.lanes[thread].state, State::Done));
        if everybody {
            context.count_at(at);
        }
        context.worker.pass_exchange(first / 32, || pc(at));
        let synced = |thread: &usize| {
            values[thread - first].is_some()
                && matches!(context.lanes[*thread].state, State::Warp { exchange: None, .. })
        };
        let synced = lanes.clone().filter(synced).fold(0, |mask, thread| mask | 1 << (thread % 32));
        if synced != 0 {
            context.worker.meet(first, synced);
        }
        for thread in lanes {
            if values[thread - first].is_none() {
                continue;
            }
            if let State::Warp { exchange: Some(exchange), .. } = context.lanes[thread].state {
                match exchanged(exchange, thread - first, &values) {
                    Ok(value) => context.lanes[thread].value = value,
                    Err(source) => {
                        let detail = format!("a shuffle reads from lane {source}, which takes no part in it");
                        context.find(thread, Kind::InactiveLane, Some(position(at)), None, detail);
                    }
                }
            }
            context.lanes[thread].state = State::Ready;
        }
    }
}
