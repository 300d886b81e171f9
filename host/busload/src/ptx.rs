//! The kernels' PTX: the committed build, its header, and the properties that every build is held to.

use std::collections::{BTreeMap, BTreeSet};

/// The file of the committed build, as positions name it that its line table does not.
pub const FILE: &str = "busload_sm_80.ptx";

/// The committed build.
pub const EMBEDDED: &str = include_str!("../../../gpu/ptx/busload_sm_80.ptx");

/// A PTX module.
#[derive(Clone, Debug)]
pub struct Ptx {
    text: String,
}

/// An access instruction of a kernel: its state space, what it does, and how many bytes a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access<'a> {
    /// `global`, `shared` or `constant`.
    pub space: &'a str,
    /// `load`, `store` or `atomic`.
    pub operation: &'static str,
    /// Bytes a lane.
    pub width: u64,
}

/// A source position in a module's line table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position<'a> {
    /// The file, relative to the workspace.
    pub file: &'a str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// An access instruction of a kernel, and the source position it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site<'a> {
    /// Where it stands; none in a module without a line table.
    pub position: Option<Position<'a>>,
    /// What it does.
    pub access: Access<'a>,
}

/// Something in a module that should not be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The line, from 1.
    pub line: usize,
    /// What it says.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}: `{}`", self.line, self.problem, self.text)
    }
}

impl Ptx {
    /// The committed build.
    pub fn embedded() -> Self {
        Self::new(EMBEDDED)
    }

    /// Any PTX.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A field of the header that `cargo xtask ptx` writes, such as `backend` or `source-hash`.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut comments = self.text.lines().map_while(|line| line.strip_prefix("// "));
        comments.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The architecture it is for, such as `sm_80`.
    pub fn target(&self) -> Option<&str> {
        let line = self.text.lines().find_map(|line| line.trim().strip_prefix(".target "))?;
        line.split(',').next().map(str::trim)
    }

    /// The kernels in it, each with the accesses it makes.
    pub fn entries(&self) -> BTreeMap<&str, BTreeSet<Access<'_>>> {
        let sites = self.sites().into_iter();
        sites.map(|(name, sites)| (name, sites.iter().map(|site| site.access).collect())).collect()
    }

    /// The kernels in it, each with its access instructions in their order.
    pub fn sites(&self) -> BTreeMap<&str, Vec<Site<'_>>> {
        let files = self.files();
        let mut entries = BTreeMap::<_, Vec<_>>::new();
        let mut current = None;
        let mut position = None;
        for line in self.text.lines() {
            let line = line.trim();
            if let Some((_, rest)) = line.split_once(".entry ") {
                let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
                entries.entry(name).or_default();
                (current, position) = (Some(name), None);
            } else if let Some(numbers) = line.strip_prefix(".loc") {
                position = located(numbers, &files);
            } else if let Some(name) = current {
                let sites = accesses(line).into_iter().flatten().map(|access| Site { position, access });
                entries.entry(name).or_default().extend(sites);
            }
        }
        entries
    }

    /// The files of the line table, by number.
    fn files(&self) -> BTreeMap<&str, &str> {
        let files = self.text.lines().filter_map(|line| line.trim().strip_prefix(".file"));
        let files = files.filter_map(|operands| operands.trim().split_once(char::is_whitespace));
        files.map(|(number, name)| (number, name.trim().trim_matches('"'))).collect()
    }

    /// What should not be there: generic or local accesses, calls, panics, strings.
    pub fn violations(&self) -> Vec<Violation> {
        let lines = self.text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
        lines
            .filter_map(|(line, text)| problem(text).map(|problem| Violation { line, text: text.to_owned(), problem }))
            .collect()
    }
}

/// The position in the operands of a `.loc`: the number of a file, a line, a column.
fn located<'a>(operands: &str, files: &BTreeMap<&str, &'a str>) -> Option<Position<'a>> {
    let mut numbers = operands.split_whitespace();
    let file = files.get(numbers.next()?)?;
    Some(Position { file, line: numbers.next()?.parse().ok()?, column: numbers.next()?.parse().ok()? })
}

/// The opcode of a line, without a predicate; none for comments, directives and labels.
fn instruction(line: &str) -> Option<&str> {
    let line = match line.strip_prefix('@') {
        Some(predicated) => predicated.split_once(char::is_whitespace)?.1.trim_start(),
        None => line,
    };
    let opcode = line.split(|c: char| c.is_whitespace() || c == ';').next()?;
    (opcode.starts_with(|c: char| c.is_ascii_lowercase()) && !opcode.ends_with(':')).then_some(opcode)
}

/// The accesses that a line makes: none, one, or the two of an asynchronous copy.
fn accesses(line: &str) -> [Option<Access<'_>>; 2] {
    let Some(opcode) = instruction(line) else { return [None; 2] };
    if !opcode.starts_with("cp.async.ca.") && !opcode.starts_with("cp.async.cg.") {
        return [access(opcode), None];
    }
    let width = line.trim_end_matches(';').rsplit(',').next().and_then(|width| width.trim().parse().ok());
    let of = |space, operation| width.map(|width| Access { space, operation, width });
    [of("global", "load"), of("shared", "store")]
}

/// The access that an opcode makes; none if it makes none.
fn access(opcode: &str) -> Option<Access<'_>> {
    let mut parts = opcode.split('.');
    let operation = match parts.next()? {
        "ld" => "load",
        "st" => "store",
        "atom" | "red" => "atomic",
        _ => return None,
    };
    let space = parts.clone().find_map(|part| match part {
        "global" | "shared" => Some(part),
        "const" => Some("constant"),
        _ => None,
    })?;
    let vector = parts.clone().find_map(|part| part.strip_prefix('v')?.parse::<u64>().ok()).unwrap_or(1);
    let bits: u64 = parts.next_back()?.trim_start_matches(|c: char| c.is_alphabetic()).parse().ok()?;
    Some(Access { space, operation, width: vector * bits / 8 })
}

fn problem(line: &str) -> Option<&'static str> {
    if line.starts_with("//") {
        return None;
    }
    let is = |directive: &str| line.split_whitespace().any(|word| word == directive);
    if is(".func") {
        return Some("a function that was not inlined, or one to panic with");
    }
    if is(".local") {
        return Some("memory of a thread's own: something did not fit in registers");
    }
    if line.contains(".b8 ") && is(".global") && line.contains('=') {
        return Some("constant data, such as a panic's text");
    }
    let opcode = instruction(line)?;
    let mut parts = opcode.split('.');
    let space = |part: &str| matches!(part, "global" | "shared" | "param" | "const");
    match parts.next()? {
        "call" => Some("a call"),
        "cvta" => Some("a generic address"),
        "ld" | "st" | "atom" | "red" if parts.clone().any(|part| part == "local") => Some("an access to local memory"),
        "ld" | "st" | "atom" | "red" if !parts.any(space) => Some("a generic access"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "// backend: llvm
// source-hash: sha256:12
.version 7.0
.target sm_80
.visible .entry one(
\tld.param.b64 \t%rd1, [one_param_0];
\t.loc\t1 4 9
\tld.global.cg.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];
\t@%p1 st.shared.b32 [%r1], %r2;
\t.loc\t2 5 13
\tatom.global.add.f32 %r1, [%rd1], %r2;
.visible .entry two(
\tred.global.add.f32 [%rd1], %r2;
\tcp.async.ca.shared.global [%r1], [%rd1], 8;
\tcp.async.wait_all;
\tret;
.file\t1 \"gpu/a.rs\"
.file\t2 \"gpu/b.rs\"
";

    #[test]
    fn header_target_entries_and_accesses_are_read() {
        let ptx = Ptx::new(SAMPLE);
        assert_eq!((ptx.header("backend"), ptx.header("source-hash")), (Some("llvm"), Some("sha256:12")));
        assert_eq!((ptx.header("flags"), ptx.target()), (None, Some("sm_80")));
        let entries = ptx.entries();
        assert_eq!(entries.keys().copied().collect::<Vec<_>>(), ["one", "two"]);
        let access = |space, operation, width| Access { space, operation, width };
        let expected = [access("global", "atomic", 4), access("global", "load", 16), access("shared", "store", 4)];
        assert_eq!(entries["one"].iter().copied().collect::<Vec<_>>(), expected);
        let copied = [access("global", "atomic", 4), access("global", "load", 8), access("shared", "store", 8)];
        assert_eq!(entries["two"].iter().copied().collect::<Vec<_>>(), copied);
        assert_eq!(ptx.violations(), []);
    }

    #[test]
    fn an_access_has_the_position_of_the_line_table_within_its_kernel() {
        let ptx = Ptx::new(SAMPLE);
        let positions = |kernel| ptx.sites()[kernel].iter().map(|site| site.position).collect::<Vec<_>>();
        let first = Some(Position { file: "gpu/a.rs", line: 4, column: 9 });
        let second = Some(Position { file: "gpu/b.rs", line: 5, column: 13 });
        assert_eq!(positions("one"), [first, first, second]);
        assert_eq!(positions("two"), [None; 3]);
    }

    #[test]
    fn what_should_not_be_there_is_found() {
        for line in [
            "ld.b32 %r1, [%rd1];",
            "@%p2 st.v2.b32 [%rd1], {%r1, %r2};",
            "st.local.b32 [%rd1], %r1;",
            ".local .align 4 .b8 __local_depot0[16];",
            ".extern .func panic",
            "cvta.to.global.u64 %rd2, %rd1;",
            "call.uni panic, ();",
            ".global .align 1 .b8 text[5] = {104, 101, 108, 108, 111};",
        ] {
            assert_eq!(Ptx::new(line).violations().len(), 1, "{line}");
        }
    }
}
