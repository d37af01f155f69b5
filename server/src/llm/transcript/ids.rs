//! Ids of tool calls that every API takes.

/// Makes an id of letters, digits, `_` and `-` that is no longer than `longest` bytes.
pub(crate) fn safe_id(id: &str, longest: usize) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let safe: String = id.chars().map(safe).collect();
    if safe.len() <= longest {
        return safe;
    }
    // Cutting could make two ids the same; FNV-1a keeps them apart and is the same in every run.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("call_{hash:016x}")
}
