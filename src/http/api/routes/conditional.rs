//! What a client says of the answer that it wants: a form of it, or none if it has it already.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Answers 304 to a client that has what a GET would give it, by its tag.
pub async fn unless_known(request: Request, next: Next) -> Response {
    let reads =
        request.method() == axum::http::Method::GET || request.method() == axum::http::Method::HEAD;
    let known = list(request.headers(), &header::IF_NONE_MATCH);
    let response = next.run(request).await;
    let Some(tag) =
        response.headers().get(header::ETAG).filter(|_| reads && response.status().is_success())
    else {
        return response;
    };
    let strong = |t: &str| t.trim().trim_start_matches("W/").to_owned();
    let own = tag.to_str().map(strong).unwrap_or_default();
    if !known.iter().any(|k| k == "*" || strong(k) == own) {
        return response;
    }
    let tag = tag.clone();
    let mut unchanged = StatusCode::NOT_MODIFIED.into_response();
    unchanged.headers_mut().insert(header::ETAG, tag);
    for name in [header::CACHE_CONTROL, header::VARY] {
        response
            .headers()
            .get(&name)
            .cloned()
            .into_iter()
            .for_each(|v: HeaderValue| drop(unchanged.headers_mut().insert(&name, v)));
    }
    unchanged
}

/// The values of a header that is a list, over all its lines.
fn list(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let lines = headers.get_all(name).iter().filter_map(|v| v.to_str().ok());
    lines
        .flat_map(|line| line.split(','))
        .map(|item| item.trim().to_owned())
        .filter(|item| !item.is_empty())
        .collect()
}

/// Which of some media types a client wants most, as `Accept` says; the first of equals, and the
/// first if it says nothing. `None`: none.
pub fn preferred(headers: &HeaderMap, offered: &[&str]) -> Option<usize> {
    let accepted = list(headers, &header::ACCEPT);
    if accepted.is_empty() {
        return Some(0);
    }
    let thousandths = |q: &str| {
        q.trim()
            .parse::<f32>()
            .ok()
            .filter(|q| (0.0..=1.0).contains(q))
            .map_or(0, |q| (q * 1000.0) as u32)
    };
    let wants = |kind: &str| {
        let fit = accepted.iter().filter_map(|item| {
            let mut parts = item.split(';').map(str::trim);
            let range = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts.find_map(|p| p.strip_prefix("q=")).map_or(1000, thousandths);
            // The most telling range counts.
            let telling = match range.as_str() {
                "*/*" => 1,
                r if r == kind => 3,
                r if r
                    .strip_suffix("/*")
                    .is_some_and(|main| kind.split('/').next() == Some(main)) =>
                {
                    2
                }
                _ => return None,
            };
            Some((telling, weight))
        });
        fit.max().map_or(0, |f| f.1)
    };
    let weights: Vec<u32> = offered.iter().map(|kind| wants(kind)).collect();
    let most = weights.iter().copied().max().filter(|&w| w > 0)?;
    weights.iter().position(|&w| w == most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_that_is_wanted_most_is_chosen() {
        let of = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
            preferred(&headers, &["application/openmetrics-text", "text/plain"])
        };
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, which) in [
            ("text/plain;version=0.0.4", Some(1)),
            ("*/*", Some(0)),
            (prometheus, Some(0)),
            ("text/*, application/openmetrics-text;q=0.2", Some(1)),
            ("text/plain;q=0, */*", Some(0)),
            ("TEXT/PLAIN", Some(1)),
            ("application/json", None),
            ("*/*;q=0", None),
        ] {
            assert_eq!(of(accept), which, "{accept}");
        }
        assert_eq!(preferred(&HeaderMap::new(), &["a/b"]), Some(0));
    }
}
