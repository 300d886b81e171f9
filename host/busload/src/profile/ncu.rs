//! Nsight Compute: runs this program under it, and reads what it counted.

use super::{Cost, Place};
use gpu::suite::Operation;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where Nsight Compute is looked for, after the folders of `PATH`.
const INSTALLED: &str = "/usr/local/cuda/bin/ncu";

/// Why there are no counters.
#[derive(Debug, thiserror::Error)]
pub enum NcuError {
    /// It is not installed.
    #[error("{0} was not found: install Nsight Compute, or name its program with --ncu")]
    NotFound(String),
    /// The driver keeps counters from ordinary users.
    #[error(
        "this user may not read the GPU's counters: run as root, or load the driver with \
         NVreg_RestrictProfilingToAdminUsers=0 (https://developer.nvidia.com/ERR_NVGPUCTRPERM)"
    )]
    Permission,
    /// It failed.
    #[error("{program} failed: {said}")]
    Failed {
        /// What was run.
        program: String,
        /// The end of what it said.
        said: String,
    },
    /// Its output is not what this version of busload reads.
    #[error("the output of {program} is not understood: {problem}")]
    Output {
        /// What was run.
        program: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It saw other launches than were asked for.
    #[error("{expected} launches were to be profiled, and {found} were, or in another order")]
    OtherLaunches {
        /// Launches asked for.
        expected: usize,
        /// Launches of these kernels seen.
        found: usize,
    },
    /// A file could not be made.
    #[error("a temporary file: {0}")]
    File(#[from] std::io::Error),
}

/// One launch as the hardware counted it.
pub(super) struct Launch {
    /// The kernel.
    pub(super) kernel: String,
    /// Counters of the whole launch.
    pub(super) metrics: BTreeMap<String, f64>,
    /// What its instructions that access memory cost.
    pub(super) accesses: BTreeMap<Place, Cost>,
}

/// Runs `verify` of this program with `arguments` under Nsight Compute: what it says of itself, and every launch in order,
/// with its accesses if they are to be counted `by_instruction`.
pub(super) fn launches(
    profiler: Option<&Path>,
    metrics: &[&str],
    arguments: &[OsString],
    by_instruction: bool,
) -> Result<(String, Vec<Launch>), NcuError> {
    let ncu = Ncu { program: profiler.map_or_else(find, Path::to_owned) };
    let version = ncu.run(["--version".as_ref()])?;
    let version = version.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned();
    let folder = tempfile::tempdir()?;
    let report = folder.path().join("busload.ncu-rep");
    let (report, metrics) = (report.as_os_str(), metrics.join(","));
    let ourselves = std::env::current_exe()?;
    let mut command: Vec<&OsStr> = ["--clock-control", "none"].map(OsStr::new).to_vec();
    if by_instruction {
        command.extend(["--section", "SourceCounters"].map(OsStr::new));
    }
    command.extend(["--metrics".as_ref(), metrics.as_ref(), "--export".as_ref(), report, ourselves.as_os_str()]);
    command.extend(["verify", "--once", "--on", "gpu"].map(OsStr::new));
    command.extend(arguments.iter().map(OsString::as_os_str));
    ncu.run(command)?;
    let page = |page: &[&str]| {
        let import = ["--import".as_ref(), report, "--csv".as_ref(), "--page".as_ref()];
        ncu.run(import.into_iter().chain(page.iter().map(OsStr::new)))
    };
    let wrong = |problem| NcuError::Output { program: ncu.name(), problem };
    let totals = totals(&page(&["raw"])?).map_err(wrong)?;
    if !by_instruction {
        let launch = |(kernel, metrics)| Launch { kernel, metrics, accesses: BTreeMap::new() };
        return Ok((version, totals.into_iter().map(launch).collect()));
    }
    let lines = lines(&page(&["source", "--print-source", "cuda,sass"])?);
    let instructions = page(&["source", "--print-source", "sass"])?;
    let instructions = a_launch_each(&instructions, totals.len()).map_err(wrong)?;
    let accesses =
        instructions.into_iter().map(|page| accesses(page, &lines)).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    let launch = |((kernel, metrics), accesses)| Launch { kernel, metrics, accesses };
    Ok((version, totals.into_iter().zip(accesses).map(launch).collect()))
}

/// The first `ncu` in the folders of `PATH`, or where the toolkit puts it.
fn find() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("ncu")).find(|program| program.is_file());
    found.unwrap_or_else(|| INSTALLED.into())
}

struct Ncu {
    program: PathBuf,
}

impl Ncu {
    fn name(&self) -> String {
        self.program.display().to_string()
    }

    /// What it prints, if it succeeds.
    fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a OsStr>) -> Result<String, NcuError> {
        let output = Command::new(&self.program).args(arguments).output().map_err(|error| match error.kind() {
            ErrorKind::NotFound => NcuError::NotFound(self.name()),
            _ => NcuError::Failed { program: self.name(), said: error.to_string() },
        })?;
        self.judge(output)
    }

    fn judge(&self, Output { status, stdout, stderr }: Output) -> Result<String, NcuError> {
        let stdout = String::from_utf8_lossy(&stdout).into_owned();
        if stdout.contains("ERR_NVGPUCTRPERM") {
            return Err(NcuError::Permission);
        }
        if !status.success() {
            let said = stdout + &String::from_utf8_lossy(&stderr);
            let last: Vec<_> = said.trim_end().lines().rev().take(8).collect();
            let said = last.into_iter().rev().collect::<Vec<_>>().join("\n");
            return Err(NcuError::Failed { program: self.name(), said });
        }
        Ok(stdout)
    }
}

/// The kernels' source line of each instruction, by its address, from the page of sources with their instructions.
///
/// A line of it is a file (`"File Path","…"`), a source line (`"12","…",…`, its text as it is, quotes and all) or an
/// instruction beneath it (`"","","0x…",…`).
fn lines(page: &str) -> BTreeMap<String, (String, u32)> {
    let mut lines = BTreeMap::new();
    let (mut file, mut line) = (String::new(), 0);
    for row in page.lines() {
        if let Some(path) = row.strip_prefix("\"File Path\",\"") {
            path.trim_end_matches('"').clone_into(&mut file);
        } else if let Some(rest) = row.strip_prefix("\"\",\"\",\"0x") {
            let address = format!("0x{}", rest.split('"').next().unwrap_or_default());
            if file.starts_with("gpu/src/kernels/") {
                lines.insert(address, (file.clone(), line));
            }
        } else if let Some((number, _)) = row.strip_prefix('"').and_then(|row| row.split_once('"')) {
            line = number.parse().unwrap_or(line);
        }
    }
    lines
}

type Totals = Vec<(String, BTreeMap<String, f64>)>;

/// Each launch's kernel and its counters, from the page of raw values: names, units, and then a row for each launch.
fn totals(page: &str) -> Result<Totals, String> {
    let mut rows = records(page);
    let names = rows.next().ok_or("the page of raw values is empty")?;
    let kernel = names.iter().position(|name| name == "Kernel Name").ok_or("no column `Kernel Name`")?;
    let units = rows.next();
    if units.is_none_or(|units| units.get(kernel).is_some_and(|unit| !unit.is_empty())) {
        return Err("the page of raw values has no row of units".to_owned());
    }
    let launch = |row: csv::StringRecord| {
        let metrics = names.iter().zip(&row).filter_map(|(name, value)| Some((name.to_owned(), number(value)?)));
        (row.get(kernel).unwrap_or_default().to_owned(), metrics.collect())
    };
    Ok(rows.map(launch).collect())
}

/// The page of instructions, launch by launch: each begins with a row that names its kernel. Nsight Compute prints most
/// of them twice, one after the other.
fn a_launch_each(page: &str, launches: usize) -> Result<Vec<&str>, String> {
    const BEGIN: &str = "\"Kernel Name\",";
    let parts: Vec<&str> = page.split(BEGIN).skip(1).collect();
    let mut more = parts.len().checked_sub(launches).ok_or("the page of instructions lacks launches")?;
    let mut kept: Vec<&str> = Vec::new();
    let mut repeated = false;
    for part in parts {
        repeated = more > 0 && !repeated && kept.last() == Some(&part);
        if repeated {
            more -= 1;
        } else {
            kept.push(part);
        }
    }
    if kept.len() == launches {
        Ok(kept)
    } else {
        Err(format!("{} launches on one page, {launches} on another", kept.len()))
    }
}

/// What the instructions of a launch cost that access memory: the names of the columns, and a row for each instruction.
fn accesses(page: &str, lines: &BTreeMap<String, (String, u32)>) -> Result<BTreeMap<Place, Cost>, String> {
    let mut places = BTreeMap::<Place, Cost>::new();
    let mut columns = BTreeMap::new();
    // The rest of the row with the kernel's name comes first.
    for row in records(page).skip(1) {
        match &row[0] {
            "Address" => columns = row.iter().enumerate().map(|(i, name)| (name.to_owned(), i)).collect(),
            address => {
                let field = |name: &str| columns.get(name).and_then(|column| row.get(*column)).unwrap_or_default();
                let count = |name: &str| number(field(name)).unwrap_or(0.0) as u64;
                let parts = accesses_of(field("Source"));
                if parts.is_empty() {
                    continue;
                }
                let lanes = count("Predicated-On Thread Instructions Executed");
                if lanes == 0 {
                    // Where no lane came by, the page says nothing of the access.
                    continue;
                }
                let width =
                    number(field("Access Size")).ok_or_else(|| format!("no size of {}", field("Source")))? as u64 / 8;
                for &(space, operation) in parts {
                    let cost = match space {
                        "global" => [
                            lanes,
                            count("L2 Theoretical Sectors Global"),
                            count("L2 Theoretical Sectors Global Ideal"),
                            count("L1 Tag Requests Global"),
                        ],
                        _ => [lanes, count("L1 Wavefronts Shared"), count("L1 Wavefronts Shared Ideal"), 0],
                    };
                    let place = Place { at: lines.get(address).cloned(), space, operation, width };
                    let sum = places.entry(place).or_default();
                    *sum = std::array::from_fn(|i| sum[i] + cost[i]);
                }
            }
        }
    }
    Ok(places)
}

/// The spaces that an instruction accesses, and how; none if it accesses neither global nor shared memory.
fn accesses_of(instruction: &str) -> &'static [(&'static str, Operation)] {
    let mut words = instruction.split_whitespace();
    let opcode = words.find(|word| !word.starts_with('@')).unwrap_or_default();
    match opcode.split('.').next().unwrap_or_default() {
        "LDG" => &[("global", Operation::Load)],
        "STG" => &[("global", Operation::Store)],
        "RED" | "REDG" | "ATOM" | "ATOMG" => &[("global", Operation::Atomic)],
        "LDS" => &[("shared", Operation::Load)],
        "STS" => &[("shared", Operation::Store)],
        "ATOMS" => &[("shared", Operation::Atomic)],
        // An asynchronous copy.
        "LDGSTS" => &[("global", Operation::Load), ("shared", Operation::Store)],
        _ => &[],
    }
}

/// The rows of a page that have any field at all.
fn records(page: &str) -> impl Iterator<Item = csv::StringRecord> {
    let reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(page.as_bytes());
    let rows: Vec<_> = reader.into_records().map_while(Result::ok).filter(|row| !row.is_empty()).collect();
    rows.into_iter()
}

/// A number as the pages have it, with commas between thousands.
fn number(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: &str = r#""File Path","library/core/src/cmp.rs"
"Function Name","copy"
"Line No","Source","Address","Source","Instructions Executed"
"7","<Unable to open source file>","-","-","8"
"","","0x7f00","      ISETP.GE.U32.AND P0, PT, R2, UR8, PT","8"
"","","...","...","-"
"File Path","gpu/src/kernels/copy.rs"
"Function Name","copy"
"Line No","Source","Address","Source","Instructions Executed"
"19","    println!("{}", "a, b");","-","-","16"
"","","0x7f10","      LDG.E R5, desc[UR4][R4.64]","8"
"","","...","...","-"
"","","0x7f20","@!P0  STG.E desc[UR4][R2.64], R5","8"
"#;

    const INSTRUCTIONS: &str = r#""Kernel Name","copy",
"Address","Source","Predicated-On Thread Instructions Executed","Access Size","L1 Tag Requests Global","L1 Wavefronts Shared","L1 Wavefronts Shared Ideal","L2 Theoretical Sectors Global","L2 Theoretical Sectors Global Ideal"
"0x7f00","      ISETP.GE.U32.AND P0, PT, R2, UR8, PT","256","-","0","0","0","0","0"
"0x7f10","      LDG.E R5, desc[UR4][R4.64]","1,024","32","32","0","0","128","96"
"0x7f20","@!P0  STG.E desc[UR4][R2.64], R5","1024","32","32","0","0","128","128"
"0x7f30","      LDS.128 R4, [R2]","32","128","0","8","4","0","0"
"0x7f38","      LDGSTS.E.BYPASS.128 desc[UR6][R2.64], [R5]","64","128","8","9","7","32","16"
"0x7f40","      REDG.E.ADD.F32 desc[UR4][R2.64], R5","0","-","0","0","0","0","0"
"Kernel Name","copy",
"Address","Source","Predicated-On Thread Instructions Executed","Access Size","L1 Tag Requests Global","L1 Wavefronts Shared","L1 Wavefronts Shared Ideal","L2 Theoretical Sectors Global","L2 Theoretical Sectors Global Ideal"
"0x7f00","      ISETP.GE.U32.AND P0, PT, R2, UR8, PT","256","-","0","0","0","0","0"
"0x7f10","      LDG.E R5, desc[UR4][R4.64]","1,024","32","32","0","0","128","96"
"0x7f20","@!P0  STG.E desc[UR4][R2.64], R5","1024","32","32","0","0","128","128"
"0x7f30","      LDS.128 R4, [R2]","32","128","0","8","4","0","0"
"0x7f38","      LDGSTS.E.BYPASS.128 desc[UR6][R2.64], [R5]","64","128","8","9","7","32","16"
"0x7f40","      REDG.E.ADD.F32 desc[UR4][R2.64], R5","0","-","0","0","0","0","0"
"Kernel Name","copy",
"Address","Source","Predicated-On Thread Instructions Executed","Access Size","L1 Tag Requests Global"
"0x7f10","      LDG.E R5, desc[UR4][R4.64]","32","32","1"
"#;

    const TOTALS: &str = r#""ID","Kernel Name","Block Size","l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum","note"
"","","thread","",""
"0","copy","(256, 1, 1)","32,768","text"
"1","copy","(256, 1, 1)","1",""
"#;

    #[test]
    fn a_source_line_is_that_of_the_kernels_file_whatever_stands_in_it() {
        let line = |address: &str| lines(SOURCES).get(address).cloned();
        assert_eq!(line("0x7f00"), None, "a line of another file");
        assert_eq!(line("0x7f10"), Some(("gpu/src/kernels/copy.rs".into(), 19)));
        assert_eq!(line("0x7f20"), Some(("gpu/src/kernels/copy.rs".into(), 19)));
    }

    #[test]
    fn instructions_that_access_memory_are_added_up_by_place_launch_by_launch() {
        // The first is printed twice, the second once.
        let launches = a_launch_each(INSTRUCTIONS, 2).expect("two launches");
        let [first, second] = launches[..] else { panic!("two launches") };
        let [first, second] = [first, second].map(|page| accesses(page, &lines(SOURCES)).expect("a page"));
        let place = |space, operation, width, line: Option<u32>| Place {
            at: line.map(|line| ("gpu/src/kernels/copy.rs".into(), line)),
            space,
            operation,
            width,
        };
        let expected = BTreeMap::from([
            (place("global", Operation::Load, 4, Some(19)), [1024, 128, 96, 32]),
            (place("global", Operation::Store, 4, Some(19)), [1024, 128, 128, 32]),
            (place("shared", Operation::Load, 16, None), [32, 8, 4, 0]),
            // A copy from global to shared memory is both.
            (place("global", Operation::Load, 16, None), [64, 32, 16, 8]),
            (place("shared", Operation::Store, 16, None), [64, 9, 7, 0]),
        ]);
        assert_eq!(first, expected);
        assert_eq!(second, BTreeMap::from([(place("global", Operation::Load, 4, Some(19)), [32, 0, 0, 1])]));
    }

    #[test]
    fn a_page_with_fewer_or_other_launches_is_refused() {
        for launches in [1, 4] {
            assert!(a_launch_each(INSTRUCTIONS, launches).is_err(), "{launches}");
        }
        assert_eq!(a_launch_each(INSTRUCTIONS, 3).map(|launches| launches.len()), Ok(3), "each printed once");
    }

    #[test]
    fn totals_are_numbers_with_commas_and_other_columns_are_none() {
        let totals = totals(TOTALS).expect("a page");
        assert_eq!(totals.len(), 2);
        let (kernel, metrics) = &totals[0];
        assert_eq!(kernel, "copy");
        assert_eq!(metrics["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"], 32_768.0);
        assert!(!metrics.contains_key("note") && !metrics.contains_key("Block Size"));
        assert!(super::totals("\"ID\",\"Name\"\n").is_err(), "no kernel");
    }

    #[test]
    fn what_keeps_the_counters_away_is_said_with_the_way_out() {
        let missing = Ncu { program: "no/such/ncu".into() }.run(["--version".as_ref()]).expect_err("no program");
        assert!(missing.to_string().contains("no/such/ncu was not found: install Nsight Compute"), "{missing}");
        let ncu = Ncu { program: "sh".into() };
        let refused = ncu.run(["-c", "echo '==ERROR== ERR_NVGPUCTRPERM - no'; exit 1"].map(OsStr::new));
        assert!(matches!(refused, Err(NcuError::Permission)));
        let failed = ncu.run(["-c", "echo what; exit 3"].map(OsStr::new)).expect_err("status 3");
        assert_eq!(failed.to_string(), "sh failed: what");
    }
}
