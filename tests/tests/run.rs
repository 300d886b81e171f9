//! `busload run`, and the commands that take a build of the kernels: as a person or a script meets them.

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use busload::ptx::EMBEDDED;
use busload_tests::root;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Twice what `src` holds, by `dst`. Lines 20 to 22 are those of its accesses, or `scale.cu:4`.
const SCALE: &str = "\
.version 7.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 scale_param_0, .param .u64 scale_param_1, .param .u32 scale_param_2, .param .f32 scale_param_3)
.maxntid 256, 1, 1
{
.reg .pred %p<2>;
.reg .b32 %r<6>;
.reg .f32 %f<4>;
.reg .b64 %rd<8>;
ld.param.u64 %rd1, [scale_param_0];
ld.param.u64 %rd2, [scale_param_1];
ld.param.u32 %r1, [scale_param_2];
ld.param.f32 %f3, [scale_param_3];
mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
mad.lo.u32 %r5, %r2, %r3, %r4;
setp.ge.u32 %p1, %r5, %r1;
@%p1 bra end;
cvta.to.global.u64 %rd3, %rd1; cvta.to.global.u64 %rd4, %rd2; mul.wide.u32 %rd5, %r5, 4; add.s64 %rd6, %rd3, %rd5; add.s64 %rd7, %rd4, %rd5;
.loc 1 4 20
ld.global.f32 %f1, [%rd6]; mul.f32 %f2, %f1, %f3;
st.global.f32 [%rd7], %f2;
end:
ret;
}
.file 1 \"/somewhere/scale.cu\"
";

const LAUNCH: &str = "\
ptx = \"scale.ptx\"
[[launch]]
entry = \"scale\"
grid = 4
block = 32
arguments = [
    { name = \"src\", buffer = \"f32\", length = 100, fill = \"ramp\" },
    { name = \"dst\", buffer = \"f32\", length = 100, fill = \"uninitialized\" },
    { value = 100 },
    { value = 0.5 },
]
";

fn busload(folder: &Path, arguments: &[&str]) -> Assert {
    Command::new(env!("CARGO_BIN_EXE_busload-under-test")).current_dir(folder).args(arguments).assert()
}

/// A folder with the module, and this launch file.
fn folder(launch: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    fs::write(folder.path().join("scale.ptx"), SCALE).expect("a file");
    fs::write(folder.path().join("scale.toml"), launch).expect("a file");
    folder
}

/// A text as words, however its lines are broken.
fn words(text: &[u8]) -> String {
    String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn json(folder: &Path, status: i32, arguments: &[&str]) -> Value {
    let assert = busload(folder, &[arguments, &["--json", "-"]].concat()).code(status);
    serde_json::from_slice(&assert.get_output().stdout).expect("standard output is JSON alone")
}

#[test]
fn what_is_described_runs() {
    let folder = folder("");
    let described = busload(folder.path(), &["run", "--describe", "scale.ptx"]).success().get_output().stdout.clone();
    let text = String::from_utf8(described).expect("text");
    for part in
        ["entry = \"scale\"", "a pointer, read as f32", "a pointer, written as f32", ".f32: a floating-point number"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    busload(folder.path(), &["run", "--describe", "scale.ptx", "-o", "scale.toml"]).success();
    busload(folder.path(), &["run", "scale.ptx"]).success();
    busload(folder.path(), &["run", "scale.toml"]).success();
}

#[test]
fn counts_are_by_source_line_and_the_same_on_any_number_of_threads() {
    let folder = folder(LAUNCH);
    let report = json(folder.path(), 0, &["run", "scale.toml"]);
    let result = &report["results"][0];
    assert_eq!((&report["command"], &result["kernel"], &result["on"]), (&"run".into(), &"scale".into(), &"ptx".into()));
    let sites = result["sites"].as_array().expect("sites");
    let of = |site: &Value| (site["op"].as_str().map(str::to_owned), site["line"].as_u64(), site["requests"].as_u64());
    let expected = ["load", "store"].map(|op| (Some(op.to_owned()), Some(4), Some(4)));
    assert_eq!(sites.iter().map(of).collect::<Vec<_>>(), expected);
    assert_eq!(sites[0]["file"], "/somewhere/scale.cu");
    for threads in ["1", "3"] {
        assert_eq!(json(folder.path(), 0, &["run", "scale.toml", "--threads", threads])["results"], report["results"]);
    }
    let sampled = json(folder.path(), 0, &["run", "scale.toml", "--max-blocks", "1"]);
    assert_eq!(sampled["results"][0]["blocks"]["total"], 4);
    assert!(sampled["results"][0]["blocks"]["simulated"].as_u64() < Some(4));
}

#[test]
fn outputs_are_written_and_compared() {
    let written = LAUNCH.replace("\"uninitialized\"", "\"uninitialized\", write = \"out.npy\"");
    let folder = folder(&written);
    busload(folder.path(), &["run", "scale.toml"]).success();
    let array = busload::foreign::npy::read(&folder.path().join("out.npy")).expect("an array");
    assert_eq!((array.descr.as_str(), &array.shape[..]), ("<f4", &[100][..]));
    assert!((0..100).all(|i| f32::from_bits(array.bits(i, 4) as u32) == 0.5 * i as f32));
    let expects =
        |more: &str| LAUNCH.replace("\"uninitialized\"", &format!("\"uninitialized\", expect = \"out.npy\"{more}"));
    let launch = |text: String| fs::write(folder.path().join("scale.toml"), text).expect("a file");
    launch(expects(""));
    let report = json(folder.path(), 0, &["run", "scale.toml"]);
    assert_eq!(
        (&report["results"][0]["verified"], &report["results"][0]["compared"][0]["elements"]),
        (&true.into(), &100.into())
    );
    launch(expects("").replace("0.5", "0.51"));
    let report = json(folder.path(), 1, &["run", "scale.toml"]);
    assert_eq!(
        (&report["results"][0]["compared"][0]["wrong"], &report["results"][0]["error"]["kind"]),
        (&99.into(), &"comparison".into())
    );
    launch(expects(", relative = 0.03").replace("0.5", "0.51"));
    busload(folder.path(), &["run", "scale.toml"]).success();
    for (launch_of, reason) in [
        (
            expects("").replace("\"f32\", length = 100, fill = \"uninit", "\"i32\", length = 100, fill = \"uninit"),
            "elements `<f4`, and the buffer i32",
        ),
        (
            expects("").replace("length = 100, fill = \"uninit", "length = 101, fill = \"uninit"),
            "100 elements, and the buffer 101",
        ),
    ] {
        launch(launch_of);
        let said = words(&busload(folder.path(), &["run", "scale.toml"]).code(2).stdout("").get_output().stderr);
        assert!(said.contains("scale.toml:8: argument 1") && said.contains(reason), "{said}");
    }
    launch(LAUNCH.replace("buffer = \"f32\", length = 100, fill = \"ramp\"", "npy = \"out.npy\""));
    busload(folder.path(), &["run", "scale.toml"]).success();
    // What no block wrote is wrong, whatever is expected of it.
    launch(expects(", absolute = 1e9").replace("grid = 4", "grid = 3"));
    let assert = busload(folder.path(), &["run", "scale.toml"]).code(1);
    let text = words(&assert.get_output().stdout);
    assert!(text.contains("4 of 100 elements of `dst`") && text.contains("[96] is not written, expected 48"), "{text}");
}

#[test]
fn findings_name_the_line_and_end_with_status_1() {
    let folder = folder(&LAUNCH.replace("length = 100, fill = \"ramp\"", "length = 99, fill = \"ramp\""));
    let report = json(folder.path(), 1, &["run", "scale.toml"]);
    let finding = &report["results"][0]["findings"][0];
    assert_eq!(
        (&finding["kind"], &finding["at"]["line"], &finding["block"][0]),
        (&"out of bounds".into(), &4.into(), &3.into())
    );
    let text = busload(folder.path(), &["run", "scale.toml"]).code(1);
    assert!(words(&text.get_output().stdout).contains("out of bounds"));
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let line = |from: &str, to: &str| LAUNCH.replace(from, to);
    for (launch, arguments, reasons) in [
        (
            line("\"scale\"", "\"scael\""),
            &[][..],
            &["scale.toml:3:", "`entry` = \"scael\"", "the nearest is `scale`"][..],
        ),
        (line("grid = 4", "grid = [1, 65536]"), &[], &["scale.toml:4:", "65536 blocks along y"]),
        (line("grid = 4", "gird = 4"), &[], &["scale.toml:4:", "is it `grid`?"]),
        (line("block = 32", "block = [32, 64]"), &[], &["scale.toml:5:", "2048 threads"]),
        (line("block = 32", "block = 512"), &[], &["scale.toml:5:", "256 at most (`.maxntid`)"]),
        (line("block = 32", "block = 32\nshared = 300000"), &[], &["scale.toml:6:", "300000 bytes", "232448"]),
        (
            line("block = 32", "block = 32\nshared = 200000"),
            &["--chip", "a100-80"],
            &["200000 bytes of shared memory", "A100"],
        ),
        (line("    { value = 0.5 },\n", ""), &[], &["takes 4, and 3 are given", "--describe"]),
        (line("    { value = 0.5 },\n", "{ value = 0.5 }, { value = 1 }"), &[], &["takes 4, and 5 are given"]),
        (line("{ value = 100 }", "{ value = 1.5 }"), &[], &["scale.toml:9:", "argument 2", "has a fraction"]),
        (
            line("{ value = 100 }", "{ value = 4294967296 }"),
            &[],
            &["scale.toml:9:", "outside -2147483648 to 4294967295"],
        ),
        (line("{ value = 100 }", "{ bytes = \"00\" }"), &[], &["`bytes` has 1, and the parameter 4"]),
        (line("{ value = 100 }", "{ bytes = \"0x\" }"), &[], &["hexadecimal"]),
        (
            line("{ value = 100 }", "{ buffer = \"f32\", length = 1, fill = 0 }"),
            &[],
            &["a buffer's address has 8 bytes"],
        ),
        (line("{ value = 100 }", "{ }"), &[], &["scale.toml:9:", "it states nothing"]),
        (
            line("\"f32\", length = 100, fill = \"ramp\"", "\"fp32\", length = 100, fill = 0"),
            &[],
            &["`buffer` = \"fp32\"", "is it f32?"],
        ),
        (line("length = 100, fill = \"ramp\"", "fill = \"ramp\""), &[], &["scale.toml:7:", "a buffer has a `length`"]),
        (line("length = 100, fill = \"ramp\"", "length = 0, fill = \"ramp\""), &[], &["`length` = 0"]),
        (line("\"ramp\"", "\"rmap\""), &[], &["`fill` = \"rmap\"", "is it ramp?"]),
        (line("\"ramp\"", "\"ramp\", seed = 3"), &[], &["`seed` means nothing for a ramp"]),
        (line("\"ramp\"", "\"noise\", range = [1, -1]"), &[], &["`range` is [least, greatest]"]),
        (line("name = \"dst\"", "name = \"src\""), &[], &["`name` = \"src\" is another argument's"]),
        (line("\"ramp\"", "\"ramp\", expect = \"none.npy\""), &[], &["`expect`", "none.npy"]),
        (line("\"ramp\"", "\"ramp\", expect = \"scale.ptx\""), &[], &["no array of NumPy"]),
        (line("\"ramp\"", "\"ramp\", absolute = -1"), &[], &["`absolute` = -1 is no tolerance"]),
        (line("\"ramp\"", "\"ramp\", write = \"none/out.npy\""), &[], &["`write`", "no file can be written there"]),
        (line("ptx = \"scale.ptx\"\n", ""), &[], &["it names no module"]),
        (line("scale.ptx", "none.ptx"), &[], &["none.ptx"]),
        (
            LAUNCH.to_owned() + "variables = [{ name = \"w\", buffer = \"f32\", length = 1, fill = 0 }]\n",
            &[],
            &["names no variable `w`"],
        ),
        (LAUNCH.to_owned(), &["--samples", "3"], &["--samples means nothing without --on gpu"]),
        (LAUNCH.to_owned(), &["--entry", "scael"], &["--entry scael", "`scale`"]),
        (LAUNCH.to_owned(), &["--chip", "h20"], &["h20"]),
        (LAUNCH.to_owned(), &["--launch", "other.toml"], &["is a launch file already"]),
        (LAUNCH.to_owned(), &["--html", "-", "--json", "-"], &["standard output takes one of them"]),
        (LAUNCH.to_owned(), &["--describe"], &["scale.toml"]),
        (String::new(), &[], &["no `[[launch]]`"]),
    ] {
        let folder = folder(&launch);
        let assert = busload(folder.path(), &[&["run", "scale.toml"], arguments].concat()).code(2).stdout("");
        let said = words(&assert.get_output().stderr);
        assert!(
            reasons.iter().all(|reason| said.contains(reason)) && !said.contains("panicked"),
            "{reasons:?}: {said}"
        );
        assert_eq!(folder.path().read_dir().expect("the folder").count(), 2, "{said}");
    }
}

#[test]
fn what_is_not_carried_out_is_named_with_its_line_before_anything_runs() {
    let folder = folder(LAUNCH);
    let ptx = SCALE.replace(
        "mul.f32 %f2, %f1, %f3;",
        "tex.1d.v4.f32.s32 {%f2, %f2, %f2, %f2}, [%rd6, {%r1}]; suq.width.b32 %r1, [%rd6];",
    );
    fs::write(folder.path().join("scale.ptx"), ptx).expect("a file");
    let said = words(&busload(folder.path(), &["run", "scale.toml"]).code(2).stdout("").get_output().stderr);
    assert!(said.contains("scale.ptx: `scale`: line 21, column 28: `tex.1d.v4.f32.s32`"), "{said}");
    assert!(said.contains("one other instruction"), "{said}");
    fs::write(folder.path().join("scale.ptx"), &SCALE[..300]).expect("a file");
    let said = words(&busload(folder.path(), &["run", "scale.toml"]).code(2).stdout("").get_output().stderr);
    assert!(said.contains("scale.ptx: line 11, column"), "{said}");
}

#[test]
fn a_page_shows_the_source_if_it_is_found_and_else_the_ptx() {
    let folder = folder(LAUNCH);
    let page = || {
        busload(folder.path(), &["run", "scale.toml", "--html", "page.html"]).success();
        fs::read_to_string(folder.path().join("page.html")).expect("a page")
    };
    let without = page();
    assert!(without.contains("st.global.f32 [%rd7], %f2;") && !without.contains("dst[i] ="), "the PTX");
    fs::write(folder.path().join("scale.cu"), "// 1\n// 2\n// 3\n    dst[i] = by * src[i];\n").expect("a file");
    let with = page();
    assert!(
        with.contains("dst[i] = by * src[i];") && !with.contains("st.global.f32"),
        "the source beside the launch file"
    );
}

#[test]
fn a_time_is_predicted_of_a_chip() {
    let folder = folder(LAUNCH);
    let report = json(folder.path(), 0, &["run", "scale.toml", "--chip", "h200"]);
    let predicted = &report["results"][0]["predicted"];
    assert!(predicted["predicted_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{predicted}");
    let text = busload(folder.path(), &["run", "scale.toml", "--chip", "h200"]).success();
    assert!(words(&text.get_output().stdout).contains("Predicted on"));
}

#[test]
fn a_thread_that_does_not_end_is_stopped() {
    let folder = folder(LAUNCH);
    fs::write(folder.path().join("scale.ptx"), SCALE.replace("ret;", "bra end;")).expect("a file");
    let report = json(folder.path(), 1, &["run", "scale.toml", "--max-steps", "1000"]);
    assert_eq!(report["results"][0]["findings"][0]["kind"], "does not end");
}

#[test]
fn the_example_in_the_documentation_is_what_is_printed() {
    let text = fs::read_to_string(root().join("docs/running-your-ptx.md")).expect("the page");
    let (_, example) = text.split_once("$ busload run tests/foreign/histogram_shared.toml\n").expect("the example");
    let (example, _) = example.split_once("```").expect("its end");
    let printed =
        busload(root(), &["run", "tests/foreign/histogram_shared.toml"]).success().get_output().stdout.clone();
    let printed = String::from_utf8(printed).expect("text");
    assert!(example.lines().count() > 8 && printed.starts_with(example), "{printed}");
}

/// One kernel of the committed build as a module of its own, without its line table.
fn build_of(kernel: &str) -> String {
    let head = EMBEDDED.find(".version").expect("a version");
    let entry = EMBEDDED.find(&format!(".visible .entry {kernel}(")).expect("an entry");
    let end = entry + EMBEDDED[entry..].find("\n}").expect("an end") + 2;
    let first = EMBEDDED[head..].find(".visible").expect("an entry") + head;
    let text = format!("{}{}\n", &EMBEDDED[head..first], &EMBEDDED[entry..end]);
    text.lines().filter(|line| !line.trim_start().starts_with(".loc")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_build_of_the_suite_is_verified_and_counted_by_its_own_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = build_of("copy_vec4");
    let file = folder.path().join("own.ptx");
    fs::write(&file, &own).expect("a file");
    let arguments = ["--kernel", "^copy_vec", "--elements", "1000", "--ptx", "own.ptx"];
    let report = json(folder.path(), 0, &[&["simulate"], &arguments[..]].concat());
    let results = report["results"].as_array().expect("results");
    assert_eq!(results.len(), 1, "it has one of the kernels");
    assert_eq!(
        (&results[0]["kernel"], &results[0]["on"], &results[0]["verified"]),
        (&"copy_vec4".into(), &"ptx".into(), &true.into())
    );
    assert_eq!(results[0]["sites"][0]["file"], "own.ptx");
    let line = results[0]["sites"][0]["line"].as_u64().expect("a line") as usize;
    assert!(own.lines().nth(line - 1).is_some_and(|line| line.contains("ld.global")), "{line}");
    let verified = json(folder.path(), 0, &[&["verify", "--on", "sim"], &arguments[..]].concat());
    assert_eq!(verified["results"].as_array().map(Vec::len), Some(1));
    let explained =
        busload(folder.path(), &["explain", "copy_vec4", "--elements", "1000", "--ptx", "own.ptx"]).success();
    assert!(words(&explained.get_output().stdout).contains("ld.global"));
    let predicted = json(folder.path(), 0, &[&["predict"], &arguments[..]].concat());
    assert_eq!(predicted["results"].as_array().map(Vec::len), Some(1));

    let store = own.lines().find(|line| line.contains("st.global")).expect("a store");
    fs::write(&file, own.replace(store, "")).expect("a file");
    let wrong = json(folder.path(), 1, &[&["simulate"], &arguments[..]].concat());
    assert_eq!(wrong["results"][0]["error"]["kind"], "verification");
    fs::write(&file, own.replace(store, "suq.width.b32 %r1, [%rd1];")).expect("a file");
    for command in ["simulate", "verify", "predict"] {
        let said = words(
            &busload(folder.path(), &[&[command], &arguments[..]].concat()).code(2).stdout("").get_output().stderr,
        );
        assert!(said.contains("own.ptx: `copy_vec4`: line") && said.contains("`suq.width.b32`"), "{command}: {said}");
    }
    fs::write(&file, own.replace("copy_vec4", "other")).expect("a file");
    let said = words(&busload(folder.path(), &[&["simulate"], &arguments[..]].concat()).code(2).get_output().stderr);
    assert!(said.contains("it has none of the kernels asked for"), "{said}");
}

#[test]
fn the_committed_build_counts_as_the_source_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["simulate", "--kernel", "^transpose_(naive|padded)$", "--shape", "97x65"];
    let [source, ptx] = ["source", "ptx"].map(|machine| {
        let report = json(folder.path(), 0, &[&arguments[..], &["--machine", machine]].concat());
        let results = report["results"].as_array().expect("results").clone();
        results.into_iter().map(|result| (result["sites"].clone(), result["counts_stated"].clone())).collect::<Vec<_>>()
    });
    assert_eq!(source, ptx);
    assert_eq!(source.len(), 2);
    let verified =
        json(folder.path(), 0, &["verify", "--on", "sim", "--kernel", "^transpose_naive$", "--shape", "97x65"]);
    let on: Vec<_> =
        verified["results"].as_array().expect("results").iter().map(|result| result["on"].clone()).collect();
    assert_eq!(on, ["simulator", "ptx"]);
}
