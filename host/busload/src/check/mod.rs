//! Budgets: what each access of a kernel may cost, written down in a file, and held to what the simulator counts now.
//!
//! Counts have no noise, so a budget needs no tolerance: what costs more is worse. A budget names its access as `explain` does,
//! `load src`, so it goes on to hold when lines move. [`Budgets`] is the file, [`Counted`] what was counted, [`hold`](hold()) puts them
//! side by side, [`bless`](bless()) writes the file, and [`Commit`] has a program of another commit write one.

mod bless;
mod budgets;
mod commit;
mod cost;
mod count;
mod hold;
mod issue;
#[cfg(test)]
mod tests;

pub use bless::{Blessed, bless};
pub use budgets::{ANY_CASE, Budget, Budgets, Invalid, Subject, Table};
pub use commit::{Commit, CommitError};
pub use cost::{ALL, Access, Cost, Measure, Place, accesses};
pub use count::{Counted, Launches, of_launch, of_run, on_case};
pub use hold::{Checked, Held, Limit, Report, Rules, Verdict, hold};
pub use issue::{Issue, Level, Rule, issues};
