//! Names that files declare, and the words that they must not be made of.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{ImplItem, Item, ItemMacro, TraitItem};

/// Words that no declared name is made of any more, with their forms. docs/GLOSSARY.md says what
/// replaces each.
pub const RETIRED: [&str; 28] = [
    "behind", "company", "doubt", "dozens", "enough", "fold", "folded", "folding", "folds",
    "gladness", "looked", "looks", "lot", "lots", "mend", "mends", "nap", "naps", "news",
    "of_late", "spot", "tell", "tells", "told", "unfolded", "way", "whoever", "witness",
];

/// Terms of the field that contain a retired word.
const STANDARD_TERMS: [&str; 2] = ["write_behind", "in_doubt"];

/// Adjectives and irregular participles, one a line. A type that is called by one, or that ends in
/// `ed`, says what it was done to and not what it is.
const PARTICIPLES: &str = include_str!("names/participles.txt");

/// Nouns that end like participles.
const NOUNS_IN_ED: [&str; 6] = ["Bed", "Feed", "Need", "Seed", "Speed", "Shed"];

/// A declared type, function, constant, field or module.
pub struct Declaration {
    /// The keyword before the name; empty for a field.
    pub keyword: &'static str,
    pub name: String,
}

impl Declaration {
    /// Lists what a file declares, in the order of its text.
    pub fn of(file: &syn::File) -> Vec<Self> {
        let mut declarations = Declarations(Vec::new());
        declarations.visit_file(file);
        declarations.0
    }

    pub fn is_type(&self) -> bool {
        ["struct", "enum", "trait", "type"].contains(&self.keyword)
    }

    /// Returns the retired word that the name contains.
    pub fn retired_word(&self) -> Option<&'static str> {
        let mut name = format!("_{}_", words(&self.name).join("_"));
        for term in STANDARD_TERMS {
            name = name.replace(term, "");
        }
        let contains = |word: &&str| name.contains(&format!("_{word}_"));
        RETIRED.into_iter().find(contains)
    }

    /// Returns whether the name's last word is a participle or a bare adjective.
    pub fn is_participle(&self) -> bool {
        let start = self.name.rfind(char::is_uppercase).unwrap_or_default();
        let last = &self.name[start..];
        let is_regular = last.ends_with("ed") && !NOUNS_IN_ED.contains(&last);
        is_regular || PARTICIPLES.lines().any(|word| word == last)
    }
}

/// Words of a name in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for letter in name.trim_start_matches("r#").chars() {
        if letter == '_' || letter.is_uppercase() && after_lower {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter != '_', words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
        after_lower = letter.is_lowercase() || letter.is_ascii_digit();
    }
    words
}

/// Line numbers of texts that are searched in their order.
pub struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lines<'a> {
    pub fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the line of a declaration.
    pub fn of_declaration(&mut self, declaration: &Declaration) -> usize {
        let Declaration { keyword, name } = declaration;
        if keyword.is_empty() {
            self.next(&format!("{name}:"))
        } else {
            self.next(&format!("{keyword} {name}"))
        }
    }

    /// Returns the line of the next occurrence; the line of the last one when there is none.
    pub fn next(&mut self, wanted: &str) -> usize {
        let rest = &self.text[self.at..];
        let is_whole = |end: &usize| {
            let next = rest[*end..].chars().next();
            !next.is_some_and(|next| next.is_alphanumeric() || next == '_')
        };
        let mut ends = rest
            .match_indices(wanted)
            .map(|(start, found)| start + found.len());
        self.at += ends.find(is_whole).unwrap_or_default();
        1 + self.text[..self.at].matches('\n').count()
    }
}

/// Keywords that a declared name follows.
const ITEMS: [&str; 8] = [
    "const", "enum", "fn", "mod", "static", "struct", "trait", "type",
];

struct Declarations(Vec<Declaration>);

impl Declarations {
    fn add(&mut self, keyword: &'static str, name: &Ident) {
        let name = name.to_string();
        self.0.push(Declaration { keyword, name });
    }

    /// Adds the items among the arguments of a macro, and their public fields.
    fn add_arguments(&mut self, arguments: TokenStream) {
        let mut before = String::new();
        let mut arguments = arguments.into_iter().peekable();
        while let Some(argument) = arguments.next() {
            let word = argument.to_string();
            match argument {
                TokenTree::Group(group) => self.add_arguments(group.stream()),
                TokenTree::Ident(name) => {
                    let is_field = before == "pub" && arguments.peek().is_some_and(is_colon);
                    let item = ITEMS.into_iter().find(|keyword| *keyword == before);
                    if let Some(keyword) = item.or(is_field.then_some("")) {
                        self.add(keyword, &name);
                    }
                }
                TokenTree::Literal(_) | TokenTree::Punct(_) => {}
            }
            before = word;
        }
    }
}

fn is_colon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':')
}

impl Visit<'_> for Declarations {
    fn visit_item(&mut self, item: &Item) {
        match item {
            Item::Const(item) => self.add("const", &item.ident),
            Item::Enum(item) => self.add("enum", &item.ident),
            Item::Fn(item) => self.add("fn", &item.sig.ident),
            Item::Mod(item) => self.add("mod", &item.ident),
            Item::Static(item) => self.add("static", &item.ident),
            Item::Struct(item) => self.add("struct", &item.ident),
            Item::Trait(item) => self.add("trait", &item.ident),
            Item::Type(item) => self.add("type", &item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_macro(&mut self, item: &ItemMacro) {
        let is_definition = item.ident.is_some();
        if !is_definition {
            self.add_arguments(item.mac.tokens.clone());
        }
    }

    fn visit_impl_item(&mut self, item: &ImplItem) {
        match item {
            ImplItem::Const(item) => self.add("const", &item.ident),
            ImplItem::Fn(item) => self.add("fn", &item.sig.ident),
            _ => {}
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item(&mut self, item: &TraitItem) {
        match item {
            TraitItem::Const(item) => self.add("const", &item.ident),
            TraitItem::Fn(item) => self.add("fn", &item.sig.ident),
            _ => {}
        }
        visit::visit_trait_item(self, item);
    }

    fn visit_field(&mut self, field: &syn::Field) {
        if let Some(name) = &field.ident {
            self.add("", name);
        }
        visit::visit_field(self, field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration(name: &str) -> Declaration {
        Declaration {
            keyword: "struct",
            name: name.to_owned(),
        }
    }

    #[test]
    fn names_are_judged_by_their_last_word() {
        for name in ["Told", "KeyHeld", "Deployed", "Behind"] {
            assert!(declaration(name).is_participle(), "{name}");
        }
        for name in ["Feed", "HeldLease", "RetryPolicy", "Seed"] {
            assert!(!declaration(name).is_participle(), "{name}");
        }
    }

    #[test]
    fn retired_words_are_whole_words() {
        for (name, word) in [
            ("LotOfRows", "lot"),
            ("caller_is_told", "told"),
            ("MAX_OF_LATE", "of_late"),
            ("way2", "way"),
        ] {
            let found = declaration(name).retired_word();
            assert_eq!(found.is_some(), word != "way", "{name}");
            assert!(found.is_none_or(|found| found == word), "{name}");
        }
        for name in [
            "Gateway",
            "slot",
            "WriteBehind",
            "InDoubtTransaction",
            "late",
        ] {
            assert_eq!(declaration(name).retired_word(), None, "{name}");
        }
    }

    #[test]
    fn declarations_are_found_with_their_lines() {
        let text = "struct Page {\n    rows: u8,\n}\nimpl Page {\n    fn rows_of() {}\n    fn \
                    rows() {}\n}\nmod rows {}\n";
        let found = Declaration::of(&syn::parse_file(text).unwrap());
        let mut lines = Lines::of(text);
        let found: Vec<_> = found
            .iter()
            .map(|found| format!("{} {}", lines.of_declaration(found), found.name))
            .collect();
        assert_eq!(found, ["1 Page", "2 rows", "5 rows_of", "6 rows", "8 rows"]);
    }

    #[test]
    fn declarations_are_found_in_arguments_of_macros() {
        let text = "record! {\n    pub struct Page in \"page\" {\n        pub rows: u8,\n    }\n}\n\
                    statements! {\n    fn get(id: &Id) -> Page = \"\";\n}\n";
        let found = Declaration::of(&syn::parse_file(text).unwrap());
        let found: Vec<_> = found.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(found, ["Page", "rows", "get"]);
    }
}
