//! The page docs/HTTP_FIELDS.md: each call over HTTP with its fields. It is made from the
//! descriptors, and compared with them in every other run.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use prost_reflect::{FileDescriptor, ServiceDescriptor};

use super::*;
use crate::field::inline_json;

const INTRODUCTION: &str = include_str!("tests/introduction.txt");

/// End of the answer of a list.
const IN_PAGES: &str = ", in pages";

#[test]
fn the_page_has_every_call_with_its_fields() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/HTTP_FIELDS.md");
    let commented = DescriptorPool::decode(kanat_proto::FILE_DESCRIPTOR_SET).unwrap();
    let expected = page(&commented);
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(&path, expected).unwrap();
    } else {
        let page = std::fs::read_to_string(&path).unwrap();
        assert!(
            page == expected,
            "run `UPDATE_PAGES=1 cargo test -p kanat-gateway`"
        );
    }
}

fn page(pool: &DescriptorPool) -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut records = BTreeMap::new();
    let mut services: Vec<_> = pool.services().collect();
    services.retain(|service| service.package_name() == "kanat.v1");
    services.sort_by_key(|service| service.name().to_owned());
    for service in &services {
        let title = service.name();
        let about = about_service(service);
        let _ = write!(page, "\n## {title}\n\n{about}\n");
        for method in service.methods() {
            page += &call(pool, &method, &mut records);
        }
    }
    page += "\n## Records\n";
    for (name, record) in &records {
        let _ = write!(page, "\n### {name}\n\n");
        let about = comment(&record.parent_file(), record.path());
        if !about.is_empty() {
            let _ = write!(page, "{about}\n\n");
        }
        page += &table(record.fields().filter(|field| !is_pagination(field)));
    }
    page
}

fn about_service(service: &ServiceDescriptor) -> String {
    comment(&service.parent_file(), service.path())
}

/// Returns the part about one method, and adds the records that it names.
fn call(
    pool: &DescriptorPool,
    method: &MethodDescriptor,
    records: &mut BTreeMap<String, MessageDescriptor>,
) -> String {
    let bindings = bindings(pool, method).unwrap();
    let Some(first) = bindings.first() else {
        return String::new();
    };
    let rest = rest(pool, method).unwrap();
    let forms: Vec<_> = bindings
        .iter()
        .map(|binding| format!("`{} {}`", binding.method, binding.path))
        .collect();
    let about = comment(&method.parent_file(), method.path());
    let mut out = format!(
        "\n### {}\n\n{}\n\n{about}\n",
        method.name(),
        forms.join(", ")
    );
    let input = method.input();
    let in_path = |field: &FieldDescriptor| first.path.contains(&format!("{{{}}}", field.name()));
    let answer = answer(method, &rest, records);
    let is_listed = |field: &FieldDescriptor| {
        let pages = answer.ends_with(IN_PAGES) && ["limit", "offset"].contains(&field.name());
        !pages && !["clear", "pagination"].contains(&field.name())
    };
    let given: Vec<_> = input
        .fields()
        .filter(|field| !in_path(field) && is_listed(field))
        .collect();
    if !given.is_empty() {
        let what = if first.takes_body { "Body" } else { "Query" };
        let _ = write!(out, "\n{what}:\n\n");
        out += &table(given.iter().cloned());
    }
    if let Some(upload) = &rest.upload {
        let name = upload.json_name();
        let _ = write!(
            out,
            "\n`{name}` may also come as a file: as the body itself, or as the part `file` of \
             a form.\n"
        );
    }
    for field in &given {
        collect(field, records);
    }
    let _ = write!(out, "\nAnswer: {answer}.\n");
    out
}

/// Returns the answer of a method in words.
fn answer(
    method: &MethodDescriptor,
    rest: &Rest,
    records: &mut BTreeMap<String, MessageDescriptor>,
) -> String {
    let status = rest.status.as_u16();
    let output = method.output();
    if rest.status == StatusCode::NO_CONTENT {
        return format!("{status}, without a body");
    }
    if rest.download.is_some() {
        return format!("{status}, a file ({})", rest.content_type);
    }
    if method.is_server_streaming() {
        let data = rest.event_data.as_ref().map(|field| {
            collect(field, records);
            type_of(field)
        });
        let data = data.unwrap_or_default();
        return format!("{status}, a live stream of server-sent events with the data {data}");
    }
    if let Some(body) = &rest.response_body {
        collect(body, records);
        return format!("{status}, {}", type_of(body));
    }
    let mut members = output.fields();
    let list = members.find(|field| field.name() == "data" && field.is_list());
    match list {
        Some(list) if output.fields().all(|field| is_of_list(&field, rest)) => {
            collect(&list, records);
            format!("{status}, {}{IN_PAGES}", type_of(&list))
        }
        Some(_) | None => {
            add(&output, records);
            format!("{status}, {}", link(&output))
        }
    }
}

/// Returns whether the field is of every list, or the text in whose form the list may come.
fn is_of_list(field: &FieldDescriptor, rest: &Rest) -> bool {
    field.name() == "data" || is_pagination(field) || rest.text.as_ref() == Some(field)
}

fn is_pagination(field: &FieldDescriptor) -> bool {
    field.name() == "pagination"
}

/// Adds the record that a field holds, with those that it holds itself.
fn collect(field: &FieldDescriptor, records: &mut BTreeMap<String, MessageDescriptor>) {
    if let Kind::Message(message) = field.kind() {
        add(&message, records);
    }
}

fn add(message: &MessageDescriptor, records: &mut BTreeMap<String, MessageDescriptor>) {
    if inline_json(message).is_some() {
        return;
    }
    let name = message.name().to_owned();
    let is_new = message.is_map_entry() || records.insert(name, message.clone()).is_none();
    if is_new {
        for field in message.fields().filter(|field| !is_pagination(field)) {
            collect(&field, records);
        }
    }
}

fn table(fields: impl Iterator<Item = FieldDescriptor>) -> String {
    let mut table = "| field | type | meaning |\n| --- | --- | --- |\n".to_owned();
    for field in fields {
        let message = field.parent_message();
        let about = comment(&message.parent_file(), field.path()).replace('|', "\\|");
        let cells = format!("| `{}` | {} | {about}", field.json_name(), type_of(&field));
        let _ = writeln!(table, "{} |", cells.trim_end());
    }
    table
}

fn type_of(field: &FieldDescriptor) -> String {
    if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
        return format!("object of {}", one(&entry.map_entry_value_field().kind()));
    }
    let one = one(&field.kind());
    let or_null = match may_be_null(field) {
        true => " or null",
        false => "",
    };
    match field.is_list() {
        true => format!("list of {one}"),
        false => format!("{one}{or_null}"),
    }
}

fn may_be_null(field: &FieldDescriptor) -> bool {
    let is_marked = |name: &str| {
        let mark = field.parent_pool().get_extension_by_name(name);
        let options = field.options();
        mark.is_some_and(|mark| options.get_extension(&mark).as_bool().unwrap_or_default())
    };
    is_marked("kanat.v1.null_clears") || is_marked("kanat.v1.null_when_absent")
}

fn one(kind: &Kind) -> String {
    match kind {
        Kind::String => "text".to_owned(),
        Kind::Bytes => "text in base64".to_owned(),
        Kind::Bool => "true or false".to_owned(),
        Kind::Double | Kind::Float => "number with a fraction".to_owned(),
        Kind::Message(message) if inline_json(message).is_some() => "JSON".to_owned(),
        Kind::Message(message) => link(message),
        Kind::Enum(_)
        | Kind::Int32
        | Kind::Int64
        | Kind::Uint32
        | Kind::Uint64
        | Kind::Sint32
        | Kind::Sint64
        | Kind::Fixed32
        | Kind::Fixed64
        | Kind::Sfixed32
        | Kind::Sfixed64 => "number".to_owned(),
    }
}

fn link(message: &MessageDescriptor) -> String {
    let name = message.name();
    format!("[{name}](#{})", name.to_lowercase())
}

/// Returns the comment before the part of a file at `path`, on one line.
fn comment(file: &FileDescriptor, path: &[i32]) -> String {
    let info = file.file_descriptor_proto().source_code_info.as_ref();
    let mut locations = info.iter().flat_map(|info| &info.location);
    let location = locations.find(|location| location.path == path);
    let comment = location.map(|location| location.leading_comments());
    let words = comment.unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}
