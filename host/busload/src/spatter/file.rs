//! Reads a pattern file: an array of configurations, each an object with Spatter's keys.

use crate::input::{self, InputError};
use gpu::kernels::spatter::{self, Configuration, DELTA, Kind};
use gpu::suite::generator::{self, MOST_INDICES};
use gpu::suite::{PlanError, lcm};
use serde_json::{Map, Value};

/// Configurations of a file at most.
const MOST_ENTRIES: usize = 1 << 12;

/// Indices of all patterns of a file at most.
const MOST_IN_ALL: u64 = 1 << 26;

/// The keys that Spatter knows.
const KEYS: [&str; 15] = [
    "name",
    "kernel",
    "pattern",
    "pattern-gather",
    "pattern-scatter",
    "pattern-size",
    "delta",
    "delta-gather",
    "delta-scatter",
    "boundary",
    "seed",
    "wrap",
    "count",
    "local-work-size",
    "nruns",
];

/// Names of kernels, in lower case.
const KERNELS: [(&str, Kind); 5] = [
    ("gather", Kind::Gather),
    ("scatter", Kind::Scatter),
    ("gs", Kind::Gs),
    ("multigather", Kind::MultiGather),
    ("multiscatter", Kind::MultiScatter),
];

/// A configuration of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    /// Its number in the file, from 0.
    pub number: usize,
    /// Its name; empty if it has none.
    pub name: String,
    /// Its pattern as tables show it.
    pub pattern: String,
    /// What it says.
    pub configuration: Configuration,
    /// How often it is to be timed, if it says so.
    pub runs: Option<u32>,
    /// Threads of a block, if it says so: Spatter's CUDA back end reads that, and takes as many as the pattern has indices.
    pub local_work_size: Option<u32>,
    /// Whether several of its accesses write one element: any of them may be the last.
    pub races: bool,
    /// What of it means nothing, a sentence each.
    pub warnings: Vec<String>,
}

/// Why a pattern file is not taken: the file, the configuration, its value, and the way out.
#[derive(Debug, thiserror::Error)]
pub enum SpatterError {
    /// It is not read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// It is no JSON.
    #[error("{file}: no JSON: {reason}")]
    Json {
        /// The file.
        file: String,
        /// Where, and why.
        reason: serde_json::Error,
    },
    /// It is JSON, and no list of configurations.
    #[error("{file}: {what}")]
    Shape {
        /// The file.
        file: String,
        /// What it is, and should be.
        what: String,
    },
    /// A configuration makes no sense.
    #[error("{file}: entry {entry}: {what}")]
    Entry {
        /// The file.
        file: String,
        /// Its number, and its name if it has one.
        entry: String,
        /// What is wrong.
        what: String,
    },
}

/// The configurations of a file.
///
/// # Errors
/// If it cannot be read, or any of them makes no sense.
pub fn read(file: &str) -> Result<Vec<Configured>, SpatterError> {
    parse(file, &input::text(file, input::SOURCE)?)
}

/// The configurations of the text of a file.
///
/// # Errors
/// As [`read`].
pub fn parse(file: &str, text: &str) -> Result<Vec<Configured>, SpatterError> {
    let shape = |what: String| SpatterError::Shape { file: file.to_owned(), what };
    let json =
        serde_json::from_str::<Value>(text).map_err(|reason| SpatterError::Json { file: file.to_owned(), reason })?;
    let Value::Array(entries) = json else {
        return Err(shape(format!(
            "{} and no array: put the configurations in brackets, `[{{…}}, {{…}}]`",
            kind_of(&json)
        )));
    };
    if entries.is_empty() || entries.len() > MOST_ENTRIES {
        let count = entries.len();
        return Err(shape(format!("it has {count} configurations: give 1 to {MOST_ENTRIES}")));
    }
    let mut room = MOST_IN_ALL;
    let mut configured = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
        let entry_name = if name.is_empty() { number.to_string() } else { format!("{number} ({name})") };
        let wrong = |what: String| SpatterError::Entry { file: file.to_owned(), entry: entry_name.clone(), what };
        let Value::Object(keys) = entry else {
            return Err(wrong(format!("{} and no object: write `{{\"kernel\": …}}`", kind_of(entry))));
        };
        let one = Keys(keys).configured(number).map_err(|PlanError(what)| wrong(what))?;
        let indices = (one.configuration.pattern.len() + one.configuration.inner.len()) as u64;
        room = room.checked_sub(indices).ok_or_else(|| {
            wrong(format!(
                "the patterns up to this one have more than {MOST_IN_ALL} indices: give them in several files"
            ))
        })?;
        configured.push(one);
    }
    Ok(configured)
}

/// What a value is.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "it is null",
        Value::Bool(_) => "it is true or false",
        Value::Number(_) => "it is a number",
        Value::String(_) => "it is a string",
        Value::Array(_) => "it is an array",
        Value::Object(_) => "it is an object",
    }
}

/// The keys of a configuration.
struct Keys<'a>(&'a Map<String, Value>);

impl Keys<'_> {
    fn configured(&self, number: usize) -> Result<Configured, PlanError> {
        let name = self.text("name")?.unwrap_or_default().to_owned();
        let kind = self.kind()?;
        let size = self.number("pattern-size", 1)?;
        let boundary = self.number("boundary", 0)?.filter(|boundary| *boundary > 0);
        let wrap = self.number("wrap", 1)?.unwrap_or(1);
        let count = self.number("count", 1)?.unwrap_or(1024);
        let runs = self.number("nruns", 1)?.map(|runs| u32::try_from(runs).unwrap_or(u32::MAX).min(100_000));
        let local_work_size = self.number("local-work-size", 0)?.filter(|size| *size > 0);
        let local_work_size = local_work_size.map(|size| u32::try_from(size).unwrap_or(u32::MAX));
        self.number("seed", 0)?;
        let (outer_key, delta_key) =
            if kind == Kind::Gs { ("pattern-gather", "delta-gather") } else { ("pattern", "delta") };
        let inner_key = match kind {
            Kind::Gather | Kind::Scatter => None,
            Kind::Gs | Kind::MultiScatter => Some("pattern-scatter"),
            Kind::MultiGather => Some("pattern-gather"),
        };
        let pattern = |key| self.pattern(key, kind, size, boundary);
        let (outer, own, mut shown) = pattern(outer_key)?;
        let deltas = own.map_or_else(|| self.deltas(delta_key), |delta| Ok(vec![delta]))?;
        let inner = inner_key.map(pattern).transpose()?;
        if let Some((_, _, inner)) = &inner {
            shown = format!("{shown} → {inner}");
        }
        let inner_deltas = match (&inner, kind) {
            (Some((_, Some(own), _)), Kind::Gs) => vec![*own],
            (_, Kind::Gs) => self.deltas("delta-scatter")?,
            _ => vec![0],
        };
        let inner = inner.map(|(indices, ..)| indices).unwrap_or_default();
        let length = if inner.is_empty() { outer.len() } else { inner.len() } as u64;
        if kind == Kind::Gs && outer.len() != inner.len() {
            let (outer, inner) = (outer.len(), inner.len());
            return Err(PlanError(format!(
                "pattern-gather has {outer} indices, and pattern-scatter {inner}: give as many"
            )));
        }
        // Several deltas are one of a longer pattern.
        let times = lcm(deltas.len() as u64, inner_deltas.len() as u64);
        if length.saturating_mul(times) > MOST_INDICES || (outer.len() as u64).saturating_mul(times) > MOST_INDICES {
            return Err(PlanError(format!(
                "{length} indices by {times} deltas are more than {MOST_INDICES} together: give fewer"
            )));
        }
        if times > 1 {
            shown = format!("{shown}, {times} deltas");
        }
        let is_multi = matches!(kind, Kind::MultiGather | Kind::MultiScatter);
        let (inner, delta_inner) = match is_multi {
            // The places of a round are those in its own copy of the pattern.
            true => unrolled(&inner, &[outer.len() as u64], times)?,
            false => unrolled(&inner, &inner_deltas, times)?,
        };
        let (pattern, delta) = unrolled(&outer, &deltas, times)?;
        let configuration =
            Configuration { kind, pattern, delta, inner, delta_inner, length, count, wrap, block: None };
        let races = configuration.races()?;
        spatter::plan(&configuration)?;
        let warnings = self.warnings(kind);
        Ok(Configured { number, name, pattern: shown, configuration, runs, local_work_size, races, warnings })
    }

    fn warnings(&self, kind: Kind) -> Vec<String> {
        let unknown = self.0.keys().filter(|key| !KEYS.contains(&key.as_str())).map(|key| {
            let nearest =
                KEYS.into_iter().max_by(|a, b| strsim::jaro_winkler(key, a).total_cmp(&strsim::jaro_winkler(key, b)));
            format!(
                "`{key}` is no key of Spatter's, and means nothing; the nearest is `{}`",
                nearest.unwrap_or_default()
            )
        });
        let of_gs = self.0.contains_key("delta") && kind == Kind::Gs;
        let of_gs = of_gs.then(|| "`delta` means nothing to GS, which takes delta-gather and delta-scatter".to_owned());
        unknown.chain(of_gs).collect()
    }

    fn kind(&self) -> Result<Kind, PlanError> {
        let Some(name) = self.text("kernel")? else { return Ok(Kind::Gather) };
        let kind = KERNELS.iter().find(|(kernel, _)| *kernel == name.to_ascii_lowercase());
        kind.map(|(_, kind)| *kind).ok_or_else(|| {
            PlanError(format!("`kernel` is \"{name}\": give Gather, Scatter, GS, MultiGather or MultiScatter"))
        })
    }

    /// The indices of a pattern, the delta that it sets by itself, and how it is shown.
    fn pattern(
        &self,
        key: &str,
        kind: Kind,
        size: Option<u64>,
        boundary: Option<u64>,
    ) -> Result<(Vec<u64>, Option<u64>, String), PlanError> {
        let (mut indices, delta, shown) = match self.0.get(key) {
            None => {
                let kernel = super::kernel_name(kind);
                return Err(PlanError(format!(
                    "`{key}` is missing, and {kernel} needs it: give indices ([0, 8, 16]) or a generator (\"UNIFORM:8:8\")"
                )));
            }
            Some(Value::String(text)) => {
                let text = text.trim_matches('"');
                let (indices, delta) =
                    generator::indices(text).map_err(|PlanError(what)| PlanError(format!("`{key}`: {what}")))?;
                (indices, delta, short(text))
            }
            Some(Value::Array(list)) => {
                if list.is_empty() || list.len() as u64 > MOST_INDICES {
                    let count = list.len();
                    return Err(PlanError(format!("`{key}` has {count} indices: give 1 to {MOST_INDICES}")));
                }
                let index = |(place, index): (usize, &Value)| {
                    whole(index).filter(|index| *index < 1 << 40).ok_or_else(|| {
                        PlanError(format!("`{key}`: index {place} is {index}: give whole numbers from 0 to 2^40"))
                    })
                };
                let indices: Vec<u64> = list.iter().enumerate().map(index).collect::<Result<_, _>>()?;
                let first: Vec<_> = indices.iter().take(4).map(ToString::to_string).collect();
                let more = if indices.len() > 4 { format!(", … ({})", indices.len()) } else { String::new() };
                (indices, None, format!("{}{more}", first.join(", ")))
            }
            Some(other) => {
                return Err(PlanError(format!(
                    "`{key}`: {}: give indices ([0, 8, 16]) or a generator (\"UNIFORM:8:8\")",
                    kind_of(other)
                )));
            }
        };
        if let Some(size) = size {
            if size > indices.len() as u64 {
                let len = indices.len();
                return Err(PlanError(format!(
                    "`pattern-size` is {size}, and `{key}` has {len} indices: give {len} at most"
                )));
            }
            indices.truncate(size as usize);
        }
        if let Some(boundary) = boundary {
            indices.iter_mut().for_each(|index| *index %= boundary);
        }
        Ok((indices, delta, shown))
    }

    /// One delta, or several that take turns.
    fn deltas(&self, key: &str) -> Result<Vec<u64>, PlanError> {
        match self.0.get(key) {
            Some(Value::Array(list)) if !list.is_empty() => {
                list.iter().map(|delta| number(key, delta, 0)).collect::<Result<_, _>>()
            }
            _ => Ok(vec![self.number(key, 0)?.unwrap_or(DELTA)]),
        }
    }

    fn text(&self, key: &str) -> Result<Option<&str>, PlanError> {
        match self.0.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(PlanError(format!("`{key}`: {}: give a string", kind_of(other)))),
        }
    }

    fn number(&self, key: &str, least: u64) -> Result<Option<u64>, PlanError> {
        self.0.get(key).map(|value| number(key, value, least)).transpose()
    }
}

/// A pattern that begins anew `times` times, each further on by the next of the deltas; and how far all are together.
fn unrolled(pattern: &[u64], deltas: &[u64], times: u64) -> Result<(Vec<u64>, u64), PlanError> {
    let (mut all, mut moved) = (Vec::new(), 0u64);
    for delta in deltas.iter().cycle().take(times as usize) {
        all.extend(pattern.iter().map(|index| index + moved));
        moved = moved
            .checked_add(*delta)
            .filter(|moved| *moved < 1 << 40)
            .ok_or_else(|| PlanError("the deltas are more than 2^40 together: give smaller ones".to_owned()))?;
    }
    Ok((all, moved))
}

fn number(key: &str, value: &Value, least: u64) -> Result<u64, PlanError> {
    match whole(value).filter(|number| *number < 1 << 40) {
        Some(number) if number >= least => Ok(number),
        _ => Err(PlanError(format!(
            "`{key}` is {}: give a whole number from {least} to 2^40",
            short(&value.to_string())
        ))),
    }
}

/// A whole number, also one written as 1e6.
fn whole(value: &Value) -> Option<u64> {
    let float = || value.as_f64().filter(|number| *number >= 0.0 && *number < 9e15 && number.fract() == 0.0);
    value.as_u64().or_else(|| float().map(|number| number as u64))
}

/// The text, or its beginning.
fn short(text: &str) -> String {
    const MOST: usize = 40;
    if text.chars().count() <= MOST { text.to_owned() } else { text.chars().take(MOST).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Configured {
        let mut all = parse("x.json", &format!("[{text}]")).unwrap_or_else(|error| panic!("{text}: {error}"));
        all.pop().expect("one")
    }

    #[test]
    fn defaults_are_spatters() {
        let configured = one(r#"{"pattern": [0, 3]}"#);
        let Configuration { kind, delta, count, wrap, length, .. } = configured.configuration;
        assert_eq!((kind, delta, count, wrap, length), (Kind::Gather, 8, 1024, 1, 2));
        assert_eq!((configured.name.as_str(), configured.runs, configured.races), ("", None, false));
        assert_eq!(configured.pattern, "0, 3");
        assert!(configured.warnings.is_empty());
    }

    #[test]
    fn a_generators_delta_is_taken_before_the_files() {
        let delta = |text| one(text).configuration.delta;
        assert_eq!(delta(r#"{"pattern": "UNIFORM:8:2:NR", "delta": 3}"#), 16);
        assert_eq!(delta(r#"{"pattern": "LAPLACIAN:1:1:100"}"#), 1);
        assert_eq!(delta(r#"{"pattern": "UNIFORM:8:2", "delta": 3}"#), 3);
        assert_eq!(delta(r#"{"pattern": "UNIFORM:8:2", "delta": 1e3}"#), 1000);
        let gs = one(
            r#"{"kernel": "gs", "pattern-gather": "UNIFORM:4:1:NR", "pattern-scatter": [0, 2, 4, 6], "delta-scatter": 9}"#,
        );
        assert_eq!((gs.configuration.delta, gs.configuration.delta_inner), (4, 9));
        assert_eq!(gs.pattern, "UNIFORM:4:1:NR → 0, 2, 4, 6");
    }

    #[test]
    fn sizes_boundaries_and_several_deltas_change_the_pattern() {
        let pattern = |text| one(text).configuration.pattern;
        assert_eq!(pattern(r#"{"pattern": [5, 1, 9, 7], "pattern-size": 3, "boundary": 4}"#), [1, 1, 1]);
        let several = one(r#"{"pattern": [0, 1], "delta": [8, 8, 100], "count": 7}"#).configuration;
        assert_eq!((several.pattern, several.delta), (vec![0, 1, 8, 9, 16, 17], 116));
        assert_eq!((several.length, several.count), (2, 7));
        let multi =
            one(r#"{"kernel": "MultiGather", "pattern": [0, 5, 9], "pattern-gather": [2, 0], "delta": [1, 2]}"#);
        let Configuration { pattern, inner, delta, length, .. } = multi.configuration;
        assert_eq!((pattern, inner, delta, length), (vec![0, 5, 9, 1, 6, 10], vec![2, 0, 5, 3], 3, 2));
    }

    #[test]
    fn what_nobody_reads_is_said() {
        let warnings = one(r#"{"pattern": [0], "length": 4}"#).warnings;
        assert!(warnings[0].contains("`length` is no key of Spatter's"), "{warnings:?}");
        let gs = one(r#"{"kernel": "GS", "pattern-gather": [0], "pattern-scatter": [0], "delta": 4}"#);
        assert!(gs.warnings[0].contains("takes delta-gather"), "{:?}", gs.warnings);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name_with_its_value_and_the_way_out() {
        for (text, says) in [
            ("", "no JSON"),
            ("[{]", "no JSON: key must be a string at line 1 column 3"),
            (r#"{"kernel": "Gather"}"#, "it is an object and no array"),
            ("[]", "it has 0 configurations: give 1 to 4096"),
            ("[7]", "entry 0: it is a number and no object"),
            (r#"[{"name": "a", "kernel": "Gahter"}]"#, r#"entry 0 (a): `kernel` is "Gahter": give Gather, Scatter"#),
            (r#"[{"kernel": 3}]"#, "`kernel`: it is a number: give a string"),
            (r#"[{"kernel": "Gather"}]"#, "`pattern` is missing, and Gather needs it"),
            (r#"[{"kernel": "GS", "pattern-gather": [0]}]"#, "`pattern-scatter` is missing, and GS needs it"),
            (
                r#"[{"kernel": "GS", "pattern-gather": [0], "pattern-scatter": [0, 1]}]"#,
                "has 1 indices, and pattern-scatter 2",
            ),
            (
                r#"[{"kernel": "MultiGather", "pattern": [0], "pattern-gather": [1]}]"#,
                "the place 1 lies outside the pattern",
            ),
            (r#"[{"pattern": "UNIFOM:8:1"}]"#, "`pattern`: `UNIFOM:8:1` is no pattern"),
            (r#"[{"pattern": []}]"#, "`pattern` has 0 indices"),
            (r#"[{"pattern": [0, -8]}]"#, "index 1 is -8: give whole numbers"),
            (r#"[{"pattern": [0.5]}]"#, "index 0 is 0.5"),
            (r#"[{"pattern": [1099511627776]}]"#, "index 0 is 1099511627776"),
            (r#"[{"pattern": true}]"#, "`pattern`: it is true or false: give indices"),
            (
                r#"[{"pattern": [0]}, {"pattern": [0], "count": 0}]"#,
                "entry 1: `count` is 0: give a whole number from 1",
            ),
            (r#"[{"pattern": [0], "count": 1e30}]"#, "`count` is 1e+30"),
            (r#"[{"pattern": [0], "delta": -1}]"#, "`delta` is -1"),
            (r#"[{"pattern": [0], "delta": "8"}]"#, "`delta` is \"8\""),
            (r#"[{"pattern": [0], "delta": []}]"#, "`delta` is []"),
            (r#"[{"pattern": [0], "wrap": 0}]"#, "`wrap` is 0"),
            (r#"[{"pattern": [0], "nruns": 0}]"#, "`nruns` is 0"),
            (r#"[{"pattern": [0, 1], "pattern-size": 3}]"#, "`pattern-size` is 3, and `pattern` has 2 indices"),
            (r#"[{"pattern": [0], "delta": 1099511627775, "count": 9}]"#, "a tebibyte or more"),
            (r#"[{"pattern": "UNIFORM:1024:1", "count": 1099511627775}]"#, "a tebibyte or more"),
        ] {
            let error = parse("x.json", text).expect_err(text).to_string();
            assert!(error.starts_with("x.json: ") && error.contains(says), "{text}: {error}");
        }
    }
}
