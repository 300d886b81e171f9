//! Fleets of GPUs, measured by processes that real launchers start: what stands for the GPUs makes its times up.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_busload-under-test");

/// A program of this machine; none if it has no such.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/bin".into()]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Processes that end with this.
struct Daemons(Vec<Child>);

impl Drop for Daemons {
    fn drop(&mut self) {
        for child in self.0.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A cluster of Slurm: a controller and two nodes of two processors, all of them on this machine.
struct Slurm {
    folder: TempDir,
    _daemons: Daemons,
}

impl Slurm {
    /// None where Slurm is not installed.
    fn start() -> Option<Self> {
        let programs = ["slurmctld", "slurmd", "srun", "sinfo"].map(program);
        let [Some(controller), Some(node), Some(_), Some(_)] = programs else {
            eprintln!("skipped: Slurm is not installed here (Debian's slurm-wlm)");
            return None;
        };
        let folder = TempDir::new().expect("a folder");
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let host = host.trim().split('.').next().expect("a part");
        let user = Command::new("id").arg("-un").output().expect("a user");
        let user = String::from_utf8(user.stdout).expect("text");
        // All at once, so that no two are the same.
        let ports = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let [port, first, second] = ports.map(|port| port.local_addr().expect("an address").port());
        let at = folder.path().display();
        let configuration = format!(
            "ClusterName=busload\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\nAuthType=auth/none\nCredType=cred/none\n\
             SlurmUser={user}\nSlurmdUser={user}\nStateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool-%n\n\
             SlurmctldPidFile={at}/controller.pid\nSlurmdPidFile={at}/%n.pid\nSlurmctldLogFile={at}/controller.log\n\
             SlurmdLogFile={at}/%n.log\nProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSwitchType=switch/none\n\
             MpiDefault=none\nReturnToService=2\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
             AccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none\n\
             NodeName=n0 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=2 State=UNKNOWN\n\
             NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=2 State=UNKNOWN\n\
             PartitionName=all Nodes=n0,n1 Default=YES MaxTime=INFINITE State=UP\n",
            user = user.trim(),
        );
        std::fs::write(folder.path().join("slurm.conf"), configuration).expect("a file");
        std::fs::create_dir(folder.path().join("state")).expect("a folder");
        let start = |program: &Path, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.arg("-D").args(arguments).env("SLURM_CONF", folder.path().join("slurm.conf"));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a daemon")
        };
        let daemons = vec![start(&controller, &[]), start(&node, &["-N", "n0"]), start(&node, &["-N", "n1"])];
        let slurm = Self { folder, _daemons: Daemons(daemons) };
        let begun = Instant::now();
        loop {
            let nodes = slurm.run("sinfo", &["--noheader", "--format=%T %D"]);
            if String::from_utf8_lossy(&nodes.stdout).trim() == "idle 2" {
                return Some(slurm);
            }
            if begun.elapsed() > Duration::from_secs(60) {
                let log = |name: &str| std::fs::read_to_string(slurm.folder.path().join(name)).unwrap_or_default();
                panic!("no two nodes: {nodes:?}\n{}\n{}", log("controller.log"), log("n0.log"));
            }
            sleep(Duration::from_millis(200));
        }
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program(name).expect("it was there"));
        command.args(arguments).env("SLURM_CONF", self.folder.path().join("slurm.conf"));
        command.current_dir(self.folder.path()).output().expect("a program")
    }
}

/// What each process runs: `rank` is the variable with its number, and the rank that is `slow` has a slow GPU.
fn script(rank: &str, slow: u32, folder: &str) -> String {
    format!(
        "slow=; [ \"${rank}\" = {slow} ] && slow=,slow=copy_vec4; exec {PROGRAM} bench --on mock --mock devices=2,seed=${rank}$slow \
         --kernel '^copy_' --elements 1048576,1000 --out-dir {folder}"
    )
}

/// What `fleet` says of a folder.
fn fleet(at: &Path, arguments: &[&str], status: i32) -> String {
    let output = Command::new(PROGRAM).arg("fleet").args(arguments).current_dir(at).output().expect("a program");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{text}");
    text
}

fn ok(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn under_slurm_each_process_measures_a_gpu_and_the_slow_one_is_named() {
    let Some(slurm) = Slurm::start() else { return };
    let at = slurm.folder.path();
    let srun = |slow, folder: &str| {
        let script = script("SLURM_PROCID", slow, folder);
        slurm.run("srun", &["-N2", "-n4", "--ntasks-per-node=2", "bash", "-c", &script])
    };
    ok(&srun(9, "well"));
    let files = ["n0-rank0.json", "n0-rank1.json", "n1-rank2.json", "n1-rank3.json"];
    for (rank, file) in files.iter().enumerate() {
        let text = std::fs::read_to_string(at.join("well").join(file)).expect(file);
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let process = &report["provenance"]["process"];
        assert_eq!((&process["rank"], &process["of"]), (&rank.into(), &4.into()));
        assert_eq!(report["machine"]["device"], rank % 2, "each has a GPU of its own");
    }
    let said = fleet(at, &["well"], 0);
    assert!(said.contains("4 GPUs: none to look at."), "{said}");

    ok(&srun(2, "slow"));
    let said = fleet(at, &["slow", "--json", "fleet.json", "--csv", "fleet.csv", "--html", "fleet.html"], 1);
    assert!(said.contains("n1, rank 2: copy_vec4 on "), "{said}");
    assert!(said.contains("4 GPUs: 1 to look at."), "{said}");
    let text = std::fs::read_to_string(at.join("fleet.json")).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let slowest = &report["fleet"]["gpus"][0];
    assert_eq!(slowest["process"]["rank"], 2);
    let outliers = slowest["outliers"].as_array().expect("a list");
    assert!(!outliers.is_empty() && outliers.iter().all(|outlier| outlier["kernel"] == "copy_vec4"), "{slowest}");
    assert!(outliers[0]["z_score"].as_f64().is_some_and(|z| z > 3.5), "{slowest}");
    let kernels = report["fleet"]["kernels"].as_array().expect("a list");
    assert_eq!(kernels[0]["kernel"], "copy_vec4", "the kernel that tells them apart stands first");
    assert_eq!(kernels[0]["gpus"][0]["file"], slowest["file"]);
    let page = std::fs::read_to_string(at.join("fleet.html")).expect("a page");
    assert!(page.contains("<h1>A fleet of 4 GPUs, 1 to look at</h1>") && page.contains("n1, rank 2"), "{page}");
    let both = fleet(at, &["slow", "--json", "-", "--html", "-"], 2);
    assert!(both.contains("--json - --html -: standard output takes one of them"), "{both}");
    let csv = std::fs::read_to_string(at.join("fleet.csv")).expect("a table");
    assert_eq!(csv.lines().count(), 5, "{csv}");
    // Whoever holds a GPU to less is content.
    fleet(at, &["slow", "--slower", "30%"], 0);

    std::fs::remove_file(at.join("slow/n0-rank1.json")).expect("a file");
    let said = fleet(at, &["slow", "--slower", "30%"], 1);
    assert!(said.contains("No results of rank 1."), "{said}");
}

#[test]
fn under_open_mpi_each_process_measures_a_gpu_too() {
    let Some(mpirun) = program("mpirun") else {
        eprintln!("skipped: Open MPI is not installed here (Debian's openmpi-bin)");
        return;
    };
    let folder = TempDir::new().expect("a folder");
    let mut command = Command::new(mpirun);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(["--oversubscribe", "-n", "2", "bash", "-c", &script("OMPI_COMM_WORLD_RANK", 1, "runs")]);
    ok(&command.current_dir(folder.path()).output().expect("a program"));
    let said = fleet(folder.path(), &["runs"], 1);
    assert!(said.contains("rank 1: copy_vec4 on ") && said.contains("2 GPUs: 1 to look at."), "{said}");
}

#[test]
fn what_is_no_fleet_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    assert!(fleet(at, &["missing"], 2).contains("missing: no folder that can be read"));
    std::fs::create_dir(at.join("empty")).expect("a folder");
    assert!(fleet(at, &["empty"], 2).contains("`busload bench --out-dir empty` writes a file a GPU there"));
    std::fs::write(at.join("empty/other.json"), "{}").expect("a file");
    assert!(fleet(at, &["empty"], 2).contains("other.json: not what `bench --json` writes"));
    assert!(fleet(at, &["empty", "--slower", "x"], 2).contains("give a number from 0 to 100"));
    // Three processes of a machine that has two GPUs.
    let mut third = Command::new(PROGRAM);
    third.args(["bench", "--on", "mock", "--mock", "devices=2", "-k", "copy_vec4", "--out-dir", "runs"]);
    third.envs([("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "3"), ("OMPI_COMM_WORLD_LOCAL_RANK", "2")]);
    let output = third.current_dir(at).output().expect("a program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("rank 2 is number 2 on its machine, and sees 2 GPUs"), "{said}");
    assert!(!at.join("runs").exists());
}

#[test]
fn a_process_that_measures_several_gpus_writes_a_file_of_each() {
    let folder = TempDir::new().expect("a folder");
    let bench = |rank: &str, more: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command
            .current_dir(folder.path())
            .args(["bench", "--on", "mock", "--mock"])
            .arg(format!("devices=2,seed={rank}"));
        command.args(["-k", "^copy_vec4$", "--elements", "64", "-q"]).args(more);
        command.env("SLURM_PROCID", rank).env("SLURM_NTASKS", "2").env("SLURM_LOCALID", "0");
        command.env("SLURMD_NODENAME", format!("node{rank}")).output().expect("a program")
    };
    for rank in ["0", "1"] {
        ok(&bench(rank, &["--device", "all", "--out-dir", "runs"]));
    }
    let mut files: Vec<_> = folder.path().join("runs").read_dir().expect("a folder").flatten().collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    let names: Vec<_> = files.iter().map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["0", "1"].map(|rank| [0, 1].map(|gpu| format!("node{rank}-rank{rank}-gpu{gpu}.json"))).concat());
    let said = fleet(folder.path(), &["runs"], 0);
    assert!(said.contains("4 GPUs: none to look at."), "{said}");
    let refused = bench("0", &["--device", "all", "--csv", "-"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--csv -: standard output takes the report of one GPU"));
}

#[test]
fn what_makes_gpus_hard_to_compare_is_said() {
    let folder = TempDir::new().expect("a folder");
    let runs = folder.path().join("runs");
    for (seed, driver) in [("1", "12.8"), ("2", "13.0")] {
        let mut command = Command::new(PROGRAM);
        command.args(["bench", "--on", "mock", "--mock"]).arg(format!("seed={seed}"));
        command.args(["-k", "^copy_vec4$", "--elements", "64", "-q", "--out-dir"]).arg(&runs);
        ok(&command.output().expect("a program"));
        let file = runs
            .read_dir()
            .expect("a folder")
            .flatten()
            .map(|file| file.path())
            .find(|file| file.file_name().is_some_and(|name| name.to_string_lossy().ends_with("-gpu0.json")));
        let file = file.expect("a report");
        let mut report: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("text")).expect("JSON");
        report["machine"]["driver"] = driver.into();
        report["machine"]["id"] = driver.into();
        std::fs::write(runs.join(format!("{driver}.json")), report.to_string()).expect("a file");
        std::fs::remove_file(file).expect("it is there");
    }
    let said = fleet(folder.path(), &["runs"], 0);
    assert!(said.contains("Not the same driver on all busload mock GPU: 12.8"), "{said}");
    // Nothing measured is nothing to rely on.
    let file = runs.join("12.8.json");
    let mut report: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("text")).expect("JSON");
    report["results"] = Value::Array(Vec::new());
    std::fs::write(&file, report.to_string()).expect("a file");
    let said = fleet(folder.path(), &["runs", "--quiet"], 1);
    assert!(said.contains("nothing was measured on it"), "{said}");
}
