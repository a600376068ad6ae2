//! `cargo xtask words [FOLDER]`: figures of how the code reads: how its comments begin, what its
//! types are called, how it is laid out, and how large the product is.

use std::path::Path;

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, Local, Macro, Meta, Pat, Token};

use crate::modules::{ACYCLIC, Folder, arrows, circles};
use crate::syntax::{self, ParsedFile, is_for_tests};
use crate::workspace;

/// Words that put the noun of a doc comment last.
const LATE_NOUNS: [&str; 9] = [
    "What", "Who", "Whoever", "Whom", "Those", "Such", "Of", "Where", "Whether",
];

/// Adjectives and irregular participles, one a line. A type that is called by one, or that ends in
/// `ed`, says what it was done to and not what it is.
const PARTICIPLES: &str = include_str!("words/participles.txt");

/// Nouns that end like participles.
const NOUNS_IN_ED: [&str; 6] = ["Bed", "Feed", "Need", "Seed", "Speed", "Shed"];

/// Most columns of a line.
pub const MAX_COLUMNS: usize = 100;

/// A folder whose modules still make a circle.
const CYCLIC: Folder = ("control-plane/src", &["push"]);

/// Prints the figures of the workspace, or of another checkout of it.
///
/// # Errors
/// A file that cannot be read, or is not Rust.
pub fn run(arguments: &[String]) -> Result<()> {
    let root = arguments
        .first()
        .map_or_else(workspace::root, |folder| Path::new(folder).into());
    let files = syntax::parse(workspace::files_in(&root, &["rs"])?)?;
    let figures = Figures::of(&files);
    print!("{}", figures.table());
    Ok(())
}

/// The figures of a tree.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    doc_comments: usize,
    late_nouns: usize,
    types: usize,
    participles: usize,
    packed_lets: usize,
    packed_assertions: usize,
    long_lines: usize,
    circles: Vec<String>,
    product_tokens: usize,
    product_lines: usize,
}

impl Figures {
    fn of(files: &[ParsedFile]) -> Self {
        let mut figures = Self::default();
        for file in files {
            figures.visit_file(&file.syntax);
            let long = file
                .text
                .lines()
                .filter(|line| line.chars().count() > MAX_COLUMNS);
            figures.long_lines += long.count();
            if file.is_product() {
                figures.product_tokens += product_tokens(&file.syntax);
                figures.product_lines += file.text.lines().count();
            }
        }
        for (root, folder) in ACYCLIC.into_iter().chain([CYCLIC]) {
            let place = [&[root], folder].concat().join("/");
            let found = circles(&arrows(files, root, folder)).into_iter();
            figures.circles.extend(found.map(|circle| {
                let modules: Vec<String> = circle.into_iter().collect();
                format!("{place}: {}", modules.join(", "))
            }));
        }
        figures
    }

    fn table(&self) -> String {
        let share = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
        let mut table = "| figure | value |\n| --- | --- |\n".to_owned();
        let mut row = |name: &str, value: String| table += &format!("| {name} | {value} |\n");
        let late = share(self.late_nouns, self.doc_comments);
        row(
            "doc comments that begin with What, Who, Those, Such, Of, Where, Whether",
            format!("{} of {} ({late:.1} %)", self.late_nouns, self.doc_comments),
        );
        let participles = share(self.participles, self.types);
        row(
            "types named by participles or bare adjectives",
            format!(
                "{} of {} ({participles:.1} %)",
                self.participles, self.types
            ),
        );
        row("`let`s that pack a tuple", self.packed_lets.to_string());
        row(
            "assertions that compare tuples",
            self.packed_assertions.to_string(),
        );
        row(
            &format!("lines over {MAX_COLUMNS} columns"),
            self.long_lines.to_string(),
        );
        row("circles of modules", self.circles.len().to_string());
        row(
            "tokens of product code, without comments",
            self.product_tokens.to_string(),
        );
        row("lines of product files", self.product_lines.to_string());
        for circle in &self.circles {
            table += &format!("\ncircle in {circle}");
        }
        table + "\n"
    }

    /// Counts a doc comment by its first line.
    fn doc_comment(&mut self, attributes: &[Attribute]) {
        let first = attributes
            .iter()
            .find_map(|attribute| match &attribute.meta {
                Meta::NameValue(doc) if doc.path.is_ident("doc") => {
                    Some(doc.value.to_token_stream())
                }
                Meta::NameValue(_) | Meta::Path(_) | Meta::List(_) => None,
            });
        let Some(first) = first.map(|text| text.to_string()) else {
            return;
        };
        self.doc_comments += 1;
        let word = first
            .trim_start_matches(['"', ' '])
            .split([' ', ','])
            .next();
        if word.is_some_and(|word| LATE_NOUNS.contains(&word)) {
            self.late_nouns += 1;
        }
    }

    fn type_name(&mut self, name: &syn::Ident) {
        self.types += 1;
        if is_participle(&name.to_string()) {
            self.participles += 1;
        }
    }
}

/// Returns whether a type's name is an adjective: whether its last word is one.
fn is_participle(name: &str) -> bool {
    let start = name.rfind(char::is_uppercase).unwrap_or_default();
    let last = &name[start..];
    let is_regular = last.ends_with("ed") && !NOUNS_IN_ED.contains(&last);
    is_regular || PARTICIPLES.lines().any(|word| word == last)
}

impl Visit<'_> for Figures {
    fn visit_item(&mut self, item: &Item) {
        match item {
            Item::Struct(item) => self.type_name(&item.ident),
            Item::Enum(item) => self.type_name(&item.ident),
            Item::Trait(item) => self.type_name(&item.ident),
            Item::Type(item) => self.type_name(&item.ident),
            _ => {}
        }
        let attributes: &[Attribute] = match item {
            Item::Const(item) => &item.attrs,
            Item::Enum(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Static(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            Item::Trait(item) => &item.attrs,
            Item::Type(item) => &item.attrs,
            _ => &[],
        };
        self.doc_comment(attributes);
        visit::visit_item(self, item);
    }

    fn visit_field(&mut self, field: &syn::Field) {
        self.doc_comment(&field.attrs);
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &syn::Variant) {
        self.doc_comment(&variant.attrs);
        visit::visit_variant(self, variant);
    }

    fn visit_impl_item(&mut self, item: &syn::ImplItem) {
        match item {
            syn::ImplItem::Fn(item) => self.doc_comment(&item.attrs),
            syn::ImplItem::Const(item) => self.doc_comment(&item.attrs),
            _ => {}
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item(&mut self, item: &syn::TraitItem) {
        if let syn::TraitItem::Fn(item) = item {
            self.doc_comment(&item.attrs);
        }
        visit::visit_trait_item(self, item);
    }

    fn visit_local(&mut self, local: &Local) {
        let value = local.init.as_ref().map(|init| &*init.expr);
        if let (Pat::Tuple(_), Some(Expr::Tuple(_))) = (&local.pat, value) {
            self.packed_lets += 1;
        }
        visit::visit_local(self, local);
    }

    fn visit_macro(&mut self, call: &Macro) {
        if call.path.is_ident("assert_eq") {
            let parse = Punctuated::<Expr, Token![,]>::parse_terminated;
            let both = call.parse_body_with(parse);
            let both = both.iter().flatten().take(2);
            if both.filter(|side| matches!(side, Expr::Tuple(_))).count() == 2 {
                self.packed_assertions += 1;
            }
        }
    }
}

/// Counts the tokens of a file, without its comments and what is for tests alone.
fn product_tokens(file: &syn::File) -> usize {
    let items = file.items.iter().filter(|item| !is_for_tests(item));
    items.map(|item| tokens(item.to_token_stream())).sum()
}

fn tokens(stream: TokenStream) -> usize {
    let mut count = 0;
    let mut stream = stream.into_iter().peekable();
    while let Some(token) = stream.next() {
        match (&token, stream.peek()) {
            (TokenTree::Punct(hash), Some(TokenTree::Group(group)))
                if hash.as_char() == '#' && is_doc(group.stream()) =>
            {
                stream.next();
            }
            (TokenTree::Group(group), _) => count += 2 + tokens(group.stream()),
            (TokenTree::Ident(_) | TokenTree::Literal(_) | TokenTree::Punct(_), _) => count += 1,
        }
    }
    count
}

fn is_doc(attribute: TokenStream) -> bool {
    matches!(attribute.into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(text: &str) -> Figures {
        let syntax = syn::parse_file(text).unwrap();
        Figures::of(&[ParsedFile {
            path: "a/src/b.rs".to_owned(),
            text: text.to_owned(),
            syntax,
        }])
    }

    #[test]
    fn comments_names_and_packed_statements_are_counted() {
        let found = figures(
            "/// What is told.\nstruct Told;\n/// Number of the rest.\nstruct RetryPolicy { /** \
             Of a key. */ key: u8 }\nfn f() { let (a, b) = (1, 2); let (c, d) = f(); \
             assert_eq!((a, b), (c, d)); assert_eq!(a, b); }\n",
        );
        assert_eq!(found.doc_comments, 3);
        assert_eq!(found.late_nouns, 2);
        assert_eq!(found.types, 2);
        assert_eq!(found.participles, 1);
        assert_eq!(found.packed_lets, 1);
        assert_eq!(found.packed_assertions, 1);
        assert_eq!(found.long_lines, 0);
        let long = format!("// {}\n", "x".repeat(98));
        assert_eq!(figures(&long).long_lines, 1);
    }

    #[test]
    fn names_are_judged_by_their_last_word() {
        for name in ["Told", "KeyHeld", "Deployed", "Behind"] {
            assert!(is_participle(name), "{name}");
        }
        for name in ["Feed", "HeldLease", "RetryPolicy", "Seed"] {
            assert!(!is_participle(name), "{name}");
        }
    }

    #[test]
    fn comments_and_tests_are_no_product() {
        let code = "fn f(a: u8) { g(a); }";
        let more = format!(
            "//! A page.\n/// Calls.\n{code} // so\n#[cfg(test)] mod tests {{ fn t() {{}} }}"
        );
        assert_eq!(figures(&more).product_tokens, figures(code).product_tokens);
    }
}
