//! `cargo xtask words [--list] [FOLDER]`: figures of how the code reads: how its comments begin,
//! what its types are called, how it is laid out, and how large the product is.

use std::path::Path;

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, Item, Lit, Local, Macro, Meta, Pat, Token};

use crate::modules::{ACYCLIC, arrows, circles};
use crate::names::{Declaration, Lines};
use crate::syntax::{self, ParsedFile, is_for_tests};
use crate::workspace;

/// Words that put the noun of a doc comment last.
const LATE_NOUNS: [&str; 9] = [
    "What", "Who", "Whoever", "Whom", "Those", "Such", "Of", "Where", "Whether",
];

/// Most columns of a line.
pub const MAX_COLUMNS: usize = 100;

/// Prints the figures of the workspace, or of another folder; with `--list`, the comments and names
/// that they count instead.
///
/// # Errors
/// A file that cannot be read, or is not Rust.
pub fn run(arguments: &[String]) -> Result<()> {
    let folder = arguments.iter().find(|argument| *argument != "--list");
    let root = folder.map_or_else(workspace::root, |folder| Path::new(folder).into());
    let files = syntax::parse(workspace::files_in(&root, &["rs"])?)?;
    let figures = Figures::of(&files);
    if arguments.len() > usize::from(folder.is_some()) {
        for hit in &figures.hits {
            println!("{hit}");
        }
    } else {
        print!("{}", figures.table());
    }
    Ok(())
}

/// The figures of a tree.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    doc_comments: usize,
    late_nouns: usize,
    types: usize,
    participles: usize,
    retired_words: usize,
    packed_lets: usize,
    packed_assertions: usize,
    long_lines: usize,
    circles: Vec<String>,
    product_tokens: usize,
    product_lines: usize,
    /// Comments and names, as `file:line: kind: text`.
    hits: Vec<String>,
    /// First lines of the doc comments of one file that put their noun last.
    late_comments: Vec<String>,
}

impl Figures {
    fn of(files: &[ParsedFile]) -> Self {
        let mut figures = Self::default();
        for file in files {
            figures.names(file);
            figures.visit_file(&file.syntax);
            figures.comments(file);
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
        for (root, folder) in ACYCLIC {
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
        row(
            "declared names with a retired word",
            self.retired_words.to_string(),
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
        let first = attributes.iter().find_map(doc_text);
        let Some(first) = first else {
            return;
        };
        self.doc_comments += 1;
        let first = first.trim_start();
        let word = first.split([' ', ',']).next();
        if word.is_some_and(|word| LATE_NOUNS.contains(&word)) {
            self.late_nouns += 1;
            let line = first.lines().next().unwrap_or_default();
            self.late_comments.push(line.trim_end().to_owned());
        }
    }

    fn names(&mut self, file: &ParsedFile) {
        let mut lines = Lines::of(&file.text);
        for declaration in Declaration::of(&file.syntax) {
            let line = lines.of_declaration(&declaration);
            let mut hit = |kind: &str| {
                let hit = format!("{}:{line}: {kind}: {}", file.path, declaration.name);
                self.hits.push(hit);
            };
            if declaration.is_type() {
                self.types += 1;
                if declaration.is_participle() {
                    self.participles += 1;
                    hit("participle");
                }
            }
            if let Some(word) = declaration.retired_word() {
                self.retired_words += 1;
                hit(&format!("retired `{word}`"));
            }
        }
    }

    fn comments(&mut self, file: &ParsedFile) {
        let mut lines = Lines::of(&file.text);
        for comment in std::mem::take(&mut self.late_comments) {
            let line = lines.next(&comment);
            self.hits
                .push(format!("{}:{line}: comment: {comment}", file.path));
        }
    }
}

/// Returns the text of a doc comment, or of its first line.
fn doc_text(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(doc) = &attribute.meta else {
        return None;
    };
    match &doc.value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) if doc.path.is_ident("doc") => Some(text.value()),
        _ => None,
    }
}

impl Visit<'_> for Figures {
    fn visit_item(&mut self, item: &Item) {
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
        assert_eq!(found.retired_words, 1);
        assert_eq!(
            found.hits,
            [
                "a/src/b.rs:2: participle: Told",
                "a/src/b.rs:2: retired `told`: Told",
                "a/src/b.rs:1: comment: What is told.",
                "a/src/b.rs:4: comment: Of a key.",
            ]
        );
        assert_eq!(found.packed_lets, 1);
        assert_eq!(found.packed_assertions, 1);
        assert_eq!(found.long_lines, 0);
        let long = format!("// {}\n", "x".repeat(98));
        assert_eq!(figures(&long).long_lines, 1);
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
