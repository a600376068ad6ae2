//! Modules of the planes use each other in one direction.

use anyhow::Result;

use super::Findings;
use crate::modules::{ACYCLIC, arrows, circles};
use crate::syntax::parse;
use crate::workspace::SourceFile;

pub fn check(files: &[SourceFile], findings: &mut Findings) -> Result<()> {
    let is_of_plane =
        |file: &&SourceFile| ACYCLIC.iter().any(|(root, _)| file.path.starts_with(root));
    let files = parse(files.iter().filter(is_of_plane).cloned().collect())?;
    for (root, folder) in ACYCLIC {
        for circle in circles(&arrows(&files, root, folder)) {
            let modules: Vec<String> = circle.into_iter().collect();
            let place = [&[root], folder].concat().join("/");
            findings.error(
                place,
                format!("{} use each other in a circle", modules.join(", ")),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_reported_by_its_modules() {
        let file = |path: &str, text: &str| SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let files = [
            file("data-plane/src/delivery.rs", "use crate::pipeline::Bounds;"),
            file(
                "data-plane/src/pipeline.rs",
                "use crate::delivery::deliver;",
            ),
        ];
        let mut findings = Findings::default();
        check(&files, &mut findings).unwrap();
        assert_eq!(
            findings.errors,
            ["data-plane/src: delivery, pipeline use each other in a circle"]
        );
    }
}
