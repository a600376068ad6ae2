//! Each kind of knowledge lives in one place: SQL in `store` and `message-log`, YAML in `flow`,
//! `catalog` and what the binary prints, gRPC codes in the planes and the gateway.

use super::Findings;
use crate::workspace::{Member, SourceFile};

/// Crates with SQL. The benchmark fills databases.
const SQL_CRATES: [&str; 4] = [
    "kanat-store",
    "kanat-message-log",
    "kanat-database",
    "kanat-bench",
];
/// Databases for tests are handled as an operator would; servers are asked whether they take
/// writes.
const SQL_FOLDERS: [&str; 5] = [
    "crates/store/",
    "crates/message-log/",
    "crates/database/src/servers.rs",
    "crates/testing-postgres/",
    "crates/bench/",
];
const SQL_LIBRARIES: [&str; 4] = ["sqlx", "rusqlite", "tokio-postgres", "diesel"];

const YAML_CRATES: [&str; 3] = ["kanat-flow", "kanat-catalog", "kanat"];
const YAML_LIBRARIES: [&str; 4] = ["serde-saphyr", "serde_yaml", "serde_yml", "saphyr"];

/// The beginnings of statements, as they stand after a quote.
const STATEMENTS: [&str; 8] = [
    "SELECT ",
    "INSERT INTO ",
    "INSERT OR ",
    "DELETE FROM ",
    "CREATE TABLE ",
    "CREATE INDEX ",
    "ALTER TABLE ",
    "PRAGMA ",
];

pub fn check(files: &[SourceFile], members: &[Member], findings: &mut Findings) {
    for file in files.iter().filter(|file| {
        !SQL_FOLDERS
            .iter()
            .any(|folder| file.path.starts_with(folder))
    }) {
        for (index, line) in file.text.lines().enumerate() {
            if statement(line) {
                findings.error(
                    format!("{}:{}", file.path, index + 1),
                    "SQL stands in `store` and `message-log` only",
                );
            }
        }
    }
    for member in members {
        only_in(member, &SQL_LIBRARIES, &SQL_CRATES, "SQL", findings);
        only_in(member, &YAML_LIBRARIES, &YAML_CRATES, "YAML", findings);
    }
}

fn statement(line: &str) -> bool {
    let code = line.trim_start();
    if code.starts_with("//") {
        return false;
    }
    let opens = code.match_indices('"').map(|(at, _)| at + 1).chain([0]);
    opens.filter_map(|at| code.get(at..)).any(|rest| {
        let rest = rest.trim_start();
        // This file's own list ends each of its words with a quote.
        STATEMENTS.iter().any(|word| {
            rest.strip_prefix(word)
                .is_some_and(|tail| !tail.starts_with(['"', '{']))
        })
    })
}

fn only_in(
    member: &Member,
    libraries: &[&str],
    crates: &[&str],
    what: &str,
    findings: &mut Findings,
) {
    if crates.contains(&member.name.as_str()) {
        return;
    }
    for dependency in member
        .dependencies
        .iter()
        .filter(|dependency| libraries.contains(&dependency.name.as_str()))
    {
        let place = format!("{}/Cargo.toml", member.folder);
        findings.error(
            place,
            format!(
                "{} belongs where {what} does: {}",
                dependency.name,
                crates.join(", ")
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_statement_after_a_quote_and_at_the_start_of_a_line() {
        // Put together here, so that this file does not find itself.
        assert!(statement(&format!(
            r#"const GET: &str = "SELECT {}";"#,
            "id FROM flow"
        )));
        assert!(statement(&format!(
            "   {} flow (id) VALUES ($1)",
            "INSERT INTO"
        )));
    }

    #[test]
    fn passes_over_prose_and_comments() {
        assert!(!statement("// SELECT is not for here"));
        assert!(!statement(r#"let text = "choose what to SELECT from";"#));
        assert!(!statement("let selected = 1;"));
    }
}
