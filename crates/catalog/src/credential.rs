//! Names of headers and members that suggest a credential.

/// Returns whether a header of this name may carry a credential. Its value is masked, and cut out
/// of every text that is shown. So a name that does not suggest a credential is not among them, or
/// `X-Region: Berlin` would take the word out of every trace.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.as_bytes();
    (0..name.len()).any(|at| begins_with_a_word(&name[at..]))
}

/// Words that begin as a word of credentials does, and are none. `authorization` is one.
const OTHER_WORDS: [&str; 3] = ["author", "keyboard", "keyword"];

/// Returns whether a name goes on with a word of credentials. It is asked for each letter of each
/// header that comes in, and nearly all letters begin none of the words.
fn begins_with_a_word(rest: &[u8]) -> bool {
    let words: &[&str] = match rest[0].to_ascii_lowercase() {
        b'a' => &["auth"],
        b'c' => &["cookie", "credential"],
        b'k' => &["key"],
        b'p' => &["passphrase", "password", "passwd"],
        b's' => &["secret", "session", "signature"],
        b't' => &["token"],
        _ => return false,
    };
    let begins_with = |word: &&str| {
        rest.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    };
    words.iter().any(begins_with) && !is_other(begins_with)
}

/// Returns whether a name goes on with a word that only begins as one of credentials does.
fn is_other(begins_with: impl Fn(&&str) -> bool) -> bool {
    const CREDENTIALS: [&str; 3] = ["authoris", "authority", "authoriz"];
    OTHER_WORDS.iter().any(&begins_with) && !CREDENTIALS.iter().any(&begins_with)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_word_of_credentials_is_secret_wherever_the_word_stands() {
        for name in [
            "Authorization",
            "X-Gitlab-Token",
            "x-VAULT-token",
            "Set-Cookie",
            "KEY",
            "db_passwd",
            "Stripe-Signature",
            "author_key",
            "Authority",
        ] {
            assert!(is_secret_header(name), "{name}");
        }
        for name in [
            "",
            "Host",
            "X-Region",
            "Content-Type",
            "ke-y",
            "tok",
            "Accept-Encoding",
            "X-Forwarded-For",
            "Author",
            "co_authors",
            "authorId",
            "keywords",
            "Keyboard-Layout",
        ] {
            assert!(!is_secret_header(name), "{name}");
        }
    }
}
