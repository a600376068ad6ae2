//! The flow language between the wire and the use-cases.

use std::sync::LazyLock;

use kanat_flow::language::{self, Example, Function, Key, OperatorEntry, Parameter, RootEntry};
use kanat_model::Error;
use kanat_proto::v1 as wire;
use prost::Message;
use sha2::{Digest, Sha256};

use crate::app::language::{Documents, Evaluation, ExpressionText};

pub fn evaluation(
    request: wire::EvaluateExpressionRequest,
) -> Result<(ExpressionText, Documents), Error> {
    let expression = match (request.expression, request.template) {
        (Some(text), None) => ExpressionText::Expression(text),
        (None, Some(text)) => ExpressionText::Template(text),
        (None, None) => {
            return Err(Error::field("expression", "it or template is required"));
        }
        (Some(_), Some(_)) => {
            return Err(Error::field(
                "template",
                "stands beside expression; exactly one of them is taken",
            ));
        }
    };
    let text = |json: Option<wire::Json>| json.map(|json| json.text);
    let documents = Documents {
        source: text(request.source),
        trigger: text(request.trigger),
        steps: text(request.steps),
        target: text(request.target),
        item: text(request.item),
        index: request.index.map(|index| index as usize),
        response: text(request.response),
        state: text(request.state),
        env: text(request.env),
    };
    Ok((expression, documents))
}

pub fn evaluated(evaluated: Evaluation) -> wire::EvaluateExpressionResponse {
    wire::EvaluateExpressionResponse {
        value: evaluated.value.map(|text| wire::Json { text }),
        r#type: evaluated.kind.to_owned(),
    }
}

/// Returns the language, which is the same for every caller of this build.
pub fn language() -> wire::FlowLanguage {
    static LANGUAGE: LazyLock<wire::FlowLanguage> = LazyLock::new(|| {
        let shown = wire::FlowLanguage {
            keys: language::KEYS.iter().map(key).collect(),
            transforms: language::transforms().map(|of| function(&of)).collect(),
            functions: language::FUNCTIONS.iter().map(function).collect(),
            operators: language::OPERATORS.iter().map(operator).collect(),
            roots: language::roots().map(root).collect(),
            schema: Some(wire::Json {
                text: language::schema(),
            }),
            etag: String::new(),
        };
        let digest = Sha256::digest(shown.encode_to_vec());
        let etag = digest[..8].iter().map(|byte| format!("{byte:02x}"));
        let etag = etag.collect();
        wire::FlowLanguage { etag, ..shown }
    });
    LANGUAGE.clone()
}

fn key(key: &Key) -> wire::LanguageKey {
    wire::LanguageKey {
        path: key.path.to_owned(),
        r#type: key.kind.name().to_owned(),
        text: key.text.to_owned(),
        required: key.required,
        values: key.kind.words().iter().map(ToString::to_string).collect(),
        default: key.default.map(str::to_owned),
    }
}

fn function(function: &Function) -> wire::LanguageFunction {
    wire::LanguageFunction {
        name: function.name.to_owned(),
        arguments: function.parameters.iter().map(argument).collect(),
        text: function.text.to_owned(),
        example: Some(example(&function.example)),
    }
}

fn argument(parameter: &Parameter) -> wire::LanguageArgument {
    wire::LanguageArgument {
        name: parameter.name.to_owned(),
        r#type: parameter.kind.name().to_owned(),
        required: parameter.required,
        text: parameter.text.to_owned(),
    }
}

fn example(example: &Example) -> wire::LanguageExample {
    let json = |text: &str| wire::Json {
        text: text.to_owned(),
    };
    wire::LanguageExample {
        expression: example.expression.to_owned(),
        source: example.source.map(json),
        value: example.value.map(json),
    }
}

fn operator(operator: &OperatorEntry) -> wire::LanguageOperator {
    wire::LanguageOperator {
        name: operator.name.to_owned(),
        text: operator.text.to_owned(),
        example: operator.example.to_owned(),
    }
}

fn root(root: RootEntry) -> wire::LanguageRoot {
    wire::LanguageRoot {
        name: root.name.to_owned(),
        text: root.text.to_owned(),
        r#where: root.known_in.to_owned(),
    }
}
