//! Processes survive kills, hung targets, drains, full disks and peers that send garbage; and they
//! keep secrets.

mod bound_nodes;
mod clock;
mod descriptors;
mod drain;
mod faults;
mod full_disk;
mod garbage;
mod kill;
mod limits;
mod lost_files;
mod overload;
mod pair;
mod rolling;
mod scale;
mod secrets;
mod slow_target;
mod split;
