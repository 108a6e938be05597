//! The web page at `/`: files that are compiled in, and the headers that keep anything else out.
//!
//! A page loads nothing from elsewhere and has no script or style inline; its
//! Content-Security-Policy says so to the browser. The files tell nothing about the network, so
//! they need no token: the page asks the API, with the token that its user gives it. `report` puts
//! some of them into one self-contained file (`heliostat report`).

use std::sync::{Arc, OnceLock};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};

use crate::config;
use crate::config::shipped::{Shelf, Shipped};

/// What a page may load and ask: its own server, nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its name below `/page/`.
    pub name: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// What is in it.
    pub text: &'static str,
}

/// Apache ECharts, as its project releases it.
pub const ECHARTS: Asset =
    script("echarts.js", include_str!(concat!(env!("OUT_DIR"), "/echarts.js")));
/// Colours and layout, of reports too.
pub const STYLE: Asset =
    Asset { name: "page.css", kind: "text/css; charset=utf-8", text: include_str!("web/page.css") };
/// Numbers with their units.
pub const UNITS: Asset = script("units.js", include_str!("web/units.js"));
/// Charts of the kinds that both pages and reports have.
pub const CHARTS: Asset = script("charts.js", include_str!("web/charts.js"));

/// The page of a report, with `{{name}}` where its parts go.
pub const REPORT_PAGE: &str = include_str!("web/report.html");
/// What draws a report.
pub const REPORT: Asset = script("report.js", include_str!("web/report.js"));

/// The page itself.
const INDEX: Asset =
    Asset { name: "", kind: "text/html; charset=utf-8", text: include_str!("web/index.html") };

/// What it loads.
const ASSETS: &[Asset] = &[
    ECHARTS,
    STYLE,
    UNITS,
    CHARTS,
    script("store.js", include_str!("web/store.js")),
    script("feed.js", include_str!("web/feed.js")),
    script("graph.js", include_str!("web/graph.js")),
    script("fabric.js", include_str!("web/fabric.js")),
    script("panels.js", include_str!("web/panels.js")),
    script("jobs.js", include_str!("web/jobs.js")),
    script("save.js", include_str!("web/save.js")),
    script("details.js", include_str!("web/details.js")),
    script("actions.js", include_str!("web/actions.js")),
    script("main.js", include_str!("web/main.js")),
    Asset { name: "icon.svg", kind: "image/svg+xml", text: include_str!("web/icon.svg") },
];

const fn script(name: &'static str, text: &'static str) -> Asset {
    Asset { name, kind: "text/javascript; charset=utf-8", text }
}

/// The routes of the page.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let at = |asset: &'static Asset| {
        let tag = Arc::new(OnceLock::new());
        get(move |headers: HeaderMap| async move {
            answer(asset, tag.get_or_init(|| tag_of(asset.text)), &headers)
        })
    };
    let first = Router::new()
        .route("/", at(&INDEX))
        .route("/page/policies.json", get(|| async { Json(policies()) }));
    ASSETS
        .iter()
        .fold(first, |router, asset| router.route(&format!("/page/{}", asset.name), at(asset)))
}

/// The shipped policies for circuits: name, what it is, and its file. Those that place tasks only
/// are for a scheduler, not for a daemon.
fn policies() -> Vec<[String; 3]> {
    let decides =
        |f: &Shipped| config::read_policy(f.text, f.name).is_ok_and(|plan| plan.jobs.is_none());
    Shelf::Policies
        .files()
        .filter(decides)
        .map(|f| [f.name.into(), f.about(), f.text.into()])
        .collect()
}

/// Whether a path is the page's: the same for every network, and so open to those who have no
/// token.
pub fn owns(path: &str) -> bool {
    path == "/" || path.starts_with("/page/")
}

/// A file with its tag; 304 to a browser that has it.
fn answer(asset: &Asset, tag: &str, headers: &HeaderMap) -> Response {
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|v| v.to_str().ok())
        .is_some_and(|v| v.split(',').any(|t| t.trim() == tag));
    let mut response =
        if known { StatusCode::NOT_MODIFIED.into_response() } else { asset.text.into_response() };
    let fixed = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// FNV-1a of a file.
fn tag_of(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("\"{hash:016x}\"")
}
