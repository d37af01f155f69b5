//! Times and ids as session files have them.

use sampi_protocol::data::SessionId;

/// Now, ISO 8601 with milliseconds.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Unix milliseconds of an ISO 8601 text; zero when it is none.
pub(super) fn to_millis(timestamp: &str) -> u64 {
    timestamp
        .parse::<jiff::Timestamp>()
        .ok()
        .and_then(|time| u64::try_from(time.as_millisecond()).ok())
        .unwrap_or_default()
}

/// A new session's id.
pub(super) fn session_id() -> SessionId {
    SessionId::new(uuid::Uuid::now_v7().to_string())
}

/// A new entry's id that `taken` does not know.
pub(super) fn entry_id(taken: impl Fn(&str) -> bool) -> String {
    /// After this many collisions the id is a UUID.
    const ATTEMPTS: usize = 100;
    for _ in 0..ATTEMPTS {
        let id = format!("{:08x}", fastrand::u32(..));
        if !taken(&id) {
            return id;
        }
    }
    uuid::Uuid::now_v7().to_string()
}

/// The name of a session's file.
pub(super) fn file_name(timestamp: &str, id: &SessionId) -> String {
    format!("{}_{id}.jsonl", timestamp.replace([':', '.'], "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_of_milliseconds_and_come_back() {
        let now = now();
        assert_eq!(now.len(), "2026-11-29T21:44:24.482Z".len(), "{now}");
        assert!(now.ends_with('Z') && to_millis(&now) > 1_700_000_000_000);
        assert_eq!(to_millis("2026-01-01T00:00:00.000Z"), 1_767_225_600_000);
        assert_eq!(to_millis("yesterday"), 0);
    }

    #[test]
    fn a_taken_id_is_not_given_again() {
        assert_eq!(entry_id(|_| false).len(), 8);
        assert_eq!(entry_id(|id| id.len() == 8).len(), 36);
    }

    #[test]
    fn a_file_name_has_no_colons_or_dots_but_the_last() {
        let name = file_name("2026-11-29T21:44:24.482Z", &"x".into());
        assert_eq!(name, "2026-11-29T21-44-24-482Z_x.jsonl");
    }
}
