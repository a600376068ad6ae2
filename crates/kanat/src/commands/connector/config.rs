//! The config of an instance on the command line: a JSON file, single fields, or both.

use anyhow::Result;
use kanat_model::nearest;
use serde_json::{Map, Value};

use super::super::input;
use crate::client::name::segment;
use crate::client::{Client, Refusal};
use crate::exit::{failure, usage};
use crate::output::Json;

/// Sources of a config.
#[derive(clap::Args)]
pub struct Flags {
    /// JSON file with the config; `-` is standard input.
    #[arg(long)]
    config: Option<String>,
    /// One field, such as `base_url=https://erp.example`; `headers.X-Tenant=7` sets a member of a
    /// map, and `token=@FILE` reads the value from a file, so that a secret is not on the command
    /// line. May be repeated.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    fields: Vec<String>,
}

/// Which fields an update takes away.
#[derive(clap::Args)]
pub struct UnsetFlags {
    /// Take a field away, such as `token`, or a member of a map, such as `headers.X-Tenant`. May be
    /// repeated.
    #[arg(long = "unset", value_name = "FIELD")]
    removed: Vec<String>,
}

impl Flags {
    /// The changes of a config for `instance`, as it is now: members of maps that are not named
    /// stay, and null takes a field away. None where nothing is to change.
    pub async fn changes(
        &self,
        client: &Client,
        instance: &Json,
        removed: &UnsetFlags,
    ) -> Result<Option<Map<String, Value>>> {
        if self.config.is_none() && self.fields.is_empty() && removed.removed.is_empty() {
            return Ok(None);
        }
        removed.check(client, instance).await?;
        let mut changes = self.read(client, &instance.text("catalogId")).await?;
        let named = self
            .fields
            .iter()
            .filter_map(|field| Some(field.split_once('=')?.0));
        for map in named.filter_map(|name| Some(name.split_once('.')?.0)) {
            complete(&mut changes, map, instance);
        }
        for name in &removed.removed {
            if let Some((map, _)) = name.split_once('.') {
                complete(&mut changes, map, instance);
            }
            set(&mut changes, name, Value::Null)?;
        }
        Ok(Some(changes))
    }

    /// The config object for an instance of `entry`; single fields win over the file.
    pub async fn read(&self, client: &Client, entry: &str) -> Result<Map<String, Value>> {
        if self.fields.is_empty() {
            return self.object(&[]);
        }
        let path = format!("/connectors/catalog/{}", segment(entry));
        let entry = match client.get(&path, &[]).await {
            Ok(entry) => entry,
            // The service names the nearest entry where it refuses the instance.
            Err(error) if Refusal::has_status(&error, 404) => return self.object(&[]),
            Err(error) => return Err(error),
        };
        let is_plain =
            |field: &&Json| ["integer", "number", "boolean"].contains(&field.text("type").as_str());
        let plain = entry
            .list("configFields")
            .iter()
            .filter(is_plain)
            .map(|field| field.text("name"));
        self.object(&plain.collect::<Vec<_>>())
    }

    /// `plain` are the fields that are no texts, but numbers or booleans.
    fn object(&self, plain: &[String]) -> Result<Map<String, Value>> {
        let mut config = match &self.config {
            Some(file) => serde_json::from_str(&input::json(file)?.compact())
                .map_err(|_| usage(format!("{} holds no JSON object", input::name(file))))?,
            None => Map::new(),
        };
        for field in &self.fields {
            let Some((name, value)) = field.split_once('=') else {
                return Err(usage(format!("--set {field:?} has no `=`")));
            };
            let value = match value.strip_prefix('@') {
                Some(file) => input::text(file)?.trim_end_matches(['\r', '\n']).to_owned(),
                None => value.to_owned(),
            };
            let plain = plain
                .iter()
                .any(|known| known == name)
                .then(|| serde_json::from_str(&value).ok())
                .flatten();
            let plain = plain.filter(|value: &Value| value.is_number() || value.is_boolean());
            if plain.is_none() && value == "null" {
                return Err(usage(format!(
                    "--set {name}=null would send the text null: --unset {name} takes it away"
                )));
            }
            // The service says what is wrong with a text in the place of a number.
            set(&mut config, name, plain.unwrap_or(Value::String(value)))?;
        }
        Ok(config)
    }
}

impl UnsetFlags {
    /// Errors when a field is to be taken away that neither the catalog entry nor the instance has.
    async fn check(&self, client: &Client, instance: &Json) -> Result<()> {
        if self.removed.is_empty() {
            return Ok(());
        }
        let path = format!(
            "/connectors/catalog/{}",
            segment(&instance.text("catalogId"))
        );
        let entry = client.get(&path, &[]).await?;
        let fields = entry.list("configFields").iter();
        let fields: Vec<String> = fields.map(|field| field.text("name")).collect();
        for name in &self.removed {
            check_removed(name, &fields, instance)?;
        }
        Ok(())
    }

    /// Adds to a refusal what takes the credentials away with the kind of authentication that they
    /// are of, where the service requires one that was to be taken away alone.
    pub fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        let Some(refusal) = error.downcast_ref::<Refusal>() else {
            return error;
        };
        let kind = refusal.details.iter().find_map(|(field, message)| {
            let field = field.strip_prefix("config.")?;
            let is_removed = self.removed.iter().any(|removed| removed == field);
            let kind = message.strip_prefix("is required when auth is ")?;
            is_removed.then_some(kind)
        });
        let credentials = match kind {
            Some("bearer") => "--unset token",
            Some("api_key") => "--unset api_key",
            Some("basic") => "--unset username --unset password",
            Some(_) | None => return error,
        };
        failure(format!(
            "{error:#}\nto call without credentials, give --set auth=none {credentials}"
        ))
    }
}

/// Errors when a field, or a member of a map, is to be taken away that there is not. `fields` are
/// those of the catalog entry.
fn check_removed(name: &str, fields: &[String], instance: &Json) -> Result<()> {
    let field = name.split_once('.').map_or(name, |(map, _)| map);
    let is_known = fields.iter().any(|known| known == field);
    if !is_known && !instance.has(&format!("config.{field}")) {
        let known = || fields.iter().map(String::as_str);
        let near = match nearest::suggestion(field, known()) {
            near if near.is_empty() => format!("; there is {}", fields.join(", ")),
            near => near,
        };
        return Err(failure(format!("config.{field}: is not known here{near}")));
    }
    let Some((map, member)) = name.split_once('.') else {
        return Ok(());
    };
    let path = format!("config.{map}");
    let members = instance.members(&path);
    let members: Vec<&str> = members.map(|(member, _)| member).collect();
    if members.contains(&member) {
        return Ok(());
    }
    let near = nearest::suggestion(member, members);
    Err(failure(format!(
        "the instance has no {member:?} in its {map}{near}"
    )))
}

/// Adds the members that the instance has in a map and that `changes` do not name. Masked values
/// keep what is stored.
fn complete(changes: &mut Map<String, Value>, map: &str, instance: &Json) {
    let stored = instance
        .at(&format!("config.{map}"))
        .map(|stored| serde_json::from_str(&stored.compact()));
    let Some(Ok(Value::Object(mut stored))) = stored else {
        return;
    };
    if let Some(Value::Object(named)) = changes.get(map) {
        stored.extend(named.clone());
    }
    changes.insert(map.to_owned(), Value::Object(stored));
}

fn set(config: &mut Map<String, Value>, name: &str, value: Value) -> Result<()> {
    let Some((map, member)) = name.split_once('.') else {
        config.insert(name.to_owned(), value);
        return Ok(());
    };
    let members = config
        .entry(map)
        .or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(members) = members else {
        return Err(usage(format!("--set {name}: {map} is no map")));
    };
    members.insert(member.to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_fill_maps_and_win_over_the_file() {
        let fields = ["base_url=http://a=b", "headers.X-A=1", "headers.X-B=2"]
            .map(str::to_owned)
            .to_vec();
        let config = Flags {
            config: None,
            fields,
        }
        .object(&[])
        .unwrap();
        let expected = r#"{"base_url":"http://a=b","headers":{"X-A":"1","X-B":"2"}}"#;
        assert_eq!(Value::Object(config).to_string(), expected);
    }

    #[test]
    fn a_text_of_null_is_refused() {
        let flags = Flags {
            config: None,
            fields: vec!["token=null".to_owned()],
        };
        assert!(
            flags
                .object(&[])
                .unwrap_err()
                .to_string()
                .contains("--unset token")
        );
    }

    #[test]
    fn members_that_are_not_named_stay() {
        let instance =
            Json::parse(r#"{"config":{"headers":{"X-A":"1","X-Key":"********"}}}"#).unwrap();
        let mut changes = Map::from_iter([(
            "headers".to_owned(),
            serde_json::json!({"X-A": "2", "X-B": "3"}),
        )]);
        complete(&mut changes, "headers", &instance);
        let expected = r#"{"headers":{"X-A":"2","X-Key":"********","X-B":"3"}}"#;
        assert_eq!(Value::Object(changes).to_string(), expected);
    }

    #[test]
    fn what_there_is_not_is_not_taken_away() {
        let fields = ["token", "webhook_secret", "headers"].map(str::to_owned);
        let instance = r#"{"config":{"former":"x","headers":{"X-Tenant":"7"}}}"#;
        let instance = Json::parse(instance).unwrap();
        let fault = |name: &str| {
            let checked = check_removed(name, &fields, &instance);
            checked.map_err(|error| error.to_string()).err()
        };
        for name in ["token", "webhook_secret", "former", "headers.X-Tenant"] {
            assert_eq!(fault(name), None, "{name}");
        }
        assert_eq!(
            fault("webhok_secret").as_deref(),
            Some("config.webhok_secret: is not known here; did you mean \"webhook_secret\"")
        );
        assert_eq!(
            fault("colour").as_deref(),
            Some("config.colour: is not known here; there is token, webhook_secret, headers")
        );
        assert_eq!(
            fault("headers.X-Tennant").as_deref(),
            Some("the instance has no \"X-Tennant\" in its headers; did you mean \"X-Tenant\"")
        );
    }

    #[test]
    fn a_credential_is_taken_away_with_its_kind_of_authentication() {
        let explained = |removed: &str, field: &str, kind: &str| {
            let message = format!("is required when auth is {kind}");
            let error = kanat_model::Error::field(format!("config.{field}"), message);
            let removed = vec![removed.to_owned()];
            let explained = UnsetFlags { removed }.explain(Refusal::of(&error).into());
            explained.to_string()
        };
        let error = explained("token", "token", "bearer");
        assert!(error.ends_with("--set auth=none --unset token"), "{error}");
        let error = explained("username", "username", "basic");
        let all = "--set auth=none --unset username --unset password";
        assert!(error.ends_with(all), "{error}");
        let error = explained("headers", "token", "bearer");
        assert!(!error.contains("--set"), "{error}");
    }

    #[test]
    fn refuses_a_field_without_a_value() {
        assert!(
            Flags {
                config: None,
                fields: vec!["base_url".to_owned()]
            }
            .object(&[])
            .is_err()
        );
    }

    #[test]
    fn numbers_are_numbers_where_the_entry_wants_them() {
        let fields = ["rate=0.5", "concurrency=many", "token=7"]
            .map(str::to_owned)
            .to_vec();
        let plain = ["rate", "concurrency"].map(str::to_owned);
        let config = Flags {
            config: None,
            fields,
        }
        .object(&plain)
        .unwrap();
        assert_eq!(
            Value::Object(config).to_string(),
            r#"{"rate":0.5,"concurrency":"many","token":"7"}"#
        );
    }
}
