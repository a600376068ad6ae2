//! `kanat flow test`: what a person gives, and what it shows.

use kanat_tests::cli::Cli;
use kanat_tests::{FakeTarget, TestApp};

#[tokio::test]
async fn a_part_of_a_template_that_renders_to_nothing_is_named() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = r#"flow: greeting
source: {trigger: webhook}
steps:
  - name: note
    action: http.post
    connector: erp
    params:
      path: /notes
      body: {lines: ["Dear {{ source.title }} {{ source.name }}", "{{ source.none }}"]}
target:
  connector: erp
  endpoint: /in/no-{{ source.number }}
  headers: {X-Of: "of {{ source.sender }}"}
mapping:
  text: "Hello {{ source.name }}, {{ source.title | default('') }}!"
  whole: "{{ source.name }}"
  lines:
    each: source.lines
    map: {label: "{{ item.qty }} x {{ item.sku }}"}
"#;
    let cli = Cli::of(&app);
    cli.file("flow.yaml", yaml);
    cli.file(
        "data.json",
        r#"{"name": null, "title": "Dr.", "lines": [{"qty": 1, "sku": "a"}, {"qty": 2}]}"#,
    );
    cli.run(&["flow", "create", "flow.yaml"]).await.expect();
    let test = ["flow", "test", "greeting", "--data", "data.json"];
    let tested = cli.run(&test).await;
    for warning in [
        "mapped text: source.name is null and renders to nothing",
        "mapped lines[1].label: item.sku is undefined and renders to nothing",
        "step note.params.body.lines[0]: source.name is null and renders to nothing",
        "delivery target.endpoint: source.number is undefined and renders to nothing",
        "delivery target.headers.x-of: source.sender is undefined and renders to nothing",
    ] {
        assert_eq!(
            tested.stderr.matches(warning).count(),
            1,
            "{warning}: {}",
            tested.stderr
        );
    }
    assert_eq!(
        tested.stderr.matches("renders to nothing").count(),
        5,
        "{}",
        tested.stderr
    );
    let output = tested.json();
    assert_eq!(output["text"], "Hello , Dr.!");
    assert_eq!(output["lines"][1]["label"], "2 x ");
}
