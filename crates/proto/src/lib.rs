//! The contract in Rust: what `proto/` compiles to, and its descriptors. Nothing here is written by
//! hand.

use std::sync::LazyLock;

use prost_reflect::DescriptorPool;

pub mod google {
    pub mod api {
        include!(concat!(env!("OUT_DIR"), "/google.api.rs"));
    }
}

/// The public API.
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/kanat.v1.rs"));
}

/// Control plane to node.
pub mod node {
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/kanat.node.v1.rs"));
    }
}

/// Plans that nodes run.
pub mod plan {
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/kanat.plan.v1.rs"));
    }
}

/// Every file of `proto/` and what it imports, encoded, with custom options and comments.
pub const FILE_DESCRIPTOR_SET: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/descriptor_set.bin"));

/// Descriptors of the files in [`FILE_DESCRIPTOR_SET`], without comments. They take megabytes, so a
/// process decodes them once.
pub static DESCRIPTORS: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let set = include_bytes!(concat!(
        env!("OUT_DIR"),
        "/descriptor_set_without_comments.bin"
    ));
    DescriptorPool::decode(set.as_slice()).expect("the build script has encoded the set")
});
