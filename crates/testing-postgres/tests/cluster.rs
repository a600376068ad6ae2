//! The server of our own, and what is left of it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so where it stands"
)]

use std::net::TcpStream;
use std::path::{Path, PathBuf};

use kanat_testing_postgres::{Cluster, Database, Durability, Programs, Stop};
use url::Url;

fn accepts(url: &str) -> bool {
    let url = Url::parse(url).unwrap();
    TcpStream::connect((url.host_str().unwrap(), url.port().unwrap_or(5432))).is_ok()
}

#[test]
fn a_cluster_is_stopped_and_started_and_leaves_no_files() {
    let cluster = Cluster::start(Programs::find_or_install().unwrap(), Durability::OnDisk).unwrap();
    cluster.create_database("orders").unwrap();
    let url = cluster.url("orders");
    assert!(accepts(&url));
    cluster.stop(Stop::Immediate).unwrap();
    assert!(!accepts(&url));
    cluster.start_again().unwrap();
    cluster.pause().unwrap();
    cluster.resume().unwrap();
    assert!(
        cluster
            .create_database("orders")
            .unwrap_err()
            .to_string()
            .contains("already exists")
    );
    let folder = folder_of(&cluster);
    assert!(folder.exists());
    drop(cluster);
    assert!(!accepts(&url));
    assert!(!folder.exists());
}

#[test]
fn a_cluster_that_is_killed_starts_again_with_what_it_has() {
    let cluster = Cluster::start(Programs::find_or_install().unwrap(), Durability::OnDisk).unwrap();
    cluster.create_database("orders").unwrap();
    cluster.end_connections("orders").unwrap();
    for _ in 0..3 {
        cluster.kill().unwrap();
        assert!(!accepts(&cluster.url("orders")));
        cluster.start_again().unwrap();
    }
    assert!(
        cluster
            .create_database("orders")
            .unwrap_err()
            .to_string()
            .contains("already exists")
    );
}

#[test]
fn each_test_has_a_database_of_its_own() {
    let one = Database::fresh();
    let other = Database::fresh();
    assert_ne!(one.url(), other.url());
    assert!(accepts(one.url()));
}

fn folder_of(cluster: &Cluster) -> PathBuf {
    let port = Url::parse(&cluster.url("x")).unwrap().port().unwrap();
    let folders = std::fs::read_dir(std::env::temp_dir())
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let mut ours =
        folders.filter(|folder| Path::new(folder).join(format!(".s.PGSQL.{port}")).exists());
    ours.next().unwrap()
}
