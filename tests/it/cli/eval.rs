//! `kanat eval`: expressions and templates without a service.

use kanat_tests::cli::Cli;

#[tokio::test]
async fn a_value_is_one_line_and_a_fault_has_its_column() {
    let cli = Cli::new();
    cli.file(
        "order.json",
        "{\n  \"n\": 1.10,\n  \"tags\": [ \"a b\",\n 1e400 ]\n}",
    );
    for (arguments, printed) in [
        (&["source.n", "--data", "order.json"][..], "1.10\n"),
        (
            &["source.tags", "--data", "order.json"],
            "[\"a b\",1e400]\n",
        ),
        (&["source.none", "--data", "order.json"], ""),
        (&["source"], ""),
        (&["source.n", "--data", "{\"n\": 2.50}"], "2.50\n"),
        (&["-5.5 % 2"], "-1.5\n"),
        (&["-source.n", "--data", "order.json"], "-1.1\n"),
        (
            &["env.A", "--variable", "A=1=2", "--variable", "B="],
            "\"1=2\"\n",
        ),
        (&["env.B", "--variable", "B="], "\"\"\n"),
        (&["env.C"], ""),
        (&["1", "--env", "production"], "1\n"),
        (
            &[
                "n: {{ source.n | decimal(3) }}",
                "--template",
                "--data",
                "order.json",
            ],
            "\"n: 1.100\"\n",
        ),
    ] {
        let arguments = [&["eval"], arguments].concat();
        let shown = cli.run(&arguments).await;
        assert_eq!(shown.expect(), printed, "{arguments:?}");
    }
    let elsewhere = Cli::new().with("KANAT_ENV", "production");
    assert_eq!(elsewhere.run(&["eval", "1"]).await.expect(), "1\n");
    let variable = ["eval", "env.A", "--env", "A=1"];
    let refused = cli.run(&variable).await.fails(2);
    assert!(refused.contains("--variable A=1"), "{refused}");
    for (arguments, told) in [
        (
            &["source.n | decmal(2)"][..],
            "column 12: there is no transform",
        ),
        (&["source.n | required"], "column 12: "),
        (
            &["'2026-01-31' | date(yyyy-MM-dd)"],
            "which is no token of a date",
        ),
        (&["{{ trigger.headrs }}", "--template"], "column 12: found"),
        (&["1 | lookup(t)"], "lookup needs a service"),
        (&["1 | adapter(a)"], "adapter needs a service"),
    ] {
        let arguments = [&["eval"], arguments].concat();
        let shown = cli.run(&arguments).await.fails(1);
        assert!(shown.contains(told), "{arguments:?}: {shown}");
    }
}
