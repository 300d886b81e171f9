//! The attributes of busload's kernels: [`macro@kernel`] and [`macro@device`].
//!
//! They do only what `macro_rules!` cannot: name the shared and constant arrays of a kernel after it, collect its
//! documentation, find the calls of its closures, and wrap the body in the one `unsafe` block whose contract is the launch's. What a
//! kernel becomes on each machine is decided by the macros `entry!`, `function!`, `call!` and `shared_array!` of the facade's back
//! ends, in `gpu/src/device/`.
//!
//! What they expand to names the facade's crate as `busload_prelude`, which the facade's prelude brings into scope. So a kernel's crate may
//! have it under any name, and a file without the prelude is told what it lacks.

mod refuse;
mod reserved;

use proc_macro::TokenStream;
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream as Tokens, TokenTree};
use quote::{format_ident, quote, quote_spanned};
use syn::{Error, FnArg, ItemFn, Pat, ReturnType, parse_macro_input};

/// Makes a kernel of an `unsafe fn`: an entry of the PTX, and an entry of the simulator on the host.
///
/// The function takes plain values and the facade's pointers, returns nothing and has no generics. Its body may use
/// `shared!` and `constant!`, always in the form `let NAME = shared!(TYPE);`, and everything `unsafe` without a further block: the
/// kernel's contract is that whoever launches it passes buffers as large as its documentation says.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    expand_kernel(arguments.into(), function).unwrap_or_else(Error::into_compile_error).into()
}

/// Makes a device function of a `fn`: inlined into every kernel that calls it, its body one `unsafe` block where the
/// function is `unsafe`. Whatever accesses memory for a kernel is one: the simulator tells its calls apart.
#[proc_macro_attribute]
pub fn device(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    expand_device(arguments.into(), function).unwrap_or_else(Error::into_compile_error).into()
}

fn expand_kernel(arguments: Tokens, function: ItemFn) -> Result<Tokens, Error> {
    refuse_arguments(&arguments, "kernel")?;
    let ItemFn { attrs, vis, sig, block } = function;
    refuse::name(&sig.ident)?;
    if sig.unsafety.is_none() {
        return Err(Error::new_spanned(
            sig.fn_token,
            "a kernel is an `unsafe fn`: its launch must pass buffers of the right sizes",
        ));
    }
    if !sig.generics.params.is_empty() {
        return Err(Error::new_spanned(sig.generics, "a kernel has no generics: it is one entry of the PTX"));
    }
    if let ReturnType::Type(..) = sig.output {
        return Err(Error::new_spanned(sig.output, "a kernel returns nothing: let it store its result"));
    }
    let mut parameters = Vec::new();
    for input in &sig.inputs {
        match input {
            FnArg::Typed(typed) => match &*typed.pat {
                Pat::Ident(pattern) => parameters.push((pattern.ident.clone(), typed.ty.clone())),
                other => return Err(Error::new_spanned(other, "a kernel's parameter has a plain name")),
            },
            FnArg::Receiver(receiver) => return Err(Error::new_spanned(receiver, "a kernel is no method")),
        }
    }
    let mut arrays = Vec::new();
    let statements: Tokens = block.stmts.iter().map(|statement| quote!(#statement)).collect();
    let pointers = parameters.iter().filter(|(_, ty)| refuse::is_pointer(ty)).map(|(name, _)| name.clone());
    refuse::past_the_facade(statements.clone(), pointers.collect())?;
    let body = name_arrays(mark_calls(statements, Vec::new()), &sig.ident, &mut arrays)?;
    let name = &sig.ident;
    let (names, types): (Vec<_>, Vec<_>) = parameters.into_iter().unzip();
    let declared = |by: &str| -> Vec<_> {
        let arrays = arrays.iter().filter(|array| array.declaration == by);
        arrays.map(|Array { name, ty, .. }| quote!(#name: #ty)).collect()
    };
    let (shared, constants) = (declared("shared_array"), declared("constant_array"));
    let declarations = arrays
        .into_iter()
        .map(|Array { declaration, symbol, ty, .. }| quote!(busload_prelude::device::#declaration!(#symbol, #ty);));
    let documentation = documentation(&attrs);
    Ok(quote! {
        #(#declarations)*
        busload_prelude::device::entry! {
            #(#attrs)*
            #[documentation(#documentation)]
            #[shared(#(#shared),*)]
            #[constants(#(#constants),*)]
            #vis unsafe fn #name(#(#names: #types),*) {
                #[allow(unused_unsafe, clippy::undocumented_unsafe_blocks, reason = "the contract is the launch's")]
                unsafe { #body }
            }
        }
    })
}

fn expand_device(arguments: Tokens, function: ItemFn) -> Result<Tokens, Error> {
    refuse_arguments(&arguments, "device")?;
    let ItemFn { attrs, vis, sig, block } = function;
    if let Some(attribute) = attrs.iter().find(|attribute| attribute.path().is_ident("track_caller")) {
        let reason =
            "a device function's calls are told apart, and its accesses stand at its own lines: leave this out";
        return Err(Error::new_spanned(attribute, reason));
    }
    let parameters = sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(pattern) => Some(pattern.ident.clone()),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    });
    let statements: Tokens = block.stmts.iter().map(|statement| quote!(#statement)).collect();
    let statements = mark_calls(statements, parameters.collect());
    let body = match sig.unsafety {
        Some(_) => quote! {
            #[allow(unused_unsafe, clippy::undocumented_unsafe_blocks, reason = "the contract is the launch's")]
            unsafe { #statements }
        },
        None => statements,
    };
    let head = quote! { #(#attrs)* #[inline(always)] #vis #sig };
    Ok(match sig.constness {
        // It can reach no memory.
        Some(_) => quote! { #head { #body } },
        None => quote! { busload_prelude::device::function! { [#head] { #body } } },
    })
}

/// Marks the calls of closures, by the names that they have, as calls whose accesses are to be told apart: those bound by `let`,
/// and `known` ones, which may be closures.
fn mark_calls(body: Tokens, mut known: Vec<Ident>) -> Tokens {
    collect_closures(body.clone(), &mut known);
    if known.is_empty() { body } else { mark_calls_of(body, &known) }
}

/// The names in `let NAME = |…|` and `let NAME = move |…|`.
fn collect_closures(body: Tokens, names: &mut Vec<Ident>) {
    let mut seen: Vec<TokenTree> = Vec::new();
    for token in body {
        match &token {
            TokenTree::Group(group) => collect_closures(group.stream(), names),
            TokenTree::Punct(bar) if bar.as_char() == '|' => {
                let before = match seen.as_slice() {
                    [before @ .., TokenTree::Ident(word)] if word == "move" => before,
                    before => before,
                };
                names.extend(bound_name(before));
            }
            _ => {}
        }
        seen.push(token);
    }
}

fn mark_calls_of(body: Tokens, names: &[Ident]) -> Tokens {
    let mut out: Vec<TokenTree> = Vec::new();
    let mut tokens = body.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let behind = out.last().map(ToString::to_string);
        // A method, a path, a function's own name.
        let is_other = behind.is_some_and(|behind| [".", ":", "fn"].contains(&behind.as_str()));
        match (token, tokens.peek()) {
            (TokenTree::Ident(name), Some(TokenTree::Group(group)))
                if group.delimiter() == Delimiter::Parenthesis && names.contains(&name) && !is_other =>
            {
                let arguments = mark_calls_of(group.stream(), names);
                tokens.next();
                // Where the call stands is where its name does.
                out.extend(quote_spanned!(name.span()=> busload_prelude::device::call!(#name(#arguments))));
            }
            (TokenTree::Group(group), _) => {
                let mut inner = Group::new(group.delimiter(), mark_calls_of(group.stream(), names));
                inner.set_span(group.span());
                out.push(TokenTree::Group(inner));
            }
            (other, _) => out.push(other),
        }
    }
    out.into_iter().collect()
}

fn refuse_arguments(arguments: &Tokens, attribute: &str) -> Result<(), Error> {
    match arguments.is_empty() {
        true => Ok(()),
        false => Err(Error::new_spanned(arguments, format!("#[{attribute}] takes no arguments"))),
    }
}

/// The lines of the `///` comments, joined.
fn documentation(attrs: &[syn::Attribute]) -> String {
    let lines = attrs.iter().filter_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).to_owned()).collect::<Vec<_>>().join("\n")
}

/// An array that a kernel's body names, and the facade's macro that declares it.
struct Array {
    declaration: Ident,
    name: Ident,
    symbol: Ident,
    ty: Tokens,
}

/// Gives every `let NAME = shared!(TYPE)` or `constant!(TYPE)` the symbol `<kernel>_NAME`, and collects them.
fn name_arrays(body: Tokens, kernel: &Ident, arrays: &mut Vec<Array>) -> Result<Tokens, Error> {
    let mut out: Vec<TokenTree> = Vec::new();
    let mut tokens = body.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(ident) if (ident == "shared" || ident == "constant") && is_bang(tokens.peek()) => {
                let bang = tokens.next();
                let Some(TokenTree::Group(group)) = tokens.next() else {
                    let example = format!("{ident}! takes a type, as in `{ident}!([f32; 33 * 32])`");
                    return Err(Error::new(ident.span(), example));
                };
                let Some(name) = bound_name(&out) else {
                    let example = format!("bind the array to a name, as in `let array = {ident}!([f32; 33 * 32]);`");
                    return Err(Error::new(ident.span(), example));
                };
                let ty = group.stream();
                let symbol = format_ident!("{kernel}_{name}", span = Span::call_site());
                if arrays.iter().any(|array| array.symbol == symbol) {
                    return Err(Error::new(name.span(), format!("the kernel already has an array `{name}`")));
                }
                let mut named = Group::new(Delimiter::Parenthesis, quote!(#symbol, #name, #ty));
                named.set_span(group.span());
                let declaration = format_ident!("{ident}_array", span = Span::call_site());
                out.push(TokenTree::Ident(ident));
                out.extend(bang);
                out.push(TokenTree::Group(named));
                arrays.push(Array { declaration, name, symbol, ty });
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), name_arrays(group.stream(), kernel, arrays)?);
                inner.set_span(group.span());
                out.push(TokenTree::Group(inner));
            }
            other => out.push(other),
        }
    }
    Ok(out.into_iter().collect())
}

fn is_bang(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == '!')
}

/// The name in a trailing `let NAME =`.
fn bound_name(out: &[TokenTree]) -> Option<Ident> {
    match out {
        [.., TokenTree::Ident(keyword), TokenTree::Ident(name), TokenTree::Punct(equals)]
            if (keyword == "let" || keyword == "mut") && equals.as_char() == '=' =>
        {
            Some(name.clone())
        }
        _ => None,
    }
}
