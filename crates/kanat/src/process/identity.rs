//! Identity of a node: an id that is made at the first start and kept in the data folder, so that a
//! restart is the same node.

use std::path::Path;

use anyhow::{Context, Result, bail};
use kanat_model::id::NodeId;

use crate::whole_file;

const FILE: &str = "node-id";

/// Reads the id, or makes one and keeps it.
pub fn node_id(folder: &Path) -> Result<NodeId> {
    let path = folder.join(FILE);
    match std::fs::read(&path) {
        Ok(bytes) => read(&bytes).with_context(|| {
            let path = path.display();
            format!(
                "{path} holds no node id: restore it, or remove it to go on as a new node, \
                     which takes up what the former one held once its lease has ended"
            )
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let id = NodeId::generate();
            whole_file::write(&path, format!("{id}\n").as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))?;
            Ok(id)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn read(bytes: &[u8]) -> Result<NodeId> {
    let text = std::str::from_utf8(bytes).context("it is no text")?.trim();
    if !text.starts_with("node_") || text.contains(char::is_whitespace) {
        bail!("{text:?} does not begin with `node_`");
    }
    Ok(NodeId::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_the_same_node() {
        let folder = tempfile::tempdir().unwrap();
        let first = node_id(folder.path()).unwrap();
        assert_eq!(node_id(folder.path()).unwrap(), first);
    }

    #[test]
    fn a_broken_file_is_an_error_and_not_another_node() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [&b""[..], b"\xff\xfe", b"nobody"] {
            std::fs::write(folder.path().join(FILE), bytes).unwrap();
            let error = format!("{:#}", node_id(folder.path()).unwrap_err());
            assert!(error.contains("restore it, or remove it"), "{error}");
        }
    }
}
