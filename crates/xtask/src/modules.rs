//! Which modules of a crate use which: the arrows between the modules of one folder, and the
//! circles that these make.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Item, ItemUse, Path, UseTree};

use crate::syntax::{ParsedFile, is_for_tests};

/// A folder of modules: the source root of a crate, and the path of a module in it.
pub type Folder = (&'static str, &'static [&'static str]);

/// Folders whose modules use each other in one direction.
pub const ACYCLIC: [Folder; 5] = [
    ("control-plane/src", &[]),
    ("control-plane/src", &["app"]),
    ("control-plane/src", &["push"]),
    ("data-plane/src", &[]),
    ("crates/catalog/src", &[]),
];

/// Arrows between modules of one folder: from a module to those that its files name.
pub type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Returns the arrows between the modules of `folder`, which is empty for the root of the crate
/// whose sources are in `root`. Tests are left out.
pub fn arrows(files: &[ParsedFile], root: &str, folder: &[&str]) -> Arrows {
    let own = files
        .iter()
        .filter_map(|file| Some((module(&file.path, root)?, file)));
    let own: Vec<_> = own.filter(|(_, file)| file.is_product()).collect();
    let within = |path: &[String]| {
        let (start, rest) = path.split_at_checked(folder.len())?;
        (start == folder).then_some(rest.first()?.clone())
    };
    let names: BTreeSet<String> = own.iter().filter_map(|(path, _)| within(path)).collect();
    let mut arrows = Arrows::new();
    for (path, file) in &own {
        let Some(from) = within(path) else { continue };
        let mut paths = NamedPaths {
            module: path.clone(),
            found: Vec::new(),
        };
        paths.visit_file(&file.syntax);
        let to = paths.found.iter().filter_map(|path| within(path));
        let to = to.filter(|to| *to != from && names.contains(to));
        arrows.entry(from.clone()).or_default().extend(to);
    }
    arrows
}

/// Returns every set of modules that reach each other.
pub fn circles(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(module) = open.pop() {
            for to in arrows.get(module).into_iter().flatten() {
                if reached.insert(to.clone()) {
                    open.push(to);
                }
            }
        }
        reached
    };
    let reach: BTreeMap<&String, BTreeSet<String>> = arrows
        .keys()
        .map(|module| (module, reached(module)))
        .collect();
    let circle = |module: &String| -> BTreeSet<String> {
        let back = reach[module]
            .iter()
            .filter(|to| reach.get(to).is_some_and(|all| all.contains(module)));
        back.cloned().collect()
    };
    let circles: BTreeSet<BTreeSet<String>> = arrows.keys().map(circle).collect();
    circles
        .into_iter()
        .filter(|circle| circle.len() > 1)
        .collect()
}

/// Returns the path of a file's module in its crate; none for a file of another crate.
fn module(path: &str, root: &str) -> Option<Vec<String>> {
    let path = path
        .strip_prefix(root)?
        .strip_prefix('/')?
        .strip_suffix(".rs")?;
    let parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    (parts != ["lib"] && parts != ["main"]).then_some(parts)
}

/// The paths that a file names, each from the root of its crate.
struct NamedPaths {
    /// The module of the file.
    module: Vec<String>,
    found: Vec<Vec<String>>,
}

impl NamedPaths {
    fn add(&mut self, path: &[String]) {
        let Some(first) = path.first() else { return };
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.clone(),
            _ => return,
        };
        let mut rest = path;
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "crate" | "self" => {}
                "super" => drop(base.pop()),
                _ => break,
            }
            rest = after;
        }
        base.extend_from_slice(rest);
        self.found.push(base);
    }

    fn add_tree(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.add_tree(&path.tree, &with(&path.ident)),
            UseTree::Name(name) => self.add(&with(&name.ident)),
            UseTree::Rename(rename) => self.add(&with(&rename.ident)),
            UseTree::Glob(_) => self.add(before),
            UseTree::Group(group) => {
                group
                    .items
                    .iter()
                    .for_each(|tree| self.add_tree(tree, before));
            }
        }
    }
}

impl Visit<'_> for NamedPaths {
    fn visit_item(&mut self, item: &Item) {
        if !is_for_tests(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        self.add_tree(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &Path) {
        let names: Vec<String> = path
            .segments
            .iter()
            .map(|part| part.ident.to_string())
            .collect();
        self.add(&names);
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(path: &str, text: &str) -> ParsedFile {
        let syntax = syn::parse_file(text).unwrap();
        ParsedFile {
            path: path.to_owned(),
            text: text.to_owned(),
            syntax,
        }
    }

    #[test]
    fn arrows_lead_from_a_module_to_those_that_its_files_name() {
        let files = [
            parsed("plane/src/lib.rs", "mod app; mod grpc;"),
            parsed(
                "plane/src/app.rs",
                "pub struct App; #[cfg(test)] mod tests { use crate::grpc::Api; }",
            ),
            parsed("plane/src/grpc.rs", "use crate::app::App;"),
            parsed(
                "plane/src/grpc/flow.rs",
                "fn call() { super::super::push::tell(crate::app::get) }",
            ),
            parsed(
                "plane/src/push.rs",
                "use super::{grpc::{flow::Flow}, app as other};",
            ),
        ];
        let arrows = arrows(&files, "plane/src", &[]);
        let to = |from: &str| arrows[from].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(to("app"), [""; 0]);
        assert_eq!(to("grpc"), ["app", "push"]);
        assert_eq!(to("push"), ["app", "grpc"]);
        let circles = circles(&arrows);
        assert_eq!(
            circles,
            [BTreeSet::from(["grpc".to_owned(), "push".to_owned()])]
        );
    }
}
