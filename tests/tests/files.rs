//! How code is divided: files that are short, and import one another in one direction. A module may use its own parts, and they what
//! stands in it.

use busload_tests::root;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree};

/// The sources of every crate of the workspace.
fn crates() -> Vec<PathBuf> {
    let mut folders = vec![root().join("gpu/src"), root().join("xtask/src")];
    let host = std::fs::read_dir(root().join("host")).expect("host");
    folders.extend(host.map(|entry| entry.expect("an entry").path().join("src")).filter(|path| path.is_dir()));
    folders.sort();
    assert!(folders.len() > 8, "{folders:?}");
    folders
}

/// The modules of a crate by their paths, each with its file. The root of a program beside a library is a module of its own.
fn modules(folder: &Path) -> BTreeMap<Vec<String>, PathBuf> {
    fn add(folder: &Path, path: &[String], modules: &mut BTreeMap<Vec<String>, PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let file = entry.expect("an entry").path();
            let stem = file.file_stem().expect("a name").to_string_lossy().into_owned();
            let inside = || path.iter().cloned().chain([stem.clone()]).collect::<Vec<_>>();
            if file.is_dir() {
                add(&file, &inside(), modules);
            } else if file.extension().is_some_and(|extension| extension == "rs") && stem != "tests" {
                let is_folder = stem == "mod" || path.is_empty() && stem == "lib";
                modules.insert(if is_folder { path.to_vec() } else { inside() }, file);
            }
        }
    }
    let mut modules = BTreeMap::new();
    add(folder, &[], &mut modules);
    modules
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

/// The paths that a file names, without its tests.
struct Paths {
    /// The module that the file is.
    module: Vec<String>,
    named: Vec<Vec<String>>,
}

impl Paths {
    /// Adds a path, if it leads to a module of the crate.
    fn add(&mut self, path: &[String]) {
        let start = match path.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self") => self.module.clone(),
            Some("super") => {
                let levels = path.iter().take_while(|part| *part == "super").count();
                self.module[..self.module.len().saturating_sub(levels)].to_vec()
            }
            _ => return,
        };
        let rest = path.iter().skip_while(|part| ["crate", "self", "super"].contains(&part.as_str()));
        self.named.push(start.into_iter().chain(rest.cloned()).collect());
    }

    fn add_tree(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| before.iter().cloned().chain([name.to_string()]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => self.add_tree(&with(&path.ident), &path.tree),
            UseTree::Name(name) if name.ident == "self" => self.add(before),
            UseTree::Name(name) => self.add(&with(&name.ident)),
            UseTree::Rename(rename) => self.add(&with(&rename.ident)),
            UseTree::Glob(_) => self.add(before),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(before, tree)),
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        let tests = match item {
            Item::Mod(ItemMod { attrs, .. }) | Item::Fn(syn::ItemFn { attrs, .. }) => is_test(attrs),
            _ => false,
        };
        if !tests {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        // What a module hands on of its own parts is no use of them.
        if matches!(item.vis, syn::Visibility::Inherited) && !is_test(&item.attrs) {
            self.add_tree(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(&path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>());
        visit::visit_path(self, path);
    }

    /// Visibilities name modules too.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

/// Of each module of a crate, the other modules whose items it uses.
fn uses(modules: &BTreeMap<Vec<String>, PathBuf>) -> BTreeMap<&[String], BTreeSet<&[String]>> {
    let used = |(module, file): (&Vec<String>, &PathBuf)| {
        let text = std::fs::read_to_string(file).expect("a source");
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut paths = Paths { module: module.clone(), named: Vec::new() };
        paths.visit_file(&parsed);
        let module_of = |path: &Vec<String>| {
            let known = (0..=path.len()).rev().find_map(|length| modules.get_key_value(&path[..length]));
            known.map(|(module, _)| module.as_slice())
        };
        paths.named.iter().filter_map(module_of).filter(|used| used != module).collect()
    };
    modules.iter().map(|entry| (entry.0.as_slice(), used(entry))).collect()
}

/// A way from a module back to itself, if there is one.
fn circle<'a>(uses: &BTreeMap<&'a [String], BTreeSet<&'a [String]>>) -> Option<Vec<&'a [String]>> {
    fn go<'a>(
        module: &'a [String],
        uses: &BTreeMap<&'a [String], BTreeSet<&'a [String]>>,
        way: &mut Vec<&'a [String]>,
        done: &mut BTreeSet<&'a [String]>,
    ) -> Option<Vec<&'a [String]>> {
        if let Some(begin) = way.iter().position(|other| *other == module) {
            return Some(way[begin..].to_vec());
        }
        if !done.insert(module) {
            return None;
        }
        way.push(module);
        let found = uses[module].iter().find_map(|used| go(used, uses, way, done));
        way.pop();
        found
    }
    let mut done = BTreeSet::new();
    uses.keys().find_map(|module| go(module, uses, &mut Vec::new(), &mut done))
}

#[test]
fn files_import_one_another_in_one_direction() {
    for folder in crates() {
        let modules = modules(&folder);
        let uses = uses(&modules);
        let names = |way: Vec<&[String]>| way.iter().map(|module| module.join("::")).collect::<Vec<_>>();
        assert_eq!(circle(&uses).map(names), None, "{}", folder.display());
    }
}

#[test]
fn a_circle_is_found() {
    let name = |name: &str| vec![name.to_owned()];
    let [a, b, c] = ["a", "b", "c"].map(name);
    let uses = |of_c: &[&'static str]| {
        let of_c: Vec<Vec<String>> = of_c.iter().map(|used| name(used)).collect();
        let graph =
            [(&a[..], [&b[..]].into()), (&b[..], [&c[..]].into()), (&c[..], of_c.iter().map(Vec::as_slice).collect())];
        circle(&graph.into()).map(|way| way.len())
    };
    assert_eq!((uses(&[]), uses(&["b"]), uses(&["a"])), (None, Some(2), Some(3)));
}

/// Lines of a file before its tests, and of those.
fn lines(text: &str) -> [usize; 2] {
    let all = text.lines().count();
    let tests = text.lines().position(|line| line == "mod tests {").map_or(0, |begin| all - begin);
    [all - tests, tests]
}

#[test]
fn files_are_short_and_long_tests_stand_beside_them() {
    let mut count = 0;
    for folder in crates() {
        for entry in walkdir::WalkDir::new(&folder) {
            let path = entry.expect("an entry").into_path();
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let [code, tests] = lines(&std::fs::read_to_string(&path).expect("a source"));
            assert!(code <= 500, "{} has {code} lines without its tests: divide it", path.display());
            assert!(tests <= 200, "{} has {tests} lines of tests: put them in a file beside it", path.display());
            count += 1;
        }
    }
    assert!(count > 100, "{count} files");
}
