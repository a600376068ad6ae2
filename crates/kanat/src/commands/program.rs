//! `kanat version` alone: the version and the build of this program.

use anyhow::Result;

use crate::output::{Format, Json};

/// Prints the program's version and build.
pub fn print(format: Format) -> Result<()> {
    let about = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": option_env!("KANAT_BUILD_COMMIT"),
        "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
        "platform": format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
    });
    format.print(&about.into(), text)
}

fn text(about: &Json) -> String {
    let commit = about.text("commit");
    let commit = if commit.is_empty() {
        commit
    } else {
        format!("commit {commit}, ")
    };
    let profile = about.text("profile");
    let platform = about.text("platform");
    format!(
        "kanat {} ({commit}{profile} build, {platform})",
        about.text("version")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_is_named_with_its_commit_when_it_is_known() {
        let about = |commit: &str| {
            let text = format!(
                r#"{{"version":"1.2.3","commit":{commit},"profile":"release",
                "platform":"x86_64-linux"}}"#
            );
            Json::parse(&text).unwrap()
        };
        assert_eq!(
            text(&about("null")),
            "kanat 1.2.3 (release build, x86_64-linux)"
        );
        assert_eq!(
            text(&about("\"abc\"")),
            "kanat 1.2.3 (commit abc, release build, x86_64-linux)"
        );
    }
}
