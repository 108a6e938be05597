//! The routes, one file a resource, and what stands before all of them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi;
use super::page;
use super::problem::{Problem, Reply};
use super::state::App;

mod body;
pub mod circuits;
pub mod coflows;
pub mod events;
pub mod health;
mod launch;
pub mod network;
pub mod policy;
pub mod proposals;
mod resource;

/// All routes with their descriptions.
pub fn described() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(network::topology))
        .routes(routes!(network::ports))
        .routes(routes!(network::repair))
        .routes(routes!(network::demand))
        .routes(routes!(network::stats))
        .routes(routes!(circuits::list))
        .routes(routes!(circuits::get, circuits::put, circuits::delete))
        .routes(routes!(coflows::list, coflows::post))
        .routes(routes!(coflows::get, coflows::put, coflows::delete))
        .routes(routes!(proposals::confirm))
        .routes(routes!(policy::get, policy::put))
        .routes(routes!(events::stream))
        .routes(routes!(health::metrics))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
}

/// The whole service.
pub fn router(app: App, guard: Guard) -> Router {
    let (router, api) = described().split_for_parts();
    let document = Arc::new(openapi::complete(&api));
    let ui = utoipa_swagger_ui::SwaggerUi::new("/docs").config(utoipa_swagger_ui::Config::new(["/openapi.json"]));
    router
        .with_state(app)
        .route("/openapi.json", axum::routing::get(move || openapi::serve(document.clone())))
        .merge(Router::new().merge(ui))
        .merge(page::router())
        .fallback(|uri: Uri| async move { Problem::not_found(format!("there is nothing at {}", uri.path())) })
        .method_not_allowed_fallback(|| async { Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this resource has no such method") })
        .layer(DefaultBodyLimit::max(super::MAX_BODY))
        .layer(middleware::from_fn_with_state(Arc::new(guard), check))
}

/// Who may ask.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Whether a socket's file mode has decided already.
    open: bool,
    token: Option<String>,
}

impl Guard {
    /// Everybody who reaches us: on a unix socket, the file's mode decides.
    pub fn open() -> Self {
        Self { open: true, token: None }
    }

    /// Over TCP: whoever has the token; without a token, whoever names us by a loopback address.
    pub fn tcp(token: Option<String>) -> Self {
        Self { open: false, token }
    }

    fn admits(&self, headers: &HeaderMap, path: &str) -> Reply<()> {
        if self.open || matches!(path, "/livez" | "/readyz") {
            return Ok(());
        }
        let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
        let Some(token) = &self.token else {
            // A web page whose name was rebound to 127.0.0.1 still sends that name.
            let named = text(header::HOST).is_none_or(is_local);
            let detail = "without a token, requests must go to localhost or a loopback address by that name";
            return if named { Ok(()) } else { Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail)) };
        };
        // So that the page can ask for the token.
        if page::owns(path) {
            return Ok(());
        }
        let given = text(header::AUTHORIZATION).and_then(|v| v.strip_prefix("Bearer ")).unwrap_or("");
        let detail = "this address needs `Authorization: Bearer <token>`";
        // In a time that does not tell how much was right.
        let right = bool::from(given.as_bytes().ct_eq(token.as_bytes()));
        if right { Ok(()) } else { Err(Problem::new(StatusCode::UNAUTHORIZED, detail)) }
    }
}

fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.admits(request.headers(), request.uri().path()) {
        Ok(()) => next.run(request).await,
        Err(problem) => {
            let needs_token = problem.status == 401;
            let mut response = problem.into_response();
            if needs_token {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
            }
            response
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn only_loopback_names_are_local() {
        for yes in ["localhost", "localhost:80", "127.0.0.1:7447", "127.1.2.3", "[::1]:1", "[::1]"] {
            assert!(is_local(yes), "{yes}");
        }
        for no in ["evil.example", "evil.example:7447", "127.0.0.1.evil.example", "10.0.0.1", "", "localhost.evil:1"] {
            assert!(!is_local(no), "{no}");
        }
    }
}
