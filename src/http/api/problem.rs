//! Errors as RFC 9457 `application/problem+json`, with a JSON pointer into the request's body where
//! there is one.

use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, OptionalFromRequest, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::config::{Flaw, PathStep, error, yaml};
use crate::control::Rejected;
use crate::text;

/// An error, as RFC 9457 has it; `type` is always `about:blank`, so `title` is the status in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDetails {
    /// `about:blank`.
    #[schema(value_type = String)]
    pub r#type: Box<str>,
    /// The status in words.
    #[schema(value_type = String)]
    pub title: Box<str>,
    /// The status as a number.
    pub status: u16,
    /// What is wrong with this request, and what is allowed.
    #[schema(value_type = String)]
    pub detail: Box<str>,
    /// Where in the body, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub pointer: Option<Box<str>>,
    /// Each wrong value, where several are wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ValueProblem>,
}

/// One wrong value of a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValueProblem {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What is wrong, and what is allowed.
    pub detail: String,
}

/// What handlers return.
pub type Reply<T> = Result<T, ProblemDetails>;

impl ProblemDetails {
    /// An error with this status.
    pub fn new(status: StatusCode, detail: impl Into<Box<str>>) -> Self {
        Self {
            r#type: "about:blank".into(),
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            detail: detail.into(),
            pointer: None,
            errors: vec![],
        }
    }

    /// 400.
    pub fn bad(detail: impl Into<Box<str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 400: a parameter of the query, in words for people who write addresses.
    pub fn query(e: &QueryRejection) -> Self {
        let text = e.body_text();
        let why = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
        let why = why
            .replace("invalid digit found in string", "it is not a whole number")
            .replace("invalid type: string", "it is");
        // Of an unknown one its name is said before the sentence, too.
        let why = why
            .split_once(": ")
            .map(|w| w.1)
            .filter(|w| w.starts_with("unknown field "))
            .unwrap_or(&why);
        Self::bad(yaml::plain(why).replacen("unknown key ", "unknown parameter ", 1).replacen(
            "missing key ",
            "missing parameter ",
            1,
        ))
    }

    /// 404.
    pub fn not_found(detail: impl Into<Box<str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// 422: a well-formed value that makes no sense, at this pointer.
    pub fn value(pointer: impl Into<Box<str>>, detail: impl Into<Box<str>>) -> Self {
        let mut p = Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
        p.pointer = Some(pointer.into());
        p
    }

    /// 422: the flaws that a check found (at least one).
    pub fn flaws(flaws: &[Flaw]) -> Self {
        let detail = |f: &Flaw| format!("{}; allowed: {}", text::told(&f.message), f.allowed);
        let first = flaws.first().map(|f| (f.pointer(), detail(f))).unwrap_or_default();
        let mut p = Self::value(first.0, first.1);
        p.errors = flaws
            .iter()
            .map(|f| ValueProblem { pointer: f.pointer(), detail: detail(f) })
            .collect();
        p
    }
}

impl From<Rejected> for ProblemDetails {
    fn from(r: Rejected) -> Self {
        let status = match r {
            Rejected::NotFound(_) => StatusCode::NOT_FOUND,
            Rejected::Conflict(_) => StatusCode::CONFLICT,
            Rejected::Gone(_) => StatusCode::GONE,
            Rejected::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Rejected::Stopped => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, r.to_string())
    }
}

impl IntoResponse for ProblemDetails {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self).unwrap_or_default();
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        (status, [kind], body).into_response()
    }
}

/// A JSON body, read strictly: its content type must say so (which also keeps other sites' forms
/// out), its size is limited, and errors point at the value. With `YAML` it may be YAML as well, as
/// a file would be.
pub struct Body<T, const YAML: bool = false> {
    /// What it says.
    pub value: T,
    /// The bytes themselves.
    pub raw: axum::body::Bytes,
}

impl<S: Send + Sync, T: DeserializeOwned, const YAML: bool> FromRequest<S> for Body<T, YAML> {
    type Rejection = ProblemDetails;

    async fn from_request(req: Request, state: &S) -> Reply<Self> {
        let yaml = YAML && is_yaml(req.headers());
        if !yaml && !is_json(req.headers()) {
            let or = if YAML { "` or `application/yaml" } else { "" };
            let detail = format!("the body must be `Content-Type: application/json{or}`");
            return Err(ProblemDetails::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        let read = axum::body::Bytes::from_request(req, state);
        let raw = tokio::time::timeout(super::CLIENT_TIMEOUT, read)
            .await
            .map_err(|_| {
                ProblemDetails::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
            })?
            .map_err(|e| ProblemDetails::new(e.status(), e.body_text()))?;
        let raw = if yaml { from_yaml(&raw)? } else { raw };
        Ok(Self { value: parse(&raw)?, raw })
    }
}

impl<S: Send + Sync, T: DeserializeOwned> OptionalFromRequest<S> for Body<T> {
    type Rejection = ProblemDetails;

    /// Nothing where there is no content type and no content.
    async fn from_request(req: Request, state: &S) -> Reply<Option<Self>> {
        let length = req.headers().get(header::CONTENT_LENGTH).is_none_or(|n| n == "0");
        let chunked = req.headers().contains_key(header::TRANSFER_ENCODING);
        if length && !chunked && !req.headers().contains_key(header::CONTENT_TYPE) {
            return Ok(None);
        }
        <Self as FromRequest<S>>::from_request(req, state).await.map(Some)
    }
}

/// The content type without its parameters.
fn essence(headers: &HeaderMap) -> String {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

fn is_yaml(headers: &HeaderMap) -> bool {
    matches!(essence(headers).as_str(), "application/yaml" | "application/x-yaml" | "text/yaml")
}

/// YAML as the JSON that says the same.
fn from_yaml(raw: &[u8]) -> Reply<axum::body::Bytes> {
    let text =
        std::str::from_utf8(raw).map_err(|_| ProblemDetails::bad("the body is not UTF-8"))?;
    let value: serde_json::Value =
        yaml::read(text, "the body").map_err(|e| ProblemDetails::bad(e.to_string()))?;
    Ok(serde_json::to_vec(&value).unwrap_or_default().into())
}

fn is_json(headers: &HeaderMap) -> bool {
    let essence = essence(headers);
    essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Reads JSON: 400 for what is not JSON, 422 with a pointer for what is not this type.
fn parse<T: DeserializeOwned>(raw: &[u8]) -> Reply<T> {
    // Serde would take a list of the values in the order of the keys.
    if raw.trim_ascii_start().starts_with(b"[") {
        return Err(ProblemDetails::value("", "the body is a JSON object"));
    }
    let mut de = serde_json::Deserializer::from_slice(raw);
    let mut track = serde_path_to_error::Track::new();
    let result = T::deserialize(serde_path_to_error::Deserializer::new(&mut de, &mut track))
        .and_then(|v| de.end().map(|()| v));
    result.map_err(|e| match e.classify() {
        serde_json::error::Category::Data => {
            let text = e.to_string();
            // The pointer says where.
            ProblemDetails::value(
                pointer(&track.path()),
                yaml::plain(text.rsplit_once(" at line ").map_or(&text, |t| t.0)),
            )
        }
        _ => ProblemDetails::bad(format!("the body is not JSON: {e}")),
    })
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let step = |s: &Segment| match s {
        Segment::Seq { index } => Some(PathStep::Index(*index)),
        Segment::Map { key } => Some(PathStep::Key(key.clone())),
        Segment::Enum { .. } | Segment::Unknown => None,
    };
    error::pointer(&path.iter().filter_map(step).collect::<Vec<_>>())
}
