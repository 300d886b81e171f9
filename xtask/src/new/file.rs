//! A family's file: where its kernels and its list stand, and the text with one more of each.
//!
//! All is done by places that a parser finds, so that comments and layout stay as they are.

use anyhow::{Context, Result, ensure};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::ops::Range;
use std::path::Path;
use syn::{Attribute, Item, ItemFn};

/// A family's file has fewer lines than this, which a test holds.
const LINES: usize = 350;

/// A kernel of the file.
#[derive(Debug)]
struct Kernel {
    name: String,
    /// The function's name alone.
    ident: Range<usize>,
    /// What stands behind its documentation.
    code: Range<usize>,
    line: usize,
}

/// An entry of the family's list.
#[derive(Debug)]
struct Entry {
    kernel: String,
    /// The kernel's name in it.
    ident: Range<usize>,
    whole: Range<usize>,
}

/// The text of a family's file with a copy of one of its kernels under another name: of `like`, or of the first in its list.
///
/// # Errors
/// If the file is not laid out as families are: where, and what is looked for.
pub(super) fn with_variant(path: &Path, text: &str, kernel: &str, like: Option<&str>) -> Result<String> {
    let shown = path.display();
    let file = parsed(path, text)?;
    let kernels: Vec<_> = file.items.iter().filter_map(of_item).collect();
    let list = list_of(&file).with_context(|| {
        format!("{shown}: no list `kernels: &[Entry {{ … }}, …]` in a `family! {{ … }}`: see gpu/src/kernels/copy.rs for one")
    })?;
    let entries = entries(&list);
    let listed = || entries.iter().map(|entry| entry.kernel.as_str()).collect::<Vec<_>>().join(", ");
    let entry = match like {
        Some(like) => entries.iter().find(|entry| entry.kernel == like).with_context(|| {
            format!("--like {like}: {shown} lists no such kernel, but {}", listed())
        })?,
        None => entries.first().with_context(|| {
            format!(
                "{shown}: its list has no entry of the form `Entry {{ kernel: NAME::KERNEL, plan: … }}` to begin from: write the \
                 family's first kernel by hand"
            )
        })?,
    };
    let source = |name: &str| kernels.iter().find(|kernel| kernel.name == name);
    let source_of_copy = source(&entry.kernel).with_context(|| {
        format!(
            "{shown}: the list has `{}`, and no function of that name stands under `#[kernel]` in this file: choose another by --like",
            entry.kernel
        )
    })?;
    // Behind the last kernel of the list, so that the order of both stays the same.
    let place = entries.iter().filter_map(|entry| source(&entry.kernel)).map(|kernel| kernel.code.end).max();
    let place = place.unwrap_or(source_of_copy.code.end);
    let copied = [
        &documentation(&entry.kernel),
        &text[source_of_copy.code.start..source_of_copy.ident.start],
        kernel,
        &text[source_of_copy.ident.end..source_of_copy.code.end],
    ]
    .concat();
    let new_entry =
        [&text[entry.whole.start..entry.ident.start], kernel, &text[entry.ident.end..entry.whole.end]].concat();
    let (from, to) = (list.span_open().byte_range().end, list.span_close().byte_range().start);
    let with_list = listed_with(text, from..to, &entries, &new_entry);
    let out = match place <= from {
        true => [&text[..place], "\n\n", &copied, &text[place..from], &with_list, &text[to..]].concat(),
        false => [&text[..from], &with_list, &text[to..place], "\n\n", &copied, &text[place..]].concat(),
    };
    // What comes out is what was meant, or nothing is written.
    let made = parsed(path, &out)?;
    let is_there = made.items.iter().filter_map(of_item).filter(|other| other.name == kernel).count() == 1;
    let is_listed = list_of(&made).is_some_and(|list| entries_are(&self::entries(&list), &entries, kernel));
    ensure!(
        is_there && is_listed,
        "{shown}: line {} is not laid out as kernels of a family are: write `{kernel}` by hand",
        source_of_copy.line
    );
    let lines = out.lines().count();
    ensure!(
        lines < LINES,
        "{shown} would have {lines} lines, and a family's file has fewer than {LINES}: begin a family of its own, or split this one"
    );
    Ok(out)
}

fn entries_are(now: &[Entry], before: &[Entry], added: &str) -> bool {
    let names = |entries: &[Entry]| entries.iter().map(|entry| entry.kernel.clone()).collect::<Vec<_>>();
    names(now) == [names(before), vec![added.to_owned()]].concat()
}

/// The text of `gpu/src/kernels/mod.rs` with one more line in `families! { … }`.
///
/// # Errors
/// If there is no such list.
pub(super) fn with_family(path: &Path, text: &str, family: &str) -> Result<String> {
    let shown = path.display();
    let missing = || format!("{shown}: no list `families! {{ … }}` of names, one a line");
    let file = parsed(path, text)?;
    let list = macro_of(&file, "families").and_then(|tokens| {
        let names: Vec<_> = tokens.into_iter().collect();
        names.iter().all(|name| matches!(name, TokenTree::Ident(_))).then_some(names)
    });
    let last = list.as_ref().and_then(|names| names.last()).with_context(missing)?;
    let end = last.span().byte_range().end;
    let out = [&text[..end], "\n    ", family, &text[end..]].concat();
    let made = macro_of(&parsed(path, &out)?, "families").with_context(missing)?;
    ensure!(made.into_iter().last().is_some_and(|last| last.to_string() == family), missing());
    Ok(out)
}

/// The families that `gpu/src/kernels/mod.rs` lists.
///
/// # Errors
/// As [`with_family`].
pub(super) fn families(path: &Path, text: &str) -> Result<Vec<String>> {
    let list = macro_of(&parsed(path, text)?, "families");
    let list = list.with_context(|| format!("{}: no list `families! {{ … }}`", path.display()))?;
    Ok(list.into_iter().map(|name| name.to_string()).collect())
}

fn parsed(path: &Path, text: &str) -> Result<syn::File> {
    // The parser passes these over, and its places would be others.
    let is_shifted = text.starts_with('\u{feff}') || text.starts_with("#!") && !text.starts_with("#![");
    ensure!(!is_shifted, "{}:1: begins with a byte order mark or `#!`: take that out first", path.display());
    syn::parse_file(text).map_err(|error| {
        let at = error.span().start();
        anyhow::anyhow!("{}:{}:{}: {error}: mend it first", path.display(), at.line, at.column + 1)
    })
}

/// The kernel that an item is.
fn of_item(item: &Item) -> Option<Kernel> {
    let Item::Fn(function) = item else { return None };
    let ItemFn { attrs, sig, block, .. } = function;
    let attribute = attrs.iter().find(|attribute| attribute.path().is_ident("kernel"))?;
    // `#[kernel]` may stand below other attributes.
    let first = attrs.iter().find(|attribute| !is_documentation(attribute)).unwrap_or(attribute);
    let start = first.pound_token.span.byte_range().start;
    let end = block.brace_token.span.close().byte_range().end;
    let line = first.pound_token.span.start().line;
    Some(Kernel { name: sig.ident.to_string(), ident: sig.ident.span().byte_range(), code: start..end, line })
}

fn is_documentation(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

/// What a macro of this name is called with, where an item is its call.
fn macro_of(file: &syn::File, name: &str) -> Option<TokenStream> {
    file.items.iter().find_map(|item| match item {
        Item::Macro(call) if call.mac.path.is_ident(name) && call.ident.is_none() => Some(call.mac.tokens.clone()),
        _ => None,
    })
}

/// The brackets behind `kernels: &` in `family! { … }`.
fn list_of(file: &syn::File) -> Option<Group> {
    fn find(tokens: TokenStream) -> Option<Group> {
        let tokens: Vec<_> = tokens.into_iter().collect();
        tokens.iter().enumerate().find_map(|(place, token)| {
            let TokenTree::Group(group) = token else { return None };
            let before: String = tokens[place.saturating_sub(3)..place].iter().map(ToString::to_string).collect();
            match group.delimiter() {
                Delimiter::Bracket if before == "kernels:&" => Some(group.clone()),
                _ => find(group.stream()),
            }
        })
    }
    find(macro_of(file, "family")?)
}

/// The entries of a list whose kernels are named in it.
fn entries(list: &Group) -> Vec<Entry> {
    let tokens: Vec<_> = list.stream().into_iter().collect();
    let of_pair = |pair: &[TokenTree]| {
        let [TokenTree::Ident(word), TokenTree::Group(group)] = pair else { return None };
        let fields: Vec<_> = group.stream().into_iter().collect();
        let [TokenTree::Ident(field), TokenTree::Punct(colon), TokenTree::Ident(kernel), rest @ ..] = &*fields else {
            return None;
        };
        let behind: String = rest.iter().take(3).map(ToString::to_string).collect();
        let is_entry = word == "Entry" && field == "kernel" && colon.as_char() == ':' && behind == "::KERNEL";
        is_entry.then(|| Entry {
            kernel: kernel.to_string(),
            ident: kernel.span().byte_range(),
            whole: word.span().byte_range().start..group.span_close().byte_range().end,
        })
    };
    tokens.windows(2).filter_map(of_pair).collect()
}

/// What stands between the brackets of the list, with an entry more: an entry a line.
fn listed_with(text: &str, inside: Range<usize>, entries: &[Entry], new: &str) -> String {
    let line = text[..inside.start].rfind('\n').map_or(0, |newline| newline + 1);
    let indentation: String = text[line..].chars().take_while(|c| *c == ' ').collect();
    let step = format!("\n{indentation}    ");
    let between = &text[inside.clone()];
    if between.contains('\n') {
        let last = entries.last().map_or(inside.start, |entry| entry.whole.end);
        let (before, behind) = (&text[inside.start..last], &text[last..inside.end]);
        let behind = behind.strip_prefix(',').unwrap_or(behind);
        return format!("{before},{step}{new},{behind}");
    }
    let all = entries.iter().map(|entry| &text[entry.whole.clone()]).chain([new]);
    let lines: String = all.map(|entry| format!("{step}{entry},")).collect();
    format!("{lines}\n{indentation}")
}

/// What a new kernel says of itself until its author does.
fn documentation(like: &str) -> String {
    format!(
        "/// Like [`{like}`], so far the same: say here in a sentence what differs.\n\
         ///\n\
         /// **Look for** the same counts: say which of them show it. **Cost** none: say what it takes in return.\n"
    )
}

/// The text of the template as the first kernel of a new family.
pub(super) fn of_family(template: &str, family: &str, kernel: &str) -> String {
    let mut letters = family.replace('_', " ");
    if let Some(first) = letters.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let text = template.replace("template_variant", kernel).replace("\"template\"", &format!("\"{family}\""));
    text.replacen("//! Template:", &format!("//! {letters}:"), 1)
}
