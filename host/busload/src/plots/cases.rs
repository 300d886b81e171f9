//! Subjects by their cases, and what these are called where much of them is the same.

use super::material::Subject;

/// Subjects of one case.
pub(crate) struct Case<'a> {
    /// What differs from the other cases.
    pub(crate) label: String,
    /// The subjects, in the order of the ladder.
    pub(crate) subjects: Vec<&'a Subject>,
}

/// Subjects by case, in their order, and what all of their cases have in common.
pub(crate) fn cases<'a>(subjects: &[&'a Subject]) -> (Vec<Case<'a>>, String) {
    let mut cases: Vec<(&str, Vec<&Subject>)> = Vec::new();
    for subject in subjects {
        match cases.iter_mut().find(|(case, _)| *case == subject.case) {
            Some((_, of)) => of.push(subject),
            None => cases.push((&subject.case, vec![subject])),
        }
    }
    let (labels, common) = told_apart(&cases.iter().map(|(case, _)| *case).collect::<Vec<_>>());
    let cases = cases.into_iter().zip(labels).map(|((_, subjects), label)| Case { label, subjects });
    (cases.collect(), common)
}

/// The words of each case that not all have in its place, and those that all have.
fn told_apart(cases: &[&str]) -> (Vec<String>, String) {
    let words: Vec<Vec<&str>> = cases.iter().map(|case| case.split(' ').collect()).collect();
    let is_common = |place: usize| {
        let first = words.first().and_then(|words| words.get(place));
        words.iter().all(|words| words.get(place) == first)
    };
    let kept = |words: &Vec<&str>, common: bool| {
        let words = words.iter().enumerate().filter(|(place, _)| is_common(*place) == common);
        words.map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
    };
    (
        words.iter().map(|words| kept(words, false)).collect(),
        words.first().map_or_else(String::new, |words| kept(words, true)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_called_by_what_differs() {
        let (labels, common) = told_apart(&["1024 stride=1 order=x", "1024 stride=2 order=x"]);
        assert_eq!((labels, common.as_str()), (vec!["stride=1".to_owned(), "stride=2".to_owned()], "1024 order=x"));
        assert_eq!(told_apart(&["4096x4096"]), (vec![String::new()], "4096x4096".to_owned()));
        assert_eq!(told_apart(&[]), (Vec::new(), String::new()));
    }
}
