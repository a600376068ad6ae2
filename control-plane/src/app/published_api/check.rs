//! Checks of the fields of a published API: words, durations, addresses. Errors name the field of
//! the request.

use std::time::Duration;

use kanat_catalog::check::header_name_fault;
use kanat_flow::duration;
use kanat_model::published_api::{
    Auth, Cors, Method, OAuth2, OnTimeout, Path, Segment, Validation,
};
use kanat_model::{Error, Result};
use url::Url;

const MIN_DEADLINE: Duration = Duration::from_millis(100);
const MAX_DEADLINE: Duration = Duration::from_secs(5 * 60);

/// Most entries of a list of scopes, origins or headers.
const MAX_ENTRIES: usize = 100;
/// Browsers take no longer one.
const MAX_CORS_AGE_SECONDS: u32 = 86_400;

/// A path, and what is the same for all paths that match the same requests.
pub fn path(text: &str) -> Result<(String, String)> {
    let path = Path::parse(text).map_err(|why| Error::field("path", why))?;
    if let Some(why) = foreign_parameter(&path) {
        return Err(Error::field("path", why));
    }
    Ok((path.as_str().to_owned(), path.shape()))
}

/// Returns a sentence on a segment that is a parameter in other products, and a literal here.
fn foreign_parameter(path: &Path) -> Option<String> {
    path.segments().find_map(|segment| match segment {
        Segment::Literal("*") => Some(
            "has the segment \"*\": a parameter is written as {name}, and takes one segment"
                .to_owned(),
        ),
        Segment::Literal(literal) => literal.strip_prefix(':').map(|name| {
            let name = Some(name).filter(|name| !name.is_empty()).unwrap_or("name");
            format!("has the segment {literal:?}: a parameter is written as {{{name}}}")
        }),
        Segment::Parameter(_) => None,
    })
}

pub fn method(text: &str) -> Result<Method> {
    Method::parse(&text.to_ascii_uppercase()).ok_or_else(|| {
        Error::field(
            "method",
            format!("{text:?} is no method: GET, POST, PUT, PATCH or DELETE"),
        )
    })
}

pub fn auth(text: &str) -> Result<Auth> {
    Auth::parse(text).ok_or_else(|| {
        Error::field(
            "authType",
            format!("{text:?} is none of api_key, oauth2 and none"),
        )
    })
}

pub fn validation(text: &str) -> Result<Validation> {
    Validation::parse(text).ok_or_else(|| {
        Error::field(
            "validationMode",
            format!("{text:?} is neither strict nor lenient"),
        )
    })
}

pub fn on_timeout(text: &str) -> Result<OnTimeout> {
    OnTimeout::parse(text).ok_or_else(|| {
        Error::field(
            "onTimeout",
            format!("{text:?} is neither continue nor discard"),
        )
    })
}

/// Milliseconds.
pub fn deadline(text: &str) -> Result<u64> {
    let deadline = duration::parse(text).map_err(|why| Error::field("deadline", why))?;
    if !(MIN_DEADLINE..=MAX_DEADLINE).contains(&deadline) {
        return Err(Error::field(
            "deadline",
            format!("{text:?} is not from 100ms to 5m"),
        ));
    }
    Ok(u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX))
}

pub fn takes_tokens(auth: Auth) -> bool {
    match auth {
        Auth::OAuth2 => true,
        Auth::ApiKey | Auth::None => false,
    }
}

/// Checks the issuer of the tokens that an API takes; given where tokens open it, and nowhere else.
pub fn oauth2(auth: Auth, given: Option<OAuth2>) -> Result<Option<OAuth2>> {
    let given = match (takes_tokens(auth), given) {
        (true, Some(given)) => given,
        (true, None) => return Err(Error::field("oauth2", "is required with authType oauth2")),
        (false, Some(_)) => {
            return Err(Error::field(
                "oauth2",
                format!("cannot stand with authType {}", auth.as_str()),
            ));
        }
        (false, None) => return Ok(None),
    };
    address("oauth2.issuer", &given.issuer)?;
    if let Some(jwks_url) = &given.jwks_url {
        address("oauth2.jwksUrl", jwks_url)?;
    }
    if given.audience.trim().is_empty()
        || given.audience.len() > 500
        || given.audience.contains(char::is_control)
    {
        return Err(Error::field(
            "oauth2.audience",
            "is required: what tokens for this API say in aud",
        ));
    }
    count("oauth2.scopes", &given.scopes)?;
    for (at, scope) in given.scopes.iter().enumerate() {
        let plain = scope
            .bytes()
            .all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\');
        if scope.is_empty() || !plain {
            return Err(Error::field(
                format!("oauth2.scopes[{at}]"),
                format!("{scope:?} is no scope"),
            ));
        }
    }
    Ok(Some(given))
}

/// None without origins: then nobody of another origin may call.
pub fn cors(given: Cors) -> Result<Option<Cors>> {
    if given.origins.is_empty() {
        return Ok(None);
    }
    let any = given.origins.iter().any(|origin| origin == "*");
    if any && given.origins.len() > 1 {
        return Err(Error::field(
            "cors.origins",
            "has \"*\" beside others: it stands alone",
        ));
    }
    if any && given.credentials {
        return Err(Error::field(
            "cors.credentials",
            "cannot stand with the origin \"*\": browsers refuse it",
        ));
    }
    count("cors.origins", &given.origins)?;
    for (at, origin) in given
        .origins
        .iter()
        .enumerate()
        .filter(|(_, origin)| *origin != "*")
    {
        let is_origin = Url::parse(origin).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.origin().ascii_serialization() == *origin
        });
        if !is_origin {
            let message = format!("{origin:?} is no origin such as https://shop.example");
            return Err(Error::field(format!("cors.origins[{at}]"), message));
        }
    }
    for (field, names) in [
        ("cors.headers", &given.headers),
        ("cors.exposedHeaders", &given.exposed_headers),
    ] {
        count(field, names)?;
        for (at, name) in names.iter().enumerate() {
            if let Some(fault) = header_name_fault(name) {
                return Err(Error::field(
                    format!("{field}[{at}]"),
                    format!("{name:?} {fault}"),
                ));
            }
        }
    }
    if given.max_age_seconds > MAX_CORS_AGE_SECONDS {
        return Err(Error::field(
            "cors.maxAgeSeconds",
            format!("is more than {MAX_CORS_AGE_SECONDS}"),
        ));
    }
    Ok(Some(given))
}

fn count(field: &str, entries: &[String]) -> Result<()> {
    if entries.len() > MAX_ENTRIES {
        return Err(Error::field(
            field,
            format!("has more than {MAX_ENTRIES} entries"),
        ));
    }
    Ok(())
}

fn address(field: &str, text: &str) -> Result<()> {
    let plain = Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
    });
    if !plain || text.len() > 2_000 {
        return Err(Error::field(
            field,
            format!("{text:?} is no http or https address"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.unwrap_err().details[0].field.clone()
    }

    #[test]
    fn a_parameter_as_others_write_it_is_refused() {
        for (text, shown) in [
            ("things/:id", "{id}"),
            ("things/*", "{name}"),
            ("things/:", "{name}"),
        ] {
            let error = path(text).unwrap_err();
            assert_eq!(error.details[0].field, "path");
            assert!(error.message.contains(shown), "{text}: {}", error.message);
        }
        assert!(path("things/{id}/a:b").is_ok());
    }

    #[test]
    fn tokens_need_an_issuer_and_an_audience() {
        let given = OAuth2 {
            issuer: "https://id.example".to_owned(),
            jwks_url: Some("https://id.example/keys".to_owned()),
            audience: "orders".to_owned(),
            scopes: vec!["orders:write".to_owned()],
        };
        assert_eq!(
            oauth2(Auth::OAuth2, Some(given.clone())).unwrap(),
            Some(given.clone())
        );
        assert_eq!(oauth2(Auth::None, None).unwrap(), None);
        assert_eq!(field(oauth2(Auth::OAuth2, None)), "oauth2");
        assert_eq!(field(oauth2(Auth::ApiKey, Some(given.clone()))), "oauth2");
        let wrong = |change: fn(&mut OAuth2)| {
            let mut wrong = given.clone();
            change(&mut wrong);
            field(oauth2(Auth::OAuth2, Some(wrong)))
        };
        assert_eq!(
            wrong(|it| it.issuer = "id.example".to_owned()),
            "oauth2.issuer"
        );
        assert_eq!(
            wrong(|it| it.jwks_url = Some("file:///etc".to_owned())),
            "oauth2.jwksUrl"
        );
        assert_eq!(wrong(|it| it.audience = String::new()), "oauth2.audience");
        assert_eq!(
            wrong(|it| it.scopes.push("a b".to_owned())),
            "oauth2.scopes[1]"
        );
    }

    #[test]
    fn origins_are_as_browsers_send_them() {
        let of = |origins: &[&str]| Cors {
            origins: origins.iter().map(|origin| (*origin).to_owned()).collect(),
            ..Cors::default()
        };
        assert!(
            cors(of(&["https://shop.example", "http://localhost:3000"]))
                .unwrap()
                .is_some()
        );
        assert!(cors(of(&["*"])).unwrap().is_some());
        assert_eq!(cors(of(&[])).unwrap(), None);
        assert_eq!(
            field(cors(of(&["*", "https://shop.example"]))),
            "cors.origins"
        );
        for wrong in [
            "https://shop.example/",
            "shop.example",
            "https://Shop.example",
            "null",
        ] {
            assert_eq!(field(cors(of(&[wrong]))), "cors.origins[0]", "{wrong}");
        }
        assert_eq!(
            field(cors(Cors {
                credentials: true,
                ..of(&["*"])
            })),
            "cors.credentials"
        );
        assert_eq!(
            field(cors(Cors {
                headers: vec!["a b".to_owned()],
                ..of(&["*"])
            })),
            "cors.headers[0]"
        );
        assert_eq!(
            field(cors(Cors {
                max_age_seconds: 86_401,
                ..of(&["*"])
            })),
            "cors.maxAgeSeconds"
        );
    }

    #[test]
    fn a_deadline_is_neither_too_short_nor_too_long() {
        assert_eq!(deadline("30s"), Ok(30_000));
        assert_eq!(deadline("100ms"), Ok(100));
        for wrong in ["99ms", "5m1s", "0s", "30", ""] {
            assert_eq!(field(deadline(wrong)), "deadline", "{wrong}");
        }
        assert_eq!(method("patch"), Ok(Method::Patch));
        assert_eq!(field(method("HEAD")), "method");
    }
}
