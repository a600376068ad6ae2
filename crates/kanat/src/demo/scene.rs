//! Scene of the demo: targets, a lookup table, connector instances and deployed flows, all made
//! through the API as anyone would.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::target::{Behaviour, Target};
use crate::client::Client;
use crate::client::name::{FLOW, INSTANCE, TABLE};
use crate::output::Json;

const COUNTRIES: &str = include_str!("../../../../examples/lookups/country_codes.csv");

/// A connector instance to make: its name, its config but for the address, how its target behaves.
const TARGETS: [(&str, &str, Behaviour); 3] = [
    (
        "erp",
        include_str!("../../../../examples/connectors/erp.json"),
        Behaviour::Works,
    ),
    (
        "courier",
        include_str!("../../../../examples/connectors/courier.json"),
        Behaviour::FailsFirst(2),
    ),
    (
        "ledger",
        include_str!("../../../../examples/connectors/ledger.json"),
        Behaviour::NeverWorks,
    ),
];

/// The flows, and the targets that they name.
const FLOWS: [(&str, &str, &str); 3] = [
    (
        "order-sync",
        "erp",
        include_str!("../../../../examples/flows/order-sync.yaml"),
    ),
    (
        "order-express",
        "courier",
        include_str!("../../../../examples/flows/order-express.yaml"),
    ),
    (
        "order-ledger",
        "ledger",
        include_str!("../../../../examples/flows/order-ledger.yaml"),
    ),
];

/// Everything that was set up.
pub struct Scene {
    pub targets: Vec<NamedTarget>,
    pub flows: Vec<DeployedFlow>,
}

pub struct NamedTarget {
    pub name: &'static str,
    pub target: Target,
}

pub struct DeployedFlow {
    pub name: &'static str,
    pub webhook_url: String,
    /// Name of the target that it delivers to.
    pub target: &'static str,
}

impl Scene {
    pub async fn build(client: &Client) -> Result<Self> {
        let mut targets = Vec::new();
        for (name, config, behaviour) in TARGETS {
            let target = Target::start(behaviour).await?;
            create_instance(client, name, config, &target).await?;
            targets.push(NamedTarget { name, target });
        }
        create_countries(client).await?;
        let mut flows = Vec::new();
        for (name, target, definition) in FLOWS {
            let webhook_url = deploy(client, definition)
                .await
                .with_context(|| format!("flow {name}"))?;
            flows.push(DeployedFlow {
                name,
                webhook_url,
                target,
            });
        }
        Ok(Self { targets, flows })
    }

    pub fn flow(&self, name: &str) -> Result<&DeployedFlow> {
        self.flows
            .iter()
            .find(|flow| flow.name == name)
            .with_context(|| format!("the demo has no flow {name}"))
    }

    pub fn target(&self, name: &str) -> Result<&Target> {
        let found = self.targets.iter().find(|target| target.name == name);
        Ok(&found
            .with_context(|| format!("the demo has no target {name}"))?
            .target)
    }

    pub async fn stop(self) {
        for target in self.targets {
            target.target.stop().await;
        }
    }
}

async fn create_instance(
    client: &Client,
    name: &str,
    config: &str,
    target: &Target,
) -> Result<Json> {
    let mut config: Value =
        serde_json::from_str(config).with_context(|| format!("the config of {name}"))?;
    config["base_url"] = format!("http://{}", target.address).into();
    let body = json!({ "catalogId": "http", "name": name, "config": config });
    client
        .post(INSTANCE.path, &body)
        .await
        .with_context(|| format!("connector instance {name}"))
}

async fn create_countries(client: &Client) -> Result<Json> {
    let body = json!({ "name": "country_codes", "description": "ISO 3166 codes of country names" });
    let table = client
        .post(TABLE.path, &body)
        .await
        .context("lookup table country_codes")?;
    let path = format!("{}/{}/import", TABLE.path, table.text("id"));
    client
        .upload(&path, "country_codes.csv".to_owned(), COUNTRIES.into())
        .await
        .context("entries of country_codes")
}

/// Gives the address of the flow's webhook.
async fn deploy(client: &Client, definition: &str) -> Result<String> {
    let draft = client
        .post(FLOW.path, &json!({ "yamlConfig": definition }))
        .await?;
    let flow = client
        .post(
            &format!("{}/{}/deploy", FLOW.path, draft.text("id")),
            &json!({}),
        )
        .await?;
    Ok(flow.text("webhookUrl"))
}
