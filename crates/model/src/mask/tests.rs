//! Spellings of secrets that a mask hides, and texts that it leaves.

use super::*;

fn mask(secrets: &[&str]) -> Mask {
    let secrets: Vec<String> = secrets.iter().map(|&secret| secret.to_owned()).collect();
    Mask::new(&secrets)
}

#[test]
fn hides_a_secret_in_every_spelling() {
    let secrets = mask(&[
        "p@ss \"word\"",
        "",
        "p@ss",
        "q83/v+'<é~x-y",
        "𝄞-clef\n",
        "a%2Fb%27c",
    ]);
    for text in [
        r#"p@ss "word""#,
        "k=p%40ss%20%22word%22",
        "k=p%40ss+%22word%22",
        "k=p%40ss%20%22wor%64%22",
        r#"{"a":"p@ss \"word\""}"#,
        "p@ss",
        // As URLs are written here, and as their parser writes what is in them.
        "k=q83%2Fv%2B%27%3C%C3%A9~x-y",
        "k=q83/v+%27%3C%C3%A9~x-y",
        // As others write them.
        "k=q83%2fv%2b%27%3c%c3%a9%7ex%2dy",
        r"q83\/v+'<\u00e9~x-y",
        r"q83/v+\u0027\u003C\u00e9~x-y",
        r"\ud834\udd1e-clef\n",
        r"\uD834\uDD1E-clef\u000a",
        // With escapes of its own.
        "a%2Fb%27c",
        "a/b'c",
        "a%2fb'c",
        "a%252Fb%2527c",
    ] {
        let masked = secrets.apply(text);
        let left = ["ss", "q83", "x-y", "clef", "27c", "'c"];
        assert!(
            masked.contains(MASK) && !left.iter().any(|part| masked.contains(part)),
            "{text} -> {masked}"
        );
    }
    for text in [
        "nothing here",
        "100%",
        "a%zz+b",
        r"C:\path\u12",
        r"\ud834 \",
    ] {
        assert!(matches!(secrets.apply(text), Cow::Borrowed(shown) if shown == text));
    }
}

#[test]
fn what_stands_around_a_secret_stays() {
    let secrets = mask(&["p/w d"]);
    assert_eq!(
        secrets.apply(r#"{"a\n":"ü\/p\/w d\"","b":"p/w d"}"#),
        r#"{"a\n":"ü\/********\"","b":"********"}"#
    );
    assert_eq!(
        secrets.apply("/%C3%BC?a=%20p%2Fw+d%20&b=p%2fw%20d+c"),
        "/%C3%BC?a=%20********%20&b=********+c"
    );
}

#[test]
fn texts_that_overlap_are_hidden_as_one() {
    let token = "s3cret-t0ken";
    let chosen = "PADs";
    assert_eq!(
        mask(&[token, chosen]).apply("a PADs3cret-t0ken z"),
        "a ******** z"
    );
    assert_eq!(
        mask(&["abab"]).apply("xabababy ababab abab"),
        "x********y ******** ********"
    );
    assert_eq!(mask(&["aabaa"]).apply("aabaaabaabaa."), "********.");
    assert_eq!(mask(&["abcd"]).apply("abcdabcd"), "****************");
    assert_eq!(
        mask(&["token", "s3cret-token-1"]).apply("s3cret-token-1"),
        "********"
    );
}

#[test]
fn a_beginning_ends_where_it_would_without_a_mask() {
    let secrets = mask(&["a-long-s3cret"]);
    let text = "a-long-s3cret, a-long-s3cret and a-long-s3cret";
    for (end, shown) in [
        (0, ""),
        (1, "********"),
        (13, "********"),
        (15, "********, "),
        (20, "********, ********"),
        (33, "********, ******** and "),
        (text.len(), "********, ******** and ********"),
    ] {
        assert_eq!(secrets.apply_to_beginning(text, end), shown, "{end}");
    }
    assert_eq!(secrets.apply_to_beginning("aü", 2), "a");
    assert!(secrets.reach() >= "a%2Dlong%2Ds3cret".len());
    assert_eq!(Mask::none().reach(), 0);
}

#[test]
fn a_secret_that_escapes_parts_of_characters_breaks_none() {
    let secrets = mask(&["abc%C3", "%A9xyz"]);
    assert_eq!(
        secrets.apply("abcé, éxyz, abc%c3%a9"),
        "********, ********, ********%a9"
    );
}
