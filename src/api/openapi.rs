//! The description of the API, made from the routes themselves.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use serde_json::Value;
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};

use crate::config::policy::RawPolicy;

/// The document without its routes.
pub fn base() -> OpenApi {
    let about = "Racks, planes and coflows are integers; times and spans end in _ns, amounts of data in _bytes, rates in _bps. \
                 Errors are RFC 9457 problems.";
    let info = InfoBuilder::new().title("Heliostat").version(env!("CARGO_PKG_VERSION")).description(Some(about)).build();
    OpenApiBuilder::new().info(info).build()
}

/// The finished document: with the schema of policies, which is the same as that of policy files.
pub fn complete(api: &OpenApi) -> Value {
    let mut document = serde_json::to_value(api).unwrap_or_default();
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|s| s.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let _ = generator.subschema_for::<RawPolicy>();
    if let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) {
        schemas.extend(generator.take_definitions(true));
    }
    describe_responses(&mut document);
    document
}

/// Gives responses that say nothing more than their status the words of that, since OpenAPI wants a description of each.
fn describe_responses(document: &mut Value) {
    let paths = document["paths"].as_object_mut().into_iter().flat_map(|p| p.values_mut());
    let operations = paths.filter_map(Value::as_object_mut).flat_map(|p| p.values_mut());
    for responses in operations.filter_map(|o| o["responses"].as_object_mut()) {
        for (status, response) in responses.iter_mut() {
            let words = status.parse().ok().and_then(|code| StatusCode::from_u16(code).ok()).and_then(|code| code.canonical_reason());
            if let (Some(response), Some(words)) = (response.as_object_mut(), words) {
                response.entry("description").or_insert_with(|| words.into());
            }
        }
    }
}

/// The handler of `/openapi.json`.
pub async fn serve(document: Arc<Value>) -> Json<Value> {
    Json((*document).clone())
}
