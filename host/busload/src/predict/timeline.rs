//! A timeline as Chrome's trace events, which Perfetto opens.
//!
//! A microsecond of the viewer is a cycle of the SM's clock: viewers round what is shorter than a nanosecond. Each track is a thread of a
//! process: warps, sub-partitions, the L1, slices, channels. What overlaps on a unit that serves several requests at a time stands on
//! lanes of it.

use crate::record::operation_name;
use engine::trace::What;
use gpu::suite::Operation;
use model::timeline::{Event, Kind, Of, Timeline, Track};
use serde::Serialize;
use std::collections::BTreeMap;

/// Events that are kept at most.
pub const MOST_EVENTS: usize = 200_000;

/// What a timeline is of.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// The kernel.
    pub kernel: String,
    /// The case, as tables show it.
    pub case: String,
    /// The chip.
    pub chip: String,
    /// The prediction, in milliseconds.
    pub predicted_ms: f64,
}

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "traceEvents")]
    events: Vec<Traced>,
    #[serde(rename = "otherData")]
    about: Other<'a>,
}

#[derive(Serialize)]
struct Other<'a> {
    #[serde(flatten)]
    about: &'a About,
    unit: &'static str,
    sm: u32,
    wave: u64,
    waves: u64,
    requests: u64,
    events: usize,
    left_out: u64,
}

#[derive(Serialize)]
struct Traced {
    name: String,
    ph: &'static str,
    pid: u32,
    tid: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    args: Args,
}

#[derive(Default, Serialize)]
struct Args {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warp: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(rename = "waits for", skip_serializing_if = "Option::is_none")]
    waits_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sectors: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wavefronts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<usize>,
}

/// The processes, in the order in which they are shown.
const PROCESSES: [&str; 5] = ["warps", "sub-partitions", "L1", "L2 slices", "DRAM channels"];

fn process(track: Track) -> usize {
    match track {
        Track::Warp(_) => 0,
        Track::Issue(_) | Track::Mio(_) => 1,
        Track::Lsu | Track::DataStage | Track::Port => 2,
        Track::Slice { .. } => 3,
        Track::Channel(_) => 4,
    }
}

fn title(track: Track) -> String {
    match track {
        Track::Warp(of) => format!("block {}, warp {}", of.block, of.warp),
        Track::Issue(subpartition) => format!("sub-partition {subpartition}: issue"),
        Track::Mio(subpartition) => format!("sub-partition {subpartition}: MIO queue"),
        Track::Lsu => "LSU: tag stage".to_owned(),
        Track::DataStage => "data stage".to_owned(),
        Track::Port => "port to the crossbar".to_owned(),
        Track::Slice { partition, slice } => format!("partition {partition}, slice {slice}"),
        Track::Channel(channel) => format!("channel {channel}"),
    }
}

/// What a request asks for, as `load`.
fn asks(what: What) -> String {
    let name = |operation| operation_name(operation).to_owned();
    match what {
        What::Load { .. } => name(Operation::Load),
        What::Store => name(Operation::Store),
        What::Atomic { .. } => name(Operation::Atomic),
        What::SharedLoad => format!("shared {}", operation_name(Operation::Load)),
        What::SharedStore => format!("shared {}", operation_name(Operation::Store)),
        What::SharedAtomic { .. } => format!("shared {}", operation_name(Operation::Atomic)),
        What::Constant => format!("constant {}", operation_name(Operation::Load)),
        What::Wait => "barrier".to_owned(),
        What::Instructions => "instructions".to_owned(),
    }
}

fn place(of: &Of) -> String {
    format!("{}:{}", of.at.file, of.at.line)
}

/// The trace events of a timeline, as JSON.
///
/// # Errors
/// If a number in it is none.
pub fn trace_events(timeline: &Timeline, about: &About) -> serde_json::Result<String> {
    let mut tracks: BTreeMap<Track, Vec<&Event>> = BTreeMap::new();
    for event in &timeline.events {
        tracks.entry(event.track).or_default().push(event);
    }
    let mut events = Vec::with_capacity(timeline.events.len() + tracks.len());
    for (process, name) in PROCESSES.iter().enumerate() {
        let is_behind = process > 2;
        let name = if is_behind { format!("{name} that it reached") } else { format!("SM {}: {name}", timeline.sm) };
        events.push(described("process_name", process, 0, Args { name: Some(name), ..Args::default() }));
        events.push(described("process_sort_index", process, 0, Args { sort_index: Some(process), ..Args::default() }));
    }
    let mut next = 1;
    for (track, mut of_track) in tracks {
        // As they end is not as they begin.
        of_track.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
        let lanes = lanes(&of_track);
        let count = lanes.iter().max().map_or(0, |last| last + 1);
        let is_counter = matches!(track, Track::Mio(_));
        for lane in (0..count).filter(|_| !is_counter) {
            let name = if lane == 0 { title(track) } else { format!("{} ({})", title(track), lane + 1) };
            let thread = next + lane;
            events.push(described("thread_name", process(track), thread, Args { name: Some(name), ..Args::default() }));
            let order = Args { sort_index: Some(thread), ..Args::default() };
            events.push(described("thread_sort_index", process(track), thread, order));
        }
        events.extend(of_track.iter().zip(&lanes).map(|(event, lane)| traced(event, next + lane)));
        next += count;
    }
    let other = Other {
        about,
        unit: "1 µs is 1 cycle of the SM's clock",
        sm: timeline.sm,
        wave: timeline.wave,
        waves: timeline.waves[0],
        requests: timeline.requests,
        events: timeline.events.len(),
        left_out: timeline.left_out,
    };
    Ok(serde_json::to_string(&File { events, about: other })? + "\n")
}

/// The lane of each event of a track, by its beginning: the first that is free then.
fn lanes(events: &[&Event]) -> Vec<usize> {
    let mut free: Vec<f64> = Vec::new();
    let lane = |event: &&Event| {
        let lane = free.iter().position(|free| *free <= event.start).unwrap_or(free.len());
        if lane == free.len() {
            free.push(event.end);
        } else {
            free[lane] = event.end;
        }
        lane
    };
    events.iter().map(lane).collect()
}

fn described(what: &str, process: usize, tid: usize, args: Args) -> Traced {
    Traced { name: what.to_owned(), ph: "M", pid: process as u32 + 1, tid, ts: None, dur: None, args }
}

fn traced(event: &Event, tid: usize) -> Traced {
    let Event { track, kind, start, end, of } = *event;
    let pid = process(track) as u32 + 1;
    let mut args = Args::default();
    let name = match kind {
        Kind::Depth(requests) => {
            let args = Args { requests: Some(requests), ..Args::default() };
            return Traced { name: title(track), ph: "C", pid, tid: 0, ts: Some(start), dur: None, args };
        }
        Kind::Stall(stall) => {
            args.waits_for = of.map(|of| format!("{} at {}", asks(of.what), place(&of)));
            stall.name().to_owned()
        }
        Kind::Wait => "stalls".to_owned(),
        Kind::WriteBack => "write-back".to_owned(),
        Kind::Serve { units } => {
            match track {
                Track::Lsu => args.lines = Some(units),
                Track::DataStage => args.wavefronts = Some(units),
                Track::Issue(_) => {}
                _ => args.sectors = Some(units),
            }
            of.map_or_else(|| "shared store".to_owned(), |of| asks(of.what))
        }
    };
    if let Some(of) = of.filter(|_| !matches!(kind, Kind::Stall(_))) {
        (args.block, args.warp, args.at) = (Some(of.warp.block), Some(of.warp.warp), Some(place(&of)));
    }
    Traced { name, ph: "X", pid, tid, ts: Some(start), dur: Some(end - start), args }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_stands_on_lanes_and_what_does_not_on_one() {
        let event = |[start, end]: [f64; 2]| Event {
            track: Track::DataStage,
            kind: Kind::Serve { units: 1 },
            start,
            end,
            of: None,
        };
        let events = [[0.0, 4.0], [2.0, 6.0], [4.0, 5.0], [5.0, 9.0]].map(event);
        assert_eq!(lanes(&events.iter().collect::<Vec<_>>()), [0, 1, 0, 0]);
    }
}
