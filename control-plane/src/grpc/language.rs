//! The methods of the flow language.

mod convert;

use kanat_model::Error;
use prost::Message;

use crate::app::language;

/// Bytes of a request to evaluate an expression.
const MAX_REQUEST_BYTES: usize = 1 << 20;

service! {
    language_service_server::LanguageService;

    evaluate_expression(call, request: EvaluateExpressionRequest) -> EvaluateExpressionResponse {
        if request.encoded_len() > MAX_REQUEST_BYTES {
            let message = format!("the request is larger than {MAX_REQUEST_BYTES} bytes");
            return Err(Error::invalid(message, Vec::new()));
        }
        let (text, documents) = convert::evaluation(request)?;
        language::evaluate(&call, &text, &documents).await.map(convert::evaluated)
    }

    get_flow_language(_call, _request: GetFlowLanguageRequest) -> FlowLanguage {
        Ok(convert::language())
    }
}
