//! Each polling flow of `examples/`: what its endpoint answers comes out as the file beside it
//! says.

use std::path::Path;

use kanat_tests::target::Reply;
use kanat_tests::{FakeTarget, TestApp, python::root};
use serde_json::Value;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[tokio::test]
async fn every_polling_example_runs_as_it_says() {
    let flows = root().join("examples/flows");
    let names = std::fs::read_dir(&flows).unwrap().filter_map(|file| {
        let name = file.unwrap().file_name().into_string().unwrap();
        Some(name.strip_suffix(".answer.json")?.to_owned())
    });
    let names: Vec<_> = names.collect();
    assert!(names.len() >= 4, "one for each strategy: {names:?}");
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    for (n, name) in names.iter().enumerate() {
        let answer = read(&flows.join(format!("{name}.answer.json")));
        let endpoint =
            FakeTarget::scripted(move |_, _| Reply::Answer(200, Vec::new(), answer.clone())).await;
        let shop = app
            .api
            .http_instance(&format!("shop-{n}"), &endpoint.url())
            .await;
        let yaml = read(&flows.join(format!("{name}.yaml")))
            .replace("connector: shop", &format!("connector: shop-{n}"));
        assert!(yaml.contains("shop-"), "{name} polls {shop}");
        app.api.deployed(&yaml).await;
        let sent = &target.arrivals(n + 1).await[n];
        let expected: Value =
            serde_json::from_str(&read(&flows.join(format!("{name}.expected.json")))).unwrap();
        assert_eq!(sent.path.as_str(), format!("/{name}").as_str(), "{name}");
        assert_eq!(sent.json(), expected, "{name}");
    }
}
