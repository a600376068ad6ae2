//! Declared names are made of the words of docs/GLOSSARY.md, and not of those that it retires.

use anyhow::Result;

use super::Findings;
use crate::names::{Declaration, Lines, RETIRED};
use crate::syntax::parse;
use crate::workspace::SourceFile;

const GLOSSARY: &str = "docs/GLOSSARY.md";

pub fn check(files: &[SourceFile], pages: &[SourceFile], findings: &mut Findings) -> Result<()> {
    let glossary = pages.iter().find(|page| page.path == GLOSSARY);
    let glossary = glossary.map_or("", |page| page.text.as_str());
    for word in RETIRED {
        if !glossary.contains(&format!("`{word}`")) {
            findings.error(GLOSSARY, format!("the retired word `{word}` is missing"));
        }
    }
    for file in parse(files.to_vec())? {
        let mut lines = Lines::of(&file.text);
        for declaration in Declaration::of(&file.syntax) {
            let line = lines.of_declaration(&declaration);
            if let Some(word) = declaration.retired_word() {
                findings.error(
                    format!("{}:{line}", file.path),
                    format!(
                        "{} contains the retired word `{word}`: {GLOSSARY} has another",
                        declaration.name
                    ),
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retired_word_is_reported_by_its_line() {
        let file = |path: &str, text: &str| SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let pages = [file(
            GLOSSARY,
            &RETIRED.map(|word| format!("`{word}`")).concat(),
        )];
        let files = [file("a/src/b.rs", "struct A;\nfn tell_all() {}\n")];
        let mut findings = Findings::default();
        check(&files, &pages, &mut findings).unwrap();
        assert_eq!(
            findings.errors,
            ["a/src/b.rs:2: tell_all contains the retired word `tell`: \
                 docs/GLOSSARY.md has another"]
        );
    }
}
