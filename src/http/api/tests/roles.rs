//! Who may do what over TCP: each route, with each token.

use std::io::{BufRead, BufReader};

use super::*;
use crate::api::ServeError;
use crate::api::routes::described;

const WRITE: &str = "a token that may change";
const READ: &str = "a token that may read";

fn tokens(token: Option<&str>, read_token: Option<&str>) -> ServerOptions {
    let (token, read_token) = (token.map(Into::into), read_token.map(Into::into));
    ServerOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        token,
        read_token,
        ..ServerOptions::default()
    }
}

/// Every route with a method: those of the description, and what is not in it.
fn routes() -> Vec<(String, String)> {
    let described = serde_json::to_value(described().split_for_parts().1).unwrap();
    let mut all: Vec<(String, String)> = vec![];
    for (path, methods) in described["paths"].as_object().unwrap() {
        let path = path
            .replace("{id}", "1048576")
            .replace("{plane}", "0")
            .replace("{from}", "0")
            .replace("{to}", "1");
        let path = path.replace("{input}", "0").replace("{rack}", "0");
        assert!(!path.contains('{'), "{path}");
        let known = ["get", "put", "post", "patch", "delete"];
        all.extend(
            methods
                .as_object()
                .unwrap()
                .keys()
                .filter(|m| known.contains(&m.as_str()))
                .map(|m| (m.to_uppercase(), path.clone())),
        );
    }
    assert!(all.len() > 25, "{all:?}");
    all.extend(
        [
            ("GET", "/openapi.json"),
            ("GET", "/nothing"),
            ("POST", "/nothing"),
            ("OPTIONS", "/api/v1/coflows"),
        ]
        .map(|(m, p)| (m.into(), p.into())),
    );
    all
}

/// The status alone: the stream of events has no end.
fn status(r: &Rig, method: &str, path: &str, token: Option<&str>) -> u16 {
    let mut stream = r.connect();
    let token = token.map(|t| format!("authorization: Bearer {t}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n{token}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn every_route_asks_for_the_token_that_it_needs() {
    let r = rig_with(tokens(Some(WRITE), Some(READ)));
    for (method, path) in routes() {
        let of = |token| status(&r, &method, &path, token);
        let is_open = ["/livez", "/readyz"].contains(&path.as_str());
        let reads = ["GET", "OPTIONS"].contains(&method.as_str());
        let refused = |s: u16| s == 401 || s == 403;
        for wrong in
            [None, Some("a token that is wrong"), Some("a token that may"), Some(&READ[1..])]
        {
            assert_eq!(of(wrong) == 401, !is_open, "{method} {path} with {wrong:?}");
        }
        assert_eq!(of(Some(READ)) == 403, !reads, "{method} {path} to read");
        assert!(!reads || !refused(of(Some(READ))), "{method} {path} to read");
        assert!(!refused(of(Some(WRITE))), "{method} {path} to change");
    }
}

#[test]
fn with_a_token_to_read_alone_nothing_is_changed_over_tcp() {
    let r = rig_with(tokens(None, Some(READ)));
    for (method, path) in routes().into_iter().filter(|r| r.1.starts_with("/api")) {
        let reads = ["GET", "OPTIONS"].contains(&method.as_str());
        assert_eq!(status(&r, &method, &path, None), 401, "{method} {path}");
        assert_eq!(status(&r, &method, &path, Some(READ)) == 403, !reads, "{method} {path}");
        assert_eq!(
            status(&r, &method, &path, Some("")),
            401,
            "{method} {path}: no token is not an empty one"
        );
    }
}

#[test]
fn tokens_that_keep_nobody_out_are_refused() {
    let handle = rig().handle.clone();
    let serve = |options: ServerOptions| serve(handle.clone(), options).map(drop);
    assert!(matches!(serve(tokens(Some(WRITE), Some("short"))), Err(ServeError::WeakToken)));
    assert!(matches!(serve(tokens(Some(READ), Some(READ))), Err(ServeError::SameToken)));
    let beyond =
        ServerOptions { listen: Some(([0, 0, 0, 0], 0).into()), ..tokens(None, Some(READ)) };
    assert!(serve(beyond).is_ok(), "a token to read keeps others out, too");
}
