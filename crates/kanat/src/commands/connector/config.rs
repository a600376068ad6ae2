//! The config of an instance on the command line: a JSON file, single fields, or both.

use anyhow::Result;
use serde_json::{Map, Value};

use super::super::input;
use crate::exit::usage;

/// Where the config comes from.
#[derive(clap::Args)]
pub struct Flags {
    /// JSON file with the config; `-` is standard input.
    #[arg(long)]
    config: Option<String>,
    /// One field, such as `base_url=https://erp.example`; `headers.X-Tenant=7` sets a member of a map, and
    /// `token=@FILE` reads the value from a file, so that a secret is not on the command line. May be repeated.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    fields: Vec<String>,
}

impl Flags {
    pub fn any(&self) -> bool {
        self.config.is_some() || !self.fields.is_empty()
    }

    /// The config object; single fields win over the file.
    pub fn read(&self) -> Result<Map<String, Value>> {
        let mut config = match &self.config {
            Some(file) => serde_json::from_str(input::json(file)?.get())
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
            set(&mut config, name, value)?;
        }
        Ok(config)
    }
}

fn set(config: &mut Map<String, Value>, name: &str, value: String) -> Result<()> {
    let Some((map, member)) = name.split_once('.') else {
        config.insert(name.to_owned(), value.into());
        return Ok(());
    };
    let members = config.entry(map).or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(members) = members else { return Err(usage(format!("--set {name}: {map} is no map"))) };
    members.insert(member.to_owned(), value.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_fill_maps_and_win_over_the_file() {
        let fields = ["base_url=http://a=b", "headers.X-A=1", "headers.X-B=2"].map(str::to_owned).to_vec();
        let config = Flags { config: None, fields }.read().unwrap();
        let expected = r#"{"base_url":"http://a=b","headers":{"X-A":"1","X-B":"2"}}"#;
        assert_eq!(Value::Object(config).to_string(), expected);
    }

    #[test]
    fn refuses_a_field_without_a_value() {
        assert!(Flags { config: None, fields: vec!["base_url".to_owned()] }.read().is_err());
    }
}
