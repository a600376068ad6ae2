//! Schemas and documents over all keywords of all drafts: what fits, and which fields are named
//! where it does not.

use kanat_schema::Schema;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Group<'f> {
    name: &'f str,
    #[serde(borrow)]
    schema: &'f RawValue,
    #[serde(borrow)]
    cases: Vec<Case<'f>>,
}

#[derive(Deserialize)]
struct Case<'f> {
    #[serde(borrow)]
    value: &'f RawValue,
    /// In order of the alphabet; none when the value fits.
    fields: Vec<String>,
}

#[test]
fn every_pair_has_its_verdict() {
    let groups: Vec<Group<'_>> = serde_json::from_str(include_str!("pairs.json")).unwrap();
    let mut pairs = 0;
    for group in groups {
        let schema = Schema::compile(group.schema.get())
            .map_err(|error| format!("{}: {error}", group.name))
            .unwrap();
        for case in group.cases {
            let found = schema
                .validate(case.value.get().as_bytes())
                .err()
                .unwrap_or_default();
            let mut fields: Vec<String> =
                found.into_iter().map(|violation| violation.field).collect();
            fields.sort();
            assert_eq!(fields, case.fields, "{}: {}", group.name, case.value);
            pairs += 1;
        }
    }
    assert!(pairs >= 150, "{pairs} pairs");
}
