//! Keywords of JSON Schema that are probably misspelt. A schema ignores a keyword that it does not
//! know, so that nothing is checked by it.

use kanat_model::nearest::nearest_within;

use crate::output::Json;

/// Edits that a misspelt keyword is away from a known one.
const MAX_EDITS: usize = 2;

/// Keywords of drafts 4 to 2020-12.
const KEYWORDS: &str = "\
    $anchor $comment $defs $dynamicAnchor $dynamicRef $id $ref $schema $vocabulary \
    additionalItems additionalProperties allOf anyOf const contains contentEncoding \
    contentMediaType contentSchema default definitions dependencies dependentRequired \
    dependentSchemas deprecated description else enum example examples exclusiveMaximum \
    exclusiveMinimum format id if items maxContains maxItems maxLength maxProperties maximum \
    minContains minItems minLength minProperties minimum multipleOf not nullable oneOf \
    pattern patternProperties prefixItems properties propertyNames readOnly required then \
    title type unevaluatedItems unevaluatedProperties uniqueItems writeOnly";

/// Keywords whose value is one schema, or a list of them.
const SCHEMAS: &str = "\
    additionalItems additionalProperties allOf anyOf contains contentSchema else if items \
    not oneOf prefixItems propertyNames then unevaluatedItems unevaluatedProperties";

/// Keywords whose members are schemas under names of the author's own.
const NAMED_SCHEMAS: &str = "\
    $defs definitions dependencies dependentSchemas patternProperties properties";

/// Returns a warning for each keyword of a schema that no draft has and that is near to one that
/// they have.
pub fn misspelt(schema: &Json) -> Vec<String> {
    let mut warnings = Vec::new();
    visit(schema, "", &mut warnings);
    warnings
}

fn is_among(words: &str, name: &str) -> bool {
    words.split(' ').any(|word| word == name)
}

fn visit(schema: &Json, path: &str, warnings: &mut Vec<String>) {
    match schema {
        Json::List(schemas) => {
            for (index, schema) in schemas.iter().enumerate() {
                visit(schema, &format!("{path}[{index}]"), warnings);
            }
        }
        Json::Object(members) => {
            for (name, value) in members {
                let path = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                let name = name.as_str();
                if is_among(NAMED_SCHEMAS, name) {
                    for (key, schema) in value.members("") {
                        visit(schema, &format!("{path}.{key}"), warnings);
                    }
                } else if is_among(SCHEMAS, name) {
                    visit(value, &path, warnings);
                } else if !is_among(KEYWORDS, name)
                    && let Some(near) = nearest_within(MAX_EDITS, name, KEYWORDS.split(' '))
                {
                    warnings.push(format!(
                        "{path} is no keyword of JSON Schema and checks nothing; did you mean \
                         {near:?}?"
                    ));
                }
            }
        }
        Json::Bare(_) | Json::Text(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_misspelt_keyword_is_reported_with_its_path() {
        let schema = json!({
            "type": "object",
            "requred": ["id"],
            "properties": { "minLenght": { "type": "string", "minLenght": 1 } },
            "allOf": [{ "propertys": {} }],
        });
        let warnings = misspelt(&schema.into());
        let starts = [
            "requred is",
            "properties.minLenght.minLenght is",
            "allOf[0].propertys is",
        ];
        assert_eq!(warnings.len(), starts.len(), "{warnings:?}");
        for start in starts {
            let found = warnings.iter().any(|warning| warning.starts_with(start));
            assert!(found, "{start}: {warnings:?}");
        }
    }

    #[test]
    fn values_and_extensions_are_left_alone() {
        let schema = json!({
            "title": "Order",
            "enum": [{ "typ": 1 }],
            "default": { "requred": 1 },
            "x-owner": "sales",
            "properties": { "typ": true, "requird": { "const": { "typ": 1 } } },
        });
        assert_eq!(misspelt(&schema.into()), [""; 0]);
    }
}
