//! The description of the API, made from the routes themselves.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use serde_json::{Value, json};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder, SecurityRequirement,
};

use super::UNGUARDED;
use crate::config::policy::RawPolicy;

mod plain;

/// The document without its routes.
pub fn base() -> OpenApi {
    let about = "Racks, planes and coflows are integers; requests may also name racks (r3), planes (p0) and hosts (h1-0) and give \
                 quantities with units (\"5MB\", \"200ms\"). Times and spans end in _ns, amounts of data in _bytes, rates in _bps. \
                 Errors are RFC 9457 problems.";
    let info = InfoBuilder::new()
        .title("Heliostat")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(about))
        .build();
    let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = ComponentsBuilder::new().security_scheme("token", token).build();
    // Without a token, or with one.
    let security = [
        SecurityRequirement::default(),
        SecurityRequirement::new::<_, [String; 0], String>("token", []),
    ];
    OpenApiBuilder::new().info(info).components(Some(components)).security(Some(security)).build()
}

/// The finished document: with the schema of policies, which is the same as that of policy files.
pub fn complete(api: &OpenApi) -> Value {
    let mut document = serde_json::to_value(api).unwrap_or_default();
    let settings = schemars::generate::SchemaSettings::draft2020_12()
        .with(|s| s.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let _ = generator.subschema_for::<RawPolicy>();
    if let Some(schemas) =
        document.pointer_mut("/components/schemas").and_then(Value::as_object_mut)
    {
        schemas.extend(generator.take_definitions(true));
    }
    name_formats(&mut document);
    plain::rewrite(&mut document);
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (path, item) in paths {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            add_shared(path, method, operation);
            describe_responses(operation);
        }
    }
    policies_as_files(&mut document);
    document
}

/// A policy may be sent as its file.
fn policies_as_files(document: &mut Value) {
    let Some(content) = document.pointer_mut("/paths/~1api~1v1~1policy/put/requestBody/content")
    else {
        return;
    };
    content["application/yaml"] = content["application/json"].clone();
}

/// Names the formats of unsigned integers as OpenAPI's registry of formats does: `uint32`, where
/// utoipa writes `u-int32`.
fn name_formats(v: &mut Value) {
    match v {
        Value::Object(m) => m.iter_mut().for_each(|(key, v)| match v {
            Value::String(format) if key == "format" => *format = format.replace("u-int", "uint"),
            v => name_formats(v),
        }),
        Value::Array(a) => a.iter_mut().for_each(name_formats),
        _ => {}
    }
}

/// Adds what an operation has in common with others: how parameters and bodies are refused, the
/// guard's answers, and those of a controller that is late.
fn add_shared(path: &str, method: &str, operation: &mut Value) {
    let takes = |place: &str| {
        operation["parameters"].as_array().into_iter().flatten().any(|p| p["in"] == place)
    };
    let (body, changes, guarded) =
        (operation["requestBody"].is_object(), method != "get", !UNGUARDED.contains(&path));
    let shared = [
        (
            body || takes("query") || takes("header"),
            400,
            "A parameter is not as described, or the body is not JSON",
        ),
        (guarded, 401, "This address needs a token"),
        (guarded && changes, 403, "A page of another site asks, or the token may only read"),
        (takes("path"), 404, "Nothing has this address"),
        (body, 408, "The body did not arrive in time"),
        (body, 413, "The body is too long"),
        (body, 415, "The body has another content type than those that are described"),
        (guarded, 421, "Without a token, the request must name this machine as its host"),
        (body, 422, "A value in the body makes no sense; `pointer` says which"),
        (changes, 503, "The controller has stopped, or does not answer"),
    ];
    let problem =
        json!({"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}});
    let Some(responses) = operation["responses"].as_object_mut() else { return };
    for (_, status, words) in shared.into_iter().filter(|s| s.0) {
        responses
            .entry(status.to_string())
            .or_insert_with(|| json!({"description": words, "content": problem.clone()}));
    }
    responses.sort_keys();
}

/// Gives every problem its content type. Responses that say nothing more than their status get the
/// words of that, since OpenAPI wants a description of each.
fn describe_responses(operation: &mut Value) {
    let responses = operation["responses"].as_object_mut().into_iter().flatten();
    for (status, response) in responses.filter_map(|(status, r)| Some((status, r.as_object_mut()?)))
    {
        let code = status.parse().ok().and_then(|code| StatusCode::from_u16(code).ok());
        if let Some(words) = code.and_then(|code| code.canonical_reason()) {
            response.entry("description").or_insert_with(|| words.into());
        }
        let content = response
            .get_mut("content")
            .and_then(Value::as_object_mut)
            .filter(|_| code.is_some_and(|c| c.as_u16() >= 400));
        if let Some((content, json)) =
            content.and_then(|c| c.remove("application/json").map(|json| (c, json)))
        {
            content.insert("application/problem+json".into(), json);
        }
    }
}

/// The handler of `/openapi.json`.
pub async fn serve(document: Arc<Value>) -> Json<Value> {
    Json((*document).clone())
}
