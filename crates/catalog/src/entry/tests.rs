//! The data files, and the reports about files with faults.

mod verify;

use std::path::Path;

use super::*;

/// Reads a data file. Errors are all that is wrong with it, each with its place.
fn read(text: &str) -> Result<Entry, Vec<String>> {
    let (entry, mut faults) = Entry::read(text).map_err(|why| vec![why])?;
    faults.extend(verify::faults(&entry));
    if faults.is_empty() {
        Ok(entry)
    } else {
        Err(faults)
    }
}

/// Checks the files that `cargo xtask catalog check` names, if it does.
#[test]
fn files_of_an_author_are_entries() {
    let files = std::env::var_os("CATALOG_FILES").unwrap_or_default();
    let files = std::env::split_paths(&files).filter(|file| file.is_file());
    let mut wrong = Vec::new();
    for file in files {
        let shown = file.display();
        match read(&std::fs::read_to_string(&file).unwrap()) {
            Ok(entry) if !is_named(&entry, &file) => {
                wrong.push(format!(
                    "{shown}: id: the file must be named {}.yaml",
                    entry.id
                ));
            }
            Ok(entry) => println!("{shown}: {} with {} actions", entry.id, entry.actions.len()),
            Err(faults) => {
                wrong.extend(faults.into_iter().map(|fault| format!("{shown}: {fault}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The build finds an entry by the name of its file.
fn is_named(entry: &Entry, file: &Path) -> bool {
    let expected = format!("{}.yaml", entry.id);
    file.file_name()
        .is_some_and(|name| name == expected.as_str())
}

#[test]
fn every_data_file_reads_and_has_the_name_of_its_entry() {
    let mut wrong = Vec::new();
    for (name, text) in FILES {
        match read(text) {
            Ok(entry) => assert_eq!(entry.id, *name),
            Err(faults) => wrong.extend(faults.into_iter().map(|fault| format!("{name}: {fault}"))),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_of_the_folder_is_in_the_list() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/entries");
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| {
            file.unwrap()
                .file_name()
                .into_string()
                .unwrap()
                .replace(".yaml", "")
        })
        .collect();
    found.sort();
    assert_eq!(
        found,
        FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>()
    );
}

#[test]
fn entries_are_in_order_of_their_names() {
    let names: Vec<_> = entries().iter().map(|entry| entry.name.as_str()).collect();
    assert!(names.is_sorted(), "{names:?}");
}

#[test]
fn has_the_entries_and_fields_of_the_spec() {
    let fields = |id: &str| -> Vec<(String, bool)> {
        let fields = &entry(id).unwrap().fields;
        fields
            .iter()
            .filter(|field| field.required)
            .map(|field| (field.name.clone(), field.secret))
            .collect()
    };
    let text = |name: &str| name.to_owned();
    assert_eq!(
        fields("support-ticketing"),
        [
            (text("subdomain"), false),
            (text("email"), false),
            (text("api_token"), true)
        ]
    );
    assert_eq!(fields("email-delivery"), [(text("api_key"), true)]);
    assert_eq!(entry("support-ticketing").unwrap().category, "CRM & Sales");
    assert_eq!(
        entry("support-ticketing").unwrap().authentication,
        "api_key"
    );
    assert_eq!(entry("email-delivery").unwrap().category, "Communication");
    assert_eq!(entry("email-delivery").unwrap().authentication, "bearer");
    assert!(entry("unknown").is_none());
}

#[test]
fn has_the_actions_of_the_spec() {
    let actions = |id: &str| -> Vec<String> {
        let actions = &entry(id).unwrap().actions;
        actions
            .iter()
            .map(|a| format!("{} {} {}", a.slug, a.method, a.path))
            .collect()
    };
    assert_eq!(
        actions("support-ticketing"),
        [
            "list-tickets GET /api/v2/tickets",
            "get-ticket GET /api/v2/tickets/{ticketId}",
            "create-ticket POST /api/v2/tickets",
            "update-ticket PUT /api/v2/tickets/{ticketId}",
            "add-comment PUT /api/v2/tickets/{ticketId}",
            "list-users GET /api/v2/users",
            "get-user GET /api/v2/users/{userId}",
            "search GET /api/v2/search",
        ]
    );
    assert_eq!(
        actions("email-delivery"),
        [
            "send-email POST /mail/send",
            "list-contacts GET /marketing/contacts",
            "add-contacts PUT /marketing/contacts",
            "get-contact GET /marketing/contacts/{contactId}",
            "delete-contacts DELETE /marketing/contacts",
            "list-templates GET /templates",
        ]
    );
}

#[test]
fn every_entry_takes_a_base_url_and_bounds() {
    for entry in entries() {
        for field in [
            "base_url",
            "webhook_secret",
            "requests_per_second",
            "concurrency",
            "breaker_failures",
            "breaker_seconds",
        ] {
            assert!(entry.field(field).is_some(), "{} lacks {field}", entry.id);
        }
    }
}

#[test]
fn all_faults_of_a_file_are_reported() {
    let text = r"
id: My Entry
name: Mine
type: smtp
authentication: bearer
category: Mail
description: no full stop
base_url: ftp://{tenant}.example
auth: { basic: { username: '{user}', password: '{password}' } }
test: { method: LOOK, path: 'me/{user}' }
config:
  required: [nobody]
  properties:
    user: { type: string, description: A user. }
    password: { type: string, format: secret, description: A password. }
    size: { type: integer, default: many, description: A size. }
actions:
  - slug: Do
    name: Do
    description: Does.
    method: GET
    path: /things/{id}
    query: [colour]
    headers: { Host: x }
    request_schema: { type: object, required: [what], properties: { a: { type: string } } }
    response_schema: { type: 7 }
";
    insta::assert_snapshot!(read(text).unwrap_err().join("\n"), @"
    actions.Do: response_schema is no JSON Schema: 7 is not valid under any of the schemas listed \
    in the 'anyOf' keyword
    id: must be lower-case letters, digits and hyphens
    type: must be http: there is no other way to speak to a provider
    description: must be a sentence that ends with a full stop
    authentication: must be one of basic, api_key, by its auth
    config.password: has the format \"secret\"; there is base-url, http-url, dns-label, email, \
    token, header-name, header-value
    config.size: its default must be an integer, not a string
    config.required: names \"nobody\", which is no property
    base_url: must begin with https:// or http://
    auth, base_url or headers: names {tenant}, which is no field
    auth: no field that it names is writeOnly
    test.method: is none of HTTP that we send
    test.path: must begin with a slash
    test.path: names {user}, and nothing is put in its place
    actions.Do.slug: must be lower-case letters, digits and hyphens
    actions.Do.path: names id, which the request schema does not have
    actions.Do.path: names id, which the request schema does not require
    actions.Do.request_schema: lacks colour, which is put somewhere
    actions.Do.headers: Host is set by the connection itself and cannot be given
    actions.Do.request_schema: requires what, which it does not describe
    ");
}

#[test]
fn an_entry_that_can_do_nothing_is_refused() {
    let (_, text) = FILES.iter().find(|(name, _)| *name == "notion").unwrap();
    let (head, _) = text.split_once("\nactions:").unwrap();
    assert_eq!(
        read(head).unwrap_err(),
        ["actions: there must be one at least"]
    );
}

#[test]
fn a_file_that_is_no_entry_is_refused_with_a_position() {
    let wrong = read("id: x\nname: X\ncolour: red\n").unwrap_err();
    assert!(
        wrong[0].contains("colour") && wrong[0].contains("line 3"),
        "{wrong:?}"
    );
}
