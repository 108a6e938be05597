//! The page's files: what they are served with, and that they need nothing else.

use super::*;
use crate::api::page;

#[test]
fn the_page_names_only_files_that_are_served_and_forbids_all_others() {
    let r = rig();
    let index = r.get("/");
    assert_eq!((index.status, index.header("content-type")), (200, "text/html; charset=utf-8"));
    let mut files: Vec<&str> = index.text.split('"').filter(|t| t.starts_with("/page/")).collect();
    files.sort_unstable();
    files.dedup();
    assert!(files.len() > 8, "{files:?}");
    for path in files.iter().chain([&"/"]) {
        let a = r.get(path);
        assert_eq!(a.status, 200, "{path}");
        let policy = a.header("content-security-policy");
        assert!(
            policy.contains("default-src 'none'")
                && !policy.contains("unsafe")
                && !policy.contains("http"),
            "{path}: {policy}"
        );
        assert_eq!(a.header("x-content-type-options"), "nosniff", "{path}");
        let tag = a.header("etag");
        let again = r.call("GET", path, &[("if-none-match", tag)], b"");
        assert_eq!(
            (again.status, again.text.as_str(), again.header("etag")),
            (304, "", tag),
            "{path}"
        );
        r.call("POST", path, &[], b"").problem(405);
    }
    // Neither script nor style inline, nothing from elsewhere.
    for part in ["<script>", "<style", " style=", " onclick", "src=\"http", "href=\"http"] {
        assert!(!index.text.contains(part), "{part}");
    }
    r.get("/page/no-such.js").problem(404);
    r.get("/page/report.js").problem(404);
}

#[test]
fn the_page_opens_without_the_token_and_nothing_else_does() {
    let listen = Some(([127, 0, 0, 1], 0).into());
    let r = rig_with(ServerOptions {
        listen,
        token: Some("a token of many characters".into()),
        ..ServerOptions::default()
    });
    for path in ["/", "/page/main.js", "/page/echarts.js"] {
        assert_eq!(r.get(path).status, 200, "{path}");
    }
    for path in [
        "/page",
        "/pages",
        "/docs/",
        "/openapi.json",
        "/metrics",
        "/api/v1/topology",
        "//",
        "/api/v1/page/",
    ] {
        r.get(path).problem(401);
    }
    // Without a token the host must be this machine, for the page as for all else.
    let r = rig();
    r.call("GET", "/", &[("host", "elsewhere.example")], b"").problem(421);
}

#[test]
fn the_charts_are_drawn_by_the_library_as_it_was_released() {
    assert!(page::ECHARTS.text.contains("Licensed to the Apache Software Foundation"));
    assert!(page::ECHARTS.text.contains("5.5.1"));
}
