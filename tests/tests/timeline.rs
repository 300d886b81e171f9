//! `predict --timeline`: trace events of one SM that a viewer opens, whose requests are those of the simulator.

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

fn busload(folder: &Path, arguments: &[&str]) -> Assert {
    Command::new(env!("CARGO_BIN_EXE_busload-under-test")).current_dir(folder).args(arguments).assert()
}

/// A block for each SM of an H200: eight warps, of which each loads and stores once.
const ONE_BLOCK_AN_SM: [&str; 7] = ["predict", "--chip", "h200", "--kernel", "^copy_vec4$", "--elements", "135168"];

/// The timeline and the prediction that a command makes.
fn timeline(arguments: &[&str]) -> (Value, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = ["--timeline", "timeline.json", "--json", "predicted.json"];
    busload(folder.path(), &[arguments, &files].concat()).success();
    let [timeline, predicted] = ["timeline.json", "predicted.json"].map(|file| {
        let text = std::fs::read_to_string(folder.path().join(file)).expect("a file");
        serde_json::from_str(&text).expect("JSON")
    });
    (timeline, predicted)
}

/// What happens on a track, from when to when.
type Track<'a> = Vec<(f64, f64, &'a str)>;

/// The events of each track, by process and thread, with the names of both.
fn tracks(timeline: &Value) -> BTreeMap<(String, String), Track<'_>> {
    let events = timeline["traceEvents"].as_array().expect("events");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let (mut processes, mut threads) = (BTreeMap::new(), BTreeMap::new());
    for event in events.iter().filter(|event| event["ph"] == "M") {
        let (process, thread) = (event["pid"].as_u64().expect("a process"), event["tid"].as_u64().expect("a thread"));
        match event["name"].as_str() {
            Some("process_name") => _ = processes.insert(process, text(&event["args"]["name"])),
            Some("thread_name") => _ = threads.insert((process, thread), text(&event["args"]["name"])),
            _ => assert!(event["args"]["sort_index"].is_u64(), "{event}"),
        }
    }
    let mut tracks: BTreeMap<_, Track<'_>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] != "M") {
        let (process, thread) = (event["pid"].as_u64().expect("a process"), event["tid"].as_u64().expect("a thread"));
        let (start, name) = (event["ts"].as_f64().expect("a time"), event["name"].as_str().expect("a name"));
        if event["ph"] == "C" {
            assert!(event["args"]["requests"].is_u64(), "{event}");
            continue;
        }
        assert_eq!(event["ph"], "X");
        let end = start + event["dur"].as_f64().expect("a duration");
        let thread = threads.get(&(process, thread)).unwrap_or_else(|| panic!("a thread without a name: {event}"));
        tracks.entry((processes[&process].clone(), thread.clone())).or_default().push((start, end, name));
    }
    tracks
}

/// Times are sums: the last bits of them differ.
const NEAR: f64 = 1e-6;

#[test]
fn requests_are_those_of_the_simulator_and_nothing_overlaps_on_a_track() {
    let (timeline, predicted) = timeline(&ONE_BLOCK_AN_SM);
    let tracks = tracks(&timeline);
    for ((process, thread), events) in &tracks {
        for pair in events.windows(2) {
            assert!(pair[0].1 <= pair[1].0 + NEAR, "{process}, {thread}: {pair:?}");
        }
    }
    let warps: Vec<_> = tracks.iter().filter(|((process, _), _)| process == "SM 0: warps").collect();
    assert_eq!(warps.len(), 8);
    for ((_, warp), stalls) in warps {
        assert_eq!(stalls[0].2, "launch", "{warp}");
        // A warp issues at an instant: it stalls on something from its launch to its end.
        assert!(stalls.windows(2).all(|pair| (pair[0].1 - pair[1].0).abs() < NEAR), "{warp}: {stalls:?}");
        assert!(stalls.iter().any(|stall| stall.2 == "long scoreboard"), "{warp}: {stalls:?}");
    }
    let lsu = &tracks[&("SM 0: L1".to_owned(), "LSU: tag stage".to_owned())];
    let served = |name: &str| lsu.iter().filter(|event| event.2 == name).count();
    assert_eq!([served("load"), served("store")], [8, 8]);
    assert_eq!(timeline["otherData"]["requests"], 16);
    let issued: usize =
        tracks.iter().filter(|((_, thread), _)| thread.ends_with(": issue")).map(|(_, events)| events.len()).sum();
    assert!(issued >= 16, "{issued}");
    // Each load of 512 bytes reads its sixteen sectors from the L2.
    let sectors: u64 = timeline["traceEvents"]
        .as_array()
        .expect("events")
        .iter()
        .filter(|event| event["name"] == "load" && event["pid"] == 4)
        .map(|event| event["args"]["sectors"].as_u64().expect("sectors"))
        .sum();
    assert_eq!(sectors, 8 * 16);
    // Every request that waited in a MIO queue has left it.
    let mut depths = BTreeMap::new();
    for event in timeline["traceEvents"].as_array().expect("events").iter().filter(|event| event["ph"] == "C") {
        depths.insert(event["name"].to_string(), event["args"]["requests"].as_u64());
    }
    assert!(!depths.is_empty() && depths.values().all(|depth| *depth == Some(0)), "{depths:?}");
    // What is kept of a prediction does not change it.
    let folder = tempfile::tempdir().expect("a folder");
    let alone = busload(folder.path(), &[&ONE_BLOCK_AN_SM[..], &["--json", "-"]].concat()).success();
    let alone: Value = serde_json::from_slice(&alone.get_output().stdout).expect("JSON");
    assert_eq!(alone["results"], predicted["results"]);
    assert_eq!(timeline["otherData"]["predicted_ms"], predicted["results"][0]["predicted_ms"]);
}

#[test]
fn a_warp_says_what_it_stalls_on() {
    let arguments = ["predict", "--chip", "h200", "--kernel", "^transpose_tiled$", "--shape", "1024"];
    let (timeline, _) = timeline(&arguments);
    let stalls: Vec<_> =
        timeline["traceEvents"].as_array().expect("events").iter().filter(|event| event["pid"] == 1).collect();
    let has = |name: &str, waits_for: &str| {
        stalls.iter().any(|stall| {
            stall["name"] == name && stall["args"]["waits for"].as_str().is_some_and(|text| text.contains(waits_for))
        })
    };
    assert!(has("long scoreboard", "load at gpu/src/kernels/transpose.rs:"), "no load of global memory is waited for");
    assert!(has("short scoreboard", "shared load at gpu/src/kernels/transpose.rs:"), "no load of shared memory is");
    assert!(has("barrier", "barrier at gpu/src/kernels/transpose.rs:"), "no barrier is");
}

#[test]
fn what_makes_no_sense_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = &ONE_BLOCK_AN_SM[..];
    for (arguments, reason) in [
        (&["--timeline", "t.json", "--timeline-sm", "132"][..], "--timeline-sm 132: NVIDIA H200 has SMs 0 to 131"),
        (&["--timeline", "t.json", "--timeline-wave", "1"], "--timeline-wave 1: the launch has waves 0 to 0"),
        (
            &["--timeline", "t.json", "--elements", "4096"],
            "--timeline t.json: 2 runs were asked for, and a timeline is of one",
        ),
        (&["--timeline", "missing/t.json"], "--timeline missing/t.json: no file can be written there"),
        (&["--timeline", "-", "--json", "-"], "--timeline -: standard output takes one of the files"),
        (&["--timeline-sm", "1"], "--timeline <FILE>"),
    ] {
        let assert = busload(folder.path(), &[one, arguments].concat()).code(2).stdout("");
        assert.stderr(predicate::str::contains(reason).and(predicate::str::contains("panicked").not()));
        assert_eq!(folder.path().read_dir().expect("the folder").count(), 0, "{arguments:?} left a file");
    }
}
