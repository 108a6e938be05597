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

use super::doors::Door;
use super::openapi;
use super::page;
use super::problem::Problem;
use super::state::{App, Slot};
use crate::units::Span;

mod body;
pub mod circuits;
pub mod coflows;
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

pub use guard::Guard;

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
        .routes(routes!(flows::list))
        .routes(routes!(jobs::list, jobs::report))
        .routes(routes!(policy::get, policy::put))
        .routes(routes!(events::stream))
        .routes(routes!(health::metrics))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
}

/// A request that may change something is carried out to its end. Hyper drops what it is doing for a client that hangs up, and then half
/// of it may be done, such as a coflow that is declared and not sent. What was changed is answered once it is in the daemon's journal, if
/// there is one.
async fn committed(State(app): State<App>, request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let slot = request.extensions().get::<Slot>().cloned();
    let whole = tokio::spawn(async move {
        let response = next.run(request).await;
        if let Some(journal) = &app.journal {
            // Beyond that the disk hangs, which is no reason to withhold an answer.
            let _ = tokio::time::timeout(app.patience, journal.commit()).await;
        }
        drop(slot);
        response
    });
    let broke = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the request broke: the log of the daemon says where");
    whole.await.unwrap_or_else(|_| broke().into_response())
}

/// Counts how long requests take, at the door by which they come.
async fn timed(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let (method, begun) = (request.method().clone(), Instant::now());
    let response = next.run(request).await;
    door.answered(&method, Span(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)));
    response
}

/// The whole service.
pub fn router(app: App, guard: Guard) -> Router {
    let (router, api) = described().split_for_parts();
    let door = app.door.clone();
    let document = Arc::new(openapi::complete(&api));
    let ui = utoipa_swagger_ui::SwaggerUi::new("/docs").config(utoipa_swagger_ui::Config::new(["/openapi.json"]));
    router
        .layer(middleware::from_fn_with_state(app.clone(), committed))
        .with_state(app)
        .route("/openapi.json", axum::routing::get(move || openapi::serve(document.clone())))
        .merge(Router::new().merge(ui))
        .merge(page::router())
        .fallback(|uri: Uri| async move { Problem::not_found(format!("there is nothing at {}", uri.path())) })
        .method_not_allowed_fallback(|| async { Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this resource has no such method") })
        .layer(DefaultBodyLimit::max(super::MAX_BODY))
        .layer(middleware::from_fn_with_state(Arc::new(guard), guard::check))
        .layer(middleware::from_fn_with_state(door, timed))
}
