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

/// Descriptors of [`FILE_DESCRIPTOR_SET`]. They take several MiB, so a process decodes them once.
pub static DESCRIPTORS: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the build script has encoded the set")
});
