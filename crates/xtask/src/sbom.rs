//! `cargo xtask sbom`: the bill of materials of the binary, as CycloneDX, to be held against a list
//! of known faults. Source in C is part of the package that brings it (`libsqlite3-sys`,
//! `rquickjs-sys`, `aws-lc-sys`, `libmimalloc-sys`).

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::command::{self, cargo};
use crate::workspace::{self, list, text};

/// The package that is shipped.
const SHIPPED: &str = "kanat";

/// Writes `target/sbom/kanat.cdx.json`.
pub fn run(options: &[String]) -> Result<()> {
    ensure!(options.is_empty(), "sbom takes no options");
    let version = command::output(rustc())?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("rustc does not name its host")?;
    let metadata = cargo([
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        host,
    ]);
    let metadata: Value = serde_json::from_str(&command::output(metadata)?)
        .context("cannot read what cargo printed")?;
    let lock = std::fs::read_to_string(workspace::root().join("Cargo.lock"))
        .context("cannot read Cargo.lock")?;
    let bill = bill(&metadata, &lock.parse().context("Cargo.lock is not TOML")?)?;
    let folder = workspace::target_folder().join("sbom");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("kanat.cdx.json");
    std::fs::write(&file, serde_json::to_string_pretty(&bill)? + "\n")
        .with_context(|| format!("cannot write {}", file.display()))?;
    println!(
        "{}: {} components",
        file.display(),
        list(&bill, "components").len()
    );
    Ok(())
}

fn rustc() -> std::process::Command {
    let mut rustc =
        std::process::Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.arg("-vV");
    rustc
}

/// A package of the graph.
struct Package<'a> {
    entry: &'a Value,
    /// Packages that it is compiled from or with; those of its tests are not among them.
    dependencies: Vec<&'a str>,
    /// Dependencies that end up in the binary.
    linked: Vec<&'a str>,
}

fn bill(metadata: &Value, lock: &toml::Table) -> Result<Value> {
    let packages = packages(metadata);
    let root = packages
        .iter()
        .find(|(_, package)| text(package.entry, "name") == SHIPPED);
    let (root, shipped) = root.with_context(|| format!("there is no package {SHIPPED}"))?;
    let all = reached(&packages, root, |package| &package.dependencies);
    let linked = reached(&packages, root, |package| &package.linked);
    let checksums = checksums(lock);
    let parts = all
        .iter()
        .filter(|id| *id != root)
        .filter_map(|id| Some((*id, packages.get(id)?)));
    let components: Vec<Value> = parts
        .map(|(id, package)| {
            // A package that only builds is no part of the binary.
            let scope = if linked.contains(id) {
                "required"
            } else {
                "excluded"
            };
            component(package.entry, scope, &checksums)
        })
        .collect();
    let dependencies: Vec<Value> = all
        .iter()
        .filter_map(|id| packages.get(id))
        .map(|package| {
            let on = package
                .dependencies
                .iter()
                .filter_map(|id| Some(reference(packages.get(id)?.entry)));
            json!({"ref": reference(package.entry), "dependsOn": on.collect::<BTreeSet<_>>()})
        })
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "bom-ref": reference(shipped.entry),
            "name": SHIPPED,
            "version": text(shipped.entry, "version"),
            "purl": reference(shipped.entry),
            "licenses": licenses(shipped.entry),
        }},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn packages(metadata: &Value) -> BTreeMap<&str, Package<'_>> {
    let nodes = metadata
        .get("resolve")
        .map_or(&[][..], |resolve| list(resolve, "nodes"));
    let graph: BTreeMap<&str, &Value> = nodes.iter().map(|node| (text(node, "id"), node)).collect();
    let entries = list(metadata, "packages");
    let macros: BTreeSet<&str> = entries
        .iter()
        .filter(|entry| is_macro(entry))
        .map(|entry| text(entry, "id"))
        .collect();
    let package = |entry| {
        let edges = graph
            .get(text(entry, "id"))
            .map_or(&[][..], |node| list(node, "deps"));
        // Cargo names no kind for what the binary is linked with.
        let mut linked = ends(edges, str::is_empty);
        linked.retain(|id| !macros.contains(id));
        (
            text(entry, "id"),
            Package {
                entry,
                dependencies: ends(edges, |kind| kind != "dev"),
                linked,
            },
        )
    };
    entries.iter().map(package).collect()
}

/// Returns the packages that edges of a wanted kind lead to.
fn ends(edges: &[Value], wanted: impl Fn(&str) -> bool) -> Vec<&str> {
    let is_wanted = |edge: &&Value| {
        list(edge, "dep_kinds")
            .iter()
            .any(|kind| wanted(text(kind, "kind")))
    };
    edges
        .iter()
        .filter(is_wanted)
        .map(|edge| text(edge, "pkg"))
        .collect()
}

fn is_macro(entry: &Value) -> bool {
    let kinds = list(entry, "targets")
        .iter()
        .flat_map(|target| list(target, "kind"));
    kinds
        .filter_map(Value::as_str)
        .any(|kind| kind == "proc-macro")
}

/// Packages that are reached from `root` by these edges, including `root`.
fn reached<'a>(
    packages: &BTreeMap<&'a str, Package<'a>>,
    root: &'a str,
    edges: impl for<'p> Fn(&'p Package<'a>) -> &'p [&'a str],
) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![root];
    while let Some(id) = waiting.pop() {
        if seen.insert(id) {
            waiting.extend(packages.get(id).map_or(&[][..], &edges));
        }
    }
    seen
}

fn component(entry: &Value, scope: &str, checksums: &BTreeMap<(&str, &str), &str>) -> Value {
    let name = text(entry, "name");
    let version = text(entry, "version");
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(entry),
        "name": name,
        "version": version,
        "scope": scope,
        "purl": reference(entry),
        "licenses": licenses(entry),
    });
    if let Some(checksum) = checksums.get(&(name, version)) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

/// The package URL, which no two packages share.
fn reference(entry: &Value) -> String {
    format!(
        "pkg:cargo/{}@{}",
        text(entry, "name"),
        text(entry, "version")
    )
}

/// An SPDX expression; a slash is how it was written once.
fn licenses(entry: &Value) -> Value {
    match text(entry, "license") {
        "" => json!([]),
        license => json!([{"expression": license.replace('/', " OR ")}]),
    }
}

fn checksums(lock: &toml::Table) -> BTreeMap<(&str, &str), &str> {
    let packages = lock
        .get("package")
        .and_then(toml::Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let checksum = |package| {
        let known_as = (member(package, "name")?, member(package, "version")?);
        Some((known_as, member(package, "checksum")?))
    };
    packages.iter().filter_map(checksum).collect()
}

fn member<'a>(package: &'a toml::Value, key: &str) -> Option<&'a str> {
    package.get(key)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, kind: &str) -> Value {
        let target = json!({"kind": [kind]});
        json!({
            "id": name,
            "name": name,
            "version": "1.0.0",
            "license": "MIT/Apache-2.0",
            "targets": [target],
        })
    }

    fn edge(to: &str, kind: Value) -> Value {
        json!({"pkg": to, "dep_kinds": [{"kind": kind}]})
    }

    #[test]
    fn a_bill_names_what_is_linked_and_what_builds_and_no_tests() {
        let nodes = json!([
            {
                "id": "kanat",
                "deps": [
                    edge("linked", Value::Null),
                    edge("derive", Value::Null),
                    edge("tests", json!("dev")),
                ],
            },
            {"id": "linked", "deps": [edge("builds", json!("build"))]},
            {"id": "derive", "deps": [edge("syntax", Value::Null)]},
        ]);
        let kinds = [
            ("kanat", "bin"),
            ("linked", "lib"),
            ("derive", "proc-macro"),
            ("tests", "lib"),
            ("builds", "lib"),
        ];
        let mut packages = kinds.map(|(name, kind)| package(name, kind)).to_vec();
        packages.push(package("syntax", "lib"));
        let metadata = json!({"packages": packages, "resolve": {"nodes": nodes}});
        let lock = "[[package]]\nname = \"linked\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n"
            .parse()
            .unwrap();
        let bill = bill(&metadata, &lock).unwrap();
        let scopes: Vec<_> = list(&bill, "components")
            .iter()
            .map(|part| (text(part, "name"), text(part, "scope")))
            .collect();
        assert_eq!(
            scopes,
            [
                ("builds", "excluded"),
                ("derive", "excluded"),
                ("linked", "required"),
                ("syntax", "excluded")
            ]
        );
        let linked = &bill["components"][2];
        assert_eq!(linked["purl"], "pkg:cargo/linked@1.0.0");
        assert_eq!(
            linked["hashes"],
            json!([{"alg": "SHA-256", "content": "abc"}])
        );
        assert_eq!(
            linked["licenses"],
            json!([{"expression": "MIT OR Apache-2.0"}])
        );
        assert_eq!(bill["metadata"]["component"]["name"], "kanat");
        assert_eq!(
            bill["dependencies"][3]["dependsOn"],
            json!(["pkg:cargo/builds@1.0.0"])
        );
    }
}
