//! The tables at the end of `docs/flow-reference.md` are those of the service. With
//! `KANAT_WRITE_PAGES=1` the test writes them.

use std::collections::BTreeMap;
use std::fmt::Write;

use kanat_tests::TestApp;
use kanat_tests::python::root;
use serde_json::value::RawValue;

const PAGE: &str = "docs/flow-reference.md";

/// Line of the page after which the tables stand.
const START: &str = "<!-- The tables of the compiler. KANAT_WRITE_PAGES=1 cargo test -p \
                     kanat-tests --test it reference writes them. -->\n";

/// Entry of a table, as text: numbers of examples keep their digits.
type Entry = BTreeMap<String, Box<RawValue>>;

/// The text of a member; empty where there is none.
fn text(of: &Entry, name: &str) -> String {
    let member = of.get(name).map(|text| serde_json::from_str(text.get()));
    member.transpose().expect("a text").unwrap_or_default()
}

fn is_true(of: &Entry, name: &str) -> bool {
    of.get(name).is_some_and(|value| value.get() == "true")
}

fn list(of: &Entry, name: &str) -> Vec<Entry> {
    let list = of.get(name).map(|list| serde_json::from_str(list.get()));
    list.transpose().expect("a list").unwrap_or_default()
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn keys(language: &Entry) -> String {
    let mut out = "\n### Keys\n\n`[]` are the items of a list, `*` names of your own.\n\n| key | \
                   value | meaning |\n| --- | --- | --- |\n"
        .to_owned();
    for key in list(language, "keys") {
        let mut value = text(&key, "type");
        let words = key.get("values").map(|words| words.get().to_owned());
        let words: Vec<String> = serde_json::from_str(words.as_deref().unwrap_or("[]")).unwrap();
        if !words.is_empty() {
            value = format!("`{}`", words.join("`, `"));
        }
        if is_true(&key, "required") {
            value.push_str("; required");
        }
        let default = text(&key, "default");
        if !default.is_empty() {
            let _ = write!(value, "; left out: `{default}`");
        }
        let path = text(&key, "path");
        let meaning = cell(&text(&key, "text"));
        let _ = writeln!(out, "| `{path}` | {value} | {meaning} |");
    }
    out
}

/// A table of `name`, `text` and another member.
fn table(language: &Entry, title: &str, heads: [&str; 3], member: &str) -> String {
    let [name, meaning, last] = heads;
    let mut out =
        format!("\n### {title}\n\n| {name} | {meaning} | {last} |\n| --- | --- | --- |\n");
    for entry in list(language, &title.to_lowercase()) {
        let last = text(&entry, member);
        let last = if member == "example" {
            format!("`{last}`")
        } else {
            last
        };
        let name = cell(&text(&entry, "name"));
        let meaning = cell(&text(&entry, "text"));
        let _ = writeln!(out, "| `{name}` | {meaning} | {} |", cell(&last));
    }
    out
}

/// Functions or transforms, with their arguments and an example each.
fn functions(language: &Entry, title: &str) -> String {
    let mut out = format!("\n### {title}\n\n");
    for function in list(language, &title.to_lowercase()) {
        let arguments = list(&function, "arguments");
        let names: Vec<_> = arguments.iter().map(|one| text(one, "name")).collect();
        let mut call = text(&function, "name");
        if !names.is_empty() || title == "Functions" {
            let _ = write!(call, "({})", names.join(", "));
        }
        let _ = writeln!(out, "- `{call}`: {}.", text(&function, "text"));
        for argument in &arguments {
            let name = text(argument, "name");
            let left_out = if is_true(argument, "required") {
                ""
            } else {
                ", optional"
            };
            let _ = writeln!(out, "  `{name}`{left_out}: {}.", text(argument, "text"));
        }
        let example = function["example"].get();
        let example: Entry = serde_json::from_str(example).unwrap();
        let _ = write!(out, "  Example: `{}`", text(&example, "expression"));
        if let Some(source) = example.get("source") {
            let _ = write!(out, " of `{}`", source.get());
        }
        match example.get("value") {
            Some(value) => {
                let _ = writeln!(out, " is `{}`", value.get());
            }
            None => out.push('\n'),
        }
    }
    out
}

fn tables(language: &Entry) -> String {
    [
        functions(language, "Transforms"),
        functions(language, "Functions"),
        table(
            language,
            "Operators",
            ["operator", "meaning", "example"],
            "example",
        ),
        table(language, "Roots", ["root", "meaning", "known"], "where"),
        keys(language),
    ]
    .concat()
}

#[tokio::test]
async fn the_tables_are_those_of_the_service() {
    let app = TestApp::start().await;
    let answer = app.api.get("/api/v1/flow-language").await;
    let language: Entry = serde_json::from_str(&answer.text).unwrap();
    answer.expect(200);
    let path = root().join(PAGE);
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, written) = page.split_once(START).expect("the page has the line");
    let tables = tables(&language);
    if std::env::var_os("KANAT_WRITE_PAGES").is_some() {
        std::fs::write(&path, format!("{before}{START}{tables}")).unwrap();
        return;
    }
    assert!(
        written == tables,
        "{PAGE} has other tables than the service: KANAT_WRITE_PAGES=1 writes them anew"
    );
}
