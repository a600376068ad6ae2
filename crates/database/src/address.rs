//! Addresses of PostgreSQL servers: one, or a list with commas between. Nothing here connects.

use std::fmt;
use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

/// Example of an address, for error texts.
const EXAMPLE: &str = "postgres://user:password@host/database";

/// Addresses of the servers that one database may be found on, in the order of the list. There is
/// at least one.
///
/// They may hold passwords, so `Debug` shows hosts alone.
#[derive(Clone)]
pub struct Addresses(Vec<Address>);

#[derive(Clone)]
struct Address {
    url: String,
    options: PgConnectOptions,
}

/// An entry of a list of addresses that cannot be used. Its text repeats neither user nor password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{entry} {problem}", entry = entry(self))]
pub struct AddressError {
    /// Place in the list, from 1.
    place: usize,
    /// Number of entries in the list.
    count: usize,
    /// Scheme of the entry, when it has one.
    scheme: Option<String>,
    problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("is empty")]
    Empty,
    #[error("is not an address such as {EXAMPLE}")]
    NoAddress,
    #[error(
        "names several hosts: give each server a whole address, as in \
         postgres://a/kanat,postgres://b/kanat"
    )]
    Hosts,
}

impl Addresses {
    /// Reads one address or several with commas between. A comma that no address follows is part of
    /// the address before it, as in a password.
    ///
    /// # Errors
    /// An entry is empty or no `postgres://` address of one host. The error names its place.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let entries = entries(text);
        let count = entries.len();
        let addresses = entries.into_iter().enumerate().map(|(index, entry)| {
            Address::parse(entry).map_err(|problem| {
                let scheme = scheme(entry).map(str::to_owned);
                AddressError {
                    place: index + 1,
                    count,
                    scheme,
                    problem,
                }
            })
        });
        addresses.collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether a text begins as an address of PostgreSQL does.
    pub fn is_one(text: &str) -> bool {
        matches!(
            scheme(text.trim_start_matches([',', ' '])),
            Some("postgres" | "postgresql")
        )
    }

    /// Returns the addresses as they were given, passwords included.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|address| address.url.as_str())
    }

    /// Returns what the driver needs to connect to each server.
    pub fn options(&self) -> impl Iterator<Item = &PgConnectOptions> {
        self.0.iter().map(|address| &address.options)
    }
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.options().map(server_name))
            .finish()
    }
}

impl Address {
    fn parse(entry: &str) -> Result<Self, Problem> {
        if entry.is_empty() {
            return Err(Problem::Empty);
        }
        if !Addresses::is_one(entry) {
            return Err(Problem::NoAddress);
        }
        let options = PgConnectOptions::from_str(entry).map_err(|_| Problem::NoAddress)?;
        if options.get_host().contains(',') {
            return Err(Problem::Hosts);
        }
        Ok(Self {
            url: entry.to_owned(),
            options,
        })
    }
}

/// Returns host and port, for logs and errors.
pub(crate) fn server_name(options: &PgConnectOptions) -> String {
    format!("{}:{}", options.get_host(), options.get_port())
}

/// Splits a list at the commas that another address, another comma or the end follows.
fn entries(text: &str) -> Vec<&str> {
    let mut entries = Vec::new();
    let mut begin = 0;
    for (at, _) in text.match_indices(',') {
        let rest = text[at + 1..].trim_start();
        if rest.is_empty() || rest.starts_with(',') || scheme(rest).is_some() {
            entries.push(text[begin..at].trim());
            begin = at + 1;
        }
    }
    entries.push(text[begin..].trim());
    entries
}

/// Returns the scheme that a text begins with.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let is_scheme = !scheme.is_empty()
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some(scheme)
}

fn entry(error: &AddressError) -> String {
    let AddressError {
        place,
        count,
        scheme,
        ..
    } = error;
    match (scheme, count) {
        (None, 1) => "it".to_owned(),
        (Some(scheme), 1) => format!("\"{scheme}://...\""),
        (None, _) => format!("address {place} of {count}"),
        (Some(scheme), _) => format!("address {place} of {count}, \"{scheme}://...\","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(text: &str) -> Vec<String> {
        Addresses::parse(text)
            .unwrap()
            .urls()
            .map(str::to_owned)
            .collect()
    }

    fn problem(text: &str) -> String {
        Addresses::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_list_has_a_whole_address_for_each_server() {
        assert_eq!(urls("postgres://a/kanat"), ["postgres://a/kanat"]);
        assert_eq!(
            urls("postgres://a/kanat,postgresql://b:5433/kanat"),
            ["postgres://a/kanat", "postgresql://b:5433/kanat"]
        );
        assert_eq!(
            urls(" postgres://a/kanat , postgres://b/kanat "),
            ["postgres://a/kanat", "postgres://b/kanat"]
        );
    }

    #[test]
    fn a_comma_in_a_password_ends_no_address() {
        assert_eq!(
            urls("postgres://me:hunter,2@a/kanat"),
            ["postgres://me:hunter,2@a/kanat"]
        );
        let list = "postgres://me:hunter,2@a/kanat,postgres://me:hunter,2@b/kanat";
        assert_eq!(
            urls(list),
            [
                "postgres://me:hunter,2@a/kanat",
                "postgres://me:hunter,2@b/kanat"
            ]
        );
    }

    #[test]
    fn a_bad_entry_is_named_by_its_place_and_without_its_password() {
        let good = "postgres://me:hunter2@a/kanat";
        assert_eq!(
            problem(&format!("{good},mysql://me:hunter2@b/x")),
            format!("address 2 of 2, \"mysql://...\", is not an address such as {EXAMPLE}")
        );
        assert_eq!(
            problem(&format!("{good},,{good}")),
            "address 2 of 3 is empty"
        );
        assert_eq!(problem(&format!("{good},")), "address 2 of 2 is empty");
        assert!(
            problem("postgres://me:hunter2@a:no_port/x")
                .starts_with("\"postgres://...\" is not an address")
        );
        assert!(problem("postgres://a,b/kanat").contains("names several hosts"));
        for text in [
            format!("{good},postgres://me:hunter2@a:no_port/x"),
            "postgres://me:hunter2@a,b/kanat".to_owned(),
        ] {
            assert!(!problem(&text).contains("hunter2"), "{}", problem(&text));
        }
        assert!(!format!("{:?}", Addresses::parse(good).unwrap()).contains("hunter2"));
    }
}
