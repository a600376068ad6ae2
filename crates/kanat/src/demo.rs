//! `kanat demo`: the whole service on sample orders, in a folder and on ports of its own, with
//! targets of its own.

mod orders;
mod scene;
mod show;
mod story;
mod target;

use anyhow::{Context, Result};
use kanat_model::Secret;

use crate::client::Client;
use crate::exit::failure;
use crate::output;
use crate::process::signals::Signals;
use crate::settings;
use crate::up::service;
use orders::End;
use scene::Scene;
use story::Chapter;

/// Tells the story; then stays until Ctrl-C, or ends with what the story came to.
pub async fn run(flags: settings::demo::Flags) -> Result<()> {
    kanat_telemetry::install(&flags.log)?;
    let mut signals = Signals::listen()?;
    let folder = tempfile::Builder::new()
        .prefix("kanat-demo-")
        .tempdir()
        .context("cannot make a folder for the demo")?;
    let key = kanat_auth::key::generate().text;
    let settings = settings::up::Settings::demo(folder.path(), key.clone())?;
    let drain = settings.process.drain;
    let process = service::start(settings).await?;
    let presented = tokio::select! {
        told = present(process.url(), &key, flags.exit) => told,
        () = signals.next() => Err(failure("interrupted")),
    };
    let done = match presented {
        Ok(scene) => {
            if !flags.exit {
                signals.next().await;
            }
            scene.stop().await;
            Ok(())
        }
        Err(error) => Err(error),
    };
    process.stop(drain).await;
    folder.close().context("cannot remove the demo's folder")?;
    done
}

/// An error when an order ended otherwise than it has to.
async fn present(url: &str, key: &Secret<String>, exit: bool) -> Result<Scene> {
    let client = Client::to(url, Some(key.clone()), None)?;
    let scene = Scene::build(&client)
        .await
        .context("cannot set the demo up")?;
    output::line(&show::scene(url, &scene))?;
    let chapters = story::play(&client, &scene).await?;
    output::line(&show::orders(&chapters))?;
    if let Some(chapter) = find(
        &chapters,
        |end| matches!(end, End::Delivered { attempts } if attempts > 1),
    ) {
        output::line(&show::closer("One delivered after retries", chapter))?;
    }
    if let Some(chapter) = find(&chapters, |end| matches!(end, End::DeadLetter { .. })) {
        output::line(&show::closer("One dead letter", chapter))?;
    }
    output::line(&show::counts(&chapters, &scene))?;
    let deviations: Vec<String> = chapters.iter().filter_map(Chapter::deviation).collect();
    if !deviations.is_empty() {
        return Err(failure(format!(
            "the story came out wrong:\n  {}",
            deviations.join("\n  ")
        )));
    }
    if !exit {
        output::line(&show::next_steps(&client, key.expose(), &scene))?;
    }
    Ok(scene)
}

fn find(chapters: &[Chapter], end: impl Fn(End) -> bool) -> Option<&Chapter> {
    chapters.iter().find(|chapter| end(chapter.order.end))
}
