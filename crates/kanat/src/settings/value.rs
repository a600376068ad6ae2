//! Single settings, from their text to what they mean. Errors say what a good one looks like.

use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use ipnet::IpNet;
use kanat_auth::{Sealer, key};
use kanat_database::Addresses;
use kanat_mail::{Sender, SmtpServer};
use kanat_model::Secret;
use kanat_net::egress::LocalTargets;

use super::MASK;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Database of configuration and messages.
#[derive(Clone)]
pub enum Database {
    /// SQLite files in the data folder.
    Files,
    /// One address or several, with commas between. They carry passwords.
    Postgres(Secret<String>),
}

pub fn database(text: Option<String>) -> Result<Database, String> {
    match text {
        None => Ok(Database::Files),
        Some(text) if text.starts_with("sqlite:") => Err(
            "SQLite is for the one process of `kanat up`, which keeps its files in \
                 --data-dir: leave --database-url out there, and give every other process a \
                 postgres:// address"
                .to_owned(),
        ),
        Some(text) => {
            Addresses::parse(&text).map_err(|error| error.to_string())?;
            Ok(Database::Postgres(Secret::new(text)))
        }
    }
}

impl Database {
    /// The addresses without their passwords.
    pub fn masked(&self) -> Option<String> {
        let Self::Postgres(text) = self else {
            return None;
        };
        let Ok(addresses) = Addresses::parse(text.expose()) else {
            return Some(MASK.to_owned());
        };
        Some(
            addresses
                .urls()
                .map(without_password)
                .collect::<Vec<_>>()
                .join(","),
        )
    }
}

fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return MASK.to_owned();
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let Some((user, _)) = authority.rsplit_once('@') else {
        // Without a user, a password can only stand among the parameters.
        return format!("{scheme}://{}", rest.split('?').next().unwrap_or_default());
    };
    let place = rest[user.len() + 1..].split('?').next().unwrap_or_default();
    let user = user
        .split_once(':')
        .map_or_else(|| user.to_owned(), |(name, _)| format!("{name}:{MASK}"));
    format!("{scheme}://{user}@{place}")
}

pub fn address(text: &str) -> Result<SocketAddr, String> {
    // A name such as `localhost` would have to be resolved, and could be several addresses.
    let local = text
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"));
    let text = local.as_deref().unwrap_or(text);
    text.parse().map_err(|_| {
        format!("{text:?} is not an address with a port, such as 127.0.0.1:8080 or [::1]:8080")
    })
}

/// An address, or a port alone, which is one of this machine alone.
pub fn local_address(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<u16>() {
        Ok(port) => Ok((Ipv4Addr::LOCALHOST, port).into()),
        Err(_) => address(text),
    }
}

/// An address of a service, without a slash at its end.
pub fn url(text: &str) -> Result<String, String> {
    let host = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"))
        .unwrap_or_default();
    if host.is_empty() || host.starts_with('/') || host.contains(['?', '#', ' ']) {
        return Err(format!(
            "{text:?} is not an address such as https://hooks.example.com"
        ));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// The address of a collector of traces. It is shown with the other settings, so it holds no
/// password.
pub fn collector(text: &str) -> Result<String, String> {
    if text.contains('@') {
        return Err("a collector's address has neither user nor password in it".to_owned());
    }
    url(text)
}

/// Returns whether an address of a service is on this machine, or hides what is sent to it.
pub fn is_private(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else {
        return true;
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// Parses the permission to reach local targets.
pub fn egress(text: &str) -> Result<LocalTargets, String> {
    match text {
        "guarded" => Ok(LocalTargets::Refused),
        "local" => Ok(LocalTargets::Allowed),
        _ => Err(format!("{text:?} is neither guarded nor local")),
    }
}

/// The word that `egress` reads.
pub fn egress_word(egress: LocalTargets) -> &'static str {
    match egress {
        LocalTargets::Refused => "guarded",
        LocalTargets::Allowed => "local",
    }
}

pub fn network(text: &str) -> Result<IpNet, String> {
    let single = text.parse::<std::net::IpAddr>().map(IpNet::from);
    text.parse()
        .or(single)
        .map_err(|_| format!("{text:?} is not a network such as 10.0.0.0/8"))
}

/// Smallest bound of unfinished messages, in bytes.
const MIN_BACKLOG_BYTES: u64 = 64 << 10;

/// Checks the bound of unfinished messages, in bytes.
pub fn backlog_bytes(bytes: u64) -> Result<u64, String> {
    if bytes >= MIN_BACKLOG_BYTES {
        Ok(bytes)
    } else {
        Err(format!("{bytes} bytes are fewer than {MIN_BACKLOG_BYTES}"))
    }
}

/// Parses the time that a message may wait for its first attempt.
pub fn backlog_age(text: &str) -> Result<Duration, String> {
    match kanat_flow::duration::parse(text) {
        Ok(age) if age < Duration::from_secs(1) => Err(format!("{text} is shorter than 1s")),
        parsed => parsed,
    }
}

/// Checks a number. `is` follows it in the error, with its unit.
pub fn within<N: PartialOrd + Display>(
    number: N,
    range: RangeInclusive<N>,
    is: &str,
) -> Result<N, String> {
    if range.contains(&number) {
        return Ok(number);
    }
    let (least, most) = range.into_inner();
    Err(format!("{number}{is} not between {least} and {most}"))
}

/// Checks a number of seconds.
pub fn seconds(value: u64, range: RangeInclusive<u64>) -> Result<Duration, String> {
    within(value, range, " s is").map(Duration::from_secs)
}

/// Returns the retention of so many days; none for 0, which keeps everything.
pub fn retention(days: u32) -> Option<Duration> {
    (days > 0).then(|| DAY.saturating_mul(days))
}

/// A filter of the log that lets something through on purpose.
pub fn log_filter(text: &str) -> Result<String, String> {
    kanat_telemetry::check_filter(text)
        .map(|()| text.to_owned())
        .map_err(|error| error.to_string())
}

/// Origin of pages in browsers, as browsers send it: a scheme and a host, in lower case, and
/// nothing after them; or `*`.
pub fn origin(text: &str) -> Result<String, String> {
    if text == "*" {
        return Ok(text.to_owned());
    }
    url(text)
        .ok()
        .filter(|url| !url.contains('@') && url.matches('/').count() == 2)
        .map(|url| url.to_lowercase())
        .ok_or_else(|| format!("{text:?} is not an origin such as https://app.example.com, or *"))
}

/// A master key that can seal.
pub fn master_key(text: String) -> Result<Secret<String>, String> {
    Sealer::from_text(&text).map_err(|error| error.to_string())?;
    Ok(Secret::new(text))
}

/// An API key of the operator's choice.
pub fn api_key(text: String) -> Result<Secret<String>, String> {
    key::adopt(&text)
        .map(|key| key.text)
        .map_err(|error| error.to_string())
}

/// A join token that cannot be guessed in a life's time.
pub fn join_token(text: String) -> Result<Secret<String>, String> {
    const SHORTEST: usize = 16;
    if text.len() < SHORTEST {
        return Err(format!("it is shorter than {SHORTEST} characters"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it holds other characters than letters, digits and signs of ASCII".to_owned());
    }
    Ok(Secret::new(text))
}

/// The URL of a mail server, which may have a password.
pub fn smtp_url(text: String) -> Result<Secret<String>, String> {
    match SmtpServer::parse(&text) {
        Ok(_) => Ok(Secret::new(text)),
        Err(error) => Err(error.to_string()),
    }
}

/// The address that mail comes from.
pub fn sender(text: &str) -> Result<Sender, String> {
    text.parse()
        .map_err(|error: kanat_mail::InvalidSender| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_a_database_is_not_shown() {
        let shown = |text: &str| database(Some(text.to_owned())).unwrap().masked().unwrap();
        assert_eq!(
            shown("postgres://kanat:hunter2@db:5432/kanat?sslmode=require"),
            "postgres://kanat:********@db:5432/kanat"
        );
        assert_eq!(
            shown("postgres://kanat:p@ss@db/kanat"),
            "postgres://kanat:********@db/kanat"
        );
        assert_eq!(
            shown("postgresql://db/kanat?password=hunter2"),
            "postgresql://db/kanat"
        );
        assert_eq!(shown("postgres://kanat@db"), "postgres://kanat@db");
        assert_eq!(
            shown("postgres://kanat:hunter2@a/kanat,postgres://kanat:hunter2@b/kanat"),
            "postgres://kanat:********@a/kanat,postgres://kanat:********@b/kanat"
        );
    }

    #[test]
    fn another_kind_of_database_is_refused_without_repeating_its_password() {
        let problem = |text: &str| database(Some(text.to_owned())).err().unwrap();
        assert!(problem("sqlite:kanat.db").contains("kanat up"));
        for text in [
            "mysql://root:hunter2@db/kanat",
            "postgres://kanat:hunter2@a/kanat,mysql://root:hunter2@db/kanat",
        ] {
            let problem = problem(text);
            assert!(
                problem.contains("mysql") && !problem.contains("hunter2"),
                "{problem}"
            );
        }
    }

    #[test]
    fn a_port_alone_is_one_of_this_machine_alone() {
        assert_eq!(local_address("9090").unwrap().to_string(), "127.0.0.1:9090");
        assert_eq!(
            local_address("0.0.0.0:9090").unwrap().to_string(),
            "0.0.0.0:9090"
        );
        assert!(local_address("90900").is_err());
    }

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        assert_eq!(
            origin("https://App.example.com:8443/").unwrap(),
            "https://app.example.com:8443"
        );
        assert_eq!(origin("*").unwrap(), "*");
        for wrong in [
            "app.example.com",
            "https://app.example.com/page",
            "https://user@app.example.com",
            "null",
        ] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_that_leave_the_machine_in_clear_text_are_recognised() {
        for private in [
            "https://control.example.com",
            "http://127.0.0.1:8080",
            "http://[::1]:8080/",
            "http://localhost",
        ] {
            assert!(is_private(private), "{private}");
        }
        for open in [
            "http://10.0.0.7:8080",
            "http://control.example.com",
            "http://[2001:db8::1]:80",
        ] {
            assert!(!is_private(open), "{open}");
        }
    }
}
