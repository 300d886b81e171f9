//! What a kernel is refused for before rustc sees it: a name that others have, and accesses past the facade.

use crate::reserved;
use proc_macro2::{Delimiter, Ident, TokenStream as Tokens, TokenTree};
use syn::{Error, Type};

/// Refuses a kernel's name that is another's already.
pub(crate) fn name(kernel: &Ident) -> Result<(), Error> {
    match reserved::owner(&kernel.to_string()) {
        Some(owner) => Err(Error::new(
            kernel.span(),
            format!(
                "`{kernel}` is a name of {owner}, and a kernel's is a symbol of its PTX: put its family's name before it, as in \
                 `copy_{}`",
                kernel.to_string().trim_start_matches('_')
            ),
        )),
        None => Ok(()),
    }
}

/// Whether a parameter of this type is one of the facade's pointers.
pub(crate) fn is_pointer(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Global" || last.ident == "GlobalMut")
}

/// Refuses what touches memory past the facade: `*pointer` and `pointer[i]` of the facade's `pointers`, and raw pointers. A name that is
/// bound anew may be anything.
pub(crate) fn past_the_facade(body: Tokens, mut pointers: Vec<Ident>) -> Result<(), Error> {
    pointers.retain(|name| !is_bound(body.clone(), name));
    accesses(body, &pointers)
}

/// Whether `let NAME` stands anywhere in the body.
fn is_bound(body: Tokens, name: &Ident) -> bool {
    let mut behind_let = false;
    body.into_iter().any(|token| match token {
        TokenTree::Group(group) => is_bound(group.stream(), name),
        TokenTree::Ident(word) => {
            let is_bound = behind_let && word == *name;
            behind_let = word == "let" || behind_let && word == "mut";
            is_bound
        }
        _ => false,
    })
}

fn accesses(body: Tokens, pointers: &[Ident]) -> Result<(), Error> {
    let tokens: Vec<TokenTree> = body.into_iter().collect();
    for (place, token) in tokens.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| &tokens[before]);
        match (token, tokens.get(place + 1)) {
            (TokenTree::Punct(star), Some(TokenTree::Ident(word))) if star.as_char() == '*' && !is_operand(before) => {
                if word == "const" || word == "mut" {
                    return Err(Error::new(
                        word.span(),
                        "a kernel has no raw pointers, whose accesses the simulator does not see: take the buffer as \
                         `Global<f32>` to read or `GlobalMut<f32>` to write, and `load` and `store` its elements",
                    ));
                }
                if pointers.contains(word) {
                    return Err(through_the_facade(word, "0"));
                }
            }
            (TokenTree::Ident(word), Some(TokenTree::Group(index)))
                if index.delimiter() == Delimiter::Bracket && pointers.contains(word) && !is_dot(before) =>
            {
                return Err(through_the_facade(word, "i"));
            }
            (TokenTree::Group(group), _) => accesses(group.stream(), pointers)?,
            _ => {}
        }
    }
    Ok(())
}

fn through_the_facade(pointer: &Ident, index: &str) -> Error {
    let remedy = format!(
        "`{pointer}` is a pointer of the facade: `{pointer}.load({index})` reads an element, and of a `GlobalMut` \
         `{pointer}.store({index}, value)` writes one"
    );
    Error::new(pointer.span(), remedy)
}

/// Whether a `*` behind this token multiplies.
fn is_operand(before: Option<&TokenTree>) -> bool {
    match before {
        Some(TokenTree::Ident(word)) => !["as", "break", "else", "if", "in", "match", "mut", "return", "while"]
            .iter()
            .any(|keyword| word == keyword),
        Some(TokenTree::Literal(_)) => true,
        Some(TokenTree::Group(group)) => group.delimiter() != Delimiter::Brace,
        Some(TokenTree::Punct(punct)) => punct.as_char() == '?',
        None => false,
    }
}

fn is_dot(before: Option<&TokenTree>) -> bool {
    matches!(before, Some(TokenTree::Punct(punct)) if punct.as_char() == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a body in which `src` and `dst` are pointers.
    fn said(body: &str) -> Option<String> {
        let pointers = ["src", "dst"].map(|name| Ident::new(name, proc_macro2::Span::call_site()));
        past_the_facade(body.parse().expect("tokens"), pointers.to_vec()).err().map(|error| error.to_string())
    }

    #[test]
    fn accesses_past_the_facade_are_told_from_products_and_arrays() {
        for (body, says) in [
            ("let x = *src;", "`src.load(0)`"),
            ("if i < n { *dst = 1.0; }", "`dst.store(0, value)`"),
            ("dst.store(i, src[i])", "`src.load(i)`"),
            ("dst[i] = 1.0", "`dst.store(i, value)`"),
            ("let p = 16 as *const f32;", "no raw pointers"),
            ("{ let p: *mut f32 = q; }", "no raw pointers"),
            ("return *src", "`src.load(0)`"),
        ] {
            assert!(said(body).is_some_and(|said| said.contains(says)), "{body}: {:?}", said(body));
        }
        for body in [
            "let x = 2 * src.load(i);",
            "a(1) * src.load(i)",
            "x[0] * dst.load(i)",
            "let x = *other;",
            "let x = tile[i];",
            "self.src[i]",
            "each([src, dst])",
            "a *= b",
            "let src = [1.0; 4]; dst.store(i, src[i])",
        ] {
            assert_eq!(said(body), None, "{body}");
        }
    }

    #[test]
    fn names_that_c_or_cuda_has_are_not_free() {
        for (taken, owner) in [
            ("printf", "C's library"),
            ("memcpy", "C's library"),
            ("sinf", "C's library"),
            ("hypot", "C's library"),
            ("pthread_create", "C's library"),
            ("rsqrt", "CUDA"),
            ("cuda_malloc", "CUDA"),
            ("__assertfail", "compilers"),
        ] {
            assert_eq!(reserved::owner(taken), Some(owner), "{taken}");
            let kernel = Ident::new(taken, proc_macro2::Span::call_site());
            assert!(name(&kernel).is_err_and(|error| error.to_string().contains("as in `copy_")), "{taken}");
        }
        for free in ["copy_coalesced", "transpose_naive", "reduce_vec4", "histogram_global", "f", "memory"] {
            assert_eq!(reserved::owner(free), None, "{free}");
        }
    }
}
