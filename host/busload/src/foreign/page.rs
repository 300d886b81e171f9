//! A launch explained: on its source where that is found, else on its PTX.

use super::prepare::Ready;
use crate::explain::{Excerpt, Explanation, SAMPLING, Subject};
use crate::input;
use crate::sim::{Options, Outcome};
use ptx_machine::{Lines, Module};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The text of a file that a line table names: where it says, or beside one of the files `near`.
#[must_use]
pub fn source(file: &str, near: &[PathBuf]) -> Option<String> {
    let path = Path::new(file);
    let folders = near.iter().filter_map(|near| near.parent());
    let beside = folders.flat_map(|folder| [Some(folder.join(path)), path.file_name().map(|name| folder.join(name))]);
    let places = std::iter::once(Some(path.to_owned())).chain(beside).flatten();
    places.into_iter().find_map(|place| input::text(place, input::SOURCE).ok())
}

/// The parts of its sources in which a run touches memory, and whether any of them was found.
pub fn excerpts(outcome: &Outcome, text_of: &dyn Fn(&str) -> Option<String>) -> (Vec<Excerpt>, bool) {
    let mut lines = BTreeMap::<&str, BTreeSet<u32>>::new();
    for site in &outcome.sites {
        lines.entry(site.position.file).or_default().insert(site.position.line);
    }
    let texts: Vec<_> = lines.keys().map(|file| text_of(file)).collect();
    let is_found = texts.iter().any(Option::is_some);
    let parts = lines.iter().zip(&texts);
    (parts.flat_map(|((file, lines), text)| Excerpt::of_file(file, text.as_deref(), lines)).collect(), is_found)
}

/// The explanation of a launch that has no findings; none if it touches no memory. `text` is the module's, `name` its file.
///
/// # Errors
/// If it cannot be simulated again.
pub fn explanation(
    ready: &Ready,
    module: &Module<'_>,
    name: &str,
    text: &str,
    near: &[PathBuf],
    options: &Options,
) -> Result<Option<Explanation>, ptx_machine::Error> {
    let options = Options { sampling: Some(SAMPLING), ..options.clone() };
    let mut outcome = ready.simulate(&options, &|_, _| ())?;
    let (mut source, is_found) =
        excerpts(&outcome, &|file| if file == name { Some(text.to_owned()) } else { source(file, near) });
    if !is_found {
        let mut without_lines = module.clone();
        without_lines.files.clear();
        let lowered = ptx_machine::lower(&without_lines, ready.entry, Lines { file: name, within: "" });
        // It was lowered before.
        let Ok(program) = lowered else { return Ok(None) };
        outcome = ready.simulate_as(&Arc::new(program), &options, &|_, _| ())?;
        source = excerpts(&outcome, &|_| Some(text.to_owned())).0;
    }
    if outcome.sites.is_empty() || !outcome.findings.is_empty() {
        return Ok(None);
    }
    let subject = Subject {
        kernel: ready.entry.to_owned(),
        summary: format!("An entry of {name}."),
        case: ready.name.clone(),
        launch: ready.plan.launch,
        counts_stated: true,
        source,
    };
    Ok(Some(Explanation::of(subject, &outcome)))
}
