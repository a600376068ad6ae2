//! `GET /members` and `GET /members/{id}`: for everybody of the account.

use kanat_tests::on_both_databases;
use kanat_tests::token_issuer::Person;

use super::{MEMBERS, Organization, path_of};

on_both_databases!(Organization; everybody_reads_who_the_members_are);

async fn everybody_reads_who_the_members_are(organization: &Organization) {
    let ada = Person::new("Ada Lovelace", "ada@example.com");
    let hired = organization.hires(&ada, "viewer").await;
    organization.invites("bob@example.org", "editor").await;
    let api = organization.as_person(&ada);
    let all = api.get(MEMBERS).await.expect(200);
    assert_eq!(all["pagination"]["total"], 2);
    assert_eq!(all["data"][0]["email"], "bob@example.org");
    for (search, total) in [
        ("LOVELACE", 1),
        ("example.org", 1),
        ("example", 2),
        ("eve", 0),
    ] {
        let path = format!("{MEMBERS}?search={search}");
        let found = api.get(&path).await.expect(200);
        assert_eq!(found["pagination"]["total"], total, "{search}");
    }
    let read = api.get(&path_of(&hired)).await;
    assert!(!read.header("etag").is_empty());
    let read = read.expect(200);
    assert_eq!(read["name"], "Ada Lovelace");
    let missing = api.get(&format!("{MEMBERS}/mem_none")).await;
    missing.expect_error(404, "NOT_FOUND");
}
