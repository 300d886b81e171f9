//! The program where the system gives it little: few threads, little memory, outputs that take nothing, files without end. What it
//! finished is kept, what it cannot do is said, and it never panics.
#![cfg(target_os = "linux")]

use busload::record::Report;
use busload_tests::{found, root};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_busload-under-test");

/// Some cases of kernels with blocks of up to 1024 threads.
const SOME: [&str; 6] =
    ["--kernel", "^(copy_coalesced|transpose_tiled|reduce_vec4)$", "--elements", "5000", "--shape", "64"];

/// A command on those, with more arguments.
fn some<'a>(command: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [command, &SOME, more].concat()
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for temporary files")
}

/// The program in `folder`, by a shell that first sets a limit or puts an output elsewhere.
fn shell(folder: &Path, before: &str, after: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("bash");
    let script = format!("{before}; exec {PROGRAM} \"$@\" {after}");
    command.current_dir(folder).args(["-c", &script, "busload"]).args(arguments).env("RUST_BACKTRACE", "0");
    command
}

/// What came of a command that must end with `status`, without a panic.
#[track_caller]
fn ended(mut command: Command, status: i32) -> Output {
    let output = command.output().expect("a program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{command:?}: {said}");
    assert!(!said.contains("panicked"), "{command:?}: {said}");
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn report(text: &[u8]) -> Report {
    serde_json::from_slice(text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)))
}

fn report_in(file: PathBuf) -> Report {
    report(&std::fs::read(file).expect("a report"))
}

/// The results of a run that lacks nothing.
fn unlimited(arguments: &[&str]) -> Vec<u8> {
    ended(shell(folder().path(), "true", "", arguments), 0).stdout
}

#[test]
fn without_a_thread_every_command_says_so_and_goes_on() {
    // No stack of that size can be had, so no thread is started.
    let none = |arguments: &[&str]| {
        let mut command = shell(folder().path(), "true", "", arguments);
        command.env("RUST_MIN_STACK", (1u64 << 60).to_string()).current_dir("/");
        command
    };
    let no_thread = "the system starts no thread for the simulator";
    // `verify` carries each kernel out from its source and from its PTX.
    let commands = [(&["simulate"][..], 3), (&["verify", "--on", "sim"], 6), (&["bench", "--on", "sim"], 3)];
    for (command, results) in commands {
        let output = ended(none(&some(command, &["--json", "-"])), 1);
        let report = report(&output.stdout);
        assert_eq!(report.results.len(), results);
        for record in report.results {
            let error = record.error.unwrap_or_else(|| panic!("{} has no error", record.kernel));
            assert!(error.kind == "threads" && error.message.contains(no_thread), "{error:?}");
        }
        assert!(said(&output).contains(no_thread), "{output:?}");
    }
    let predicted = ended(none(&["predict", "-k", "^copy_vec4$", "--elements", "1000"]), 1);
    assert!(printed(&predicted).contains(no_thread), "{predicted:?}");
    assert!(said(&ended(none(&["explain", "copy_vec4"]), 1)).contains(no_thread));
    let claims = ended(none(&["claims"]), 1);
    assert!(said(&claims).contains("no claim can be judged") && said(&claims).contains(no_thread), "{claims:?}");
}

/// As somebody who has no other process, where this process may choose who it is.
fn as_another(folder: &Path, command: &mut Command) -> bool {
    const SOMEBODY: u32 = 54321;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).expect("a folder of our own");
    command.uid(SOMEBODY).gid(SOMEBODY);
    Command::new("true").uid(SOMEBODY).gid(SOMEBODY).status().is_ok_and(|status| status.success())
}

#[test]
fn fewer_threads_find_the_same() {
    let folder = folder();
    let program = folder.path().join("busload");
    std::fs::copy(PROGRAM, &program).expect("a copy that anybody may run");
    let arguments = some(&["simulate"], &["--threads", "8", "--json", "-"]);
    let limited = |processes: u32| {
        let mut command = Command::new("bash");
        let script = format!("ulimit -u {processes} && exec {} \"$@\"", program.display());
        command.args(["-c", &script, "busload"]).args(&arguments).current_dir("/");
        command
    };
    let mut alone = limited(1);
    if !as_another(folder.path(), &mut alone) {
        // Who is not root has other processes: there is no room for a thread.
        alone = limited(1);
    }
    let output = ended(alone, 1);
    assert!(said(&output).contains("the system starts no thread"), "{output:?}");
    let results = |json: &[u8]| found(std::str::from_utf8(json).expect("text")).to_owned();
    let expected = results(&unlimited(&arguments));
    for processes in [2, 3, 6] {
        let mut some = limited(processes);
        if as_another(folder.path(), &mut some) {
            assert!(results(&ended(some, 0).stdout) == expected, "{processes} processes");
        }
    }
    // Of those with a stack of a GiB each there is room for two.
    let mut few = shell(folder.path(), "ulimit -v 3000000", "", &arguments);
    few.env("RUST_MIN_STACK", (1u64 << 30).to_string());
    assert!(results(&ended(few, 0).stdout) == expected);
}

/// Each of a block's 1024 threads waits on a stack of its own, of which a process has room for no more than some ten thousand.
#[test]
fn any_number_of_threads_runs_blocks_of_any_size() {
    let arguments =
        |threads| ["simulate", "-k", "^matmul_tiled$", "--shape", "512", "--threads", threads, "--json", "-"];
    let of = |threads| {
        let simulated = report(&unlimited(&arguments(threads))).results.remove(0).simulated.expect("counts");
        serde_json::to_string(&simulated.sites).expect("JSON")
    };
    let few = of("1");
    assert!(few.contains("\"sectors\""), "{few}");
    for threads in ["32", "256"] {
        assert_eq!(of(threads), few, "{threads} threads");
    }
}

#[test]
fn with_little_memory_a_run_fails_and_the_report_is_kept() {
    for kibibytes in [100_000, 200_000, 400_000, 1_000_000] {
        for threads in ["1", "2", "8"] {
            let arguments = some(&["simulate"], &["--threads", threads, "--json", "-"]);
            let mut limited = shell(folder().path(), &format!("ulimit -v {kibibytes}"), "", &arguments);
            let output = limited.current_dir("/").output().expect("a program");
            let context = format!("{kibibytes} KiB, {threads} threads: {output:?}");
            assert!(matches!(output.status.code(), Some(0 | 1)), "{context}");
            let report = report(&output.stdout);
            assert_eq!(report.results.len(), 3, "{context}");
            let failed = report.results.iter().filter_map(|record| record.error.as_ref()).collect::<Vec<_>>();
            assert_eq!(failed.is_empty(), output.status.success(), "{context}");
            assert!(kibibytes < 1_000_000 || failed.is_empty(), "{context}");
        }
    }
}

#[test]
fn results_are_kept_where_standard_error_takes_nothing() {
    let arguments = some(&["simulate"], &["--json", "-"]);
    let results = |json: &[u8]| found(std::str::from_utf8(json).expect("text")).to_owned();
    let expected = results(&unlimited(&arguments));
    for after in ["2>/dev/full", "2>&-"] {
        let output = ended(shell(folder().path(), "true", after, &arguments), 0);
        assert!(results(&output.stdout) == expected, "{after}");
    }
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        writer
    };
    let mut command = shell(folder().path(), "true", "", &arguments);
    let output = command.current_dir("/").stderr(closed()).output().expect("a program");
    assert_eq!(
        (output.status.code(), results(&output.stdout) == expected),
        (Some(0), true),
        "a pipe that nobody reads"
    );
    // What is wrong cannot be heard, but by the status.
    for (status, arguments) in
        [(2, &["simulate", "-k", "no_such"][..]), (2, &["measure"]), (1, &["simulate", "-k", "sync_missing_barrier"])]
    {
        ended(shell(folder().path(), "true", "2>/dev/full", arguments), status);
    }
}

#[test]
fn results_are_kept_where_standard_output_takes_nothing() {
    let folder = folder();
    let with_file = some(&["simulate"], &["--json", "out.json"]);
    let expected = report(&unlimited(&some(&["simulate"], &["--json", "-"]))).json().expect("JSON");
    let expected = found(&expected);
    let kept = || found(&std::fs::read_to_string(folder.path().join("out.json")).expect("a report")).to_owned();
    let output = ended(shell(folder.path(), "true", ">/dev/full", &with_file), 1);
    assert!(said(&output).contains("standard output: No space left"), "{output:?}");
    assert_eq!(kept(), expected);
    std::fs::remove_file(folder.path().join("out.json")).expect("a report");
    ended(shell(folder.path(), "true", ">&-", &with_file), 0);
    assert_eq!(kept(), expected);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = shell(folder.path(), "true", "", &with_file).stdout(writer).status().expect("a program");
    assert!(status.success() && kept() == expected, "whoever closes a pipe has seen enough");
    // The table is the other way to the results.
    let output = ended(shell(folder.path(), "true", ">/dev/full", &some(&["simulate"], &["--json", "-"])), 1);
    assert!(said(&output).contains("transpose_tiled") && said(&output).contains("standard output"), "{output:?}");
    for arguments in
        [&["list"][..], &["doctor"], &["ptx"], &["--help"], &["--version"], &["explain", "copy_vec4"], &["claims"]]
    {
        ended(shell(folder.path(), "true", ">/dev/full", arguments), 1);
    }
}

#[test]
fn a_report_that_finds_no_room_ends_no_run() {
    let folder = folder();
    let sizes = (1..200).map(|size| size.to_string()).collect::<Vec<_>>().join(",");
    let arguments = ["simulate", "-k", "^copy_coalesced$", "--elements", &sizes, "--json", "out.json"];
    // The first results have room, all of them do not.
    let output = ended(shell(folder.path(), "ulimit -f 16", "", &arguments), 1);
    let table = printed(&output);
    assert_eq!(table.lines().filter(|line| line.starts_with(" copy_coalesced")).count(), 199, "{table}");
    assert!(said(&output).contains("error: ") && said(&output).contains("File too large"), "{output:?}");
    assert!(said(&output).matches("File too large").count() <= 2, "said once, and at the end: {output:?}");
    let kept = report_in(folder.path().join("out.json"));
    assert!(kept.unfinished && (1..199).contains(&kept.results.len()), "{} results", kept.results.len());
    assert_eq!(folder.path().read_dir().expect("the folder").count(), 1, "nothing else is left");
    // A place that never has room.
    let output = ended(shell(folder.path(), "true", "", &some(&["simulate"], &["--json", "/dev/full"])), 1);
    assert!(printed(&output).contains("transpose_tiled") && said(&output).contains("/dev/full"), "{output:?}");
}

#[test]
fn the_file_of_a_run_that_was_killed_says_so() {
    let folder = folder();
    let file = folder.path().join("out.json");
    let sizes = (100_000..102_000).map(|size| size.to_string()).collect::<Vec<_>>().join(",");
    let arguments = ["simulate", "-k", "^copy_coalesced$", "--elements", &sizes, "--json", "out.json"];
    let mut child = shell(folder.path(), "true", "", &arguments);
    let mut child = child.stdout(Stdio::null()).spawn().expect("a program");
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is written");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ran");
    let killed = report_in(file);
    assert!(killed.unfinished && (1..2000).contains(&killed.results.len()), "{}", killed.results.len());
}

/// What was simulated by the time of a signal, drafts or not.
#[test]
fn a_simulation_that_is_asked_to_end_writes_what_finished() {
    use std::os::unix::process::ExitStatusExt;
    for (name, number) in [("-INT", 2), ("-TERM", 15)] {
        let folder = folder();
        let file = folder.path().join("out.json");
        let sizes = (100_000..104_000).map(|size| size.to_string()).collect::<Vec<_>>().join(",");
        let arguments = ["simulate", "-k", "^copy_coalesced$", "--elements", &sizes, "--json", "out.json"];
        let mut command = shell(folder.path(), "true", "", &arguments);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a program");
        let begun = Instant::now();
        while !file.exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing is written");
            std::thread::sleep(Duration::from_millis(5));
        }
        let asked = Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill");
        assert!(asked.success());
        let output = child.wait_with_output().expect("it ran");
        assert_eq!(output.status.signal(), Some(number), "{output:?}");
        assert!(said(&output).contains("what finished is in"), "{output:?}");
        assert!(report_in(file).unfinished);
        assert_eq!(folder.path().read_dir().expect("the folder").count(), 1, "nothing else is left");
    }
}

/// The committed results of an H200.
fn measured() -> Value {
    let file = root().join("results/nvidia-h200/bench.json");
    serde_json::from_slice(&std::fs::read(file).expect("results of a GPU")).expect("JSON")
}

/// A folder with results, and with them after a change.
fn changed(change: impl Fn(&mut Value)) -> TempDir {
    let folder = folder();
    let mut results = measured();
    std::fs::write(folder.path().join("measured.json"), results.to_string()).expect("a file");
    change(&mut results);
    std::fs::write(folder.path().join("changed.json"), results.to_string()).expect("a file");
    folder
}

/// The commands that go by a file of results.
const READERS: [&[&str]; 4] = [
    &["compare", "measured.json", "changed.json"],
    &["compare", "changed.json", "measured.json"],
    &["claims", "--results", "changed.json"],
    &["predict", "--chip", "h200", "-k", "^latency_shared$", "--hops", "4096", "--measured", "changed.json"],
];

/// The row of `copy_vec4`, and its number.
fn row(results: &mut Value) -> (usize, &mut Value) {
    let rows = results["results"].as_array_mut().expect("a list").iter_mut().enumerate();
    let (i, row) = rows.into_iter().find(|(_, row)| row["kernel"] == "copy_vec4").expect("copy_vec4 was measured");
    (i + 1, row)
}

#[test]
fn results_that_make_no_sense_are_refused_by_row_whoever_reads_them() {
    for (field, value) in [
        ("samples_ms", serde_json::json!([])),
        ("gbps", Value::Null),
        ("median_ms", (-1.0).into()),
        ("median_ms", 0.into()),
        ("median_ms", 1e308.into()),
        ("error", serde_json::json!({ "kind": "launch", "message": "" })),
    ] {
        let folder = changed(|results| row(results).1[field] = value.clone());
        let (number, row) =
            (row(&mut measured()).0, row(&mut measured()).1["case"].as_str().expect("a case").to_owned());
        for reader in READERS {
            let output = ended(shell(folder.path(), "true", "", reader), 2);
            let name = format!("changed.json: row {number} (copy_vec4 on {row}): ");
            assert!(
                said(&output).contains(&name) && said(&output).contains(field.trim_end_matches("_ms")),
                "{output:?}"
            );
            assert!(output.stdout.is_empty(), "{output:?}");
        }
    }
    for (change, reason) in [
        ((|results| results["schema"] = 99.into()) as fn(&mut Value), "changed.json: its schema is 99"),
        (|results| results["machine"]["kind"] = "simulator".into(), "changed.json: it holds no time: it was simulated"),
        (|results| results["command"] = "verify".into(), "it is what `verify --json` writes"),
    ] {
        let folder = changed(change);
        for reader in READERS {
            let output = ended(shell(folder.path(), "true", "", reader), 2);
            assert!(said(&output).contains(reason), "{output:?}");
        }
    }
}

#[test]
fn whoever_reads_the_file_of_a_run_that_was_ended_hears_of_it() {
    let folder = changed(|results| results["unfinished"] = true.into());
    for reader in READERS {
        let output = shell(folder.path(), "true", "", reader).output().expect("a program");
        let warned = said(&output).contains("changed.json is unfinished");
        let noted = printed(&output)
            .contains("changed.json: kernels by llvm, L2 flushed, driver for CUDA 13.0. Its run was ended");
        assert!(output.status.success() && (warned || noted), "{output:?}");
    }
}

#[test]
fn names_from_a_file_are_shown_and_do_nothing() {
    let name = "\u{1b}[2Jcopy|<b>\nx";
    let rename = |results: &mut Value| {
        row(results).1["kernel"] = name.into();
        results["machine"]["name"] = "\u{1b}]0;H200\u{7}|".into();
    };
    let folder = changed(rename);
    let compare = ["compare", "changed.json", "changed.json", "--markdown", "out.md"];
    let output = ended(shell(folder.path(), "true", "", &compare), 0);
    let table = printed(&output);
    assert!(
        table.contains("\\u{1b}[2Jcopy|<b>\\u{a}x") && table.contains("Measured on \\u{1b}]0;H200\\u{7}|"),
        "{table}"
    );
    let markdown = std::fs::read_to_string(folder.path().join("out.md")).expect("a table");
    assert!(markdown.contains("| \\\\u{1b}\\[2Jcopy\\|\\<b\\>\\\\u{a}x |"), "{markdown}");
    let claims = ["claims", "--results", "changed.json", "--markdown", "claims.md"];
    let claims = ended(shell(folder.path(), "true", "", &claims), 0);
    let other = ended(shell(folder.path(), "true", "", &["compare", "measured.json", "changed.json"]), 2);
    let written = std::fs::read_to_string(folder.path().join("claims.md")).expect("a table");
    assert!(written.contains("H200\\\\u{7}\\|"), "{written}");
    for text in [table, markdown, printed(&claims), written, said(&other)] {
        assert!(text.contains("H200\\") && !text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    }
}

#[test]
fn what_is_no_file_or_has_no_end_is_refused_by_name() {
    let folder = folder();
    let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().expect("mkfifo");
    assert!(made.success());
    // As long as no file of ours, and on no disk.
    let long = File::create(folder.path().join("long")).expect("a file");
    long.set_len(1 << 40).expect("a file with a hole");
    let endless = [
        ("/dev/zero", "/dev/zero is a device"),
        ("pipe", "pipe is a pipe"),
        (".", ". is a directory"),
        ("long", "long has more than "),
        ("missing", "missing"),
    ];
    for (file, reason) in endless {
        for arguments in [
            &["bench", "--ptx", file][..],
            &["verify", "--ptx", file],
            &["profile", "--ptx", file],
            &["doctor", "--ptx", file],
            &["predict", "--chip", file],
            &["predict", "--measured", file],
            &["claims", "--results", file],
            &["compare", file, file],
        ] {
            // The limit is there in case one of them is read to its end after all.
            let output = ended(shell(folder.path(), "ulimit -v 4000000 -t 60", "", arguments), 2);
            assert!(said(&output).contains(reason) && output.stdout.is_empty(), "{arguments:?}: {output:?}");
        }
    }
}
