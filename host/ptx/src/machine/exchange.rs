//! What the lanes of a warp do together: shuffles, votes, matches, reductions, the warp's barrier.

use super::block::Runner;
use crate::program::{Exchange, Exchanged, NONE, Part};
use crate::registers::{Class, Half, Lanes, Narrow, Pred, Wide};
use engine::{Kind, Pc};

impl Runner {
    /// Of the lanes in `rest`, which are among the `active` ones, those that the lowest one's member mask names: all that it names must
    /// have come, and name the same; a finding if not.
    fn members(&mut self, number: usize, rest: u32, active: u32, slot: u32, pc: Pc) -> Option<u32> {
        if slot == NONE {
            return Some(active);
        }
        let masks = *self.registers.narrow.get(slot);
        let mask = masks[rest.trailing_zeros() as usize % 32];
        let lanes = (0..32).filter(|lane| masks[*lane] == mask).fold(0, |lanes, lane| lanes | 1 << lane) & rest;
        let missing = match mask & self.warps[number].live & !active {
            0 => 0,
            missing => missing & !self.end_those_that_leave(number, missing),
        };
        let others = mask & active & !lanes;
        let (at_fault, detail) = if others != 0 {
            let lane = others.trailing_zeros() as usize % 32;
            let first = lanes.trailing_zeros();
            (
                others,
                format!(
                    "lane {lane} names the mask {:#010x}, and lane {first} {mask:#010x}, which names both",
                    masks[lane]
                ),
            )
        } else if lanes & !mask != 0 {
            let lane = (lanes & !mask).trailing_zeros();
            (lanes & !mask, format!("lane {lane} is not in its own mask {mask:#010x}"))
        } else if missing != 0 {
            let detail =
                format!("the mask {mask:#010x} names lane {}, which waits elsewhere", missing.trailing_zeros());
            let there = self.stands(number, missing);
            self.find_both(number, lanes, Kind::DivergentWarp, [pc, there], detail);
            return None;
        } else {
            return Some(lanes);
        };
        self.find(number, at_fault, Kind::DivergentWarp, pc, detail);
        None
    }

    /// A meeting of lanes: false if there were too many.
    fn counted(&mut self, number: usize, pc: Pc) -> bool {
        let thread = self.first_thread(number);
        self.worker.pass_exchange(number, || pc);
        self.worker.count_barrier(thread, || pc)
    }

    /// The warp's barrier: false if it is a finding.
    pub(super) fn meet(&mut self, number: usize, active: u32, slot: u32, pc: Pc) -> bool {
        let mut rest = active;
        while rest != 0 {
            let Some(lanes) = self.members(number, rest, active, slot, pc) else { return false };
            self.worker.meet(32 * number, lanes);
            rest &= !lanes;
        }
        self.counted(number, pc)
    }

    fn values(&self, (class, slot): (Class, u32)) -> [u64; 32] {
        match class {
            Class::Pred => {
                let lanes = *self.registers.preds.get(slot);
                std::array::from_fn(|lane| u64::from(lanes >> lane & 1))
            }
            Class::Half | Class::Narrow => self.registers.narrow.get(slot).map(u64::from),
            Class::Wide => *self.registers.wide.get(slot),
        }
    }

    fn set(&mut self, part: Part, lanes: u32, values: &[u64; 32]) {
        let registers = &mut self.registers;
        match part {
            None => {}
            Some((Class::Pred, slot)) => Pred::set(registers, slot, lanes, &values.map(|value| value != 0)),
            Some((Class::Half, slot)) => Half::set(registers, slot, lanes, &values.map(|value| value as u32)),
            Some((Class::Narrow, slot)) => Narrow::set(registers, slot, lanes, &values.map(|value| value as u32)),
            Some((Class::Wide, slot)) => Wide::set(registers, slot, lanes, values),
        }
    }

    /// Lanes exchange values, those of each member mask among themselves: false if that is a finding.
    pub(super) fn exchange(&mut self, exchange: &Exchange, number: usize, active: u32, pc: Pc) -> bool {
        let mut rest = active;
        while rest != 0 {
            let Some(lanes) = self.members(number, rest, active, exchange.mask, pc) else { return false };
            if !self.exchange_among(exchange, number, lanes, pc) {
                return false;
            }
            rest &= !lanes;
        }
        self.counted(number, pc)
    }

    fn exchange_among(&mut self, exchange: &Exchange, number: usize, lanes: u32, pc: Pc) -> bool {
        let source = self.values(exchange.source);
        let is_in = |lane: usize| lanes >> lane & 1 == 1;
        let members = || (0..32).filter(|lane| is_in(*lane));
        let set = members().fold(0u32, |set, lane| set | u32::from(source[lane] != 0) << lane);
        let alike =
            |lane: usize| members().filter(|other| source[*other] == source[lane]).fold(0, |all, lane| all | 1 << lane);
        let folded =
            |start: u32, fold: fn(u32, u32) -> u32| members().fold(start, |all, lane| fold(all, source[lane] as u32));
        let same = |value: u32| [u64::from(value); 32];
        let mut predicates = [0; 32];
        let results = match exchange.what {
            Exchanged::Up | Exchanged::Down | Exchanged::Butterfly | Exchanged::Index => {
                let mut results = [0; 32];
                for lane in members() {
                    let (from, inside) = self.source_lane(exchange, lane);
                    if !is_in(from) {
                        let detail = format!("a shuffle reads from lane {from}, which takes no part in it");
                        self.find(number, 1 << lane, Kind::InactiveLane, pc, detail);
                        return false;
                    }
                    (results[lane], predicates[lane]) = (source[from], u64::from(inside));
                }
                results
            }
            Exchanged::All => same(u32::from(set == lanes)),
            Exchanged::Any => same(u32::from(set != 0)),
            Exchanged::Uniform => same(u32::from(set == 0 || set == lanes)),
            Exchanged::Ballot => same(set),
            Exchanged::MatchAny => std::array::from_fn(|lane| if is_in(lane) { alike(lane) } else { 0 }),
            Exchanged::MatchAll => {
                let first = lanes.trailing_zeros() as usize % 32;
                let all = alike(first) == u64::from(lanes);
                predicates = same(u32::from(all));
                same(if all { lanes } else { 0 })
            }
            Exchanged::Add => same(folded(0, u32::wrapping_add)),
            Exchanged::MinUnsigned => same(folded(u32::MAX, u32::min)),
            Exchanged::MaxUnsigned => same(folded(0, u32::max)),
            Exchanged::MinSigned => same(folded(i32::MAX as u32, |a, b| (a as i32).min(b as i32) as u32)),
            Exchanged::MaxSigned => same(folded(i32::MIN as u32, |a, b| (a as i32).max(b as i32) as u32)),
            Exchanged::And => same(folded(u32::MAX, |a, b| a & b)),
            Exchanged::Or => same(folded(0, |a, b| a | b)),
            Exchanged::Xor => same(folded(0, |a, b| a ^ b)),
            Exchanged::Elect => {
                let leader = lanes.trailing_zeros() % 32;
                predicates[leader as usize] = 1;
                same(leader)
            }
        };
        self.set(exchange.target, lanes, &results);
        self.set(exchange.predicate, lanes, &predicates);
        true
    }

    /// The lane that a shuffle reads from, and whether that is the one it names.
    pub(super) fn source_lane(&self, exchange: &Exchange, lane: usize) -> (usize, bool) {
        let named = self.registers.narrow.get(exchange.lane)[lane] & 31;
        let clamp = self.registers.narrow.get(exchange.clamp)[lane];
        let (own, bound, segment) = (lane as u32, clamp & 31, clamp >> 8 & 31);
        let most = own & segment | bound & !segment;
        let (from, inside) = match exchange.what {
            Exchanged::Up => (own.wrapping_sub(named), own.cast_signed() - named.cast_signed() >= most.cast_signed()),
            Exchanged::Down => (own + named, own + named <= most),
            Exchanged::Butterfly => (own ^ named, own ^ named <= most),
            _ => {
                let from = own & segment | named & !segment;
                (from, from <= most)
            }
        };
        if inside { (from as usize % 32, true) } else { (lane, false) }
    }
}
