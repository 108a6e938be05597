//! The routes, one file a resource, and what every request passes before them.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::listeners::Listener;
use super::openapi;
use super::page;
use super::problem::ProblemDetails;
use super::state::{App, ConnectionSlot};
use crate::config::nearest::nearest;
use crate::text;
use crate::units::Span;

mod body;
pub mod circuits;
pub mod coflows;
mod conditional;
pub mod events;
pub mod flows;
mod guard;
pub mod health;
pub mod jobs;
mod launch;
mod listing;
pub mod network;
pub mod paths;
pub mod policy;
pub mod proposals;
mod resource;

pub use guard::RequestGuard;

/// All routes with their descriptions.
pub fn described() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(network::topology))
        .routes(routes!(network::ports))
        .routes(routes!(network::repair))
        .routes(routes!(network::queues))
        .routes(routes!(network::demand))
        .routes(routes!(network::utilisation))
        .routes(routes!(network::stats))
        .routes(routes!(circuits::list, circuits::replace))
        .routes(routes!(circuits::get, circuits::put, circuits::delete))
        .routes(routes!(paths::list))
        .routes(routes!(paths::put, paths::delete))
        .routes(routes!(listing::list, coflows::post))
        .routes(routes!(coflows::get, coflows::put, coflows::patch, coflows::delete))
        .routes(routes!(proposals::confirm))
        .routes(routes!(coflows::finish))
        .routes(routes!(flows::list))
        .routes(routes!(jobs::list, jobs::report))
        .routes(routes!(jobs::decisions))
        .routes(routes!(policy::get, policy::put))
        .routes(routes!(events::stream))
        .routes(routes!(health::metrics))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
}

/// A request that may change something is carried out to its end. Hyper drops what it is doing for
/// a client that hangs up, and then half of it may be done, such as a coflow that is declared and
/// not sent. What was changed is answered once it is in the daemon's journal, if there is one.
async fn committed(State(app): State<App>, request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let slot = request.extensions().get::<ConnectionSlot>().cloned();
    let whole = tokio::spawn(async move {
        let response = next.run(request).await;
        if let Some(journal) = &app.journal {
            // Beyond that the disk hangs, which is no reason to withhold an answer.
            let _ = tokio::time::timeout(app.patience, journal.commit()).await;
        }
        drop(slot);
        response
    });
    let broke = || {
        ProblemDetails::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the request broke: the log of the daemon says where",
        )
    };
    whole.await.unwrap_or_else(|_| broke().into_response())
}

/// Counts how long requests take, at the door by which they come.
async fn timed(State(door): State<Arc<Listener>>, request: Request, next: Next) -> Response {
    let (method, begun) = (request.method().clone(), Instant::now());
    let response = next.run(request).await;
    door.answered(&method, Span(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)));
    response
}

/// 404 that says what would be right: the path without a slash at its end, or one that is like it.
fn nothing_at(path: &str, known: &[String]) -> ProblemDetails {
    let is = |path: &str| {
        known.iter().any(|k| {
            let parts = || k.split('/').zip(path.split('/'));
            k.matches('/').count() == path.matches('/').count()
                && parts().all(|(k, p)| k == p || k.starts_with('{') && !p.is_empty())
        })
    };
    let bare = path.trim_end_matches('/');
    let few = path.chars().count() <= text::SHOWN;
    let hint = match nearest(path, known.iter().map(String::as_str).filter(|_| few)) {
        _ if bare != path && is(bare) => {
            format!(": write it without the slash at its end, {}", text::shown(bare))
        }
        Some(like) => format!(": did you mean {like}?"),
        None => ": what there is stands in /openapi.json, and for people at /docs/".into(),
    };
    ProblemDetails::not_found(format!("there is nothing at {}{hint}", text::shown(path)))
}

/// The whole service.
pub fn router(app: App, guard: RequestGuard) -> Router {
    let (router, api) = described().split_for_parts();
    let door = app.door.clone();
    let paths: Arc<[String]> = api
        .paths
        .paths
        .keys()
        .cloned()
        .chain(["/", "/docs/", "/openapi.json"].map(Into::into))
        .collect();
    let document = Arc::new(openapi::complete(&api));
    let ui = utoipa_swagger_ui::SwaggerUi::new("/docs")
        .config(utoipa_swagger_ui::Config::new(["/openapi.json"]));
    router
        .layer(middleware::from_fn_with_state(app.clone(), committed))
        .with_state(app)
        .route("/openapi.json", axum::routing::get(move || openapi::serve(document.clone())))
        .merge(Router::new().merge(ui))
        .merge(page::router())
        .fallback(move |uri: Uri| async move { nothing_at(uri.path(), &paths) })
        .method_not_allowed_fallback(|| async {
            ProblemDetails::new(StatusCode::METHOD_NOT_ALLOWED, "this resource has no such method")
        })
        .layer(middleware::from_fn(conditional::unless_known))
        .layer(DefaultBodyLimit::max(super::MAX_BODY))
        .layer(middleware::from_fn_with_state(Arc::new(guard), guard::check))
        .layer(middleware::from_fn_with_state(door, timed))
}
