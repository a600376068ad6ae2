//! Compiles `proto/` with protox: no `protoc` is needed. The encoded descriptor sets keep the
//! annotations that the gateway reads. One has the comments too, for reflection and for the page of
//! the HTTP fields.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    let mut files = Vec::new();
    collect(&root.join("kanat"), &mut files)?;
    files.sort();
    println!("cargo::rerun-if-changed={}", root.display());

    let mut compiler = protox::Compiler::new([&root])?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_files(&files)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(
        out.join("descriptor_set.bin"),
        compiler.encode_file_descriptor_set(),
    )?;

    let commented = compiler.file_descriptor_set();
    compiler.include_source_info(false);
    fs::write(
        out.join("descriptor_set_without_comments.bin"),
        compiler.encode_file_descriptor_set(),
    )?;

    tonic_prost_build::configure()
        .bytes(".kanat.node.v1.Resource.body")
        .bytes(".kanat.node.v1.SnapshotChunk.data")
        .build_client(true)
        .build_server(true)
        .compile_fds(commented)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "proto") {
            files.push(path);
        }
    }
    Ok(())
}
