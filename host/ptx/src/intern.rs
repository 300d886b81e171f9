//! Names that are kept for as long as the process runs, each once.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

pub(crate) fn intern(text: &str) -> &'static str {
    static KNOWN: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    known.get(text).copied().unwrap_or_else(|| {
        let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
        known.insert(kept);
        kept
    })
}
