//! `busload check`: budgets written, held and broken, as a person or a CI meets them.

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process;
use tempfile::TempDir;

fn busload(folder: &Path, arguments: &[&str]) -> Assert {
    // Where a target folder is set for all, the stubs here have none of their own.
    let mut command = Command::new(env!("CARGO_BIN_EXE_busload-under-test"));
    command.current_dir(folder).env_remove("CARGO_TARGET_DIR").args(arguments).assert()
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for temporary files")
}

fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).expect("text")
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).expect("text")
}

/// A text as words, however its lines are broken.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The line of a source that has a text, from 1.
fn line_of(file: &str, text: &str) -> usize {
    let source = fs::read_to_string(busload_tests::root().join(file)).expect("a source");
    1 + source.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{file} has no {text}"))
}

const TRANSPOSE: &str = "gpu/src/kernels/transpose.rs";

/// A folder with the budgets of two transposes on a small case.
fn blessed() -> TempDir {
    let folder = folder();
    let bless = ["check", "--bless", "--kernel", "^transpose_(tiled|padded)$", "--shape", "64"];
    let said = stdout(&busload(folder.path(), &bless).success());
    assert_eq!(said, "busload.toml: 8 added, 0 changed, 0 removed.\n");
    folder
}

#[test]
fn what_is_blessed_holds_and_blessing_again_changes_nothing() {
    let folder = blessed();
    let text = read(folder.path(), "busload.toml");
    for part in [
        "# What each access of a kernel may ask",
        "[budget.transpose_tiled.64x64]\n",
        "\"load src\" = { requests = 128, sectors_per_request = 4.0, bytes_moved = 16384, used = 1.0 }\n",
        "\"load tile\" = { requests = 128, conflicts = 3968 }\n",
        "[budget.transpose_padded.64x64]\n",
        "\"load tile\" = { requests = 128, conflicts = 0 }\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let kernels = ["--kernel", "^transpose_(tiled|padded)$"];
    let held = busload(folder.path(), &[&["check", "--require-budgets"], &kernels[..]].concat()).success();
    assert_eq!(stdout(&held), "busload.toml: 8 budgets hold.\n");
    let again = busload(folder.path(), &["check", "--bless", "--kernel", "^transpose_padded$"]).success();
    assert_eq!(stdout(&again), "busload.toml: every budget is what is counted now.\n");
    assert_eq!(read(folder.path(), "busload.toml"), text);
    // Counts do not depend on threads.
    busload(folder.path(), &[&["check", "--threads", "3"], &kernels[..]].concat()).success();
    // Another case has no budgets, which fails if they are required.
    let other = [&["check", "--shape", "32"], &kernels[..]].concat();
    let said = words(&stdout(&busload(folder.path(), &other).success()));
    assert!(
        said.contains("0 budgets hold. Without any budget: transpose_tiled and 1 more; `check --bless` writes them.")
    );
    let required = busload(folder.path(), &[&other[..], &["--require-budgets"]].concat()).code(1);
    assert!(stdout(&required).contains("transpose_tiled on 32x32: none of its accesses has a budget"), "{required}");
}

#[test]
fn an_access_that_costs_more_fails_with_its_line_the_counts_before_and_now_and_why() {
    let folder = blessed();
    // As if the tile had been padded before.
    let text = read(folder.path(), "busload.toml").replace("conflicts = 3968", "conflicts = 0");
    write(folder.path(), "busload.toml", &text);
    let kernels = ["--kernel", "^transpose_(tiled|padded)$"];
    let assert = busload(folder.path(), &[&["check"], &kernels[..]].concat()).code(1);
    let said = stdout(&assert);
    let line = line_of(TRANSPOSE, "tile.load(");
    let first = said.lines().next().expect("a line");
    assert!(first.starts_with(&format!("{TRANSPOSE}:{line}:")), "{said}");
    assert!(first.ends_with(": transpose_tiled on 64x64, load tile: 3968 conflicts (budget 0)"), "{said}");
    let said = words(&said);
    for why in
        ["As thread_idx_x rises by 1, the address in `tile` rises by 128 bytes", "32 wavefronts instead of 1", "→ Pad"]
    {
        assert!(said.contains(why), "{why}: {said}");
    }
    assert!(said.ends_with("busload.toml: 7 budgets hold, 1 exceeded."), "{said}");
    let quiet = stdout(&busload(folder.path(), &[&["check", "-q"], &kernels[..]].concat()).code(1));
    assert_eq!(quiet.lines().collect::<Vec<_>>(), [first, "busload.toml: 7 budgets hold, 1 exceeded."]);

    let arguments = [&["check", "--json", "check.json", "--sarif", "check.sarif", "--github"], &kernels[..]].concat();
    let said = stdout(&busload(folder.path(), &arguments).code(1));
    let annotation = said.lines().next().expect("a line");
    assert!(annotation.starts_with(&format!("::error file={TRANSPOSE},line={line},col=")), "{said}");
    assert!(
        annotation.contains(
            ",title=busload%3A over-budget::transpose_tiled on 64x64, load tile: 3968 conflicts (budget 0)%0AAs"
        ),
        "{said}"
    );
    let json: Value = serde_json::from_str(&read(folder.path(), "check.json")).expect("JSON");
    assert_eq!((&json["schema"], &json["command"], &json["passed"]), (&2.into(), &"check".into(), &false.into()));
    let held = |verdict: &str| {
        let results = json["results"].as_array().expect("results");
        let all = results.iter().flat_map(|own| own["accesses"].as_array().expect("accesses"));
        all.filter(|held| held["verdict"] == verdict).cloned().collect::<Vec<_>>()
    };
    assert_eq!((held("same").len(), held("over").len()), (7, 1));
    let over = &held("over")[0];
    assert_eq!((&over["name"], &over["at"]["line"]), (&"load tile".into(), &line.into()));
    assert_eq!(over["limits"][1], serde_json::json!({ "measure": "conflicts", "budget": 0.0, "now": 3968.0 }));
    let sarif: Value = serde_json::from_str(&read(folder.path(), "check.sarif")).expect("JSON");
    let [result] = &sarif["runs"][0]["results"].as_array().expect("results")[..] else { panic!("{sarif:#}") };
    assert_eq!((&result["ruleId"], &result["level"]), (&"over-budget".into(), &"error".into()));
    assert_eq!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], TRANSPOSE);

    // What was spent too much is blessed, of this kernel alone.
    busload(folder.path(), &["check", "--bless", "--kernel", "^transpose_tiled$"]).success();
    busload(folder.path(), &[&["check"], &kernels[..]].concat()).success();
}

#[test]
fn what_the_sanitizer_finds_is_said_likewise() {
    let folder = blessed();
    let arguments = ["check", "--kernel", "sync_missing_barrier", "--elements", "256", "--github", "--sarif", "-"];
    let assert = busload(folder.path(), &arguments).code(1);
    let sarif: Value = serde_json::from_str(&stdout(&assert)).expect("standard output is SARIF alone");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    assert!(!results.is_empty());
    for result in results {
        assert_eq!((&result["ruleId"], &result["level"]), (&"race".into(), &"error".into()));
        let location = |of: &str| result[of][0]["physicalLocation"]["artifactLocation"]["uri"].clone();
        assert_eq!([location("locations"), location("relatedLocations")], ["gpu/src/kernels/sync.rs"; 2]);
    }
    let said = stderr(&assert);
    assert!(said.contains("::error file=gpu/src/kernels/sync.rs,line="), "{said}");
    assert!(said.contains("title=busload%3A race::sync_missing_barrier on 256: race: "), "{said}");
    let bless = ["check", "--bless", "--kernel", "sync_missing_barrier", "--elements", "256"];
    let said = stderr(&busload(folder.path(), &bless).code(1));
    assert!(
        said.contains("sync_missing_barrier on 256: its budgets are left as they are, since it is wrong: race: "),
        "{said}"
    );
}

#[test]
fn budgets_of_what_is_gone_fail_until_they_are_blessed() {
    let folder = blessed();
    let kernels = ["--kernel", "^transpose_(tiled|padded|paded)$"];
    let text = read(folder.path(), "busload.toml").replace("\"store tile\"", "\"store tiles\"");
    let text = text + "\n[budget.transpose_paded.64x64]\n\"load src\" = { used = 1.0 }\n";
    write(folder.path(), "busload.toml", &text);
    let said = stdout(&busload(folder.path(), &[&["check"], &kernels[..]].concat()).code(1));
    let lines: Vec<_> = said.lines().filter(|line| line.starts_with("busload.toml:")).collect();
    assert_eq!(lines.len(), 4, "{said}");
    assert!(lines[0].contains("store tiles: there is no such access any more; there is load src, "), "{said}");
    assert!(lines[2].contains("transpose_paded on 64x64: there is no such kernel, case or launch any more"), "{said}");
    assert!(
        said.contains(
            "note: transpose_tiled on 64x64, store tile: it has no budget, and costs 128 requests, 0 conflicts"
        )
    );
    let bless = stdout(&busload(folder.path(), &[&["check", "--bless"], &kernels[..]].concat()).success());
    assert_eq!(bless, "busload.toml: 2 added, 0 changed, 3 removed.\n");
    busload(folder.path(), &[&["check", "--require-budgets"], &kernels[..]].concat()).success();
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let folder = folder();
    const TABLE: &str = "[budget.transpose_tiled.\"64x64\"]\n";
    for (text, arguments, reason) in [
        (None, &["check"][..], "busload.toml: there is no such file: write it by `check --bless`"),
        (None, &["check", "--budgets", "own.toml"], "own.toml: there is no such file"),
        (None, &["check", "--budgets", "."], ". is a directory"),
        (Some("[budgets]\n".to_owned()), &["check"], "busload.toml:1: unknown field `budgets`"),
        (Some(format!("{TABLE}\"load src\" = {{ sectors = 4 }}\n")), &["check"], "is it `sectors_per_request`?"),
        (
            Some(format!("{TABLE}\"load src\" = {{ used = 12.5 }}\n")),
            &["check"],
            "busload.toml:2: \"load src\": used = 12.5 is not a share from 0 to 1",
        ),
        (Some(format!("{TABLE}\"load src\" = {{ used = 12.5 }}\n")), &["check", "--bless"], "busload.toml:2: "),
        (
            Some(TABLE.replace("64x64", "64y64") + "src = { used = 1 }\n"),
            &["check", "--kernel", "transpose_tiled"],
            "[budget.\"transpose_tiled\".\"64y64\"]: it is no case of transpose_tiled: write it as in \"1024x1024\"",
        ),
        (
            Some(TABLE.replace("64x64", "64") + "src = { used = 1 }\n"),
            &["check", "--kernel", "transpose_tiled"],
            "it is no case of transpose_tiled",
        ),
        (Some("[launch.\"missing.toml\".a]\nsrc = { used = 1 }\n".to_owned()), &["check"], "missing.toml"),
        (Some(String::new()), &["check", "--kernel", "transpose_paded"], "the nearest are transpose_padded"),
        (Some(String::new()), &["check", "--launch", "a.toml", "--kernel", "copy"], "cannot be used with"),
        (Some(String::new()), &["check", "--launch", "a.toml", "--shape", "64"], "--shape means nothing with --launch"),
        (Some(String::new()), &["check", "--bless", "--sarif", "a"], "cannot be used with"),
        (Some(String::new()), &["check", "--sarif", "-", "--json", "-"], "standard output takes one of them"),
        (Some(String::new()), &["check", "--sarif", "missing/a"], "no file can be written there"),
    ] {
        let file = folder.path().join("busload.toml");
        match text {
            Some(text) => write(folder.path(), "busload.toml", &text),
            None => assert!(!file.exists()),
        }
        let assert = busload(folder.path(), arguments).code(2).stdout("");
        assert!(stderr(&assert).contains(reason), "{arguments:?}: {}", stderr(&assert));
    }
}

/// A kernel of somebody's PTX: lanes load words that stand `STRIDE` bytes apart.
const STRIDED: &str = "\
.version 7.0
.target sm_80
.address_size 64
.visible .entry strided(.param .u64 strided_param_0, .param .u64 strided_param_1)
{
.reg .b32 %r<4>;
.reg .b64 %rd<8>;
ld.param.u64 %rd1, [strided_param_0];
ld.param.u64 %rd2, [strided_param_1];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, STRIDE;
add.s64 %rd4, %rd1, %rd3;
mul.wide.u32 %rd5, %r1, 4;
add.s64 %rd6, %rd2, %rd5;
ld.global.u32 %r2, [%rd4];
st.global.u32 [%rd6], %r2;
ret;
}
";

#[test]
fn launches_of_anybodys_ptx_are_held_to_budgets_too() {
    let folder = folder();
    let path = folder.path();
    let arguments = "arguments = [\n    { name = \"src\", buffer = \"u32\", length = 512, fill = \"ramp\" },\n    \
                     { name = \"dst\", buffer = \"u32\", length = 64, fill = \"uninitialized\" },\n]\n";
    let launch = format!(
        "ptx = \"strided.ptx\"\n[[launch]]\nentry = \"strided\"\nname = \"64 words\"\ngrid = 1\nblock = 64\n{arguments}"
    );
    write(path, "strided.toml", &launch);
    write(path, "strided.ptx", &STRIDED.replace("STRIDE", "4"));
    let bless = busload(path, &["check", "--launch", "strided.toml", "--bless"]).success();
    assert_eq!(stdout(&bless), "busload.toml: 2 added, 0 changed, 0 removed.\n");
    let text = read(path, "busload.toml");
    assert!(
        text.contains(
            "[launch.\"strided.toml\".\"64 words\"]\n\"load src\" = { requests = 2, sectors_per_request = 4.0,"
        ),
        "{text}"
    );
    // The file says which launches it is about.
    assert_eq!(stdout(&busload(path, &["check"]).success()), "busload.toml: 2 budgets hold.\n");
    // A line more, and a worse stride.
    write(path, "strided.ptx", &STRIDED.replace("STRIDE", "32").replace("ret;", "\nret;").replace("{\n", "{\n\n"));
    for arguments in [&["check"][..], &["check", "--launch", "strided.toml"]] {
        let said = stdout(&busload(path, arguments).code(1));
        assert!(
            said.contains(
                "strided.ptx:16:1: 64 words of strided.toml, load src: 32.00 sectors a request (budget 4.00), 2048 bytes moved (budget \
                 256), 12.5 % used (budget 100.0 %)"
            ),
            "{said}"
        );
        assert!(words(&said).contains("the address in `src` rises by 32 bytes"), "{said}");
    }
    // Budgets of the suite's kernels are not its business.
    let both = text + "\n[budget.copy_vec4.4096]\n\"load src\" = { used = 1.0 }\n";
    write(path, "busload.toml", &both);
    busload(path, &["check", "--launch", "strided.toml", "--bless"]).success();
    assert!(read(path, "busload.toml").contains("[budget.copy_vec4.4096]"));
    let twice = format!("{launch}{}", launch.split_once('\n').expect("lines").1);
    write(path, "strided.toml", &twice);
    let assert = busload(path, &["check"]).code(2);
    assert!(stderr(&assert).contains("strided.toml: two launches are called `64 words`"), "{}", stderr(&assert));
}

/// A repository with a crate whose program has the name of the one under test.
struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let own = Self(folder());
        own.git(&["init", "--quiet", "--initial-branch", "main"]);
        let manifest = "[package]\nname = \"stub\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[[bin]]\nname = \"busload-under-test\"\n\
                        path = \"main.rs\"\n\n[workspace]\n";
        write(own.path(), "own/Cargo.toml", manifest);
        write(own.path(), ".gitignore", "target\nCargo.lock\n");
        own
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn inside(&self) -> std::path::PathBuf {
        self.path().join("own")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut git = process::Command::new("git");
        let name = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
        let output = git.args(name).args(arguments).current_dir(self.path()).output().expect("git");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Commits this program under a tag.
    fn commit(&self, tag: &str, main: &str) {
        write(&self.inside(), "main.rs", main);
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", tag]);
        self.git(&["tag", tag]);
    }

    /// That no worktree is left, and nothing else that git would see.
    fn is_clean(&self) {
        assert_eq!(self.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
        assert!(!self.inside().join("target/busload-check/worktree").exists());
        assert_eq!(self.git(&["status", "--porcelain"]), "");
    }
}

/// A program that writes these budgets, as `check --bless` does, if it is asked for them as it should be.
fn writes(budgets: &str) -> String {
    format!(
        "fn main() {{\n    let arguments: Vec<_> = std::env::args().collect();\n    let rest: Vec<_> = arguments[5..].to_vec();\n    \
         assert_eq!(arguments[1..4], [\"check\", \"--bless\", \"--budgets\"]);\n    \
         assert_eq!(rest, [\"--kernel=^transpose_padded$\", \"--shape=64x64\"]);\n    \
         std::fs::write(&arguments[4], {budgets:?}).unwrap();\n}}\n"
    )
}

#[test]
fn a_commit_is_what_this_one_is_compared_with() {
    let budgets = folder();
    let select = ["--kernel", "^transpose_padded$", "--shape", "64"];
    busload(budgets.path(), &[&["check", "--bless"], &select[..]].concat()).success();
    let budgets = read(budgets.path(), "busload.toml");
    let repository = Repository::new();
    repository.commit("same", &writes(&budgets));
    let better = budgets
        .replace("sectors_per_request = 4.0", "sectors_per_request = 2.5")
        .replace("\"store tile\"", "\"store other\"");
    repository.commit("better", &writes(&better));
    repository.commit(
        "unable",
        "fn main() {\n    eprintln!(\"error: unrecognized subcommand 'check'\");\n    std::process::exit(2);\n}\n",
    );
    repository.commit("lost", "fn main() {\n    eprintln!(\"error: no kernel\");\n    std::process::exit(2);\n}\n");
    repository.commit("broken", "fn main() { let x: u32 = \"\"; }\n");
    let here = repository.inside();
    let against = |rev: &str| busload(&here, &[&["check", &format!("--against={rev}")], &select[..]].concat());
    assert_eq!(stdout(&against("same").success()), "Against same: 4 cost the same.\n");
    let said = stdout(&against("better").code(1));
    for part in [
        "transpose_padded on 64x64, load src: 4.00 sectors a request (2.50 at better)\n",
        "transpose_padded on 64x64, store dst: 4.00 sectors a request (2.50 at better)\n",
        "note: transpose_padded on 64x64, store other: there is no such access any more; there is load src, ",
        "note: transpose_padded on 64x64, store tile: it is new, and costs 128 requests, 0 conflicts\n",
        "Against better: 1 cost the same, 2 cost more, 1 gone, 1 new.\n",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for (rev, status, reason) in [
        (
            "unable",
            2,
            "--against unable: `busload-under-test` of that commit has no command `check` yet: name a later commit",
        ),
        ("lost", 2, "--against lost: `busload-under-test check --bless` fails in that commit:\nerror: no kernel"),
        ("broken", 2, "--against broken: `cargo build --release --bin busload-under-test` fails in that commit"),
        ("missing", 2, "--against missing: git knows no such commit here"),
        ("--all", 2, "--against --all: git knows no such commit here"),
    ] {
        let assert = against(rev).code(status).stdout("");
        assert!(stderr(&assert).contains(reason), "{rev}: {}", stderr(&assert));
    }
    let nowhere = folder();
    let assert = busload(nowhere.path(), &[&["check", "--against", "main"], &select[..]].concat()).code(2);
    assert!(stderr(&assert).contains("is in no git checkout"), "{}", stderr(&assert));
    let assert = busload(repository.path(), &[&["check", "--against", "main"], &select[..]].concat()).code(2);
    assert!(stderr(&assert).contains("no crate can be built here"), "{}", stderr(&assert));
    repository.is_clean();
}

#[cfg(target_os = "linux")]
#[test]
fn who_interrupts_a_comparison_leaves_no_worktree() {
    let repository = Repository::new();
    repository.commit(
        "endless",
        "fn main() {\n    std::fs::write(std::env::current_dir().unwrap().join(\"../../begun\"), \"\").unwrap();\n    loop {\n        \
         std::thread::sleep(std::time::Duration::from_secs(1));\n    }\n}\n",
    );
    let mut command = process::Command::new(env!("CARGO_BIN_EXE_busload-under-test"));
    command.current_dir(repository.inside()).env_remove("CARGO_TARGET_DIR");
    command.args(["check", "--against", "endless", "--kernel", "^transpose_padded$", "--shape", "64"]);
    let mut child = command.stderr(process::Stdio::null()).spawn().expect("it starts");
    let begun = std::time::Instant::now();
    // The program of the commit stands in `worktree/own`.
    while !repository.inside().join("target/busload-check/begun").exists() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(300), "the program of the commit does not begin");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let killed = process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill");
    assert!(killed.success());
    let status = child.wait().expect("it ends");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15), "{status}");
    repository.is_clean();
}
