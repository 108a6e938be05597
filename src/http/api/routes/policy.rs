//! The policy in force, in the shape of a policy file.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::api::problem::{Body, ProblemDetails, Reply};
use crate::api::state::App;
use crate::config::policy::{RawPolicy, fixed_keys};
use crate::control::Event;
use crate::runtime::settings::RunPlan;

/// The policy in force. Its `ETag` goes into the `If-Match` of a PUT.
#[utoipa::path(get, path = "/api/v1/policy", operation_id = "getPolicy", tag = "policy",
    responses((status = 200, body = ref("#/components/schemas/RawPolicy"), headers(("ETag" = String, description = "Its revision")))))]
pub async fn get(State(app): State<App>) -> Response {
    shown(&in_force(&app))
}

/// Decides by another policy from the next cycle on. An invalid one changes nothing. Of the keys
/// that are not given, those that were fixed when the run started keep what is in force; the others
/// are as in a file that leaves them out. The body may be a policy file as it is, with
/// `Content-Type: application/yaml`.
#[utoipa::path(put, path = "/api/v1/policy", operation_id = "replacePolicy", tag = "policy", request_body = ref("#/components/schemas/RawPolicy"),
    params(("If-Match" = String, Header, description = "The ETag of the policy that is replaced, or `*`")),
    responses(
        (status = 200, body = ref("#/components/schemas/RawPolicy"), description = "Taken; as the file asks", headers(("ETag" = String, description = "Its revision"))),
        (status = 409, body = ProblemDetails, description = "It changes `elephants.admit`, `elephants.port`, `external`, `network`, `within`, `aalo`, `decide`, `starvation`, `order`, `scale`, `buffer`, `congestion`, `rto_min` or `placement`, which were fixed when the run started"),
        (status = 412, body = ProblemDetails, description = "Another policy is in force"),
        (status = 428, body = ProblemDetails, description = "No If-Match")
    ))]
pub async fn put(
    State(app): State<App>,
    headers: HeaderMap,
    body: Body<RawPolicy, true>,
) -> Reply<Response> {
    let Some(wanted) = headers.get(header::IF_MATCH) else {
        let detail = "give the ETag of the policy that you replace in If-Match, or * for any";
        return Err(ProblemDetails::new(StatusCode::PRECONDITION_REQUIRED, detail));
    };
    let given = serde_json::from_slice(&body.raw).unwrap_or_default();
    // What is fixed is the same whichever policy for circuits is in force.
    let plan = body
        .value
        .keeping(given, &app.handle.plan)
        .check()
        .map_err(|flaws| ProblemDetails::flaws(&flaws))?;
    let unfit = crate::config::unfit(&app.handle.topology, &plan);
    if !unfit.is_empty() {
        return Err(ProblemDetails::flaws(&unfit));
    }
    let _turn = app.policy_turn.lock().await;
    let current = in_force(&app);
    let tag = etag(&current);
    let wanted = wanted.to_str().unwrap_or("");
    if !wanted.split(',').any(|t| t.trim() == "*" || t.trim() == tag) {
        return Err(ProblemDetails::new(
            StatusCode::PRECONDITION_FAILED,
            format!("the policy in force is {tag}"),
        ));
    }
    let fixed = fixed_keys(&plan, &current);
    if !fixed.is_empty() {
        let (keys, were) = (fixed.join("`, `"), if fixed.len() == 1 { "was" } else { "were" });
        let detail =
            format!("`{keys}` {were} fixed when this run started: to change it, start another run");
        return Err(ProblemDetails::new(StatusCode::CONFLICT, detail));
    }
    app.tell(Event::PolicyReplaced { policy: Box::new(plan.policy.clone()) }).await?;
    Ok(shown(&plan))
}

/// What the run was started with, under the policy for circuits that is in force.
fn in_force(app: &App) -> RunPlan {
    app.handle.plan.under(app.snapshot().policy.clone())
}

fn shown(plan: &RunPlan) -> Response {
    let tag = HeaderValue::from_str(&etag(plan)).unwrap_or(HeaderValue::from_static("\"\""));
    ([(header::ETAG, tag)], Json(RawPolicy::from(plan))).into_response()
}

/// The policy's content as a tag: FNV-1a of its JSON, so that it is the same however the policy
/// came about.
fn etag(plan: &RunPlan) -> String {
    let json = serde_json::to_vec(plan).unwrap_or_default();
    let hash = json
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    format!("\"{hash:016x}\"")
}
