//! Budgets held and written: of accesses whose costs are given.

use super::cost::Cost;
use super::*;
use crate::record::{ErrorRecord, SiteRecord};
use crate::sim::{Finding, Kind, Position};

/// An access to global memory of so many requests and sectors.
fn global(name: &str, line: u32, requests: u64, sectors: u64, used: u64) -> Access {
    let site = site("global", requests, Some(sectors), Some(used), None);
    access(name, line, Cost::of(&site), 32 * sectors - used)
}

/// An access to shared memory of so many requests and wavefronts.
fn shared(name: &str, line: u32, requests: u64, wavefronts: u64) -> Access {
    access(name, line, Cost::of(&site("shared", requests, None, None, Some(wavefronts))), 128 * (wavefronts - requests))
}

fn site(space: &str, requests: u64, sectors: Option<u64>, used: Option<u64>, wavefronts: Option<u64>) -> SiteRecord {
    SiteRecord {
        file: "kernel.rs".into(),
        line: 1,
        column: 1,
        space: space.into(),
        op: "load".into(),
        width: 4,
        requests,
        lanes: 32 * requests,
        sectors,
        sectors_ideal: sectors.map(|_| 4 * requests),
        used,
        lines: sectors,
        wavefronts,
        wavefronts_ideal: wavefronts.map(|_| requests),
        transactions: None,
        notes: Vec::new(),
    }
}

fn access(name: &str, line: u32, cost: Cost, excess: u64) -> Access {
    let region = name.split(' ').nth(1).unwrap_or_default();
    Access {
        name: name.into(),
        regions: vec![region.into()],
        at: Place { file: "kernel.rs".into(), line, column: Some(9) },
        cost,
        excess,
        why: format!("Why {name}."),
        advice: vec![format!("Mend {name}.")],
    }
}

fn kernel(kernel: &str, case: &str) -> Subject {
    Subject::Kernel { kernel: kernel.into(), case: case.into() }
}

fn counted(subject: Subject, accesses: Vec<Access>) -> Counted {
    let at = Place { file: "kernel.rs".into(), line: 3, column: None };
    Counted { subject, at, accesses: Some(accesses), findings: Vec::new(), error: None }
}

fn parse(text: &str) -> Budgets {
    Budgets::parse("busload.toml", text.into()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

const RULES: Rules = Rules { gone_fails: true, budgets_required: false };

fn held(text: &str, counted: Vec<Counted>, rules: Rules) -> Report {
    hold(&parse(text), counted, &|_| true, rules)
}

fn blessed(text: &str, counted: &[Counted]) -> Blessed {
    bless(&parse(text), counted, &|_| true).expect("budgets")
}

/// The sentences of what is to be said, each with its place before it and `note` if nothing fails by it.
fn said(report: &Report) -> Vec<String> {
    let line = |issue: Issue| {
        let note = if issue.level == Level::Note { "note " } else { "" };
        let at = issue.at.as_ref().map_or_else(|| "-".to_owned(), |at| format!("{}:{}", at.file, at.line));
        format!("{note}{at} {}", issue.sentence())
    };
    issues(report).into_iter().map(line).collect()
}

/// A copy and a transpose, as they are.
fn as_they_are() -> Vec<Counted> {
    let transpose = vec![
        global("load src", 38, 32, 128, 4096),
        global("store dst", 38, 32, 1024, 4096),
        shared("load tile", 40, 32, 32),
        shared("load tile #2", 41, 32, 64),
    ];
    vec![
        counted(kernel("copy", "1024"), vec![global("load src", 7, 3, 10, 300)]),
        counted(kernel("transpose", "32x32"), transpose),
    ]
}

#[test]
fn what_is_blessed_holds_to_the_digit_and_is_blessed_to_itself() {
    let Blessed { text, changed, added, removed } = blessed("", &as_they_are());
    assert_eq!((changed, added, removed), (0, 5, 0));
    let tables = text.split_once("\n\n").expect("a heading before").1;
    assert_eq!(
        tables,
        "[budget.copy.1024]\n\
         \"load src\" = { requests = 3, sectors_per_request = 3.3333333333333335, bytes_moved = 320, used = 0.9375 }\n\
         \n\
         [budget.transpose.32x32]\n\
         \"load src\" = { requests = 32, sectors_per_request = 4.0, bytes_moved = 4096, used = 1.0 }\n\
         \"store dst\" = { requests = 32, sectors_per_request = 32.0, bytes_moved = 32768, used = 0.125 }\n\
         \"load tile\" = { requests = 32, conflicts = 0 }\n\
         \"load tile #2\" = { requests = 32, conflicts = 32 }\n"
    );
    let report = held(&text, as_they_are(), Rules { budgets_required: true, ..RULES });
    assert!(report.passed && said(&report).is_empty(), "{:?}", said(&report));
    assert!(report.results.iter().all(|own| own.accesses.iter().all(|held| held.verdict == Verdict::Same)));
    assert_eq!(blessed(&text, &as_they_are()), Blessed { text: text.clone(), changed: 0, added: 0, removed: 0 });
    // Lines move, and nothing is different.
    let mut moved = as_they_are();
    moved.iter_mut().flat_map(|own| own.accesses.iter_mut().flatten()).for_each(|access| access.at.line += 100);
    assert!(held(&text, moved, RULES).passed);
}

#[test]
fn what_costs_more_fails_with_its_line_the_counts_before_and_now_and_why() {
    let text = blessed("", &as_they_are()).text;
    let mut worse = as_they_are();
    let accesses = worse[1].accesses.as_mut().expect("accesses");
    accesses[0] = global("load src", 44, 32, 1024, 4096);
    accesses[2] = shared("load tile", 46, 32, 1024);
    let report = held(&text, worse, RULES);
    assert!(!report.passed);
    assert_eq!(
        said(&report),
        [
            "kernel.rs:44 transpose on 32x32, load src: 32.00 sectors a request (budget 4.00), 32768 bytes moved (budget 4096), \
             12.5 % used (budget 100.0 %)",
            "kernel.rs:46 transpose on 32x32, load tile: 992 conflicts (budget 0)",
        ]
    );
    assert_eq!(issues(&report)[0].detail, ["Why load src.", "→ Mend load src."]);
    // A quotient that is off in its last digit is off.
    let mut off = as_they_are();
    off[0].accesses = Some(vec![global("load src", 7, 3_000_000, 10_000_001, 300_000_030)]);
    let report = held("[budget.copy.1024]\n\"load src\" = { sectors_per_request = 3.3333333333333335 }\n", off, RULES);
    assert_eq!(said(&report)[0], "kernel.rs:7 copy on 1024, load src: 3.333334 sectors a request (budget 3.333333)");
}

#[test]
fn what_costs_less_passes_with_a_hint_and_blessing_holds_it_to_that() {
    let text = blessed("", &as_they_are()).text;
    let mut better = as_they_are();
    better[1].accesses.as_mut().expect("accesses")[1] = global("store dst", 38, 32, 128, 4096);
    let report = held(&text, better.clone(), RULES);
    assert!(report.passed);
    assert_eq!(
        said(&report),
        [
            "note kernel.rs:38 transpose on 32x32, store dst: 4.00 sectors a request (budget 32.00), 4096 bytes moved (budget 32768), \
          100.0 % used (budget 12.5 %): `check --bless` holds it to that"
        ]
    );
    let Blessed { text, changed, added, removed } = blessed(&text, &better);
    assert_eq!((changed, added, removed), (1, 0, 0));
    assert!(!held(&text, as_they_are(), RULES).passed, "it may not cost more again");
}

#[test]
fn what_is_gone_fails_and_what_is_new_is_noted_unless_budgets_are_required() {
    let text = blessed("", &as_they_are()).text;
    let mut now = as_they_are();
    now.remove(0);
    let accesses = now[0].accesses.as_mut().expect("accesses");
    accesses[0] = global("load source", 38, 32, 128, 4096);
    let new = counted(kernel("copy", "2048"), vec![global("load src", 7, 3, 10, 300)]);
    now.push(new);
    let report = held(&text, now.clone(), RULES);
    assert!(!report.passed);
    let said_now = said(&report);
    assert_eq!(said_now.len(), 3, "{said_now:?}");
    assert_eq!(
        said_now[0],
        "busload.toml:8 transpose on 32x32, load src: there is no such access any more; there is store dst, load tile, \
         load tile #2, load source: `check --bless` removes its budget"
    );
    assert!(said_now[1].starts_with(
        "note kernel.rs:38 transpose on 32x32, load source: it has no budget, and costs 32 requests, 4.00 sectors a request, 4096 \
         bytes moved, 100.0 % used: "
    ));
    assert!(said_now[2].starts_with("busload.toml:5 copy on 1024: there is no such kernel, case or launch any more: "));
    // Of a commit, what is gone is no failure; what is new can be made one.
    let report = held(&text, now.clone(), Rules { gone_fails: false, budgets_required: false });
    assert!(report.passed && report.against.is_some() && report.budgets.is_none());
    assert!(
        said(&report).iter().all(|line| line.starts_with("note ") && !line.contains("--bless")),
        "{:?}",
        said(&report)
    );
    let report = held(&text, now.clone(), Rules { gone_fails: false, budgets_required: true });
    assert!(!report.passed);
    assert!(said(&report).contains(
        &"kernel.rs:3 copy on 2048: none of its accesses has a budget: `check --bless` writes them".to_owned()
    ));
    let Blessed { text, changed, added, removed } = blessed(&text, &now);
    assert_eq!((changed, added, removed), (0, 2, 2));
    assert!(held(&text, now, Rules { budgets_required: true, ..RULES }).passed);
    assert!(!text.contains("1024") && text.contains("[budget.copy.2048]"), "{text}");
}

#[test]
fn a_region_is_budgeted_as_one_and_its_accesses_need_none_of_their_own() {
    let all = "[budget.transpose.\"*\"]\nall = { conflicts = 32, bytes_moved = 36864, used = 0.222 }\n\
               tile = { conflicts = 32 }\nsrc = { sectors_per_request = 4 }\n";
    let transpose = || as_they_are().split_off(1);
    let report = held(all, transpose(), Rules { budgets_required: true, ..RULES });
    assert!(report.passed);
    // Of any case, what costs less is as it should be.
    assert_eq!(said(&report), [""; 0]);
    let mut worse = transpose();
    worse[0].accesses.as_mut().expect("accesses")[3] = shared("load tile #2", 41, 32, 65);
    let report = held(all, worse.clone(), RULES);
    assert_eq!(
        said(&report)[..2],
        [
            "kernel.rs:38 transpose on 32x32, all: 33 conflicts (budget 32)",
            "kernel.rs:41 transpose on 32x32, tile: 33 conflicts (budget 32)"
        ]
    );
    // Of any case, blessing allows what the worst costs, and takes nothing back.
    let Blessed { text, changed, added, removed } = blessed(all, &worse);
    assert_eq!((changed, added, removed), (2, 0, 0));
    assert_eq!(text, all.replace("conflicts = 32", "conflicts = 33"));
    // One case may lack what another has; a budget that none has is gone.
    let mut cases = transpose();
    let mut other = counted(kernel("transpose", "1x1"), vec![global("load src", 38, 1, 1, 32)]);
    cases.push(other.clone());
    assert!(held(all, cases.clone(), RULES).passed);
    let report = held(&format!("{all}dust = {{ used = 1 }}\n"), cases.clone(), RULES);
    assert!(!report.passed);
    assert!(
        said(&report)
            .last()
            .is_some_and(|line| line
                .starts_with("busload.toml:5 transpose on any case, dust: there is no such access any more: ")),
        "{:?}",
        said(&report)
    );
    assert_eq!(blessed(&format!("{all}dust = {{ used = 1 }}\n"), &cases).text, all);
    // What went wrong may have had it.
    other.accesses = None;
    other.error = Some(ErrorRecord { kind: "plan".into(), message: "no".into() });
    cases[1] = other;
    assert_eq!(
        said(&held(&format!("{all}dust = {{ used = 1 }}\n"), cases, RULES)).last().expect("a line"),
        "kernel.rs:3 transpose on 1x1: plan: no"
    );
}

#[test]
fn a_file_written_by_hand_keeps_its_comments_its_order_and_what_it_limits() {
    let text = "# Held since May.\n\n[budget.transpose.\"32x32\"] # the small one\n# The store is what it is.\n\
                \"store dst\" = { used = 0.5 } # half\n\"load src\" = { sectors_per_request = 4 }\n\
                tile = { conflicts = 0 }\n\n[launch.\"a.toml\".scale]\nx = { used = 1.0 }\n";
    let launches_apart = |subject: &Subject| matches!(subject, Subject::Kernel { .. });
    let Blessed { text: now, changed, added, removed } =
        bless(&parse(text), &as_they_are(), &launches_apart).expect("budgets");
    assert_eq!((changed, added, removed), (2, 1, 0));
    let expected = text.replace("used = 0.5 }", "used = 0.125 }").replace("conflicts = 0 }", "conflicts = 32 }");
    let copy = "\n[budget.copy.1024]\n\
                \"load src\" = { requests = 3, sectors_per_request = 3.3333333333333335, bytes_moved = 320, used = 0.9375 }\n";
    assert_eq!(now.replace(copy, ""), expected);
    assert!(now.contains(copy), "{now}");
    // Comments alone stay before what is new.
    let commented = blessed("# Ours.\n", &as_they_are()).text;
    assert!(commented.starts_with("# Ours.\n\n[budget.copy.1024]\n"), "{commented}");
}

#[test]
fn what_is_wrong_fails_and_is_not_blessed() {
    let text = blessed("", &as_they_are()).text;
    let mut wrong = as_they_are();
    let at = |line| Some(Position { file: "kernel.rs", line, column: 5 });
    let race = Finding {
        kind: Kind::Race,
        at: at(9),
        other: at(12),
        block: [0; 3],
        thread: [1, 0, 0],
        detail: "two threads write `dst`".into(),
    };
    wrong[0] = Counted { accesses: None, findings: vec![race], ..wrong[0].clone() };
    wrong[1].error = Some(ErrorRecord { kind: "verification".into(), message: "element 3 is 1, not 2".into() });
    wrong[1].accesses.as_mut().expect("accesses").pop();
    let report = held(&text, wrong.clone(), RULES);
    assert!(!report.passed);
    let found = issues(&report);
    assert_eq!((found[0].rule.id().as_str(), found[1].rule.id().as_str()), ("race", "wrong-verification"));
    assert_eq!(
        (found[0].at.as_ref().map(|at| at.line), found[0].other.as_ref().map(|at| at.line)),
        (Some(9), Some(12))
    );
    assert!(
        found[0]
            .sentence()
            .starts_with("copy on 1024: race: two threads write `dst`, at kernel.rs:9:5 and kernel.rs:12:5")
    );
    assert_eq!(found[1].sentence(), "transpose on 32x32: verification: element 3 is 1, not 2");
    assert_eq!(blessed(&text, &wrong).text, text);
}
