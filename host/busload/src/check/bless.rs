//! Budgets written from what was counted. What a person wrote beside them stays: comments, order, and which measures are limited.

use super::budgets::{ANY_CASE, Budget, Budgets, Invalid, Subject};
use super::cost::{Access, Cost, Measure};
use super::count::Counted;
use std::collections::BTreeSet;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// A file of budgets, as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blessed {
    /// Its text.
    pub text: String,
    /// Budgets that are other than they were.
    pub changed: usize,
    /// Budgets that are new.
    pub added: usize,
    /// Budgets that are gone.
    pub removed: usize,
}

/// What a new file begins with.
const HEADER: &str = "\
# What each access of a kernel may ask of the memory system. `check` counts it and fails where it is more;
# `check --bless` writes what is counted now.

";

/// The budgets of what was counted, where nothing is wrong with it: those there are, at what they cost now, and one for each access
/// that none is of. What is gone loses its budgets if it is within `scope`.
///
/// # Errors
/// If the text that there is cannot be edited.
pub fn bless(budgets: &Budgets, counted: &[Counted], scope: &dyn Fn(&Subject) -> bool) -> Result<Blessed, Invalid> {
    let document = budgets.text.parse::<DocumentMut>();
    let document = document.map_err(|error| Invalid(format!("{}: {}", budgets.file, error.message())))?;
    let had_tables = !document.is_empty();
    let mut editor = Editor { budgets, document, changed: 0, added: 0, removed: 0 };
    let is_right = |counted: &&Counted| counted.error.is_none() && counted.findings.is_empty();
    for counted in counted.iter().filter(is_right) {
        if let Some(accesses) = &counted.accesses {
            editor.set(&counted.subject, accesses);
        }
    }
    editor.remove_gone(counted, scope);
    let Editor { document, changed, added, removed, .. } = editor;
    let text = match (had_tables, budgets.text.is_empty()) {
        (true, _) => document.to_string(),
        (false, true) => format!("{HEADER}{document}"),
        // Comments alone would stand behind what is new.
        (false, false) => format!("{}\n\n{}", budgets.text.trim_end(), without(&document, &budgets.text)),
    };
    let text = if changed + added + removed == 0 && !budgets.text.is_empty() { budgets.text.clone() } else { text };
    Ok(Blessed { text, changed, added, removed })
}

/// The document without the comments that it had before anything else.
fn without(document: &DocumentMut, comments: &str) -> String {
    let text = document.to_string();
    text.strip_suffix(comments).map_or_else(|| text.clone(), str::to_owned)
}

struct Editor<'a> {
    budgets: &'a Budgets,
    document: DocumentMut,
    changed: usize,
    added: usize,
    removed: usize,
}

impl Editor<'_> {
    fn set(&mut self, subject: &Subject, accesses: &[Access]) {
        let [own, any] = self.budgets.of(subject);
        for budget in own.map_or(&[][..], |table| &table.budgets) {
            match cost(budget, accesses) {
                Some(cost) => {
                    self.set_limits(subject, budget, |measure, limit| cost.measure(measure).filter(|now| *now != limit))
                }
                None => self.remove(subject, Some(&budget.name)),
            }
        }
        // Of any case, it is what the worst may cost.
        if let Some(any_case) = subject.on_any_case() {
            for budget in any.map_or(&[][..], |table| &table.budgets) {
                let Some(cost) = cost(budget, accesses) else { continue };
                self.set_limits(&any_case, budget, |measure, limit| {
                    cost.measure(measure).filter(|now| measure.is_worse(*now, limit))
                });
            }
        }
        let budgets: Vec<_> = [own, any].into_iter().flatten().flat_map(|table| &table.budgets).collect();
        for access in accesses {
            if !budgets.iter().any(|budget| access.is_of(&budget.name)) {
                self.table(subject).insert(&access.name, Item::Value(Value::InlineTable(limits(&access.cost))));
                self.added += 1;
            }
        }
    }

    /// Removes what is left of subjects that are gone, and budgets for any case that no case has.
    fn remove_gone(&mut self, counted: &[Counted], scope: &dyn Fn(&Subject) -> bool) {
        let seen: BTreeSet<_> = counted.iter().map(|counted| &counted.subject).collect();
        for (subject, table) in self.budgets.tables.iter().filter(|(subject, _)| !seen.contains(subject)) {
            let of_same_kernel: Vec<_> =
                counted.iter().filter(|other| other.subject.on_any_case().as_ref() == Some(subject)).collect();
            let of_any_case = matches!(subject, Subject::Kernel { case, .. } if case == ANY_CASE);
            match of_any_case && !of_same_kernel.is_empty() {
                false if scope(subject) => self.remove(subject, None),
                false => {}
                true => {
                    // What is wrong was not counted.
                    let Some(accesses) =
                        of_same_kernel.iter().map(|own| own.accesses.as_deref()).collect::<Option<Vec<_>>>()
                    else {
                        continue;
                    };
                    let is_gone =
                        |budget: &&Budget| scope(subject) && accesses.iter().all(|own| cost(budget, own).is_none());
                    table.budgets.iter().filter(is_gone).for_each(|budget| self.remove(subject, Some(&budget.name)));
                }
            }
        }
    }

    /// The table of a subject, which is made if there is none.
    fn table(&mut self, subject: &Subject) -> &mut dyn TableLike {
        let [root, outer, inner] = subject.keys();
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        for (key, implicit) in [(root, true), (outer, true), (inner, false)] {
            let mut new = Table::new();
            new.set_implicit(implicit);
            let item = table.entry(key).or_insert(Item::Table(new));
            table = item.as_table_like_mut().expect("what was read as tables is tables");
        }
        table
    }

    /// Sets those limits of a budget for which there is another value.
    fn set_limits(&mut self, subject: &Subject, budget: &Budget, other: impl Fn(Measure, f64) -> Option<f64>) {
        let limits = self.table(subject).get_mut(&budget.name).and_then(Item::as_table_like_mut);
        let Some(limits) = limits else { return };
        let mut is_changed = false;
        for &(measure, limit) in &budget.limits {
            let (Some(new), Some(old)) =
                (other(measure, limit), limits.get_mut(measure.name()).and_then(Item::as_value_mut))
            else {
                continue;
            };
            let decor = old.decor().clone();
            *old = value(measure, new);
            *old.decor_mut() = decor;
            is_changed = true;
        }
        self.changed += usize::from(is_changed);
    }

    /// Removes a budget, or all of a subject.
    fn remove(&mut self, subject: &Subject, name: Option<&str>) {
        let table = self.budgets.tables.get(subject);
        match name {
            Some(name) => {
                self.table(subject).remove(name);
                self.removed += 1;
            }
            None => {
                let [root, outer, inner] = subject.keys();
                let root = self.document.get_mut(root).and_then(Item::as_table_like_mut);
                let Some(outer_table) = root.and_then(|root| root.get_mut(outer)).and_then(Item::as_table_like_mut)
                else {
                    return;
                };
                outer_table.remove(inner);
                self.removed += table.map_or(0, |table| table.budgets.len());
            }
        }
    }
}

/// What the accesses of a budget cost together; none if it has none.
fn cost(budget: &Budget, accesses: &[Access]) -> Option<Cost> {
    let mut costs = accesses.iter().filter(|access| access.is_of(&budget.name)).map(|access| access.cost).peekable();
    costs.peek()?;
    Some(costs.sum())
}

fn limits(cost: &Cost) -> InlineTable {
    cost.measures().into_iter().map(|(measure, now)| (measure.name(), value(measure, now))).collect()
}

fn value(measure: Measure, value: f64) -> Value {
    if measure.is_count() { Value::from(value as i64) } else { Value::from(value) }
}
