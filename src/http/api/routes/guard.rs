//! Which requests are let in: tokens, names of this machine, and pages of other sites.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use crate::api::UNGUARDED;
use crate::api::page;
use crate::api::problem::{ProblemDetails, Reply};

/// Rules by which requests are let in.
#[derive(Clone, Debug)]
pub struct RequestGuard {
    /// Whether a socket's file mode has decided already.
    open: bool,
    /// May do everything.
    token: Option<String>,
    /// May read.
    read_token: Option<String>,
}

impl RequestGuard {
    /// Lets every request in: on a unix socket, the file's mode decides.
    pub fn open() -> Self {
        Self { open: true, token: None, read_token: None }
    }

    /// Over TCP: requests with the token, and with `read_token` those that change nothing; without
    /// any token, those that name us by a loopback address.
    pub fn tcp(token: Option<String>, read_token: Option<String>) -> Self {
        Self { open: false, token, read_token }
    }

    fn admits(&self, method: &Method, headers: &HeaderMap, path: &str) -> Reply<()> {
        if self.open || UNGUARDED.contains(&path) {
            return Ok(());
        }
        if !method.is_safe() && is_foreign(headers) {
            return Err(ProblemDetails::new(
                StatusCode::FORBIDDEN,
                "a page of another site may not change anything here",
            ));
        }
        if self.token.is_none() && self.read_token.is_none() {
            // A web page whose name was rebound to 127.0.0.1 still sends that name.
            let named = all(headers, header::HOST).all(|host| host.is_some_and(is_local));
            let detail =
                "without a token, requests must go to localhost or a loopback address by that name";
            return if named {
                Ok(())
            } else {
                Err(ProblemDetails::new(StatusCode::MISDIRECTED_REQUEST, detail))
            };
        }
        // So that the page can ask for the token.
        if page::owns(path) {
            return Ok(());
        }
        let given =
            all(headers, header::AUTHORIZATION).next().flatten().and_then(bearer).unwrap_or("");
        // In a time that does not tell how much was right.
        let is = |token: &Option<String>| {
            token.as_ref().is_some_and(|t| bool::from(given.as_bytes().ct_eq(t.as_bytes())))
        };
        match (is(&self.token), is(&self.read_token)) {
            (true, _) => Ok(()),
            (_, true) if method.is_safe() => Ok(()),
            (_, true) => Err(ProblemDetails::new(
                StatusCode::FORBIDDEN,
                "this token may read, and change nothing",
            )),
            _ => Err(ProblemDetails::new(
                StatusCode::UNAUTHORIZED,
                "this address needs `Authorization: Bearer <token>`",
            )),
        }
    }
}

/// All values of a header; `None` for one that is not ASCII.
fn all(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = Option<&str>> {
    headers.get_all(name).into_iter().map(|v| v.to_str().ok())
}

/// The token of an `Authorization` header. The scheme's case does not matter (RFC 9110, section
/// 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// Whether a browser says that a page of another site asks: by `Sec-Fetch-Site`, or by an `Origin`
/// that is not the host that is asked.
fn is_foreign(headers: &HeaderMap) -> bool {
    let site = all(headers, HeaderName::from_static("sec-fetch-site"))
        .any(|s| !matches!(s, Some("same-origin" | "none")));
    let host = all(headers, header::HOST).next().flatten();
    let own = |origin: &str| {
        origin
            .split_once("://")
            .map(|o| o.1)
            .is_some_and(|o| host.is_some_and(|h| h.eq_ignore_ascii_case(o)))
    };
    site || all(headers, header::ORIGIN).any(|o| !o.is_some_and(own))
}

fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    // A name's final dot is its root.
    let is_name = bare.strip_suffix('.').unwrap_or(bare).eq_ignore_ascii_case("localhost");
    is_name || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Checks every request before its route.
pub async fn check(
    State(guard): State<Arc<RequestGuard>>,
    request: Request,
    next: Next,
) -> Response {
    match guard.admits(request.method(), request.headers(), request.uri().path()) {
        Ok(()) => next.run(request).await,
        Err(problem) => {
            let needs_token = problem.status == 401;
            let mut response = problem.into_response();
            if needs_token {
                response
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
            }
            response
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_loopback_names_are_local() {
        for yes in [
            "localhost",
            "localhost:80",
            "LocalHost",
            "localhost.:80",
            "127.0.0.1:7447",
            "127.1.2.3",
            "[::1]:1",
            "[::1]",
        ] {
            assert!(is_local(yes), "{yes}");
        }
        for no in [
            "evil.example",
            "evil.example:7447",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "",
            "localhost.evil:1",
        ] {
            assert!(!is_local(no), "{no}");
        }
    }

    fn status(guard: &RequestGuard, method: Method, headers: &[(&str, &[u8])]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::try_from(*name).unwrap(),
                HeaderValue::from_bytes(value).unwrap(),
            );
        }
        guard.admits(&method, &map, "/api/v1/coflows").map_or_else(|p| p.status, |()| 200)
    }

    #[test]
    fn a_host_that_is_not_ours_in_any_spelling_is_refused() {
        let guard = RequestGuard::tcp(None, None);
        for (hosts, expected) in [
            (vec![&b"localhost"[..]], 200),
            (vec![b"LOCALHOST"], 200),
            (vec![], 200),
            (vec![b"evil.example"], 421),
            (vec![b"\xe9vil"], 421),
            (vec![b"localhost", b"evil.example"], 421),
        ] {
            let headers: Vec<(&str, &[u8])> = hosts.iter().map(|&h| ("host", h)).collect();
            assert_eq!(status(&guard, Method::GET, &headers), expected, "{hosts:?}");
        }
    }

    #[test]
    fn pages_of_other_sites_read_nothing_into_being() {
        let (host, own) =
            (("host", &b"127.0.0.1:7447"[..]), ("origin", &b"http://127.0.0.1:7447"[..]));
        let foreign = [
            ("origin", &b"http://evil.example"[..]),
            ("origin", b"null"),
            ("origin", b"\xe9"),
            ("sec-fetch-site", b"cross-site"),
        ];
        for guard in [
            RequestGuard::tcp(None, None),
            RequestGuard::tcp(Some("0123456789abcdef".into()), None),
        ] {
            let token = ("authorization", &b"bearer 0123456789abcdef"[..]);
            for f in foreign {
                assert_eq!(status(&guard, Method::POST, &[host, token, f]), 403, "{f:?}");
                assert_eq!(status(&guard, Method::DELETE, &[host, token, own, f]), 403, "{f:?}");
                assert_eq!(
                    status(&guard, Method::GET, &[host, token, f]),
                    200,
                    "{f:?}: a browser does not show it the answer"
                );
            }
            assert_eq!(
                status(
                    &guard,
                    Method::PUT,
                    &[host, token, own, ("sec-fetch-site", b"same-origin")]
                ),
                200
            );
            assert_eq!(status(&guard, Method::PUT, &[host, token]), 200, "no browser");
        }
    }

    #[test]
    fn a_token_is_asked_for_and_its_schemes_case_is_not() {
        let guard = RequestGuard::tcp(Some("0123456789abcdef".into()), None);
        for (value, expected) in [
            ("Bearer 0123456789abcdef", 200),
            ("BEARER 0123456789abcdef", 200),
            ("Basic 0123456789abcdef", 401),
        ] {
            assert_eq!(
                status(&guard, Method::GET, &[("authorization", value.as_bytes())]),
                expected,
                "{value}"
            );
        }
        assert_eq!(status(&guard, Method::GET, &[]), 401);
    }
}
