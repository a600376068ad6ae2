//! `cargo xtask permissions`: writes docs/permissions.md, which says what a caller of each method
//! needs, from the options in `proto/`.

use std::fmt::Write;

use anyhow::{Context, Result, bail};

use crate::workspace::{self, SourceFile};

/// The page, from the root.
pub const PAGE: &str = "docs/permissions.md";

const INTRODUCTION: &str = "\
# Permissions

What a caller needs, method by method. The page is made from the options in `proto/kanat/v1` by
`cargo xtask permissions`.

| permission | owner | admin | editor | viewer | what it is |
| --- | --- | --- | --- | --- | --- |
| `read` | yes | yes | yes | yes | see |
| `write` | yes | yes | yes | | build and run |
| `admin` | yes | yes | | | API keys, members, environments |
| `billing` | yes | | | | billing, the master key, the end of the account |
| `agent` | yes | yes | | | keys of agents and what these do |
| `identity` | | | | | a verified token of an identity provider, of a member or not |
| `public` | | | | | nothing: no credential is asked for |

A caller that lacks the permission gets 403 (`PERMISSION_DENIED`), before its body is read and
before anything is looked for. A key that is bound to an environment opens that one alone.

In a protected environment, `write` is what owners and admins have. Editors may call the methods
that work with messages, `write (run)`, and those that need `read`.
";

/// A method of the API, as its proto file has it.
#[derive(Debug, PartialEq, Eq)]
struct Method {
    service: String,
    name: String,
    /// Verb and path of its first REST form, such as `GET /api/v1/flows`.
    route: Option<String>,
    /// The option, in lower case; none where it is missing.
    permission: Option<String>,
    /// True where editors may call it in a protected environment.
    runs: bool,
    /// Line of the file, from 1.
    line: usize,
}

/// Writes the page.
///
/// # Errors
/// A method without a permission, and a file that cannot be read or written.
pub fn run() -> Result<()> {
    let files = workspace::files(&["proto"])?;
    let missing = missing(&files);
    if let Some((place, problem)) = missing.first() {
        bail!("{place}: {problem}");
    }
    let path = workspace::root().join(PAGE);
    std::fs::write(&path, page(&files)).with_context(|| format!("cannot write {PAGE}"))
}

/// Returns the place of each method without a permission, with what is wrong.
pub fn missing(files: &[SourceFile]) -> Vec<(String, String)> {
    let of_file = |file: &SourceFile| {
        let without = methods(file)
            .into_iter()
            .filter(|method| method.permission.is_none());
        let problem = |method: Method| {
            let place = format!("{}:{}", file.path, method.line);
            (
                place,
                format!("{} has no `option (permission)`", method.name),
            )
        };
        without.map(problem).collect::<Vec<_>>()
    };
    public(files).flat_map(of_file).collect()
}

/// Returns the page as it has to be.
pub fn page(files: &[SourceFile]) -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut service = String::new();
    for method in public(files).flat_map(methods) {
        if method.service != service {
            let _ = write!(page, "\n## {}\n\n", method.service);
            page += "| method | REST | needs |\n| --- | --- | --- |\n";
            service.clone_from(&method.service);
        }
        let route = method
            .route
            .map(|route| format!("`{route}`"))
            .unwrap_or_default();
        let permission = method.permission.unwrap_or_default();
        let run = if method.runs { " (run)" } else { "" };
        let _ = writeln!(page, "| {} | {route} | `{permission}{run}` |", method.name);
    }
    page
}

/// Returns the files of the public API.
fn public(files: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    files
        .iter()
        .filter(|file| file.path.starts_with("proto/kanat/v1/"))
}

fn methods(file: &SourceFile) -> Vec<Method> {
    let mut methods: Vec<Method> = Vec::new();
    let mut service = String::new();
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("service ") {
            service = name.split([' ', '{']).next().unwrap_or_default().to_owned();
        } else if let Some(rest) = line.strip_prefix("rpc ") {
            let name = rest.split('(').next().unwrap_or_default().to_owned();
            let service = service.clone();
            methods.push(Method {
                service,
                name,
                route: None,
                permission: None,
                runs: false,
                line: index + 1,
            });
        } else if let Some(method) = methods.last_mut() {
            let option = line.strip_prefix("option (permission) = PERMISSION_");
            if let Some(value) = option.and_then(|value| value.strip_suffix(';')) {
                method.permission = Some(value.to_lowercase());
            }
            method.runs |= line == "option (runs) = true;";
            if method.route.is_none() {
                method.route = route(line);
            }
        }
    }
    methods
}

/// Returns the REST form that a line of `google.api.http` names.
fn route(line: &str) -> Option<String> {
    ["get", "post", "put", "patch", "delete"]
        .iter()
        .find_map(|verb| {
            let (_, path) = line.split_once(&format!("{verb}: \""))?;
            let path = path.split('"').next()?;
            Some(format!("{} {path}", verb.to_uppercase()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows(option: &str) -> [SourceFile; 1] {
        let text = format!(
            "service FlowService {{\n  // Lists flows.\n  rpc ListFlows(A) returns (B) {{\n    \
             {option}\n    option (google.api.http) = {{get: \"/api/v1/flows\"}};\n  }}\n}}\n"
        );
        [SourceFile {
            path: "proto/kanat/v1/flow.proto".to_owned(),
            text,
        }]
    }

    #[test]
    fn a_method_without_a_permission_is_named_with_its_place() {
        let missing = missing(&flows(""));
        let problem = "ListFlows has no `option (permission)`".to_owned();
        assert_eq!(
            missing,
            [("proto/kanat/v1/flow.proto:3".to_owned(), problem)]
        );
    }

    #[test]
    fn the_page_has_a_row_for_each_method() {
        let files = flows("option (permission) = PERMISSION_READ;");
        assert_eq!(super::missing(&files), []);
        assert!(page(&files).ends_with(
            "\n## FlowService\n\n| method | REST | needs |\n| --- | --- | --- |\n\
             | ListFlows | `GET /api/v1/flows` | `read` |\n"
        ));
    }
}
