//! Every page of the documentation is followed word for word: the blocks marked `sh`, in terminals
//! of their own, print what the page shows.

mod how_do_i;
mod reference;

use kanat_tests::page::Reader;
use kanat_tests::python::Python;

const README: &str = "README.md";

/// Section of the README that other pages continue: a service, a login, a target and a live flow.
const BEGINNING: &str = "Five minutes";

async fn follow(page: &str) {
    let mut reader = Reader::new();
    reader.follow(README, Some(BEGINNING)).await;
    reader.follow(page, None).await;
}

#[tokio::test]
async fn the_readme_is_as_it_says() {
    Reader::new().follow(README, None).await;
}

#[tokio::test]
async fn the_page_on_flows_is_as_it_says() {
    follow("docs/FLOWS.md").await;
}

#[tokio::test]
async fn the_page_on_published_apis_is_as_it_says() {
    follow("docs/PUBLISHED_APIS.md").await;
}

#[tokio::test]
async fn the_page_on_the_http_api_is_as_it_says() {
    follow("docs/HTTP_API.md").await;
}

#[tokio::test]
async fn the_page_on_the_first_day_is_as_it_says() {
    follow("docs/first-day.md").await;
}

#[tokio::test]
async fn the_page_on_grpc_is_as_it_says() {
    let python = Python::prepare().await.unwrap();
    let mut reader = Reader::with_programs(Some(python.folder()));
    reader.follow(README, Some(BEGINNING)).await;
    reader.follow("docs/GRPC.md", None).await;
}

#[tokio::test]
async fn the_page_on_examples_is_as_it_says() {
    follow("examples/README.md").await;
}
