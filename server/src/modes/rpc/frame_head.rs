//! Finds the id in the start of a record that was too long to be kept.

use sampi_protocol::RequestId;

/// The value of the top-level field `id` in the start of a JSON object, when it is a scalar and whole.
pub(super) fn id_in_start(start: &[u8]) -> Option<RequestId> {
    let mut depth = 0usize;
    let mut at = 0;
    while at < start.len() {
        match start[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'"' => {
                let end = string_end(start, at)?;
                let is_key = depth == 1 && next_solid(start, end).is_some_and(|next| start[next] == b':');
                if is_key && &start[at..end] == b"\"id\"" {
                    let colon = next_solid(start, end)?;
                    let value = next_solid(start, colon + 1)?;
                    return scalar_at(start, value);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn scalar_at(start: &[u8], at: usize) -> Option<RequestId> {
    let end = if start[at] == b'"' {
        string_end(start, at)?
    } else {
        at + start[at..].iter().position(|byte| b",}] \t\r\n".contains(byte))?
    };
    serde_json::from_slice(&start[at..end]).ok()
}

/// The index after the closing quote of the string that opens at `at`.
fn string_end(start: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match start.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

fn next_solid(start: &[u8], from: usize) -> Option<usize> {
    let rest = start.get(from..)?;
    rest.iter().position(|byte| !byte.is_ascii_whitespace()).map(|found| from + found)
}

#[cfg(test)]
mod tests {
    use sampi_protocol::RequestId;

    #[test]
    fn the_id_of_a_cut_record_is_found_at_the_top_level_only() {
        let id_in_start =
            |start: &[u8]| super::id_in_start(start).as_ref().map(RequestId::json).map(str::to_owned);
        let found = |id: &str| Some(id.to_owned());
        assert_eq!(id_in_start(br#"{"type":"prompt", "id" : "a\"b","message":"xxx"#), found(r#""a\"b""#));
        assert_eq!(id_in_start(br#"{"x":{"id":1},"id":1e400,"message":"x"#), found("1e400"));
        assert_eq!(id_in_start(br#"{"message":"the \"id\": 5 and so on"#), None);
        assert_eq!(id_in_start(br#"{"id":"cut"#), None);
        assert_eq!(id_in_start(br#"}{"id":1}"#), None);
    }
}
