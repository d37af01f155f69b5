//! Why a request failed: the one place where statuses, error kinds and texts are told apart.

use std::time::Duration;

use super::{Failure, FailureKind};

/// What a provider said about a failure.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ErrorReport<'a> {
    /// The HTTP status; absent when the error came inside a stream.
    pub(crate) status: Option<u16>,
    /// The provider's kinds of the error (`type` and `code`), as far as it gave them.
    pub(crate) kinds: [Option<&'a str>; 2],
    /// The text, whatever there is of it.
    pub(crate) text: &'a str,
    /// How long the provider asks to wait.
    pub(crate) retry_after: Option<Duration>,
}

impl ErrorReport<'_> {
    /// The failure that this report describes.
    pub(crate) fn classify(&self) -> Failure {
        Failure { kind: self.kind(), status: self.status, retry_after: self.retry_after }
    }

    fn kind(&self) -> FailureKind {
        let text = self.text.to_lowercase();
        let kinds = self.kinds.iter().flatten();
        let by_name = kinds.filter_map(|kind| named(kind)).next();
        if by_name == Some(FailureKind::Overflow) || is_overflow(&text) {
            return FailureKind::Overflow;
        }
        // Google says "quota" of its rates too, but then also when to come back.
        let comes_back = self.status == Some(429) && self.retry_after.is_some();
        if by_name == Some(FailureKind::Quota) || (contains_any(&text, QUOTA_TEXTS) && !comes_back) {
            return FailureKind::Quota;
        }
        by_name.or_else(|| self.status.and_then(by_status)).unwrap_or_else(|| by_text(&text))
    }
}

/// True when an error text says that the request is longer than the model's context.
fn is_overflow(text: &str) -> bool {
    // Some providers say "too many tokens per minute": that is a rate, not a length.
    if contains_any(text, RATE_TEXTS) {
        return false;
    }
    contains_any(text, OVERFLOW_TEXTS)
        || OVERFLOW_PAIRS.iter().any(|(first, second)| {
            text.find(first).is_some_and(|at| text.get(at..).is_some_and(|rest| rest.contains(second)))
        })
}

const OVERFLOW_TEXTS: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "prompt exceeds max length",
    "request_too_large",
    "input is too long",
    "exceeds the context window",
    "context window exceed",
    "context_length_exceeded",
    "context length exceeded",
    "maximum context length",
    "maximum prompt length",
    "maximum allowed input length",
    "reduce the length of the messages",
    "exceeds the available context size",
    "greater than the context length",
    "exceeded model token limit",
    "model_context_window_exceeded",
    "range of input length should be",
    "too many tokens",
    "token limit exceeded",
];

const OVERFLOW_PAIRS: &[(&str, &str)] = &[
    ("input token count", "exceeds the maximum"),
    ("longer than the model", "context length"),
    ("prompt has", "configured context size"),
    ("exceeds", "maximum context length"),
];

const RATE_TEXTS: &[&str] = &["rate limit", "rate_limit", "too many requests", "per minute", "throttl"];

const QUOTA_TEXTS: &[&str] = &[
    "insufficient_quota",
    "exceeded your current quota",
    "credit balance is too low",
    "insufficient credits",
    "insufficient balance",
    "billing hard limit",
    "out of credits",
];

fn named(kind: &str) -> Option<FailureKind> {
    Some(match kind {
        "authentication_error" | "permission_error" | "invalid_api_key" => FailureKind::Auth,
        "rate_limit_error" | "rate_limit_exceeded" | "too_many_requests" => FailureKind::RateLimit,
        "overloaded_error" | "overloaded" => FailureKind::Overloaded,
        "request_too_large" | "context_length_exceeded" | "model_context_window_exceeded" => {
            FailureKind::Overflow
        }
        "invalid_request_error" | "not_found_error" | "model_not_found" => FailureKind::InvalidRequest,
        "insufficient_quota" | "billing_error" => FailureKind::Quota,
        "content_filter" | "refusal" | "sensitive" => FailureKind::ContentFilter,
        "server_error" | "internal_server_error" => FailureKind::Server,
        "timeout_error" | "network_error" => FailureKind::Network,
        _ => return None,
    })
}

fn by_status(status: u16) -> Option<FailureKind> {
    Some(match status {
        401 | 403 => FailureKind::Auth,
        402 => FailureKind::Quota,
        408 | 425 => FailureKind::Network,
        413 => FailureKind::Overflow,
        429 => FailureKind::RateLimit,
        503 | 529 => FailureKind::Overloaded,
        500.. => FailureKind::Server,
        400.. => FailureKind::InvalidRequest,
        _ => return None,
    })
}

fn by_text(text: &str) -> FailureKind {
    if contains_any(text, RATE_TEXTS) {
        FailureKind::RateLimit
    } else if contains_any(text, &["overloaded", "no capacity", "temporarily unavailable"]) {
        FailureKind::Overloaded
    } else if contains_any(text, &["internal server error", "server error", "bad gateway", "unavailable"]) {
        FailureKind::Server
    } else if contains_any(text, &["timed out", "timeout", "connection", "network"]) {
        FailureKind::Network
    } else {
        FailureKind::Other
    }
}

fn contains_any(text: &str, needles: &[&str]) -> bool {
    needles.iter().any(|needle| text.contains(needle))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: u16, kind: &str, text: &str) -> FailureKind {
        let status = (status != 0).then_some(status);
        let kinds = [(!kind.is_empty()).then_some(kind), None];
        ErrorReport { status, kinds, text, retry_after: None }.classify().kind
    }

    #[test]
    fn failures_are_told_apart_by_kind_then_status_then_text() {
        use FailureKind::*;
        for (status, name, text, expected) in [
            (401, "authentication_error", "bad key", Auth),
            (403, "", "forbidden", Auth),
            (429, "", "slow down", RateLimit),
            (429, "insufficient_quota", "You exceeded your current quota", Quota),
            (400, "invalid_request_error", "Your credit balance is too low to access", Quota),
            (529, "overloaded_error", "Overloaded", Overloaded),
            (0, "overloaded_error", "Overloaded", Overloaded),
            (503, "api_error", "down", Overloaded),
            (500, "api_error", "oops", Server),
            (400, "invalid_request_error", "messages: field required", InvalidRequest),
            (404, "", "model not found", InvalidRequest),
            (0, "", "something odd", Other),
            (0, "", "upstream connection reset", Network),
            (0, "content_filter", "Provider finish_reason: content_filter", ContentFilter),
        ] {
            assert_eq!(kind(status, name, text), expected, "{status} {name} {text}");
        }
    }

    #[test]
    fn a_quota_that_is_renewed_soon_is_a_rate() {
        let text = "You exceeded your current quota, please check your plan and billing details.";
        let report = |retry_after| {
            ErrorReport { status: Some(429), kinds: [None, None], text, retry_after }.classify().kind
        };
        assert_eq!(report(Some(Duration::from_secs(17))), FailureKind::RateLimit);
        assert_eq!(report(None), FailureKind::Quota);
    }

    #[test]
    fn an_overflow_is_known_by_every_wording_of_the_field() {
        for text in [
            "prompt is too long: 250000 tokens > 200000 maximum",
            "Your input exceeds the context window of this model",
            "This endpoint's maximum context length is 8192 tokens",
            "the request exceeds the available context size, try increasing it",
            "The input token count (9) exceeds the maximum number of tokens allowed (8)",
            "Please reduce the length of the messages or completion",
            "The input (9 tokens) is longer than the model's context length (8 tokens).",
            "Unhandled stop reason: model_context_window_exceeded",
        ] {
            assert_eq!(kind(400, "invalid_request_error", text), FailureKind::Overflow, "{text}");
        }
        assert_eq!(kind(413, "", ""), FailureKind::Overflow);
        assert_eq!(kind(400, "context_length_exceeded", "x"), FailureKind::Overflow);
        assert_eq!(kind(429, "", "too many tokens per minute"), FailureKind::RateLimit);
    }
}
